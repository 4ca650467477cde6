# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of torch tensors: programs of known sizes, and their runs.

A call of known sizes, strides and functions finds its program by one look-up,
checks that the functions depend on the same objects as before
(`fingerprint.Guard`), and fills in where the tensors are.
"""

from __future__ import annotations

import functools
import hashlib
import weakref
from collections import abc
from typing import Any, NamedTuple

import torch

from burst import _c, fingerprint, programs, tracing, worlds
from burst.arguments import LAYOUTS
from burst.errors import Error
from burst.programs import Clauses, Shape
from burst.regions import TABLE_TYPES, Region, Table
from burst.sequence import Layout, Sequence

DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.bfloat16: "bfloat16",
          torch.float16: "float16"}


class Options(NamedTuple):
    """What an attention depends on beside its tensors and functions."""

    layout: str
    scale: float | None
    sequence: Sequence | None
    strategy: str | None
    head_offset: int
    batch_offset: int
    target: str # cpu or cuda


#===----------------------------------------------------------------------===#
# Runs
#===----------------------------------------------------------------------===#


class Bound:
    """A program, and which of its tensors have the dimensions of q in the order of
    a layout: the others are lse and tables."""

    def __init__(self, text: programs.Text, options: Options,
                 is_wide: abc.Sequence[bool]) -> None:
        self.program = programs.compiled_of(text, options.target)
        self.text = text
        self.sequence = options.sequence
        self.order = LAYOUTS[options.layout]
        self.is_wide = tuple(is_wide)
        self.runs: dict[tuple[Any, ...], Run] = {} # by strides
        self.configs: dict[Any, _c.RunConfig] = {} # by where it runs
        self.generation = programs.generation()

    def run(self, tensors: abc.Sequence[torch.Tensor]) -> None:
        self.find(tensors)([tensor.data_ptr() for tensor in tensors], self.config(tensors[0]))

    def explained(self, error: Error) -> Error:
        return worlds.explained(self.sequence, self.text.explained(error), self.text.described)

    def find(self, tensors: abc.Sequence[torch.Tensor]) -> Run:
        """For tensors of the program's sizes with such strides."""
        key = tuple([(x.stride(), x.shape, x.dtype) for x in tensors])
        found = self.runs.get(key)
        if found is None:
            if len(self.runs) >= _LARGEST_CACHE:
                self.runs.clear()
            found = self.runs[key] = Run(self, tensors)
        return found

    def config(self, q: torch.Tensor) -> _c.RunConfig:
        """Where it runs, which is where q is: calls only read it."""
        if self.generation != programs.generation(): # its devices are another process's
            self.configs.clear()
            self.generation = programs.generation()
        place: Any = torch.get_num_threads() if q.is_cpu else \
            (q.device.index, torch.cuda.current_stream(q.device).cuda_stream)
        found = self.configs.get(place)
        if found is None:
            if q.is_cpu:
                found = _c.RunConfig(device=programs.device(place).handle)
            else:
                found = _c.RunConfig(stream=programs.stream(*place).handle)
            if self.sequence is not None and self.sequence.ranks > 1:
                assert self.sequence.rank is not None
                found.rank = self.sequence.rank
                try:
                    found.transport = worlds.transport(self.sequence, q.device)
                except Error as error: # also of another rank's run
                    raise self.explained(error) from None
                found.deadline_seconds = self.sequence.deadline_seconds
            self.configs[place] = found
        return found


class Run:
    """A program with the sizes and strides of its tensors: what a call adds is
    where they are."""

    def __init__(self, bound: Bound, tensors: abc.Sequence[torch.Tensor]) -> None:
        self.bound = bound
        self.handle = bound.program.handle.value
        array = (_c.Tensor * len(tensors))()
        for place, tensor, is_wide in zip(array, tensors, bound.is_wide, strict=True):
            sizes, strides = tensor.shape, tensor.stride()
            if is_wide:
                sizes, strides = ([x[n] for n in bound.order] for x in (sizes, strides))
            programs.describe(place, 0, element_of(tensor), sizes, strides)
        self.template = bytes(array)
        self.count = len(tensors)
        self.free: list[tuple[memoryview, int]] = [] # arrays that no call has now

    def __call__(self, pointers: abc.Iterable[int], config: _c.RunConfig) -> None:
        try:
            words, address = self.free.pop()
        except IndexError:
            array = (_c.Tensor * self.count).from_buffer_copy(self.template)
            words, address = memoryview(array).cast("B").cast("P"), _c.address(array)
        place = _DATA
        for pointer in pointers:
            words[place] = pointer
            place += _WORDS
        try:
            programs.run_at(self.handle, config, address, self.count)
        except Error as error:
            raise self.bound.explained(error) from None
        self.free.append((words, address))


