#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/choices.md: which strategy burst-choose-strategy chooses for the
attention of some models on nodes of GPUs. usage: choices.py BURST_OPT [OPTION...]"""

import re
import subprocess
import sys

# Query heads, key heads, head dim of queries and keys, of values.
MODELS = {
    "Llama-3-8B": (32, 8, 128, 128),
    "Llama-3-405B": (128, 8, 128, 128),
    "Qwen3-235B": (64, 4, 128, 128),
    "DeepSeek-V3, decompressed": (128, 128, 192, 128),
}
# GPUs, the grid, positions of the sequence.
GRIDS = [(8, "1x8", 1 << 17), (64, "8x8", 1 << 20), (512, "64x8", 1 << 23)]
PASSES = ("prefill", "training", "decode")
DECODED = 8 # sequences at a time, a query of each

MODULE = """module attributes {{dlti.target_system_spec = #dlti.target_system_spec<
  "mesh" = #dlti.target_device_spec<"burst.flops" = 6.0e14 : f64, "burst.memory" = 4.0e10 : f64>,
  "mesh.0" = #dlti.target_device_spec<"burst.bandwidth" = 5.0e10 : f64, "burst.latency" = 1.0e-5 : f64>,
  "mesh.1" = #dlti.target_device_spec<"burst.bandwidth" = 4.0e11 : f64, "burst.latency" = 5.0e-6 : f64>>}} {{
  shard.grid @mesh(shape = {grid})
  func.func @attention(%q: {q}, %k: {k}, %v: {v}, %do: {o}) -> ({results}) {{
    %o, %lse = burst.attention %q, %k, %v mask causal sequence <@mesh, zigzag>
        : ({q}, {k}, {v}) -> ({o}, {l})
{backward}    return {returned} : {results}
  }}
}}
"""

BACKWARD = """    %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal
        sequence <@mesh, zigzag> : ({q}, {k}, {v}, {o}, {l}, {o}) -> ({q}, {k}, {v})
"""


def module(model, grid, length, kind):
    heads, key_heads, dim, value_dim = MODELS[model]
    batch, queries = (DECODED, 1) if kind == "decode" else (1, length)

    def tensor(*sizes, element="bf16"):
        return f"tensor<{'x'.join(map(str, sizes))}x{element}>"
    types = dict(q=tensor(batch, queries, heads, dim), k=tensor(batch, length, key_heads, dim),
                 v=tensor(batch, length, key_heads, value_dim),
                 o=tensor(batch, queries, heads, value_dim),
                 l=tensor(batch, heads, queries, element="f32"))
    results, returned, backward = types["o"], "%o", ""
    if kind == "training":
        results = ", ".join(types[name] for name in "oqkv")
        returned, backward = "%o, %dq, %dk, %dv", BACKWARD.format(**types)
    return MODULE.format(grid=grid, results=results, returned=returned, backward=backward, **types)


def strategies(burst_opt, text):
    """By attention, what each strategy costs: the name, whether it is chosen, numbers."""
    done = subprocess.run([*burst_opt, "--burst-expand-names", "--burst-derive-bounds",
                           "--burst-choose-strategy", "--remarks-filter=strategy", "-o",
                           "/dev/null"],
                          input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found = {}
    for line in done.stderr.split("\n"):
        remark = re.match(r"<stdin>:(\d+):.*?\] (chosen|alternative|ruled-out) .* strategy=(.*)$",
                          line)
        if remark:
            numbers = {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", line)}
            name = remark[3].strip('"')
            found.setdefault(int(remark[1]), []).append((name, remark[2], numbers))
    return [found[line] for line in sorted(found)]


def size(count):
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return ""


def time(microseconds):
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} us"


def row(burst_opt, model, kind, gpus, grid, length):
    chosen, seconds, others = [], 0.0, []
    numbers = {"bytes": 0.0, "bytes_axis_0": 0.0, "compute_us": 0.0, "exposed_us": 0.0,
               "peak_bytes": 0.0}
    for candidates in strategies(burst_opt, module(model, grid, length, kind)):
        (name, _, own), = [each for each in candidates if each[1] == "chosen"]
        chosen.append(name)
        for key in numbers:
            # One node has no bytes between nodes, and nothing by axis.
            value = own.get(key, 0.0) if key == "bytes_axis_0" else own[key]
            numbers[key] = max(numbers[key], value) if key == "peak_bytes" else \
                numbers[key] + value
        seconds += own["compute_us"] + own["exposed_us"]
        ring = [each[2] for each in candidates if each[0] == "ring_kv"]
        others.append(ring[0]["compute_us"] + ring[0]["exposed_us"])
    texts = [f"`{name}`" for name in (chosen[:1] if len(set(chosen)) == 1 else chosen)]
    return [model, kind, str(gpus), f"{length // 1024}K", ", then ".join(texts),
            size(numbers["bytes"]), size(numbers["bytes_axis_0"]), size(numbers["peak_bytes"]),
            time(numbers["compute_us"]), time(numbers["exposed_us"]),
            f"{sum(others) / seconds:.2f}"]


def main():
    burst_opt = sys.argv[1:]
    print(INTRODUCTION, end="")
    for kind in PASSES:
        print(f"\n## {kind.capitalize()}\n")
        header = ["model", "pass", "GPUs", "positions", "chosen", "sent", "to other nodes",
                  "memory", "computes", "waits", "ring_kv / chosen"]
        del header[1]
        print("| " + " | ".join(header) + " |")
        print("|" + "---|" * len(header))
        for model in MODELS:
            # One rank of 64 that stand for 512 would have a query of each of 8.
            for gpus, grid, length in GRIDS[:2] if kind == "decode" else GRIDS:
                cells = row(burst_opt, model, kind, gpus, grid, length)
                del cells[1]
                print("| " + " | ".join(cells) + " |")


INTRODUCTION = """# What is chosen for known models

What `burst-choose-strategy` chooses for the attention of one layer, bf16 and causal, and what its
model of the machine says it costs: nothing here is measured. The machine is nodes of 8 H100, 600
TFLOP/s each, of whose memory 40 GB are free. A GPU has 400 GB/s and 5 us to others of its node and a
network card of 400 Gbit/s, 50 GB/s and 10 us, to other nodes. The grid is nodes x 8, and 16K
positions are on each GPU. In decode, which is one query of each of 8 sequences against a cache of so
many positions, these are zigzag as in the others.

*sent* is what a GPU sends on average, *to other nodes* what of that leaves its node, *memory* what it
holds of this attention at most, *waits* what no computation hides. The last column is the time with
`ring_kv`, one ring over all GPUs, in that of the choice. Grids of more than 64 GPUs are costed as 64,
which says too little of decode.

`scripts/docs` writes this page, and a test compares it.
"""

if __name__ == "__main__":
    main()
