# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""usage: gpu_check.py SOURCE DIRECTORY

Writes small cells of every kind to DIRECTORY, and what they take."""

import json
import os
import sys

source, directory = sys.argv[1:]
sys.path.insert(0, os.path.join(source, "bench", "gpu"))

import primitives
import programs


def write(name, text):
    path = os.path.join(directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def portable(cell):
    return {**cell, "rounds": 1, "programs": {"portable": cell["programs"]["portable"]}}


small = {"heads": 2, "key_heads": 1, "dim": 64}
made = {"forward-causal-64": programs.text(mask="causal", **small),
        "backward-causal-64": programs.text(mask="causal", backward=True, **small),
        "ring2-causal-64": programs.text(2, mask="causal", **small)}
cells = [
    {"name": "truth small", "kind": "truth", "program": "small"},
    *map(programs.primitive_cell, ("functions", "mma_rows_bf16_64_64", "wgmma_tiles_bf16_64_64",
                                   "tma_16_80")),
    {"name": "ceiling copy", "kind": "copy", "bytes": 256},
    {"name": "ceiling matmul", "kind": "matmul", "size": 8, "zeros": False},
    programs.peak_cell("peak_mma", False), programs.peak_cell("peak_wgmma_tiles_64", True),
    {**programs.speed_cell(64, True, False, 24, 2, 1), "rounds": 1},
    portable(programs.speed_cell(64, True, True, 24, 2, 1)),
    portable(programs.ring_cell(2, 64, 64, 2, 1)),
    programs.processes_cell("ring2-causal-64.portable", 2, 64),
    programs.processes_cell("ring2-causal-64.portable", 2, 64, kills=True),
    programs.processes_cell("ring2-causal-64.cpu", 2, 64, transport="tcp", gpu=None),
    programs.processes_cell("ring2-causal-64.cpu", 2, 64, transport="tcp", gpu=None, kills=True),
    {"name": "torch eager", "kind": "torch", "path": "eager"},
    {**programs.counters_cell("forward-causal-64.hopper", "attend", 24, 2, 1)},
    {**programs.speed_cell(64, True, False, 8192, 2, 1), "large": True},
]
for name, text in made.items():
    write(f"speed/{name}.mlir", text)
write("truth/small.mlir", programs.text(2, queries=40, keys=40, heads=2, key_heads=1, dim=64))
write("cells.json", json.dumps(cells))
primitives.compile_all(source, os.path.join(directory, "primitives"), few=True)
