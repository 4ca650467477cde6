# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention over documents packed into one sequence, as published systems spread it.

They cut every document into a piece for each rank (two, in zigzag order), which is no
order of burst's, so their tiles are counted here: a kernel computes whole tiles, of
which short pieces fill little.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pathlib
import random

from reach.collectives import all_gather
from reach.machines import Machine
from reach.peers import exchange_seconds, merge_seconds, repeated_seconds

PACKS = 20  # as many as the published runs average over


@dataclasses.dataclass(frozen=True)
class Shape:
    """Of the published runs: heads, and positions of a rank."""

    heads: int
    key_heads: int
    dim: int
    positions: int
    hop: float = 0.0  # seconds of a ring's hop beside its kernel, forward
    hop_backward: float = 0.0


@functools.cache
def packs(length: int) -> tuple[tuple[int, ...], ...]:
    """Lengths of documents, none above a quarter of the pack, whose rest is cut off."""
    path = pathlib.Path(__file__).with_name("documents.json")
    ranges = json.loads(path.read_text(encoding="utf-8"))["ranges"]
    limit = length // 4
    weights: dict[int, int] = {}
    for low, high, count in ranges:
        middle = (low + high) // 2
        for piece, times in ((limit, middle // limit), (middle % limit, 1)):
            if piece and times:
                weights[piece] = weights.get(piece, 0) + times * count
    draw = random.Random(0)
    pieces, counts = list(weights), list(weights.values())
    found = []
    for _ in range(PACKS):
        pack, left = [], length
        while left:
            pack.append(min(draw.choices(pieces, counts)[0], left))
            left -= pack[-1]
        found.append(tuple(pack))
    return tuple(found)


def _rate(machine: Machine, backward: bool) -> tuple[float, float]:
    """Operations of a pair and a head dim, and how many there are in a second."""
    return (10.0, machine.flops_backward) if backward else (4.0, machine.flops)


Tiles = tuple[int, float]  # blocks of rows, and tiles in all of them


def tiles_seconds(machine: Machine, tiles: list[Tiles], heads: float, dim: int,
                  backward: bool) -> float:
    """Of a kernel of so many tiles of each head."""
    operations, rate = _rate(machine, backward)
    tile = machine.tile ** 2 * operations * dim * machine.processors / rate
    block = machine.block_backward if backward else machine.block
    busy = heads * sum(tile * count + block * blocks for blocks, count in tiles)
    # A kernel of less than a wave takes as long as one block does.
    alone = max((tile * count / blocks + block for blocks, count in tiles if blocks), default=0.0)
    # Blocks are taken as documents come, not the longest first: it begins halfway on average.
    return machine.launch + max(busy / machine.processors + alone / 2, alone)


def _box(queries: float, keys: float, tile: float) -> Tiles:
    rows = math.ceil(queries / tile)
    return rows, rows * math.ceil(keys / tile)


def _causal(length: float, tile: float) -> Tiles:
    rows = math.ceil(length / tile)
    return rows, rows * (rows + 1) / 2


def ring_seconds(machine: Machine, shape: Shape, pack: tuple[int, ...], ring: int, heads: int,
                 key_heads: int, positions: float, crosses: bool, backward: bool) -> float:
    """A ring of `ring` ranks with pieces of all documents on each, with so many heads."""
    tile = machine.tile
    padded = [math.ceil(each / (2 * ring)) * 2 * ring for each in pack]
    own = [_causal(each / ring, tile) for each in padded]
    # Half of the hops compute all queries with half of the keys, the others the opposite.
    half = [_box(each / ring, each / ring / 2, tile) for each in padded]
    slice_ = 2 * 2 * positions * key_heads * shape.dim
    slice_ *= 2 if backward else 1  # gradients go along
    bandwidth = machine.bandwidth if crosses else machine.node_bandwidth
    latency = machine.latency if crosses else machine.node_latency
    hop = slice_ / bandwidth + latency if ring > 1 else 0.0
    merge = merge_seconds(machine, positions, heads, key_heads, shape.dim, 1, backward, True)
    merge += shape.hop_backward if backward else shape.hop
    diagonal = tiles_seconds(machine, own, heads, shape.dim, backward)
    others = tiles_seconds(machine, half, heads, shape.dim, backward)
    return max(diagonal, hop) + merge + max(0, ring - 2) * max(others + merge, hop) + (
        others + merge if ring > 1 else 0.0)


def seconds(machine: Machine, shape: Shape, pack: tuple[int, ...], ranks: int, method: str,
            backward: bool) -> float:
    bytes_of = 2 * shape.positions * shape.dim
    crosses = ranks > machine.node
    if method == "ring p2p":
        return ring_seconds(machine, shape, pack, ranks, shape.heads, shape.key_heads,
                            shape.positions, crosses, backward)
    if method == "all-gather":
        # Two pieces of each document on a rank, the first of keys up to its own end: the mean
        # over ranks, which zigzag order makes all alike.
        pieces = 2 * ranks
        tiles = [_box(each / pieces, each * (number + 0.5) / pieces, machine.tile)
                 for each in pack for number in (ranks // 2, pieces - 1 - ranks // 2)]
        gathered = 2 * bytes_of * shape.key_heads * ranks
        # Backward keys come again, and their gradients are scattered.
        sent = all_gather(machine, gathered, ranks)
        if backward:
            sent = 2 * sent + repeated_seconds(machine, shape.positions * ranks, shape.heads,
                                               shape.dim)
        return sent + tiles_seconds(machine, tiles, shape.heads, shape.dim, backward)
    group = min(ranks, machine.node) if method == "USP" else ranks
    ring = ranks // group
    key_heads = max(shape.key_heads, group)  # repeated where there are fewer
    # Queries, keys and values come, outputs go; backward the gradients of these, the other way.
    exchanged = bytes_of * (2 * shape.heads + 2 * key_heads)
    sent = exchange_seconds(machine, exchanged, group)
    heads = shape.heads / group
    if ring == 1:
        tiles = [_causal(each, machine.tile) for each in pack]
        return sent + tiles_seconds(machine, tiles, heads, shape.dim, backward)
    return sent + ring_seconds(machine, shape, pack, ring, int(heads), key_heads // group,
                               shape.positions * group, True, backward)


def rate(machine: Machine, shape: Shape, ranks: int, method: str, backward: bool) -> float:
    """Useful operations in a second and on a GPU, mean over packs."""
    length = shape.positions * ranks
    operations, _ = _rate(machine, backward)
    found = []
    for pack in packs(length):
        pairs = sum(each * (each + 1) / 2 for each in pack)
        found.append(pairs * operations * shape.heads * shape.dim / ranks
                     / seconds(machine, shape, pack, ranks, method, backward))
    return sum(found) / len(found)
