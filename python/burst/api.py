# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention, burst.merge, burst.check."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, overload

from burst import tracing
from burst.sequence import Sequence

if TYPE_CHECKING:
    import torch

Strategy = Literal["auto", "ring_kv", "ring_q", "all_gather"]


@overload
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *,
              mask: tracing.Function | None = ..., score: tracing.Function | None = ...,
              sinks: torch.Tensor | None = ..., dropout: float = ..., scale: float | None = ...,
              sequence: Sequence | None = ..., strategy: Strategy = ...,
              layout: Literal["bhsd", "bshd"] = ...,
              head_offset: int | None = ..., batch_offset: int | None = ...,
              return_lse: Literal[False] = ...) -> torch.Tensor: ...
@overload
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *,
              mask: tracing.Function | None = ..., score: tracing.Function | None = ...,
              sinks: torch.Tensor | None = ..., dropout: float = ..., scale: float | None = ...,
              sequence: Sequence | None = ..., strategy: Strategy = ...,
              layout: Literal["bhsd", "bshd"] = ...,
              head_offset: int | None = ..., batch_offset: int | None = ...,
              return_lse: Literal[True]) -> tuple[torch.Tensor, torch.Tensor]: ...


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *,
              mask: tracing.Function | None = None, score: tracing.Function | None = None,
              sinks: torch.Tensor | None = None, dropout: float = 0.0,
              scale: float | None = None, sequence: Sequence | None = None,
              strategy: Strategy = "auto",
              layout: Literal["bhsd", "bshd"] = "bhsd", head_offset: int | None = None,
              batch_offset: int | None = None, return_lse: bool = False) -> Any:
    """Attention of q over k and v, with gradients.

    q, k and v are (batch, heads, sequence, dim), or with layout="bshd" (batch,
    sequence, heads, dim), of one type (float32, float64, bfloat16 or float16) and
    with any strides; heads of q are a multiple of those of k and v. o is like q,
    with the head dim of v. lse is (batch, heads, sequence), of float64 for
    float64 and of float32 for others: the *natural* logarithm of the sum of the
    exponentials of a row's scores. A row that sees no key has o = 0 and
    lse = -inf. Both have gradients.

    mask(b, h, i, j) says whether query i of batch b and head h sees key j, as a
    `mask_mod` of flex_attention; score(s, b, h, i, j) gives another score for s,
    which is q k^T * scale. They are called once, with symbols (see
    burst.tracing), and may read tensors by position: those of a score that
    require gradients get them. head_offset and batch_offset are added to what
    they see as h and b, where q is a part of a model's heads or batch; where there are more
    ranks than those of the sequence, functions that read h or b must have them.

    With a `sequence` the tensors are this rank's shards of it, and all ranks of its
    group call this at the same time; positions that mask and score see are those
    of the whole sequence. Tensors that mask and score read are whole on every
    rank, and their gradients are those by this rank's queries and keys: like those
    of parameters, they are to be summed over the ranks.

    scale is 1 / sqrt(head dim) where it is None. sinks, one number per head of q,
    is a score without a value that every row sees: it is added to the
    denominator of the softmax, and o and lse are those with it. dropout must
    be 0.
    """
    if dropout != 0.0:
        raise ValueError(f"dropout: got {dropout}; burst has none, since what is dropped would "
                         "have to be the same on all ranks: apply it to o, or leave it out")
    if strategy not in ("auto", "ring_kv", "ring_q", "all_gather"):
        raise ValueError(f"strategy: {strategy!r} is not known; it is auto, ring_kv, ring_q or "
                         "all_gather")
    if scale is not None and not math.isfinite(scale):
        raise ValueError(f"scale: must be finite, got {scale}")
    from burst import torch_attention

    q, k, v = _standard(q, k, v, layout)
    prepared, tables = torch_attention.prepare(
        q, k, v, mask, score, scale, sequence, None if strategy == "auto" else strategy,
        head_offset or 0, batch_offset or 0)
    if True in prepared.reads:
        _check_offsets(prepared.reads, sequence, head_offset, batch_offset)
    o, lse = torch_attention.attend(prepared, q, k, v, tables)
    if sinks is not None:
        o, lse = _with_sinks(o, lse, sinks)
    if layout == "bhsd":
        o = o.transpose(1, 2)
    return (o, lse) if return_lse else o


# What was found in order: shapes, types and layouts of q, k and v.
_known: set[tuple[object, ...]] = set()


