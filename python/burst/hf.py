# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst in the models of Hugging Face's transformers.

    burst.hf.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="burst")

Models hand over their mask as a function, so that windows, chunks, packed
sequences and padding are exact; sinks, softcaps and biases are honoured. What
cannot be is an error.

Where the sequence is split over ranks, each has its shard of the tokens:

    burst.hf.register("burst", sequence=cp)
    loss = model(**burst.hf.shard(cp, input_ids, labels=labels)).loss # this rank's part
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import MutableMapping
from typing import Any, cast

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from burst import api, tracing
from burst.sequence import Sequence

# Arguments of models that say nothing about the attention of one layer: what the
# mask is made of, and what concerns caches and outputs.
_ELSEWHERE = {"position_ids", "cache_position", "use_cache", "output_hidden_states", "return_dict",
              "output_router_logits", "num_items_in_batch", "logits_to_keep",
              "past_key_values", "position_embeddings", "shift_labels"}


@dataclasses.dataclass(frozen=True)
class Mask:
    """What models pass in the place of a mask tensor."""

    function: tracing.Function
    num_queries: int
    num_keys: int
    has_padding: bool
    ndim = 4 # as those have that were prepared


def register(name: str = "burst", sequence: Sequence | None = None) -> None:
    """Makes `attn_implementation=name` known to transformers, over the ranks of a
    sequence if one is given: then models get what `shard` makes."""
    from transformers.masking_utils import AttentionMaskInterface
    from transformers.modeling_utils import AttentionInterface
    for interface, function in (
            (AttentionInterface, functools.partial(attend, sequence=sequence)),
            (AttentionMaskInterface, functools.partial(make_mask, sequence=sequence))):
        cast(Any, interface).register(name, function)


def shard(sequence: Sequence, input_ids: torch.Tensor, *,
          attention_mask: torch.Tensor | None = None, position_ids: torch.Tensor | None = None,
          labels: torch.Tensor | None = None, ignore_index: int = -100) -> dict[str, Any]:
    """What this rank passes to a model, of what all ranks have: (batch, tokens) of
    the whole sequence.

    position_ids may begin again, where several sequences are packed: they do not
    see each other. labels, which as ever are those of the same tokens, become
    shift_labels, with the next token also where another rank has it; the loss of
    the model is then this rank's part of the mean over all labels, and loss and
    gradients are to be summed over the ranks.
    """
    batch, length = input_ids.shape
    for name, x in (("attention_mask", attention_mask), ("position_ids", position_ids),
                    ("labels", labels)):
        if x is not None and (x.dim() != 2 or x.shape[1] != length or
                              x.shape[0] not in (1, batch)):
            raise ValueError(f"{name}: ({batch}, {length}) is wanted, as of input_ids, got "
                             f"{tuple(x.shape)}")
    if position_ids is None:
        position_ids = torch.arange(length, device=input_ids.device)[None]
    if attention_mask is None:
        attention_mask = torch.ones((batch, length), dtype=torch.bool, device=input_ids.device)
    inputs: dict[str, Any] = {
        "input_ids": sequence.shard(input_ids, 1), "attention_mask": attention_mask.bool(),
        "position_ids": sequence.shard(position_ids.expand(batch, length), 1), "use_cache": False}
    if labels is not None:
        shifted = sequence.roll(labels, -1, 1).clone()
        shifted[:, -1] = ignore_index
        inputs["labels"] = inputs["shift_labels"] = sequence.shard(shifted, 1)
        inputs["num_items_in_batch"] = (shifted != ignore_index).sum()
    return inputs


def make_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0,
              kv_offset: int = 0, mask_function: Any = None,
              attention_mask: torch.Tensor | Mask | None = None,
              sequence: Sequence | None = None, **_: Any) -> Mask:
    """The mask of a model, as `flex_attention_mask` of transformers has it:
    positions of queries and keys begin at the offsets, and attention_mask is
    (batch, keys), true where a token is one. What else is given (dtype, device,
    when a mask may be left out) is about tensors, of which none is made here."""
    import transformers.masking_utils
    masking_utils = cast(Any, transformers.masking_utils)
    if isinstance(attention_mask, Mask): # which generate has prepared
        return attention_mask
    function = masking_utils.causal_mask_function if mask_function is None else mask_function
    has_padding = attention_mask is not None and not bool(attention_mask.all())
    if sequence is not None:
        _check_ranks(sequence, q_length, q_offset, kv_offset, attention_mask)
    if has_padding and attention_mask is not None:
        padding = masking_utils.prepare_padding_mask(attention_mask.bool(), kv_length, kv_offset)
        assert padding is not None
        if int(q_offset): # a table of one size for many steps
            padding = torch.nn.functional.pad(padding, (0, -padding.shape[-1] % _STEPS))
        function = masking_utils.and_masks(function, masking_utils.padding_mask_function(padding))
    if int(q_offset) or int(kv_offset):
        function = _behind(function, int(q_offset), int(kv_offset))
    return Mask(function, q_length, kv_length, has_padding)


_STEPS = 256


def _behind(function: tracing.Function, q_offset: int, kv_offset: int) -> tracing.Function:
    """A mask of positions that begin at the offsets. These are in a tensor, so that
    all steps of a decoding loop are one program."""
    offsets = torch.tensor([q_offset, kv_offset])

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        return function(b, h, i + offsets[0], j + offsets[1] if kv_offset else j)
    return mask


