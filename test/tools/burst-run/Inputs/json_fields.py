# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the JSON of json.test on the standard input: its fields, all of them, and
what follows from the problem."""

import json
import sys

kind = sys.argv[1]
found = json.load(sys.stdin)
is_checked = kind != "unchecked"

fields = {"program", "ranks", "results", "bytes_sent", "bytes_planned", "peak_bytes",
          "peak_bytes_planned", "packing_bytes_planned", "pairs_computed", "pairs_dropped",
          "proved", "seconds"}
assert set(found) == fields | ({"pass"} if is_checked else set()), sorted(found)
assert found["program"] == "f"
parts = found["ranks"]

phases = {"parse", "lower", "bind", "prove"}
phases |= {"interpret"} if kind == "interpreted" else {"compile", "run"}
phases |= {"check"} if is_checked else set()
phases |= {"write"} if kind == "rows" else set()
assert set(found["seconds"]) == phases, found["seconds"]
assert all(0 <= seconds < 60 for seconds in found["seconds"].values()), found["seconds"]

for name in ("bytes_sent", "peak_bytes"):
    assert len(found[name]) == parts, found[name]
    assert found[name] == found[name.replace("sent", "planned") if "sent" in name
                               else name + "_planned"], name

results = found["results"]
measures = {"max_abs_error", "worst_error_over_bound", "elements_checked",
            "elements_not_determined", "elements_nan", "pass"}
for entry in results.values():
    assert set(entry) == {"shape"} | (measures if is_checked else set()), entry

if kind == "nan":
    assert parts == 2 and found["pass"] is False
    for entry in results.values():
        assert entry["pass"] is False, entry
        assert entry["max_abs_error"] == "inf" == entry["worst_error_over_bound"], entry
    sys.exit()

assert parts == 4
assert {name: entry["shape"] for name, entry in results.items()} == \
    {"o": [2, 16, 4, 8], "lse": [2, 4, 16]}, results
if is_checked:
    assert found["pass"] is True
    rows = 4 if kind == "rows" else 2 * 4 * 16
    assert results["o"]["elements_checked"] == rows * 8, results
    assert results["lse"]["elements_checked"] == rows, results
    for entry in results.values():
        assert entry["pass"] is True and 0 <= entry["worst_error_over_bound"] <= 1, entry
        assert 0 <= entry["max_abs_error"] < 0.1, entry

# Zigzag, causal: the first chunk of each owner travels 3 hops, the second one as
# many as there are ranks below its owner; keys and values of 2 positions each.
chunk = 2 * 2 * 2 * 8 * 2 * 2  # both, positions, heads, dim, bf16, batch
assert sum(found["bytes_sent"]) == chunk * (4 * 3 + 0 + 1 + 2 + 3), found["bytes_sent"]
# A query chunk sees the chunks of keys up to its own, of 8.
assert found["pairs_computed"] == sum(range(1, 9)), found
assert found["pairs_dropped"] == 64 - sum(range(1, 9)), found
# At least the own queries, keys and values and the state of their softmax.
state = 2 * 4 * (4 * 8 + 4 + 4) * 4
assert all(peak >= state + 2 * 4 * 8 * 2 * (4 + 2 + 2) for peak in found["peak_bytes"]), found
