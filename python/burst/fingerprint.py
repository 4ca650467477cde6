# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a function depends on, so that it need not be traced on each call.

Two functions of one fingerprint do the same with the tensors that they capture.
These are not part of it, but for their sizes and types: programs take them as
arguments.
"""

from __future__ import annotations

import functools
import itertools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, cast

Fingerprint = tuple[Any, ...]


def of(function: Callable[..., Any]) -> tuple[Fingerprint, list[Any]] | None:
    """The fingerprint and the captured tensors, in a fixed order; None where the
    function depends on something that might change unseen."""
    reader = _Reader()
    try:
        return reader.of(function, (), ()), reader.tensors
    except _Unknown:
        return None


class _Unknown(Exception):
    pass


_Names = tuple[str, ...]

# How a function reads the values of tensors, which are no part of a fingerprint.
_READING = frozenset(("item", "tolist", "numpy"))


class _Reader:
    def __init__(self) -> None:
        self.tensors: list[Any] = []

    def of(self, value: Any, names: _Names, under_way: tuple[int, ...]) -> Fingerprint:
        """`names` are those in the code that has the value, `under_way` the functions
        and modules that this one is a part of."""
        kind = cast("type[Any]", type(value))
        if value is None or kind in (bool, int, float, str, bytes, complex):
            return (kind, repr(value)) # 0.0 is not -0.0, nor 1 True
        if kind in (tuple, list):
            return (kind, *(self.of(part, names, under_way) for part in value))
        if isinstance(value, type):
            if not _is_fixed(value.__module__):
                raise _Unknown
            return ("id", id(value))
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return self._of_tensor(value)
        if kind in (types.ModuleType, types.FunctionType) and id(value) in under_way:
            return ("recursion", under_way.index(id(value)))
        if kind is types.ModuleType:
            return self._of_module(value, names, (*under_way, id(value)))
        if kind is types.FunctionType:
            return self._of_function(value, (*under_way, id(value)))
        if kind is types.MethodType:
            return ("method", self.of(value.__func__, names, under_way),
                    self.of(value.__self__, names, under_way))
        if kind is types.BuiltinFunctionType and \
                isinstance(value.__self__, (types.ModuleType, type)): # no method of an object
            return ("id", id(value))
        if hasattr(value, "func") and hasattr(value, "keywords"): # functools.partial
            return ("partial", self.of(value.func, names, under_way),
                    self.of(value.args, names, under_way),
                    *self._of_all(value.keywords.items(), names, under_way))
        raise _Unknown

    def _of_all(self, values: Iterable[tuple[str, Any]], names: _Names,
                under_way: tuple[int, ...]) -> Fingerprint:
        return tuple([(name, self.of(value, names, under_way)) for name, value in values])

    def _of_tensor(self, tensor: Any) -> Fingerprint:
        if tensor.shape == () and not getattr(tensor, "requires_grad", False):
            return ("constant", str(tensor.dtype), repr(tensor.item()))
        place = next((n for n, known in enumerate(self.tensors) if known is tensor), None)
        if place is None:
            place = len(self.tensors)
            self.tensors.append(tensor)
        return ("tensor", place, tuple(tensor.shape), str(tensor.dtype))

    def _of_module(self, module: types.ModuleType, names: _Names,
                   under_way: tuple[int, ...]) -> Fingerprint:
        """What the code may read of it."""
        if _is_fixed(module.__name__):
            return ("id", id(module))
        known = vars(module)
        return ("module", *self._of_all(((name, known[name]) for name in names if name in known),
                                        names, under_way))

    def _of_function(self, function: types.FunctionType,
                     under_way: tuple[int, ...]) -> Fingerprint:
        module = sys.modules.get(function.__module__)
        if module is not None and _is_fixed(module.__name__) and \
                getattr(module, function.__name__, None) is function:
            return ("id", id(function))
        names = _names_of(function.__code__)
        if not _READING.isdisjoint(names):
            raise _Unknown
        try:
            cells = [cell.cell_contents for cell in function.__closure__ or ()]
        except ValueError as error: # one that is not filled yet
            raise _Unknown from error
        known = function.__globals__
        return ("function", function.__code__, self.of(cells, names, under_way),
                self.of(function.__defaults__, names, under_way),
                self._of_all((function.__kwdefaults__ or {}).items(), names, under_way),
                self._of_all(vars(function).items(), names, under_way),
                self._of_all(((name, known[name]) for name in names if name in known), names,
                             under_way))


def _is_fixed(module: str) -> bool:
    """Whether what it has stays as it is."""
    return module.split(".")[0] in ("builtins", "burst", "math", "numpy", "operator", "torch")


@functools.lru_cache(maxsize=1024)
def _names_of(code: types.CodeType) -> _Names:
    """Of globals and attributes, in code and code inside of it."""
    inner = [_names_of(x) for x in code.co_consts if isinstance(x, types.CodeType)]
    return tuple(sorted({*code.co_names, *itertools.chain(*inner)}))