def _standard(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
              layout: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """As (batch, sequence, heads, dim), when they are what they should be."""
    try:
        key = (q.shape, k.shape, v.shape, q.dtype, k.dtype, v.dtype, layout, q.device, k.device,
               v.device)
    except AttributeError: # is said below
        key = None
    if key not in _known:
        for x, name in ((q, "q"), (k, "k"), (v, "v")):
            _check(x, name, layout)
    if layout == "bhsd":
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    if key is not None and key not in _known:
        _check_sizes(q, k, v)
        if len(_known) >= 4096:
            _known.clear()
        _known.add(key)
    return q, k, v


def _check(x: object, name: str, layout: str) -> None:
    import torch
    if layout not in ("bhsd", "bshd"):
        raise ValueError(f"layout: {layout!r} is not known; it is bhsd or bshd")
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name}: a torch.Tensor is wanted, got {type(x).__name__}")
    if x.dim() != 4:
        raise ValueError(f"{name}: 4 dimensions {layout} are wanted, got the shape "
                         f"{tuple(x.shape)}")
    if x.device.type != "cpu":
        raise ValueError(f"{name}: is on {x.device}; tensors must be on the CPU")


def _check_sizes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    from burst.torch_attention import DTYPES
    if q.dtype not in DTYPES:
        raise TypeError(f"q: of float32, float64, bfloat16 or float16, got {q.dtype}")
    for x, name in ((k, "k"), (v, "v")):
        if x.dtype != q.dtype:
            raise TypeError(f"{name}: is {x.dtype}, q is {q.dtype}; all must have one type "
                            "(torch.autocast casts q, k and v where they are made)")
        if x.shape[0] != q.shape[0]:
            raise ValueError(f"{name}: has a batch of {x.shape[0]}, q of {q.shape[0]}")
    if k.shape[1:3] != v.shape[1:3]:
        raise ValueError(f"v: has {v.shape[1]} positions and {v.shape[2]} heads, k has "
                         f"{k.shape[1]} and {k.shape[2]}")
    if k.shape[3] != q.shape[3]:
        raise ValueError(f"k: has a head dim of {k.shape[3]}, q of {q.shape[3]}")
    if k.shape[2] == 0 or q.shape[2] % k.shape[2]:
        raise ValueError(f"q: has {q.shape[2]} heads, which is no multiple of the {k.shape[2]} "
                         "of k and v")


def _check_offsets(reads: tuple[bool, bool], sequence: Sequence | None,
                   head_offset: int | None, batch_offset: int | None) -> None:
    """Where there are more ranks than those of the sequence, heads or batch may be
    sharded over the others: what a function sees of them must not be a guess."""
    import torch.distributed as dist
    if not dist.is_available() or not dist.is_initialized():
        return
    ranks = 1 if sequence is None else sequence.ranks
    for name, what, is_read, offset in (("head_offset", "head", reads[0], head_offset),
                                        ("batch_offset", "batch", reads[1], batch_offset)):
        if is_read and offset is None and dist.get_world_size() > ranks:
            raise ValueError(
                f"{name}: mask or score depend on the {what}, and there are "
                f"{dist.get_world_size()} ranks, more than the {ranks} of the sequence: say which "
                f"{what} of the whole model the first one here is; 0 is a value")


def _with_sinks(o: torch.Tensor, lse: torch.Tensor,
                sinks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    import torch
    if sinks.shape != lse.shape[1:2]:
        raise ValueError(f"sinks: one number per head of q is wanted, ({lse.shape[1]},), got the "
                         f"shape {tuple(sinks.shape)}")
    sinks = sinks.to(lse.dtype)[None, :, None]
    share = torch.sigmoid(lse - sinks) # of the softmax that is not the sink's
    return o * share.transpose(1, 2)[..., None].to(o.dtype), torch.logaddexp(lse, sinks)


def merge(*parts: tuple[torch.Tensor, torch.Tensor],
          layout: Literal["bhsd", "bshd"] = "bhsd") -> tuple[torch.Tensor, torch.Tensor]:
    """The attention over all keys, of attentions (o, lse) of the same queries over
    parts of them, with lse as burst.attention gives it, in natural logarithms."""
    import torch
    if not parts:
        raise ValueError("merge: at least one (o, lse)")
    o, lse = parts[0]
    for other, other_lse in parts[1:]:
        total = torch.logaddexp(lse, other_lse)
        # Of rows that see no key in either part, nothing.
        weights = [torch.exp(torch.where(total == -math.inf, -math.inf, x - total))
                   for x in (lse, other_lse)]
        a, b = (w[..., None] if layout == "bhsd" else w.transpose(1, 2)[..., None]
                for w in weights)
        o, lse = (a * o + b * other).to(o.dtype), total
    return o, lse
