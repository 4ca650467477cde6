# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst in the models of Hugging Face's transformers.

    burst.hf.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="burst")

Models hand over their mask as a function, so that windows, chunks, packed
sequences and padding are exact; sinks, softcaps and biases are honoured. What
cannot be is an error.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import torch

from burst import api, tracing

if TYPE_CHECKING:
    from burst.sequence import Sequence

# Arguments of models that say nothing about the attention of one layer: what the
# mask is made of, and what concerns caches and outputs.
_ELSEWHERE = {"position_ids", "cache_position", "use_cache", "output_hidden_states", "return_dict",
              "output_router_logits", "num_items_in_batch", "logits_to_keep", "sliding_window",
              "past_key_values", "position_embeddings"}


@dataclasses.dataclass(frozen=True)
class Mask:
    """What models pass in the place of a mask tensor."""

    function: tracing.Function
    num_queries: int
    num_keys: int


def register(name: str = "burst", sequence: Sequence | None = None) -> None:
    """Makes `attn_implementation=name` known to transformers.

    With a `sequence`, models run on this rank's shards: inputs and labels are
    sharded with it, and position_ids are its positions.
    """
    from transformers.masking_utils import AttentionMaskInterface
    from transformers.modeling_utils import AttentionInterface

    def forward(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor,
                value: torch.Tensor, attention_mask: Any,
                **arguments: Any) -> tuple[torch.Tensor, None]:
        return attend(module, query, key, value, attention_mask, sequence=sequence, **arguments)

    def mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0,
             kv_offset: int = 0, mask_function: Any = None,
             attention_mask: torch.Tensor | None = None, **arguments: Any) -> Mask:
        return make_mask(q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask,
                         sequence)

    for interface, function in ((AttentionInterface, forward), (AttentionMaskInterface, mask)):
        cast(Any, interface).register(name, function)


def make_mask(num_queries: int, num_keys: int, q_offset: int, kv_offset: int,
              mask_function: Any, padding: torch.Tensor | None,
              sequence: Sequence | None) -> Mask:
    """The mask of a model: positions of queries and keys begin at the offsets, and
    padding is (batch, keys), true where a token is one."""
    from transformers.masking_utils import causal_mask_function
    function = causal_mask_function if mask_function is None else mask_function
    q_offset, kv_offset = int(q_offset), int(kv_offset)
    if sequence is not None and sequence.ranks > 1:
        if padding is not None and not bool(padding.all()):
            raise ValueError("attention_mask: padding on the ranks of a sequence; pack documents "
                             "instead, or pad to the end and ignore these labels")
        if q_offset or kv_offset:
            raise ValueError("past_key_values: a cache on the ranks of a sequence; leave it out "
                             "with use_cache=False")
        padding = None
    table = None
    if padding is not None and not bool(padding.all()):
        table = padding.to(torch.bool)

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        kept = function(b, h, i + q_offset, j + kv_offset)
        if table is not None:
            kept = kept & table[b, j + kv_offset]
        return kept

    return Mask(mask, num_queries, num_keys)


def attend(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor,
           value: torch.Tensor, attention_mask: Any, *, scaling: float | None = None,
           dropout: float = 0.0, is_causal: bool | None = None, softcap: float | None = None,
           s_aux: torch.Tensor | None = None, position_bias: torch.Tensor | None = None,
           sequence: Sequence | None = None,
           **arguments: Any) -> tuple[torch.Tensor, None]:
    """The attention of a layer; the result is (batch, queries, heads, dim)."""
    for name, given in arguments.items():
        if given is not None and given is not False and name not in _ELSEWHERE:
            raise ValueError(f"{name}: got {given!r}, which attn_implementation=\"burst\" does not "
                             "know: leave it out, or choose another implementation")
    if module.training is False:
        dropout = 0.0
    mask = _mask_of(module, query, key, attention_mask, is_causal)
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
                      sinks=s_aux, dropout=dropout, scale=scaling, sequence=sequence)
    return o.transpose(1, 2), None


def _mask_of(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor,
             attention_mask: Any, is_causal: bool | None) -> tracing.Function | None:
    if isinstance(attention_mask, Mask):
        if attention_mask.num_keys != key.shape[2]:
            raise ValueError(f"attention_mask: is for {attention_mask.num_keys} keys, the layer "
                             f"has {key.shape[2]}")
        return attention_mask.function
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
    if not is_causal or query.shape[2] == 1:
        return None
    if query.shape[2] != key.shape[2]:
        raise ValueError(f"is_causal: {query.shape[2]} queries and {key.shape[2]} keys, of which "
                         "no mask says where they are")
    return causal


def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
    return i >= j
