# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks and scores of torch functions: make_fx records ATen ops, which become
those of a region."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
import threading
import warnings
from collections.abc import Callable, Generator
from typing import Any, cast

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.utils._python_dispatch import _disable_current_modes # pyright: ignore

from burst import tracing
from burst.arrays import Array, Axis, Rows, each
from burst.regions import BOOL, INDEX, TABLE_TYPES, Region, Value
from burst.torch_positions import AtPositions


# make_fx is for one thread at a time; a function may call burst.attention's tracer again.
_lock = threading.RLock()


def trace(function: tracing.Function, region: Region, arguments: list[Value],
          tables: tuple[torch.Tensor, ...] = ()) -> Value:
    examples = [torch.zeros((), dtype=torch.float64 if value.type == "f64" else
                            torch.float32 if value.type == "f32" else torch.int32)
                for value in arguments]
    examples += [torch.empty([int(n) for n in table.shape], dtype=table.dtype) for table in tables]
    try:
        # In inference mode constants of a function would have ops of their own.
        with _lock, torch.inference_mode(False), torch.no_grad(), _no_hashes(function):
            with AtPositions(region.is_score) as mode:
                graph = make_fx(lambda *x: function(*x))(*examples) # defaults are left out
                other = _traced_elsewhere(function, examples, len(arguments))
        if not _is_same(graph, other):
                raise TypeError("takes numbers of what it is traced with, which are others for "
                                "each pair: b, h, i, j and s in a list that becomes a tensor (use "
                                "torch.stack), or in a function that is none of torch; or gives "
                                "another result on each call")
    except (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError) as error:
        raise tracing.TracingError(_explain(error)) from None
    region.reads_values = mode.reads_values
    return _Translation(region, graph, arguments, tables).run()


def tensor_of(array: Any) -> tuple[torch.Tensor, bool]:
    """An array of numpy, or one with DLPack's functions; and whether it is in the same memory,
    and no copy."""
    with _disable_current_modes(), warnings.catch_warnings(): # it is not what is recorded
        warnings.simplefilter("ignore") # about arrays that are read-only, as tables are
        tracing.table_of(array) # says which types and sizes are wanted
        if not hasattr(array, "__array_interface__"):
            return torch.from_dlpack(array), True
        is_shared = min(array.strides, default=0) >= 0
        if not is_shared: # PyTorch has none that lie backwards
            array = array.copy()
        if array.dtype.name == "bfloat16": # which is no type of numpy's own
            return _from_numpy(array.view("int16")).view(torch.bfloat16), is_shared
        return _from_numpy(array), is_shared


_from_numpy = cast("Callable[[Any], torch.Tensor]", cast(Any, torch).from_numpy)


def _traced_elsewhere(function: tracing.Function, examples: list[torch.Tensor],
                      count: int) -> torch.fx.GraphModule | None:
    """Its graph by other numbers, which should be the same; None where there is none.
    -1 is an index of each table."""
    others = [torch.full_like(x, 1.5 if x.is_floating_point() else -1) for x in examples[:count]]
    try:
        return make_fx(lambda *x: function(*x))(*others, *examples[count:])
    except (RuntimeError, ValueError, IndexError, ArithmeticError): # of what it computes by them
        return None


def _is_same(one: torch.fx.GraphModule, other: torch.fx.GraphModule | None) -> bool:
    """Whether two graphs have the same ops and constants."""
    if other is None:
        return True
    nodes, others = list(one.graph.nodes), list(other.graph.nodes)
    places = {node: n for n, node in enumerate(nodes)} | {node: n for n, node in enumerate(others)}

    def operands(node: torch.fx.Node) -> str:
        return repr(map_arg((node.args, node.kwargs), lambda x: cast(Any, ("node", places[x]))))

    if len(nodes) != len(others):
        return False
    for x, y in zip(nodes, others):
        if x.op == y.op == "get_attr":
            a, b = getattr(one, x.target), getattr(other, y.target)
            if a is not b and ((a.shape, a.dtype) != (b.shape, b.dtype) or
                               not torch.allclose(a, b, 0, 0, equal_nan=True)):
                return False
        elif x.op != y.op or operands(x) != operands(y) or \
                x.op == "call_function" and x.target != y.target:
            return False
    return True


