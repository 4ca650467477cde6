# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that check and measure, and how long they may say nothing."""

import ctypes
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time

import driver
import libraries
import primitives
import ranks

# Seconds without a sign of life that are a hang, and to begin PyTorch.
SILENCE, BEGINNING = 20, 90


class Bare:
    """Kernels without PyTorch."""

    def __init__(self, directory, emulated, scratch):
        self.directory, self.emulated, self.scratch = directory, emulated, scratch
        self.gpu = driver.Driver()
        self.folder = os.path.join(directory, "primitives")
        self.modules = primitives.Modules(self.gpu, self.folder, emulated)

    def primitive(self, cell):
        """An instruction gives what it gave on the emulated GPU, and what is exact."""
        name = cell["kernel"]
        if self.gpu.capability != 90 and re.search("wgmma|tma", name):
            return {"verdict": "skipped", "reason": "for compute capability 9.0"}
        found = primitives.give(self.gpu, self.modules, name)
        if self.scratch:
            os.makedirs(os.path.join(self.scratch, "primitives"), exist_ok=True)
            with open(os.path.join(self.scratch, "primitives", name + ".out"), "wb") as file:
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


def work(directory, emulated, scratch):
    """Takes cells from the standard input, and answers each with a line, in front of which stand
    signs of life: how many seconds may pass until the next one."""
    libraries.name_for_burst()
    # What libraries print must not stand between answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    made = {}

    def alive(seconds=SILENCE):
        print(json.dumps({"alive": seconds}), file=answers, flush=True)

    def take(kind):
        if kind not in made:
            alive(BEGINNING)
            if kind is Bare:
                made[kind] = Bare(directory, emulated, scratch)
            else:
                import speed
                made[kind] = speed.Bench(directory, alive)
            alive()
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


def hung(seconds):
    return {"verdict": "failed", "hung": True, "reason": f"hung: no answer in {seconds:.0f} s"}


class Worker:
    """A process that checks and measures, started anew where it ended or hung. `patience`: a
    factor for machines without a GPU."""

    def __init__(self, arguments, patience=1):
        self.arguments, self.patience, self.process = arguments, patience, None

    def begin(self):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "check.py"),
             *self.arguments, "--worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()

        def listen(stream, lines):
            for line in stream:
                lines.put(line)
            lines.put("")
        threading.Thread(target=listen, args=(self.process.stdout, self.lines),
                         daemon=True).start()

    def answer(self, seconds):
        """What the process says of the cell at hand."""
        ends, silence = time.monotonic() + seconds, SILENCE
        while True:
            left = ends - time.monotonic()
            wait = min(left, silence * self.patience)
            try:
                line = self.lines.get(timeout=max(0.1, wait))
            except queue.Empty:
                if wait == left:
                    return {"verdict": "failed", "reason": f"took more than {seconds:.0f} s"}
                return hung(wait)
            if not line:
                return {"verdict": "failed", "reason": f"the process ended ({self.process.wait()})"}
            found = json.loads(line)
            if "alive" not in found:
                return found
            silence = found["alive"]

    def run(self, cell, seconds):
        if self.process is None or self.process.poll() is not None:
            self.begin()
        try:
            self.process.stdin.write(json.dumps(cell) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # it ends, which its output says
            pass
        found = self.answer(seconds)
        if found["verdict"] == "failed":
            self.end()
        return found

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
