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
from typing import Any, cast

import torch

from burst import api, tracing

# Arguments of models that say nothing about the attention of one layer: what the
# mask is made of, and what concerns caches and outputs.
_ELSEWHERE = {"position_ids", "cache_position", "use_cache", "output_hidden_states", "return_dict",
              "output_router_logits", "num_items_in_batch", "logits_to_keep",
              "past_key_values", "position_embeddings"}


@dataclasses.dataclass(frozen=True)
class Mask:
    """What models pass in the place of a mask tensor."""

    function: tracing.Function
    num_queries: int
    num_keys: int


def register(name: str = "burst") -> None:
    """Makes `attn_implementation=name` known to transformers."""
    from transformers.masking_utils import AttentionMaskInterface
    from transformers.modeling_utils import AttentionInterface
    for interface, function in ((AttentionInterface, attend),
                                (AttentionMaskInterface, make_mask)):
        cast(Any, interface).register(name, function)


def make_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0,
              kv_offset: int = 0, mask_function: Any = None,
              attention_mask: torch.Tensor | None = None, **_: Any) -> Mask:
    """The mask of a model, as `flex_attention_mask` of transformers has it:
    positions of queries and keys begin at the offsets, and attention_mask is
    (batch, keys), true where a token is one. What else is given (dtype, device,
    when a mask may be left out) is about tensors, of which none is made here."""
    import transformers.masking_utils
    masking_utils = cast(Any, transformers.masking_utils)
    function = masking_utils.causal_mask_function if mask_function is None else mask_function
    if attention_mask is not None and not bool(attention_mask.all()):
        padding = masking_utils.prepare_padding_mask(attention_mask.bool(), kv_length, kv_offset)
        assert padding is not None
        function = masking_utils.and_masks(function, masking_utils.padding_mask_function(padding))
    function = masking_utils.add_offsets_to_mask_function(function, int(q_offset), int(kv_offset))
    return Mask(function, q_length, kv_length)


def attend(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor,
           value: torch.Tensor, attention_mask: Any, *, scaling: float | None = None,
           dropout: float = 0.0, is_causal: bool | None = None, softcap: float | None = None,
           s_aux: torch.Tensor | None = None, position_bias: torch.Tensor | None = None,
           sliding_window: int | None = None, **arguments: Any) -> tuple[torch.Tensor, None]:
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
                      sinks=s_aux, dropout=dropout, scale=scaling)
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
