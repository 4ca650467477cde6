# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of zhuzilin/ring-flash-attention, by burst.

    from burst.integrations.ring_flash_attention import zigzag_ring_flash_attn_func

Tensors are shards as there: (batch, sequence, heads, dim), or packed (tokens, heads,
dim), where each sequence is split over the ranks by itself and cu_seqlens are those
of a rank's tokens. Sequences are contiguous (ring_), in zigzag order, or striped.

    softmax_scale       1 / sqrt(head dim) where it is None
    causal, window_size of the whole sequence, counted from its last query and key;
                        also with zigzag order not causal
    alibi_slopes        (heads,) or (batch, heads), with gradients if they require them
    softcap             softcap * tanh(s / softcap), and none where it is 0; by name, as
                        these functions have none
    deterministic       True or False: results are the same in each run
    return_attn_probs   gives (out, lse, None), lse by the natural logarithm, (batch,
                        heads, sequence) or (heads, tokens)
    group               a process group or a dimension of a DeviceMesh; the default group
                        where it is None
    dropout_p           must be 0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
import torch.distributed as dist

from burst import api
from burst.integrations import packing
from burst.sequence import Layout, Sequence

Window = tuple[int, int]

__all__ = [
    "llama3_flash_attn_prepare_cu_seqlens", "llama3_flash_attn_varlen_func",
    "llama3_flash_attn_varlen_kvpacked_func", "llama3_flash_attn_varlen_qkvpacked_func",
    "ring_flash_attn_func", "ring_flash_attn_kvpacked_func", "ring_flash_attn_qkvpacked_func",
    "ring_flash_attn_varlen_func", "ring_flash_attn_varlen_kvpacked_func",
    "ring_flash_attn_varlen_qkvpacked_func", "stripe_flash_attn_func",
    "stripe_flash_attn_kvpacked_func", "stripe_flash_attn_qkvpacked_func",
    "zigzag_ring_flash_attn_func", "zigzag_ring_flash_attn_kvpacked_func",
    "zigzag_ring_flash_attn_qkvpacked_func", "zigzag_ring_flash_attn_varlen_func",
    "zigzag_ring_flash_attn_varlen_kvpacked_func",
    "zigzag_ring_flash_attn_varlen_qkvpacked_func"]


class _Options(NamedTuple):
    """Arguments that all functions have."""

    dropout_p: float
    softmax_scale: float | None
    causal: bool
    window_size: Window
    alibi_slopes: torch.Tensor | None
    return_attn_probs: bool
    group: Any
    softcap: float

    def check(self, heads: int, num_sequences: int) -> None:
        if self.dropout_p:
            raise ValueError(f"dropout_p: got {self.dropout_p}; burst has no dropout inside of "
                             "attention: set it to 0, or apply dropout to out")
        if len(self.window_size) != 2 or min(self.window_size) < -1:
            raise ValueError(f"window_size: (left, right) of at least 0, or -1 for no bound, got "
                             f"{self.window_size}")
        if self.softcap < 0:
            raise ValueError(f"softcap: positive, or 0 for none, got {self.softcap}")
        slopes = self.alibi_slopes
        if slopes is not None and tuple(slopes.shape) not in ((heads,), (num_sequences, heads)):
            raise ValueError(f"alibi_slopes: ({heads},) or ({num_sequences}, {heads}) are wanted, "
                             f"got {tuple(slopes.shape)}")

    @property
    def sides(self) -> Window:
        left, right = self.window_size
        return left, 0 if self.causal else right


def _group(group: Any) -> Any:
    if group is None:
        if not dist.is_available() or not dist.is_initialized():
            raise ValueError("group: there is no default group; call "
                             "torch.distributed.init_process_group, or give one")
        return dist.group.WORLD
    return group


def _result(o: torch.Tensor, lse: torch.Tensor, options: _Options) -> Any:
    return (o, lse, None) if options.return_attn_probs else o


#===----------------------------------------------------------------------===#
# Batches
#===----------------------------------------------------------------------===#


