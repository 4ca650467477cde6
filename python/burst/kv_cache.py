# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of new queries and a cache of keys and values, as servers decode."""

from __future__ import annotations

from typing import Any

import torch

from burst import api, torch_functions


def with_kvcache(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor,
                 k: torch.Tensor | None = None, v: torch.Tensor | None = None, *,
                 cache_seqlens: Any = None, block_table: Any = None, causal: bool = False,
                 window: tuple[int, int] = (-1, -1), softcap: float = 0.0,
                 scale: float | None = None, return_lse: bool = False) -> Any:
    """Attention of queries and the keys that a cache has, as flash_attn_with_kvcache
    has it. Forward.

    q is (batch, queries, heads, dim), caches are (batch, positions, heads, dim), of
    which sequence n has cache_seqlens[n]: a tensor of integers, or one for all; all
    positions where it is left out. New keys and values k and v, (batch, new, heads,
    dim), are written behind these, in place, and count as keys; cache_seqlens stays
    as it is. With block_table, (batch, pages) of integers, caches are pages, (number,
    positions, heads, dim): sequence n has the pages block_table[n], one behind the
    other, of which as many are read, and copied, as the longest sequence needs.

    Masks count from the last query and key of a sequence: causal keeps
    d = i + keys - queries - j >= 0, window = (left, right) keeps -right <= d <= left,
    and -1 is no bound; softcap is C * tanh(s / C), and none where it is 0. lse is
    (batch, heads, queries).
    """
    left, right = torch_functions.sides(causal, window, softcap)
    _check_tensors(q, k_cache, v_cache, k, v)
    batch, num_queries = q.shape[:2]
    page = k_cache.shape[1]
    table = None if block_table is None else _table(block_table, batch)
    if table is None and k_cache.shape[0] != batch:
        raise ValueError(f"k_cache: has a batch of {k_cache.shape[0]}, q of {batch}; of pages a "
                         "block_table says whose they are")
    room = page if table is None else page * table.shape[1]
    begin = _lengths(cache_seqlens, batch, room)
    lengths = begin if k is None else begin + k.shape[1]
    longest = int(lengths.max()) if batch else 0
    if longest > room:
        raise ValueError(f"k: {lengths[0] - begin[0]} new keys behind {int(begin.max())}, and the "
                         f"cache has room for {room}")
    if table is not None:
        table = _pages(table, lengths, page, k_cache.shape[0])
    if not batch: # a table has an element, also one that nobody reads
        lengths = torch.zeros(1, dtype=torch.int64)

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        d = i + (lengths[b] - num_queries) - j
        return torch_functions.within(j < lengths[b], d, left, right)

    def score(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return softcap * torch.tanh(s / softcap)

    with torch.no_grad():
        if k is not None and v is not None:
            _append(k, v, k_cache, v_cache, begin, table)
        if table is not None:
            k_cache, v_cache = (x[table].flatten(1, 2) for x in (k_cache, v_cache))
        return api.attention(q, k_cache, v_cache, mask=mask, score=score if softcap else None,
                             scale=scale, layout="bshd", return_lse=return_lse)


def _check_tensors(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor,
                   k: torch.Tensor | None, v: torch.Tensor | None) -> None:
    """Before anything is written."""
    for x, name in ((q, "q"), (k_cache, "k_cache"), (v_cache, "v_cache"), (k, "k"), (v, "v")):
        if x is not None and x.dim() != 4:
            raise ValueError(f"{name}: 4 dimensions are wanted, got the shape {tuple(x.shape)}")
        if x is not None and x.dtype != q.dtype:
            raise TypeError(f"{name}: is of {x.dtype}, q of {q.dtype}")
    if k_cache.shape[:3] != v_cache.shape[:3]:
        raise ValueError(f"v_cache: {tuple(v_cache.shape[:3])} pages or sequences, positions and "
                         f"heads, k_cache has {tuple(k_cache.shape[:3])}")
    if q.shape[3] != k_cache.shape[3]:
        raise ValueError(f"k_cache: has a head dim of {k_cache.shape[3]}, q of {q.shape[3]}")
    if k_cache.shape[2] == 0 or q.shape[2] % k_cache.shape[2]:
        raise ValueError(f"q: has {q.shape[2]} heads, which is no multiple of the "
                         f"{k_cache.shape[2]} of k_cache")
    if (k is None) != (v is None):
        raise ValueError("k, v: new keys and values come together")
    for x, cache, name in ((k, k_cache, "k"), (v, v_cache, "v")):
        if x is not None and k is not None and \
                tuple(x.shape) != (q.shape[0], k.shape[1], *cache.shape[2:]):
            raise ValueError(f"{name}: ({q.shape[0]}, {k.shape[1]}, {cache.shape[2]}, "
                             f"{cache.shape[3]}) is wanted, got {tuple(x.shape)}")


def _integers(name: str, given: Any, shape: str) -> torch.Tensor:
    """A tensor of integers that do not wrap around when some are added."""
    try:
        numbers = torch.as_tensor(given).cpu()
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: {shape} integers are wanted, got {type(given).__name__}") \
            from error
    if numbers.is_floating_point() or numbers.dtype == torch.bool:
        raise ValueError(f"{name}: {shape} integers are wanted, got {tuple(numbers.shape)} of "
                         f"{numbers.dtype}")
    return numbers if numbers.dtype == torch.int32 else numbers.long()


def _lengths(given: Any, batch: int, room: int) -> torch.Tensor:
    """How many keys each sequence has."""
    lengths = torch.full((batch,), room) if given is None else \
        _integers("cache_seqlens", given, f"({batch},)")
    if lengths.dim() == 0:
        lengths = lengths.expand(batch).contiguous()
    if lengths.shape != (batch,):
        raise ValueError(f"cache_seqlens: ({batch},) integers are wanted, got "
                         f"{tuple(lengths.shape)}")
    if batch and (int(lengths.min()) < 0 or int(lengths.max()) > room):
        raise ValueError(f"cache_seqlens: from 0 to the {room} positions of the cache, got {given}")
    return lengths


def _table(given: Any, batch: int) -> torch.Tensor:
    table = _integers("block_table", given, f"({batch}, pages)").long()
    if table.dim() != 2 or table.shape[0] != batch:
        raise ValueError(f"block_table: ({batch}, pages) integers are wanted, got "
                         f"{tuple(table.shape)}")
    return table


def _pages(table: torch.Tensor, lengths: torch.Tensor, page: int, count: int) -> torch.Tensor:
    """The pages of as many positions as the longest sequence has. What a sequence does
    not use may be anything, -1 as a rule."""
    used = (lengths.long() + page - 1) // max(page, 1)
    table = table[:, :int(used.max()) if used.numel() else 0]
    is_used = torch.arange(table.shape[1]) < used[:, None]
    wrong = table[is_used & ((table < 0) | (table >= count))]
    if wrong.numel():
        raise ValueError(f"block_table: names page {int(wrong[0])} where a sequence has keys, and "
                         f"there are {count}")
    return table.where(is_used, 0)


def _append(k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor,
            begin: torch.Tensor, table: torch.Tensor | None) -> None:
    """Writes new keys and values behind those that are there."""
    places = begin.long()[:, None] + torch.arange(k.shape[1])
    rows = torch.arange(begin.numel())[:, None].expand_as(places)
    if table is not None:
        page = k_cache.shape[1]
        rows, places = table.gather(1, places // page), places % page
    k_cache[rows, places] = k
    v_cache[rows, places] = v
