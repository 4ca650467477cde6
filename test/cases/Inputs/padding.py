# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""padding.py FILE BATCH POSITIONS LENGTH: q, k and v of 2 heads of 8 in bf16, of
which all positions from LENGTH on are NaN, and length."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools/burst-run/Inputs"))
import tensors

path, batch, positions, length = sys.argv[1], *map(int, sys.argv[2:])
made = {"length": ("I64", [], [length])}
for name in "qkv":
    shape = [batch, positions, 2, 8]
    values = tensors.normal(name, shape)
    for b in range(batch):
        for x in range(length * 16, positions * 16):
            values[b * positions * 16 + x] = math.nan
    made[name] = ("BF16", shape, values)
tensors.write(path, made)
