# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions of `burst.attention`: scalar code of a mask or a score, as MLIR's text.

A `Region` is built op by op. Values are of the types `index`, `i1` and the type
of the state, `f32` or `f64`. Equal ops are one, and ops of constants are
evaluated, so that what a function means does not depend on how it was written.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

INDEX, BOOL = "index", "i1"

# Element types of tables, as numpy and torch name them, and as MLIR does.
TABLE_TYPES = {"bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
               "uint8": "i8", "float16": "f16", "bfloat16": "bf16", "float32": "f32",
               "float64": "f64"}


@dataclasses.dataclass(eq=False, frozen=True)
class Value:
    """A scalar: an argument of the region, a constant, or what an op gives.

    Made by a region, which has each one once: equal values are identical.
    """

    type: str
    op: str
    operands: tuple[Any, ...]
    is_natural: bool # of an integer: it is never negative

    @property
    def constant(self) -> int | float | bool | None:
        return self.operands[0] if self.op == "constant" else None


@dataclasses.dataclass(eq=False)
class Table:
    """A captured tensor. `source` is the tensor of the caller's framework, or where
    it makes a table of `number`, a captured tensor without dimensions, that table."""

    source: Any
    shape: tuple[int, ...]
    dtype: str # of TABLE_TYPES
    number: Any = None
    variable: str | None = None # what the function calls it, for messages

    @property
    def captured(self) -> Any:
        return self.source if self.number is None else self.number

    @property
    def type(self) -> str:
        return f"tensor<{'x'.join(map(str, self.shape))}x{TABLE_TYPES[self.dtype]}>"


