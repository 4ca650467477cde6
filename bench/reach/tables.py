# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicts every published figure: what each table's runs were, as far as it is known."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
from collections.abc import Callable, Iterable

from reach import documents, forward
from reach.attention import Cost, Problem, attention_cost
from reach.collectives import all_gather
from reach.machines import GB, Machine, Model, machine, model, variant
from reach.peers import (SCORES_HELD, exchange_seconds, merge_seconds, repeated_seconds,
                         scores_seconds)
from reach.step import (Attention, Plan, first_token_bytes, first_token_seconds, fits,
                        link_seconds, step_seconds, training_bytes)

OOM = "OOM"
Figure = float | str | None
UNITS = {"K": 1 << 10, "M": 1 << 20}
# Assumed of hosts of 8 A100 or A800: two sockets of 8 channels of DDR4-3200 at 80 %.
HOST_BANDWIDTH = 3.3e11


@functools.cache
def published() -> dict:
    return json.loads(pathlib.Path(__file__).with_name("published.json").read_text("utf-8"))


@functools.cache
def calibration() -> dict[str, list[dict]]:
    return json.loads(pathlib.Path(__file__).with_name("calibration.json").read_text("utf-8"))


def length_of(text: str) -> int:
    return int(text[:-1]) * UNITS[text[-1]]


def calibrated(table: str, quantity: str) -> float:
    """A quantity that no machine has, and that a cell of a table fixes."""
    return next(float(cell["value"]) for cell in calibration()[table]
                if cell.get("quantity") == quantity)


def predict(table: str, row: str, column: str) -> Figure:
    return PREDICTIONS[table](row, column)


# --- The first paper: LLaMA-2 on A100 whose transfers go through the host. -----------------------

# Its masks are taken to keep everything: the times of its README's kernel are of 4 S^2 H D
# operations, for half of them they would be too long.
def _unfused(base: Machine, problem: Problem, cost: Cost) -> Cost:
    """With scores in memory: products at the rate of matrix products, and passes over scores."""
    scores = problem.heads * problem.pairs / problem.ranks
    products = problem.operations / problem.ranks / base.matmul
    passes = scores_seconds(base, scores) * (2 if problem.backward else 1)
    compute = products + passes
    link = link_seconds(base, cost.bytes_sent, problem.ranks)
    # The ring of Li et al. waits for a slice, then computes.
    both = max(compute, link) if problem.overlap else compute + link
    return dataclasses.replace(cost, compute_seconds=compute, seconds=both)


def _short_gradients(base: Machine, problem: Problem, cost: Cost) -> Cost:
    """With gradients that travel in 16 bits: burst's are of fp32, those of the logs are not."""
    if not problem.backward or problem.ranks == 1:
        return cost
    width = problem.heads if problem.strategy == "ring_q" else 2 * problem.key_heads
    saved = 2.0 * problem.length * width * problem.dim  # of P hops with 1 / P of the positions
    shorter = min(cost.exposed_seconds, link_seconds(base, saved, problem.ranks))
    return dataclasses.replace(cost, seconds=cost.seconds - shorter,
                               exposed_seconds=cost.exposed_seconds - shorter,
                               bytes_sent=cost.bytes_sent - saved)


