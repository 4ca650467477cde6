# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all ranks together send in a step: by closed forms, by counters, on the wire."""

import collections
import pathlib

import torch
import torch.distributed as dist

from evaluation.collectives import Counted, runs_of_burst
from evaluation.methods import (METHODS, BurstFsdp, Gathered, SequenceTensorParallel,
                                TensorParallel)
from evaluation.model import build

MOST_HEADERS = 1.01 # of TCP, over what messages have
PHASES = ("forward", "backward", "gradients")


def predicted(name, task, ranks):
    """Bytes by phase."""
    if ranks == 1:
        return dict.fromkeys(PHASES, 0)
    method, shape = METHODS[name], task.shape
    element = torch.empty(0, dtype=task.dtype).element_size()
    positions = task.batch * task.length * element
    hidden, of_keys = positions * shape.dim, positions * shape.key_heads * shape.head_dim
    others = ranks - 1 # which a ring sends a tensor to
    if issubclass(method, TensorParallel):
        # A layer has two all-reduces, or all-gathers and reduce-scatters, each way; so have the
        # embedding and the head together. A loss is the largest logit of each position, the sum
        # of exponentials and the logit of the label.
        layers = 4 * others * hidden * shape.layers
        norms = 0
        if issubclass(method, SequenceTensorParallel):
            norms = 2 * others * (2 * shape.layers + 1) * shape.dim * element
        return {"forward": layers + 2 * others * hidden + 3 * 2 * others * positions,
                "backward": layers + 2 * others * hidden, "gradients": norms}
    if issubclass(method, Gathered):
        most = -(-task.length // ranks) * ranks # shards are padded
        layer = 2 * others * of_keys * most // task.length
        forward, backward = layer, layer
    else:
        forward, backward = (method.bytes_sent(task, ranks, is_backward)
                             for is_backward in (False, True))
    loss = 2 * others * element
    if issubclass(method, BurstFsdp):
        # Weights are gathered in the forward pass, those of layers in the backward pass again;
        # all gradients are reduced and scattered.
        of_layers, of_others = (others * n * element for n in num_padded(shape, ranks))
        return {"forward": forward * shape.layers + of_layers + of_others,
                "backward": backward * shape.layers + 2 * of_layers + of_others,
                "gradients": loss}
    return {"forward": forward * shape.layers, "backward": backward * shape.layers,
            "gradients": 2 * others * num_weights(shape) * element + loss}


def num_weights(shape):
    with torch.device("meta"):
        return sum(p.numel() for p in build(shape, None).parameters())


def num_padded(shape, ranks):
    """Weights of layers, and the others, where the rows of each are padded to a multiple."""
    counts = [0, 0]
    with torch.device("meta"):
        for name, p in build(shape, None).named_parameters():
            rows = -(-p.shape[0] // ranks) * ranks
            counts[0 if name.startswith("layers.") else 1] += rows * p[0].numel()
    return counts


def collectives(name, layers):
    """How many a step has, by phase: those of Megatron-LM, which reduces the gradients of norms
    at once. Three are of the loss where the vocabulary is split, else one is of its total."""
    method = METHODS[name]
    each = 2 * layers + 1 # of all layers, and of the embedding or the head
    if issubclass(method, SequenceTensorParallel):
        return {("forward", "all-gather"): each, ("forward", "reduce-scatter"): each,
                ("forward", "all-reduce"): 3, ("backward", "all-gather"): each,
                ("backward", "reduce-scatter"): each, ("gradients", "all-reduce"): 1}
    if issubclass(method, TensorParallel):
        return {("forward", "all-reduce"): each + 3, ("backward", "all-reduce"): each}
    if issubclass(method, BurstFsdp):
        return {("forward", "all-gather"): layers + 1, ("backward", "all-gather"): layers,
                ("backward", "reduce-scatter"): layers + 1, ("gradients", "all-reduce"): 1}
    found = {("gradients", "all-reduce"): 2}
    if issubclass(method, Gathered):
        found |= {("forward", "all-gather"): 2 * layers, ("backward", "reduce-scatter"): 2 * layers}
    return found # beside what burst sends


def count(split, tokens, labels):
    """The collectives of a step, and what is sent in it by phase: for collectives by all ranks,
    by burst on this one."""
    split.zero()
    with Counted(split.mesh.size()) as mode, runs_of_burst(mode.phase) as runs:
        split.backward(tokens, labels)
    of_burst = collections.Counter()
    for phase, counters in runs:
        of_burst[phase] += counters.bytes_sent
    return {"collectives": [[*key, n] for key, n in mode.counts.items()],
            "bytes": {phase: mode.bytes[phase] for phase in PHASES},
            "of burst": {phase: of_burst[phase] for phase in PHASES}}


def joined(of_ranks):
    """Of what `count` gives on each."""
    return {"collectives": of_ranks[0]["collectives"],
            "bytes": {phase: of_ranks[0]["bytes"][phase] +
                      sum(found["of burst"][phase] for found in of_ranks) for phase in PHASES}}


def of_wire():
    """Bytes that left by the network devices that this process sees, while no rank sends."""
    dist.barrier()
    lines = pathlib.Path("/proc/net/dev").read_text().splitlines()[2:]
    dist.barrier()
    return sum(int(line.partition(":")[2].split()[8]) for line in lines)
