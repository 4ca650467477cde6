#!/usr/bin/env python3
"""Checks and measures burst on a GPU, with what scripts/gpu-check prepared.

usage: check.py [DIRECTORY] [--only=REGEX] [--seconds=N] [--out=DIRECTORY] [--emulated]

DIRECTORY (that of this file) holds cells.json and what its cells need. Cells run in its order:
what is true, then what is fast. Each prints one line; those of the file gpu.json in --out that
passed are not run again. At the end gpu.json and gpu.md are there, also if the time (540 s) was
not enough for all, and in --out/primitives what the GPU gave for single instructions.
--emulated: there is no GPU; cells that are marked as large are skipped. --expect: instructions
give what they give on the emulated GPU here, for others to compare with.
"""

import argparse
import concurrent.futures
import ctypes
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import driver
import libraries
import primitives
import ranks

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ("cudnn", "flash2")


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
    report, failure = burst_run(directory, cell, seconds)
    passed = {"seconds": round(time.monotonic() - begin, 2)}
    if failure:
        return {**passed, **failure}
    ratios = [entry["worst_error_over_bound"] for entry in report["results"].values()]
    worst = max((r if isinstance(r, (int, float)) else math.inf) for r in ratios)
    sent = report["bytes_sent"] == report["bytes_planned"]
    passed.update(verdict="passed" if report["pass"] and sent else "failed",
                  worst_error_over_bound=worst if math.isfinite(worst) else "inf")
    if not sent:
        passed["reason"] = f"sent {report['bytes_sent']}, planned {report['bytes_planned']}"
    return passed


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


# ---------------------------------------------------------------------------
# Cells of a process that goes on
# ---------------------------------------------------------------------------

class Bare:
    """Kernels without PyTorch."""

    def __init__(self, directory, emulated, out):
        self.directory, self.emulated, self.out = directory, emulated, out
        self.gpu = driver.Driver()
        self.folder = os.path.join(directory, "primitives")
        self.modules = primitives.Modules(self.gpu, self.folder, emulated)

    def primitive(self, cell):
        """An instruction gives what it gave on the emulated GPU, and what is exact."""
        name = cell["kernel"]
        if self.gpu.capability != 90 and re.search("wgmma|tma", name):
            return {"verdict": "skipped", "reason": "for compute capability 9.0"}
        found = primitives.give(self.gpu, self.modules, name)
        if self.out:
            os.makedirs(os.path.join(self.out, "primitives"), exist_ok=True)
            with open(os.path.join(self.out, "primitives", name + ".out"), "wb") as file:
                file.write(found)
        exact = primitives.exact(name)
        if exact is not None and found != exact:
            return {"verdict": "failed", "reason": primitives.compare(name, found, exact)["reason"]}
        path = os.path.join(self.folder, name + ".out")
        if not os.path.exists(path):
            return {"verdict": "passed" if exact else "failed", "reason": "nothing to compare with"}
        with open(path, "rb") as file:
            return primitives.compare(name, found, file.read())

    def peak(self, cell):
        """TFLOP/s of products of one shape, nothing else."""
        name = cell["kernel"]
        function = self.modules.function(name)
        blocks = self.gpu.attribute(driver.MULTIPROCESSORS)
        out = self.gpu.allocate(4 * 256 * blocks)
        if name == "peak_mma":
            shared, flops = 0, 8 * 8 * 2 * 16 * 8 * 16  # of a block, each time
        else:
            columns = int(name.rsplit("_", 1)[1])
            shared, flops = 2 * 64 * (128 + columns), 2 * 2 * 64 * columns * 64
            if shared > 48 * 1024:
                self.gpu.allow_shared(function, shared)

        def run(count):
            self.gpu.launch(function, blocks, 256,
                            [ctypes.c_uint64(out), ctypes.c_int(count),
                             ctypes.c_uint32(0 if cell["zeros"] else 0xffffffff)], shared)
        run(2)
        count = 4 if self.emulated else 20000
        times = sorted(self.gpu.time(lambda: run(count)) for _ in range(1 if self.emulated else 7))
        self.gpu.free(out)
        return {"verdict": "passed",
                "rate": blocks * flops * count / max(times[len(times) // 2], 1e-6) / 1e9}


def work(directory, emulated, out):
    """Takes cells from the standard input, and answers each with a line."""
    libraries.name_for_burst()
    # What libraries print must not stand between answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    made = {}

    def take(kind):
        if kind not in made:
            if kind is Bare:
                made[kind] = Bare(directory, emulated, out)
            else:
                import speed
                made[kind] = speed.Bench(directory)
        return made[kind]

    for line in sys.stdin:
        cell = json.loads(line)
        try:
            kind = cell["kind"]
            if kind == "threads":
                address = ranks.free_address() if cell["transport"] != "local" else None
                found = {"verdict": "passed",
                         "digests": ranks.digests_of_threads(directory, cell, address)}
            else:
                owner = Bare if kind in ("primitive", "peak") else "torch"
                found = getattr(take(owner), kind)(cell)
        except Exception as error:  # whatever it is belongs to the cell
            found = {"verdict": "failed", "reason": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), file=answers, flush=True)
        # An error of a kernel stays with its context: the next cell gets a new one.
        if found["verdict"] == "failed":
            break


class Worker:
    """A process that checks and measures, started anew where it ended or was too slow."""

    def __init__(self, arguments):
        self.arguments, self.process = arguments, None

    def run(self, cell, seconds):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), *self.arguments, "--worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process = self.process
        process.stdin.write(json.dumps(cell) + "\n")
        process.stdin.flush()
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if not line:
            return {"verdict": "failed", "reason": f"the process ended ({process.wait()}) "
                                                   f"or took more than {seconds:.0f} s"}
        found = json.loads(line)
        if found["verdict"] == "failed":
            self.end()
        return found

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


# ---------------------------------------------------------------------------
# Reports
# ---------------------------------------------------------------------------

def versions(directory):
    found = {}
    path = os.path.join(directory, "commit")
    if os.path.exists(path):
        with open(path) as file:
            found["commit"] = file.read().strip()
    query = "name,driver_version,power.limit,clocks.max.sm,memory.total"
    try:
        told = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=30).stdout.strip()
        found.update(zip(query.split(","), (x.strip() for x in told.split(","))))
    except (OSError, subprocess.TimeoutExpired):
        pass
    found.update((what, libraries.find(what) or "none") for what in ("nvrtc", "nccl"))
    # In a process of its own: it is this one's children that use the GPU.
    asked = ("import json, torch; print(json.dumps({'torch': torch.__version__, "
             "'cuda': torch.version.cuda, 'cudnn': torch.backends.cudnn.version(), "
             "'torch_nccl': '.'.join(map(str, torch.cuda.nccl.version()))}))")
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True)
    if told.returncode == 0:
        found.update(json.loads(told.stdout))
    else:
        found["torch"] = told.stderr.strip().splitlines()[-1] if told.stderr else "none"
    return found


