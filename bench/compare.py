# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst from Python beside what else computes attention on CPUs. See scripts/bench-python --help.

Each peer is a process of its own, which sleeps while another one runs; rounds go over all of them
in turn, and figures are medians over the rounds.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ("burst", "torch", "flex", "openvino", "onnxruntime", "jax")
# The largest error of a result, of its largest number, by type.
BOUNDS = {"f32": 1e-4, "bf16": 5e-2}


def cell(kind, mask, queries, keys, dim, heads=8, key_heads=8, type="f32"):
    return {"kind": kind, "mask": mask, "queries": queries, "keys": keys, "dim": dim,
            "heads": heads, "key_heads": key_heads, "type": type}


def cells(quick):
    if quick:
        return [cell("forward", "causal", 256, 256, 64)]
    square = [("forward", mask, length, length, dim) for dim in (64, 128)
              for length in (512, 2048, 4096) for mask in ("full", "causal")]
    return [*(cell(*x) for x in square),
            cell("forward", "causal", 2048, 2048, 64, 8, 2),
            cell("forward", "documents", 2048, 2048, 64),
            cell("forward", "full", 1, 4096, 128), cell("forward", "full", 1, 4096, 128, 32, 8),
            *(cell("backward", "causal", length, length, 64) for length in (512, 2048)),
            cell("backward", "full", 2048, 2048, 128),
            *(cell(kind, "causal", 2048, 2048, 128, type="bf16")
              for kind in ("forward", "backward"))]


def name_of(x):
    heads = f"{x['heads']}" if x["heads"] == x["key_heads"] else f"{x['heads']}/{x['key_heads']}"
    return (f"{x['kind']} {x['type']} {x['mask']} {x['queries']} x {x['keys']}, {heads} heads of "
            f"{x['dim']}")


class Peer:
    def __init__(self, name, command, threads):
        places = ",".join(f"{{{n}}}" for n in range(threads))
        # Threads that wait for the next round sleep: spinning takes the processor of others.
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_PLACES": places,
                       "OMP_PROC_BIND": "true", "OMP_WAIT_POLICY": "PASSIVE",
                       "KMP_BLOCKTIME": "0", "GOMP_SPINCOUNT": "0", "JAX_PLATFORMS": "cpu",
                       "ORT_DISABLE_TELEMETRY": "1"}
        self.name = name
        self.process = subprocess.Popen([*command, name], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=environment)
        greeting = self.read()
        self.missing = greeting.get("missing") or greeting.get("error")
        self.version = greeting.get("name", f"missing: {self.missing}")

    def read(self):
        line = self.process.stdout.readline()
        try:
            return json.loads(line)
        except ValueError:
            return {"error": f"ended with status {self.process.wait()}" if not line
                    else f"answered {line.strip()[:80]}"}

    def ask(self, question):
        if self.missing:
            return {"error": f"missing: {self.missing}"}
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": f"ended with status {self.process.wait()}"}
        return self.read()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(peers, question, rounds):
    """By peer: the median of seconds and their spread, or why there is none."""
    found = {peer.name: {"seconds": []} for peer in peers}
    for n in range(rounds):
        for peer in peers:
            entry = found[peer.name]
            if "error" in entry:
                continue
            answer = peer.ask({**question, "runs": 1})
            if "seconds" not in answer:
                entry["error"] = answer.get("error", "no answer")
            elif not answer["error"] <= BOUNDS[question["type"]]:
                entry["error"] = f"wrong: off by {answer['error']:.0e}"
            else:
                entry["seconds"] += answer["seconds"]
                entry["off_by"] = answer["error"]
    for entry in found.values():
        if "error" not in entry:
            entry["median"] = statistics.median(entry["seconds"])
            entry["spread"] = (max(entry["seconds"]) - min(entry["seconds"])) / entry["median"]
    return found


def over_ranks(rounds, quick):
    """burst and all-gather over 4 processes of one thread."""
    sizes = [8, 2, 256 if quick else 4096, 64, rounds]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
               "4", str(ROOT / "bench/peers/ranks.py"), *map(str, sizes)]
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["no answer"])[-1]}
    found = json.loads(lines[-1])
    return {"sizes": sizes, "difference": found["difference"],
            **{name: {kind: statistics.median(x) for kind, x in found[name].items()}
               for name in ("burst", "gather")}}


