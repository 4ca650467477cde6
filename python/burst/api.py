# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention, burst.merge, burst.check."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from burst import tracing
from burst.sequence import Sequence

if TYPE_CHECKING:
    import torch

# Or some of them, each along axes: "ulysses on [1], ring_kv on [0]"; or in chunks of heads:
# "ulysses in 4 chunks".
Strategy = Literal["auto", "ring_kv", "ring_q", "double_ring_kv", "double_ring_q", "bi_ring_kv",
                   "bi_ring_q", "direct_kv", "direct_q", "all_gather", "gather_q", "ulysses",
                   "ring_scores"] | str


@overload
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *,
              mask: tracing.Function | None = ..., score: tracing.Function | None = ...,
              sinks: torch.Tensor | None = ..., dropout: float = ..., scale: float | None = ...,
              sequence: Sequence | None = ..., strategy: Strategy = ...,
              without: Iterable[str] = ..., layout: Literal["bhsd", "bshd"] = ...,
              head_offset: int | None = ..., batch_offset: int | None = ...,
              out: tuple[torch.Tensor, torch.Tensor] | None = ..., stream: int | None = ...,
              return_lse: Literal[False] = ...,
              return_max_scores: Literal[False] = ...) -> torch.Tensor: ...
@overload
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *,
              mask: tracing.Function | None = ..., score: tracing.Function | None = ...,
              sinks: torch.Tensor | None = ..., dropout: float = ..., scale: float | None = ...,
              sequence: Sequence | None = ..., strategy: Strategy = ...,
              without: Iterable[str] = ..., layout: Literal["bhsd", "bshd"] = ...,
              head_offset: int | None = ..., batch_offset: int | None = ...,
              out: tuple[torch.Tensor, torch.Tensor] | None = ..., stream: int | None = ...,
              return_lse: Literal[True],
              return_max_scores: Literal[False] = ...) -> tuple[torch.Tensor, torch.Tensor]: ...
