# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.compile and burst.load: attentions compiled ahead, and kept in files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from collections.abc import Sequence as Sizes
from typing import Any

from burst import _c, arguments, bundles, descriptions, programs, tracing, worlds
from burst.errors import Error
from burst.regions import Table
from burst.sequence import Sequence

# Tensors with the dimensions of q; the others are lse and tables.
_WIDE = frozenset(("q", "k", "v", "o", "do", "dq", "dk", "dv"))
# Results, and arguments that have as many positions.
_LIKE = {"o": "q", "lse": "q", "max_scores": "q", "dq": "q", "dk": "k", "dv": "v"}


class Program(bundles.Program):
    """A compiled attention. `signature` has what it takes and gives; q, k, v and
    their like are (batch, sequence, heads, dim) there and for `run`."""

    def __call__(self, *given: Any, sequence: Sequence | None = None, layout: str = "bhsd",
                 threads: int = 0, **named: Any) -> tuple[Any, ...]:
        """The results, in new tensors of the library of the first argument: torch or
        numpy.

        Arguments are those of the signature, in its order or by name. Without a
        sequence tensors are whole, and all ranks run as threads of this process;
        with one they are this rank's shards, and all ranks of its group call this.
        """
        arguments.check_options(layout, None, "auto")
        inputs = [x for x in self.signature if not x.is_result]
        if len(given) > len(inputs):
            raise ValueError(f"@{self.name} takes {', '.join(x.name for x in inputs)}; got "
                             f"{len(given)} arguments")
        operands = {x.name: value for x, value in zip(inputs, given)}
        for name, value in named.items():
            if name in operands or all(x.name != name for x in inputs):
                raise TypeError(f"{name}: @{self.name} takes "
                                f"{', '.join(x.name for x in inputs)}, each once")
            operands[name] = value
        if not operands:
            raise ValueError(f"@{self.name} takes {', '.join(x.name for x in inputs)}; got none")
        if sequence is not None and (sequence.ranks != self.num_ranks or sequence.group is None):
            raise ValueError(f"sequence: {sequence} does not fit @{self.name}, which is for "
                             f"{self.num_ranks} ranks that are processes of a group")
        first = next(iter(operands.values()))
        order = arguments.LAYOUTS[layout]
        operands = {name: _permuted(x, order) if name in _WIDE else x
                    for name, x in operands.items()}
        results: list[Any] = []
        for x in self.signature:
            if x.is_result:
                operands[x.name] = _empty(first, self._shape(x, operands, sequence), x.dtype)
                results.append(_permuted(operands[x.name], order) if x.name in _WIDE else
                               operands[x.name])
        world, deadline = None, 0.0
        if sequence is not None and sequence.ranks > 1:
            world, deadline = worlds.of(sequence), sequence.deadline_seconds
            operands.update(self._extents(operands, sequence))
        self.run(operands, world, threads=threads, deadline_seconds=deadline)
        return tuple(results)

    def _extents(self, operands: dict[str, Any], sequence: Sequence) -> dict[str, int]:
        """The lengths of all ranks that are left open, of this rank's shards."""
        found: dict[str, int] = {}
        for n, (at, dim) in self._has_extent.items():
            like, name = self.signature[at].name, self.signature[n].name
            if name not in operands and like in operands:
                length = sequence.length
                if like in ("k", "v") and sequence.key_length is not None:
                    length = sequence.key_length
                found[name] = sequence.global_length(operands[like].shape[dim], length)
        return found

    def _shape(self, x: bundles.Parameter, operands: dict[str, Any],
               sequence: Sequence | None) -> list[int]:
        sizes = list(x.shape)
        like = operands.get(_LIKE.get(x.name, ""))
        if like is not None and x.shard_dim is not None and sizes[x.shard_dim] is None:
            # Of this rank, where there is a sequence.
            known = [like.shape[1] if size is None else size for size in sizes]
            return known if sequence is None else \
                [size // n for size, n in zip(known, x.parts)]
        if like is None and x.name in _LIKE and None in sizes:
            raise ValueError(f"{_LIKE[x.name]}: is missing; @{self.name} takes "
                             f"{', '.join(y.name for y in self.signature if not y.is_result)}")
        if sequence is not None and x.shard_dim is not None:
            assert sequence.rank is not None
            sizes[x.shard_dim] = len(self.positions(x.name, sequence.rank, sizes[x.shard_dim]))
            sizes = [size if size is None else size // n for size, n in zip(sizes, x.parts)]
        known = [size for size in sizes if size is not None]
        if len(known) != len(sizes):
            raise ValueError(f"{x.name}: @{self.name} leaves its sizes open; use run, with "
                             "tensors to be written")
        return known


class Compiled(Program):
    """A program that was compiled here, and can be written to a file."""

    def __init__(self, handle: _c.Handle, module: str, config: _c.CompileConfig) -> None:
        super().__init__(handle)
        self.module = module # MLIR's text
        self._config = config

    @property
    def proved(self) -> str | None:
        """For what the schedule was proved: "for every number of ranks", of rings in both
        directions "for every odd number of ranks" or "for every even number of ranks", or
        "for these ranks, sizes and tables"; None where sizes or tables are open, and it was
        not proved for all of them."""
        found: int = _c.library.burst_program_proof(self.handle)
        words = (None, "for these ranks, sizes and tables", "for every number of ranks",
                 "for every odd number of ranks", "for every even number of ranks")
        return words[found]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a shared object for burst.load, burst_runtime.load, burst-run and
        burst_program_load. A linker (ld.lld, ld or cc) must be on the PATH."""
        text = self.module.encode()
        _c.check(_c.library.burst_compile_to_file(text, len(text), self._config,
                                                  os.fsencode(path)))


def compile(q: Sizes[int | None], k: Sizes[int | None] | None = None,
            v: Sizes[int | None] | None = None, *,
            mask: tracing.Function | None = None, score: tracing.Function | None = None,
            sequence: Sequence | None = None, dtype: Any = "float32",
            scale: float | None = None, strategy: str = "auto", without: Iterable[str] = (),
            layout: str = "bhsd",
            head_offset: int = 0, batch_offset: int = 0, backward: bool = False,
            lse_gradient: bool = False, max_scores: bool = False, constants: bool = False,
            processor: str | None = None, features: str | None = None) -> Compiled:
    """An attention of tensors of these shapes, compiled ahead.

    Shapes, dtype, mask, score and sequence are as burst.explain has them, but that a
    length may be None: the program is for any. Tensors that mask and score read
    become arguments mask_table0, ..., score_table0, ..., or, with `constants`, part
    of the program as they are now. The program gives o and lse, with `max_scores` these
    too, as burst.attention has them. With `backward` it takes
    q, k, v, o, lse and do, with `lse_gradient` dlse, and gives dq, dk, dv, and the
    gradients of the score's tables that require one. `processor`, by LLVM's name,
    and `features`, such as "+avx2,-fma", are those of this machine where they are
    left out; it must be able to stand in for them. `without` is that of burst.attention.
    """
    if lse_gradient and not backward:
        raise ValueError("lse_gradient: is of the backward pass; add backward=True")
    if max_scores and backward:
        raise ValueError("max_scores: are of the forward pass; leave them, or backward=True, out")
    described = descriptions.clauses(q, k, v, mask, score, dtype, scale, sequence, strategy,
                                     without, layout, head_offset, batch_offset)
    described = dataclasses.replace(described, max_scores=max_scores)
    tables: list[Table] = []
    if backward and described.score is not None:
        tables = [x for x in described.score.tables if getattr(x.source, "requires_grad", False)]
    if tables and constants:
        raise ValueError("constants: tables that have a gradient are arguments; leave it out, or "
                         "detach them")
    text = programs.backward(described, tables, lse_gradient, constants) if backward else \
        programs.forward(described, constants)
    config = _c.CompileConfig(name=b"attention", processor=processor and processor.encode(),
                              features=features and features.encode(),
                              without=",".join(described.without).encode())
    module = text.module.encode()
    handle = _c.Handle()
    try:
        _c.check(_c.library.burst_compile_text(module, len(module), config, handle))
    except Error as error:
        raise text.explained(error) from None
    return Compiled(handle, text.module, config)


def load(path: str | os.PathLike[str]) -> Program:
    """The program of a file that burst.compile, burst-compile or
    burst_compile_to_file wrote. To load it runs its code: it must be trusted."""
    return bundles.load(path, Program)


def _permuted(x: Any, order: Sizes[int]) -> Any:
    if tuple(order) == (0, 1, 2, 3):
        return x
    if hasattr(x, "permute"):
        return x.permute(*order)
    if hasattr(x, "__array_interface__"):
        return x.transpose(order)
    raise TypeError(f"layout: {type(x).__name__} cannot be transposed; give tensors of torch or "
                    "arrays of numpy, or layout=\"bshd\"")


def _empty(like: Any, shape: Sizes[int], dtype: str) -> Any:
    """A new tensor of the library of another one."""
    if hasattr(like, "new_empty"):
        import torch
        return torch.empty(list(shape), dtype=getattr(torch, dtype))
    import numpy
    if dtype == "bfloat16":
        return numpy.empty(shape, like.dtype)
    return numpy.empty(shape, dtype)
