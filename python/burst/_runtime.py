# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C API of burst/burst.h as far as it runs programs, by ctypes: what
libburst_runtime has, and libburst too.

Structs have the fields of the header, in its order; functions are declared with
the types of the header, so that a wrong argument is an error here and not there.

Also a module of burst_runtime: what is imported here, both packages have.
"""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from . import errors

Handle = c.c_void_p
Text = c.c_char_p
Int = c.c_int64

# BURST_VERSION_MAJOR and _MINOR that these declarations are of.
VERSION = (0, 2)


class Config(c.Structure):
    """A config: `size` is set, everything else is 0."""

    _fields_ = [("size", c.c_size_t)]

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.size = c.sizeof(type(self))


class DeviceConfig(Config):
    _fields_ = [("threads", Int), ("num_cpus", Int), ("cpus", c.POINTER(Int))]


class CudaConfig(Config):
    _fields_ = [("ordinal", Int), ("allocate", c.c_void_p), ("release", c.c_void_p),
                ("context", c.c_void_p)]


class NcclConfig(Config):
    _fields_ = [("device", Handle), ("world", Handle), ("communicator", c.c_void_p),
                ("timeout_seconds", c.c_double)]


class WorldConfig(Config):
    _fields_ = [("num_ranks", Int), ("rank", Int), ("address", Text),
                ("timeout_seconds", c.c_double), ("heartbeat_seconds", c.c_double),
                ("silence_seconds", c.c_double)]


class TcpConfig(Config):
    _fields_ = [("world", Handle)]


class Piece(c.Structure):
    _fields_ = [("data", c.c_void_p), ("element_bytes", Int), ("sizes", Int * 4),
                ("strides", Int * 4)]


class Message(c.Structure):
    _fields_ = [("peer", Int), ("receives", Int), ("num_pieces", Int),
                ("pieces", c.POINTER(Piece))]


class Group(c.Structure):
    _fields_ = [("num_ranks", Int), ("stride", Int)]


class Messages(c.Structure):
    _fields_ = [("count", Int), ("pattern", Int), ("list", c.POINTER(Message)),
                ("group", Group)]


class TransportStart(c.Structure):
    _fields_ = [("size", c.c_size_t), ("channel", Int), ("hop", Int), ("program", c.c_uint64),
                ("cuda_stream", c.c_void_p), ("messages", Messages)]


class TransportFailure(c.Structure):
    _fields_ = [("code", Int), ("peer", Int), ("message", c.c_char * 1008)]


TransportBegin = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(TransportStart),
                             c.POINTER(c.c_void_p), c.POINTER(TransportFailure))
TransportWait = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_double,
                            c.POINTER(TransportFailure))
TransportCancel = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)
TransportAbort = c.CFUNCTYPE(None, c.c_void_p, Text)


class TransportTable(Config):
    _fields_ = [("context", c.c_void_p), ("rank", Int), ("num_ranks", Int), ("reaches", Int),
                ("start", TransportBegin), ("wait", TransportWait),
                ("cancel", TransportCancel), ("abort", TransportAbort),
                ("destroy", c.c_void_p), ("prepare", c.c_void_p)]


class CheckConfig(Config):
    _fields_ = [("transport", Handle), ("device", Handle), ("what", Int), ("seed", Int),
                ("deadline_seconds", c.c_double), ("in_order", Int)]


class RunConfig(Config):
    _fields_ = [("rank", Int), ("device", Handle), ("stream", Handle), ("transport", Handle),
                ("deadline_seconds", c.c_double), ("trace", Handle), ("checked", Int)]


class RunAllConfig(Config):
    _fields_ = [("device", Handle), ("deadline_seconds", c.c_double), ("trace", Handle),
                ("checked", Int), ("latency_seconds", c.c_double),
                ("bytes_per_second", c.c_double), ("transport", Handle)]


class Counters(Config):
    _fields_ = [("messages_sent", Int), ("messages_received", Int), ("bytes_sent", Int),
                ("bytes_received", Int), ("launches", Int), ("tasks", Int),
                ("tensor_bytes", Int), ("peak_bytes", Int * 4), ("peak_sum", Int),
                ("peak_total", Int), ("compute_seconds", c.c_double),
                ("wait_seconds", c.c_double)]


class Split(c.Structure):
    _fields_ = [("dim", c.c_int32), ("parts", c.c_int32), ("stride", Int)]


class Parameter(c.Structure):
    _fields_ = [("name", Text), ("kind", c.c_int32), ("type", c.c_int32), ("rank", c.c_int32),
                ("is_result", c.c_int32), ("sizes", c.POINTER(Int)), ("shard_dim", c.c_int32),
                ("num_segments", c.c_int32), ("extent", Int), ("extent_parameter", c.c_int32),
                ("is_partial", c.c_int32), ("is_host", c.c_int32), ("num_splits", c.c_int32),
                ("splits", c.POINTER(Split))]


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("type", c.c_int32), ("rank", c.c_int32),
                ("sizes", Int * 8), ("strides", Int * 8)]


def out(kind: Any) -> Any:
    return cast(Any, c.POINTER)(kind)


# Functions that return an error, by what they take.
FALLIBLE: dict[str, list[Any]] = {
    "burst_check_version": [c.c_int, c.c_int],
    "burst_device_create_cpu": [out(DeviceConfig), out(Handle)],
    "burst_device_create_cuda": [out(CudaConfig), out(Handle)],
    "burst_stream_create_cuda": [Handle, c.c_void_p, out(Handle)],
    "burst_stream_synchronize": [Handle],
    "burst_transport_check": [out(CheckConfig)],
    "burst_transport_create": [out(TransportTable), out(Handle)],
    "burst_transport_create_nccl": [out(NcclConfig), out(Handle)],
    "burst_transport_create_tcp": [out(TcpConfig), out(Handle)],
    "burst_world_create": [out(WorldConfig), out(Handle)],
    "burst_program_load": [Text, out(Handle)],
    "burst_program_local_size": [Handle, Int, Int, Int, out(Int)],
    "burst_program_positions": [Handle, Int, Int, Int, Int, out(Int)],
    "burst_run": [Handle, out(RunConfig), out(Tensor), Int, out(Counters)],
    "burst_run_all": [Handle, out(RunAllConfig), out(Tensor), Int, out(Counters)],
}
# The others: what they return and take.
OTHERS: dict[str, tuple[Any, list[Any]]] = {
    "burst_version": (Text, []),
    "burst_error_message": (Text, [Handle]),
    "burst_error_location": (Text, [Handle]),
    "burst_error_code": (c.c_int, [Handle]),
    "burst_error_destroy": (None, [Handle]),
    "burst_device_destroy": (None, [Handle]),
    "burst_device_threads": (Int, [Handle]),
    "burst_stream_destroy": (None, [Handle]),
    "burst_transport_stop": (None, [Handle, Text]),
    "burst_transport_destroy": (None, [Handle]),
    "burst_world_destroy": (None, [Handle]),
    "burst_world_rank": (Int, [Handle]),
    "burst_world_num_ranks": (Int, [Handle]),
    "burst_program_release": (None, [Handle]),
    "burst_program_name": (Text, [Handle]),
    "burst_program_target": (Text, [Handle]),
    "burst_program_is_gpu": (Int, [Handle]),
    "burst_program_num_parameters": (Int, [Handle]),
    "burst_program_num_arguments": (Int, [Handle]),
    "burst_program_parameter": (c.POINTER(Parameter), [Handle, Int]),
    "burst_program_num_ranks": (Int, [Handle]),
}


def load(stem: str, package: Path, fallible: dict[str, list[Any]],
         others: dict[str, tuple[Any, list[Any]]]) -> c.CDLL:
    """The library of a package, from its folder, or from the builds of a clone."""
    name = package.name
    variable = f"{name.upper()}_LIBRARY"
    root = package.parent.parent # of a clone
    named = os.environ.get(variable)
    places = [package / "lib", *(root / "build" / preset / "lib" for preset in ("release", "dev"))]
    candidates = [named] if named else [str(place / f"lib{stem}.so") for place in places]
    found = [path for path in candidates if os.path.exists(path)]
    if not found:
        raise ImportError(f"{name}: no lib{stem}.so at {', '.join(candidates)}; scripts/build "
                          f"release {stem} makes it, and {variable} names another one")
    library = c.CDLL(found[0])
    try:
        for function_name, arguments in fallible.items():
            function = getattr(library, function_name)
            function.restype, function.argtypes = Handle, arguments
        for function_name, (result, arguments) in others.items():
            function = getattr(library, function_name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise ImportError(f"{name}: {error}; the package wants lib{stem} {VERSION[0]}."
                          f"{VERSION[1]}, built from the same sources") from error
    checker(library)(library.burst_check_version(*VERSION))
    return library


def load_mpi(beside: str) -> c.CDLL:
    """libburst_mpi, from the folder of the package's library."""
    variable = "BURST_MPI_LIBRARY"
    path = os.environ.get(variable) or str(Path(beside).parent / "libburst_mpi.so")
    if not os.path.exists(path):
        raise ImportError(f"no libburst_mpi at {path}; it is built where MPI is found: "
                          "scripts/setup --mpi, then scripts/build release burst_mpi in a clone, "
                          f"and {variable} names it elsewhere")
    # MPI's own plugins look for its symbols among the global ones.
    library = c.CDLL(path, mode=c.RTLD_GLOBAL)
    failure = c.POINTER(TransportFailure)
    for name, arguments in {
            "burst_mpi_open": [out(TransportTable), failure],
            "burst_mpi_transport_of": [c.c_int, out(TransportTable), failure],
            "burst_mpi_gather": [out(TransportTable), c.c_char_p, Int, c.c_char_p, c.c_double,
                                 failure]}.items():
        function = getattr(library, name)
        function.restype, function.argtypes = c.c_int, arguments
    library.burst_mpi_close.restype = None
    return library


def checker(library: c.CDLL) -> Callable[[int | None], None]:
    def check(error: int | None) -> None:
        """Raises what a function of the library returned."""
        if not error:
            return
        try:
            raise errors.make(library.burst_error_message(error).decode(),
                              library.burst_error_code(error),
                              library.burst_error_location(error).decode())
        finally:
            library.burst_error_destroy(error)
    return check
