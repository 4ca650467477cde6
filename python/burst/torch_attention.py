# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of torch tensors: programs of known sizes, and their runs.

A call of known sizes, strides and functions finds its program by one look-up,
checks that the functions depend on the same objects as before
(`fingerprint.Guard`), and fills in where the tensors are.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import weakref
from collections import abc
from typing import Any, NamedTuple

import torch

from burst import _c, fingerprint, lengths, programs, tracing, worlds
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
    without: tuple[str, ...]
    head_offset: int
    batch_offset: int
    target: str # cpu or cuda
    max_scores: bool


# o, lse, and max_scores where they are wanted.
Results = tuple[torch.Tensor, ...]


#===----------------------------------------------------------------------===#
# Runs
#===----------------------------------------------------------------------===#


class Bound:
    """A program, and which of the tensors that it takes and gives have the dimensions
    of q in the order of a layout: the others are lse and tables."""

    def __init__(self, text: programs.Text, options: Options, takes: abc.Sequence[bool],
                 gives: abc.Sequence[bool]) -> None:
        self.program = programs.compiled_of(text, options.target)
        self.text = text
        self.sequence = options.sequence
        self.order = LAYOUTS[options.layout]
        self.is_wide = (*takes, *gives)
        # Lengths that are open stand between both.
        shape = text.clauses.shape
        assert shape.num_queries is not None and shape.num_keys is not None
        self.extents = text.clauses.extents(shape.num_queries, shape.num_keys)
        self.num_taken = len(takes)
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
            found = Run(self, tensors)
            remember(self.runs, key, found)
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
        self.extents = (_c.Int * len(bound.extents))(*bound.extents)
        self.count = len(tensors) + len(self.extents)
        array = (_c.Tensor * self.count)()
        for n in range(len(self.extents)):
            programs.describe(array[bound.num_taken + n], _c.address(self.extents) + 8 * n, "i64",
                              (), ())
        self.places = [n if n < bound.num_taken else n + len(self.extents)
                       for n in range(len(tensors))]
        for n, tensor, is_wide in zip(self.places, tensors, bound.is_wide, strict=True):
            sizes, strides = tensor.shape, tensor.stride()
            if is_wide:
                sizes, strides = ([x[d] for d in bound.order] for x in (sizes, strides))
            programs.describe(array[n], 0, element_of(tensor), sizes, strides)
        self.template = bytes(array)
        self.data = [_DATA + _WORDS * n for n in self.places]
        self.free: list[tuple[memoryview, int]] = [] # arrays that no call has now

    def __call__(self, pointers: abc.Iterable[int], config: _c.RunConfig) -> None:
        try:
            words, address = self.free.pop()
        except IndexError:
            array = (_c.Tensor * self.count).from_buffer_copy(self.template)
            words, address = memoryview(array).cast("B").cast("P"), _c.address(array)
        for place, pointer in zip(self.data, pointers):
            words[place] = pointer
        try:
            programs.run_at(self.handle, config, address, self.count)
        except Error as error:
            raise self.bound.explained(error) from None
        self.free.append((words, address))


_WORDS = _c.size(_c.Tensor) // 8
_DATA = _c.Tensor.data.offset // 8
_SIZES = _c.Tensor.sizes.offset // 8
_STRIDES = _c.Tensor.strides.offset // 8


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
    """An attention of known sizes: its programs, made when they are wanted, which may
    be for any length."""

    def __init__(self, clauses: Clauses, options: Options, shapes: tuple[torch.Size, ...],
                 dtype: torch.dtype) -> None:
        self.made_from = clauses, options, shapes, dtype
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
        self.num_results = 3 if options.max_scores else 2
        self.lse_dtype = torch.float64 if dtype == torch.float64 else torch.float32
        of_group = ""
        if options.sequence is not None:
            of_group = f"{options.sequence.name} {shapes}"
        # The same in each process: compiled graphs are kept on the disk.
        lengths = f"{clauses.shape.num_queries} {clauses.shape.num_keys}"
        # The text is that of the forward pass: a strategy of the other one stands beside it.
        described = f"{options.target} {options.layout} {of_group} {lengths} {clauses.without} " \
            f"{clauses.strategy}\n{text.module}"
        self.name = hashlib.sha256(described.encode()).hexdigest()[:32]
        self.forward = Bound(text, options, [True] * 3 + [False] * len(self.tables),
                             [True] + [False] * (self.num_results - 1))
        self.backwards: dict[tuple[Any, ...], Bound] = {}

    def backward(self, wanted: tuple[int, ...], with_lse: bool) -> Bound:
        """Its gradients, with those of the tables that are wanted."""
        key = (wanted, with_lse)
        if key not in self.backwards:
            text = programs.backward(self.clauses, [self.tables[n] for n in wanted], with_lse)
            takes = [True] * 4 + [False, True] + [False] * (with_lse + len(self.tables))
            self.backwards[key] = Bound(text, self.options, takes,
                                        [True] * 3 + [False] * len(wanted))
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

    def empty_results(self, q: torch.Tensor) -> Results:
        strides = _o_strides(self.o_shape, q.stride(), LAYOUTS[self.options.layout])
        return (torch.empty_strided(self.o_shape, strides, dtype=self.dtype, device=q.device),
                *[torch.empty(self.lse_shape, dtype=self.lse_dtype, device=q.device)
                  for _ in range(self.num_results - 1)])


