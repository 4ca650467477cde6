# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention by its definition in fp64, which results of peers are compared with."""

import math

import numpy
import protocol

# Of a row of a result, over the size of the row: what rounding to the type explains,
# with room. f32 that is multiplied in fewer bits is off by 1e-3, a mask that is off by a
# key by more.
BOUNDS = {"f32": 1e-4, "bf16": 3e-2}
# Of a gradient in bf16: it is made of o, which is rounded to bf16 before it meets do in
# a difference.
BACKWARD_BOUNDS = {"f32": 1e-4, "bf16": 6e-2}
ROWS = 512 # at a time


def bound(question):
    """Of the cell with this question."""
    return (BOUNDS if question["kind"] == "forward" else BACKWARD_BOUNDS)[question["type"]]


def reference(attention):
    """o, and dq, dk and dv for a backward pass, of (batch, heads, sequence, dim)."""
    batches = [of_batch(attention, *(x.astype(numpy.float64) for x in of_one))
               for of_one in zip(*protocol.draw(attention, "qkvg"))]
    return {name: numpy.stack([found[name] for found in batches]) for name in batches[0]}


def of_batch(attention, q, k, v, g):
    kept = protocol.kept_pairs(attention)
    groups = attention.heads // attention.key_heads
    found = {"o": numpy.empty(q.shape)}
    if not attention.is_forward:
        found |= {"dq": numpy.empty(q.shape), "dk": numpy.zeros(k.shape),
                  "dv": numpy.zeros(v.shape)}
    for h in range(attention.heads):
        for begin in range(0, attention.queries, ROWS):
            rows = slice(begin, begin + ROWS)
            of_rows(found, h, h // groups, rows, q, k, v, g,
                    None if kept is None else kept[rows])
    if attention.kind == "backward":
        del found["o"]
    return found


def of_rows(found, h, key_head, rows, q, k, v, g, kept):
    # Keys that no row sees are left out.
    last = k.shape[1] if kept is None else int(numpy.flatnonzero(kept.any(0))[-1]) + 1
    k, v = k[key_head, :last], v[key_head, :last]
    scale = 1 / math.sqrt(q.shape[-1])
    p = q[h, rows] @ k.T * scale
    if kept is not None:
        p[~kept[:, :last]] = -numpy.inf
    p -= p.max(1, keepdims=True)
    numpy.exp(p, out=p)
    p /= p.sum(1, keepdims=True)
    o = found["o"][h, rows] = p @ v
    if "dq" not in found:
        return
    found["dv"][key_head, :last] += p.T @ g[h, rows]
    ds = g[h, rows] @ v.T
    ds -= (g[h, rows] * o).sum(1, keepdims=True)
    ds *= p
    ds *= scale
    found["dq"][h, rows] = ds @ k
    found["dk"][key_head, :last] += ds.T @ q[h, rows]


def error(found, wanted):
    """The largest of all rows of all results: the length of the difference over that of
    the row, or over that of a usual row where that is longer."""
    largest = 0.0
    for name, x in wanted.items():
        if name not in found:
            raise ValueError(f"results: got {sorted(found)}, wanted {sorted(wanted)}")
        if found[name].shape != x.shape:
            raise ValueError(f"{name}: got the shape {found[name].shape}, wanted {x.shape}")
        sizes = numpy.linalg.norm(x, axis=-1)
        sizes = numpy.maximum(sizes, numpy.median(sizes))
        off = (numpy.linalg.norm(found[name] - x, axis=-1) / sizes).max()
        largest = max(largest, float(off)) if numpy.isfinite(off) else math.inf
    return largest