def _attend_batch(order: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                  options: _Options) -> Any:
    for x, name in ((q, "q"), (k, "k"), (v, "v")):
        if x.dim() != 4:
            raise ValueError(f"{name}: (batch, sequence, heads, dim) is wanted, got "
                             f"{tuple(x.shape)}")
        if order == "zigzag" and x.shape[1] % 2:
            raise ValueError(f"{name}: {x.shape[1]} positions, which are no two chunks of one "
                             "length, as zigzag order has them: pad the sequence")
    options.check(q.shape[2], q.shape[0])
    sequence = Sequence(_group(options.group), order)
    num_queries, num_keys = (x.shape[1] * sequence.ranks for x in (q, k))
    o, lse = api.attention(
        q, k, v, mask=packing.window_mask(num_queries, num_keys, *options.sides),
        score=packing.flash_score(options.softcap, options.alibi_slopes, None,
                                  num_keys - num_queries),
        scale=options.softmax_scale, sequence=sequence, layout="bshd", head_offset=0,
        batch_offset=0, return_lse=True)
    return _result(o, lse, options)


_Functions = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]


def _batch_functions(name: str, order: str) -> _Functions:
    def func(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float = 0.0,
             softmax_scale: float | None = None, causal: bool = False,
             window_size: Window = (-1, -1), alibi_slopes: torch.Tensor | None = None,
             deterministic: bool = False, return_attn_probs: bool = False, group: Any = None, *,
             softcap: float = 0.0) -> Any:
        return _attend_batch(order, q, k, v, _Options(
            dropout_p, softmax_scale, causal, window_size, alibi_slopes, return_attn_probs, group,
            softcap))

    def kvpacked(q: torch.Tensor, kv: torch.Tensor, dropout_p: float = 0.0,
                 softmax_scale: float | None = None, causal: bool = False,
                 window_size: Window = (-1, -1), alibi_slopes: torch.Tensor | None = None,
                 deterministic: bool = False, return_attn_probs: bool = False, group: Any = None,
                 *, softcap: float = 0.0) -> Any:
        k, v = _unpacked(kv, "kv", 2, 5)
        return func(q, k, v, dropout_p, softmax_scale, causal, window_size, alibi_slopes,
                    deterministic, return_attn_probs, group, softcap=softcap)

    def qkvpacked(qkv: torch.Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None,
                  causal: bool = False, window_size: Window = (-1, -1),
                  alibi_slopes: torch.Tensor | None = None, deterministic: bool = False,
                  return_attn_probs: bool = False, group: Any = None, *,
                  softcap: float = 0.0) -> Any:
        q, k, v = _unpacked(qkv, "qkv", 3, 5)
        return func(q, k, v, dropout_p, softmax_scale, causal, window_size, alibi_slopes,
                    deterministic, return_attn_probs, group, softcap=softcap)

    return _named(name, func, kvpacked, qkvpacked,
                  f"Of batches, where ranks have {order} positions.")


def _unpacked(x: torch.Tensor, name: str, count: int, dim: int) -> tuple[torch.Tensor, ...]:
    if x.dim() != dim or x.shape[-3] != count:
        shape = ("batch, sequence" if dim == 5 else "tokens") + f", {count}, heads, dim"
        raise ValueError(f"{name}: ({shape}) is wanted, got {tuple(x.shape)}")
    return x.unbind(-3)


def _named(name: str, func: Callable[..., Any], kvpacked: Callable[..., Any],
           qkvpacked: Callable[..., Any], text: str) -> _Functions:
    for function, suffix in ((func, "func"), (kvpacked, "kvpacked_func"),
                             (qkvpacked, "qkvpacked_func")):
        function.__name__ = function.__qualname__ = f"{name}_{suffix}"
        function.__doc__ = f"{text} Arguments: see the module."
    return func, kvpacked, qkvpacked


ring_flash_attn_func, ring_flash_attn_kvpacked_func, ring_flash_attn_qkvpacked_func = \
    _batch_functions("ring_flash_attn", "contiguous")
(zigzag_ring_flash_attn_func, zigzag_ring_flash_attn_kvpacked_func,
 zigzag_ring_flash_attn_qkvpacked_func) = _batch_functions("zigzag_ring_flash_attn", "zigzag")
stripe_flash_attn_func, stripe_flash_attn_kvpacked_func, stripe_flash_attn_qkvpacked_func = \
    _batch_functions("stripe_flash_attn", "striped")


#===----------------------------------------------------------------------===#
# Packed sequences
#===----------------------------------------------------------------------===#

_packed = packing.Cache()


