# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What docs/combine.md says of other parallelisms: its code, as it stands there, trains the
weights of one process, and mistakes in it are seen."""

import collections
import functools
import re
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import burst
from burst import programs
from test_ranks import on_ranks

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

STEPS, BOUND = 5, 1e-10 # in float64

# Norms and residuals have a part of the positions of a shard.
SEQUENCE_PARALLEL = [
    ("import (ColwiseParallel, ", "import (SequenceParallel, ColwiseParallel, "),
    ("input_layouts=(Replicate(), None)", "input_layouts=(Shard(1), None)"),
    ("PrepareModuleInput(input_layouts=Replicate()", "PrepareModuleInput(input_layouts=Shard(1)"),
    ("RowwiseParallel()", "RowwiseParallel(output_layouts=Shard(1))"),
    ('        "attention": enter', '        "attention_norm": SequenceParallel(), '
     '"mlp_norm": SequenceParallel(),\n        "attention": enter'),
    ("\noptimizer", '''
parallelize_module(model, mesh["tp"], {
    "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "norm": SequenceParallel(),
    "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})
optimizer'''),
]

# By section, what is replaced in its code or in the first block, to the same effect.
OTHERS = {
    "The batch, with DDP": [
        [("(model_with(attention_over(cp)))",
          "(model_with(attention_over(cp)), process_group=mesh['dp'].get_group())"),
         ("(loss * dist.get_world_size()).backward()",
          "(loss * 2).backward()\n    sum_gradients(model, mesh['cp'].get_group())")]],
    "ZeRO-3, with fully_shard": [
        [("_flatten()\n", "_flatten()\ngrid = mesh['dp', 'cp']\n"), ("mesh=ranks", "mesh=grid")],
        [("    fully_shard(module, mesh=ranks)\n",
          "    fully_shard(module, mesh=ranks).set_gradient_divide_factor(1.0)\n"
          "    module.set_force_sum_reduction_for_comms(True)\n"),
         ("loss * ranks.size()", "loss")]],
    "ZeRO-1, with ZeroRedundancyOptimizer": [[('"zigzag"', '"striped 4"')]],
    "Heads, by tensor parallelism": [
        [("LENGTH, IGNORED = 49", "LENGTH, IGNORED = 52"), *SEQUENCE_PARALLEL]],
    "Layers, by pipelining": [[("ScheduleGPipe", "Schedule1F1B")]],
}

# By section, mistakes: one in a rule of all sections, then those of the section itself.
MISTAKES = {
    "The sequence alone": [
        [("cp.shard(labels[rows], 1)", "cp.shard(tokens[rows], 1).roll(-1, 1)")],
        [("cp.positions(LENGTH)", "torch.arange(len(cp.positions(LENGTH)))")],
        [("(labels != IGNORED).sum()", "((own != IGNORED).sum() * 4)")],
        [('sum_gradients(model, mesh["cp"].get_group())', "pass")]],
    "The batch, with DDP": [[("loss * dist.get_world_size()", "loss")]],
    "ZeRO-3, with fully_shard": [[("loss * ranks.size()", "loss")],
                                 [("loss * ranks.size()", "loss * cp.ranks")]],
    "ZeRO-1, with ZeroRedundancyOptimizer": [
        [("dist.group.WORLD", 'mesh["cp"].get_group()')]],
    "Heads, by tensor parallelism": [
        [("head_offset=first", "head_offset=0")],
        [('mesh["cp"].get_group()', "dist.group.WORLD")]],
    "Tensor parallelism and fully_shard": [[("loss * cp.ranks", "loss")],
                                           [("loss * cp.ranks", "loss * dist.get_world_size()")]],
    "Layers, by pipelining": [[(", scale_grads=False", "")],
                              [('sum_gradients(model, mesh["cp"].get_group())', "pass")]],
    "Checkpoints that keep attention": [],
}


def sections():
    """The Python of each section of the page; that of the first one goes before all others."""
    parts = re.split(r"^## ", (ROOT / "docs" / "combine.md").read_text(), flags=re.M)[1:]
    found = {part.split("\n")[0]: re.findall(r"^```python\n(.*?)^```", part, re.M | re.S)
             for part in parts}
    assert all(found.values()) and set(found) == {"Rules", *MISTAKES}
    return found


def run(blocks, replaced=()):
    """The scope of blocks."""
    scope = {}
    used = set()
    for block in blocks:
        for old, new in replaced:
            if old in block:
                used.add(old)
                block = block.replace(old, new)
        exec(compile(block, "docs/combine.md", "exec"), scope)
    assert used == {old for old, _ in replaced}, f"no {replaced} in docs/combine.md"
    return scope


def full(x):
    return x.full_tensor() if hasattr(x, "full_tensor") else x


def train(scope, steps=STEPS):
    """Losses of all ranks, and what weights become."""
    mesh, losses = scope["mesh"], []
    copies = mesh["tp"].size() if "tp" in mesh.mesh_dim_names else 1 # of the loss
    for _ in range(steps):
        loss = scope["backward"]().detach().clone()
        scope["optimizer"].step()
        scope["optimizer"].zero_grad()
        dist.all_reduce(loss)
        losses.append(loss.item() / copies)
    return losses, {name_of(name, scope): full(x.detach())
                    for name, x in scope["model"].named_parameters()}


def name_of(name, scope):
    """In the model of one process."""
    name = re.sub(r"\b(module|_checkpoint_wrapped_module)\.", "", name)
    if "Stage" in scope:
        for old, new in (("layers.0", f"layers.{scope['number']}"), ("head.0", "norm"),
                         ("head.1", "head")):
            name = name.replace(old, new)
    return name


@functools.lru_cache(maxsize=None)
def of_one_process(steps, has_slopes, length):
    scope = run(sections()["Rules"], [("LENGTH, IGNORED = 49", f"LENGTH, IGNORED = {length}")])
    more = {}
    if has_slopes:
        more = dict(head_offset=0, score=lambda s, b, h, i, j: s - 2.0 ** -(h + 1) * (i - j))
    model = scope["model_with"](scope["attention_over"](None, **more))
    optimizer = scope["adam"](model.parameters())
    losses = []
    for _ in range(steps):
        loss = scope["part_of_mean"](model(scope["tokens"], torch.arange(scope["LENGTH"])),
                                     scope["labels"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, {name: x.detach() for name, x in model.named_parameters()}


def error_of(scope, steps=STEPS):
    """The largest of losses and weights, on any rank."""
    losses, weights = train(scope, steps)
    wanted_losses, wanted = of_one_process(steps, "alibi" in scope, scope["LENGTH"])
    assert weights.keys() <= wanted.keys()
    counts = torch.tensor([name in weights for name in wanted], dtype=torch.int32)
    dist.all_reduce(counts)
    assert counts.all(), "weights that no rank has trained"
    error = max(*(abs(x - y) for x, y in zip(losses, wanted_losses)),
                *((x - wanted[name]).abs().max().item() for name, x in weights.items()))
    found = torch.tensor([error], dtype=torch.float64)
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return found.item()


def combined(names):
    code = sections()
    for name in names:
        first, blocks = code["Rules"], code[name]
        for count in range(1, len(blocks) + 1): # a block after the first one changes its model
            error = error_of(run([*first, *blocks[:count]]))
            assert error < BOUND, f"{name}, {count} blocks: off by {error}"
        for mistake in MISTAKES[name]:
            error = error_of(run([*first, blocks[0]], mistake), steps=2)
            assert error > 100 * BOUND, f"{name}: {mistake} is not seen: {error}"


def otherwise():
    code = sections()
    for name, changes in OTHERS.items():
        for change in changes:
            error = error_of(run([*code["Rules"], *code[name]], change))
            assert error < BOUND, f"{name}, {change}: off by {error}"
    with pytest.raises(RuntimeError, match="mixed torch.Tensor and DTensor"):
        train(run([*code["Rules"], *code["Heads, by tensor parallelism"]],
                  [("foreach=False", "foreach=True")]), steps=1)


def kept():
    """How often a layer's attention runs in a step: with the policy once forward and once
    backward, without it twice forward."""
    code = sections()
    runs = collections.Counter()
    run_at = programs.run_at

    def counted(handle, *arguments):
        runs[handle] += 1
        return run_at(handle, *arguments)

    programs.run_at = counted
    for change, times in (((), [1, 1]), ([(", context_fn=keep", "")], [1, 2]),
                          ([("burst.attention.default", "burst.attention_backward.default")],
                           [1, 2])):
        scope = run([*code["Rules"], *code["Checkpoints that keep attention"]], change)
        scope["backward"]()
        runs.clear()
        scope["backward"]()
        assert sorted(runs.values()) == [n * len(scope["model"].layers) for n in times]
    programs.run_at = run_at


def everything():
    combined(MISTAKES)
    kept()


def test_the_page(tmp_path):
    on_ranks(4, tmp_path, everything)


@pytest.mark.all
def test_other_ways(tmp_path):
    on_ranks(4, tmp_path, otherwise)


def three():
    """dp x cp x tp, where fully_shard is over dp and cp."""
    code = sections()
    found = run([*code["Rules"], *code["Tensor parallelism and fully_shard"]], [
        ('(2, 2), mesh_dim_names=("cp", "tp")', '(2, 2, 2), mesh_dim_names=("dp", "cp", "tp")'),
        ("for layer", 'ranks = mesh["dp", "cp"]._flatten()\nfor layer'),
        ('mesh=mesh["cp"]', "mesh=ranks"),
        ("(model, cp)", "(model, cp, torch.arange(4).chunk(2)[mesh.get_local_rank('dp')])"),
        ("loss * cp.ranks", "loss * ranks.size()")])
    error = error_of(found)
    assert error < BOUND, error


@pytest.mark.long
def test_three(tmp_path):
    on_ranks(8, tmp_path, three)
