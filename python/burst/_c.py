# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libburst, and the declarations of its functions: those of _runtime, and those
that compile."""

import ctypes as c
from pathlib import Path
from typing import Any

from burst._runtime import (FALLIBLE, OTHERS, CheckConfig, Config, Counters, CudaConfig,
                            DeviceConfig, Handle, Int, Message, NcclConfig, Parameter, Piece,
                            RunAllConfig, RunConfig, TcpConfig, Tensor, Text, TransportAbort,
                            TransportBegin, TransportCancel, TransportFailure, TransportStart,
                            TransportTable, TransportWait, WorldConfig, checker, load, load_mpi,
                            out)


class CompileConfig(Config):
    _fields_ = [("entry", Text), ("name", Text), ("processor", Text), ("features", Text),
                ("dump_directory", Text), ("cache", Handle), ("target", Text),
                ("architectures", Text), ("without", Text)]


class ExplainConfig(Config):
    _fields_ = [("what", Int), ("max_ranks", Int), ("name", Text), ("without", Text),
                ("machine", Text), ("compare", Text)]


_FALLIBLE: dict[str, list[Any]] = {
    **FALLIBLE,
    "burst_compile_to_file": [Text, c.c_size_t, out(CompileConfig), Text],
    "burst_compile_text": [Text, c.c_size_t, out(CompileConfig), out(Handle)],
    "burst_explain_text": [Text, c.c_size_t, out(ExplainConfig), out(Handle)],
}
_OTHERS: dict[str, tuple[Any, list[Any]]] = {
    **OTHERS, "burst_text_destroy": (None, [Handle]),
    "burst_program_proof": (c.c_int, [Handle])}

library = load("burst", Path(__file__).resolve().parent, _FALLIBLE, _OTHERS)
path = library._name
check = checker(library)
address = c.addressof
size = c.sizeof

__all__ = ["CheckConfig", "CompileConfig", "Config", "Counters", "CudaConfig", "DeviceConfig",
           "ExplainConfig", "Handle", "Int", "Message", "NcclConfig", "Parameter", "Piece",
           "RunAllConfig", "RunConfig", "TcpConfig", "Tensor", "Text", "TransportAbort",
           "TransportBegin", "TransportCancel", "TransportFailure", "TransportStart",
           "TransportTable", "TransportWait", "WorldConfig", "address", "check", "library",
           "load_mpi", "path", "size"]
