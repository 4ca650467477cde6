# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks and scores of Python become regions, by what they do to their arguments.

A mask is a function of batch, head, query and key position that says whether a
pair is kept, as a `mask_mod` of flex_attention; a score a function of the score
and these. They are called with symbols for their arguments. With PyTorch
`make_fx` records what they do, as flex_attention does; for functions that use
operators alone, PyTorch is not needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import types
from collections.abc import Callable
from typing import Any, cast

from burst import views
from burst.regions import BOOL, INDEX, TABLE_TYPES, Region, Table, Value

Function = Callable[..., Any]


class TracingError(TypeError):
    """A mask or score that cannot become a region, and why."""


@dataclasses.dataclass(frozen=True)
class Closed:
    """A function that takes tables as arguments, behind those of a mask or score."""

    function: Function
    tables: tuple[Any, ...]


def trace(function: Function | Closed, is_score: bool, float_type: str,
          head_offset: int = 0, batch_offset: int = 0,
          frontend: Frontend | None = None) -> Region:
    """The region of a mask or a score.

    `float_type` is the type of scores, f32 or f64. The offsets are added to what
    the function sees as head and batch: it sees those of the whole model, where
    a rank has a part of them. The frontend is that of torch where there is one.
    """
    region = Region(is_score, float_type)
    b = region.add(region.b, region.constant(batch_offset))
    h = region.add(region.h, region.constant(head_offset))
    arguments = [b, h, region.i, region.j]
    if is_score:
        arguments.insert(0, region.s)
    what = "score" if is_score else "mask"
    tables = ()
    if isinstance(function, Closed):
        function, tables = function.function, function.tables
    try:
        result = (frontend or _frontend())(function, region, arguments, tables)
    except TracingError as error:
        raise TracingError(f"{what} {_name(function)}: {error}") from None
    except Exception as error:
        raise error.with_traceback(_own_part(error.__traceback__)) from None
    wanted = region.float_type if is_score else BOOL
    if result.type != wanted and is_score:
        result = region.to_float(result)
    if result.type != wanted:
        kind = "an integer" if result.type == INDEX else "a float"
        raise TracingError(f"mask {_name(function)}: gives {kind}, where True or False is wanted; "
                           "compare it with something")
    region.finish(result)
    for table in region.tables:
        table.variable = _variable_of(function, table.captured)
    return region


