#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks and measures burst on a GPU, with what scripts/gpu-check prepared.

usage: check.py [DIRECTORY] [--only=REGEX] [--seconds=N] [--silence=N] [--out=FILE]
                [--from=FILE]... [--emulated]

DIRECTORY (that of this file) holds cells.json and what its cells need. Cells run in its order:
what is true, what matters most beside peers, then all else by its worth. Each prints one line. All
that was found is in one archive, --out (results.tar), written anew after every cell: gpu.json and
gpu.md, what the GPU gave for single instructions, counters of the hardware, machine code, clocks.
Cells that passed in it, or in those of --from, are not run again; so a second call goes on. A cell
that says nothing for --silence seconds (20) hung; two of a kind that hang end their kind. All ends
within --seconds (480).
--emulated: there is no GPU; cells that are marked as large are skipped. --expect: instructions
give what they give on the emulated GPU here, for others to compare with.
"""

import argparse
import concurrent.futures
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

import counters
import libraries
import primitives
import programs
import ranks
import report
import results
import worker

HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds for all cells of phase 0, as far as others wait for them.
TRUTH_SECONDS = 60
# How often a debug build asks a barrier, with a pause of a microsecond, before it traps.
SPINS = 1000000


# ---------------------------------------------------------------------------
# Cells that run burst-run
# ---------------------------------------------------------------------------

def burst_run(directory, cell, seconds, **environment):
    """What burst-run reports of a program, which it compiles for this GPU and compares, all
    rows, with the fp64 oracle; or a failed cell."""
    command = [os.path.join(directory, "burst-run"),
               os.path.join(directory, "truth", cell["program"] + ".mlir"),
               "--device=cuda", "--check", "--json"]
    if cell.get("architectures"):
        command.append("--arch=" + cell["architectures"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                          env={**os.environ, **environment})
    if not done.stdout.startswith("{"):
        return None, {"verdict": "failed",
                      "reason": done.stderr.strip()[-2000:] or f"burst-run: {done.returncode}"}
    return json.loads(done.stdout), None


def check_truth(directory, cell, seconds):
    begin = time.monotonic()
    found, failure = burst_run(directory, cell, seconds)
    passed = {"seconds": round(time.monotonic() - begin, 2)}
    if failure:
        return {**passed, **failure}
    ratios = [entry["worst_error_over_bound"] for entry in found["results"].values()]
    worst = max((r if isinstance(r, (int, float)) else math.inf) for r in ratios)
    sent = found["bytes_sent"] == found["bytes_planned"]
    passed.update(verdict="passed" if found["pass"] and sent else "failed",
                  worst_error_over_bound=worst if math.isfinite(worst) else "inf")
    if not sent:
        passed["reason"] = f"sent {found['bytes_sent']}, planned {found['bytes_planned']}"
    return passed


def stuck_at(directory, cell, seconds, spins=SPINS):
    """At which barrier a program that hangs waits in vain, by debug builds that bound waiting. A
    build says one bit of the barrier's number: by the error with which it ends."""
    number = 0
    for bit in range(6):
        options = f"--define-macro=BURST_SPINS={spins} --define-macro=BURST_SPIN_BIT={bit}"
        try:
            found, failure = burst_run(directory, cell, seconds, BURST_NVRTC_OPTIONS=options)
        except subprocess.TimeoutExpired:
            return "it hangs at no barrier of a pipeline"
        if found:
            return "a debug build does not hang"
        said = failure["reason"]
        if not re.search("ILLEGAL_ADDRESS|LAUNCH_FAILED", said):
            return "a debug build says: " + said
        number += ("ILLEGAL_ADDRESS" in said) << bit
    return (f"it waits in vain at barrier {number} (its place in shared memory / 8 % 64; of several "
            "at a time the bits of any)")


def check_compiler(directory, cell, seconds):
    """Seconds to compile a program, by a cache that is empty and by one that knows it."""
    found = {"verdict": "passed", "compile_seconds": []}
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            report, failure = burst_run(directory, cell, seconds / 2, BURST_CACHE_DIR=cache)
            if failure:
                return failure
            found["compile_seconds"].append(report["seconds"]["compile"])
    return found


def check_torch(directory, cell, seconds):
    """The Python package, on tensors of PyTorch."""
    library = [name for name in os.listdir(directory) if name.startswith("libburst.so")]
    environment = {**os.environ, "PYTHONPATH": os.path.join(directory, "python"),
                   "BURST_LIBRARY": os.path.join(directory, *library)}
    done = subprocess.run([sys.executable, os.path.join(directory, "torch_path.py"),
                           cell["path"]], capture_output=True, text=True, timeout=seconds,
                          env=environment)
    if not done.stdout.startswith("{"):
        return {"verdict": "failed", "reason": done.stderr.strip()[-2000:] or
                f"torch_path.py: {done.returncode}"}
    return json.loads(done.stdout)


