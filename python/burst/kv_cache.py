# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of new queries and a cache of keys and values, as servers decode."""

from __future__ import annotations

from typing import Any

import torch

from burst import api, torch_functions


def with_kvcache(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor,
                 k: torch.Tensor | None = None, v: torch.Tensor | None = None, *,
                 cache_seqlens: int | torch.Tensor | None = None,
                 block_table: torch.Tensor | None = None, causal: bool = False,
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
    for x, name in ((q, "q"), (k_cache, "k_cache"), (v_cache, "v_cache")):
        if x.dim() != 4:
            raise ValueError(f"{name}: 4 dimensions are wanted, got the shape {tuple(x.shape)}")
    if k_cache.shape[:3] != v_cache.shape[:3]:
        raise ValueError(f"v_cache: {tuple(v_cache.shape[:3])} pages or sequences, positions and "
                         f"heads, k_cache has {tuple(k_cache.shape[:3])}")
    batch = q.shape[0]
    page = k_cache.shape[1]
    if block_table is None:
        if k_cache.shape[0] != batch:
            raise ValueError(f"k_cache: has a batch of {k_cache.shape[0]}, q of {batch}; of pages "
                             "a block_table says whose they are")
        room = page
    else:
        block_table = _pages(block_table, batch, k_cache.shape[0])
        room = page * block_table.shape[1]
    lengths = _lengths(cache_seqlens, batch, room)
    if (k is None) != (v is None):
        raise ValueError("k, v: new keys and values come together")
    if k is not None and v is not None:
        lengths = _append(k, v, k_cache, v_cache, lengths, block_table, room)
    if block_table is not None:
        longest = int(lengths.max()) if batch else 0
        used = block_table[:, :-(-longest // page) if page else 0]
        k_cache, v_cache = (x[used].flatten(1, 2) for x in (k_cache, v_cache))
    num_queries = q.shape[1]

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        d = i + (lengths[b] - num_queries) - j
        return torch_functions.within(j < lengths[b], d, left, right)

    def score(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return softcap * torch.tanh(s / softcap)

    with torch.no_grad():
        return api.attention(q, k_cache, v_cache, mask=mask, score=score if softcap else None,
                             scale=scale, layout="bshd", return_lse=return_lse)


def _lengths(given: int | torch.Tensor | None, batch: int, room: int) -> torch.Tensor:
    """How many keys each sequence has."""
    if isinstance(given, torch.Tensor):
        if given.is_floating_point() or given.shape != (batch,):
            raise ValueError(f"cache_seqlens: ({batch},) integers are wanted, got "
                             f"{tuple(given.shape)} of {given.dtype}")
        lengths = given.cpu()
    else:
        lengths = torch.full((batch,), room if given is None else int(given))
    if batch and (int(lengths.min()) < 0 or int(lengths.max()) > room):
        raise ValueError(f"cache_seqlens: from 0 to the {room} positions of the cache, got {given}")
    return lengths


def _pages(table: torch.Tensor, batch: int, pages: int) -> torch.Tensor:
    if table.is_floating_point() or table.dim() != 2 or table.shape[0] != batch:
        raise ValueError(f"block_table: ({batch}, pages) integers are wanted, got "
                         f"{tuple(table.shape)} of {table.dtype}")
    # What is not used may be anything that is none: -1 as a rule.
    if table.numel() and int(table.max()) >= pages:
        raise ValueError(f"block_table: names page {int(table.max())}, and there are {pages}")
    return table.clamp(min=0).long()


def _append(k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor,
            lengths: torch.Tensor, block_table: torch.Tensor | None, room: int) -> torch.Tensor:
    """Writes new keys and values behind those that are there."""
    batch = lengths.numel()
    for x, cache, name in ((k, k_cache, "k"), (v, v_cache, "v")):
        if x.dim() != 4 or x.shape[0] != batch or x.shape[1] != k.shape[1] or \
                x.shape[2:] != cache.shape[2:]:
            raise ValueError(f"{name}: ({batch}, {k.shape[1]}, {cache.shape[2]}, "
                             f"{cache.shape[3]}) is wanted, got {tuple(x.shape)}")
    num_new = k.shape[1]
    longest = int(lengths.max()) + num_new if batch else 0
    if longest > room:
        raise ValueError(f"k: {num_new} new keys behind {longest - num_new}, and the cache has "
                         f"room for {room}")
    places = lengths.long()[:, None] + torch.arange(num_new)
    rows = torch.arange(batch)[:, None].expand_as(places)
    if block_table is not None:
        page = k_cache.shape[1]
        rows, places = block_table.gather(1, places // page), places % page
    k_cache[rows, places] = k
    v_cache[rows, places] = v
    return lengths + num_new
