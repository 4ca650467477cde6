# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the numbers of strategies.test."""

import json
import sys

cells = json.load(open(sys.argv[1]))["cells"]
assert len(cells) == 44, len(cells)
for cell in cells:
    numbers = cell["numbers"]
    if cell["note"].startswith("refused"):
        assert " ulysses" in cell["name"] and "P=8" in cell["name"] and not numbers, cell
        continue
    assert set(numbers) == {"limit GFLOP/s", "burst GFLOP/s", "% of limit", "ms", "GFLOP", "rounds",
                            "bytes sent per rank", "peak bytes of a rank"}, cell
    # Two products forward and five backward, of the pairs in heads of 128.
    is_decode = "decode" in cell["name"]
    pairs = 256 if is_decode else 256 * 257 / 2
    flops = (10 if "backward" in cell["name"] else 4) * pairs * (28 if "uneven" in cell["name"] else 4) * 128
    assert abs(numbers["GFLOP"] * 1e9 - flops) < 1, cell
    assert numbers["rounds"] == (10 if is_decode else 1), cell
