# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seconds, bytes and memory of the first token and of a step: forward, backward and AdamW."""

import ctypes
import dataclasses
import pathlib
import re
import resource
import time

import torch
import torch.distributed as dist

from evaluation.check import data
from evaluation.methods import METHODS, Task
from evaluation.model import SHAPES
from evaluation.traffic import of_wire

FIRST, STEP = "first token", "step"
RATE = 1e-4
OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Cell:
    """What is measured in the same processes, by methods that take turns."""

    group: str
    task: Task
    ranks: int
    names: tuple[str, ...]
    rounds: int
    rate: str | None = None # of a link; None: the loopback
    passes: tuple[str, ...] = (FIRST, STEP)


class Subject:
    """A method that is measured, with its optimizer."""

    def __init__(self, name, task, mesh, passes):
        self.split = METHODS[name](task, mesh)
        self.tokens, self.labels = data(task)
        self.passes = {FIRST: self.first_token, STEP: self.step}
        if METHODS[name].why_no_step(task, mesh.size()):
            del self.passes[STEP]
        self.passes = {what: f for what, f in self.passes.items() if what in passes}
        self.optimizer = None
        if STEP in self.passes:
            self.split.zero()
            self.optimizer = self.split.optimizer(RATE)

    def first_token(self):
        self.split.first_token(self.tokens)

    def step(self):
        self.split.zero()
        self.split.backward(self.tokens, self.labels)
        self.optimizer.step()


def times(mesh, cell):
    """By method and pass, of each round: seconds, those of this rank's CPU, and bytes that were
    sent; or why there are none."""
    found, subjects = {}, {}
    for name in cell.names:
        if why := METHODS[name].why_not(cell.task, mesh.size()):
            found[name] = {"none": why}
            continue
        subjects[name] = Subject(name, cell.task, mesh, cell.passes)
        found[name] = {}
        if why := METHODS[name].why_no_step(cell.task, mesh.size()):
            found[name]["no step"] = why
        for what, run in subjects[name].passes.items():
            run() # compiles
            found[name][what] = {"seconds": [], "cpu": [], "sent": []}
    for _ in range(cell.rounds):
        for name, subject in subjects.items():
            for what, run in subject.passes.items():
                of_pass = found[name][what]
                sent = of_wire()
                begin, of_cpu = time.perf_counter(), time.process_time()
                run()
                of_pass["cpu"].append(time.process_time() - of_cpu)
                dist.barrier()
                of_pass["seconds"].append(time.perf_counter() - begin)
                of_pass["sent"].append(of_wire() - sent)
    return found


def joined(of_ranks, is_shared):
    """Of what `times` gives on each rank: seconds of the first, CPU seconds of all, and bytes of
    all, which each rank counts where the loopback is shared."""
    merged = of_ranks[0]
    for name, passes in merged.items():
        for what in passes.keys() & {FIRST, STEP}:
            others = [found[name][what] for found in of_ranks]
            for of_all in ("cpu",) if is_shared else ("cpu", "sent"):
                passes[what][of_all] = [sum(x) for x in zip(*(y[of_all] for y in others))]
    return merged


#===----------------------------------------------------------------------===#
# Memory
#===----------------------------------------------------------------------===#


def return_what_is_freed(rank):
    """First of all, in a rank whose memory is measured: else what was freed stays in it."""
    libc = ctypes.CDLL(None)
    for parameter in (-3, -1): # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
        libc.mallopt(parameter, 1 << 16)


def memory(mesh, task, name, what, limit):
    """The most private memory that this rank has in a pass, beside what it has when all is
    loaded and connected; more than `limit` bytes cannot be had."""
    small = Task(dataclasses.replace(SHAPES["tiny"], heads=task.shape.heads,
                                     key_heads=task.shape.key_heads), 1, 16 * mesh.size())
    Subject(name, small, mesh, (what,)).passes[what]()
    ctypes.CDLL(None).malloc_trim(0)
    before = status()
    resource.setrlimit(resource.RLIMIT_DATA, (before["VmData"] + limit,) * 2)
    subject = Subject(name, task, mesh, (what,))
    subject.passes[what]() # compiles
    ctypes.CDLL(None).malloc_trim(0)
    pathlib.Path("/proc/self/clear_refs").write_text("5") # the peak is that from here
    subject.passes[what]()
    after = status()
    return after["VmHWM"] - after["RssFile"] - after["RssShmem"] - before["RssAnon"]


def status():
    """Bytes, of /proc/self/status."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines
            if line.endswith(" kB")}