def _o_strides(sizes: abc.Sequence[int], of_q: abc.Sequence[int],
               order: abc.Sequence[int]) -> list[int]:
    """Results lie as q does: what follows an attention often depends on it."""
    _, sequence, head, _ = order
    inner, outer = (head, sequence) if of_q[sequence] >= of_q[head] else (sequence, head)
    strides = [0, 0, 0, 1]
    strides[inner] = size = max(sizes[3], 1)
    strides[outer] = size = size * max(sizes[inner], 1)
    strides[0] = size * max(sizes[outer], 1)
    return strides


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
    family: tuple[Any, ...] # what it has in common with those of other lengths


def find(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: tracing.Function | None,
         score: tracing.Function | None, options: Options) -> Found:
    """The attention of these sizes, types and functions; where it was asked for with
    other lengths, one that is for any."""
    of_mask, of_score = (fingerprint.of(function) if function is not None else _NOTHING
                         for function in (mask, score))
    key = None
    family: tuple[Any, ...] = ()
    captured: list[torch.Tensor] = []
    guards = None
    is_open = (False, False)
    if of_mask is not None and of_score is not None:
        # The types of what functions make of numbers depend on the default.
        functions = of_mask.key, of_score.key, torch.get_default_dtype()
        family = functions, *without_length(options.layout, q, k, v), q.dtype
        is_open = _opened(family, q.shape, k.shape, options)
        key = (family, q.shape, k.shape, v.shape, options, is_open)
        captured = of_mask.tensors + of_score.tensors
        if (mask is None or of_mask.guard) and (score is None or of_score.guard):
            guards = of_mask.guard, of_score.guard
        found = _found.get(key)
        if found is None and True in is_open:
            found = _relative(family, key, q.shape, k.shape, v.shape, options, is_open)
        if found is not None:
            attention, places = found
            return Found(attention, [captured[place] for place in places], guards, family)
    attention = build(q.shape, k.shape, v.shape, q.dtype, mask, score, options, is_open)
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
            remember(_found, key, (attention, places))
            if True in is_open:
                remember(_families, _family(family, options, is_open), (attention, places))
    return Found(attention, tables, guards if is_captured else None, family)


def without_length(layout: str, *tensors: torch.Tensor) -> list[torch.Size]:
    """The shapes of q, k and v but for how many positions they have."""
    at = LAYOUTS[layout][1]
    return [x.shape[:at] + x.shape[at + 1:] for x in tensors]


def _opened(family: tuple[Any, ...], q: torch.Size, k: torch.Size,
            options: Options) -> lengths.Open:
    """Which lengths the program of such a call leaves open."""
    at = LAYOUTS[options.layout][1]
    return _opened_of(family, _lengths(q[at], k[at], options.sequence), options)


def _opened_of(family: tuple[Any, ...], whole: lengths.Lengths, options: Options) -> lengths.Open:
    """The same of the lengths of all ranks."""
    return lengths.opened((family, options._replace(sequence=None)), whole, options.sequence)


def _family(family: tuple[Any, ...], options: Options, is_open: lengths.Open) -> tuple[Any, ...]:
    """What attentions have in common that differ in lengths: a sequence says its own."""
    layout = None if options.sequence is None else options.sequence.layout
    return family, options._replace(sequence=None), layout, is_open


def _relative(family: tuple[Any, ...], key: Any, q: torch.Size, k: torch.Size, v: torch.Size,
              options: Options, is_open: lengths.Open) -> tuple[Attention, list[int]] | None:
    """The attention of these lengths, of one that is but for them the same."""
    known = _families.get(_family(family, options, is_open))
    if known is None:
        return None
    other, places = known
    at = LAYOUTS[options.layout][1]
    num_queries, num_keys = _lengths(q[at], k[at], options.sequence)
    shape = dataclasses.replace(other.clauses.shape, num_queries=num_queries, num_keys=num_keys)
    found = Attention(dataclasses.replace(other.clauses, shape=shape), options, (q, k, v),
                      other.dtype), places
    remember(_found, key, found)
    return found


