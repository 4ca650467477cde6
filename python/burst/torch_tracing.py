# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks and scores of torch functions: make_fx records ATen ops, which become
those of a region."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch.fx.experimental.proxy_tensor import make_fx

from burst import tracing
from burst.arrays import Array, each
from burst.regions import BOOL, INDEX, TABLE_TYPES, Region, Table, Value


class _Rows:
    """A table of which leading indices are known: elements are not read yet."""

    def __init__(self, table: Table, indices: list[Value]) -> None:
        self.table = table
        self.indices = indices

    @property
    def rest(self) -> tuple[int, ...]:
        return self.table.shape[len(self.indices):]


def trace(function: tracing.Function, region: Region, arguments: list[Value],
          tables: tuple[torch.Tensor, ...] = ()) -> Value:
    examples = [torch.zeros((), dtype=torch.float64 if value.type == "f64" else
                            torch.float32 if value.type == "f32" else torch.int32)
                for value in arguments]
    examples += [torch.empty([int(n) for n in table.shape], dtype=table.dtype) for table in tables]
    try:
        with torch.no_grad(), TransformGetItemToIndex():
            graph = make_fx(lambda *x: function(*x))(*examples) # it may have default arguments
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise tracing.TracingError(_explain(error)) from error
    return _Translation(region, graph, arguments, tables).run()


def _explain(error: Exception) -> str:
    text = str(error)
    if "data-dependent" in text or "is_nonzero" in text or "_local_scalar_dense" in text or \
            "proxy" in text:
        return ("asks for the value of something that depends on b, h, i, j or s, which is "
                "another one for each pair: write & | ~ in place of `and` `or` `not`, "
                "torch.where(condition, a, b) in place of `if`, and no int(), float(), item()")
    return f"{type(error).__name__}: {text}"


class _Translation:
    """Of one graph."""

    def __init__(self, region: Region, graph: torch.fx.GraphModule,
                 arguments: list[Value], tables: tuple[torch.Tensor, ...]) -> None:
        self.region = region
        self.graph = graph
        self.arguments = iter([*map(Array.scalar, arguments),
                               *(self.table(table, is_known=False) for table in tables)])
        self.known: dict[torch.fx.Node, Any] = {}

    def run(self) -> Value:
        for node in self.graph.graph.nodes:
            if node.op == "placeholder":
                self.known[node] = next(self.arguments)
            elif node.op == "get_attr":
                self.known[node] = self.table(getattr(self.graph, node.target))
            elif node.op == "call_function":
                self.known[node] = self.conform(self.call(node), node)
            elif node.op == "output":
                return self.array(node.args[0]).item()
            else:
                raise tracing.TracingError(f"has a node {node.op}, which is not known")
        raise tracing.TracingError("gives nothing")

    # Operands.

    def table(self, tensor: torch.Tensor, is_known: bool = True) -> Any:
        """A tensor that the function has; `is_known` where its numbers may be part of
        the program."""
        if tensor.dim() > 0:
            return _Rows(tracing.table_of(tensor), [])
        if is_known and not tensor.requires_grad:
            return Array.scalar(self.region.constant(tensor.item()))
        # Programs take tables of one dimension and more.
        if is_known:
            with torch.enable_grad():
                table = tracing.table_of(tensor.reshape(1))
        else: # which the caller reshapes
            table = dataclasses.replace(tracing.table_of(tensor), shape=(1,))
        return Array.scalar(self.region.load(table, [self.region.constant(0)]))

    def array(self, operand: Any) -> Array:
        """An operand as numbers: elements of a table are read now."""
        if isinstance(operand, torch.fx.Node):
            operand = self.known[operand]
        if isinstance(operand, Array):
            return operand
        if isinstance(operand, _Rows):
            size = math.prod(operand.rest)
            rows = Array(operand.rest, [self.region.b] * size) # of this shape
            loaded = [self.region.load(operand.table, [*operand.indices,
                                                       *map(self.region.constant, at)])
                      for at in rows.indices()]
            return Array(operand.rest, loaded)
        if isinstance(operand, (bool, int, float)):
            return Array.scalar(self.region.constant(operand))
        raise tracing.TracingError(f"uses {operand!r} as a number")

    def call(self, node: torch.fx.Node) -> Any:
        name = getattr(node.target, "__name__", str(node.target))
        name = str(getattr(node.target, "_opname", None) or name.split(".")[0])
        function = _OPS.get(name)
        if function is None:
            raise tracing.TracingError(f"calls {node.target}, of which there is no form for one "
                                       "pair of positions; known are " + ", ".join(sorted(_OPS)))
        try:
            return function(self, node, *node.args, **node.kwargs)
        except tracing.TracingError:
            raise
        except (NotImplementedError, TypeError, ValueError, ArithmeticError) as error:
            raise tracing.TracingError(f"calls {node.target}: {error}") from error

    def conform(self, result: Any, node: torch.fx.Node) -> Any:
        """The result in the type that torch gives it; small integers wrap around."""
        value = node.meta.get("val")
        if not isinstance(result, Array) or not isinstance(value, torch.Tensor):
            return result
        r, dtype = self.region, value.dtype
        if dtype == torch.bool:
            return each(r.to_bool, result)
        if dtype.is_floating_point:
            return each(r.to_float, result)
        result = each(r.to_index, result)
        bits = torch.iinfo(dtype).bits
        if bits > 16 or getattr(node.target, "_opname", "") not in _WRAPPING:
            return result
        return each(lambda x: r.wrap(x, bits, dtype.is_signed), result)


