# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention of arrays that are no torch tensors: of numpy, and of any
library that speaks DLPack, on CPUs and on GPUs. Forward."""

from __future__ import annotations

import ctypes as c
import dataclasses
import importlib
from collections.abc import Iterable
from collections.abc import Sequence as Sizes
from typing import Any

from burst import _c, arguments, lengths, programs, tracing, views, worlds
from burst.errors import Error
from burst.programs import Clauses, Shape
from burst.regions import TABLE_TYPES, Region
from burst.sequence import Layout, Sequence
from burst.views import View


def attention(q: Any, k: Any, v: Any, mask: tracing.Function | None,
              score: tracing.Function | None, sinks: Any, scale: float | None,
              sequence: Sequence | None, strategy: str, without: Iterable[str], layout: str,
              head_offset: int | None, batch_offset: int | None, return_lse: bool,
              return_max_scores: bool, out: tuple[Any, ...] | None, stream: int | None) -> Any:
    arguments.check_functions(mask, score, sequence)
    arguments.check_options(layout, scale, strategy)
    for x, name in ((k, "k"), (v, "v")):
        if type(x).__module__.partition(".")[0] == "torch":
            raise TypeError(f"{name}: an array like q, which is {type(q).__name__}, is wanted, got "
                            f"{type(x).__name__}")
    given = [views.of(x, name, stream) for x, name in ((q, "q"), (k, "k"), (v, "v"))]
    arguments.check_shapes([x.shape for x in given], [x.dtype for x in given], layout)
    gpu = given[0].gpu
    for x, name in zip(given[1:], "kv"):
        _check_place(x, name, gpu)
    if gpu is None and stream is not None:
        raise ValueError("stream: is of a GPU, and q lies in the memory of the CPU")
    if sinks is not None and (out is not None or gpu is not None):
        raise ValueError("sinks: of arrays are for the CPU, without out=; give torch tensors")
    clauses = _clauses(given, mask, score, scale, sequence, strategy,
                       arguments.check_without(without), layout, return_max_scores,
                       *(0 if offset is None else arguments.whole(name, offset) for name, offset in
                         (("head_offset", head_offset), ("batch_offset", batch_offset))))
    num_queries, num_keys = clauses.shape.num_queries, clauses.shape.num_keys
    assert num_queries is not None and num_keys is not None
    family = programs.forward(dataclasses.replace(clauses, is_open=(True, True))).module
    is_open = lengths.opened(family, (num_queries, num_keys), sequence)
    text = programs.forward(dataclasses.replace(clauses, is_open=is_open))
    program = programs.compiled_of(text, "cpu" if gpu is None else "cuda")
    names = ("o", "lse", "max_scores") if return_max_scores else ("o", "lse")
    shapes, dtypes = _results(given, layout, len(names))
    if out is None:
        results = [_empty(q, given[0], shape, dtype) for shape, dtype in zip(shapes, dtypes)]
    else:
        results = list(out)
    written = [_of_result(x, name, shape, dtype, gpu, stream) for x, name, shape, dtype in
               zip(results, names, shapes, dtypes, strict=True)]
    tables = [_of_table(table.source, None if gpu is None or is_host else gpu, stream)
              for table, is_host in zip(text.tables, program.is_host[3:])]
    order = arguments.LAYOUTS[layout]
    extents = [c.c_int64(length) for length in text.clauses.extents(num_queries, num_keys)]
    read = [views.readable(view, x, name, stream)
            for view, x, name in zip(given, (q, k, v), "qkv")]
    _run(program, text, [*(_permuted(x, order) for x in read), *tables,
                         *(View(c.addressof(x), "int64", (), (), None, True, x) for x in extents),
                         _permuted(written[0], order), *written[1:]], sequence, gpu, stream)
    if sinks is not None:
        results[:2] = _with_sinks(results[0], results[1], sinks, layout)
    if out is None:
        results = [_as_given(q, x) for x in results]
    if not return_lse:
        del results[1]
    return tuple(results) if len(results) > 1 else results[0]


def _clauses(given: Sizes[View], mask: tracing.Function | None, score: tracing.Function | None,
             scale: float | None, sequence: Sequence | None, strategy: str,
             without: tuple[str, ...], layout: str, max_scores: bool, head_offset: int,
             batch_offset: int) -> Clauses:
    order = arguments.LAYOUTS[layout]
    (batch, num_queries, heads, dim), (_, num_keys, key_heads, _), (_, _, _, value_dim) = (
        [x.shape[n] for n in order] for x in given)
    if sequence is not None:
        num_queries, num_keys = sequence.global_lengths(num_queries, num_keys)
    shape = Shape(batch, num_queries, num_keys, heads, key_heads, dim, value_dim, given[0].dtype)

    def region(function: tracing.Function | None, is_score: bool) -> Region | None:
        if function is None:
            return None
        return tracing.trace(function, is_score, shape.float_type, head_offset, batch_offset,
                             tracing.by_operators)

    return Clauses(shape, region(mask, False), region(score, True), scale,
                   sequence.layout if sequence else Layout(1),
                   None if strategy == "auto" else strategy, without=without,
                   max_scores=max_scores)


def _results(given: Sizes[View], layout: str,
             count: int) -> tuple[list[tuple[int, ...]], list[str]]:
    batch, sequence, head, dim = arguments.LAYOUTS[layout]
    q, v = given[0].shape, given[2].shape
    o = list(q)
    o[dim] = v[dim]
    return [tuple(o)] + [(q[batch], q[head], q[sequence])] * (count - 1), \
        [given[0].dtype] + [arguments.type_of_scores(given[0].dtype)] * (count - 1)


def _empty(q: Any, view: View, shape: tuple[int, ...], dtype: str) -> Any:
    """A result of numpy, where the caller gives none."""
    if view.gpu is not None:
        raise ValueError("out: is wanted where arrays lie on a GPU: (o, lse), to be written")
    try:
        numpy = importlib.import_module("numpy")
    except ModuleNotFoundError as error:
        raise ValueError("out: is wanted where there is no numpy: (o, lse), to be written") \
            from error
    # numpy itself has no bfloat16: the array has, or its type is of ml_dtypes.
    kind = getattr(q, "dtype", None) if dtype == "bfloat16" else dtype
    try:
        return numpy.empty(shape, numpy.dtype(kind))
    except TypeError as error:
        raise TypeError(f"q: is of {dtype}, which numpy does not have; give out= = (o, lse), or "
                        "torch tensors") from error


def _as_given(q: Any, result: Any) -> Any:
    """A result in the library of q."""
    if hasattr(q, "__array_interface__") or not hasattr(q, "__array_namespace__"):
        return result
    return q.__array_namespace__().asarray(result)


def _of_result(x: Any, name: str, shape: tuple[int, ...], dtype: str, gpu: int | None,
               stream: int | None) -> View:
    view = views.of(x, f"out: {name}", stream, is_written=True)
    if view.shape != shape or view.dtype != dtype:
        raise ValueError(f"out: {name} must be {shape} of {dtype}, got {view.shape} of "
                         f"{view.dtype}")
    _check_place(view, f"out: {name}", gpu)
    if view.is_read_only:
        raise ValueError(f"out: {name} is read-only")
    if not views.is_readable(view) or any(n == 0 and size > 1
                                     for n, size in zip(view.strides, shape)):
        raise ValueError(f"out: {name} must have the elements of its last dimension side by side, "
                         f"and each one once; its strides are {view.strides}")
    return view


def _of_table(x: Any, gpu: int | None, stream: int | None) -> View:
    view = views.of(x, "a table", stream)
    _check_place(view, "a table", gpu)
    return views.readable(view, x, "a table", stream)


def _check_place(view: View, name: str, gpu: int | None) -> None:
    if view.gpu != gpu:
        places = ["in the memory of the CPU" if x is None else f"on GPU {x}"
                  for x in (view.gpu, gpu)]
        raise ValueError(f"{name}: lies {places[0]}, and should {places[1]}")


def _permuted(view: View, order: Sizes[int]) -> View:
    return View(view.data, view.dtype, tuple(view.shape[n] for n in order),
                tuple(view.strides[n] for n in order), view.gpu, view.is_read_only, view.owner)


def _run(program: programs.Program, text: programs.Text, given: Sizes[View],
         sequence: Sequence | None, gpu: int | None, stream: int | None) -> None:
    values = (_c.Tensor * len(given))()
    for place, view in zip(values, given):
        programs.describe(place, view.data, TABLE_TYPES[view.dtype], view.shape, view.strides)
    config = _c.RunConfig()
    if gpu is None:
        config.device = programs.device(0).handle
    else:
        config.stream = programs.stream(gpu, stream or 0).handle
    if sequence is not None and sequence.ranks > 1 and gpu is not None:
        raise ValueError("sequence: over GPUs is for torch tensors, whose process group carries "
                         "them")
    try:
        if sequence is not None and sequence.ranks > 1:
            config.rank = worlds.of(sequence).rank
            config.transport = worlds.of(sequence).transport
            config.deadline_seconds = sequence.deadline_seconds
        programs.run(program, config, values)
    except Error as error:
        raise worlds.explained(sequence, text.explained(error), text.described) from None


def _with_sinks(o: Any, lse: Any, sinks: Any, layout: str) -> tuple[Any, Any]:
    numpy = importlib.import_module("numpy")
    sinks = numpy.asarray(sinks)
    if sinks.dtype.kind in "biu":
        raise TypeError("sinks: numbers of floating point are wanted, one per head of q, got "
                        f"{sinks.dtype}")
    if sinks.shape != lse.shape[1:2]:
        raise ValueError(f"sinks: one number per head of q is wanted, ({lse.shape[1]},), got the "
                         f"shape {sinks.shape}")
    sinks = sinks.astype(lse.dtype)[None, :, None]
    is_empty = numpy.isneginf(lse) # rows without keys
    total = numpy.where(is_empty, sinks, numpy.logaddexp(lse, numpy.where(is_empty, 0, sinks)))
    # Of the softmax, by keys and not by the sink.
    kept = numpy.exp(lse - numpy.where(is_empty, 0, total))
    if layout == "bshd":
        kept = kept.swapaxes(1, 2)
    return (o * kept[..., None]).astype(o.dtype), total