@contextlib.contextmanager
def _no_hashes(function: tracing.Function) -> Generator[None]:
    """A tensor is equal to a number, but has another hash: `h in {0, 2}` would always be
    false. Of the module of the function, that is refused."""
    before, thread = torch.Tensor.__hash__, threading.get_ident()
    module = getattr(function, "__module__", None)

    def refuse(self: torch.Tensor) -> int:
        if threading.get_ident() == thread and \
                sys._getframe(1).f_globals.get("__name__") == module: # pyright: ignore
            raise TypeError("looks a tensor up in a set or dict, where it is never found: compare "
                            "it with == and |")
        return before(self)

    torch.Tensor.__hash__ = refuse
    try:
        yield
    finally:
        torch.Tensor.__hash__ = before


def _explain(error: Exception) -> str:
    text = str(error)
    if "data-dependent" in text or "is_nonzero" in text or "_local_scalar_dense" in text or \
            "proxy" in text:
        text = ("asks for the value of something that depends on b, h, i, j or s, which is "
                "another one for each pair: write & | ~ in place of `and` `or` `not`, "
                "(0 <= x) & (x < 8) in place of `0 <= x < 8`, torch.where(condition, a, b) in "
                "place of `if`, torch.maximum and torch.minimum in place of `max` and `min`, a "
                "tensor in place of a list that is read by position, and no int(), float(), "
                "item()")
    elif not isinstance(error, TypeError):
        text = f"{type(error).__name__}: {text}"
    return text + _place_of(error)


def _place_of(error: Exception) -> str:
    """Where in the function of the caller it was raised."""
    place, part = "", error.__traceback__
    while part is not None:
        if tracing.is_of_caller(part.tb_frame):
            place = f" ({part.tb_frame.f_code.co_filename}, line {part.tb_lineno})"
        part = part.tb_next
    return place


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
                self.known[node] = self.call(node)
            elif node.op == "output":
                return self.result(node)
            else:
                raise tracing.TracingError(f"has a node {node.op}, which is not known")
        raise tracing.TracingError("gives nothing")

    def result(self, node: torch.fx.Node) -> Value:
        found = self.array(node.args[0])
        if found.shape:
            raise tracing.TracingError(f"gives an array of shape {found.shape}, where one number "
                                       "for a pair of positions is wanted: index all dimensions "
                                       "of a table")
        return found.item()

    # Operands.

    def table(self, tensor: torch.Tensor, is_known: bool = True) -> Any:
        """A tensor that the function has; `is_known` where its numbers may be part of
        the program."""
        if tensor.dim() > 0:
            return Rows.whole(tracing.table_of(tensor))
        if is_known and not tensor.requires_grad:
            return Array.scalar(self.region.constant(tensor.item()))
        # Programs take tables of one dimension and more.
        if is_known:
            table = next((x for x in self.region.tables if x.number is tensor), None)
            if table is None:
                with torch.enable_grad():
                    table = tracing.table_of(tensor.reshape(1))
                table.number = tensor
        else: # which the caller reshapes
            table = dataclasses.replace(tracing.table_of(tensor), shape=(1,))
        return Array.scalar(self.region.load(table, [self.region.constant(0)]))

    def array(self, operand: Any) -> Array:
        """An operand as numbers: elements of a table are read now."""
        if isinstance(operand, torch.fx.Node):
            operand = self.known[operand]
        if isinstance(operand, Array):
            return operand
        if isinstance(operand, Rows):
            r = self.region
            rows = Array(operand.shape, [r.b] * math.prod(operand.shape)) # of this shape
            return Array(operand.shape, [operand.at(r, *map(r.constant, at)).load(r)
                                         for at in rows.indices()])
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
            if "out" in node.kwargs:
                raise NotImplementedError("out= is not known in a mask or score")
            return self.conform(function(self, node, *node.args, **node.kwargs), node)
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
        if dtype == torch.float64:
            r.check_width("float64")
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
             "bitwise_not", "bitwise_xor", "bitwise_or", "bitwise_left_shift", "__lshift__",
             "where", "masked_fill", "_to_copy", "dot"}


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
def _evenly(choose: Callable[[Region, Value, Value], Value]) -> Any:
    """A choice of which both operands have half of the gradient where they are equal."""
    def chosen(r: Region, a: Value, b: Value) -> Value:
        choice = choose(r, a, b)
        if not r.is_score or choice.type != r.float_type or \
                not (r.has_gradient(a) or r.has_gradient(b)):
            return choice
        halves = [r.mul(x, r.constant(0.5)) for x in (r.to_float(a), r.to_float(b))]
        return r.select(r.compare("eq", a, b), r.add(halves[0], halves[1]), choice)
    return chosen