def _first_paper_attention(base: Machine, llama: Model, row: str, length: int, ranks: int,
                           backward: bool) -> tuple[Cost, float]:
    """Of a layer, and the bytes that its scores hold."""
    def problem(strategy: str, heads: int, over: int) -> Problem:
        return Problem(length, heads, heads * llama.key_heads // llama.heads, over, strategy,
                       backward=backward, nodes=max(1, over // base.node), causal=False,
                       overlap=row != "RingAttention")
    if row.startswith("TP"):
        own = problem("ring_kv", llama.heads // min(ranks, llama.heads), 1)
        return attention_cost(base, own), 0.0
    if row == "RingAttention":
        asked = problem("ring_scores", llama.heads, ranks)
    else:
        asked = problem("ring_q" if backward else "ring_kv", llama.heads, ranks)
    cost = _short_gradients(base, asked, attention_cost(base, asked))
    scores = llama.heads * (length / ranks) * length
    if row == "RingAttention":
        return _unfused(base, asked, cost), scores * SCORES_HELD
    if row == "Burst without LAO":
        return _unfused(base, asked, cost), scores / ranks * SCORES_HELD
    # A hop's partial result is merged by kernels of its own.
    merge = merge_seconds(base, length / ranks, llama.heads, llama.key_heads, llama.head_dim,
                          ranks, backward, causal=False)
    return dataclasses.replace(cost, seconds=cost.seconds + merge), 0.0


def first_token(name: str, row: str, column: str) -> Figure:
    base, llama, ranks = machine("a100x8-host"), model(name), 8
    length = length_of(column)
    tensor = ranks if row.startswith("TP") else 1
    plan = Plan(tensor=tensor, version=1 if "V1" in row else 3, context=ranks // tensor,
                fused_norms=False)
    cost, held = _first_paper_attention(base, llama, row, length, ranks, backward=False)
    positions = length if tensor > 1 else length // ranks
    if not fits(base, first_token_bytes(llama, positions, plan, held)):
        return OOM
    return first_token_seconds(llama, base, positions, Attention(cost.seconds), plan)


def first_paper_training(ranks: int, row: str, column: str) -> Figure:
    base, llama = machine("a100x8-host"), model("llama-2-7b")
    length = length_of(column)
    tensor = ranks if row.startswith("TP") else 1
    # Burst without ZeRO: its time leaves no room for gradients of weights, which it would send.
    plan = Plan(tensor=tensor, version=1 if "V1" in row else 3, context=ranks // tensor,
                zero="ZeRO" in row, reduced=False, offload=True, fused_norms=False)
    there, held = _first_paper_attention(base, llama, row, length, ranks, backward=False)
    back, _ = _first_paper_attention(base, llama, row, length, ranks, backward=True)
    positions = length if tensor > 1 else length // ranks
    if row == "RingAttention":  # weights of scores are kept for the backward pass
        held += 2 * llama.heads * positions * length * llama.layers
    if not fits(base, training_bytes(llama, positions, plan, ranks, held)):
        return OOM
    link = link_seconds(base, there.bytes_sent + back.bytes_sent, ranks)
    return step_seconds(llama, base, positions,
                        Attention(there.seconds, back.seconds, link), plan,
                        HOST_BANDWIDTH, ranks)


def kernel_burst(row: str, column: str) -> Figure:
    base, length, ranks = machine("a100x8"), length_of(column), 8
    there = Problem(length, 32, 32, ranks, "ring_kv", causal=False)
    seconds = attention_cost(base, there).seconds + merge_seconds(
        base, length / ranks, 32, 32, 128, ranks, False, False)
    if row == "forward and backward":
        back = dataclasses.replace(there, strategy="ring_q", backward=True)
        seconds += attention_cost(base, back).seconds + merge_seconds(
            base, length / ranks, 32, 32, 128, ranks, True, False)
    return seconds * 1e3


# --- BurstEngine: A800. ---------------------------------------------------------------------------

ULYSSES_RING = "ulysses on [1], ring_kv on [0]"


@dataclasses.dataclass(frozen=True)
class System:
    """What travels in both passes, and what a step keeps."""

    forward: str
    backward: str
    keep: str = "attention"
    zero: bool = True
    loss_by_sequence: bool = False
    offload: bool = False
    gradient_bytes: int = 2
    keeps_slices: bool = False  # all that came round, and all partial results
    tensor: bool = False
    logit_bytes: int = 6
    host_activations: bool = False


def _one_node(strategy: str) -> str:
    """Of one node there is one ring, and Ulysses over all of it."""
    return {"double_ring_kv": "ring_kv", "double_ring_q": "ring_q", ULYSSES_RING: "ulysses",
            }.get(strategy, strategy)


def attention_of(base: Machine, shape: Model, length: int, ranks: int, strategy: str,
                 backward: bool) -> Cost:
    """Of a layer, causal in zigzag order, with merges by kernels of their own."""
    nodes = max(1, ranks // base.node)
    strategy = strategy if nodes > 1 else _one_node(strategy)
    problem = Problem(length, shape.heads, shape.key_heads, ranks, strategy, backward=backward,
                      nodes=nodes, dim=shape.head_dim, value_dim=shape.values)
    if strategy in ("ulysses", ULYSSES_RING):
        group = ranks if strategy == "ulysses" else base.node
        return Cost(exchanged_seconds(base, problem, group), 0.0, 0.0, 0.0, 0.0)
    cost = attention_cost(base, problem)
    merge = merge_seconds(base, length / ranks, shape.heads, shape.key_heads, shape.head_dim,
                          ranks if ranks > 1 else 0, backward, causal=True)
    return dataclasses.replace(cost, seconds=cost.seconds + merge)


def exchanged_seconds(base: Machine, problem: Problem, group: int) -> float:
    """Of Ulysses over `group` neighbours, and a ring over what is left, whose merges are apart.

    Published systems keep what was exchanged for the backward pass, burst's program of one
    exchanges it again; so all-to-alls are counted here, and the ring within them is timed.
    """
    ring = problem.ranks // group
    key_heads = max(problem.key_heads, group)  # repeated where there are fewer
    positions, width = problem.length // problem.ranks, 2 * problem.dim
    sent = exchange_seconds(base, width * positions * (2 * problem.heads + 2 * key_heads), group)
    inner = dataclasses.replace(problem, heads=problem.heads // group,
                                key_heads=key_heads // group, ranks=ring, nodes=1,
                                strategy="ring_kv")
    # Each rank of a node has a ring with those of its place in other nodes.
    apart = variant(base, node=1, links=1, bandwidth=base.links * base.bandwidth / base.node) \
        if ring > 1 else base
    merge = merge_seconds(base, positions * group, inner.heads, inner.key_heads, problem.dim,
                          ring if ring > 1 else 0, problem.backward, causal=True)
    return sent + attention_cost(apart, inner).seconds + merge


SYSTEMS = {
    "Megatron-CP": System("ring_kv", "ring_kv", keep="layers", zero=False, gradient_bytes=4,
                          keeps_slices=True),
    "Megatron-TP": System("ring_kv", "ring_kv", keep="layers", zero=False, gradient_bytes=4,
                          tensor=True),
    "Ulysses": System("ulysses", "ulysses", keep="layers"),
    "LoongTrain double ring": System("double_ring_kv", "double_ring_kv"),
    "LoongTrain ring": System("double_ring_kv", "double_ring_kv"),
    "LoongTrain USP": System(ULYSSES_RING, ULYSSES_RING),
    "Burst": System("double_ring_kv", "double_ring_q", loss_by_sequence=True),
    "Burst ring": System("double_ring_kv", "double_ring_q", loss_by_sequence=True),
    "Burst USP": System(ULYSSES_RING, ULYSSES_RING, loss_by_sequence=True),
    # The tables of 7B compute all layers twice.
    "LoongTrain": System("double_ring_kv", "double_ring_kv", keep="layers"),
    "Burst double ring": System("double_ring_kv", "double_ring_q", keep="layers",
                                loss_by_sequence=True),
    "Burst Ulysses in nodes": System(ULYSSES_RING, ULYSSES_RING, keep="layers",
                                     loss_by_sequence=True),
    # Burst's loss works on its 16-bit logits in place.
    "Baseline": System("ring_kv", "ring_kv", keep="layers", logit_bytes=2),
    "+ queries travel backward": System("ring_kv", "ring_q", keep="layers", logit_bytes=2),
    "+ double ring": System("double_ring_kv", "double_ring_q", keep="layers", logit_bytes=2),
    "+ loss by sequence": System("double_ring_kv", "double_ring_q", keep="layers",
                                 loss_by_sequence=True),
    "+ half of attention kept": System("double_ring_kv", "double_ring_q", keep="half",
                                       loss_by_sequence=True),
    "+ all of attention kept": System("double_ring_kv", "double_ring_q", keep="attention",
                                      loss_by_sequence=True),
}


def engine_attention(ranks: int, row: str, column: str) -> Figure:
    base, shape, system = machine("a800x8x4"), model("burstengine-14b"), SYSTEMS[row]
    length = length_of(column)
    there = attention_of(base, shape, length, ranks, system.forward, False)
    back = attention_of(base, shape, length, ranks, system.backward, True)
    useful = Problem(length, 40, 40, ranks, "").operations * 3.5
    seconds = there.seconds + back.seconds + calibrated("engine-attention-8", "host")
    return useful / ranks / seconds / 1e12


def engine_step(shape: Model, system: System, length: int, context: int,
                data: int = 1) -> tuple[Figure, dict[str, float]]:
    """Positions in a second and on a GPU, and what a GPU holds."""
    base, ranks = machine("a800x8x4"), context * data
    if system.tensor:
        plan = Plan(tensor=context, data=data, keep=system.keep,
                    gradient_bytes=system.gradient_bytes)
        kernel = Problem(length, shape.heads // context, shape.key_heads // context, 1, "ring_kv")
        costs = [attention_cost(base, kernel),
                 attention_cost(base, dataclasses.replace(kernel, backward=True))]
        positions = length
    else:
        plan = Plan(context=context, data=data, zero=system.zero, keep=system.keep,
                    loss_by_sequence=system.loss_by_sequence, offload=system.offload,
                    gradient_bytes=system.gradient_bytes, logit_bytes=system.logit_bytes,
                    host_activations=system.host_activations)
        if system.forward == "ulysses" and shape.heads % context:
            return OOM, {}  # heads cannot be shared out
        costs = [attention_of(base, shape, length, context, system.forward, False),
                 attention_of(base, shape, length, context, system.backward, True)]
        positions = length // context
    # Keys and values of all ranks, and a partial output of each hop.
    slices = 3 * 2 * length * shape.heads * shape.head_dim if system.keeps_slices else 0
    parts = training_bytes(shape, positions, plan, ranks, slices)
    if not fits(base, parts):
        return OOM, parts
    link = link_seconds(base, costs[0].bytes_sent + costs[1].bytes_sent, context)
    seconds = step_seconds(shape, base, positions,
                           Attention(costs[0].seconds, costs[1].seconds, link), plan,
                           HOST_BANDWIDTH, ranks)
    return length / context / seconds, parts


def engine_ablation(row: str, column: str) -> Figure:
    length, ranks = column.split(" on ")
    return engine_step(model("burstengine-14b"), SYSTEMS[row], length_of(length), int(ranks))[0]


def engine_memory(row: str, column: str) -> Figure:
    length, ranks = column.split(" on ")
    return sum(engine_step(model("burstengine-14b"), SYSTEMS[row], length_of(length),
                           int(ranks))[1].values()) / GB


def engine_systems(row: str, column: str) -> Figure:
    name, length, _, ranks = column.split(" ")
    return engine_step(model(f"burstengine-{name.lower()}"), SYSTEMS[row], length_of(length),
                       int(ranks))[0]


def engine_7b_32(row: str, column: str) -> Figure:
    return engine_step(model("burstengine-7b"), SYSTEMS[row], length_of(column), 32)[0]


def engine_7b_8(row: str, column: str) -> Figure:
    length, _, context = column.split(" ")
    system = dataclasses.replace(SYSTEMS[row], keep="layers", offload=row == "Burst")
    return engine_step(model("burstengine-7b"), system, length_of(length), int(context),
                       8 // int(context))[0]


def engine_scaling(row: str, column: str) -> Figure:
    ranks = int(column)
    # Its sheet says "offload" up to 8 GPUs: 14B of optimizer and activations fit no other way.
    system = dataclasses.replace(SYSTEMS[row], offload=ranks <= 8, host_activations=ranks <= 8)
    return engine_step(model("burstengine-14b"), system, ranks << 15, ranks)[0]


# --- MagiAttention's baselines: H100, B200. -------------------------------------------------------

@functools.cache
def magi_shape(positions: int = 8192) -> documents.Shape:
    return documents.Shape(heads=64, key_heads=8, dim=128, positions=positions,
                           hop=calibrated("magi-forward", "hop"),
                           hop_backward=calibrated("magi-backward", "hop"))


def magi(name: str, positions: int, backward: bool, row: str, column: str) -> Figure:
    base, ranks, shape = machine(name), int(column), magi_shape(positions)
    length, nodes = shape.positions * ranks, max(1, ranks // base.node)
    problem = Problem(length, shape.heads, shape.key_heads, ranks, "ring_kv", backward=backward,
                      nodes=nodes)
    if row == "ring p2p":
        hop = shape.hop_backward if backward else shape.hop
        seconds = attention_cost(base, problem).seconds + ranks * hop + merge_seconds(
            base, shape.positions, shape.heads, shape.key_heads, shape.dim, ranks, backward, True)
    elif row == "all-gather":
        gathered = 2 * 2 * length * shape.key_heads * shape.dim
        sent = all_gather(base, gathered, ranks)
        if backward:
            sent = 2 * sent + repeated_seconds(base, length, shape.heads, shape.dim)
        seconds = attention_cost(base, problem).compute_seconds + sent
    else:
        seconds = exchanged_seconds(base, problem, ranks if row == "Ulysses" else
                                    min(ranks, base.node))
    return problem.operations / ranks / seconds / 1e12


def magi_documents(backward: bool, row: str, column: str) -> Figure:
    return documents.rate(machine("h100"), magi_shape(), int(column), row, backward) / 1e12


# --- TransformerEngine: H100, B200, products in FP8, attention in bf16. ---------------------------

# GPUs, tensor, data and context ranks with context parallelism, of the source.
TE_RUNS = {"32K": (32, 2, 8, 2), "64K": (64, 4, 8, 2), "128K": (128, 4, 8, 4),
           "256K": (256, 4, 8, 8), "512K": (512, 8, 4, 16), "1M": (1024, 8, 4, 32)}
TE_BATCH = 4 << 20  # positions of a step: assumed, 4M as of the later table of Llama-3-8B
# Tensor, data and context ranks of that table, of which each step has 4M positions.
NEMO_RUNS = {"8K": (1, 2, 1), "16K": (1, 4, 1), "32K": (1, 4, 2), "64K": (1, 4, 4),
             "128K": (2, 4, 4), "256K": (4, 4, 4), "512K": (4, 4, 8), "1M": (4, 4, 16)}


def _te_rate(base: Machine, llama: Model, length: int, plan: Plan) -> float:
    """Operations in a second and on a GPU, as NeMo counts: all pairs, three times forward."""
    heads, key_heads = llama.heads // plan.tensor, max(1, llama.key_heads // plan.tensor)
    if plan.context > 1:
        # A ring's ranks are `tensor` GPUs apart, and each has its share of cards.
        inside = max(1, base.node // plan.tensor)
        ring = variant(base, node=inside, links=max(1, base.links / plan.tensor))
        nodes = max(1, plan.context // inside) if inside > 1 else 1
        problem = Problem(length, heads, key_heads, plan.context, "ring_kv", nodes=nodes)
    else:
        ring, problem = base, Problem(length, heads, key_heads, 1, "ring_kv")
    costs = [attention_cost(ring, dataclasses.replace(problem, backward=backward))
             for backward in (False, True)]
    merges = [merge_seconds(base, length / plan.context, heads, key_heads, llama.head_dim,
                            plan.context if plan.context > 1 else 0, backward, True)
              for backward in (False, True)]
    seconds = step_seconds(llama, base, length / plan.context,
                           Attention(costs[0].seconds + merges[0], costs[1].seconds + merges[1]),
                           plan)
    counted = 6.0 * (llama.active_weights + llama.head_weights) + \
        12.0 * llama.layers * length * llama.heads * llama.head_dim
    return counted * length * plan.microbatches * plan.data / plan.ranks / seconds


def te(row: str, column: str) -> Figure:
    base, llama, length = machine("h100-fa2"), model("llama-2-7b"), length_of(column)
    gpus, tensor, data, context = TE_RUNS[column]
    plans = []
    if row == "with CP":
        plans = [(tensor, 1, data, context)]
    else:  # the best of all that fit, as the source says
        plans = [(t, gpus // t // d, d, 1) for t in (1, 2, 4, 8, 16, 32)
                 for d in (1, 2, 4, 8, 16, 32, 64)
                 if gpus % (t * d) == 0 and llama.layers % (gpus // t // d) == 0]
    return _te_best(base, llama, length, plans)


def nemo(row: str, column: str) -> Figure:
    tensor, data, context = NEMO_RUNS[column]
    return _te_best(machine("b200-cudnn"), model("llama-3-8b"), length_of(column),
                    [(tensor, 1, data, context)])


def _te_best(base: Machine, llama: Model, length: int,
             plans: Iterable[tuple[int, int, int, int]]) -> Figure:
    """Of the plans that fit, with all or little kept; tensor, pipeline, data, context ranks."""
    best = 0.0
    for t, p, d, c in plans:
        sequences = TE_BATCH // length
        if d > sequences:
            continue
        for keep in ("everything", "layers"):
            plan = Plan(tensor=t, pipeline=p, data=d, context=c, microbatches=sequences // d,
                        fp8=True, keep=keep, gradient_bytes=4)
            if fits(base, training_bytes(llama, length / c, plan)):
                best = max(best, _te_rate(base, llama, length, plan))
    return best / 1e12 if best else OOM


# --- Meta: Llama-3-405B on H100. ------------------------------------------------------------------

def meta_prefill(row: str, column: str) -> Figure:
    """Keys and values round 16 nodes, tensors over the 8 GPUs of each, feed-forward in FP8."""
    full = machine("h100")
    # H100 of 500 W, 800 TFLOP/s at most, on which FlashAttention-3 alone reaches 540 (section 4.2).
    slower = 800e12 / full.peak
    base = dataclasses.replace(variant(full, flops=5.4e14), matmul=full.matmul * slower,
                               matmul_fp8=full.matmul_fp8 * slower)
    return forward.prefill(base, length_of(column), 128, "ring_kv", fp8=True).seconds


PREDICTIONS: dict[str, Callable[[str, str], Figure]] = {
    "first-token-7b": functools.partial(first_token, "llama-2-7b"),
    "first-token-13b": functools.partial(first_token, "llama-2-13b"),
    "train-8": functools.partial(first_paper_training, 8),
    "train-32": functools.partial(first_paper_training, 32),
    "kernel-burst": kernel_burst,
    "engine-attention-32": functools.partial(engine_attention, 32),
    "engine-attention-8": functools.partial(engine_attention, 8),
    "engine-ablation": engine_ablation,
    "engine-ablation-memory": engine_memory,
    "engine-systems": engine_systems,
    "engine-7b-32": engine_7b_32,
    "engine-7b-8": engine_7b_8,
    "engine-scaling": engine_scaling,
    "magi-forward": functools.partial(magi, "h100", 8192, False),
    "magi-backward": functools.partial(magi, "h100", 8192, True),
    "magi-b200-forward": functools.partial(magi, "b200-cudnn", 16384, False),
    "magi-b200-backward": functools.partial(magi, "b200-cudnn", 16384, True),
    "magi-documents-forward": functools.partial(magi_documents, False),
    "magi-documents-backward": functools.partial(magi_documents, True),
    "te-1m": te,
    "nemo-b200": nemo,
    "meta-prefill": meta_prefill,
}