@overload
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *,
              mask: tracing.Function | None = ..., score: tracing.Function | None = ...,
              sinks: torch.Tensor | None = ..., dropout: float = ..., scale: float | None = ...,
              sequence: Sequence | None = ..., strategy: Strategy = ...,
              without: Iterable[str] = ..., layout: Literal["bhsd", "bshd"] = ...,
              head_offset: int | None = ..., batch_offset: int | None = ...,
              out: tuple[torch.Tensor, ...] | None = ..., stream: int | None = ...,
              return_lse: bool = ...,
              return_max_scores: Literal[True]) -> tuple[torch.Tensor, ...]: ...


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *,
              mask: tracing.Function | None = None, score: tracing.Function | None = None,
              sinks: torch.Tensor | None = None, dropout: float = 0.0,
              scale: float | None = None, sequence: Sequence | None = None,
              strategy: Strategy = "auto", without: Iterable[str] = (),
              layout: Literal["bhsd", "bshd"] = "bhsd", head_offset: int | None = None,
              batch_offset: int | None = None, return_lse: bool = False,
              return_max_scores: bool = False, out: tuple[torch.Tensor, ...] | None = None,
              stream: int | None = None) -> Any:
    """Attention of q over k and v, with gradients.

    q, k and v are (batch, heads, sequence, dim), or with layout="bshd" (batch,
    sequence, heads, dim), of one type (float32, float64, bfloat16 or float16) and
    with any strides; heads of q are a multiple of those of k and v. o is like q,
    with the head dim of v. lse is (batch, heads, sequence), of float64 for
    float64 and of float32 for others: the *natural* logarithm of the sum of the
    exponentials of a row's scores. A row that sees no key has o = 0 and
    lse = -inf. Both have gradients. max_scores, the last result where it is returned, is
    like lse: the largest score of each row, -inf of one that sees no key, without a
    gradient. The largest of a head, of which QK-clip makes use, is that of all rows:
    `max_scores.amax((0, 2))`, and of a sequence over ranks the largest of theirs
    (an all-reduce of MAX).

    mask(b, h, i, j) says whether query i of batch b and head h sees key j, as a
    `mask_mod` of flex_attention; score(s, b, h, i, j) gives another score for s,
    which is q k^T * scale. They are called with symbols (see
    burst.tracing), and may read tensors by position: those of a score that
    require gradients get them. head_offset and batch_offset are added to what
    they see as h and b, where q is a part of a model's heads or batch; where there are more
    ranks than those of the sequence, functions that read h or b must have them. DTensors
    have them: of q, k and v with the same placements, Shard of the heads or the batch, each
    rank attends its part, o and lse are such DTensors too, and so are sinks.

    With a `sequence` the tensors are this rank's shards of it, and all ranks of its
    group call this at the same time; positions that mask and score see are those
    of the whole sequence. Tensors that mask and score read are whole on every
    rank, and their gradients are those by this rank's queries and keys: like those
    of parameters, they are to be summed over the ranks.

    `strategy` says what travels, where burst is not to choose it: that of both passes,
    or of each, as in "ring_kv then ring_q", BurstAttention's.
    `without` names optimisations that are left out, to measure what each saves:
    "overlap" (of transfers and computation), "dropping" (of what the mask does not
    need), and on CPUs "local_tiling" (scores of tiles only, in caches). Results and
    proof are the same. strategy="ring_scores" leaves the online softmax out.

    scale is 1 / sqrt(head dim) where it is None. sinks, one number per head of q,
    is a score without a value that every row sees: it is added to the
    denominator of the softmax, and o and lse are those with it (max_scores is that of
    keys). dropout must be 0. out, tensors for o, lse and maybe max_scores, is written and
    returned in place of new ones, without gradients. torch.autocast casts q, k and v.

    Arrays of numpy, and of libraries that speak DLPack (JAX, CuPy), give arrays of
    the same library, without gradients; their mask and score are written with
    operators, burst.where, and tables in burst.table. On a GPU `out` is wanted, and
    `stream`, a CUstream as a number, says in which order to run (the legacy default
    stream otherwise); torch tensors are used in the order of the current stream.
    """
    if dropout != 0.0:
        raise ValueError(f"dropout: got {dropout}; burst has none, since what is dropped would "
                         "have to be the same on all ranks: apply it to o, or leave it out")
    run = _implementations.get(type(q)) or _implementation(q)
    return run(q, k, v, mask, score, sinks, scale, sequence, strategy, without, layout,
               head_offset, batch_offset, return_lse, return_max_scores, out, stream)


# By types of q.
_implementations: dict[type[Any], Callable[..., Any]] = {}


def _implementation(q: object) -> Callable[..., Any]:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(q, torch.Tensor):
        from burst import array_api, views
        if views.is_array(q):
            return _implementations.setdefault(type(q), array_api.attention)
    if torch is None:
        raise TypeError(f"q: a torch.Tensor, an array of numpy or one with __dlpack__ is wanted, "
                        f"got {type(q).__name__}")
    tensor = sys.modules.get("torch.distributed.tensor")
    if tensor is not None and isinstance(q, tensor.DTensor):
        from burst import torch_dtensor
        return _implementations.setdefault(type(q), torch_dtensor.attention)
    from burst import torch_api
    return _implementations.setdefault(type(q), torch_api.attention)


def merge(*parts: tuple[torch.Tensor, torch.Tensor],
          layout: Literal["bhsd", "bshd"] = "bhsd") -> tuple[torch.Tensor, torch.Tensor]:
    """The attention over all keys, of attentions (o, lse) of the same queries over
    parts of them, with lse as burst.attention gives it, in natural logarithms."""
    if not parts:
        raise ValueError("merge: at least one (o, lse)")
    if layout not in ("bhsd", "bshd"):
        raise ValueError(f"layout: {layout!r} is not known; it is bhsd or bshd")
    for part in parts:
        if not isinstance(cast(object, part), (tuple, list)) or len(part) != 2:
            raise TypeError(f"merge: pairs (o, lse) are wanted, got {type(part).__name__}")
    from burst import torch_api
    return torch_api.merge(parts, layout)


# Where torch is there already, its tensors are known from the start: torch.compile
# notices what changes while it reads a call.
if "torch" in sys.modules:
    _implementation(sys.modules["torch"].empty(0))