def _attend_packed(order: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                   cu_seqlens: Any, max_seqlen: Any, options: _Options) -> Any:
    """Each sequence is split over the ranks; cu_seqlens are those of a shard."""
    sequence = Sequence(_group(options.group), order)
    key = _packed.key((cu_seqlens,), order, sequence.ranks)
    known = _packed.get(key)
    if known is None:
        local = packing.check_offsets(cu_seqlens, "cu_seqlens")
        whole = local * sequence.ranks
        known = _packed.put(key, (cu_seqlens,), (
            packing.side(whole, whole, sequence.layout, "cu_seqlens"), local.numel() - 1,
            int(local[-1]), packing.longest(local)))
    side, num_sequences, num_tokens, longest = known
    _check_packed(q, k, v, num_tokens, "cu_seqlens")
    _check_longest(max_seqlen, "max_seqlen", longest)
    options.check(q.shape[1], num_sequences)
    if num_sequences == 1: # of which the order says all
        total = num_tokens * sequence.ranks
        mask = packing.window_mask(total, total, *options.sides)
        slopes, sides = options.alibi_slopes, None
    else:
        sequence = Sequence(sequence.group, "contiguous")
        mask = packing.packed_mask(side, side, *options.sides)
        slopes, sides = options.alibi_slopes, (side, side)
    score = packing.flash_score(options.softcap, slopes, sides, 0)
    return _attend_tokens(q, k, v, mask, score, sequence, options)


def _attend_tokens(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any, score: Any,
                   sequence: Sequence, options: _Options) -> Any:
    o, lse = api.attention(q[None], k[None], v[None], mask=mask, score=score,
                           scale=options.softmax_scale, sequence=sequence, layout="bshd",
                           head_offset=0, batch_offset=0, return_lse=True)
    return _result(o[0], lse[0], options)


def _check_packed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, num_tokens: int,
                  offsets: str) -> None:
    for x, name in ((q, "q"), (k, "k"), (v, "v")):
        if x.dim() != 3:
            raise ValueError(f"{name}: (tokens, heads, dim) is wanted, got {tuple(x.shape)}")
        if x.shape[0] != num_tokens:
            raise ValueError(f"{name}: {x.shape[0]} tokens, of which {offsets} has {num_tokens} on "
                             "a rank")


def _check_longest(given: Any, name: str, longest: int) -> None:
    if int(given) < longest:
        raise ValueError(f"{name}: got {int(given)}, a sequence has {longest} tokens")


def _packed_functions(name: str, order: str) -> _Functions:
    def func(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens: torch.Tensor,
             max_seqlen: int, dropout_p: float = 0.0, softmax_scale: float | None = None,
             causal: bool = False, window_size: Window = (-1, -1),
             alibi_slopes: torch.Tensor | None = None, deterministic: bool = False,
             return_attn_probs: bool = False, group: Any = None, *, softcap: float = 0.0) -> Any:
        return _attend_packed(order, q, k, v, cu_seqlens, max_seqlen, _Options(
            dropout_p, softmax_scale, causal, window_size, alibi_slopes, return_attn_probs, group,
            softcap))

    def kvpacked(q: torch.Tensor, kv: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: int,
                 dropout_p: float = 0.0, softmax_scale: float | None = None,
                 causal: bool = False, window_size: Window = (-1, -1),
                 alibi_slopes: torch.Tensor | None = None, deterministic: bool = False,
                 return_attn_probs: bool = False, group: Any = None, *,
                 softcap: float = 0.0) -> Any:
        k, v = _unpacked(kv, "kv", 2, 4)
        return func(q, k, v, cu_seqlens, max_seqlen, dropout_p, softmax_scale, causal, window_size,
                    alibi_slopes, deterministic, return_attn_probs, group, softcap=softcap)

    def qkvpacked(qkv: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: int,
                  dropout_p: float = 0.0, softmax_scale: float | None = None,
                  causal: bool = False, window_size: Window = (-1, -1),
                  alibi_slopes: torch.Tensor | None = None, deterministic: bool = False,
                  return_attn_probs: bool = False, group: Any = None, *,
                  softcap: float = 0.0) -> Any:
        q, k, v = _unpacked(qkv, "qkv", 3, 4)
        return func(q, k, v, cu_seqlens, max_seqlen, dropout_p, softmax_scale, causal, window_size,
                    alibi_slopes, deterministic, return_attn_probs, group, softcap=softcap)

    return _named(name, func, kvpacked, qkvpacked,
                  f"Of packed sequences, of each of which ranks have {order} positions.")