def ratio(cell):
    found = cell.get("worst_error_over_bound", "")
    return f"{found:.3f}" if isinstance(found, float) else str(found)


def number(value, form):
    return "" if value is None else format(value, form)


def describe(name, cell):
    parts = []
    if "worst_error_over_bound" in cell:
        parts.append(f"err/bound {ratio(cell)}")
    for variant, (low, median, high) in cell.get("ms", {}).items() if "tflops" in cell else ():
        parts.append(f"{variant} {low:.3f}/{median:.3f}/{high:.3f} ms "
                     f"{cell['tflops'][variant]:.0f} TFLOP/s"
                     + (" (keys repeated)" if variant in cell.get("repeated", ()) else ""))
    if cell.get("clock_mhz"):
        parts.append(f"{cell['clock_mhz']} MHz {cell['watts']:.0f} W")
    if "of_peak" in cell:
        parts.append(f"{100 * cell['of_peak']:.0f} % of the peak at that clock")
    parts += [f"{cell['over_' + peer]:.2f} of {peer}" for peer in PEERS if "over_" + peer in cell]
    if "host_us" in cell:
        parts.append(f"host {cell['host_us']:.0f} us")
    if "over_alone" in cell:
        parts.append(f"{cell['variant']} {cell['ms']['ranks']:.2f} ms, alone "
                     f"{cell['ms']['alone']:.2f}: {cell['over_alone']:.3f}")
    if "rate" in cell:
        parts.append(f"{cell['rate']:.0f} TFLOP/s")
    if "tb_per_s" in cell:
        parts.append(f"{cell['tb_per_s']:.2f} TB/s")
    if "compile_seconds" in cell:
        parts.append("cold {:.2f} s, warm {:.2f} s".format(*cell["compile_seconds"]))
    if "ulps_exp2" in cell:
        parts.append(f"exp2 up to {cell['ulps_exp2']} units from the emulator")
    if "ms_of_ranks" in cell:
        parts.append(f"{max(x or 0 for x in cell['ms_of_ranks']):.2f} ms")
    if "seconds_until_told" in cell:
        parts.append(f"told after {cell['seconds_until_told']:.2f} s")
    parts += [f"without {what}: {why}" for what, why in cell.get("without", {}).items()]
    parts += list(cell.get("bundles", {}).values())
    if "reason" in cell:
        parts.append(cell["reason"])
    return f"{cell['verdict']:8} {name:40} " + " | ".join(parts)


def write(out, report):
    os.makedirs(out, exist_ok=True)
    for name, text in (("gpu.json", json.dumps(report, indent=1)), ("gpu.md", table(report))):
        path = os.path.join(out, name)
        with open(path + ".tmp", "w") as file:
            file.write(text + "\n")
        os.replace(path + ".tmp", path)


