# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""empty_rows.py FILE BEGIN END: in a file of result0 (o) and result1 (lse), the
rows [BEGIN, END) are exactly 0 and -inf, and no other lse is infinite."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools/burst-run/Inputs"))
import tensors

path, begin, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
found = tensors.read(path)
_, (batch, queries, heads, dim), out = found["result0"]
_, _, lse = found["result1"]
for b in range(batch):
    for h in range(heads):
        for i in range(queries):
            l = lse[(b * heads + h) * queries + i]
            row = out[((b * queries + i) * heads + h) * dim:][:dim]
            assert all(map(math.isfinite, row)), (b, h, i, row)
            if begin <= i < end:
                assert l == -math.inf and not any(row), (b, h, i, l, row)
            else:
                assert math.isfinite(l), (b, h, i, l)
