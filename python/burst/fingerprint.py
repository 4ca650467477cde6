# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a function depends on, so that it need not be traced on each call.

Two functions of one fingerprint do the same with the tensors that they capture.
These are not part of it, but for their sizes and types: programs take them as
arguments.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import itertools
import sys
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, cast

Key = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Fingerprint:
    """What a function depends on."""

    key: Key
    tensors: list[Any] # that it captures, in a fixed order
    guard: Guard | None # None where this must be read anew on each call


def of(function: Callable[..., Any]) -> Fingerprint | None:
    """The fingerprint of a function; None where it depends on something that might
    change unseen."""
    reader = _Reader()
    try:
        key = reader.of(function, (), ())
    except _Unknown:
        return None
    return Fingerprint(key, reader.tensors, reader.guard if reader.is_guarded else None)


class Guard:
    """The objects that a fingerprint was read from, in the cells, globals and
    modules where they were found. While they are there, it holds, also of another
    function of the same code: it does what the first one did. Tensors and
    functions are not kept alive."""

    def __init__(self) -> None:
        # Of the function itself.
        self._defaults: list[Any] = []
        self._cells: list[tuple[int, Any]] = []
        self._globals: list[tuple[str, Any]] = []
        self._cells_elsewhere: list[tuple[types.CellType, Any]] = []
        self._names_elsewhere: list[tuple[dict[str, Any], str, Any]] = []
        self._elsewhere: list[tuple[Any, types.CodeType, Any]] = []

    def holds(self, function: Any) -> bool:
        """Of a function of the same code."""
        if function.__kwdefaults__ or function.__dict__ or type(function) is not types.FunctionType:
            return False
        for seen, code, before in self._elsewhere:
            other = seen()
            if other is None or other.__code__ is not code or other.__defaults__ is not before or \
                    other.__kwdefaults__ or other.__dict__:
                return False
        defaults = function.__defaults__ or ()
        if len(defaults) != len(self._defaults):
            return False
        try:
            for value, seen in zip(defaults, self._defaults):
                if seen() is not value:
                    return False
            if self._cells:
                cells = cast(Any, function).__closure__
                for place, seen in self._cells:
                    if seen() is not cells[place].cell_contents:
                        return False
            if self._globals:
                known = function.__globals__
                for name, seen in self._globals:
                    if seen() is not known.get(name, _MISSING):
                        return False
            for cell, seen in self._cells_elsewhere:
                if seen() is not cell.cell_contents:
                    return False
            for known, name, seen in self._names_elsewhere:
                if seen() is not known.get(name, _MISSING):
                    return False
        except ValueError: # an empty cell
            return False
        return True

    def add_function(self, function: types.FunctionType, is_first: bool) -> None:
        if is_first:
            self._defaults = [_reference(value) for value in function.__defaults__ or ()]
        else:
            self._elsewhere.append((weakref.ref(function), function.__code__,
                                    function.__defaults__))
        for place, cell in enumerate(function.__closure__ or ()):
            seen = _reference(cell.cell_contents)
            if is_first:
                self._cells.append((place, seen))
            else:
                self._cells_elsewhere.append((cell, seen))

    def add_names(self, known: dict[str, Any], names: Iterable[str], is_first: bool) -> None:
        for name in names:
            seen = _reference(known.get(name, _MISSING))
            if is_first:
                self._globals.append((name, seen))
            else:
                self._names_elsewhere.append((known, name, seen))


_MISSING = object()


def _reference(value: Any) -> Callable[[], Any]:
    """Gives the value, weakly where it can be large; None is never what is gone."""
    if isinstance(value, types.FunctionType) or hasattr(value, "dtype"):
        try:
            weak = weakref.ref(value)
        except TypeError: # a number of numpy
            return lambda: value
        return lambda: _GONE if (found := weak()) is None else found
    return lambda: value


_GONE = object()


class _Unknown(Exception):
    pass


_Names = tuple[str, ...]

# How a function reads the values of tensors, which are no part of a fingerprint.
_READING = frozenset((
    "item", "tolist", "numpy", "globals", "getattr", "hasattr", "vars", "eval", "exec",
    "__import__", "import_module", "modules", "__dict__", "_version", "data_ptr", "attrgetter",
    "methodcaller", "itemgetter", "is_grad_enabled", "get_default_dtype", "default_generator",
    "initial_seed",
    # What gives another number each time.
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal",
    "bernoulli", "multinomial", "uniform_", "normal_", "random_", "bernoulli_"))
# What of a tensor is no part of a fingerprint either; as names of variables they are
# nothing special.
_READING_ATTRIBUTES = frozenset(("stride", "storage_offset", "is_contiguous", "grad",
                                 "requires_grad"))
_IMPORT = dis.opmap["IMPORT_NAME"]


@functools.lru_cache(maxsize=1024)
def _imports(code: types.CodeType) -> bool:
    """Whether it reads modules that it names itself."""
    return _IMPORT in code.co_code[::2] or \
        any(_imports(x) for x in code.co_consts if isinstance(x, types.CodeType))


