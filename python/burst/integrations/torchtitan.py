# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The context parallelism of TorchTitan, of torchtitan.distributed.context_parallel,
by burst: what is sharded before the forward pass, and the attention of shards.

    apply_cp_to_forward([block.attention.inner_attention for block in blocks], mesh["cp"])
    inputs, labels, kwargs = prepare_context_parallel_input(inputs, labels, kwargs, mesh["cp"],
                                                            device)

Masks are not sharded: a mask of burst sees positions of the whole sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch.nn.attention.flex_attention import BlockMask

from burst import api, tracing
from burst.sequence import Sequence

_ORDERS: dict[str | None, str] = {"headtail": "zigzag", None: "contiguous"}


def prepare_context_parallel_input(
        inputs: torch.Tensor, labels: torch.Tensor, extra_kwargs: dict[str, Any], cp_mesh: Any,
        device: torch.device | str, load_balancer_type: str | None = "headtail",
        ptrr_mask_key: str | None = None) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
    """This rank's shards of inputs and labels, which are [tokens], and of
    extra_kwargs["positions"]; extra_kwargs is changed and returned, with its
    "attention_masks" as they are. `device` is that of the tensors."""
    if "positions" not in extra_kwargs:
        raise ValueError("extra_kwargs: \"positions\" are wanted, those of the whole sequence: "
                         "torch.arange(inputs.shape[0]), or of each document by itself")
    given = inputs, labels, extra_kwargs["positions"]
    for x, name in zip(given, ("inputs", "labels", "positions")):
        if x.device.type != torch.device(device).type:
            raise ValueError(f"device: {device}, where {name} are on {x.device}")
    (inputs, labels, positions), masks = cp_shard(
        cp_mesh, given, extra_kwargs.get("attention_masks"), load_balancer_type,
        ptrr_mask_key=ptrr_mask_key)
    extra_kwargs["positions"] = positions
    if masks is not None:
        extra_kwargs["attention_masks"] = masks
    return inputs, labels, extra_kwargs


def cp_shard(cp_mesh: Any, inputs: tuple[torch.Tensor, ...], attention_masks: Any,
             load_balancer_type: str | None = "headtail", input_seq_dim: int = 0,
             ptrr_mask_key: str | None = None) -> tuple[tuple[torch.Tensor, ...], Any]:
    """This rank's shards of `inputs` along `input_seq_dim`, and the masks, a BlockMask,
    a dictionary of them or None, as they are. load_balancer_type "headtail" is zigzag
    order, and None contiguous; ptrr_mask_key is of "ptrr", which there is not."""
    sequence = _sequence(cp_mesh, load_balancer_type, ptrr_mask_key)
    length = inputs[0].shape[input_seq_dim] if inputs else 0
    chunks = sequence.ranks * (2 if load_balancer_type == "headtail" else 1)
    for n, x in enumerate(inputs):
        if x.shape[input_seq_dim] != length:
            raise ValueError(f"inputs: number {n} has {x.shape[input_seq_dim]} positions along "
                             f"dimension {input_seq_dim}, number 0 has {length}")
    if length % chunks:
        raise ValueError(f"inputs: {length} positions do not divide into {chunks} chunks: pad them")
    for mask in _masks_of(attention_masks):
        if not isinstance(mask, BlockMask):
            raise TypeError("attention_masks: a BlockMask, a dictionary of them or None is wanted, "
                            f"got {type(mask).__name__}")
        _check_mask(mask, length, length)
    return tuple(sequence.shard(x, input_seq_dim) for x in inputs), attention_masks


def _masks_of(attention_masks: Any) -> list[Any]:
    if attention_masks is None:
        return []
    if isinstance(attention_masks, dict):
        return list(cast("dict[str, Any]", attention_masks).values())
    return [attention_masks]


def _sequence(cp_mesh: Any, load_balancer_type: str | None,
              ptrr_mask_key: str | None = None) -> Sequence:
    if load_balancer_type not in _ORDERS:
        raise ValueError(f"load_balancer_type: {load_balancer_type!r} is not had; \"headtail\" and "
                         "None are: orders of burst do not depend on a mask")
    if ptrr_mask_key is not None:
        raise ValueError(f"ptrr_mask_key: got {ptrr_mask_key!r}, which is of the load balancer "
                         "\"ptrr\": leave it out")
    return Sequence(cp_mesh, _ORDERS[load_balancer_type])


def _check_mask(mask: BlockMask, num_queries: int, num_keys: int) -> None:
    if tuple(mask.seq_lengths) != (num_queries, num_keys):
        raise ValueError(f"attention_masks: of {mask.seq_lengths[0]} queries and "
                         f"{mask.seq_lengths[1]} keys, the whole sequence has {num_queries} and "
                         f"{num_keys}")


