# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as a program: its text, its compilation, its runs."""

from __future__ import annotations

import ctypes as c
import dataclasses
import functools
import re
import threading
from collections.abc import Sequence

from burst import _c, names, running
from burst.arguments import strategy_of
from burst.errors import ArgumentError, Code, Error
from burst.regions import TABLE_TYPES, Region, Table
from burst.running import describe as describe
from burst.running import device as device
from burst.running import generation as generation
from burst.running import run as run
from burst.running import run_all as run_all
from burst.running import run_at as run_at
from burst.sequence import Layout


@dataclasses.dataclass(frozen=True)
class Shape:
    """The sizes of an attention; lengths are those of all ranks together, None where
    nothing is known of them."""

    batch: int
    num_queries: int | None
    num_keys: int | None
    query_heads: int
    key_heads: int
    head_dim: int
    value_dim: int
    dtype: str # float32, float64, bfloat16 or float16

    @property
    def element(self) -> str:
        return TABLE_TYPES[self.dtype]

    @property
    def float_type(self) -> str:
        """Of scores, lse and gradients of tables."""
        return "f64" if self.dtype == "float64" else "f32"

    def types(self) -> tuple[str, str, str, str, str]:
        """MLIR's types of q, k, v, o and lse."""
        def tensor(*sizes: int | None, element: str = self.element) -> str:
            text = "x".join("?" if size is None else str(size) for size in sizes)
            return f"tensor<{text}x{element}>"
        return (tensor(self.batch, self.num_queries, self.query_heads, self.head_dim),
                tensor(self.batch, self.num_keys, self.key_heads, self.head_dim),
                tensor(self.batch, self.num_keys, self.key_heads, self.value_dim),
                tensor(self.batch, self.num_queries, self.query_heads, self.value_dim),
                tensor(self.batch, self.query_heads, self.num_queries, element=self.float_type))


@dataclasses.dataclass(frozen=True)
class Clauses:
    """What of a program does not depend on its pass."""

    shape: Shape
    mask: Region | None
    score: Region | None
    scale: float | None
    layout: Layout
    strategy: str | None
    # Whether the program is for any number of queries, and of keys.
    is_open: tuple[bool, bool] = (False, False)
    # Optimisations that are left out.
    without: tuple[str, ...] = ()
    # Whether the forward pass gives the largest scores too.
    max_scores: bool = False

    def __post_init__(self) -> None:
        self.check_bounds(self.shape.num_queries, self.shape.num_keys)

    @property
    def program_shape(self) -> Shape:
        """What the program knows of the sizes."""
        queries, keys = self.is_open
        return dataclasses.replace(self.shape,
                                   num_queries=None if queries else self.shape.num_queries,
                                   num_keys=None if keys else self.shape.num_keys)

    def extents(self, num_queries: int, num_keys: int) -> tuple[int, ...]:
        """Of these lengths, those that a run gives as arguments."""
        return tuple(length for length, is_open in zip((num_queries, num_keys), self.is_open)
                     if is_open)

    def check_bounds(self, num_queries: int | None, num_keys: int | None) -> None:
        """That tables have an element for each position that is known."""
        extents = {"b": self.shape.batch, "h": self.shape.query_heads, "i": num_queries,
                   "j": num_keys}
        for region in (self.mask, self.score):
            if region is not None:
                try:
                    region.check_bounds(extents)
                except IndexError as error:
                    raise IndexError(f"{error}{self.hint}") from None

    @property
    def hint(self) -> str:
        """For those who give each rank the whole sequence."""
        if self.layout.ranks == 1:
            return ""
        return (f"; the sequence of all {self.layout.ranks} ranks has {self.shape.num_queries} "
                "queries: q, k and v are a rank's shards of it (burst.Sequence.shard), and tables "
                "are whole on each rank")


    def described(self) -> dict[str, str]:
        """What must be the same on all ranks, in words and in text."""
        shape = self.shape
        return {
            "q of all ranks": f"batch {shape.batch}, {shape.num_queries} positions, "
                              f"{shape.query_heads} heads of {shape.head_dim}",
            "k and v of all ranks": f"{shape.num_keys} positions, {shape.key_heads} heads of "
                                    f"{shape.head_dim} and {shape.value_dim}",
            "dtype": shape.dtype,
            "order": self.layout.order,
            "nodes": str(self.layout.nodes),
            "strategy": self.strategy or "auto",
            "without": ", ".join(self.without) or "nothing",
            "max_scores": "wanted" if self.max_scores else "not wanted",
            "scale": "1 / sqrt(head dim)" if self.scale is None else repr(self.scale),
            "mask": _mask(self)[0].strip().removeprefix("mask ") or "none",
            "score": self.score.text("") if self.score is not None else "none",
        }