class _Reader:
    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.guard = Guard()
        # Whether all that was read stays as it is while the guard holds: lists do
        # not, nor do numbers in tensors.
        self.is_guarded = True

    def of(self, value: Any, names: _Names, under_way: tuple[int, ...]) -> Key:
        """`names` are those in the code that has the value, `under_way` the functions
        and modules that this one is a part of."""
        kind = cast("type[Any]", type(value))
        if value is None or kind in (bool, int, float, str, bytes, complex):
            return (kind, repr(value)) # 0.0 is not -0.0, nor 1 True
        if kind in (tuple, list):
            self.is_guarded &= kind is tuple
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
            self.is_guarded = False
            return ("method", self.of(value.__func__, names, under_way),
                    self.of(value.__self__, names, under_way))
        if kind is types.BuiltinFunctionType and \
                isinstance(value.__self__, (types.ModuleType, type)) and \
                _is_fixed(value.__module__ or ""): # no method of an object, nor a clock
            return ("id", id(value))
        if hasattr(value, "func") and hasattr(value, "keywords"): # functools.partial
            self.is_guarded = False
            return ("partial", self.of(value.func, names, under_way),
                    self.of(value.args, names, under_way),
                    *self._of_all(value.keywords.items(), names, under_way))
        raise _Unknown

    def _of_all(self, values: Iterable[tuple[str, Any]], names: _Names,
                under_way: tuple[int, ...]) -> Key:
        return tuple([(name, self.of(value, names, under_way)) for name, value in values])

    def _of_tensor(self, tensor: Any) -> Key:
        if tensor.shape == () and not getattr(tensor, "requires_grad", False):
            self.is_guarded = False
            return ("constant", str(tensor.dtype), repr(tensor.item()))
        place = next((n for n, known in enumerate(self.tensors) if known is tensor), None)
        if place is None:
            place = len(self.tensors)
            self.tensors.append(tensor)
        if getattr(tensor, "__dict__", None): # what else it has may be read
            raise _Unknown
        return ("tensor", place, tuple(tensor.shape), str(tensor.dtype))

    def _of_module(self, module: types.ModuleType, names: _Names,
                   under_way: tuple[int, ...]) -> Key:
        """What the code may read of it."""
        if _is_fixed(module.__name__):
            return ("id", id(module))
        known = vars(module)
        if "__getattr__" in known:
            raise _Unknown
        self.guard.add_names(known, names, is_first=False)
        return ("module", *self._of_all(((name, known[name]) for name in names if name in known),
                                        names, under_way))

    def _of_function(self, function: types.FunctionType,
                     under_way: tuple[int, ...]) -> Key:
        module = sys.modules.get(function.__module__)
        if module is not None and _is_fixed(module.__name__) and \
                getattr(module, function.__name__, None) is function:
            return ("id", id(function))
        names = _names_of(function.__code__)
        if not _READING.isdisjoint(names) or _imports(function.__code__) or \
                not _READING_ATTRIBUTES.isdisjoint(_attributes_of(function.__code__)):
            raise _Unknown
        try:
            cells = tuple([cell.cell_contents for cell in function.__closure__ or ()])
        except ValueError as error: # one that is not filled yet
            raise _Unknown from error
        known = function.__globals__
        is_first = len(under_way) == 1
        self.guard.add_function(function, is_first)
        self.guard.add_names(known, names, is_first)
        self.is_guarded &= not (function.__kwdefaults__ or vars(function))
        return ("function", function.__code__, self.of(cells, names, under_way),
                self.of(function.__defaults__, names, under_way),
                self._of_all((function.__kwdefaults__ or {}).items(), names, under_way),
                self._of_all(vars(function).items(), names, under_way),
                self._of_all(((name, known[name]) for name in names if name in known), names,
                             under_way))


def _is_fixed(module: str) -> bool:
    """Whether what it has stays as it is."""
    return module.split(".")[0] in ("builtins", "burst", "math", "numpy", "operator", "_operator",
                                    "torch") and not module.startswith("numpy.random")


@functools.lru_cache(maxsize=1024)
def _attributes_of(code: types.CodeType) -> frozenset[str]:
    """The attributes that code, and code inside of it, reads."""
    own = {x.argval for x in dis.get_instructions(code)
           if x.opname in ("LOAD_ATTR", "LOAD_METHOD")}
    inner = [_attributes_of(x) for x in code.co_consts if isinstance(x, types.CodeType)]
    return frozenset(own.union(*inner))


@functools.lru_cache(maxsize=1024)
def _names_of(code: types.CodeType) -> _Names:
    """Of globals and attributes, in code and code inside of it."""
    inner = [_names_of(x) for x in code.co_consts if isinstance(x, types.CodeType)]
    return tuple(sorted({*code.co_names, *itertools.chain(*inner)}))