def validate_cp_backend(parallelism: Any) -> None:
    """TorchTitan's own context parallelism wants spmd_backend "spmd_types"; with burst
    any is right, since it sees the shards of a rank and no DTensor."""
    if parallelism.context_parallel_degree < 1:
        raise ValueError(f"context_parallel_degree: at least 1, got "
                         f"{parallelism.context_parallel_degree}")


def apply_cp_to_forward(attention_modules: Iterable[torch.nn.Module], cp_mesh: Any, *,
                        load_balancer_type: str | None = "headtail") -> None:
    """Gives the inner attentions of a model a forward that is burst's over the ranks of
    `cp_mesh`: ScaledDotProductAttention, which takes scale, enable_gqa and is_causal
    (True where it is left out), and FlexAttention, which takes attention_masks, a
    BlockMask of the whole sequence, score_mod, scale, enable_gqa and out_transform.
    q, k and v are [tokens, heads, dim] or [batch, sequence, heads, dim].
    load_balancer_type is what cp_shard was given.
    """
    sequence = _sequence(cp_mesh, load_balancer_type)
    modules = list(attention_modules)
    forwards = [_forward_of(module, sequence) for module in modules]
    for module, forward in zip(modules, forwards):
        module.forward = forward


def _forward_of(module: torch.nn.Module, sequence: Sequence) -> Callable[..., torch.Tensor]:
    """By the name of the class: TorchTitan need not be installed."""
    names = {kind.__name__ for kind in type(module).__mro__}
    if "FlexAttention" in names:
        if getattr(module, "kernel_options", None):
            raise ValueError(f"kernel_options: {cast(Any, module).kernel_options} are of Triton's "
                             "kernels: leave them out of the config of FlexAttention")
        return _flex_forward(sequence)
    if "ScaledDotProductAttention" in names:
        return _causal_forward(sequence)
    raise TypeError("attention_modules: FlexAttention or ScaledDotProductAttention, got "
                    f"{type(module).__name__}")


def _causal_forward(sequence: Sequence) -> Callable[..., torch.Tensor]:
    def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, attention_masks: Any = None,
                scale: float | None = None, enable_gqa: bool = False,
                is_causal: bool = True) -> torch.Tensor:
        _check_shards(q, k, v)
        if attention_masks is not None:
            raise ValueError("attention_masks: are of FlexAttention; ScaledDotProductAttention has "
                             "is_causal")
        if is_causal and q.shape[-3] != k.shape[-3]:
            raise ValueError(f"is_causal: of {q.shape[-3]} queries and {k.shape[-3]} keys on a "
                             "rank; the mask_mod of FlexAttention says which see which")
        return _attend(q, k, v, _causal if is_causal else None, None, scale, enable_gqa,
                       sequence)[0]
    return forward


def _flex_forward(sequence: Sequence) -> Callable[..., torch.Tensor]:
    def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, attention_masks: Any,
                score_mod: tracing.Function | None = None, scale: float | None = None,
                enable_gqa: bool = False,
                out_transform: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] |
                None = None) -> torch.Tensor:
        _check_shards(q, k, v)
        if not isinstance(attention_masks, BlockMask):
            raise TypeError("attention_masks: a BlockMask is wanted, got "
                            f"{type(attention_masks).__name__}")
        _check_mask(attention_masks, q.shape[-3] * sequence.ranks, k.shape[-3] * sequence.ranks)
        o, lse = _attend(q, k, v, attention_masks.mask_mod, score_mod, scale, enable_gqa, sequence)
        return o if out_transform is None else out_transform(o, lse)
    return forward


def _check_shards(*shards: torch.Tensor) -> None:
    for x, name in zip(shards, "qkv"):
        if x.dim() not in (3, 4) or hasattr(x, "to_local"):
            raise ValueError(f"{name}: a shard is wanted, [tokens, heads, dim] or [batch, "
                             f"sequence, heads, dim], got {type(x).__name__} of {tuple(x.shape)}")


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: tracing.Function | None,
            score: tracing.Function | None, scale: float | None, enable_gqa: bool,
            sequence: Sequence) -> tuple[torch.Tensor, torch.Tensor]:
    if not enable_gqa and q.shape[-2] != k.shape[-2]:
        raise ValueError(f"enable_gqa: must be set where q has {q.shape[-2]} heads and k "
                         f"{k.shape[-2]}")
    is_folded = q.dim() == 3
    if is_folded:
        q, k, v = (x[None] for x in (q, k, v))
    # Functions see the heads and the batch that are here, as with flex_attention.
    o, lse = api.attention(q, k, v, mask=mask, score=score, scale=scale, sequence=sequence,
                           layout="bshd", head_offset=0, batch_offset=0, return_lse=True)
    lse = lse.transpose(1, 2) # heads behind tokens, as of o
    return (o[0], lse[0]) if is_folded else (o, lse)


def _causal(b: Any, h: Any, i: Any, j: Any) -> Any:
    return i >= j