_binary("maximum", _evenly(Region.maximum))
_binary("minimum", _evenly(Region.minimum))
_binary("atan2", Region.atan2)
def _relu(r: Region, a: Value, zero: Value) -> Value:
    """NaN of NaN; its derivative at 0 is 0, which that of a maximum would not be."""
    return r.select(r.compare("le", a, zero), zero, a)


_unary("neg", Region.neg)
_unary("abs", Region.abs)
_unary("bitwise_not", Region.invert)
_unary("logical_not", lambda r, a: r.invert(r.to_bool(a)))
_unary("reciprocal", lambda r, a: r.div(r.constant(1.0), a))
_unary("square", lambda r, a: r.mul(a, a))
_unary("sigmoid", _logistic)
_unary("relu", lambda r, a: _relu(r, a, r.constant(0 if a.type == INDEX else 0.0)))
_unary("sign", _sign)
_unary("isnan", lambda r, a: r.compare("ne", a, a))


_binary("pow", Region.power)


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
    if getattr(node.target, "_opname", "") == "detach" and t.region.is_score and \
            any(t.region.has_gradient(x) for x in t.array(a).values):
        raise NotImplementedError("the gradient of a score has all parts; detach tables outside "
                                  "of it, or apply what has another gradient behind the attention")
    if dtype is None:
        return known
    narrow = TABLE_TYPES.get(str(dtype).removeprefix("torch."), "")
    array = t.array(a)
    return each(lambda x: t.region.round(x, narrow), array) if narrow.endswith("f16") else array


@_op("index")
def _index(t: _Translation, node: torch.fx.Node, a: Any, indices: list[Any]) -> Any:
    r, known = t.region, t.known[a]
    for index in indices:
        if isinstance(index, torch.fx.Node) and index.meta["val"].dtype in (torch.bool,
                                                                            torch.uint8):
            raise NotImplementedError("an index of truths or of uint8 says what is kept; of "
                                      "positions write index.int()")
    at = [None if index is None else t.array(index) for index in indices]
    if all(index is None or index.shape == () for index in at):
        numbers = [None if index is None else index.item() for index in at]
        if isinstance(known, Rows):
            return _rows_or_number(t, known.at(r, *numbers))
        for dim, x in reversed(list(enumerate(numbers))):
            if x is not None:
                known = _choose(r, known, dim, x)
        return known
    places = [index for index in at if index is not None]
    if isinstance(known, Array) or len(places) < len(known.axes):
        raise NotImplementedError("several positions, which are not an index each of a table's "
                                  "dimensions; torch.stack what is read at each of them")
    return each(lambda *x: known.at(r, *x).load(r), *places)


def _choose(r: Region, values: Array, dim: int, index: Value) -> Array:
    """Among numbers that are known."""
    size = values.shape[dim]
    r.bound(index, size)
    index = r.position(index, size)
    if isinstance(index.constant, int):
        return values.take(dim, index.constant)
    chosen = values.take(dim, -1)
    for n in reversed(range(size - 1)):
        is_it = Array.scalar(r.compare("eq", index, r.constant(n)))
        chosen = each(r.select, is_it, values.take(dim, n), chosen)
    return chosen


@_op("select")
def _select(t: _Translation, node: torch.fx.Node, a: Any, dim: int, index: int) -> Any:
    known = t.known[a]
    if isinstance(known, Array):
        return known.take(dim, index)
    dim %= len(known.axes)
    index %= known.axes[dim].size
    return _rows_or_number(t, known.at(t.region, *[None] * dim, t.region.constant(index)))