_WORDS = _c.size(_c.Tensor) // 8
_DATA = _c.Tensor.data.offset // 8


def element_of(tensor: torch.Tensor) -> str:
    """The type of its elements, as MLIR names it."""
    return TABLE_TYPES[str(tensor.dtype).removeprefix("torch.")]


def type_of_scores(q: torch.Tensor) -> torch.dtype:
    return torch.float64 if q.dtype == torch.float64 else torch.float32


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """What the library can read: expanded dimensions are read in place, but the
    elements of the last one lie side by side."""
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    if tensor.stride(-1) == 1 or tensor.shape[-1] == 1:
        return tensor
    return tensor.contiguous() if tensor.numel() else tensor.new_empty(tensor.shape)


#===----------------------------------------------------------------------===#
# Attentions of known sizes
#===----------------------------------------------------------------------===#


class Attention:
    """An attention of known sizes: its programs, made when they are wanted."""

    def __init__(self, clauses: Clauses, options: Options, shapes: tuple[torch.Size, ...],
                 dtype: torch.dtype) -> None:
        self.clauses = clauses
        self.options = options
        self.shapes = shapes # of q, k and v, in the layout
        self.dtype = dtype
        text = programs.forward(clauses)
        self.tables: list[Table] = list(text.tables)
        # Those of the score, which alone have gradients, stand behind those of the mask.
        self.num_mask_tables = len(self.tables) - \
            (len(clauses.score.tables) if clauses.score is not None else 0)
        regions = [region for region in (clauses.mask, clauses.score) if region is not None]
        # Whether mask or score depend on the head, on the batch.
        self.reads = (any(region.reads(region.h) for region in regions),
                      any(region.reads(region.b) for region in regions))
        batch, sequence, head, dim = LAYOUTS[options.layout]
        q, v = shapes[0], shapes[2]
        sizes = [0] * 4
        sizes[batch], sizes[sequence], sizes[head], sizes[dim] = \
            q[batch], q[sequence], q[head], v[dim]
        self.o_shape = tuple(sizes)
        self.lse_shape = (q[batch], q[head], q[sequence])
        self.lse_dtype = torch.float64 if dtype == torch.float64 else torch.float32
        of_group = ""
        if options.sequence is not None:
            of_group = f"{options.sequence.name} {shapes}"
        # The same in each process: compiled graphs are kept on the disk.
        described = f"{options.target} {options.layout} {of_group}\n{text.module}"
        self.name = hashlib.sha256(described.encode()).hexdigest()[:32]
        self.forward = Bound(text, options, [True] * 3 + [False] * len(self.tables) + [True, False])
        self.backwards: dict[tuple[Any, ...], Bound] = {}

    def backward(self, wanted: tuple[int, ...], with_lse: bool) -> Bound:
        """Its gradients, with those of the tables that are wanted."""
        key = (wanted, with_lse)
        if key not in self.backwards:
            text = programs.backward(self.clauses, [self.tables[n] for n in wanted], with_lse)
            is_wide = [True] * 4 + [False, True] + [False] * (with_lse + len(self.tables)) + \
                [True] * 3 + [False] * len(wanted)
            self.backwards[key] = Bound(text, self.options, is_wide)
        return self.backwards[key]

    def take_tables(self) -> list[torch.Tensor]:
        """The tensors that it was made with, which it does not keep."""
        taken = [table.source for table in self.tables]
        for table in self.tables:
            table.source = table.number = None
        return taken

    def wanted(self, need: abc.Iterable[bool]) -> tuple[int, ...]:
        """Which tables have a gradient that is needed."""
        return tuple([n for n, is_needed in enumerate(need)
                      if is_needed and n >= self.num_mask_tables])

    def placed(self, tables: abc.Sequence[torch.Tensor],
               q: torch.Tensor) -> abc.Sequence[torch.Tensor]:
        """Tables where programs for GPUs want them: those that the schedule depends
        on in the memory of the host."""
        if q.is_cpu:
            return tables
        return [x.to("cpu" if is_host else q.device) for x, is_host in
                zip(tables, self.forward.program.is_host[3:])]

    def o_strides(self, q: torch.Tensor) -> tuple[int, ...]:
        """Results lie as q does: what follows an attention often depends on it."""
        _, sequence, head, _ = LAYOUTS[self.options.layout]
        inner, outer = (head, sequence) if q.stride(sequence) >= q.stride(head) else \
            (sequence, head)
        strides = [0] * 4
        size = 1
        for dim in (3, inner, outer, 0):
            strides[dim] = size
            size *= max(self.o_shape[dim], 1)
        return tuple(strides)

    def empty_results(self, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (torch.empty_strided(self.o_shape, self.o_strides(q), dtype=self.dtype,
                                    device=q.device),
                torch.empty(self.lse_shape, dtype=self.lse_dtype, device=q.device))


def backward(attention: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
             o: torch.Tensor, lse: torch.Tensor, do: torch.Tensor, dlse: torch.Tensor | None,
             tables: abc.Sequence[torch.Tensor], wanted: tuple[int, ...]) -> list[torch.Tensor]:
    """Gradients of q, k, v and of the wanted tables, these in the type of scores."""
    q, k, v, o, lse, do, *tables = map(readable, (q, k, v, o, lse, do,
                                                  *attention.placed(tables, q)))
    gradients = empty_gradients(attention, q, k, v, tables, wanted)
    given = [q, k, v, o, lse, do]
    if dlse is not None:
        given.append(readable(dlse))
    attention.backward(wanted, dlse is not None).run([*given, *tables, *gradients])
    return gradients


def empty_gradients(attention: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                    tables: abc.Sequence[torch.Tensor],
                    wanted: tuple[int, ...]) -> list[torch.Tensor]:
    gradients = [torch.empty_like(x) for x in (q, k, v)]
    return gradients + [tables[n].new_empty(tables[n].shape, dtype=attention.lse_dtype)
                        for n in wanted]


#===----------------------------------------------------------------------===#
# From functions to programs
#===----------------------------------------------------------------------===#


class Found(NamedTuple):
    """The attention of a call."""

    attention: Attention
    tables: list[torch.Tensor] # that it takes now
    # By which another call may be known to take the same ones.
    guards: tuple[fingerprint.Guard | None, fingerprint.Guard | None] | None


def find(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: tracing.Function | None,
         score: tracing.Function | None, options: Options) -> Found:
    """The attention of these sizes, types and functions."""
    of_mask, of_score = (fingerprint.of(function) if function is not None else _NOTHING
                         for function in (mask, score))
    key = None
    captured: list[torch.Tensor] = []
    guards = None
    if of_mask is not None and of_score is not None:
        key = (of_mask.key, of_score.key, q.shape, k.shape, v.shape, q.dtype, options,
               torch.get_default_dtype()) # of what functions make of numbers
        captured = of_mask.tensors + of_score.tensors
        if (mask is None or of_mask.guard) and (score is None or of_score.guard):
            guards = of_mask.guard, of_score.guard
        found = _found.get(key)
        if found is not None:
            attention, places = found
            return Found(attention, [captured[place] for place in places], guards)
    attention = build(q.shape, k.shape, v.shape, q.dtype, mask, score, options)
    tables = attention.take_tables()
    is_captured = False
    if key is not None and of_mask is not None and of_score is not None:
        num_masks = attention.num_mask_tables
        places = _places(tables[:num_masks], of_mask.tensors)
        places += [place if place < 0 else place + len(of_mask.tensors)
                   for place in _places(tables[num_masks:], of_score.tensors)]
        # Tables that a function makes are others on the next call, and so may be
        # what it does with a tensor that has become no table.
        is_captured = sorted(set(places)) == list(range(len(captured))) and not any(
            region.reads_values for region in (attention.clauses.mask, attention.clauses.score)
            if region is not None)
        if is_captured:
            if len(_found) >= _LARGEST_CACHE:
                _found.clear()
            _found[key] = attention, places
    return Found(attention, tables, guards if is_captured else None)


def _places(tables: abc.Sequence[torch.Tensor], captured: abc.Sequence[torch.Tensor]) -> list[int]:
    """Which of the captured tensors each table is; -1: none of them."""
    return [next((n for n, x in enumerate(captured) if x is table), -1) for table in tables]


# Of attentions: sizes, functions and what these captured by value.
_LARGEST_CACHE = 4096
_NOTHING = fingerprint.Fingerprint((), [], None)
_found: dict[Any, tuple[Attention, list[int]]] = {}


def build(q: torch.Size, k: torch.Size, v: torch.Size, dtype: torch.dtype,
          mask: tracing.Function | tracing.Closed | None,
          score: tracing.Function | tracing.Closed | None, options: Options) -> Attention:
    """Of tensors of these sizes."""
    order = LAYOUTS[options.layout]
    batch, num_queries, heads, dim = (q[n] for n in order)
    _, num_keys, key_heads, _ = (k[n] for n in order)
    sequence = options.sequence
    if sequence is not None:
        num_queries, num_keys = sequence.global_lengths(num_queries, num_keys)
    shape = Shape(batch, num_queries, num_keys, heads, key_heads, dim, v[order[3]],
                  DTYPES[dtype])

    def region(function: tracing.Function | tracing.Closed | None,
               is_score: bool) -> Region | None:
        if function is None:
            return None
        return tracing.trace(function, is_score, shape.float_type, options.head_offset,
                             options.batch_offset)

    clauses = Clauses(shape, region(mask, False), region(score, True), options.scale,
                      sequence.layout if sequence else Layout(1), options.strategy)
    return Attention(clauses, options, (q, k, v), dtype)


#===----------------------------------------------------------------------===#
# Calls that come again
#===----------------------------------------------------------------------===#


class Call:
    """A call of known sizes, strides and functions."""

    __slots__ = ("_guards", "_lse", "_o", "_run", "_strides", "_tables", "attention")

    def __init__(self, found: Found, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        self.attention = attention = found.attention
        self._guards = found.guards
        self._tables = [(weakref.ref(x), x.shape, x.stride(), x.dtype) for x in found.tables]
        o, lse = attention.empty_results(q)
        self._strides = o.stride(), lse.stride()
        self._o = functools.partial(torch.empty_strided, o.shape, o.stride(), dtype=o.dtype)
        self._lse = functools.partial(torch.empty_strided, lse.shape, lse.stride(),
                                      dtype=lse.dtype)
        self._run = attention.forward.find((q, k, v, *found.tables, o, lse))

    def tables(self, mask: tracing.Function | None,
               score: tracing.Function | None) -> list[torch.Tensor] | None:
        """Those that the functions have now; None where they depend on something
        else than they did."""
        if self._guards is None:
            return None
        of_mask, of_score = self._guards
        if of_mask is not None and not of_mask.holds(mask) or \
                of_score is not None and not of_score.holds(score):
            return None
        tables: list[torch.Tensor] = []
        for reference, shape, strides, dtype in self._tables:
            table = reference()
            if table is None or table.shape != shape or table.stride() != strides or \
                    table.is_neg() or table.dtype is not dtype:
                return None
            tables.append(table)
        return tables

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                 tables: abc.Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        o, lse = self._o(), self._lse()
        self.run(q, k, v, tables, o, lse)
        return o, lse

    def takes(self, o: torch.Tensor, lse: torch.Tensor) -> bool:
        """Whether results of the right sizes lie as those that it would make."""
        return (o.stride(), lse.stride()) == self._strides

    def run(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
            tables: abc.Sequence[torch.Tensor], o: torch.Tensor, lse: torch.Tensor) -> None:
        self._run([q.data_ptr(), k.data_ptr(), v.data_ptr(), *[x.data_ptr() for x in tables],
                  o.data_ptr(), lse.data_ptr()], self.attention.forward.config(q))


def forward(attention: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
            tables: abc.Sequence[torch.Tensor], out: tuple[torch.Tensor, torch.Tensor] |
            None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """With any strides."""
    o, lse = out or attention.empty_results(q)
    attention.forward.run([*map(readable, (q, k, v, *attention.placed(tables, q))), o, lse])
    return o, lse
