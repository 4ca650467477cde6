# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether every method computes what the whole model does on one process, with PyTorch's
attention: logits, the loss, the token that follows, and all gradients."""

import torch
import torch.nn.functional as F

from evaluation import traffic
from evaluation.methods import IGNORED, METHODS, full, sdpa
from evaluation.model import build
from evaluation.planted import PLANTED

# Of the largest of a tensor, in f64 and f32.
BOUNDS = {torch.float64: 1e-10, torch.float32: 1e-4}


def data(task, seed=1):
    """Tokens and labels: those that follow, shifted in the whole sequence. Part of the first
    text is a prompt, which is not learned: ranks have differently many labels."""
    tokens = torch.randint(task.shape.vocab, (task.batch, task.length),
                           generator=torch.Generator().manual_seed(seed))
    labels = tokens.roll(-1, 1)
    labels[:, -1] = IGNORED
    labels[0, :task.length // 3] = IGNORED
    return tokens, labels


def reference(task, tokens, labels):
    model = build(task.shape, lambda q, k, v: sdpa(q, k, v, is_causal=True), task.dtype)
    logits = model(tokens, torch.arange(task.length))
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
    loss.backward()
    return logits.detach(), loss.detach(), [p.grad for p in model.parameters()]


def check(mesh, task, names):
    """By method what is off, over the largest of what is compared; or why there is nothing."""
    tokens, labels = data(task)
    logits, loss, gradients = reference(task, tokens, labels)
    return {name: of_method({**METHODS, **PLANTED}[name], mesh, task, tokens, labels, logits, loss,
                            gradients) for name in names}


def of_method(method, mesh, task, tokens, labels, logits, loss, gradients):
    if why := method.why_not(task, mesh.size()):
        return {"none": why}
    split = method(task, mesh)
    with torch.no_grad():
        found = {"logits": off(full(split.logits(tokens)), logits[:, split.positions])}
    first = split.first_token(tokens)
    found["first token"] = float((first != logits[:, -1].argmax(-1)).sum())
    if why := method.why_no_step(task, mesh.size()):
        return {**found, "no step": why}
    split.zero()
    found["loss"] = off(split.backward(tokens, labels), loss)
    found["gradients"] = max(off(full(p.grad), wanted) for p, wanted in
                             zip(split.model.parameters(), gradients, strict=True))
    if mesh.size() > 1:
        found["traffic"] = traffic.count(split, tokens, labels)
    return found


def off(x, wanted):
    """The largest difference over the largest number; infinite where something is no number."""
    if wanted.numel() == 0:
        return 0.0
    value = float((x - wanted).abs().max() / wanted.abs().max())
    return value if value == value else float("inf")


def joined(of_ranks):
    """Of what `check` gives on each rank: the largest of each."""
    merged = {}
    for name, found in of_ranks[0].items():
        others = [of_rank[name] for of_rank in of_ranks]
        merged[name] = {what: traffic.joined([other[what] for other in others])
                        if what == "traffic" else max(other[what] for other in others)
                        for what in found}
    return merged


def is_right(found, dtype):
    return all(value <= BOUNDS[dtype] for value in found.values() if isinstance(value, float))
