# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention of DTensors, whose heads or batch are sharded, as tensor parallelism
does: each rank attends its part, and placements say which heads it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor import _utils # pyright: ignore[reportPrivateUsage]

from burst import arguments, torch_api, tracing
from burst.arguments import LAYOUTS
from burst.sequence import Sequence

_DTensor = cast(Any, DTensor) # which has not said all types


def attention(q: Any, k: Any, v: Any, mask: tracing.Function | None,
              score: tracing.Function | None, sinks: Any, scale: float | None,
              sequence: Sequence | None, strategy: str, without: Iterable[str], layout: str,
              head_offset: int | None, batch_offset: int | None, return_lse: bool,
              return_max_scores: bool, out: object, stream: int | None) -> Any:
    if torch.compiler.is_dynamo_compiling():
        raise NotImplementedError("q: is a DTensor where torch.compile reads, to which offsets of "
                                  "heads are not known: give q.to_local() and so on, and "
                                  "head_offset=")
    arguments.check_options(layout, scale, strategy)
    if out is not None:
        raise ValueError("out: cannot be given where q is a DTensor: give q.to_local() and so on")
    batch, length, head, _ = LAYOUTS[layout]
    offsets = _check(q, k, v, layout)
    if Shard(head) in q.placements:
        head_offset = offsets[head] + (head_offset or 0)
    if Shard(batch) in q.placements:
        batch_offset = offsets[batch] + (batch_offset or 0)
    if sinks is not None:
        sinks = _local_sinks(sinks, q, head)
    o, *rows = torch_api.attention(q.to_local(), k.to_local(), v.to_local(), mask, score, sinks,
                                 scale, sequence, strategy, without, layout, head_offset,
                                 batch_offset, True, return_max_scores, None, stream)
    o = _global(o, q, q.placements, (*q.shape[:3], v.shape[3]))
    if not return_lse:
        rows = rows[1:]
    if not rows:
        return o
    # (batch, heads, sequence), whatever the layout.
    placements = [Shard(0) if x == Shard(batch) else Shard(1) if x == Shard(head) else x
                  for x in q.placements]
    shape = q.shape[batch], q.shape[head], q.shape[length]
    return (o, *[_global(x, q, placements, shape) for x in rows])


def _global(x: torch.Tensor, like: Any, placements: Any, shape: tuple[int, ...]) -> Any:
    """Of the local results. They lie as the local ones do, in their order of dimensions."""
    order = sorted(range(x.dim()), key=lambda d: (-x.stride(d), d))
    strides = [1] * x.dim()
    for outer, inner in zip(reversed(order[:-1]), reversed(order[1:])):
        strides[outer] = strides[inner] * max(shape[inner], 1)
    return _DTensor.from_local(x, like.device_mesh, placements, shape=torch.Size(shape),
                               stride=tuple(strides))


def _check(q: Any, k: Any, v: Any, layout: str) -> tuple[int, ...]:
    """Where the part of q begins that this rank has. Every rank has whole groups of heads,
    with their keys."""
    batch, sequence, head, _ = LAYOUTS[layout]
    for x, name in ((q, "q"), (k, "k"), (v, "v")):
        if not isinstance(x, DTensor):
            raise TypeError(f"{name}: a DTensor is wanted, as q is, got {type(x).__name__}")
        if len(x.shape) != 4:
            raise ValueError(f"{name}: 4 dimensions {layout} are wanted, got the shape "
                             f"{tuple(x.shape)}")
        for placement in cast(Any, x).placements:
            if placement == Shard(sequence):
                raise ValueError(
                    f"{name}: its sequence is {placement!r} by DTensor; of a sequence over ranks "
                    "pass shards, as burst.Sequence(...).shard makes them, and sequence=")
            if placement not in (Replicate(), Shard(batch), Shard(head)):
                raise ValueError(
                    f"{name}: is {placement!r} by DTensor; attention takes {Shard(head)!r} of the "
                    f"heads, {Shard(batch)!r} of the batch or Replicate(): use redistribute")
        if x.device_mesh != q.device_mesh or x.placements != q.placements:
            raise ValueError(f"{name}: is {x.placements} on {x.device_mesh}, q {q.placements} on "
                             f"{q.device_mesh}; all must be the same")
    parts = [cast(Any, _utils).compute_local_shape_and_global_offset(
        x.shape, x.device_mesh, x.placements) for x in (q, k)]
    (of_q, offsets), (of_k, key_offsets) = parts
    group = q.shape[head] // max(k.shape[head], 1)
    if of_q[head] != group * of_k[head] or of_q[head] and \
            offsets[head] != group * key_offsets[head]:
        raise ValueError(f"k: of {k.shape[head]} heads this rank has {of_k[head]}, from "
                         f"{key_offsets[head]}, and of the {q.shape[head]} of q {of_q[head]}, from "
                         f"{offsets[head]}: groups of {group} must not be split; use as many ranks "
                         "as divide the heads of k, or repeat these")
    return offsets


def _local_sinks(sinks: Any, q: Any, head: int) -> Any:
    wanted = [Shard(0) if x == Shard(head) else Replicate() for x in q.placements]
    if not isinstance(sinks, DTensor) or list(cast(Any, sinks).placements) != wanted or \
            cast(Any, sinks).device_mesh != q.device_mesh:
        found = f"{cast(Any, sinks).placements}" if isinstance(sinks, DTensor) else \
            type(sinks).__name__
        raise ValueError(f"sinks: where q is a DTensor {q.placements}, one of {wanted} on the same "
                         f"mesh is wanted, got {found}")
    # Each rank adds to the gradient what its part of the batch does.
    of_gradient = [x if x == Shard(0) else Partial() if y != Replicate() else y
                   for x, y in zip(wanted, q.placements)]
    return cast(Any, sinks).to_local(grad_placements=of_gradient)