def _rows_or_number(t: _Translation, rows: Rows) -> Any:
    return rows if rows.axes else Array.scalar(rows.load(t.region))


@_op("slice")
def _slice(t: _Translation, node: torch.fx.Node, a: Any, dim: int = 0, start: int | None = None,
           end: int | None = None, step: int = 1) -> Any:
    known = t.known[a]
    dim %= len(known.shape)
    kept = range(known.shape[dim])[start:end:step]
    if isinstance(known, Array):
        return known.keep(dim, kept)
    axes = list(known.axes)
    axis = axes[dim]
    axes[dim] = Axis(axis.dim, axis.first + kept.start * axis.step, axis.step * kept.step,
                      len(kept))
    return dataclasses.replace(known, axes=tuple(axes))


@_op("permute", "transpose", "t")
def _permute(t: _Translation, node: torch.fx.Node, a: Any, *dims: Any) -> Any:
    known: Array | Rows = t.known[a]
    order: list[int] = list(range(len(known.shape)))
    if getattr(node.target, "_opname", "") == "permute":
        order = [order[int(dim)] for dim in dims[0]]
    elif len(order) > 1: # t() of one dimension is that
        x, y = dims or (0, 1)
        order[x], order[y] = order[y], order[x]
    if isinstance(known, Array):
        return known.permute(order)
    return dataclasses.replace(known, axes=tuple(known.axes[dim] for dim in order))


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
                 keepdim: bool = False, dtype: torch.dtype | None = None) -> Array:
        array = each(lambda x: convert(t.region, x), t.array(a))
        if dtype is not None:
            array = each(t.region.to_float if dtype.is_floating_point else t.region.to_index, array)
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


@_op("argmax", "argmin")
def _argmax(t: _Translation, node: torch.fx.Node, a: Any, dim: int | None = None,
            keepdim: bool = False) -> Array:
    is_largest = getattr(node.target, "_opname", "") == "argmax"
    return _extreme(t.region, t.array(a), dim, keepdim, is_largest)[1]


def _extreme(r: Region, array: Array, dim: int | None, keepdim: bool,
             is_largest: bool) -> tuple[Array, Array]:
    """The largest or smallest numbers along a dimension, or of all, and the places of
    the first ones; NaN is beyond all."""
    ones = [1] * len(array.shape)
    if dim is None or not array.shape:
        array, dim = array.reshape([-1]), 0
    else:
        dim %= len(array.shape)
        ones = [*array.shape[:dim], 1, *array.shape[dim + 1:]]
    best = array.take(dim, 0)
    place = each(lambda _: r.constant(0), best)
    for n in range(1, array.shape[dim]):
        x = array.take(dim, n)
        is_better = each(lambda x, y: _is_beyond(r, x, y, is_largest), x, best)
        best = each(r.select, is_better, x, best)
        place = each(lambda c, old: r.select(c, r.constant(n), old), is_better, place)
    return (best.reshape(ones), place.reshape(ones)) if keepdim else (best, place)


def _is_beyond(r: Region, x: Value, y: Value, is_largest: bool) -> Value:
    beyond = r.compare("gt" if is_largest else "lt", x, y)
    if x.type != r.float_type:
        return beyond
    is_first_nan = r.bitwise("and", r.compare("ne", x, x), r.compare("eq", y, y))
    return r.bitwise("or", beyond, is_first_nan)


def _of_max(name: str) -> None:
    """max and min: of all numbers, or with their places along a dimension."""
    of_all = _OPS[name]

    def function(t: _Translation, node: torch.fx.Node, a: Any, dim: int | None = None,
                 keepdim: bool = False) -> Any:
        if dim is None:
            return of_all(t, node, a)
        return _extreme(t.region, t.array(a), dim, keepdim, name == "max")
    _OPS[name] = function


_of_max("max")
_of_max("min")


@_op("getitem")
def _getitem(t: _Translation, node: torch.fx.Node, a: Any, index: int) -> Array:
    """One of the results of an op."""
    return t.known[a][index]


@_op("mean")
def _mean(t: _Translation, node: torch.fx.Node, a: Any, dim: Any = None, keepdim: bool = False,
          dtype: torch.dtype | None = None) -> Array: # of floats, one of floats
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
