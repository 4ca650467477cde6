# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attentions that are described by the shapes of their whole tensors, not by
tensors: to be explained, or compiled ahead."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Sizes
from typing import Any

from burst import arguments, tracing
from burst.programs import Clauses, Shape
from burst.regions import Region
from burst.sequence import Layout, Sequence


def clauses(q: Sizes[int | None], k: Sizes[int | None] | None, v: Sizes[int | None] | None,
            mask: tracing.Function | None, score: tracing.Function | None, dtype: Any,
            scale: float | None, sequence: Sequence | None, strategy: str,
            without: Iterable[str], layout: str, head_offset: int, batch_offset: int) -> Clauses:
    """k is like q where it is left out, v like k. A length may be None: the program is
    for any. dtype is one of torch or numpy, or its name."""
    arguments.check_functions(mask, score, sequence)
    arguments.check_options(layout, scale, strategy)
    k = q if k is None else k
    v = k if v is None else v
    order = arguments.LAYOUTS[layout]
    shapes: list[tuple[Any, ...]] = [
        tuple([None if size is None and n == order[1] else
               arguments.at_least(0, f"{which}: a size", size) for n, size in enumerate(x)])
        for which, x in zip("qkv", (q, k, v))]
    head_offset = arguments.whole("head_offset", head_offset)
    batch_offset = arguments.whole("batch_offset", batch_offset)
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = name.removeprefix("torch.")
    if name not in arguments.DTYPES:
        raise ValueError(f"dtype: {', '.join(arguments.DTYPES[:-1])} or {arguments.DTYPES[-1]}, "
                         f"got {dtype}")
    arguments.check_shapes(shapes, [name] * 3, layout)
    (batch, num_queries, heads, dim), (_, num_keys, key_heads, _), (_, _, _, value_dim) = (
        [x[n] for n in order] for x in shapes)
    shape = Shape(batch, num_queries, num_keys, heads, key_heads, dim, value_dim, name)

    def region(function: tracing.Function | None, is_score: bool) -> Region | None:
        if function is None:
            return None
        return tracing.trace(function, is_score, shape.float_type, head_offset, batch_offset)

    return Clauses(shape, region(mask, False), region(score, True), scale,
                   sequence.layout if sequence else Layout(1),
                   None if strategy == "auto" else strategy,
                   is_open=(num_queries is None, num_keys is None),
                   without=arguments.check_without(without))
