# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m burst doctor: what burst finds on this machine."""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import shutil

from burst import _c, programs


def report() -> list[tuple[str, str]]:
    """Pairs of a thing and what was found of it."""
    return [("burst", f"{_c.library.burst_version().decode()}, {_c.path}"),
            ("processor", _processor()),
            ("threads", str(programs.device(0).threads)),
            ("compiles and runs", _try()),
            ("CUDA driver", _library("libcuda.so.1", "runs programs for GPUs")),
            ("NCCL", _library(os.environ.get("BURST_NCCL_LIBRARY", "libnccl.so.2"),
                              "sends between GPUs")),
            ("linker", _linker()),
            ("libburst_mpi", _mpi()),
            ("mpirun", shutil.which("mpirun") or "none"),
            ("torch", _module("torch")), ("numpy", _module("numpy")),
            ("transformers", _module("transformers"))]


def _mpi() -> str:
    try:
        return f"carries shards over MPI, {_c.load_mpi(_c.path)._name}"
    except (ImportError, OSError) as error:
        return str(error)


def _processor() -> str:
    name = platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    try:
        program = _smallest()
    except Exception as error: # the line says what is wrong, whatever it is
        return f"{name}; {error}"
    return f"{name}, compiled for {program.target.split(',')[0]}"


def _smallest() -> programs.Program:
    from burst.programs import Clauses, Shape, forward
    from burst.sequence import Layout
    shape = Shape(1, 4, 4, 1, 1, 4, 4, "float32")
    return programs.compiled(
        forward(Clauses(shape, None, None, None, Layout(1), None)).module)


def _try() -> str:
    """Attention whose keys are 0: o is the mean of the values."""
    numbers = (ctypes.c_float * 16)(*range(16))
    zeros, o, lse = ((ctypes.c_float * n)() for n in (16, 16, 4))
    values = (_c.Tensor * 5)()
    for place, data in zip(values, (zeros, zeros, numbers, o)):
        programs.describe(place, ctypes.addressof(data), "f32", (1, 4, 1, 4), (16, 4, 4, 1))
    programs.describe(values[4], ctypes.addressof(lse), "f32", (1, 1, 4), (4, 4, 1))
    try:
        programs.run(_smallest(), _c.RunConfig(device=programs.device(0).handle), values)
    except Exception as error:
        return f"no: {error}"
    is_right = all(abs(found - wanted) < 1e-5 for found, wanted in zip(o, [6, 7, 8, 9] * 4))
    return "yes" if is_right else f"no: a mean of 6, 7, 8, 9 is {list(o[:4])}"


def _library(name: str, use: str) -> str:
    try:
        ctypes.CDLL(name)
    except OSError:
        return f"none ({use})"
    return name


def _linker() -> str:
    for name in ("ld.lld", "ld", "cc"):
        if path := shutil.which(name):
            return path
    return "none (writes programs to files)"


def _module(name: str) -> str:
    try:
        return str(getattr(importlib.import_module(name), "__version__", "yes"))
    except ImportError as error:
        return f"none ({error})"