ring_flash_attn_varlen_func, ring_flash_attn_varlen_kvpacked_func, \
    ring_flash_attn_varlen_qkvpacked_func = \
    _packed_functions("ring_flash_attn_varlen", "contiguous")
(zigzag_ring_flash_attn_varlen_func, zigzag_ring_flash_attn_varlen_kvpacked_func,
 zigzag_ring_flash_attn_varlen_qkvpacked_func) = \
    _packed_functions("zigzag_ring_flash_attn_varlen", "zigzag")


#===----------------------------------------------------------------------===#
# Packed sequences that lie over the ranks one behind the other
#===----------------------------------------------------------------------===#


class _Prepared(NamedTuple):
    """What llama3_flash_attn_prepare_cu_seqlens was told and has given."""

    cu_seqlens: torch.Tensor # of all ranks, on the CPU
    side: packing.Side
    causal: bool
    rank: int
    world_size: int
    cu_seqlens_k: torch.Tensor
    max_seqlen_q: int
    max_seqlen_k: int
    local_k_slice: slice


_PREPARED = "_burst_prepared" # an attribute of cu_seqlens_q


def llama3_flash_attn_prepare_cu_seqlens(
        cu_seqlens: torch.Tensor, causal: bool, rank: int,
        world_size: int) -> tuple[torch.Tensor, torch.Tensor, int, int, slice]:
    """Of packed sequences one behind the other, of which rank r has the r-th part of
    the tokens: (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
    local_k_slice), the offsets of this rank's queries and of the keys that they see,
    the longest of each, and where these keys lie among those of all ranks. causal
    ends the keys behind the last query.

    The functions of this module take what this one gives: cu_seqlens_q knows the
    offsets of all ranks, which each rank needs."""
    offsets = packing.check_offsets(cu_seqlens, "cu_seqlens")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank: from 0 to {world_size - 1}, got {rank}")
    total = int(offsets[-1])
    if total % world_size:
        raise ValueError(f"cu_seqlens: {total} tokens do not divide into {world_size} ranks: pad "
                         "them")
    begin, end = (n * total // world_size for n in (rank, rank + 1))
    first = int(torch.searchsorted(offsets, begin))
    if int(offsets[first]) != begin:
        first -= 1
    last = int(torch.searchsorted(offsets, end))
    held = offsets[first:last + 1]
    of_queries = (held - begin).clamp(0, end - begin)
    begin_of_keys, end_of_keys = int(held[0]), end if causal else int(held[-1])
    of_keys = held.clamp(max=end_of_keys) - begin_of_keys
    cu_seqlens_q, cu_seqlens_k = (x.to(cu_seqlens.dtype).to(cu_seqlens.device)
                                  for x in (of_queries, of_keys))
    longest = [packing.longest(x) for x in (of_queries, of_keys)]
    keys = slice(begin_of_keys, end_of_keys)
    setattr(cu_seqlens_q, _PREPARED, _Prepared(
        offsets, packing.side(offsets, offsets, Layout(1), "cu_seqlens"), causal, rank, world_size,
        cu_seqlens_k, longest[0], longest[1], keys))
    return cu_seqlens_q, cu_seqlens_k, longest[0], longest[1], keys


def _attend_prepared(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                     cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, max_seqlen_q: int,
                     max_seqlen_k: int, heads_k_stride: int, local_k_slice: slice,
                     options: _Options) -> Any:
    prepared = cast("_Prepared | None", getattr(cu_seqlens_q, _PREPARED, None))
    if prepared is None:
        raise ValueError("cu_seqlens_q: must be the tensor that burst.integrations."
                         "ring_flash_attention.llama3_flash_attn_prepare_cu_seqlens has given, "
                         "which knows the offsets of all ranks")
    sequence = Sequence(_group(options.group), "contiguous")
    if (sequence.rank, sequence.ranks) != (prepared.rank, prepared.world_size):
        raise ValueError(f"group: this is rank {sequence.rank} of {sequence.ranks}; cu_seqlens_q "
                         f"was prepared for rank {prepared.rank} of {prepared.world_size}")
    if cu_seqlens_k is not prepared.cu_seqlens_k and \
            not torch.equal(cu_seqlens_k, prepared.cu_seqlens_k):
        raise ValueError(f"cu_seqlens_k: {packing.numbers(cu_seqlens_k)} is not what was prepared "
                         f"beside cu_seqlens_q, {packing.numbers(prepared.cu_seqlens_k)}")
    if local_k_slice != prepared.local_k_slice:
        raise ValueError(f"local_k_slice: {local_k_slice} is not what was prepared beside "
                         f"cu_seqlens_q, {prepared.local_k_slice}")
    if options.causal != prepared.causal:
        raise ValueError(f"causal: {options.causal}, where llama3_flash_attn_prepare_cu_seqlens "
                         f"was told {prepared.causal}")
    _check_longest(max_seqlen_q, "max_seqlen_q", prepared.max_seqlen_q)
    _check_longest(max_seqlen_k, "max_seqlen_k", prepared.max_seqlen_k)
    num_tokens = int(prepared.cu_seqlens[-1]) // prepared.world_size
    _check_packed(q, k, v, num_tokens, "cu_seqlens_q")
    if heads_k_stride < 1 or k.shape[1] % heads_k_stride:
        raise ValueError(f"heads_k_stride: a divisor of the {k.shape[1]} heads of k is wanted, got "
                         f"{heads_k_stride}")
    options.check(q.shape[1], prepared.cu_seqlens.numel() - 1)
    side = prepared.side
    return _attend_tokens(
        q, k, v, packing.packed_mask(side, side, *options.sides),
        packing.flash_score(options.softcap, options.alibi_slopes, (side, side), 0), sequence,
        options)


def llama3_flash_attn_varlen_func(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens_q: torch.Tensor,
        cu_seqlens_k: torch.Tensor, max_seqlen_q: int, max_seqlen_k: int, heads_k_stride: int,
        local_k_slice: slice, dropout_p: float = 0.0, softmax_scale: float | None = None,
        causal: bool = False, window_size: Window = (-1, -1),
        alibi_slopes: torch.Tensor | None = None, deterministic: bool = False,
        return_attn_probs: bool = False, group: Any = None, *, softcap: float = 0.0) -> Any:
    """Of packed sequences one behind the other over the ranks. The arguments from
    cu_seqlens_q to local_k_slice are what llama3_flash_attn_prepare_cu_seqlens gives;
    alibi_slopes of (sequences, heads) are of the sequences of all ranks.
    heads_k_stride, of how many heads keys are gathered at a time, is checked, and
    has no other effect: what is sent when is said by the program. See the module."""
    return _attend_prepared(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                            heads_k_stride, local_k_slice, _Options(
                                dropout_p, softmax_scale, causal, window_size, alibi_slopes,
                                return_attn_probs, group, softcap))


def llama3_flash_attn_varlen_kvpacked_func(
        q: torch.Tensor, kv: torch.Tensor, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor,
        max_seqlen_q: int, max_seqlen_k: int, heads_k_stride: int, local_k_slice: slice,
        dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
        window_size: Window = (-1, -1), alibi_slopes: torch.Tensor | None = None,
        deterministic: bool = False, return_attn_probs: bool = False, group: Any = None, *,
        softcap: float = 0.0) -> Any:
    """See llama3_flash_attn_varlen_func."""
    k, v = _unpacked(kv, "kv", 2, 4)
    return llama3_flash_attn_varlen_func(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, heads_k_stride,
        local_k_slice, dropout_p, softmax_scale, causal, window_size, alibi_slopes, deterministic,
        return_attn_probs, group, softcap=softcap)


def llama3_flash_attn_varlen_qkvpacked_func(
        qkv: torch.Tensor, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor,
        max_seqlen_q: int, max_seqlen_k: int, heads_k_stride: int, local_k_slice: slice,
        dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
        window_size: Window = (-1, -1), alibi_slopes: torch.Tensor | None = None,
        deterministic: bool = False, return_attn_probs: bool = False, group: Any = None, *,
        softcap: float = 0.0) -> Any:
    """See llama3_flash_attn_varlen_func."""
    q, k, v = _unpacked(qkv, "qkv", 3, 4)
    return llama3_flash_attn_varlen_func(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, heads_k_stride,
        local_k_slice, dropout_p, softmax_scale, causal, window_size, alibi_slopes, deterministic,
        return_attn_probs, group, softcap=softcap)