def remember(known: dict[Any, Any], key: Any, found: Any) -> None:
    """In a cache of bounded size."""
    if len(known) >= _LARGEST_CACHE:
        known.clear()
    known[key] = found


def _lengths(num_queries: int, num_keys: int, sequence: Sequence | None) -> lengths.Lengths:
    """Of all ranks."""
    if sequence is None:
        return num_queries, num_keys
    return sequence.global_lengths(num_queries, num_keys)


def _places(tables: abc.Sequence[torch.Tensor], captured: abc.Sequence[torch.Tensor]) -> list[int]:
    """Which of the captured tensors each table is; -1: none of them."""
    return [next((n for n, x in enumerate(captured) if x is table), -1) for table in tables]


# Of attentions: sizes, functions and what these captured by value.
_LARGEST_CACHE = 4096
_NOTHING = fingerprint.Fingerprint((), [], None)
_found: dict[Any, tuple[Attention, list[int]]] = {}
_families: dict[Any, tuple[Attention, list[int]]] = {} # of one length, for all others


def build(q: torch.Size, k: torch.Size, v: torch.Size, dtype: torch.dtype,
          mask: tracing.Function | tracing.Closed | None,
          score: tracing.Function | tracing.Closed | None, options: Options,
          is_open: lengths.Open = (False, False)) -> Attention:
    """Of tensors of these sizes, by programs that leave lengths open."""
    order = LAYOUTS[options.layout]
    batch, num_queries, heads, dim = (q[n] for n in order)
    _, num_keys, key_heads, _ = (k[n] for n in order)
    sequence = options.sequence
    num_queries, num_keys = _lengths(num_queries, num_keys, sequence)
    shape = Shape(batch, num_queries, num_keys, heads, key_heads, dim, v[order[3]],
                  DTYPES[dtype])

    def region(function: tracing.Function | tracing.Closed | None,
               is_score: bool) -> Region | None:
        if function is None:
            return None
        return tracing.trace(function, is_score, shape.float_type, options.head_offset,
                             options.batch_offset)

    clauses = Clauses(shape, region(mask, False), region(score, True), options.scale,
                      sequence.layout if sequence else Layout(1), options.strategy, is_open,
                      options.without, options.max_scores)
    return Attention(clauses, options, (q, k, v), dtype)


#===----------------------------------------------------------------------===#
# Calls that come again
#===----------------------------------------------------------------------===#


class _Known:
    """A call of known functions."""

    __slots__ = ("_family", "_guards", "_tables", "attention")

    def __init__(self, found: Found) -> None:
        self.attention = found.attention
        self._family = found.family
        self._guards = found.guards
        self._tables = [(weakref.ref(x), x.shape, x.stride(), x.dtype) for x in found.tables]

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

    def _is_agreed(self, whole: lengths.Lengths) -> bool:
        """Whether other ranks run the same program: each of them remembers something
        else, so all ask for what was asked for by all."""
        options = self.attention.options
        return options.sequence is None or options.sequence.ranks == 1 or \
            _opened_of(self._family, whole, options) == self.attention.clauses.is_open


class Call(_Known):
    """A call of known sizes, strides and functions."""

    __slots__ = ("_run", "_strides", "_results")

    def __init__(self, found: Found, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        super().__init__(found)
        attention = found.attention
        results = attention.empty_results(q)
        self._strides = tuple([x.stride() for x in results])
        self._results = [functools.partial(torch.empty_strided, x.shape, x.stride(), dtype=x.dtype,
                                           device=x.device) for x in results]
        self._run = attention.forward.find((q, k, v, *found.tables, *results))

    def is_agreed(self) -> bool:
        shape = self.attention.clauses.shape
        assert shape.num_queries is not None and shape.num_keys is not None
        return self._is_agreed((shape.num_queries, shape.num_keys))

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                 tables: abc.Sequence[torch.Tensor]) -> Results:
        results = tuple([make() for make in self._results])
        self.run(q, k, v, tables, results)
        return results

    def takes(self, results: Results) -> bool:
        """Whether results of the right sizes lie as those that it would make."""
        return tuple([x.stride() for x in results]) == self._strides

    def run(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
            tables: abc.Sequence[torch.Tensor], results: Results) -> None:
        self._run([q.data_ptr(), k.data_ptr(), v.data_ptr(), *[x.data_ptr() for x in tables],
                  *[x.data_ptr() for x in results]], self.attention.forward.config(q))