def _check_ranks(sequence: Sequence, q_length: int, q_offset: int, kv_offset: int,
                 attention_mask: torch.Tensor | None) -> None:
    if int(q_offset) or int(kv_offset):
        raise ValueError("past_key_values: over ranks there is no cache; pass use_cache=False")
    whole, _ = sequence.global_lengths(q_length, q_length)
    if attention_mask is None or attention_mask.shape[-1] != whole:
        found = "none" if attention_mask is None else f"{attention_mask.shape[-1]}"
        raise ValueError(f"attention_mask: that of all {whole} tokens of the sequence is wanted, "
                         f"got {found}; burst.hf.shard makes it. Without one, transformers takes "
                         "the positions of a shard for those of packed sequences")


def attend(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor,
           value: torch.Tensor, attention_mask: Any, *, scaling: float | None = None,
           dropout: float = 0.0, is_causal: bool | None = None, softcap: float | None = None,
           s_aux: torch.Tensor | None = None, position_bias: torch.Tensor | None = None,
           sliding_window: int | None = None, sequence: Sequence | None = None,
           **arguments: Any) -> tuple[torch.Tensor, None]:
    """The attention of a layer; the result is (batch, queries, heads, dim)."""
    for name, given in arguments.items():
        if given is not None and given is not False and name not in _ELSEWHERE:
            raise ValueError(f"{name}: got {given!r}, which attn_implementation=\"burst\" does not "
                             "know: leave it out, or choose another implementation")
    if sliding_window is not None and not isinstance(attention_mask, Mask):
        raise ValueError(f"sliding_window: got {sliding_window}, which must be in the mask: "
                         "burst.hf.register makes models hand it over")
    if module.training is False:
        dropout = 0.0
    mask = _mask_of(module, query, key, attention_mask, is_causal, sequence)
    if sequence is not None and isinstance(attention_mask, Mask) and \
            not attention_mask.has_padding:
        mask = _within_documents(mask, sequence, arguments.get("position_ids"))
    bias = attention_mask if isinstance(attention_mask, torch.Tensor) and \
        attention_mask.is_floating_point() else None

    def score(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        if softcap is not None:
            s = softcap * torch.tanh(s / softcap)
        for table in (bias, position_bias):
            if table is not None:
                s = s + table[tuple(x if size != 1 else 0 for x, size in
                                    zip((b, h, i, j), table.shape))]
        return s

    has_score = softcap is not None or bias is not None or position_bias is not None
    o = api.attention(query, key, value, mask=mask, score=score if has_score else None,
                      sinks=s_aux, dropout=dropout, scale=scaling, sequence=sequence,
                      head_offset=0, batch_offset=0) # masks and biases are of these heads
    return o.transpose(1, 2), None


def _mask_of(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor,
             attention_mask: Any, is_causal: bool | None,
             sequence: Sequence | None) -> tracing.Function | None:
    if isinstance(attention_mask, Mask):
        num_keys = key.shape[2]
        if sequence is not None:
            _, num_keys = sequence.global_lengths(query.shape[2], num_keys)
        if attention_mask.num_keys != num_keys:
            raise ValueError(f"attention_mask: is for {attention_mask.num_keys} keys, the layer "
                             f"has {num_keys}")
        return attention_mask.function
    if sequence is not None and attention_mask is not None:
        raise ValueError("attention_mask: over ranks, models take what burst.hf.shard makes, got "
                         f"{type(attention_mask).__name__}")
    if isinstance(attention_mask, torch.Tensor):
        if attention_mask.dim() != 4:
            raise ValueError("attention_mask: (batch, heads, queries, keys) is wanted, got "
                             f"{tuple(attention_mask.shape)}")
        if attention_mask.is_floating_point():
            return None # it is added to scores
        kept = attention_mask

        def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
            return kept[tuple(x if size != 1 else 0 for x, size in
                              zip((b, h, i, j), kept.shape))] != 0
        return mask
    if attention_mask is not None:
        raise TypeError(f"attention_mask: a tensor or a mask of burst.hf, got "
                        f"{type(attention_mask).__name__}")
    if is_causal is None:
        is_causal = bool(getattr(module, "is_causal", False))
    if not is_causal or query.shape[2] == 1 and sequence is None:
        return None
    if sequence is None and query.shape[2] != key.shape[2]:
        raise ValueError(f"is_causal: {query.shape[2]} queries and {key.shape[2]} keys, of which "
                         "no mask says where they are")
    return causal


def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
    return i >= j


def _within_documents(mask: tracing.Function | None, sequence: Sequence,
                      position_ids: torch.Tensor | None) -> tracing.Function | None:
    """The mask, within sequences that are packed: where the positions of the whole
    sequence do not go on by one, another one begins, as transformers has it."""
    if position_ids is None:
        raise ValueError("position_ids: the model does not hand them to its attention, so that "
                         "packed sequences would see each other; use burst.attention in it")
    ids = _documents.get(position_ids)
    if ids is None:
        whole = sequence.unshard(position_ids, 1)
        steps = torch.diff(whole, prepend=whole[:, :1] - 1, dim=1)
        ids = _documents[position_ids] = (steps != 1).cumsum(1).to(torch.int32)
    if not bool(ids.any()):
        return mask

    def packed(b: Any, h: Any, i: Any, j: Any) -> Any:
        n = b if ids.shape[0] > 1 else 0
        same = ids[n, i] == ids[n, j]
        return same if mask is None else mask(b, h, i, j) & same
    return packed


# Of the shards of position_ids, which all layers of a forward pass have.
_documents = cast("MutableMapping[torch.Tensor, torch.Tensor]", WeakTensorKeyDictionary())
