# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of torch tensors, with gradients."""

from __future__ import annotations

import ctypes as c
import dataclasses
import struct
from collections import abc
from collections.abc import Callable
from typing import Any, cast

import torch
from torch.autograd.function import once_differentiable

from burst import _c, fingerprint, programs, tracing, worlds
from burst.programs import Clauses, Shape
from burst.regions import TABLE_TYPES, Region, Table
from burst.sequence import Layout, Sequence

DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.bfloat16: "bfloat16",
           torch.float16: "float16"}
# Which dimension of a tensor is batch, sequence, head and head dim.
LAYOUTS = {"bhsd": (0, 2, 1, 3), "bshd": (0, 1, 2, 3)}

# Where the pointer of a burst_tensor lies.
_DATA = _c.Tensor.data.offset


class Bound:
    """A program with the sizes and strides of its tensors: what a call adds is
    where they are."""

    def __init__(self, program: programs.Program, sequence: Sequence | None) -> None:
        self.program = program
        self.sequence = sequence
        self.template = b""
        self.strides: tuple[Any, ...] = ()
        self.configs: dict[int, _c.RunConfig] = {} # by threads

    def run(self, tensors: abc.Sequence[torch.Tensor], threads: int) -> None:
        count = len(tensors)
        strides = tuple([tensor.stride() for tensor in tensors])
        if strides != self.strides or not self.template:
            array = (_c.Tensor * count)()
            for place, tensor in zip(array, tensors):
                programs.describe(place, 0, element_of(tensor), tensor.shape, tensor.stride())
            self.template, self.strides = bytes(array), strides
        array = bytearray(self.template)
        for n, tensor in enumerate(tensors):
            struct.pack_into("P", array, n * _SIZE + _DATA, tensor.data_ptr())
        values = (_c.Tensor * count).from_buffer(array)
        programs.run(self.program, self.config(threads), values)

    def config(self, threads: int) -> _c.RunConfig:
        """Where it runs: calls only read it."""
        found = self.configs.get(threads)
        device = programs.device(threads)
        if found is None or found.device != device.handle.value:
            found = _c.RunConfig(device=device.handle)
            if self.sequence is not None and self.sequence.ranks > 1:
                found.rank = self.sequence.group.rank()
                found.transport = worlds.of(self.sequence.group).transport
            self.configs[threads] = found
        return found


_SIZE = c.sizeof(_c.Tensor)


def element_of(tensor: torch.Tensor) -> str:
    """The type of its elements, as MLIR names it."""
    return TABLE_TYPES[str(tensor.dtype).removeprefix("torch.")]


@dataclasses.dataclass(eq=False)
class Attention:
    """An attention of known sizes: its programs, made when they are wanted."""

    clauses: Clauses
    tables: list[Table]
    sequence: Sequence | None
    reads: tuple[bool, bool] # whether mask or score depend on the head, on the batch
    forward: Bound
    backwards: dict[tuple[Any, ...], Bound]

    def backward(self, wanted: tuple[int, ...], with_lse: bool) -> Bound:
        key = (wanted, with_lse)
        if key not in self.backwards:
            text = programs.backward(self.clauses, [self.tables[n] for n in wanted], with_lse)
            self.backwards[key] = Bound(programs.compiled(text.module), self.sequence)
        return self.backwards[key]


def _last_stride_one(tensor: torch.Tensor) -> torch.Tensor:
    """What the library can read: negative strides there are none in torch, and
    expanded dimensions are read in place."""
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


