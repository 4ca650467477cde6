#!/usr/bin/env python3
"""Checks and measures burst on a GPU, with what scripts/gpu-check prepared.

usage: check.py [DIRECTORY] [--only=REGEX] [--seconds=N] [--out=DIRECTORY] [--emulated]

DIRECTORY (that of this file) holds burst-run, libburst_runtime.so, *.mlir and *.so. Cells
run one after the other: what is true first, then what is fast. Each prints one line; those
of the file gpu.json in --out that passed are not run again. At the end gpu.json and gpu.md
are there, also if the time (570 s) was not enough for all. --emulated: there is no GPU, and
nothing is measured.
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# What the bars are about first.
SEQUENCES = (8192, 32768, 16384, 2048, 4096)
HEADS, KEY_HEADS = 32, 8


# ---------------------------------------------------------------------------
# What is true
# ---------------------------------------------------------------------------

def check_truth(directory, name, seconds):
    """burst-run compiles a program for this GPU and compares all rows with the fp64 oracle."""
    command = [os.path.join(directory, "burst-run"), os.path.join(directory, "truth", name + ".mlir"),
               "--device=cuda", "--check", "--json"]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    cell = {"seconds": round(time.monotonic() - begin, 2)}
    if done.returncode != 0 and not done.stdout.startswith("{"):
        return {**cell, "verdict": "failed", "reason": done.stderr.strip()[-2000:]}
    report = json.loads(done.stdout)
    ratios = [entry["worst_error_over_bound"] for entry in report["results"].values()]
    worst = max((r if isinstance(r, (int, float)) else math.inf) for r in ratios)
    sent = report["bytes_sent"] == report["bytes_planned"]
    ok = report["pass"] and sent
    cell.update(verdict="passed" if ok else "failed",
                worst_error_over_bound=worst if math.isfinite(worst) else "inf")
    if not sent:
        cell["reason"] = f"sent {report['bytes_sent']}, planned {report['bytes_planned']}"
    return cell


# ---------------------------------------------------------------------------
# What is fast
# ---------------------------------------------------------------------------

class Bench:
    """Cells of one process: an error of the GPU ends it, and the next one goes on."""

    def __init__(self, directory):
        import torch
        import runtime
        self.torch, self.directory = torch, directory
        torch.cuda.init()
        self.runtime = runtime.Runtime(os.path.join(directory, "libburst_runtime.so"))
        self.programs = {}

    def program(self, name):
        if name not in self.programs:
            self.programs[name] = self.runtime.load(os.path.join(self.directory, name + ".so"))
        return self.programs[name]

    def tensor(self, *shape):
        return self.torch.randn(*shape, device="cuda", dtype=self.torch.bfloat16)

    def empty(self, *shape, dtype=None):
        return self.torch.empty(*shape, device="cuda", dtype=dtype or self.torch.bfloat16)

    def time_each(self, calls, rounds=15):
        """Milliseconds of each call, interleaved: a list of samples by name."""
        torch = self.torch
        samples = {name: [] for name in calls}
        for call in calls.values():
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        # As many in a row as take 20 ms: what asks for them shall not be seen.
        counts = {}
        for name, call in calls.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            counts[name] = max(1, min(50, int(20 / max(begin.elapsed_time(end), 0.01))))
        for _ in range(rounds):
            for name, call in calls.items():
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                for _ in range(counts[name]):
                    call()
                end.record()
                torch.cuda.synchronize()
                samples[name].append(begin.elapsed_time(end) / counts[name])
        return samples

    def peers(self, q, k, v, causal, gradient=None):
        """PyTorch's attention by cuDNN, and FlashAttention-2, which its flash backend is."""
        import torch.nn.functional as F
        from torch.nn.attention import SDPBackend, sdpa_kernel
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        found, reasons = {}, {}
        for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION),
                              ("flash2", SDPBackend.FLASH_ATTENTION)):
            def forward(backend=backend, q=q, k=k, v=v):
                with sdpa_kernel(backend):
                    return F.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                          enable_gqa=True)
            try:
                if gradient is None:
                    with self.torch.no_grad():
                        forward()
                    found[name] = self.without_gradients(forward)
                else:
                    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
                    out = forward(q=leaves[0], k=leaves[1], v=leaves[2])
                    upstream = gradient.transpose(1, 2)

                    def backward(out=out, leaves=leaves):
                        self.torch.autograd.grad(out, leaves, upstream, retain_graph=True)
                    backward()
                    found[name] = backward
            except RuntimeError as error:
                reasons[name] = str(error).splitlines()[0]
        return found, reasons

    def clock_and_power(self):
        """MHz and W; None where PyTorch has no library to ask."""
        try:
            return self.torch.cuda.clock_rate(), self.torch.cuda.power_draw() / 1000
        except (ImportError, RuntimeError):
            return None, None

    def compare(self, cell, out, q, k, v, causal):
        """A few rows with attention in f64: what was measured was the right thing."""
        torch = self.torch
        length, group = q.size(1), HEADS // KEY_HEADS
        for head in (0, HEADS - 1):
            rows = torch.randint(length, (64,), device="cuda")
            keys, values = (x[0, :, head // group].double() for x in (k, v))
            scores = q[0, rows, head].double() @ keys.T / math.sqrt(q.size(3))
            if causal:
                hidden = torch.arange(length, device="cuda")[None, :] > rows[:, None]
                scores.masked_fill_(hidden, -math.inf)
            weights = scores.softmax(-1)
            error = (out[0, rows, head].double() - weights @ values).abs()
            # Weights and results are rounded to 8 bits.
            bound = 2.0**-8 * (weights @ values.abs() + (weights @ values).abs()) + 1e-5
            ratio = float((error / bound).max())
            cell["worst_error_over_bound"] = max(cell.get("worst_error_over_bound", 0), ratio)
            if not ratio <= 1:
                cell["verdict"] = "failed"

    def without_gradients(self, call):
        def run():
            with self.torch.no_grad():
                call()
        return run

    def speed(self, name, length):
        torch = self.torch
        backward, causal = name.startswith("backward"), "-causal-" in name
        dim = int(name.rsplit("-", 1)[1])
        torch.manual_seed(0)
        q = self.tensor(1, length, HEADS, dim)
        k, v = self.tensor(1, length, KEY_HEADS, dim), self.tensor(1, length, KEY_HEADS, dim)
        tensors = {"q": q, "k": k, "v": v, "o": self.empty(1, length, HEADS, dim),
                   "lse": self.empty(1, HEADS, length, dtype=torch.float32)}
        stream = self.runtime.stream(torch.cuda.current_stream().cuda_stream)
        gradient = None
        forward = self.program(name.replace("backward", "forward"))
        shapes = {key: tuple(value.shape) for key, value in tensors.items()}
        bound_forward = forward.bind(tensors, forward.extents(shapes))
        forward.run(bound_forward, stream)
        program, bound = forward, bound_forward
        if backward:
            gradient = self.tensor(1, length, HEADS, dim)
            tensors.update(do=gradient, dq=torch.empty_like(q), dk=torch.empty_like(k),
                           dv=torch.empty_like(v))
            shapes = {key: tuple(value.shape) for key, value in tensors.items()}
            program = self.program(name)
            bound = program.bind(tensors, program.extents(shapes))
        calls = {"burst": lambda: program.run(bound, stream)}
        peers, reasons = self.peers(q, k, v, causal, gradient)
        calls.update(peers)
        samples = self.time_each(calls)
        clock, power = self.clock_and_power()
        self.runtime.synchronize(stream)
        flops = (10 if backward else 4) * length * length * dim * HEADS / (2 if causal else 1)
        cell = {"verdict": "passed", "clock_mhz": clock, "watts": power, "without": reasons,
                "ms": {}, "tflops": {}}
        for peer, times in samples.items():
            times.sort()
            cell["ms"][peer] = [times[len(times) // 20], statistics.median(times),
                                times[-1 - len(times) // 20]]
            cell["tflops"][peer] = flops / statistics.median(times) / 1e9
        if not backward:
            self.compare(cell, tensors["o"], q, k, v, causal)
        for peer in peers:
            cell[f"over_{peer}"] = cell["tflops"]["burst"] / cell["tflops"][peer]
        return cell

    def ring(self, name, length):
        """All ranks as threads that share the GPU, over one rank alone."""
        torch = self.torch
        ranks = int(re.match(r"ring(\d+)", name).group(1))
        program, alone = self.program(name), self.program("forward-causal-128")
        if program.num_ranks != ranks:
            return {"verdict": "failed", "reason": f"{program.num_ranks} ranks, wanted {ranks}"}

        def tensors(length):
            q = self.tensor(1, length, HEADS, 128)
            k, v = self.tensor(1, length, KEY_HEADS, 128), self.tensor(1, length, KEY_HEADS, 128)
            return {"q": q, "k": k, "v": v, "o": torch.empty_like(q),
                    "lse": self.empty(1, HEADS, length, dtype=torch.float32)}

        whole = {"q": (1, length, HEADS, 128), "k": (1, length, KEY_HEADS, 128),
                 "v": (1, length, KEY_HEADS, 128), "o": (1, length, HEADS, 128),
                 "lse": (1, HEADS, length)}
        mine = [tensors(length // ranks) for _ in range(ranks)]
        bound = [program.bind(shard, program.extents(whole)) for shard in mine]
        cuda_streams = [torch.cuda.Stream() for _ in range(ranks)]
        streams = [self.runtime.stream(stream.cuda_stream) for stream in cuda_streams]
        transports = self.runtime.transports(ranks)
        torch.cuda.synchronize()

        def run_ranks():
            errors = []

            def run(rank):
                try:
                    program.run(bound[rank], streams[rank], rank, transports[rank])
                except Exception as error:  # of a thread: told by the one that started it
                    errors.append(error)
            threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if errors:
                raise errors[0]
            for stream in streams:
                self.runtime.synchronize(stream)

        one = tensors(length)
        bound_one = alone.bind(one, alone.extents(whole))
        stream = self.runtime.stream(torch.cuda.current_stream().cuda_stream)

        def run_alone():
            alone.run(bound_one, stream)
            self.runtime.synchronize(stream)

        times = {"ranks": [], "alone": []}
        for repeat in range(12):
            for key, call in (("ranks", run_ranks), ("alone", run_alone)):
                begin = time.perf_counter()
                call()
                if repeat >= 2:
                    times[key].append(1000 * (time.perf_counter() - begin))
        medians = {key: statistics.median(values) for key, values in times.items()}
        return {"verdict": "passed", "ms": medians,
                "over_alone": medians["ranks"] / medians["alone"]}


def work(directory):
    """Takes the names of cells from the standard input, and answers each with a line."""
    sys.path.insert(0, directory)
    bench = None
    for line in sys.stdin:
        name, length = json.loads(line)
        try:
            bench = bench or Bench(directory)
            cell = (bench.ring if name.startswith("ring") else bench.speed)(name, length)
        except Exception as error:  # whatever it is belongs to the cell
            cell = {"verdict": "failed", "reason": f"{type(error).__name__}: {error}"}
        print(json.dumps(cell), flush=True)


class Worker:
    """A process that measures, started anew where it ended or was too slow."""

    def __init__(self, directory):
        self.directory, self.process = directory, None

    def run(self, cell, seconds):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), self.directory, "--worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process = self.process
        process.stdin.write(json.dumps(cell) + "\n")
        process.stdin.flush()
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if line:
            return json.loads(line)
        return {"verdict": "failed", "reason": f"the process ended ({process.wait()}) "
                                               f"or took more than {seconds:.0f} s"}

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


# ---------------------------------------------------------------------------
# All cells
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
    except OSError:
        pass
    try:
        import torch
        found.update(torch=torch.__version__, cuda=torch.version.cuda,
                     cudnn=torch.backends.cudnn.version())
    except ImportError:
        pass
    return found


def ratio(cell):
    found = cell.get("worst_error_over_bound", "")
    return f"{found:.3f}" if isinstance(found, float) else str(found)


def describe(name, cell):
    text = f"{cell['verdict']:8} {name:40}"
    if "worst_error_over_bound" in cell:
        text += f" err/bound {ratio(cell)}"
    if "tflops" in cell:
        for peer, (low, median, high) in cell["ms"].items():
            text += f" | {peer} {low:.3f}/{median:.3f}/{high:.3f} ms {cell['tflops'][peer]:.0f} TFLOP/s"
        if cell["clock_mhz"] is not None:
            text += f" | {cell['clock_mhz']} MHz {cell['watts']:.0f} W"
        for key in ("over_cudnn", "over_flash2"):
            if key in cell:
                text += f" | {key} {cell[key]:.2f}"
    if "over_alone" in cell:
        text += f" {cell['ms']['ranks']:.2f} ms, alone {cell['ms']['alone']:.2f}: {cell['over_alone']:.3f}"
    return text + (f" {cell['reason']}" if "reason" in cell else "")


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
    lines += ["", "| cell | verdict | error/bound | ms | TFLOP/s | cuDNN | FlashAttention-2 |",
              "|---|---|---|---|---|---|---|"]
    for name, cell in report["cells"].items():
        ms = cell.get("ms", {}).get("burst", [None] * 2)[1] if "tflops" in cell else None
        tflops = cell.get("tflops", {})

        def number(value, form):
            return "" if value is None else format(value, form)
        lines.append("| " + " | ".join([
            name, cell["verdict"], ratio(cell), number(ms, ".3f"),
            number(tflops.get("burst"), ".0f"), number(tflops.get("cudnn"), ".0f"),
            number(tflops.get("flash2"), ".0f")]) + " |")
    return "\n".join(lines)


def cells(directory):
    for file in sorted(os.listdir(os.path.join(directory, "truth"))):
        if file.endswith(".mlir"):
            yield "truth " + file.removesuffix(".mlir"), None
    names = sorted(file.removesuffix(".so") for file in os.listdir(directory)
                   if file.endswith(".so") and not file.startswith("lib"))
    for length in SEQUENCES:
        for name in sorted((n for n in names if not n.startswith("ring")),
                           key=lambda n: ("-128" not in n, n)):
            yield f"speed {name} {length}", [name, length]
    for name in names:
        if name.startswith("ring"):
            yield f"speed {name} 16384", [name, 16384]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("directory", nargs="?", default=HERE)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=570)
    parser.add_argument("--out", default=".")
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--worker", action="store_true")
    options = parser.parse_args()
    if options.worker:
        return work(options.directory)
    begin = time.monotonic()
    path = os.path.join(options.out, "gpu.json")
    report = {"versions": versions(options.directory), "cells": {}}
    if os.path.exists(path):
        with open(path) as file:
            report["cells"] = {name: cell for name, cell in json.load(file)["cells"].items()
                               if cell["verdict"] == "passed"}
    worker = Worker(options.directory)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    skipped = []
    for name, cell in cells(options.directory):
        if not re.search(options.only, name):
            continue
        left = options.seconds - (time.monotonic() - begin)
        if name in report["cells"]:
            counts["passed"] += 1
            continue
        if left < 5 or (options.emulated and cell):
            counts["skipped"] += 1
            skipped.append(name)
            continue
        try:
            found = (worker.run(cell, min(left, 90)) if cell else
                     check_truth(options.directory, name.split()[1], min(left, 120)))
        except subprocess.TimeoutExpired as error:
            found = {"verdict": "failed", "reason": f"took more than {error.timeout:.0f} s"}
        report["cells"][name] = found
        counts[found["verdict"]] += 1
        print(describe(name, found), flush=True)
        write(options.out, report)
    worker.end()
    write(options.out, report)
    for name in skipped:
        print(f"skipped  {name}")
    ratios = [cell["over_cudnn"] for cell in report["cells"].values() if "over_cudnn" in cell]
    if ratios:
        print(f"over cuDNN: worst {min(ratios):.2f}, best {max(ratios):.2f}")
    print(f"{time.monotonic() - begin:.0f} s used")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
