# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libburst_runtime, and the declarations of its functions."""

from pathlib import Path

from ._runtime import (FALLIBLE, OTHERS, Config, Counters, CudaConfig, DeviceConfig, Handle, Int,
                       NcclConfig, Parameter, RunAllConfig, RunConfig, TcpConfig, Tensor, Text,
                       TransportFailure, TransportTable, WorldConfig, checker, load, load_mpi)

library = load("burst_runtime", Path(__file__).resolve().parent, FALLIBLE, OTHERS)
path = library._name
check = checker(library)

__all__ = ["Config", "Counters", "CudaConfig", "DeviceConfig", "Handle", "Int", "NcclConfig",
           "Parameter", "RunAllConfig", "RunConfig", "TcpConfig", "Tensor", "Text",
           "TransportFailure", "TransportTable", "WorldConfig", "check", "library", "load_mpi",
           "path"]