#===----------------------------------------------------------------------===#
# Ops
#===----------------------------------------------------------------------===#

_OPS: dict[str, Callable[..., Any]] = {}

# Those whose results may have more bits than their operands.
_WRAPPING = {"add", "sub", "rsub", "mul", "neg", "abs", "square", "pow", "div", "floor_divide",
             "bitwise_not", "bitwise_left_shift", "__lshift__", "_to_copy", "dot"}


def _op(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        _OPS.update(dict.fromkeys(names, function))
        return function
    return add


def _unary(name: str, apply: Callable[[Region, Value], Value]) -> None:
    """An op of each element of its operand."""
    def function(t: _Translation, node: torch.fx.Node, a: Any) -> Array:
        return each(lambda x: apply(t.region, x), t.array(a))
    _OPS[name] = function


def _binary(name: str, apply: Callable[[Region, Value, Value], Value]) -> None:
    """An op of the elements of two operands."""
    def function(t: _Translation, node: torch.fx.Node, a: Any, b: Any) -> Array:
        return each(lambda x, y: apply(t.region, x, y), t.array(a), t.array(b))
    _OPS[name] = function


def _comparison(relation: str) -> Callable[[Region, Value, Value], Value]:
    return lambda r, a, b: r.compare(relation, a, b)


def _bitwise(op: str) -> Callable[[Region, Value, Value], Value]:
    return lambda r, a, b: r.bitwise(op, a, b)


def _logical(op: str) -> Callable[[Region, Value, Value], Value]:
    return lambda r, a, b: r.bitwise(op, r.to_bool(a), r.to_bool(b))


def _shift(way: str) -> Callable[[Region, Value, Value], Value]:
    return lambda r, a, b: r.shift(way, a, b)


def _math(op: str) -> Callable[[Region, Value], Value]:
    return lambda r, a: r.call(f"math.{op}", a)


def _rounding(op: str) -> Callable[[Region, Value], Value]:
    return lambda r, a: a if a.type == INDEX else r.call(f"math.{op}", a)


def _logistic(r: Region, a: Value) -> Value:
    one = r.constant(1.0)
    return r.div(one, r.add(one, r.call("math.exp", r.neg(r.to_float(a)))))


def _sign(r: Region, a: Value) -> Value:
    zero = r.constant(0)
    return r.sub(r.to_index(r.compare("gt", a, zero)), r.to_index(r.compare("lt", a, zero)))


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _binary(_name, _comparison(_name))
for _name in ("and", "or", "xor"):
    _binary(f"bitwise_{_name}", _bitwise(_name))
    _binary(f"__{_name}__", _bitwise(_name))
    _binary(f"logical_{_name}", _logical(_name))
for _name in ("left", "right"):
    _binary(f"bitwise_{_name}_shift", _shift(_name))
    _binary(f"__{_name[0]}shift__", _shift(_name))
for _name in ("exp", "exp2", "expm1", "log", "log2", "log1p", "tanh", "sin", "cos", "tan", "sinh",
              "cosh", "atan", "erf", "sqrt", "rsqrt"):
    _unary(_name, _math(_name))
for _name, _to in {"floor": "floor", "ceil": "ceil", "trunc": "trunc",
                   "round": "roundeven"}.items():
    _unary(_name, _rounding(_to))
_binary("mul", Region.mul)
_binary("floor_divide", Region.floor_div)
_binary("remainder", Region.remainder)
_binary("fmod", Region.trunc_remainder)
_binary("maximum", Region.maximum)
_binary("minimum", Region.minimum)
_binary("atan2", Region.atan2)
_unary("neg", Region.neg)
_unary("abs", Region.abs)
_unary("bitwise_not", Region.invert)
_unary("logical_not", lambda r, a: r.invert(r.to_bool(a)))
_unary("reciprocal", lambda r, a: r.div(r.constant(1.0), a))
_unary("square", lambda r, a: r.mul(a, a))
_unary("sigmoid", _logistic)
_unary("relu", lambda r, a: r.maximum(a, r.constant(0 if a.type == INDEX else 0.0)))
_unary("sign", _sign)
_unary("isnan", lambda r, a: r.compare("ne", a, a))


def _power(r: Region, a: Value, b: Value) -> Value:
    exponent = b.constant
    is_integer = INDEX == a.type == b.type
    if is_integer and exponent == 0:
        return r.constant(1)
    if exponent is not None and exponent in (range(1, 64) if is_integer else (1, 2, 3, 4)):
        result = a
        for _ in range(int(exponent) - 1):
            result = r.mul(result, a)
        return result
    if exponent == 0.5:
        return r.call("math.sqrt", a)
    if is_integer and a.constant == 2 and b.is_natural:
        return r.shift("left", r.constant(1), b)
    power = r.power(a, b)
    return r.to_index(r.call("math.roundeven", power)) if is_integer else power


_binary("pow", _power)


@_op("add", "sub", "rsub")
def _add(t: _Translation, node: torch.fx.Node, a: Any, b: Any, *, alpha: Any = 1) -> Array:
    name = getattr(node.target, "_opname", "add")
    if name == "rsub":
        a, b = b, a
    r = t.region
    factor = r.constant(alpha)
    function = r.add if name == "add" else r.sub
    return each(lambda x, y: function(x, r.mul(y, factor) if alpha != 1 else y),
                t.array(a), t.array(b))


@_op("div")
def _div(t: _Translation, node: torch.fx.Node, a: Any, b: Any, *,
         rounding_mode: str | None = None) -> Array:
    function = {None: t.region.div, "floor": t.region.floor_div,
                "trunc": t.region.trunc_div}[rounding_mode]
    return each(function, t.array(a), t.array(b))


@_op("where")
def _where(t: _Translation, node: torch.fx.Node, condition: Any, a: Any, b: Any) -> Array:
    return each(t.region.select, t.array(condition), t.array(a), t.array(b))


@_op("clamp", "clamp_min", "clamp_max")
def _clamp(t: _Translation, node: torch.fx.Node, a: Any, min: Any = None,
           max: Any = None) -> Array:
    if getattr(node.target, "_opname", "") == "clamp_max":
        min, max = None, min
    result = t.array(a)
    if min is not None:
        result = each(t.region.maximum, result, t.array(min))
    if max is not None:
        result = each(t.region.minimum, result, t.array(max))
    return result


@_op("gelu")
def _gelu(t: _Translation, node: torch.fx.Node, a: Any, *, approximate: str = "none") -> Array:
    r = t.region

    def exact(x: Value) -> Value:
        cdf = r.add(r.constant(1.0), r.call("math.erf", r.mul(x, r.constant(math.sqrt(0.5)))))
        return r.mul(r.mul(x, r.constant(0.5)), cdf)

    def by_tanh(x: Value) -> Value:
        cube = r.mul(r.mul(x, x), r.mul(x, r.constant(0.044715)))
        inner = r.mul(r.add(x, cube), r.constant(math.sqrt(2 / math.pi)))
        return r.mul(r.mul(x, r.constant(0.5)),
                     r.add(r.constant(1.0), r.call("math.tanh", inner)))

    return each(by_tanh if approximate == "tanh" else exact, each(r.to_float, t.array(a)))


@_op("silu")
def _silu(t: _Translation, node: torch.fx.Node, a: Any) -> Array:
    r = t.region
    return each(lambda x: r.div(x, r.add(r.constant(1.0), r.call("math.exp", r.neg(x)))),
                each(r.to_float, t.array(a)))


@_op("softplus")
def _softplus(t: _Translation, node: torch.fx.Node, a: Any, beta: float = 1,
              threshold: float = 20) -> Array:
    r = t.region

    def apply(x: Value) -> Value:
        scaled = r.mul(x, r.constant(float(beta)))
        # An exponential beyond the largest number would be infinite.
        small = r.minimum(scaled, r.constant(float(threshold)))
        soft = r.div(r.call("math.log1p", r.call("math.exp", small)), r.constant(float(beta)))
        return r.select(r.compare("gt", scaled, r.constant(float(threshold))), x, soft)

    return each(apply, each(r.to_float, t.array(a)))


@_op("leaky_relu")
def _leaky_relu(t: _Translation, node: torch.fx.Node, a: Any, slope: float = 0.01) -> Array:
    r = t.region
    return each(lambda x: r.select(r.compare("gt", x, r.constant(0.0)), x,
                                   r.mul(x, r.constant(float(slope)))),
                each(r.to_float, t.array(a)))


@_op("masked_fill")
def _masked_fill(t: _Translation, node: torch.fx.Node, a: Any, mask: Any, value: Any) -> Array:
    return each(t.region.select, t.array(mask), t.array(value), t.array(a))


@_op("_to_copy", "to", "lift_fresh_copy", "lift_fresh", "clone", "detach", "alias", "contiguous",
     "_unsafe_view_copy", "type_as")
def _convert(t: _Translation, node: torch.fx.Node, a: Any, *_: Any, dtype: Any = None,
             **__: Any) -> Any:
    known = t.known[a] if isinstance(a, torch.fx.Node) else t.array(a)
    if dtype is None:
        return known
    narrow = TABLE_TYPES.get(str(dtype).removeprefix("torch."), "")
    array = t.array(a)
    return each(lambda x: t.region.round(x, narrow), array) if narrow.endswith("f16") else array


@_op("index")
def _index(t: _Translation, node: torch.fx.Node, a: Any, indices: list[Any]) -> Any:
    known = t.known[a]
    if any(index is None for index in indices):
        raise NotImplementedError("an index with `:` before a position; transpose the table")
    at = [t.array(index) for index in indices]
    if isinstance(known, _Rows) and all(index.shape == () for index in at):
        rows = _Rows(known.table, [*known.indices, *(index.item() for index in at)])
        if rows.rest == ():
            return Array.scalar(t.region.load(rows.table, rows.indices))
        return rows
    if isinstance(known, _Rows):
        if len(known.indices) + len(at) != len(known.table.shape):
            raise NotImplementedError("rows of a table by several positions")
        return each(lambda *x: t.region.load(known.table, [*known.indices, *x]), *at)
    # A choice among numbers that are known.
    values = known
    for index in at:
        if index.shape != ():
            raise NotImplementedError("numbers of one pair by several positions")
        x = t.region.position(index.item(), values.shape[0])
        if not isinstance(x.constant, int):
            rows = [values.take(0, n) for n in range(values.shape[0])]
            chosen = rows[-1]
            for n in reversed(range(len(rows) - 1)):
                is_it = Array.scalar(t.region.compare("eq", x, t.region.constant(n)))
                chosen = each(t.region.select, is_it, rows[n], chosen)
            values = chosen
        else:
            values = values.take(0, x.constant)
    return values


@_op("select")
def _select(t: _Translation, node: torch.fx.Node, a: Any, dim: int, index: int) -> Any:
    known = t.known[a]
    if isinstance(known, _Rows):
        if dim % len(known.rest) == 0:
            size = known.rest[0]
            return _rows_or_number(t, _Rows(known.table, [*known.indices,
                                                          t.region.constant(index % size)]))
        known = t.array(known)
    return known.take(dim, index)


def _rows_or_number(t: _Translation, rows: _Rows) -> Any:
    return rows if rows.rest else Array.scalar(t.region.load(rows.table, rows.indices))


@_op("view", "reshape", "_unsafe_view")
def _view(t: _Translation, node: torch.fx.Node, a: Any, shape: list[int]) -> Array:
    return t.array(a).reshape(shape)


@_op("unsqueeze")
def _unsqueeze(t: _Translation, node: torch.fx.Node, a: Any, dim: int) -> Array:
    array = t.array(a)
    shape = list(array.shape)
    shape.insert(dim % (len(shape) + 1), 1)
    return array.reshape(shape)


@_op("squeeze")
def _squeeze(t: _Translation, node: torch.fx.Node, a: Any, dim: Any = None) -> Array:
    array = t.array(a)
    dims = range(len(array.shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {d % max(len(array.shape), 1) for d in dims}
    return array.reshape([size for axis, size in enumerate(array.shape)
                          if axis not in gone or size != 1])


@_op("expand")
def _expand(t: _Translation, node: torch.fx.Node, a: Any, shape: list[int], **_: Any) -> Array:
    array = t.array(a)
    own = [1] * (len(shape) - len(array.shape)) + list(array.shape)
    return array.expand([x if size == -1 else size for x, size in zip(own, shape)])


@_op("stack", "cat")
def _stack(t: _Translation, node: torch.fx.Node, tensors: list[Any], dim: int = 0) -> Array:
    arrays = [t.array(x) for x in tensors]
    if dim != 0 and len(arrays[0].shape) > 0:
        raise NotImplementedError("numbers side by side in another dimension than the first")
    values = [value for array in arrays for value in array.values]
    if getattr(node.target, "_opname", "") == "stack":
        return Array([len(arrays), *arrays[0].shape], values)
    return Array([sum(array.shape[0] for array in arrays), *arrays[0].shape[1:]], values)


def _same(r: Region, x: Value) -> Value:
    return x


def _reduction(name: str, join: Callable[[Region, Value, Value], Value],
               convert: Callable[[Region, Value], Value] = _same) -> None:
    def function(t: _Translation, node: torch.fx.Node, a: Any, dim: Any = None,
                 keepdim: bool = False, **_: Any) -> Array:
        array = each(lambda x: convert(t.region, x), t.array(a))
        dims = [] if dim is None else [dim] if isinstance(dim, int) else list(dim)
        return array.reduce(dims, keepdim, lambda x, y: join(t.region, x, y))
    _OPS[name] = function


_reduction("any", lambda r, x, y: r.bitwise("or", x, y), Region.to_bool)
_reduction("all", lambda r, x, y: r.bitwise("and", x, y), Region.to_bool)
_reduction("sum", Region.add, lambda r, x: r.to_index(x) if x.type == BOOL else x)
_reduction("amax", Region.maximum)
_reduction("amin", Region.minimum)
_reduction("max", Region.maximum)
_reduction("min", Region.minimum)
_reduction("prod", Region.mul, lambda r, x: r.to_index(x) if x.type == BOOL else x)


@_op("mean")
def _mean(t: _Translation, node: torch.fx.Node, a: Any, dim: Any = None, keepdim: bool = False,
          **_: Any) -> Array:
    r = t.region
    array = each(r.to_float, t.array(a))
    dims = [] if dim is None else [dim] if isinstance(dim, int) else list(dim)
    total = array.reduce(dims, keepdim, r.add)
    count = r.constant(len(array.values) / max(len(total.values), 1))
    return each(lambda x: r.div(x, count), total)


@_op("dot")
def _dot(t: _Translation, node: torch.fx.Node, a: Any, b: Any) -> Array:
    products = each(t.region.mul, t.array(a), t.array(b))
    return products.reduce([], False, t.region.add)


@_op("new_ones", "new_zeros", "ones_like", "zeros_like", "full", "full_like", "new_full",
     "scalar_tensor", "ones", "zeros")
def _constant(t: _Translation, node: torch.fx.Node, *arguments: Any, **_: Any) -> Array:
    name = getattr(node.target, "_opname", "")
    like = t.array(arguments[0]) if name.endswith("_like") else None
    shape: tuple[int, ...] = like.shape if like else ()
    if name in ("new_ones", "new_zeros", "new_full"):
        shape = tuple(arguments[1])
    elif name in ("ones", "zeros", "full"):
        shape = tuple(arguments[0])
    number = 1 if "ones" in name else 0 if "zeros" in name else arguments[-1]
    return Array(shape, [t.region.constant(number)] * math.prod(shape))


@_op("arange")
def _arange(t: _Translation, node: torch.fx.Node, *bounds: int, **_: Any) -> Array:
    values = [t.region.constant(n) for n in range(*bounds)]
    return Array([len(values)], values)
