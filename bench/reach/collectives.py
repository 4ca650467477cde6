# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seconds of collectives, as NCCL's rings do them.

A ring of P ranks sends (P - 1) / P of the bytes of the whole from each rank; an
all-reduce is a reduce-scatter and an all-gather (Thakur et al., IJHPCA 19, 2005).
Between nodes NCCL has a ring for each card, so that a rank sends no faster than its
node's cards together.
"""

from __future__ import annotations

import math

from reach.machines import Machine

# What a tree with protocol LL takes of what a ring with Simple does, in NCCL's src/graph/tuning.cc:
# 6.8 us of 8.4 for a call, 0.6 of 3.4 for NVLink, 5 of 14 for a network.
TREE_CALL, TREE_NEAR, TREE_FAR = 6.8 / 8.4, 0.6 / 3.4, 5.0 / 14.0


def ring_bandwidth(machine: Machine, ranks: int, stride: int = 1) -> float:
    """Of each of `ranks`, every `stride`-th; their neighbours have rings of their own."""
    if machine.collective_bandwidth:
        return machine.collective_bandwidth
    if ranks * stride <= machine.node:
        return machine.node_bandwidth
    own = machine.links * machine.bandwidth / min(stride, machine.node)
    return min(machine.node_bandwidth, own)


def _steps(machine: Machine, ranks: int, stride: int) -> float:
    within = ranks * stride <= machine.node
    hop = (machine.node_latency if within else machine.latency) - machine.call
    return machine.call + (ranks - 1) * hop


def all_gather(machine: Machine, bytes_: float, ranks: int, stride: int = 1) -> float:
    """`bytes_`: of the whole, that all have at the end. A reduce-scatter takes as long."""
    if ranks == 1:
        return 0.0
    return (bytes_ * (ranks - 1) / ranks / ring_bandwidth(machine, ranks, stride)
            + _steps(machine, ranks, stride))


def all_reduce(machine: Machine, bytes_: float, ranks: int, stride: int = 1) -> float:
    """By a ring, or of few bytes by a tree with protocol LL, of whose bytes half are flags."""
    if ranks == 1:
        return 0.0
    inside = max(1, min(ranks, machine.node // stride))
    near, far = machine.node_latency - machine.call, machine.latency - machine.call
    hops = (inside - 1) * TREE_NEAR * near + math.ceil(math.log2(ranks / inside)) * TREE_FAR * far
    tree = TREE_CALL * machine.call + 2 * hops + 2 * 2 * bytes_ / ring_bandwidth(
        machine, ranks, stride)
    return min(tree, 2 * all_gather(machine, bytes_, ranks, stride))


def all_to_all(machine: Machine, bytes_: float, ranks: int) -> float:
    """`bytes_`: of a rank, to all in equal parts, those of its node and others at a time."""
    if ranks == 1:
        return 0.0
    inside = min(ranks, machine.node)
    near = bytes_ * (inside - 1) / ranks / machine.node_bandwidth + machine.node_latency
    if ranks <= machine.node:
        return near
    card = machine.links * machine.bandwidth / machine.node
    return max(near, bytes_ * (ranks - inside) / ranks / card + machine.latency)