class Function(torch.autograd.Function):
    """q, k and v are (batch, sequence, heads, dim)."""

    @staticmethod
    def forward(ctx: Any, attention: Attention, q: torch.Tensor, k: torch.Tensor,
                v: torch.Tensor, *tables: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        o, lse = forward(attention, q, k, v, tables)
        ctx.attention = attention
        ctx.save_for_backward(q, k, v, o, lse, *tables)
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    @once_differentiable
    def backward( # pyright: ignore[reportIncompatibleMethodOverride]
            ctx: Any, *gradients_of_results: torch.Tensor | None) -> Any:
        do, dlse = gradients_of_results
        q, k, v, o, lse, *tables = ctx.saved_tensors
        needs = ctx.needs_input_grad
        if do is None and dlse is None:
            return (None,) * len(needs)
        wanted = tuple(n for n, need in enumerate(needs[4:]) if need)
        dq, dk, dv, *dtables = backward(ctx.attention, q, k, v, o, lse,
                                        torch.zeros_like(o) if do is None else do, dlse, tables,
                                        wanted)
        gradients: list[Any] = [None] * len(tables)
        for n, gradient in zip(wanted, dtables):
            gradients[n] = gradient.to(tables[n].dtype)
        return (None, dq, dk, dv, *gradients)


_apply = cast(Callable[..., tuple[torch.Tensor, torch.Tensor]], cast(Any, Function).apply)


def attend(attention: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
           tables: abc.Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """With gradients, where one is wanted."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v, *tables)):
        return _apply(attention, q, k, v, *tables)
    return forward(attention, q, k, v, tables)


def forward(attention: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
            tables: abc.Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    b, s, h, _ = q.shape
    # As q lies: what follows an attention often depends on it.
    if q.stride(1) < q.stride(2):
        o = q.new_empty((b, h, s, v.shape[3])).transpose(1, 2)
    else:
        o = q.new_empty((b, s, h, v.shape[3]))
    lse = q.new_empty((b, h, s), dtype=type_of_scores(q))
    q, k, v, *tables = map(_last_stride_one, (q, k, v, *tables))
    attention.forward.run([q, k, v, *tables, o, lse], torch.get_num_threads())
    return o, lse


def backward(attention: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
             o: torch.Tensor, lse: torch.Tensor, do: torch.Tensor, dlse: torch.Tensor | None,
             tables: abc.Sequence[torch.Tensor], wanted: tuple[int, ...]) -> list[torch.Tensor]:
    q, k, v, o, lse, do, *tables = map(_last_stride_one, (q, k, v, o, lse, do, *tables))
    gradients = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype) if x.is_contiguous() or
                 x.transpose(1, 2).is_contiguous() else x.new_empty(x.shape) for x in (q, k, v)]
    gradients += [tables[n].new_empty(tables[n].shape, dtype=type_of_scores(q)) for n in wanted]
    given = [q, k, v, o, lse, do]
    if dlse is not None:
        given.append(_last_stride_one(dlse))
    attention.backward(wanted, dlse is not None).run([*given, *tables, *gradients],
                                                     torch.get_num_threads())
    return gradients


def type_of_scores(q: torch.Tensor) -> torch.dtype:
    return torch.float64 if q.dtype == torch.float64 else torch.float32


#===----------------------------------------------------------------------===#
# From functions to programs
#===----------------------------------------------------------------------===#


def prepare(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: tracing.Function | None,
            score: tracing.Function | None, scale: float | None,
            sequence: Sequence | None, strategy: str | None, head_offset: int,
            batch_offset: int) -> tuple[Attention, list[torch.Tensor]]:
    """The attention of these sizes, and the tables that it takes now."""
    of_mask, of_score = (fingerprint.of(function) if function else _NOTHING
                         for function in (mask, score))
    key = None
    captured: list[torch.Tensor] = []
    if of_mask is not None and of_score is not None:
        key = (of_mask[0], of_score[0], q.shape, k.shape, v.shape, q.dtype, scale, sequence,
               strategy, head_offset, batch_offset)
        captured = of_mask[1] + of_score[1]
        found = _prepared.get(key)
        if found is not None:
            attention, places = found
            return attention, [captured[place] for place in places]
    attention = _build(q, k, v, mask, score, scale, sequence, strategy, head_offset,
                       batch_offset)
    tables = [table.source for table in attention.tables]
    if key is not None and of_mask is not None and of_score is not None:
        of_score_alone = attention.clauses.score
        num_masks = len(tables) - (len(of_score_alone.tables) if of_score_alone else 0)
        places = _places(tables[:num_masks], of_mask[1])
        places += [place if place < 0 else place + len(of_mask[1])
                   for place in _places(tables[num_masks:], of_score[1])]
        # Tables that a function makes are others on the next call, and so may be
        # what it does with a tensor that has become no table.
        if sorted(set(places)) == list(range(len(captured))):
            if len(_prepared) >= _LARGEST_CACHE:
                _prepared.clear()
            _prepared[key] = attention, places
    return attention, tables


def _places(tables: abc.Sequence[torch.Tensor], captured: abc.Sequence[torch.Tensor]) -> list[int]:
    """Which of the captured tensors each table is; -1: none of them."""
    return [next((n for n, x in enumerate(captured) if x is table), -1) for table in tables]


# Of attentions: sizes, functions and what these captured by value.
_LARGEST_CACHE = 4096
_NOTHING: tuple[fingerprint.Fingerprint, list[torch.Tensor]] = ((), [])
_prepared: dict[Any, tuple[Attention, list[int]]] = {}


def _build(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: tracing.Function | None,
           score: tracing.Function | None, scale: float | None,
           sequence: Sequence | None, strategy: str | None, head_offset: int,
           batch_offset: int) -> Attention:
    num_queries, num_keys = q.shape[1], k.shape[1]
    if sequence is not None:
        num_queries = sequence.global_length(num_queries, sequence.length)
        num_keys = sequence.global_length(
            num_keys, sequence.length if sequence.key_length is None else sequence.key_length)
    shape = Shape(q.shape[0], num_queries, num_keys, q.shape[2], k.shape[2], q.shape[3],
                  v.shape[3], DTYPES[q.dtype])

    def region(function: tracing.Function | None, is_score: bool) -> Region | None:
        if function is None:
            return None
        return tracing.trace(function, is_score, shape.float_type, head_offset, batch_offset)

    clauses = Clauses(shape, region(mask, False), region(score, True), scale,
                      sequence.layout if sequence else Layout(1), strategy)
    text = programs.forward(clauses)
    regions = [region for region in (clauses.mask, clauses.score) if region is not None]
    reads = (any(region.reads(region.h) for region in regions),
             any(region.reads(region.b) for region in regions))
    return Attention(clauses, list(text.tables), sequence, reads,
                     Bound(programs.compiled(text.module), sequence), {})
