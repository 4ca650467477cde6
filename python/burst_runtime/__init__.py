# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs that burst compiled to files, where there is no compiler."""

from burst_runtime._c import Counters
from burst_runtime._c import library as _library
from burst_runtime.errors import ArgumentError, Code, DeadlineError, Error, OutOfMemoryError
from burst_runtime.bundles import Parameter, Program, load
from burst_runtime.running import MpiWorld, World

__version__: str = _library.burst_version().decode()

__all__ = ["ArgumentError", "Code", "Counters", "DeadlineError", "Error", "MpiWorld",
           "OutOfMemoryError", "Parameter", "Program", "World", "load"]