def text_of(entry):
    if "median" in entry:
        return f"{entry['median'] * 1e3:.2f}"
    return "none" if entry["error"].startswith("no ") else entry["error"].split(":")[0]


def table(report):
    peers = [x for x in PEERS if x in report["peers"]]
    lines = ["# burst from Python beside its peers", "",
             f"{report['date']}, {report['processor']}, {report['threads']} threads, burst "
             f"{report['commit']}. Medians of {report['rounds']} rounds in turn, in ms; each peer "
             "in a process of its own. `burst /` is the time of the fastest other one over that "
             "of burst.", "",
             "| cell | " + " | ".join(peers) + " | burst / |",
             "|---|" + "---|" * (len(peers) + 1)]
    ratios, reasons = [], {}
    for name, found in report["cells"].items():
        others = [found[x]["median"] for x in peers if x != "burst" and "median" in found[x]]
        ratio = ""
        if others and "median" in found.get("burst", {}):
            ratios.append(min(others) / found["burst"]["median"])
            ratio = f"{ratios[-1]:.2f}"
        lines.append(f"| {name} | " + " | ".join(text_of(found[x]) for x in peers) +
                     f" | {ratio} |")
        for x in peers:
            if "error" in found[x]:
                reasons.setdefault((x, found[x]["error"]), []).append(name)
    if ratios:
        lines += ["", f"burst is ahead of all others in {sum(x > 1 for x in ratios)} of "
                  f"{len(ratios)} cells; the median is {statistics.median(ratios):.2f}, the least "
                  f"{min(ratios):.2f}."]
    ranks = report.get("ranks")
    if ranks and "error" in ranks:
        lines += ["", f"4 processes: {ranks['error']}"]
    elif ranks:
        heads, key_heads, length, dim, _ = ranks["sizes"]
        lines += ["", f"4 processes of one thread, causal, {length} positions, "
                  f"{heads}/{key_heads} heads of {dim}, f32 (results differ by "
                  f"{ranks['difference']:.0e}):", "",
                  "| | burst, zigzag | all-gather over gloo and SDPA | ratio |", "|---|---|---|---|"]
        for kind, what in (("forward", "forward"), ("both", "forward and backward")):
            a, b = ranks["burst"][kind], ranks["gather"][kind]
            lines.append(f"| {what} | {a * 1e3:.1f} ms | {b * 1e3:.1f} ms | {b / a:.2f} |")
    lines += ["", *(f"* {x}: {version}" for x, version in report["peers"].items())]
    lines += [f"* {peer}: {reason} ({len(names)} cells)" for (peer, reason), names in
              reasons.items()]
    return "\n".join(lines) + "\n"


def write(path, text):
    new = pathlib.Path(f"{path}.new")
    new.write_text(text)
    new.replace(path)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(prog="bench-python")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--peer-command", default="")
    options = parser.parse_args()
    wanted = options.peers.split(",")
    for name in wanted:
        if name not in PEERS and not options.peer_command:
            parser.error(f"--peers: {name} is not known; peers are {', '.join(PEERS)}")
    rounds = options.rounds or (3 if options.quick else 9)
    questions = [x for x in cells(options.quick) if options.only in name_of(x)]
    if not questions and options.only != "ranks":
        parser.error(f"--only {options.only}: no cell has it in its name")
    command = options.peer_command.split() or [sys.executable,
                                               str(ROOT / "bench/peers/attention.py")]
    peers = [Peer(name, command, options.threads) for name in wanted]
    report = {"date": datetime.date.today().isoformat(), "processor": processor(),
              "threads": options.threads, "rounds": rounds,
              "commit": subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"],
                                       capture_output=True, text=True).stdout.strip(),
              "peers": {peer.name: peer.version for peer in peers}, "cells": {}}

    def keep():
        if options.out:
            write(options.out + ".json", json.dumps(report, indent=1) + "\n")
            write(options.out + ".md", table(report))

    for question in questions:
        report["cells"][name_of(question)] = found = measure(peers, question, rounds)
        print(f"{name_of(question)}: " + ", ".join(f"{x} {text_of(y)}" for x, y in found.items()),
              flush=True)
        keep()
    for peer in peers:
        peer.end()
    if options.only in ("", "ranks") and "burst" in wanted and not options.peer_command:
        report["ranks"] = over_ranks(rounds, options.quick)
        keep()
    print()
    print(table(report), end="")


if __name__ == "__main__":
    main()