def _own_part(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Of a traceback, what is behind the frames of burst and PyTorch: where the
    function itself is."""
    part = traceback
    while part is not None and not is_of_caller(part.tb_frame):
        part = part.tb_next
    return part or traceback


def is_of_caller(frame: types.FrameType) -> bool:
    """Whether it is a function of neither burst nor PyTorch, nor what these made."""
    module = str(frame.f_globals.get("__name__", "")).split(".")[0]
    return module not in ("burst", "torch") and not frame.f_code.co_filename.startswith("<")


def _variable_of(function: Any, captured: Any, depth: int = 4) -> str | None:
    """The name by which a function, or one that it calls, knows a captured tensor."""
    code = getattr(function, "__code__", None)
    if code is None or depth == 0:
        return None
    known: dict[str, Any] = {name: function.__globals__[name] for name in code.co_names
                             if name in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError): # an empty one
            known[name] = cell.cell_contents
    defaults = function.__defaults__ or ()
    known.update(zip(code.co_varnames[code.co_argcount - len(defaults):], defaults))
    for name, value in known.items():
        if value is captured or isinstance(value, TableOf) and (
                value.array is captured or value.tensor is captured):
            return name
    for value in known.values():
        if isinstance(value, types.FunctionType):
            found = _variable_of(value, captured, depth - 1)
            if found is not None:
                return found
    return None


def _name(function: Function) -> str:
    return getattr(function, "__qualname__", repr(function))


Frontend = Callable[[Function, Region, list[Value], tuple[Any, ...]], Value]


def _frontend() -> Frontend:
    try:
        from burst import torch_tracing
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return by_operators
    return torch_tracing.trace


#===----------------------------------------------------------------------===#
# Without PyTorch
#===----------------------------------------------------------------------===#


class Symbol:
    """A number that is not known yet: operators on it are recorded."""

    def __init__(self, region: Region, value: Value) -> None:
        self.region = region
        self.value = value

    def _with(self, apply: Callable[[Region, Value, Value], Value], other: Any,
              is_reflected: bool = False) -> Symbol:
        a, b = self.value, lift(self.region, other)
        return Symbol(self.region, apply(self.region, *((b, a) if is_reflected else (a, b))))

    def __add__(self, other: Any) -> Symbol:
        return self._with(Region.add, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Symbol:
        return self._with(Region.sub, other)

    def __rsub__(self, other: Any) -> Symbol:
        return self._with(Region.sub, other, is_reflected=True)

    def __mul__(self, other: Any) -> Symbol:
        return self._with(Region.mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Symbol:
        return self._with(Region.div, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return self._with(Region.div, other, is_reflected=True)

    def __floordiv__(self, other: Any) -> Symbol:
        return self._with(Region.floor_div, other)

    def __rfloordiv__(self, other: Any) -> Symbol:
        return self._with(Region.floor_div, other, is_reflected=True)

    def __mod__(self, other: Any) -> Symbol:
        return self._with(Region.remainder, other)

    def __rmod__(self, other: Any) -> Symbol:
        return self._with(Region.remainder, other, is_reflected=True)

    def __pow__(self, other: Any) -> Symbol:
        return self._with(Region.power, other)

    def __rpow__(self, other: Any) -> Symbol:
        return self._with(Region.power, other, is_reflected=True)

    def __and__(self, other: Any) -> Symbol:
        return self._with(lambda r, a, b: r.bitwise("and", a, b), other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Symbol:
        return self._with(lambda r, a, b: r.bitwise("or", a, b), other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Symbol:
        return self._with(lambda r, a, b: r.bitwise("xor", a, b), other)

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Symbol:
        return self._with(lambda r, a, b: r.shift("left", a, b), other)

    def __rlshift__(self, other: Any) -> Symbol:
        return self._with(lambda r, a, b: r.shift("left", a, b), other, is_reflected=True)

    def __rshift__(self, other: Any) -> Symbol:
        return self._with(lambda r, a, b: r.shift("right", a, b), other)

    def __rrshift__(self, other: Any) -> Symbol:
        return self._with(lambda r, a, b: r.shift("right", a, b), other, is_reflected=True)

    def __eq__(self, other: Any) -> Any:
        return self._with(lambda r, a, b: r.compare("eq", a, b), other)

    def __ne__(self, other: Any) -> Any:
        return self._with(lambda r, a, b: r.compare("ne", a, b), other)

    def __lt__(self, other: Any) -> Symbol:
        return self._with(lambda r, a, b: r.compare("lt", a, b), other)

    def __le__(self, other: Any) -> Symbol:
        return self._with(lambda r, a, b: r.compare("le", a, b), other)

    def __gt__(self, other: Any) -> Symbol:
        return self._with(lambda r, a, b: r.compare("gt", a, b), other)

    def __ge__(self, other: Any) -> Symbol:
        return self._with(lambda r, a, b: r.compare("ge", a, b), other)

    def __neg__(self) -> Symbol:
        return Symbol(self.region, self.region.neg(self.value))

    def __abs__(self) -> Symbol:
        return Symbol(self.region, self.region.abs(self.value))

    def __invert__(self) -> Symbol:
        return Symbol(self.region, self.region.invert(self.value))

    def __bool__(self) -> bool:
        raise TracingError(
            "asks whether a condition on b, h, i, j or s holds, which is another one for each "
            "pair: write & | ~ in place of `and` `or` `not`, and burst.where(condition, a, b) in "
            "place of `if`")

    def __index__(self) -> int:
        raise TracingError("uses a position as an index of what is no table: wrap it in "
                           "burst.table")

    __int__ = __float__ = __index__

    def __hash__(self) -> int:
        raise TracingError("looks a position up where it has no value yet")


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b: what `if` cannot say in a mask or score, and
    torch.where not without PyTorch."""
    for symbol in (condition, a, b):
        if isinstance(symbol, Symbol):
            r = symbol.region
            return Symbol(r, r.select(lift(r, condition), lift(r, a), lift(r, b)))
    if _is_of_torch(condition):
        import torch
        return torch.where(condition, a, b)
    return a if condition else b


def _is_of_torch(x: Any) -> bool:
    return hasattr(x, "__torch_function__")


def function(name: str, x: Any) -> Any:
    """A function of the dialect `math` of a number, such as "tanh" or "exp"."""
    if not isinstance(x, Symbol):
        raise TracingError(f"{name} of {type(x).__name__}, which does not depend on a pair")
    return Symbol(x.region, x.region.call(f"math.{name}", x.value))


def lift(region: Region, operand: Any) -> Value:
    """An operand of a symbol as a value of its region."""
    if isinstance(operand, Symbol):
        return operand.value
    if isinstance(operand, (bool, int, float)):
        return region.constant(operand)
    if hasattr(operand, "item") and getattr(operand, "shape", None) == ():
        return region.constant(operand.item())
    raise TracingError(f"uses {type(operand).__name__} beside b, h, i, j and s; wrap a table in "
                       "burst.table")


def table_of(array: Any) -> Table:
    """Of a captured tensor of torch, or array of numpy or with DLPack's functions."""
    if not hasattr(array, "dtype"):
        view = views.of(array, "a table")
        return Table(array, view.shape, view.dtype)
    dtype = str(array.dtype).split(".")[-1]
    if dtype not in TABLE_TYPES:
        raise TracingError(f"captures a tensor of type {dtype}; tables are of " +
                           ", ".join(TABLE_TYPES))
    if len(array.shape) > 4:
        raise TracingError(f"captures a tensor of {len(array.shape)} dimensions; tables have at "
                           "most 4: reshape it")
    return Table(array, tuple(array.shape), dtype)


class TableOf:
    """A captured array whose elements a mask or score reads by position."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.tensor: Any = None # of PyTorch, in the same memory, where its tracer has read it

    def __getitem__(self, indices: Any) -> Any:
        at = cast("tuple[Any, ...]", indices if isinstance(indices, tuple) else (indices,))
        symbols = [index for index in at if isinstance(index, Symbol)]
        if not symbols:
            is_of_torch = not _is_of_torch(self.array) and any(map(_is_of_torch, at))
            return (self._as_tensor() if is_of_torch else self.array)[indices]
        region = symbols[0].region
        table = table_of(self.array)
        if len(at) != len(table.shape):
            raise TracingError(f"reads a table of {len(table.shape)} dimensions with {len(at)} "
                               "indices: all are wanted")
        return Symbol(region, region.load(table, [lift(region, index) for index in at]))

    def _as_tensor(self) -> Any:
        """The array as PyTorch's tracer reads it: one tensor for all reads, which are of one
        table, where it can have the same memory."""
        if self.tensor is not None:
            return self.tensor
        from burst import torch_tracing
        tensor, is_shared = torch_tracing.tensor_of(self.array)
        if is_shared:
            self.tensor = tensor
        return tensor


def by_operators(function: Function, region: Region, arguments: list[Value],
                 tables: tuple[Any, ...] = ()) -> Value:
    try:
        result = function(*(Symbol(region, value) for value in arguments), *map(TableOf, tables))
    except TracingError:
        raise
    except (IndexError, TypeError) as error: # of an array with a symbol
        raise TracingError(f"{error}; a table that is read by position is wrapped in burst.table, "
                           "and functions are burst.where and operators") from error
    return lift(region, result)
