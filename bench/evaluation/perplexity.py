# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the same model on the same text by every method, and tells how well it then foretells
text that it has not seen.

Each sequence is a piece of text twice. Its second half can be foretold by attention over half of
the sequence alone, in zigzag order to another rank, so its perplexity says whether attention
works; that of the first half says whether the model learns. Text is English that comes with
Python, as bytes: its perplexities are to be compared, and differ between versions of Python."""

import math
import pydoc_data.topics
import time

import torch
import torch.nn.functional as F

from evaluation.methods import IGNORED, METHODS, full
from evaluation.planted import PLANTED

RATE, WARM_UP, CLIP = 3e-3, 20, 1.0
HELD_OUT = 8 # batches


def text():
    """What is trained on, what is held out."""
    topics = pydoc_data.topics.topics
    whole = torch.tensor(list("\n".join(topics[name] for name in sorted(topics)).encode()))
    return whole.split([len(whole) * 9 // 10, len(whole) - len(whole) * 9 // 10])


def batch(part, task, generator):
    """Tokens and labels (batch, sequence); what follows the last token is not known."""
    half = task.length // 2
    begins = torch.randint(len(part) - half, (task.batch,), generator=generator)
    tokens = torch.stack([part[begin:begin + half].repeat(2) for begin in begins])
    labels = tokens.roll(-1, 1)
    labels[:, -1] = IGNORED
    return tokens, labels


def train(mesh, task, name, steps):
    """The loss of each step, then the perplexities of held-out text."""
    split = {**METHODS, **PLANTED}[name](task, mesh)
    optimizer = split.optimizer(RATE)
    trained_on, held_out = text()
    generator = torch.Generator().manual_seed(2)
    losses, begin = [], time.perf_counter()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / WARM_UP)
        split.zero()
        losses.append(float(split.backward(*batch(trained_on, task, generator))))
        split.clip(CLIP) # without it f32 is chaotic where the model learns to copy
        optimizer.step()
    return {"losses": losses, "seconds": time.perf_counter() - begin,
            **perplexities(split, task, held_out)}


@torch.no_grad()
def perplexities(split, task, part):
    generator = torch.Generator().manual_seed(3)
    sums = torch.zeros(2, 2, dtype=torch.float64) # by half: losses, labels
    is_second = split.positions >= task.length // 2
    for _ in range(HELD_OUT):
        tokens, labels = batch(part, task, generator)
        own = split.shard(labels)
        losses = F.cross_entropy(full(split.logits(tokens)).transpose(1, 2), own,
                                 ignore_index=IGNORED, reduction="none").double()
        for half in range(2):
            kept = (own != IGNORED) & (is_second == bool(half))
            sums[half] += torch.stack((losses[kept].sum(), kept.sum().double()))
    first, second = split.total_of_positions(sums)
    return {"first half": math.exp(first[0] / first[1]),
            "second half": math.exp(second[0] / second[1])}


#===----------------------------------------------------------------------===#
# Comparison with one process, in f32
#===----------------------------------------------------------------------===#

# Of a loss, in the steps before rounding has grown; of a perplexity, at the end.
COMPARED_STEPS, LOSS_BOUND, PERPLEXITY_BOUND = 100, 1e-5, 1e-3
COPIES_AFTER, COPIED = 200, 1.4 # of second halves


def compare(found, one):
    """The largest relative differences."""
    return {"losses": max(abs(x - y) / y for x, y in zip(found["losses"][:COMPARED_STEPS],
                                                         one["losses"][:COMPARED_STEPS])),
            **{half: abs(found[half] - one[half]) / one[half]
               for half in ("first half", "second half")}}


def is_equal(off):
    return off["losses"] <= LOSS_BOUND and \
        max(off["first half"], off["second half"]) <= PERPLEXITY_BOUND
