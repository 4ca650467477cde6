# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/evaluate does: in under 3 minutes on two cores, or with --full in about 15."""

import dataclasses

import torch

from evaluation.measure import FIRST, STEP, Cell
from evaluation.methods import METHODS, Task
from evaluation.model import SHAPES
from evaluation.planted import PLANTED

MEASURED = ("tp_v1", "tp_v3", "ring_scores", "ring", "burst", "burst_fsdp2", "torch")
MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Check:
    task: Task
    ranks: int
    names: tuple[str, ...]

    @property
    def title(self):
        task = self.task
        return (f"P={self.ranks} S={task.length} {str(task.dtype).removeprefix('torch.')} "
                f"{task.order}, heads {task.shape.heads}/{task.shape.key_heads}")


@dataclasses.dataclass(frozen=True)
class Memory:
    """One method and pass, in processes of its own."""

    name: str
    task: Task
    ranks: int
    what: str
    limit: int # bytes of a rank


def checks(is_full):
    def check(ranks, shape, length, dtype, order, names=(*METHODS, *PLANTED)):
        return Check(Task(SHAPES[shape], 2, length, dtype, order), ranks, names)
    f32, f64 = torch.float32, torch.float64
    found = [check(1, "tiny", 64, f64, "contiguous", ("single", "burst", "tp_v1", "torch")),
             check(4, "tiny", 64, f64, "zigzag"), check(2, "grouped", 61, f32, "contiguous")]
    if is_full:
        found += [check(2, "tiny", 64, f32, "zigzag"), check(4, "grouped", 61, f64, "zigzag"),
                  check(4, "grouped", 64, f32, "contiguous"),
                  check(3, "tiny", 61, f64, "zigzag",
                        ("ring", "usp", "burst", "burst_fsdp2", "torch", *PLANTED))]
    return found


def trained(is_full):
    """The task, over how many ranks, and for how many steps: the model copies after 200."""
    return (Task(SHAPES["tiny"], 16, 64), 4, 200) if is_full else \
        (Task(SHAPES["tiny"], 16, 64), 2, 30)


def cells(is_full):
    def cell(group, ranks, length, names=MEASURED, rounds=3, batch=1, rate=None,
             passes=(FIRST, STEP)):
        return Cell(group, Task(SHAPES["small"], batch, length), ranks, names, rounds, rate, passes)
    if not is_full:
        return [cell("length", 4, 256, rounds=2), cell("length", 4, 512, rounds=2),
                cell("ranks", 1, 512, ("single",), 2), cell("ranks", 2, 512, ("tp_v1", "burst"), 2),
                cell("links", 4, 512, ("tp_v1", "burst"), 2, rate="500mbit", passes=(FIRST,))]
    few = ("tp_v1", "ring", "burst")
    ablations = ("burst", "burst_without_overlap", "burst_without_dropping",
                 "burst_without_tiling", "ring", "ring_scores")
    return [cell("length", 4, 512), cell("length", 4, 2048), cell("length", 4, 4096, rounds=2),
            cell("length", 4, 8192, ("tp_v1", "ring_scores", "burst", "torch"), 2,
                 passes=(FIRST,)),
            cell("ranks", 1, 2048, ("single",)), cell("ranks", 2, 2048, few),
            cell("ranks", 8, 2048, few, 2),
            cell("batch", 4, 512, ("tp_v1", "tp_v3", "burst"), batch=2),
            cell("batch", 4, 512, ("tp_v1", "tp_v3", "burst"), batch=4),
            cell("ablations", 4, 2048, ablations, 2),
            *(cell("links", 4, 2048, ("tp_v1", "tp_v3", "burst", "burst_fsdp2"), 2, rate=rate)
              for rate in ("2gbit", "500mbit"))]


def memories(is_full):
    """Where a row ends: lengths are in order, and none is tried behind the first that failed."""
    names, lengths, limit = ("tp_v1", "ring_scores", "burst", "burst_fsdp2"), (2048,), 96
    # A step has gradients and states as well, of which there is less where they are sharded.
    names_of_step, length_of_step = ("burst", "burst_fsdp2"), 512
    if is_full:
        names, lengths, limit = (*MEASURED, "burst_without_tiling"), (2048, 8192), 512
        names_of_step, length_of_step = names, 2048
    return [Memory(name, Task(SHAPES["small"], 1, length), 4, FIRST, limit * MIB)
            for name in names for length in lengths] + \
        [Memory(name, Task(SHAPES["small"], 1, length_of_step), 4, STEP, 512 * MIB)
         for name in names_of_step]