@dataclasses.dataclass(frozen=True)
class Text:
    """A module, and the tables that its function takes behind the tensors."""

    module: str
    tables: tuple[Table, ...]
    clauses: Clauses
    is_backward: bool

    @property
    def described(self) -> dict[str, str]:
        """What must be the same on all ranks, in words and in text."""
        return {"pass": "backward" if self.is_backward else "forward", **self.clauses.described()}

    def explained(self, error: Error) -> Error:
        """An error of the module's compilation or of its run, in the words of the
        caller, who has not seen the text."""
        lines = [line for line in str(error).split("\n") if not line.endswith("it is read here")]
        message = re.sub(r"(?m)^attention:\d+:\d+: ('burst\.\w+' op )?", "", "\n".join(lines))
        for name, table in _regions(self.clauses)[1]:
            if table.variable:
                message = re.sub(rf"\b{name}\b", f"{table.variable} ({name})", message)
        if "outside of its bounds" in message:
            message += self.clauses.hint
        return type(error)(message, error.code, error.location)


def forward(clauses: Clauses, has_constants: bool = False) -> Text:
    """A function from q, k, v, tables and open lengths to o, lse and maybe max_scores. With
    `has_constants` the tables are part of the text, as they are now."""
    q, k, v, o, lse = clauses.program_shape.types()
    results = [("o", o), ("lse", lse)]
    if clauses.max_scores:
        results.append(("max_scores", lse))
    return _function(clauses, "attention", [("q", q), ("k", k), ("v", v)], results, (),
                     has_constants)


def backward(clauses: Clauses, gradients: Sequence[Table], with_lse: bool,
             has_constants: bool = False) -> Text:
    """A function from q, k, v, o, lse, do, with_lse dlse, tables and open lengths to
    dq, dk, dv and the gradients of some of the tables of the score."""
    q, k, v, o, lse = clauses.program_shape.types()
    operands = [("q", q), ("k", k), ("v", v), ("o", o), ("lse", lse), ("do", o)]
    if with_lse:
        operands.append(("dlse", lse))
    return _function(clauses, "attention_backward", operands,
                     [("dq", q), ("dk", k), ("dv", v)], gradients, has_constants)


def _function(clauses: Clauses, op: str, operands: list[tuple[str, str]],
              results: list[tuple[str, str]], gradients: Sequence[Table],
              has_constants: bool) -> Text:
    text, tables = _regions(clauses)
    arguments = [f"%{name}: {kind} {{burst.name = \"{name}\"}}" for name, kind in operands]
    constants = ""
    if has_constants:
        constants = "".join(f"  %{name} = arith.constant {_dense(table)} : {table.type}\n"
                            for name, table in tables)
    else:
        arguments += [f"%{name}: {table.type} {{burst.name = \"{name}\"}}"
                      for name, table in tables]
    results = results + [
        (f"d{name}", f"tensor<{'x'.join(map(str, table.shape))}x{clauses.shape.float_type}>")
        for name, table in tables if any(table is wanted for wanted in gradients)]
    if clauses.scale is not None:
        text += f"\n      scale {clauses.scale:.17e}"
    tail = f"      sequence <@cp, {clauses.layout.order}>"
    if strategy := strategy_of(clauses.strategy, is_backward=op == "attention_backward"):
        if clauses.layout.nodes == 1 and re.search(r"\bdouble_ring|\bon \[[^\]]*[1-9]", strategy):
            raise ArgumentError(f"strategy: {strategy!r} goes over several nodes, of which the "
                                f"{clauses.layout.ranks} ranks have 1; say nodes= of "
                                "burst.Sequence", Code.INVALID_ARGUMENT)
        tail += f" strategy <{strategy}>"
    if gradients:
        assert clauses.score is not None
        which = [n for n, table in enumerate(clauses.score.tables)
                 if any(table is wanted for wanted in gradients)]
        tail += f" gradients {which}"
    kinds = ", ".join(kind for _, kind in results)
    given = ", ".join(f"%r{n}" for n in range(len(results)))
    named = ", ".join(f"{kind} {{burst.name = \"{name}\"}}" for name, kind in results)
    module = f"""shard.grid @cp(shape = {clauses.layout.grid})
func.func @attention({", ".join(arguments)})
    -> ({named}) {{
{constants}  {given} = burst.{op} {", ".join(f"%{name}" for name, _ in operands)}
{text}
{tail}
      : ({", ".join(kind for _, kind in operands)})
      -> ({kinds})
  return {given} : {kinds}
}}
"""
    taken = () if has_constants else tuple(table for _, table in tables)
    return Text(module, taken, clauses, is_backward=op == "attention_backward")


