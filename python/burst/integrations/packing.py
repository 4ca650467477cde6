# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks and scores in the terms of FlashAttention: causal, windows, ALiBi, softcap,
of whole sequences and of packed ones over ranks.

Where each packed sequence is split over the ranks by itself, no order of
burst.Sequence says which positions a rank has. Tables do: a rank's tokens are
those from rank * T to (rank + 1) * T, and for each of all tokens there is which
sequence it is of, and its position there.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch

from burst import tracing
from burst.sequence import Layout


class Side(NamedTuple):
    """What is known of the tokens of all ranks, of queries or of keys."""

    ids: torch.Tensor # which sequence a token is of; -1: of none
    places: torch.Tensor # its position there
    has_padding: bool


def side(offsets: torch.Tensor, padded: torch.Tensor, layout: Layout, name: str,
         shift: torch.Tensor | None = None) -> Side:
    """Of sequences over all ranks that begin at `padded`, and whose lengths are those
    of `offsets`. Each one is split in the order of the layout. `shift` is added to the
    positions of each sequence."""
    spaces = padded[1:] - padded[:-1]
    lengths = offsets[1:] - offsets[:-1]
    if bool((lengths > spaces).any()):
        raise ValueError(f"{name}: has sequences that are longer than their padded ones")
    chunks = layout.ranks * (2 if layout.order == "zigzag" else 1)
    for n, space in enumerate(numbers(spaces)):
        if space % chunks:
            raise ValueError(f"{name}: sequence {n} has {space} tokens over {layout.ranks} ranks, "
                             f"which do not make {chunks} equal chunks: pad it")
    local = spaces // layout.ranks
    ids = torch.repeat_interleave(torch.arange(local.numel()), local)
    inner = torch.arange(ids.numel()) - (local.cumsum(0) - local)[ids]
    sizes = spaces[ids] // chunks
    parts: list[torch.Tensor] = []
    for rank in range(layout.ranks):
        if layout.order == "zigzag":
            chunk = torch.where(inner < sizes, rank, 2 * layout.ranks - 2 - rank)
            parts.append(inner + chunk * sizes)
        else:
            parts.append(inner + rank * sizes)
    places = torch.cat(parts)
    ids = ids.repeat(layout.ranks)
    is_token = places < lengths[ids]
    if shift is not None:
        places = places + shift[ids]
    return Side(torch.where(is_token, ids, -1).to(torch.int32), places.to(torch.int32),
                not bool(is_token.all()))


def packed_mask(queries: Side, keys: Side, left: int, right: int) -> tracing.Function:
    """Keeps -right <= i - j <= left within each sequence; -1 is no bound."""
    query_ids, query_places, _ = queries
    key_ids, key_places, has_padding = keys

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        kept = query_ids[i] == key_ids[j]
        if has_padding:
            kept = kept & (key_ids[j] >= 0)
        if left >= 0 or right >= 0:
            kept = kept & within(query_places[i] - key_places[j], left, right)
        return kept
    return mask


def window_mask(num_queries: int, num_keys: int, left: int, right: int) -> tracing.Function | None:
    """The same of one sequence; positions are counted from the last query and key."""
    if left < 0 and right < 0:
        return None
    shift = num_keys - num_queries

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        return within(i + shift - j, left, right)
    return mask


def within(distance: Any, left: int, right: int) -> Any:
    """Whether -right <= distance <= left, of which one is a bound."""
    if right < 0:
        return distance <= left
    kept = distance >= -right
    return kept if left < 0 else kept & (distance <= left)


def flash_score(softcap: float, slopes: torch.Tensor | None, sides: tuple[Side, Side] | None,
                shift: int) -> tracing.Function | None:
    """softcap * tanh(s / softcap), minus a slope of ALiBi times the distance. Slopes
    are (heads,), or (sequences, heads) of a batch or of packed sequences."""
    if not softcap and slopes is None:
        return None
    query_ids, query_places = sides[0][:2] if sides else (None, None)
    key_places = sides[1].places if sides else None

    def score(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        if softcap:
            s = softcap * torch.tanh(s / softcap)
        if slopes is not None:
            if query_ids is None or query_places is None or key_places is None:
                sequence, distance = b, i + shift - j
            else:
                sequence, distance = query_ids[i], query_places[i] - key_places[j]
            slope = slopes[h] if slopes.dim() == 1 else slopes[sequence, h]
            s = s - slope * abs(distance)
        return s
    return score


def check_offsets(offsets: Any, name: str) -> torch.Tensor:
    """Of packed sequences, as int64 on the CPU."""
    if not isinstance(offsets, torch.Tensor) or offsets.dim() != 1 or offsets.numel() < 1 or \
            offsets.is_floating_point():
        raise TypeError(f"{name}: integers of one dimension are wanted, got {offsets!r}")
    offsets = offsets.cpu().to(torch.int64)
    if int(offsets[0]) != 0 or bool((offsets[1:] < offsets[:-1]).any()):
        raise ValueError(f"{name}: must rise from 0, got {numbers(offsets)}")
    return offsets


def numbers(x: torch.Tensor) -> list[int]:
    return cast(Any, x).tolist()


def longest(offsets: torch.Tensor) -> int:
    return max(numbers(offsets[1:] - offsets[:-1]), default=0)


class Cache:
    """What was made of tensors, by the tensors themselves: layers are called with the
    same ones."""

    def __init__(self, size: int = 32) -> None:
        self.size = size
        self.known: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def key(self, tensors: tuple[Any, ...], *rest: Any) -> tuple[Any, ...] | None:
        try:
            return (*((id(x), None if x is None else x._version) for x in tensors), *rest)
        except (AttributeError, RuntimeError): # inference tensors have no version
            return None

    def get(self, key: tuple[Any, ...] | None) -> Any:
        return None if key is None or key not in self.known else self.known[key][1]

    def put(self, key: tuple[Any, ...] | None, tensors: tuple[Any, ...], value: Any) -> Any:
        if key is not None:
            while len(self.known) >= self.size:
                self.known.pop(next(iter(self.known)))
            self.known[key] = tensors, value # the tensors, so that no other has their identity
        return value
