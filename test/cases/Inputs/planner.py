# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""planner.py KIND RANKS POSITIONS [WINDOW]: checks a plan on the standard input
against closed forms, in positions times hops summed over the ranks."""

import json
import sys

kind, parts, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
plan = json.load(sys.stdin)
ranks = plan["per_rank"]
position = 2 * 2 * 128 * 2  # key and value, 2 heads of 128, bf16
n = size // parts

if kind == "full":
    wanted = size * (parts - 1)
elif kind == "contiguous":
    # Going up, chunk c is needed by the ranks above it.
    wanted = sum(n * (parts - 1 - c) for c in range(parts))
elif kind == "zigzag":
    # Going down: the second chunk of owner o is needed by the ranks below it, the
    # first one by all.
    wanted = sum(n // 2 * (parts - 1) + n // 2 * o for o in range(parts))
else:
    window = int(sys.argv[4])
    hops = -(-window // n)
    wanted = sum(n * min(hops, parts - 1 - c) for c in range(parts))

assert plan["ranks"] == parts == len(ranks), plan
assert sum(rank["bytes_sent"] for rank in ranks) == wanted * position, \
    (sum(rank["bytes_sent"] for rank in ranks), wanted * position)
for rank in ranks:
    by_tensor = rank["bytes_sent_by_tensor"]
    assert set(by_tensor) <= {"arg1", "arg2"}, rank  # queries stay
    assert sum(by_tensor.values()) == rank["bytes_sent"], rank
    assert rank["hops"] == parts - 1, rank
    assert rank["peak_slices"] <= 2, rank  # P5: not a matter of how many ranks
    if kind == "full":
        assert rank["bytes_sent"] == n * (parts - 1) * position or size % parts, rank
