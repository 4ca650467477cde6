# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether z3 agrees with what was said of conditions: agrees.py FILE CONDITIONS REFUTED, of which
there are at least so many."""

import sys

lines = open(sys.argv[1]).read().split("\n")
found = {"shown": 0, "not shown": 0}
for title, answer in zip(lines[::2], lines[1::2]):
    said = title.rsplit(": ", 1)[1]
    if answer != {"shown": "unsat", "not shown": "sat"}[said]:
        sys.exit(f"{title}: z3 says {answer}")
    found[said] += 1
if sum(found.values()) < int(sys.argv[2]) or found["not shown"] < int(sys.argv[3]):
    sys.exit(f"only {found}")
if int(sys.argv[3]) == 0 and found["not shown"]:
    sys.exit(f"not all shown: {found}")