class OpenCall(_Known):
    """A call of known functions, of which the program is for any length: with others,
    and with other strides, it runs again."""

    __slots__ = ("_free", "_has_bounds", "_lse", "_o", "_order", "_run", "_sequence")

    def __init__(self, found: Found, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        super().__init__(found)
        attention = found.attention
        clauses = attention.clauses
        o, lse, *_ = results = attention.empty_results(q)
        self._run = attention.forward.find((q, k, v, *found.tables, *results))
        self._order = LAYOUTS[attention.options.layout]
        self._sequence = attention.options.sequence
        self._has_bounds = any(region is not None and region.bounds
                               for region in (clauses.mask, clauses.score))
        self._o = functools.partial(torch.empty_strided, dtype=o.dtype, device=o.device)
        self._lse = functools.partial(torch.empty, dtype=lse.dtype, device=lse.device)
        self._free: list[tuple[memoryview, int, memoryview]] = []

    def has_gradients(self) -> bool:
        """Whether a table wants one."""
        return any(table is not None and table.requires_grad
                   for table in [reference() for reference, *_ in self._tables])

    def _array(self) -> tuple[memoryview, int, memoryview]:
        """What a run takes, and the lengths that are open."""
        run = self._run
        array = (_c.Tensor * run.count).from_buffer_copy(run.template)
        extents = (_c.Int * len(run.extents))()
        for n in range(len(extents)):
            array[run.bound.num_taken + n].data = _c.address(extents) + 8 * n
        return (memoryview(array).cast("B").cast("q"), _c.address(array),
                memoryview(extents).cast("B").cast("q"))

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                 mask: tracing.Function | None,
                 score: tracing.Function | None) -> Results | None:
        """None where the call is another one."""
        tables = self.tables(mask, score)
        order = self._order
        at = order[1]
        sizes = q.shape
        num_queries, num_keys = sizes[at], k.shape[at]
        strides = q.stride(), k.stride(), v.stride()
        if tables is None or v.shape[at] != num_keys or \
                not strides[0][3] == strides[1][3] == strides[2][3] == 1:
            return None
        whole = _lengths(num_queries, num_keys, self._sequence)
        clauses = self.attention.clauses
        known = clauses.shape
        if not clauses.is_open[0] and whole[0] != known.num_queries or \
                not clauses.is_open[1] and whole[1] != known.num_keys or \
                not self._is_agreed(whole):
            return None
        if self._has_bounds:
            clauses.check_bounds(*whole)
        sizes = [*sizes[:3], known.value_dim]
        of_o = _o_strides(sizes, strides[0], order)
        heads = sizes[order[2]]
        o = self._o(sizes, of_o)
        rows = [self._lse((sizes[0], heads, num_queries))
                for _ in range(self.attention.num_results - 1)]
        try:
            found = self._free.pop()
        except IndexError:
            found = self._array()
        words, address, extents = found
        place = 0
        for x, of_x, length in zip((q, k, v), strides, (num_queries, num_keys, num_keys)):
            words[place + _DATA] = x.data_ptr()
            _place(words, place, length, of_x, order)
            place += _WORDS
        for table in tables:
            words[place + _DATA] = table.data_ptr()
            place += _WORDS
        place += _WORDS * len(extents)
        words[place + _DATA] = o.data_ptr()
        _place(words, place, num_queries, of_o, order)
        for x in rows:
            place += _WORDS
            words[place + _DATA] = x.data_ptr()
            words[place + _SIZES + 2] = num_queries
            words[place + _STRIDES + 1] = num_queries
            words[place + _STRIDES] = num_queries * heads
        for n, length in enumerate(clauses.extents(*whole)):
            extents[n] = length
        bound = self._run.bound
        try:
            programs.run_at(self._run.handle, bound.config(q), address, self._run.count)
        except Error as error:
            shape = dataclasses.replace(known, num_queries=whole[0], num_keys=whole[1])
            text = dataclasses.replace(bound.text,
                                       clauses=dataclasses.replace(clauses, shape=shape))
            raise worlds.explained(self._sequence, text.explained(error),
                                   text.described) from None
        self._free.append(found)
        return (o, *rows)


def _place(words: memoryview, place: int, length: int, strides: abc.Sequence[int],
           order: abc.Sequence[int]) -> None:
    """Says how long a tensor is, and how it lies."""
    words[place + _SIZES + 1] = length
    words[place + _STRIDES] = strides[order[0]]
    words[place + _STRIDES + 1] = strides[order[1]]
    words[place + _STRIDES + 2] = strides[order[2]]


def forward(attention: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
            tables: abc.Sequence[torch.Tensor], out: Results | None = None) -> Results:
    """With any strides."""
    results = out or attention.empty_results(q)
    attention.forward.run([*map(readable, (q, k, v, *attention.placed(tables, q))), *results])
    return results