# ---------------------------------------------------------------------------
# All cells
# ---------------------------------------------------------------------------

class Checks:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.directory = os.path.abspath(options.directory)
        arguments = [self.directory, "--scratch", scratch]
        if options.emulated:
            arguments.append("--emulated")
        # What the limits of a GPU are multiplied by.
        silence = options.silence or (900 if options.emulated else worker.SILENCE)
        self.patience = silence / worker.SILENCE
        self.worker = worker.Worker(arguments, self.patience)
        self.begin = time.monotonic()
        self.results = results.Results(options.out, [*options.carried, options.out])
        versions = report.versions(self.directory, worker.BEGINNING * self.patience)
        self.report = {"versions": versions, "cells": {}}
        self.before = self.results.cells
        self.report["cells"].update(self.before)
        self.names = {"passed": [], "failed": [], "skipped": []}
        self.hangs, self.explained = {}, set()

    def passed(self):
        return time.monotonic() - self.begin

    def left(self):
        return self.options.seconds - self.passed()

    def processes(self, cell, seconds):
        """The ranks of a ring, each a process, give what they give as threads of one."""
        if self.options.emulated and cell["transport"] == "nccl":
            if cell["kills"]:
                return {"verdict": "skipped", "reason": "emulated GPUs are those of one process"}
            found = self.worker.run({**cell, "kind": "threads"}, seconds / 2)
        else:
            found = ranks.check(os.path.abspath(__file__), self.directory, cell, seconds / 2)
        if found["verdict"] != "passed":
            return found
        alone = self.worker.run({**cell, "kind": "threads", "transport": "local"}, seconds / 2)
        if alone["verdict"] != "passed":
            return alone
        if found.pop("digests") != alone["digests"]:
            return {**found, "verdict": "failed", "reason": "other bits than over local transports"}
        return found

    def hung(self, cell, seconds):
        """A program that hangs, and at which barrier, if it is the first of its kind."""
        found, family = worker.hung(seconds), programs.family(cell)
        if cell["kind"] == "truth" and family not in self.explained:
            self.explained.add(family)
            found["reason"] += "; " + stuck_at(self.directory, cell, seconds)
        return found

    def run(self, cell, seconds):
        # What runs on its own says nothing until it ends.
        silence = min(seconds, worker.SILENCE * self.patience)
        script = os.path.abspath(__file__)
        try:
            if cell["kind"] == "truth":
                return check_truth(self.directory, cell, silence)
            if cell["kind"] == "compiler":
                return check_compiler(self.directory, cell, 2 * silence)
            if cell["kind"] == "torch":
                if self.options.emulated:
                    return {"verdict": "skipped", "reason": "PyTorch finds no GPU"}
                return check_torch(self.directory, cell, min(seconds, worker.BEGINNING))
            if cell["kind"] == "processes":
                return self.processes(cell, 2 * silence)
            if cell["kind"] == "counters": # ncu runs a kernel many times, and PyTorch begins
                return counters.count(script, self.directory, cell,
                                      min(seconds, worker.BEGINNING), self.scratch)
            return self.worker.run(cell, seconds)
        except subprocess.TimeoutExpired as error:
            return self.hung(cell, error.timeout)
        except Exception as error:  # one cell must not end all of them
            return {"verdict": "failed", "reason": f"{type(error).__name__}: {error}"}

    def keep(self, cell, found):
        name = cell["name"]
        if found.get("hung"):
            self.hangs.setdefault(programs.family(cell), []).append(name)
        if found["verdict"] != "skipped":
            self.report["cells"][name] = {**found, "family": programs.family(cell)}
        self.names[found["verdict"]].append(name)
        print(report.describe(name, found), flush=True)
        self.write()

    def write(self):
        self.results.collect(self.scratch)
        self.results.write(self.report, report.table(self.report))

    def skip(self, cell, reason):
        self.keep(cell, {"verdict": "skipped", "reason": reason})

    def is_skipped(self, cell):
        """Whether there is no use in a cell, which is then told."""
        if self.options.emulated and cell.get("large"):
            self.skip(cell, "large")
            return True
        hung = self.hangs.get(programs.family(cell), [])
        if len(hung) >= 2:
            self.skip(cell, f"two of its kind hung: {', '.join(hung[:2])}")
            return True
        return False

    def wanted(self):
        with open(os.path.join(self.directory, "cells.json")) as file:
            cells = [cell for cell in json.load(file)
                     if re.search(self.options.only, cell["name"])]
        if not cells:
            sys.exit(f"check.py: no cell's name has --only={self.options.only}")
        done = {name for name, cell in self.before.items() if cell["verdict"] == "passed"}
        todo = [cell for cell in cells if cell["name"] not in done]
        self.names["passed"] += [cell["name"] for cell in cells if cell["name"] in done]
        # What hung before comes last.
        return sorted(todo, key=lambda cell: self.before.get(cell["name"], {}).get("hung", False))

    def postpone(self, todo):
        """Puts what is left of phase 0 behind phase 1, once that has had its time."""
        if todo[0].get("phase") == 0 and self.passed() > TRUTH_SECONDS * self.patience:
            todo.sort(key=lambda cell: {1: 0, 0: 1}.get(cell.get("phase"), 2))
            for cell in todo:
                cell.pop("phase", None)

    def all(self):
        todo = self.wanted()
        # Programs that are compared by processors may be several at a time; nothing else runs.
        jobs = max(1, min(8, (os.cpu_count() or 1) // 2))
        clocks = counters.Clocks(self.scratch)
        while todo:
            self.postpone(todo)
            if self.left() < 5:
                for cell in todo:
                    self.skip(cell, "no time was left")
                break
            together = [todo.pop(0)]
            while together[0]["kind"] == "truth" and todo and todo[0]["kind"] == "truth" \
                    and len(together) < jobs:
                together.append(todo.pop(0))
            together = [cell for cell in together if not self.is_skipped(cell)]
            seconds = min(self.left(), 120 * self.patience)
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                asked = {pool.submit(self.run, cell, seconds): cell for cell in together}
                for done in concurrent.futures.as_completed(asked):
                    self.keep(asked[done], done.result())
        self.worker.end()
        clocks.end()
        self.write()
        return self.end()

    def end(self):
        ratios = {name: cell["over_cudnn"] for name, cell in self.report["cells"].items()
                  if "over_cudnn" in cell}
        for what in ("failed", "skipped"):
            if self.names[what]:
                print(f"{what}: {', '.join(self.names[what])}")
        if ratios:
            worst, best = min(ratios, key=ratios.get), max(ratios, key=ratios.get)
            print(f"of cuDNN: worst {ratios[worst]:.2f} ({worst}), "
                  f"best {ratios[best]:.2f} ({best})")
        print(f"{self.passed():.0f} s used")
        print(", ".join(f"{len(names)} {what}" for what, names in self.names.items()))
        return 1 if self.names["failed"] else 0


def expect(directory):
    """Writes what all instructions give on the emulated GPU beside their code."""
    folder = os.path.join(directory, "primitives")
    bare = worker.Bare(directory, True, None)
    for name in primitives.names(folder):
        if not name.startswith("peak"):
            with open(os.path.join(folder, name + ".out"), "wb") as file:
                file.write(primitives.give(bare.gpu, bare.modules, name))


def once(directory, cell):
    import speed
    speed.Bench(directory).once(cell)


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("directory", nargs="?", default=HERE)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--silence", type=float)
    parser.add_argument("--out", default="results.tar")
    parser.add_argument("--from", dest="carried", action="append", default=[])
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--expect", action="store_true")
    # How this calls itself.
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--scratch")
    parser.add_argument("--rank")
    parser.add_argument("--once")
    return parser, parser.parse_args()


def main():
    parser, options = arguments()
    if not os.path.exists(os.path.join(options.directory, "cells.json")):
        parser.error(f"no cells.json in {options.directory}: give what scripts/gpu-check made")
    if not libraries.find("cuda"):
        parser.exit(1, "check.py: no driver of CUDA: libcuda.so.1 does not load, nor what "
                       "BURST_CUDA_DRIVER_LIBRARY names\n")
    for archive in options.carried:
        if not os.path.exists(archive):
            parser.error(f"--from={archive}: no such file")
    libraries.name_for_burst()
    if options.rank:
        return ranks.work(options.directory, *json.loads(options.rank))
    if options.worker:
        return worker.work(options.directory, options.emulated, options.scratch)
    if options.once:
        return once(options.directory, json.loads(options.once))
    if options.expect:
        return expect(options.directory)
    with tempfile.TemporaryDirectory() as scratch:
        return Checks(options, scratch).all()


if __name__ == "__main__":
    sys.exit(main())
