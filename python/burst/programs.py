# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as a program: its text, its compilation, its runs."""

from __future__ import annotations

import ctypes as c
import dataclasses
import functools
import os
import threading
import weakref
from collections.abc import Sequence
from concurrent import futures
from typing import Any

from burst import _c, names
from burst.regions import TABLE_TYPES, Region, Table
from burst.sequence import Layout

# Types of elements by MLIR's names (burst/program.h).
TYPES = {"f64": 1, "f32": 2, "bf16": 3, "f16": 4, "i64": 5, "i32": 6, "i16": 7, "i8": 8, "i1": 9}


@dataclasses.dataclass(frozen=True)
class Shape:
    """The sizes of an attention; lengths are those of all ranks together."""

    batch: int
    num_queries: int
    num_keys: int
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
        def tensor(*sizes: int, element: str = self.element) -> str:
            return f"tensor<{'x'.join(map(str, sizes))}x{element}>"
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


@dataclasses.dataclass(frozen=True)
class Text:
    """A module, and the tables that its function takes behind the tensors."""

    module: str
    tables: tuple[Table, ...]


def forward(clauses: Clauses, has_constants: bool = False) -> Text:
    """A function from q, k, v and tables to o and lse. With `has_constants` the
    tables are part of the text, as they are now."""
    q, k, v, o, lse = clauses.shape.types()
    return _function(clauses, "attention", [("q", q), ("k", k), ("v", v)],
                     [("o", o), ("lse", lse)], (), has_constants)