class Region:
    """The code of a mask (`is_score` false) or a score."""

    def __init__(self, is_score: bool, float_type: str) -> None:
        self.float_type = float_type
        self.is_score = is_score
        self.tables: list[Table] = []
        self.bounds: list[tuple[str, int]] = [] # of positions: see bound
        # Whether the function asked for numbers of tensors: others are another region.
        self.reads_values = False
        self._values: dict[tuple[Any, ...], Value] = {}
        self._parts: dict[tuple[Any, ...], Table] = {}
        self.b, self.h, self.i, self.j, self.num_queries, self.num_keys = (
            self._make(INDEX, "argument", (name,), True)
            for name in ("b", "h", "i", "j", "sq", "sk"))
        self.s = self._make(float_type, "argument", ("s",))
        self.result: Value | None = None

    # Constants and conversions.

    def constant(self, value: int | float | bool) -> Value:
        if isinstance(value, bool):
            return self._make(BOOL, "constant", (value,))
        if isinstance(value, int):
            if not -2**63 <= value < 2**63:
                raise ValueError(f"the integer {value} has more than 64 bits")
            return self._make(INDEX, "constant", (value,), value >= 0)
        number = float(value)
        if self.float_type == "f32": # as tensors of this type have it
            try:
                number = struct.unpack("<f", struct.pack("<f", number))[0]
            except OverflowError:
                number = math.copysign(math.inf, number)
        return self._make(self.float_type, "constant", (number,))

    def to_index(self, value: Value) -> Value:
        if value.type == INDEX:
            return value
        if value.constant is not None:
            return self.constant(int(value.constant))
        if value.type == BOOL:
            return self._make(INDEX, "arith.index_castui", (value,), True)
        # As a cast to an integer in C does; out of range it saturates.
        wide = self._make("i64", "arith.fptosi", (value,))
        return self._make(INDEX, "arith.index_cast", (wide,))

    def to_float(self, value: Value) -> Value:
        if value.type == self.float_type:
            return value
        if value.constant is not None:
            return self.constant(float(value.constant))
        if value.type == BOOL:
            return self._make(self.float_type, "arith.uitofp", (value,))
        wide = self._make("i64", "arith.index_cast", (value,))
        return self._make(self.float_type, "arith.sitofp", (wide,))

    def round(self, value: Value, kind: str) -> Value:
        """To a float of fewer bits, `f16` or `bf16`, and back."""
        narrow = self._make(kind, "arith.truncf", (self.to_float(value),))
        return self._make(self.float_type, "arith.extf", (narrow,))

    def to_bool(self, value: Value) -> Value:
        if value.type == BOOL:
            return value
        if value.type == INDEX:
            return self.compare("ne", value, self.constant(0))
        return self.compare("ne", value, self.constant(0.0))

    def _common(self, a: Value, b: Value) -> tuple[Value, Value, str]:
        """Both in the larger of their types."""
        for kind, convert in ((self.float_type, self.to_float), (INDEX, self.to_index)):
            if kind in (a.type, b.type):
                return convert(a), convert(b), kind
        return a, b, BOOL

    # Arithmetic.

    def add(self, a: Value, b: Value) -> Value:
        """Of truths `or`, as in torch and numpy."""
        if a.type == b.type == BOOL:
            return self.bitwise("or", a, b)
        a, b, kind = self._numbers(a, b)
        if kind != INDEX:
            return self._fold("arith.addf", lambda x, y: x + y, a, b)
        if a.constant == 0:
            return b
        if b.constant == 0:
            return a
        return self._fold("arith.addi", lambda x, y: x + y, a, b,
                          is_natural=a.is_natural and b.is_natural)

    def sub(self, a: Value, b: Value) -> Value:
        a, b, kind = self._numbers(a, b)
        if kind != INDEX:
            return self._fold("arith.subf", lambda x, y: x - y, a, b)
        return a if b.constant == 0 else self._fold("arith.subi", lambda x, y: x - y, a, b)

    def mul(self, a: Value, b: Value) -> Value:
        """Of truths `and`, as in torch and numpy."""
        if a.type == b.type == BOOL:
            return self.bitwise("and", a, b)
        a, b, kind = self._numbers(a, b)
        if kind != INDEX:
            return self._fold("arith.mulf", lambda x, y: x * y, a, b)
        if a.constant == 1:
            return b
        if b.constant == 1:
            return a
        return self._fold("arith.muli", lambda x, y: x * y, a, b,
                          is_natural=a.is_natural and b.is_natural)

    def div(self, a: Value, b: Value) -> Value:
        """Of numbers, as `/` in Python."""
        return self._fold("arith.divf", _divide, self.to_float(a), self.to_float(b))

    def floor_div(self, a: Value, b: Value) -> Value:
        a, b, kind = self._numbers(a, b)
        if kind != INDEX:
            # Of what the remainder leaves: a / b may round up to a whole number.
            rest, is_off = self._remf(a, b)
            whole = self.div(self.sub(a, rest), b)
            whole = self.select(is_off, self.sub(whole, self.constant(1.0)), whole)
            return self.select(self.compare("eq", b, self.constant(0.0)), self.div(a, b),
                               self.call("math.roundeven", whole))
        if b.constant == 1:
            return a
        if a.is_natural and b.is_natural:
            return self._fold("arith.divui", lambda x, y: x // y if y else 0, a, b,
                              is_natural=True)
        return self._fold("arith.floordivsi", lambda x, y: x // y if y else 0, a, b)

    def trunc_div(self, a: Value, b: Value) -> Value:
        a, b, kind = self._numbers(a, b)
        if kind != INDEX:
            return self.call("math.trunc", self.div(a, b))
        if a.is_natural and b.is_natural:
            return self.floor_div(a, b)
        return self._make(INDEX, "arith.divsi", (a, b))

    def remainder(self, a: Value, b: Value) -> Value:
        """With the sign of the divisor, as `%` in Python."""
        a, b, kind = self._numbers(a, b)
        if kind != INDEX:
            rest, is_off = self._remf(a, b)
            return self.select(is_off, self.add(rest, b), rest)
        if a.is_natural and b.is_natural:
            return self._fold("arith.remui", lambda x, y: x % y if y else x, a, b,
                              is_natural=True)
        return self.sub(a, self.mul(self.floor_div(a, b), b))

    def _remf(self, a: Value, b: Value) -> tuple[Value, Value]:
        """The remainder of floats with the sign of the dividend, and whether the
        divisor has the other one."""
        rest, zero = self._fold("arith.remf", _fmod, a, b), self.constant(0.0)
        return rest, self.bitwise("and", self.compare("ne", rest, zero), self.compare(
            "ne", self.compare("lt", rest, zero), self.compare("lt", b, zero)))

    def trunc_remainder(self, a: Value, b: Value) -> Value:
        """With the sign of the dividend, as `%` in C."""
        a, b, kind = self._numbers(a, b)
        if kind != INDEX:
            return self._remf(a, b)[0]
        return self.sub(a, self.mul(self.trunc_div(a, b), b))

    def neg(self, a: Value) -> Value:
        if a.type == self.float_type:
            return self.unary("arith.negf", lambda x: -x, a)
        return self.sub(self.constant(0), self.to_index(a))

    def abs(self, a: Value) -> Value:
        if a.type == self.float_type:
            return self.call("math.absf", a)
        a = self.to_index(a)
        return a if a.is_natural else self.maximum(a, self.neg(a), is_natural=True)

    def maximum(self, a: Value, b: Value, is_natural: bool = False) -> Value:
        if a.type == b.type == BOOL:
            return self.bitwise("or", a, b)
        a, b, kind = self._numbers(a, b)
        if kind != INDEX:
            return self._fold("arith.maximumf", _of_numbers(max), a, b)
        return self._fold("arith.maxsi", max, a, b,
                          is_natural=is_natural or a.is_natural or b.is_natural)

    def minimum(self, a: Value, b: Value) -> Value:
        if a.type == b.type == BOOL:
            return self.bitwise("and", a, b)
        a, b, kind = self._numbers(a, b)
        if kind != INDEX:
            return self._fold("arith.minimumf", _of_numbers(min), a, b)
        return self._fold("arith.minsi", min, a, b, is_natural=a.is_natural and b.is_natural)

    # Bits and truth.

    def bitwise(self, op: str, a: Value, b: Value) -> Value:
        """`and`, `or` or `xor`."""
        a, b, kind = self._common(a, b)
        if kind == self.float_type:
            raise TypeError(f"bitwise {op} of floats")
        for x, y in ((a, b), (b, a)):
            if kind == BOOL and x.constant is not None:
                if op == "and":
                    return y if x.constant else x
                if op == "or":
                    return x if x.constant else y
        if a is b and op in ("and", "or"):
            return a
        natural = a.is_natural and b.is_natural
        if op == "and":
            natural = a.is_natural or b.is_natural
        return self._make(kind, f"arith.{op}i", (a, b), kind == INDEX and natural)

    def invert(self, a: Value) -> Value:
        """`~`: of truths the other one, of integers all bits."""
        if a.type == BOOL:
            if a.constant is not None:
                return self.constant(not a.constant)
            return self._make(BOOL, "arith.xori", (a, self.constant(True)))
        return self.sub(self.constant(-1), self.to_index(a))

    def shift(self, op: str, a: Value, b: Value) -> Value:
        """`left` or `right`, which keeps the sign."""
        a, b = self.to_index(a), self.to_index(b)
        name = "arith.shli" if op == "left" else "arith.shrui" if a.is_natural else "arith.shrsi"
        return self._make(INDEX, name, (a, b), a.is_natural and op == "right")

    def wrap(self, a: Value, bits: int, is_signed: bool) -> Value:
        """An integer as one of few bits."""
        low = self.bitwise("and", a, self.constant(2**bits - 1))
        if not is_signed:
            return low
        sign = self.constant(2**(bits - 1))
        return self.sub(self.bitwise("xor", low, sign), sign)

    def compare(self, relation: str, a: Value, b: Value) -> Value:
        """`eq`, `ne`, `lt`, `le`, `gt` or `ge`."""
        a, b, kind = self._common(a, b)
        if a.constant is not None and b.constant is not None:
            return self.constant(_RELATIONS[relation](a.constant, b.constant))
        if relation in ("gt", "ge"): # one way to say it
            relation, a, b = {"gt": "lt", "ge": "le"}[relation], b, a
        if kind == self.float_type:
            ordered = "une" if relation == "ne" else "o" + relation
            return self._make(BOOL, f"arith.cmpf {ordered},", (a, b))
        if kind == BOOL and relation not in ("eq", "ne"):
            a, b = self.to_index(a), self.to_index(b)
        signed = relation if relation in ("eq", "ne") else "s" + relation
        return self._make(BOOL, f"arith.cmpi {signed},", (a, b))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        condition = self.to_bool(condition)
        a, b, kind = self._common(a, b)
        if condition.constant is not None:
            return a if condition.constant else b
        return self._make(kind, "arith.select", (condition, a, b),
                     kind == INDEX and a.is_natural and b.is_natural)

    # Functions.

    def call(self, op: str, a: Value) -> Value:
        """A function of the dialect `math` of one number, such as `math.exp`."""
        return self.unary(op, _FUNCTIONS.get(op), self.to_float(a))

    def power(self, a: Value, b: Value) -> Value:
        a, b = (self.to_index(x) if x.type == BOOL else x for x in (a, b))
        is_integer = a.type == b.type == INDEX
        exponent = b.constant
        if is_integer and exponent == 0:
            return self.constant(1)
        if exponent is not None and exponent in (range(1, 64) if is_integer else (1, 2, 3, 4)):
            result = a
            for _ in range(int(exponent) - 1):
                result = self.mul(result, a)
            return result
        if is_integer and a.constant == 2 and b.is_natural:
            return self.shift("left", self.constant(1), b)
        if is_integer:
            return self._integer_power(a, b)
        if exponent == 0.5:
            return self.call("math.sqrt", a)
        return self._fold("math.powf", None, self.to_float(a), self.to_float(b))

    def _integer_power(self, a: Value, b: Value) -> Value:
        """By squares, modulo 2**64: floats have too few bits for it."""
        if not b.is_natural:
            raise TypeError("an integer to the power of one that may be negative: use floats")
        bits = (b.constant or 0).bit_length() if isinstance(b.constant, int) else 32
        result = self.constant(1)
        for n in range(bits):
            bit = self.bitwise("and", self.shift("right", b, self.constant(n)), self.constant(1))
            result = self.select(self.to_bool(bit), self.mul(result, a), result)
            square = a.constant
            a = self.mul(a, a) if square is None else \
                self.constant((int(square)**2 + 2**63) % 2**64 - 2**63)
        return result

    def atan2(self, a: Value, b: Value) -> Value:
        return self._fold("math.atan2", None, self.to_float(a), self.to_float(b))

    def unary(self, op: str, evaluate: Callable[[Any], Any] | None, a: Value) -> Value:
        if a.constant is not None and evaluate:
            try:
                return self.constant(evaluate(a.constant))
            except (ArithmeticError, ValueError):
                pass
        return self._make(a.type, op, (a,))

    def position(self, index: Value, size: int) -> Value:
        """Of an index of `size` elements, from the first one."""
        index = self.to_index(index)
        if index.is_natural:
            return index
        behind = self.add(index, self.constant(size))
        return self.select(self.compare("lt", index, self.constant(0)), behind, index)

    def load(self, table: Table, indices: Sequence[Value]) -> Value:
        """An element of a table. Negative indices count from the end."""
        at = [self.position(index, size)
              for index, size in zip(indices, table.shape, strict=True)]
        for known in self.tables:
            if known.source is table.source:
                table = known
                break
        else:
            self.tables.append(table)
        kind = TABLE_TYPES[table.dtype]
        loaded = self._make(kind, "tensor.extract", (table, *at))
        if kind == BOOL or kind == self.float_type:
            return loaded
        self.check_width(table.dtype)
        if kind.startswith("i"):
            is_signed = table.dtype != "uint8"
            cast = "arith.index_cast" if is_signed else "arith.index_castui"
            return self._make(INDEX, cast, (loaded,), not is_signed)
        wider = struct.calcsize({"f64": "d", "f32": "f"}.get(kind, "e"))
        own = struct.calcsize({"f64": "d", "f32": "f"}[self.float_type])
        cast = "arith.extf" if wider < own else "arith.truncf"
        return self._make(self.float_type, cast, (loaded,))

    def check_width(self, dtype: str) -> None:
        """Comparisons of masks are decided by bits that a float of the type of scores
        may not have."""
        if not self.is_score and dtype == "float64" and self.float_type == "f32":
            raise TypeError("float64 in a mask, whose floats are those of scores, float32 here: "
                            "give integers or float32")

    def bound(self, index: Value, size: int) -> bool:
        """Says that an index reads among `size` elements that are no table of their own:
        compilers check tables alone. Of positions themselves this is checked once
        their number is known; false of what is none, nor a number."""
        constant = index.constant
        if constant is not None:
            if not -size <= int(constant) < size:
                raise IndexError(f"reads element {constant} of {size}")
            return True
        for name, argument in (("b", self.b), ("h", self.h), ("i", self.i), ("j", self.j)):
            if index is argument:
                self.bounds.append((name, size))
                return True
        return False

    def part(self, table: Table, dim: int, first: int, step: int, size: int) -> Table:
        """Elements of a table along a dimension, as a table of its own."""
        end = first + step * (size - 1)
        places = slice(first, end + 1 if step > 0 else end - 1 if end > 0 else None, step)
        key = (id(table.source), dim, first, step, size)
        if key not in self._parts:
            shape = (*table.shape[:dim], size, *table.shape[dim + 1:])
            self._parts[key] = Table(table.source[(slice(None),) * dim + (places,)], shape,
                                     table.dtype)
        return self._parts[key]

    def has_gradient(self, value: Value) -> bool:
        """Whether it depends on the score, or on a table that requires a gradient."""
        seen: set[Value] = set()
        stack: list[Any] = [value]
        while stack:
            x = stack.pop()
            if x is self.s or isinstance(x, Table) and getattr(x.captured, "requires_grad", False):
                return True
            if isinstance(x, Value) and x not in seen:
                seen.add(x)
                stack += x.operands
        return False

    def check_bounds(self, extents: dict[str, int | None]) -> None:
        """That tables have all elements at b, h, i and j that are read; what is not
        known yet a run checks."""
        for name, size in self.bounds:
            extent = extents[name]
            if extent is not None and extent > size:
                what = "score" if self.is_score else "mask"
                raise IndexError(f"{what}: reads {size} elements at {name}, which has "
                                 f"{extent} values")

    # Text.

    def text(self, indent: str) -> str:
        """The region as a clause of `burst.attention`, whose captures are the
        values %table0, %table1, ... of its function."""
        assert self.result is not None
        first = [f"%s : {self.float_type}"] if self.is_score else []
        names = [*first, "%b", "%h", "%i", "%j", "%sq", "%sk"]
        names += [f"%t{n} = %{self.name_of(table)} : {table.type}"
                  for n, table in enumerate(self.tables)]
        lines: list[str] = []
        written = self._write(self.result, {}, lines, indent + "  ")
        lines.append(f"{indent}  burst.yield {written} : {self.result.type}")
        clause = "score" if self.is_score else "mask"
        return f"{clause}({', '.join(names)}) {{\n" + "\n".join(lines) + f"\n{indent}}}"

    def finish(self, result: Value) -> None:
        """Sets what the region gives; tables that it does not read go."""
        self.result = result
        read = [value.operands[0] for value in self._used() if value.op == "tensor.extract"]
        self.tables = [table for table in self.tables if any(x is table for x in read)]

    def reads(self, argument: Value) -> bool:
        """Whether the result depends on an argument."""
        return any(value is argument for value in self._used())

    def _used(self) -> list[Value]:
        """All that the result is made of."""
        assert self.result is not None
        seen: dict[Value, None] = {self.result: None}
        stack = [self.result]
        while stack:
            for operand in stack.pop().operands:
                if isinstance(operand, Value) and operand not in seen:
                    seen[operand] = None
                    stack.append(operand)
        return list(seen)

    def name_of(self, table: Table) -> str:
        """Of the argument that has the table."""
        return f"{'score' if self.is_score else 'mask'}_table{self.tables.index(table)}"

    def _write(self, root: Value, names: dict[Value, str], lines: list[str],
               indent: str) -> str:
        """Writes what `root` needs, without recursion: regions may be deep."""
        stack = [root]
        while stack:
            value = stack[-1]
            if value in names:
                stack.pop()
                continue
            if value.op == "argument":
                names[value] = f"%{value.operands[0]}"
                continue
            missing = [x for x in value.operands if isinstance(x, Value) and x not in names]
            if missing:
                stack += reversed(missing)
                continue
            name = f"%x{len(lines)}"
            lines.append(f"{indent}{name} = {self._op(value, names)}")
            names[value] = name
        return names[root]

    def _op(self, value: Value, names: dict[Value, str]) -> str:
        if value.op == "constant":
            return f"arith.constant {_literal(value)}"
        if value.op == "tensor.extract":
            table, *indices = value.operands
            at = ", ".join(names[x] for x in indices)
            return f"tensor.extract %t{self.tables.index(table)}[{at}] : {table.type}"
        operands = ", ".join(names[x] for x in value.operands)
        kind = value.operands[-1].type
        if "cast" in value.op or value.op in ("arith.sitofp", "arith.uitofp", "arith.fptosi",
                                              "arith.extf", "arith.truncf"):
            kind = f"{kind} to {value.type}"
        return f"{value.op} {operands} : {kind}"

    def _make(self, kind: str, op: str, operands: tuple[Any, ...],
              is_natural: bool = False) -> Value:
        # 0.0 and -0.0, or 1 and True, are not one constant; NaN is.
        key = (kind, op, *map(repr if op == "constant" else _identity, operands))
        return self._values.setdefault(key, Value(kind, op, operands, is_natural))

    def _numbers(self, a: Value, b: Value) -> tuple[Value, Value, str]:
        a, b, kind = self._common(a, b)
        if kind == BOOL:
            return self.to_index(a), self.to_index(b), INDEX
        return a, b, kind

    def _fold(self, op: str, evaluate: Callable[[Any, Any], Any] | None, a: Value, b: Value,
              is_natural: bool = False) -> Value:
        if evaluate and a.constant is not None and b.constant is not None:
            return self.constant(evaluate(a.constant, b.constant))
        return self._make(a.type, op, (a, b), is_natural)


def _identity(operand: Any) -> Any:
    return operand if isinstance(operand, str) else id(operand)


def _literal(value: Value) -> str:
    constant = value.operands[0]
    if value.type == BOOL:
        return "true" if constant else "false"
    if value.type == INDEX:
        return f"{constant} : index"
    # By its bits: the text has every number, infinities and NaN among them.
    if value.type == "f32":
        return f"0x{struct.unpack('<I', struct.pack('<f', constant))[0]:08X} : f32"
    return f"0x{struct.unpack('<Q', struct.pack('<d', constant))[0]:016X} : f64"


def _divide(x: float, y: float) -> float:
    if y != 0:
        return x / y
    if x == 0 or math.isnan(x):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1, y)


def _fmod(x: float, y: float) -> float:
    return math.nan if y == 0 or math.isinf(x) else math.fmod(x, y)


def _of_numbers(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    """NaN stays NaN."""
    return lambda x, y: x if math.isnan(x) else y if math.isnan(y) else choose(x, y)


_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y}
_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "math.sqrt": math.sqrt, "math.exp": math.exp, "math.absf": abs,
    "math.floor": lambda x: float(math.floor(x))}
