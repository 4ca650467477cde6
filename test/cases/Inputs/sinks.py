# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of sinks.test, and what they must give.

  sinks.py make LEARNED OFF_BY_ONE
  sinks.py verify INPUTS RESULTS

With a sink x per head, out = sum_j exp(s_j) v_j / (exp(x) + sum_j exp(s_j)): here
it is computed so, without a key for the sink.
"""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools/burst-run/Inputs"))
import tensors

B, S, HQ, HK, D = 2, 32, 8, 2, 16


def make(path, sinks):
    shapes = {"q": [B, S, HQ, D], "k": [B, S + 1, HK, D], "v": [B, S + 1, HK, D]}
    values = {name: tensors.normal(name, shape) for name, shape in shapes.items()}
    for b in range(B):
        begin = (b * (S + 1) + S) * HK * D
        values["v"][begin:begin + HK * D] = [0.0] * (HK * D)
    made = {name: ("F64", shape, values[name]) for name, shape in shapes.items()}
    made["sinks"] = ("F64", [HQ], sinks)
    tensors.write(path, made)


def verify(inputs, results):
    given, found = tensors.read(inputs), tensors.read(results)
    q, k, v, sinks = (given[name][2] for name in ("q", "k", "v", "sinks"))
    out, lse = found["o"][2], found["lse"][2]
    for b in range(B):
        for h in range(HQ):
            for i in range(S):
                query = q[((b * S + i) * HQ + h) * D:][:D]
                rows = [((b * (S + 1) + j) * HK + h // (HQ // HK)) * D for j in range(i + 1)]
                p = [math.exp(sum(x * y for x, y in zip(query, k[row:row + D])) / math.sqrt(D))
                     for row in rows]
                total = math.exp(sinks[h]) + sum(p)
                assert abs(lse[(b * HQ + h) * S + i] - math.log(total)) < 1e-12, (b, h, i)
                for d in range(D):
                    wanted = sum(w * v[row + d] for w, row in zip(p, rows)) / total
                    assert abs(out[((b * S + i) * HQ + h) * D + d] - wanted) < 1e-12, (b, h, i, d)


if sys.argv[1] == "make":
    make(sys.argv[2], tensors.normal("sinks", [HQ]))
    make(sys.argv[3], [0.0] * HQ)
else:
    verify(sys.argv[2], sys.argv[3])
