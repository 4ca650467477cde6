# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of training, or a first token, around attention: seconds and bytes of a rank.

Operations: 2 for each weight and position forward, 4 backward (Kaplan et al., arXiv
2001.08361, section 2.1), what attention does apart. Traffic of tensor parallelism as
in Megatron: V1 an all-reduce behind attention and one behind the feed-forward layers
(arXiv 1909.08053), V3 an all-gather and a reduce-scatter in their place, and one more
all-gather of each backward (arXiv 2205.05198). ZeRO-3 gathers weights forward and
backward and scatters gradients (arXiv 1910.02054, section 7.2.2). A pipeline of p
stages and m micro-batches takes (m + p - 1) / m of its work (arXiv 2104.04473).
"""

from __future__ import annotations

import dataclasses

from reach.collectives import all_gather, all_reduce
from reach.machines import Machine, Model

ELEMENT = 2  # bytes, of weights and activations
RESERVED = 2.0e9  # of a GPU's memory: CUDA's context and NCCL's buffers
# Bytes that Adam reads and writes of a weight: weight, moments and gradient in fp32 (16 read, 12
# written), and the 16-bit weight that comes of it (arXiv 1910.02054, section 3.1).
ADAM_BYTES = 30


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a step is spread over ranks, and what it keeps."""

    tensor: int = 1
    version: int = 3  # of Megatron's tensor parallelism
    context: int = 1
    data: int = 1
    pipeline: int = 1
    microbatches: int = 1
    zero: bool = False  # weights, gradients and optimizer over all ranks
    sharded_optimizer: bool = True
    keep: str = "everything"  # or "layers", "half", "attention": what is not computed twice
    loss_by_sequence: bool = False
    fp8: bool = False
    offload: bool = False
    fused_norms: bool = True
    gradient_bytes: int = 2
    reduced: bool = True  # gradients of weights, over data and context ranks
    logit_bytes: int = 6  # of 16 bits, and their gradient in fp32
    host_activations: bool = False  # what is kept goes to the host meanwhile

    @property
    def ranks(self) -> int:
        return self.tensor * self.context * self.data * self.pipeline

    @property
    def forwards(self) -> int:
        """How often layers are computed forward, attention apart."""
        return 1 if self.keep == "everything" else 2

    @property
    def attention_forwards(self) -> float:
        # Of a causal sequence whose second half is kept the first one is a quarter of the pairs
        # (sequence-level selective checkpointing, arXiv 2509.19836).
        return {"everything": 1.0, "layers": 2.0, "half": 1.25, "attention": 1.0}[self.keep]


def elementwise_bytes(model: Model) -> float:
    """Read and written of a position in a layer forward, beside matrix products.

    Two norms and two sums with the residual (2 and 3 vectors each), rotated queries and
    keys (each twice), and the gated activation (3 vectors of the layer's width).
    """
    heads = (model.heads + model.key_heads) * model.head_dim
    wide = (model.active_weights / model.layers - model.attention_weights) / model.hidden
    return ELEMENT * (10 * model.hidden + 2 * heads + wide)


def layers_forward(model: Model, machine: Machine, positions: float, plan: Plan) -> float:
    """Seconds of all layers of a stage without attention, for `positions` of its tensor group."""
    rate = machine.matmul_fp8 if plan.fp8 else machine.matmul
    products = 2.0 * model.active_weights * positions / plan.tensor / rate
    # V1 norms and adds on every rank of the group.
    sharded = plan.tensor if plan.version == 3 else 1
    passes = elementwise_bytes(model) * model.layers * positions / sharded
    return (products + passes / machine.memory_bandwidth) / plan.pipeline


def head_forward(model: Model, machine: Machine, positions: float, plan: Plan) -> float:
    """Logits, and a loss that reads and writes them in fp32."""
    logits = positions * model.vocab / plan.tensor
    return (2.0 * model.hidden * logits / machine.matmul
            + logits * (ELEMENT + 8) / machine.memory_bandwidth)


def tensor_traffic(model: Model, machine: Machine, positions: float, plan: Plan,
                   backward: bool) -> float:
    """Seconds of all layers' collectives in a tensor group; nothing hides them."""
    if plan.tensor == 1:
        return 0.0
    bytes_ = ELEMENT * positions * model.hidden
    if plan.version == 1:
        layer = 2 * all_reduce(machine, bytes_, plan.tensor)
    else:
        layer = (6 if backward else 4) * all_gather(machine, bytes_, plan.tensor)
    return layer * model.layers / plan.pipeline


def zero_traffic(model: Model, machine: Machine, ranks: int) -> float:
    return 3 * all_gather(machine, ELEMENT * model.weights, ranks)


def optimizer_seconds(model: Model, machine: Machine, plan: Plan, ranks: int,
                      host_bandwidth: float) -> float:
    """Adam on the GPU's share, or on the host that all ranks of a node share."""
    share = model.weights / (ranks if plan.zero or plan.sharded_optimizer
                             else plan.tensor * plan.pipeline)
    if not plan.offload:
        return ADAM_BYTES * share / machine.memory_bandwidth
    return ADAM_BYTES * share * min(ranks, machine.node) / host_bandwidth


@dataclasses.dataclass(frozen=True)
class Attention:
    """Seconds of one layer's attention on a rank, and how long its links are busy."""

    forward: float
    backward: float = 0.0
    link: float = 0.0


