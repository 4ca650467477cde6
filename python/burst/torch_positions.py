# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads of tensors at positions, which are tensors of no dimension: PyTorch would
ask for their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch.fx.experimental.proxy_tensor import get_innermost_proxy_mode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


_VALUES = frozenset(getattr(torch.Tensor, name) for name in (
    "__bool__", "__int__", "__float__", "__index__", "__complex__", "__format__", "__repr__",
    "__contains__", "item", "tolist", "numpy", "equal", "data_ptr", "__array__", "__dlpack__")) | {
        torch.equal, torch.allclose}
# Of these, those that make_fx does not notice: it would take what it traces with for
# the value at all positions.
_UNNOTICED = frozenset(getattr(torch.Tensor, name) for name in (
    "tolist", "numpy", "data_ptr", "__array__", "__dlpack__"))


_set_grad_enabled = cast(Any, torch)._C._set_grad_enabled


class AtPositions(TorchFunctionMode):
    """Where it is entered, x[i], x[:, i] and x[0] are reads of x by the op aten.index."""

    reads_values = False # of tensors, as numbers of Python

    def __init__(self, has_gradients: bool = False) -> None:
        super().__init__()
        self.has_gradients = has_gradients

    def __torch_function__(self, func: Callable[..., Any], types: Any,
                           args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        if func in _VALUES:
            self.reads_values = True
            if func in _UNNOTICED and _is_traced(args[0]):
                raise TypeError(f"calls {func.__name__} of what depends on b, h, i, j or s, as "
                                "functions of numpy do, and arrays of numpy that are read by "
                                "position: give tensors, such as torch.from_numpy(x), or "
                                "burst.table(x), and functions of torch")
        elif func is torch.Tensor.__getitem__ and is_traceable_wrapper_subclass(args[0]):
            raise TypeError(f"reads a {type(args[0]).__name__} by position, which is no plain "
                            "tensor: give a part of it, such as x.to_local() of a DTensor")
        if self.has_gradients and func is _set_grad_enabled:
            raise TypeError("switches gradients on or off, where the gradient of a score has all "
                            "parts: detach tables outside of it")
        if func is torch.Tensor.__getitem__:
            return _read(*args)
        return func(*args, **(kwargs or {}))


def _is_traced(x: torch.Tensor) -> bool:
    mode = get_innermost_proxy_mode()
    if mode is None:
        return False
    found: Any = mode.tracer.tensor_tracker.get(x)
    return found is not None and found.constant is None


def _read(x: torch.Tensor, at: Any) -> torch.Tensor:
    indices = list(cast("tuple[Any, ...]", at)) if isinstance(at, tuple) else [at]
    tensors = [index for index in indices if isinstance(index, torch.Tensor)]
    if all(isinstance(index, (int, torch.Tensor)) for index in indices):
        return _index(x, [torch.tensor(index) if isinstance(index, int) else index
                          for index in indices])
    if not tensors or not all(map(_is_position, tensors)): # what PyTorch does itself
        return x[at]
    indices = _without_ellipsis(indices, x.dim())
    own = [index for index in indices if index is not None] # of each dimension of x
    result = _index(x, [index if _is_position(index) else None for index in own])
    # The dimensions that are left are read as PyTorch does.
    rest = tuple(index for index in indices if not _is_position(index))
    return result[rest] if any(index != slice(None) for index in rest) else result


def _is_position(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dim() == 0 and index.dtype in (
        torch.int8, torch.int16, torch.int32, torch.int64)


def _index(x: torch.Tensor, indices: list[torch.Tensor | None]) -> torch.Tensor:
    # It knows no indices of 8 and 16 bits.
    return torch.ops.aten.index(x, [
        index.int() if index is not None and index.dtype in (torch.int8, torch.int16) else index
        for index in indices])


def _without_ellipsis(indices: list[Any], dims: int) -> list[Any]:
    if Ellipsis not in [index for index in indices if not isinstance(index, torch.Tensor)]:
        return indices
    place = next(n for n, index in enumerate(indices) if index is Ellipsis)
    missing = dims - sum(index is not None for index in indices) + 1
    return indices[:place] + [slice(None)] * missing + indices[place + 1:]
