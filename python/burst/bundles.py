# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs from files: what they take and give, and their runs.

Also a module of burst_runtime.
"""

from __future__ import annotations

import ctypes as c
import dataclasses
import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

from . import _c, running, views
from .views import View

# Types of elements as numpy and torch name them, and as burst does.
_TYPES = {"float64": "f64", "float32": "f32", "bfloat16": "bf16", "float16": "f16",
          "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "bool": "i1"}
_NAMES = {running.TYPES[kind]: name for name, kind in _TYPES.items()}
# Of numbers, by `struct`.
_FORMATS = {"float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i",
            "int16": "h", "int8": "b", "bool": "?"}
_KINDS: tuple[Literal["tensor", "scalar", "extent"], ...] = ("tensor", "scalar", "extent")


@dataclasses.dataclass(frozen=True)
class Parameter:
    """An argument or a result of a program. An extent is a number: a size of the
    tensors of all ranks together that was left open."""

    name: str
    kind: Literal["tensor", "scalar", "extent"]
    dtype: str # such as float32
    shape: tuple[int | None, ...] # of all ranks together; None: known at run time
    is_result: bool
    shard_dim: int | None # which dimension is split over the ranks, in the order of a sequence
    parts: tuple[int, ...] # into how many equal ones each is cut, as heads and batch are
    is_partial: bool # a result of which each rank has a part: the sum is meant

    def __str__(self) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.name} {self.dtype}" + (f" ({sizes})" if self.kind == "tensor" else "")


class Program(running.Program):
    """A compiled program. `signature` has its arguments, and behind them its results;
    `target` says which processor it is for."""

    def __repr__(self) -> str:
        taken, given = (", ".join(map(str, (x for x in self.signature if x.is_result == is_result)))
                        for is_result in (False, True))
        return (f"<burst program @{self.name} for {self.num_ranks} ranks, {self.target}: {taken} "
                f"-> {given}>")

    def __init__(self, handle: _c.Handle) -> None:
        super().__init__(handle)
        library = _c.library
        self.name: str = library.burst_program_name(handle).decode()
        raw: list[_c.Parameter] = [
            library.burst_program_parameter(handle, n).contents
            for n in range(library.burst_program_num_parameters(handle))]
        self.signature = tuple(map(_parameter, raw))
        # By the place of an extent, that of a tensor that has it, and which dimension.
        self._has_extent: dict[int, tuple[int, int]] = {
            x.extent_parameter: (n, x.shard_dim) for n, x in enumerate(raw)
            if x.extent_parameter >= 0}

    def positions(self, name: str, rank: int, extent: int | None = None) -> list[int]:
        """Which elements along the dimension that is split a rank holds, in the order
        in which it does. `extent` is how many there are of all ranks together, where
        the program leaves it open."""
        found = [n for n, x in enumerate(self.signature) if x.name == name]
        if not found:
            raise ValueError(f"{name}: @{self.name} has {_listed(self.signature)}")
        at = found[0]
        dim = self.signature[at].shard_dim
        if extent is None:
            extent = None if dim is None else self.signature[at].shape[dim]
        if extent is None:
            raise ValueError(f"extent: is wanted, since it is no part of {name} of @{self.name}")
        count = _c.Int()
        _c.check(_c.library.burst_program_local_size(self.handle, at, rank, extent, count))
        held = (_c.Int * count.value)()
        _c.check(_c.library.burst_program_positions(self.handle, at, rank, extent, count.value,
                                                    held))
        return list(held)

    def run(self, operands: Mapping[str, Any] | Sequence[Any], world: running.Rank | None = None,
            *, threads: int = 0, deadline_seconds: float = 0,
            whole: bool = False) -> list[_c.Counters]:
        """Runs the program in place: all arguments are read, all results are written.
        Arguments of which the last dimension lies apart, or any backwards, are copied first;
        results that do so are an error.

        `operands` has them by name, or in the order of the signature. Tensors are of
        torch, numpy, any library that speaks DLPack, or buffers of Python, in the memory
        of the CPU. Scalars and extents are numbers; extents by name may be left out where
        tensors are whole.

        Without a world tensors are those of all ranks together, and the ranks are
        threads of this process. With one, such as a MpiWorld, they are the shards of
        its rank, and every process of the world makes the same call; `whole` says that
        they are those of all ranks nevertheless, alike in all processes: rank 0 gets the
        results. `threads` of this process compute (0: one per CPU). A rank that waits
        for another one for longer than the deadline (0: 600 s) gives up.

        Gives what each rank that ran here did.
        """
        whole = whole or world is None or world.num_ranks == 1
        values, kept = self._bind(operands, is_whole=whole)
        device = running.device(threads)
        if whole and self.num_ranks > 1:
            return running.run_all(self, device, values, deadline_seconds,
                                   None if world is None else world.transport)
        # One rank needs no copies of its tensors, which are its shards.
        config = _c.RunConfig(device=device.handle, deadline_seconds=deadline_seconds)
        if world is not None:
            config.rank, config.transport = world.rank, world.transport
        counters = _c.Counters()
        running.run(self, config, values, counters)
        del kept # until now, the memory that was read and written
        return [counters]

    def _bind(self, operands: Mapping[str, Any] | Sequence[Any],
              is_whole: bool) -> tuple[Any, list[View]]:
        """An array of `burst_tensor`, and what keeps the memory."""
        given = self._in_order(operands)
        views: list[View] = []
        for n, (value, x) in enumerate(zip(given, self.signature)):
            if value is None and not (is_whole and n in self._has_extent):
                raise ValueError(f"{x.name}: is missing; @{self.name} takes "
                                 f"{_listed(self.signature)}")
            views.append(_scalar(0, x) if value is None else _view(value, x))
        for n, value in enumerate(given):
            if value is None:
                at, dim = self._has_extent[n]
                shape = views[at].shape
                views[n] = _scalar(shape[dim] if dim < len(shape) else 0, self.signature[n])
        values = (_c.Tensor * len(views))()
        for place, view in zip(values, views):
            running.describe(place, view.data, _TYPES[view.dtype], view.shape, view.strides)
        return values, views

    def _in_order(self, operands: Mapping[str, Any] | Sequence[Any]) -> list[Any]:
        names = [x.name for x in self.signature]
        if not isinstance(operands, Mapping):
            if len(operands) != len(names):
                raise ValueError(f"@{self.name} takes {len(names)} operands, "
                                 f"{_listed(self.signature)}; got {len(operands)}")
            return list(operands)
        if len(set(names)) != len(names):
            raise ValueError(f"@{self.name} has {_listed(self.signature)}, of which some have one "
                             "name: give a sequence")
        for name in operands:
            if name not in names:
                raise ValueError(f"{name}: @{self.name} has {_listed(self.signature)}")
        return [operands.get(name) for name in names]


AnyProgram = TypeVar("AnyProgram", bound=Program)


@overload
def load(path: str | os.PathLike[str]) -> Program: ...
@overload
def load(path: str | os.PathLike[str], kind: type[AnyProgram]) -> AnyProgram: ...


def load(path: str | os.PathLike[str], kind: type[Program] = Program) -> Program:
    """The program that burst-compile, or burst_compile_to_file, wrote to a file. To
    load it runs its code: it must be trusted."""
    handle = _c.Handle()
    _c.check(_c.library.burst_program_load(os.fsencode(path), handle))
    return kind(handle)


def _parameter(raw: _c.Parameter) -> Parameter:
    parts = [1] * raw.rank
    for split in raw.splits[:raw.num_splits]:
        parts[split.dim] = split.parts
    shape: list[int | None] = [size * n if size >= 0 else None
                               for size, n in zip(raw.sizes[:raw.rank], parts)]
    dim = raw.shard_dim if raw.shard_dim >= 0 else None
    if dim is not None:
        shape[dim] = raw.extent if raw.extent >= 0 else None
    return Parameter(raw.name.decode(), _KINDS[int(raw.kind)], _NAMES[raw.type], tuple(shape),
                     bool(raw.is_result), dim, tuple(parts), bool(raw.is_partial))


def _listed(signature: Sequence[Parameter]) -> str:
    return ", ".join(x.name for x in signature)


#===----------------------------------------------------------------------===#
# Operands
#===----------------------------------------------------------------------===#


def _view(value: Any, parameter: Parameter) -> View:
    name = parameter.name
    if parameter.kind != "tensor":
        return _scalar(value, parameter)
    view = views.of(value, name, is_written=parameter.is_result) if views.is_array(value) else \
        _buffer(value, name)
    if view.gpu is not None:
        raise ValueError(f"{name}: lies on GPU {view.gpu}; memory of the CPU is wanted")
    if view.dtype not in _TYPES:
        raise TypeError(f"{name}: {parameter.dtype} is wanted, got {view.dtype}")
    if not parameter.is_result:
        return views.readable(view, value, name)
    if view.is_read_only:
        raise ValueError(f"{name}: is a result, and read-only")
    return view


def _scalar(value: Any, parameter: Parameter) -> View:
    if parameter.dtype not in _FORMATS:
        raise TypeError(f"{parameter.name}: a number of {parameter.dtype} cannot be given")
    try:
        packed = struct.pack(_FORMATS[parameter.dtype], value)
    except struct.error as error:
        raise TypeError(f"{parameter.name}: a number of {parameter.dtype} is wanted, got "
                        f"{value!r}") from error
    data = c.create_string_buffer(packed, len(packed))
    return View(c.addressof(data), parameter.dtype, (), (), None, True, data)


def _buffer(value: Any, name: str) -> View:
    """Of Python's own arrays, and those of ctypes."""
    try:
        buffer = memoryview(value)
    except TypeError as error:
        raise TypeError(f"{name}: a tensor of torch, an array of numpy, one with __dlpack__ or a "
                        f"buffer is wanted, got {type(value).__name__}") from error
    if buffer.readonly or not buffer.c_contiguous:
        raise ValueError(f"{name}: a buffer must be contiguous and not read-only")
    code = buffer.format.lstrip("@=<")
    bits = 8 * buffer.itemsize
    dtype = f"int{bits}" if code in tuple("bhilq") else {
        "d": "float64", "f": "float32", "e": "float16", "?": "bool"}.get(code)
    if dtype is None:
        raise TypeError(f"{name}: has elements of the unknown format {buffer.format!r}")
    shape = tuple(buffer.shape or ())
    strides = tuple(stride // buffer.itemsize for stride in buffer.strides or ())
    first = c.c_char.from_buffer(buffer) if buffer.nbytes else None
    data = 0 if first is None else c.addressof(first)
    return View(data, dtype, shape, strides, None, False, first)