def table(report):
    lines = ["# Measured on a GPU", ""]
    lines += [f"* {key}: {value}" for key, value in report["versions"].items()]
    lines += ["", "TFLOP/s, of medians. Under flash2 is FlashAttention-2, which PyTorch's flash "
              "backend is. Portable kernels are for sm_80 and later.", "",
              "| cell | verdict | error/bound | ms | hopper | portable | cuDNN | flash2 | "
              "of cuDNN | of the peak |", "|---" * 10 + "|"]
    others = []
    for name, cell in report["cells"].items():
        if "tflops" not in cell:
            others.append(describe(name, cell))
            continue
        rates = cell["tflops"]
        own = [cell["ms"][v][1] for v in ("hopper", "portable") if v in cell["ms"]]
        lines.append("| " + " | ".join([
            name, cell["verdict"], ratio(cell), number(min(own, default=None), ".3f"),
            *(number(rates.get(v), ".0f") for v in ("hopper", "portable", *PEERS)),
            number(cell.get("over_cudnn"), ".2f"), number(cell.get("of_peak"), ".2f")]) + " |")
    return "\n".join(lines + ["", "```text", *others, "```"])


# ---------------------------------------------------------------------------
# All cells
# ---------------------------------------------------------------------------

class Checks:
    def __init__(self, options):
        self.options = options
        self.directory = os.path.abspath(options.directory)
        arguments = [self.directory, "--out", os.path.abspath(options.out)]
        if options.emulated:
            arguments.append("--emulated")
        self.worker = Worker(arguments)
        self.begin = time.monotonic()
        self.path = os.path.join(options.out, "gpu.json")
        self.report = {"versions": versions(self.directory), "cells": {}}
        if os.path.exists(self.path):
            with open(self.path) as file:
                self.report["cells"] = {name: cell
                                        for name, cell in json.load(file)["cells"].items()
                                        if cell["verdict"] == "passed"}
        self.names = {"passed": [], "failed": [], "skipped": []}

    def left(self):
        return self.options.seconds - (time.monotonic() - self.begin)

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

    def run(self, cell, seconds):
        try:
            if cell["kind"] == "truth":
                return check_truth(self.directory, cell, seconds)
            if cell["kind"] == "compiler":
                return check_compiler(self.directory, cell, seconds)
            if cell["kind"] == "processes":
                return self.processes(cell, seconds)
            return self.worker.run(cell, seconds)
        except subprocess.TimeoutExpired as error:
            return {"verdict": "failed", "reason": f"took more than {error.timeout:.0f} s"}
        except Exception as error:  # one cell must not end all of them
            return {"verdict": "failed", "reason": f"{type(error).__name__}: {error}"}

    def keep(self, name, found):
        if found["verdict"] != "skipped":
            self.report["cells"][name] = found
        self.names[found["verdict"]].append(name)
        print(describe(name, found), flush=True)
        write(self.options.out, self.report)

    def all(self):
        with open(os.path.join(self.directory, "cells.json")) as file:
            wanted = [cell for cell in json.load(file)
                      if re.search(self.options.only, cell["name"])]
        if not wanted:
            sys.exit(f"check.py: no cell's name has --only={self.options.only}")
        todo = []
        for cell in wanted:
            if cell["name"] in self.report["cells"]:
                self.names["passed"].append(cell["name"])
            elif self.options.emulated and cell.get("large"):
                self.keep(cell["name"], {"verdict": "skipped", "reason": "large"})
            else:
                todo.append(cell)
        # Programs that are compared by processors may be several at a time; nothing else runs.
        jobs = max(1, min(8, (os.cpu_count() or 1) // 2))
        while todo:
            if self.left() < 5:
                for cell in todo:
                    self.keep(cell["name"], {"verdict": "skipped", "reason": "no time was left"})
                break
            together = [todo.pop(0)]
            while together[0]["kind"] == "truth" and todo and todo[0]["kind"] == "truth" \
                    and len(together) < jobs:
                together.append(todo.pop(0))
            seconds = min(self.left(), 900 if self.options.emulated else 120)
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                asked = {pool.submit(self.run, cell, seconds): cell for cell in together}
                for done in concurrent.futures.as_completed(asked):
                    self.keep(asked[done]["name"], done.result())
        self.worker.end()
        write(self.options.out, self.report)
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
        print(f"{time.monotonic() - self.begin:.0f} s used")
        print(", ".join(f"{len(names)} {what}" for what, names in self.names.items()))
        return 1 if self.names["failed"] else 0


def expect(directory):
    """Writes what all instructions give on the emulated GPU beside their code."""
    folder = os.path.join(directory, "primitives")
    bare = Bare(directory, True, None)
    for name in primitives.names(folder):
        if not name.startswith("peak"):
            with open(os.path.join(folder, name + ".out"), "wb") as file:
                file.write(primitives.give(bare.gpu, bare.modules, name))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("directory", nargs="?", default=HERE)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--out", default=".")
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--expect", action="store_true")
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--rank")
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.directory, "cells.json")):
        parser.error(f"no cells.json in {options.directory}: give what scripts/gpu-check made")
    if not libraries.find("cuda"):
        parser.exit(1, "check.py: no driver of CUDA: libcuda.so.1 does not load, nor what "
                       "BURST_CUDA_DRIVER_LIBRARY names\n")
    libraries.name_for_burst()
    if options.rank:
        return ranks.work(options.directory, *json.loads(options.rank))
    if options.worker:
        return work(options.directory, options.emulated, options.out)
    if options.expect:
        return expect(options.directory)
    return Checks(options).all()


if __name__ == "__main__":
    sys.exit(main())
