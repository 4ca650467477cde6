# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs that nobody has published: Llama-3-405B on H200."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from reach.attention import Cost, Problem, attention_cost
from reach.collectives import all_reduce
from reach.machines import Machine, Model, model, variant
from reach.step import (Attention, Plan, fits, layers_forward, link_seconds, step_seconds,
                        tensor_traffic, training_bytes)

MODEL, MACHINE = "llama-3-405b", "h200"
STRATEGIES = ("ring_kv", "double_ring_kv", "all_gather", "ulysses on [1], ring_kv on [0]")
CHUNK = 32 << 10  # positions that feed-forward layers take at a time
# What may be made twice as fast, and how the page calls it.
PARTS = {"flops": "kernel", "matmul": "matrix products", "memory_bandwidth": "memory",
         "node_bandwidth": "links in a node", "bandwidth": "network cards",
         "latency": "latencies"}


@dataclasses.dataclass(frozen=True)
class Run:
    how: str
    seconds: float
    attention: float  # seconds of it, of all layers
    exposed: float  # of that, what waits for transfers
    bytes_: float
    fits: bool
    limit: str


def twice(base: Machine, part: str) -> Machine:
    """The machine with a part twice as fast."""
    if part == "matmul":
        return dataclasses.replace(base, matmul=2 * base.matmul, matmul_fp8=2 * base.matmul_fp8)
    keys = {"flops": ("flops", "flops_backward", "peak"), "latency": ("latency", "node_latency"),
            }.get(part, (part,))
    factor = 0.5 if part == "latency" else 2.0
    found = variant(base, **{key: factor * getattr(base, key) for key in keys})
    return dataclasses.replace(found, call=base.call / 2) if part == "latency" else found


def _context_machine(base: Machine, tensor: int) -> Machine:
    """Of ranks that are `tensor` GPUs apart, whole nodes: each has a card of its own."""
    if tensor % base.node:
        raise ValueError(f"tensors over {tensor} GPUs, which are no multiple of {base.node}")
    return variant(base, node=1, links=base.links / base.node)


def _attention(base: Machine, shape: Model, length: int, ranks: int, tensor: int, strategy: str,
               backward: bool) -> Cost:
    heads, key_heads = shape.heads // tensor, max(1, shape.key_heads // tensor)
    over = ranks // tensor
    nodes = over // base.node if tensor == 1 and over > base.node else 1
    where = base if tensor == 1 or over == 1 else _context_machine(base, tensor)
    return attention_cost(where, Problem(length, heads, key_heads, over, strategy,
                                         backward=backward, nodes=nodes, dim=shape.head_dim))


def training(base: Machine, length: int, ranks: int, tensor: int, strategy: str,
             keep: str) -> Run:
    shape = model(MODEL)
    costs = [_attention(base, shape, length, ranks, tensor, strategy, backward)
             for backward in (False, True)]
    plan = Plan(tensor=tensor, context=ranks // tensor, zero=True, keep=keep,
                loss_by_sequence=True, gradient_bytes=4)
    positions = length / (ranks // tensor)
    held = max(cost.peak_bytes for cost in costs)
    parts = training_bytes(shape, positions, plan, ranks, held)
    link = link_seconds(base, sum(cost.bytes_sent for cost in costs), ranks)
    seconds = step_seconds(shape, base, positions,
                           Attention(costs[0].seconds, costs[1].seconds, link), plan, ranks=ranks)
    again = plan.attention_forwards
    how = f"`{strategy}`" + (f" over {ranks // tensor}, tensors over {tensor}" if tensor > 1
                             else f" over {ranks}")
    return Run(f"{how}, keeps {keep}", seconds,
               shape.layers * (costs[0].seconds * again + costs[1].seconds),
               shape.layers * (costs[0].exposed_seconds * again + costs[1].exposed_seconds),
               sum(parts.values()), fits(base, parts), costs[1].limit)


def prefill(base: Machine, length: int, ranks: int, strategy: str, tensor: int = 8,
            fp8: bool = False) -> Run:
    """Weights over the GPUs of a node or more, the sequence over such groups."""
    shape = model(MODEL)
    over = ranks // tensor
    cost = _attention(base, shape, length, ranks, tensor, strategy, False)
    plan = Plan(tensor=tensor, context=over, fp8=fp8)
    # Logits of the last position alone.
    seconds = (layers_forward(shape, base, length / over, plan)
               + tensor_traffic(shape, base, length / over, plan, backward=False)
               + cost.seconds * shape.layers)
    parts = _serving_bytes(shape, length, tensor, over, 1)
    parts["weights"] /= 2 if fp8 else 1
    parts["attention"] = cost.peak_bytes
    # Inputs and outputs of a layer; what is between is of a part of the positions at a time.
    positions = length / over
    parts["activations"] = 4.0 * shape.hidden * positions + 2.0 * min(positions, CHUNK) * (
        2 * shape.hidden + 3 * shape.ffn / tensor)
    return Run(f"`{strategy}` over {over}, tensors over {tensor}", seconds,
               cost.seconds * shape.layers, cost.exposed_seconds * shape.layers,
               sum(parts.values()), fits(base, parts), cost.limit)


def _serving_bytes(shape: Model, length: int, tensor: int, over: int,
                   batch: int) -> dict[str, float]:
    heads = max(1.0, shape.key_heads / tensor)
    cache = 2.0 * shape.layers * heads * (shape.head_dim + shape.values)
    return {"weights": 2.0 * shape.weights / tensor, "cache": batch * cache * length / over}


def decode(base: Machine, length: int, ranks: int, strategy: str, batch: int) -> Run:
    """A token of each of `batch` sequences. Attention's heads are over the GPUs of a node and its
    positions over nodes; other layers' weights are over all GPUs (Helix, arXiv 2507.07120)."""
    shape, tensor = model(MODEL), base.node
    over = ranks // tensor
    where = base if over == 1 else _context_machine(base, tensor)
    heads = shape.heads // tensor
    cost = attention_cost(where, Problem(length, heads, shape.key_heads // tensor, over, strategy,
                                         dim=shape.head_dim, batch=batch, queries=1,
                                         causal=False))
    parts = _serving_bytes(shape, length, tensor, over, batch)
    parts["weights"] = 2.0 * shape.weights / ranks
    # The cache and the weights are read once: a kernel of decode has the queries that share a head
    # of keys in one tile, where the clock's has a tile for each.
    reads = parts["cache"] / base.memory_bandwidth
    attention = reads + cost.exposed_seconds * shape.layers
    weights = parts["weights"] / base.memory_bandwidth
    traffic = 2 * shape.layers * all_reduce(base, 2.0 * batch * shape.hidden, ranks)
    seconds = attention + weights + traffic
    limit = max((reads, "reading the cache"), (weights, "reading the weights"),
                (traffic + cost.exposed_seconds * shape.layers, "latency of transfers"))[1]
    return Run(f"`{strategy}` over {over} nodes, batch {batch}", seconds, attention,
               cost.exposed_seconds * shape.layers, sum(parts.values()), fits(base, parts), limit)


def best(runs: list[Run]) -> Run:
    """The fastest of those that fit, else the smallest."""
    fitting = [run for run in runs if run.fits]
    if not fitting:
        return min(runs, key=lambda run: run.bytes_)
    return min(fitting, key=lambda run: run.seconds)


def sensitivity(base: Machine, run: Callable[[Machine], Run]) -> dict[str, float]:
    """How much faster a run is when one part is twice as fast."""
    now = run(base).seconds
    return {called: now / run(twice(base, part)).seconds for part, called in PARTS.items()}