def _dense(table: Table) -> str:
    """The elements of a table, as MLIR writes them: by their bytes, but truths as
    words."""
    source = table.source
    if table.dtype == "bool":
        flat = source.reshape(-1).tolist()
        # Lists in lists, by shape.
        parts = ["true" if x else "false" for x in flat]
        for size in reversed(table.shape):
            parts = ["[" + ", ".join(parts[n:n + size]) + "]"
                     for n in range(0, len(parts), size)]
        return f"dense<{parts[0]}>"
    if hasattr(source, "data_ptr"): # of torch, with which there may be no numpy
        source = source.detach().contiguous()
        data = c.string_at(source.data_ptr(), source.numel() * source.element_size())
    else:
        data = source.tobytes()
    return f'dense<"0x{data.hex().upper()}">'


def _regions(clauses: Clauses) -> tuple[str, list[tuple[str, Table]]]:
    """The clauses of mask and score, and the arguments that they capture."""
    mask, tables = _mask(clauses)
    lines = [mask] if mask else []
    if clauses.score is not None:
        lines.append("      " + clauses.score.text("      "))
        tables += [(clauses.score.name_of(table), table) for table in clauses.score.tables]
    return "\n".join(lines), tables


def _mask(clauses: Clauses) -> tuple[str, list[tuple[str, Table]]]:
    """The clause of the mask, by names where it has some, and what it captures."""
    if clauses.mask is None:
        return "", []
    shape = clauses.program_shape
    known, taken = names.of_mask(clauses.mask, shape.batch, shape.num_queries, shape.num_keys)
    if not known:
        return "      " + clauses.mask.text("      "), \
            [(clauses.mask.name_of(table), table) for table in clauses.mask.tables]
    text = known[0] if len(known) == 1 else f"[{', '.join(known)}]"
    if taken:
        text += f"(%mask_table0 : {taken[0].type})"
    return f"      mask {text}", [("mask_table0", table) for table in taken]


#===----------------------------------------------------------------------===#
# Compiled programs
#===----------------------------------------------------------------------===#


class Program(running.Program):
    """A program that was compiled in this process."""

    @staticmethod
    def compile(module: str, target: str = "cpu", without: tuple[str, ...] = ()) -> Program:
        handle = _c.Handle()
        text = module.encode()
        config = _c.CompileConfig(name=b"attention", target=target.encode(),
                                  without=",".join(without).encode())
        _c.check(_c.library.burst_compile_text(text, len(text), config, handle))
        return Program(handle)

    @functools.cached_property
    def is_host(self) -> tuple[bool, ...]:
        """Which parameters of a program for GPUs lie in the memory of the host."""
        library = _c.library
        return tuple(bool(library.burst_program_parameter(self.handle, n).contents.is_host)
                     for n in range(library.burst_program_num_parameters(self.handle)))


def compiled_of(text: Text, target: str = "cpu") -> Program:
    try:
        return compiled(text.module, target, text.clauses.without)
    except Error as error:
        raise text.explained(error) from None


@functools.lru_cache(maxsize=1024)
def compiled(module: str, target: str = "cpu", without: tuple[str, ...] = ()) -> Program:
    """The program of a module, for "cpu" or "cuda": text that was seen is not
    compiled again."""
    return Program.compile(module, target, without)


#===----------------------------------------------------------------------===#
# GPUs
#===----------------------------------------------------------------------===#


class Stream:
    """A GPU and a CUstream of the caller's, of `burst_stream`."""

    def __init__(self, ordinal: int, stream: int) -> None:
        if ordinal not in _gpus:
            gpu = _c.Handle()
            _c.check(_c.library.burst_device_create_cuda(_c.CudaConfig(ordinal=ordinal), gpu))
            _gpus[ordinal] = gpu
        self.device = _gpus[ordinal]
        self.handle = _c.Handle()
        _c.check(_c.library.burst_stream_create_cuda(self.device, stream, self.handle))

    def synchronize(self) -> None:
        _c.check(_c.library.burst_stream_synchronize(self.handle))


# A process that used a GPU cannot use it in its forked children: CUDA says so there.
_gpus: dict[int, _c.Handle] = {}
_streams: dict[tuple[int, int], Stream] = {}
_lock = threading.Lock()


def stream(ordinal: int, cuda_stream: int) -> Stream:
    """The one of a GPU and a CUstream, which runs on it follow."""
    with _lock:
        found = _streams.get((ordinal, cuda_stream))
        if found is None:
            found = _streams[ordinal, cuda_stream] = Stream(ordinal, cuda_stream)
        return found
