# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fused attention, compiled for this machine and distributed over ranks."""

import importlib
from typing import TYPE_CHECKING, Any

from burst._c import library as _library
from burst.api import attention, merge
from burst.bundles import Parameter
from burst.compiling import Compiled, Program, compile, load
from burst.plans import Plan, explain
from burst.errors import ArgumentError, Code, DeadlineError, Error, OutOfMemoryError
from burst.running import MpiWorld
from burst.sequence import Layout, Sequence
from burst.sweeps import Sweep, sweep
from burst.tracing import TableOf as table
from burst.tracing import TracingError, where

if TYPE_CHECKING:
    from burst import hf, integrations
    from burst.checking import check
    from burst.context import context_parallel
    from burst.kv_cache import with_kvcache
    from burst.torch_functions import flex_attention, scaled_dot_product_attention, varlen

# What needs PyTorch to be imported is imported where it is used.
_LAZY = {"check": "checking", "context_parallel": "context",
         "flex_attention": "torch_functions",
         "scaled_dot_product_attention": "torch_functions", "varlen": "torch_functions",
         "with_kvcache": "kv_cache"}


def __getattr__(name: str) -> Any:
    if name in ("hf", "integrations"):
        return importlib.import_module(f"burst.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'burst' has no attribute {name!r}")
    return getattr(importlib.import_module(f"burst.{_LAZY[name]}"), name)


__version__: str = _library.burst_version().decode()

__all__ = [
    "ArgumentError", "Code", "Compiled", "DeadlineError", "Error", "Layout", "MpiWorld",
    "OutOfMemoryError", "Parameter", "Plan", "Program", "Sequence", "Sweep", "TracingError",
    "attention", "check", "compile", "context_parallel", "explain", "flex_attention", "hf",
    "integrations", "load", "merge", "scaled_dot_product_attention", "sweep", "table", "varlen",
    "where", "with_kvcache"]