def backward(clauses: Clauses, gradients: Sequence[Table], with_lse: bool,
             has_constants: bool = False) -> Text:
    """A function from q, k, v, o, lse, do, with_lse dlse, and tables to dq, dk, dv
    and the gradients of some of the tables of the score."""
    q, k, v, o, lse = clauses.shape.types()
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
    if clauses.strategy:
        tail += f" strategy <{clauses.strategy}>"
    if gradients:
        assert clauses.score is not None
        which = [n for n, table in enumerate(clauses.score.tables)
                 if any(table is wanted for wanted in gradients)]
        tail += f" gradients {which}"
    kinds = ", ".join(kind for _, kind in results)
    given = ", ".join(f"%r{n}" for n in range(len(results)))
    named = ", ".join(f"{kind} {{burst.name = \"{name}\"}}" for name, kind in results)
    module = f"""shard.grid @cp(shape = {clauses.layout.ranks})
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
    return Text(module, taken)


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
    lines: list[str] = []
    tables: list[tuple[str, Table]] = []
    if clauses.mask is not None:
        shape = clauses.shape
        known, taken = names.of_mask(clauses.mask, shape.batch, shape.num_queries,
                                     shape.num_keys)
        if known:
            text = known[0] if len(known) == 1 else f"[{', '.join(known)}]"
            if taken:
                tables += [("mask_table0", taken[0])]
                kinds = ", ".join(table.type for table in taken)
                text += f"({', '.join('%mask_table0' for _ in taken)} : {kinds})"
            lines.append(f"      mask {text}")
        else:
            lines.append("      " + clauses.mask.text("      "))
            tables += [(clauses.mask.name_of(table), table) for table in clauses.mask.tables]
    if clauses.score is not None:
        lines.append("      " + clauses.score.text("      "))
        tables += [(clauses.score.name_of(table), table) for table in clauses.score.tables]
    return "\n".join(lines), tables


#===----------------------------------------------------------------------===#
# Compiled programs
#===----------------------------------------------------------------------===#


class Program:
    """A compiled program, of `burst_program`."""

    def __init__(self, handle: _c.Handle) -> None:
        self.handle = handle
        library = _c.library
        weakref.finalize(self, library.burst_program_release, handle)
        self.target: str = library.burst_program_target(handle).decode()
        self.num_ranks: int = library.burst_program_num_ranks(handle)

    @staticmethod
    def compile(module: str, target: str = "cpu") -> Program:
        handle = _c.Handle()
        text = module.encode()
        config = _c.CompileConfig(name=b"attention", target=target.encode())
        _c.check(_c.library.burst_compile_text(text, len(text), config, handle))
        return Program(handle)

    @functools.cached_property
    def is_host(self) -> tuple[bool, ...]:
        """Which parameters of a program for GPUs lie in the memory of the host."""
        library = _c.library
        return tuple(bool(library.burst_program_parameter(self.handle, n).contents.is_host)
                     for n in range(library.burst_program_num_parameters(self.handle)))


@functools.lru_cache(maxsize=1024)
def compiled(module: str, target: str = "cpu") -> Program:
    """The program of a module, for "cpu" or "cuda": text that was seen is not
    compiled again."""
    return Program.compile(module, target)


#===----------------------------------------------------------------------===#
# Devices
#===----------------------------------------------------------------------===#


class Device:
    """The threads that compute, of `burst_device`."""

    def __init__(self, threads: int) -> None:
        self.handle = _c.Handle()
        _c.check(_c.library.burst_device_create_cpu(_c.DeviceConfig(threads=threads),
                                                    self.handle))
        self.threads: int = _c.library.burst_device_threads(self.handle)
        self.destroy = weakref.finalize(self, _c.library.burst_device_destroy, self.handle)


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


def stream(ordinal: int, cuda_stream: int) -> Stream:
    """The one of a GPU and a CUstream, which runs on it follow."""
    with _devices_lock:
        found = _streams.get((ordinal, cuda_stream))
        if found is None:
            found = _streams[ordinal, cuda_stream] = Stream(ordinal, cuda_stream)
        return found


_devices: dict[int, Device] = {}
_devices_lock = threading.Lock()


def device(threads: int) -> Device:
    """The one device with so many threads; 0: a thread per CPU."""
    found = _devices.get(threads)
    if found is None:
        with _devices_lock:
            found = _devices.get(threads)
            if found is None:
                found = _devices[threads] = Device(threads)
    return found


def _after_fork() -> None:
    """A child has none of the threads of its parent: it makes devices of its own,
    and leaves those of the parent as they are."""
    global _generation, _helper
    for device in _devices.values():
        device.destroy.detach()
    _lost.extend([*_devices.values(), _helper])
    _helper = None
    _devices.clear()
    _generation += 1


_lost: list[Any] = []
_helper: futures.ThreadPoolExecutor | None = None
_generation = 0
os.register_at_fork(after_in_child=_after_fork)


def generation() -> int:
    """Another number in a forked child, which has none of the devices of before."""
    return _generation


#===----------------------------------------------------------------------===#
# Tensors
#===----------------------------------------------------------------------===#


def describe(tensor: _c.Tensor, data: int, kind: str, sizes: Sequence[int],
             strides: Sequence[int]) -> None:
    """Fills in a `burst_tensor`."""
    tensor.data = data
    tensor.type = TYPES[kind]
    tensor.rank = len(sizes)
    tensor.sizes[:len(sizes)] = list(sizes)
    tensor.strides[:len(sizes)] = list(strides)


def run(program: Program, config: _c.RunConfig, values: Any) -> None:
    """Runs one rank on an array of `burst_tensor`, without the GIL."""
    run_at(program.handle.value, config, _c.address(values), len(values))


def run_at(program: int | None, config: _c.RunConfig, values: int, count: int) -> None:
    """As `run`, of a handle and the address of the array: the shortest call."""
    if config.transport and threading.current_thread() is threading.main_thread():
        error = _run_for_main(program, config, values, count)
    else:
        error = _run_at(program, _c.address(config), values, count, None)
    if error:
        _c.check(error)


def _run_for_main(program: int | None, config: _c.RunConfig, values: int, count: int) -> Any:
    """A run with other ranks, on another thread: signals such as an interrupt of the
    keyboard reach Python on the main one, also while it waits for a rank."""
    global _helper
    if _helper is None:
        _helper = futures.ThreadPoolExecutor(1, "burst")
    run = _helper.submit(_run_at, program, _c.address(config), values, count, None)
    try:
        return run.result()
    except BaseException as error:
        # The run ends here and on the other ranks, and with it their use of memory.
        reason = type(error).__name__
        _c.library.burst_transport_stop(config.transport, reason.encode())
        _c.library.burst_error_destroy(run.result())
        raise


_run_at = _c.declare_again("burst_run", [c.c_void_p, c.c_void_p, c.c_void_p, _c.Int, c.c_void_p])


def run_all(program: Program, device: Device, values: Any) -> list[_c.Counters]:
    """Runs all ranks as threads on global tensors; gives what each did."""
    counters = (_c.Counters * program.num_ranks)()
    for counter in counters:
        counter.size = c.sizeof(_c.Counters)
    _c.check(_c.library.burst_run_all(program.handle, _c.RunAllConfig(device=device.handle),
                                      values, len(values), counters))
    return list(counters)