def step_seconds(model: Model, machine: Machine, positions: float, attention: Attention,
                 plan: Plan, host_bandwidth: float = 1.0, ranks: int = 0) -> float:
    """A step in which a tensor group has `positions` of each micro-batch."""
    ranks = ranks or plan.ranks
    forward = layers_forward(model, machine, positions, plan)
    layers = forward * (plan.forwards + 2)
    layers += tensor_traffic(model, machine, positions, plan, backward=False) * plan.forwards
    layers += tensor_traffic(model, machine, positions, plan, backward=True)
    layers += (attention.forward * plan.attention_forwards + attention.backward) * (
        model.layers / plan.pipeline)
    head = head_forward(model, machine, positions, plan) * (4 if plan.loss_by_sequence else 3)
    stages = plan.microbatches + plan.pipeline - 1
    work = (layers + head) * stages
    # Gradients of weights over data and context ranks, or ZeRO's traffic, go behind computation
    # as far as attention leaves the links idle.
    replicas = plan.context * plan.data
    if plan.zero:
        sent = zero_traffic(model, machine, ranks) * plan.microbatches
    elif replicas > 1 and plan.reduced:
        sent = all_reduce(machine, plan.gradient_bytes * model.weights / plan.tensor
                          / plan.pipeline, replicas, plan.tensor)
    else:
        sent = 0.0
    link = attention.link * model.layers / plan.pipeline * plan.microbatches
    return max(work, sent + link) + optimizer_seconds(model, machine, plan, ranks, host_bandwidth)


def activation_bytes(model: Model, plan: Plan) -> float:
    """Kept of a position and a layer when all is kept, on a rank of a tensor group."""
    heads = (model.heads + 2 * model.key_heads) * model.head_dim + model.heads * model.values
    rotated = (model.heads + model.key_heads) * model.head_dim
    wide = 4 * (model.active_weights / model.layers - model.attention_weights) / model.hidden / 3
    sharded = ELEMENT * (heads + rotated + wide)
    # Fused: the norm's input and output. Else both in fp32, beside an output of 16 bits.
    norm = 2 * model.hidden * (2 * ELEMENT if plan.fused_norms else 4 + 4 + ELEMENT)
    return sharded / plan.tensor + norm / (plan.tensor if plan.version == 3 else 1)


def training_bytes(model: Model, positions: float, plan: Plan, ranks: int = 0,
                   extra: float = 0.0) -> dict[str, float]:
    """What a rank holds in a step, by part; `extra`: of attention."""
    ranks = ranks or plan.ranks
    split = plan.tensor * plan.pipeline
    weights = model.weights / (ranks if plan.zero else split)
    optimizer = model.weights / (ranks if plan.zero or plan.sharded_optimizer else split)
    layers = model.layers / plan.pipeline
    in_flight = min(plan.microbatches, plan.pipeline)
    layer = activation_bytes(model, plan) * positions
    hidden = ELEMENT * model.hidden * positions / plan.tensor
    output = ELEMENT * model.heads * model.values * positions / plan.tensor
    kept = {"everything": layer * layers, "layers": hidden * layers + layer,
            "half": (hidden + output / 2) * layers + layer,
            "attention": (hidden + output) * layers + layer}[plan.keep]
    if plan.host_activations:
        kept = layer
    logits = 0.0 if plan.loss_by_sequence else \
        plan.logit_bytes * positions * model.vocab / plan.tensor
    parts = {"weights": ELEMENT * weights, "gradients": plan.gradient_bytes * weights,
             "optimizer": 0.0 if plan.offload else 12.0 * optimizer,
             "activations": kept * in_flight, "logits": logits, "attention": extra}
    if plan.zero:  # two layers' weights are whole while they are used, and gradients of one
        parts["gathered"] = 3.0 * ELEMENT * model.weights / model.layers / split
    return parts


def fits(machine: Machine, parts: dict[str, float]) -> bool:
    return sum(parts.values()) + RESERVED <= machine.memory


def first_token_seconds(model: Model, machine: Machine, positions: float, attention: Attention,
                        plan: Plan) -> float:
    """Logits of all positions, as the published runs compute them."""
    return (layers_forward(model, machine, positions, plan)
            + tensor_traffic(model, machine, positions, plan, backward=False)
            + attention.forward * model.layers
            + head_forward(model, machine, positions, plan))


def first_token_bytes(model: Model, positions: float, plan: Plan,
                      extra: float = 0.0) -> dict[str, float]:
    """Weights, the cache of keys and values, a layer at work, logits."""
    cache = ELEMENT * model.layers * model.key_heads * (model.head_dim + model.values)
    return {"weights": ELEMENT * model.weights / plan.tensor,
            "cache": cache * positions / plan.tensor,
            "activations": activation_bytes(model, plan) * positions,
            "logits": plan.logit_bytes * positions * model.vocab / plan.tensor,
            "attention": extra}


def link_seconds(machine: Machine, bytes_: float, ranks: int) -> float:
    """How long what a rank sends keeps its links busy, or its share of its node's cards."""
    cards = machine.node_bandwidth if ranks <= machine.node else machine.links * machine.bandwidth
    return bytes_ / min(machine.node_bandwidth, cards)
