# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small arrays of a region's scalars, such as a row of a table.

What a traced function makes of rows, it makes of each element: a region has
scalars only, and loops of known length are unrolled.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import overload

from burst.regions import Value

# Elements of an array. More would be a region that takes minutes to compile.
LARGEST = 4096


class Array:
    """Values in row-major order; a scalar has shape ()."""

    def __init__(self, shape: Sequence[int], values: list[Value]) -> None:
        self.shape = tuple(shape)
        self.values = values
        if len(values) > LARGEST:
            raise NotImplementedError(
                f"a mask or score that makes {len(values)} numbers of one pair; at most "
                f"{LARGEST} are unrolled")
        assert len(values) == math.prod(self.shape)

    @staticmethod
    def scalar(value: Value) -> Array:
        return Array((), [value])

    def item(self) -> Value:
        if len(self.values) != 1:
            raise ValueError(f"one number is wanted, got an array of shape {self.shape}")
        return self.values[0]

    def reshape(self, shape: Sequence[int]) -> Array:
        sizes = list(shape)
        if -1 in sizes:
            rest = math.prod(size for size in sizes if size != -1)
            sizes[sizes.index(-1)] = len(self.values) // max(rest, 1)
        return Array(sizes, self.values)

    def take(self, dim: int, index: int) -> Array:
        """The elements with one index along `dim`, which goes."""
        dim %= len(self.shape)
        index %= self.shape[dim]
        kept = [value for value, at in zip(self.values, self.indices()) if at[dim] == index]
        return Array(self.shape[:dim] + self.shape[dim + 1:], kept)

    def expand(self, shape: Sequence[int]) -> Array:
        return Array(shape, [self._at(at) for at in _indices_of(shape)])

    def reduce(self, dims: Sequence[int], keep: bool,
               join: Callable[[Value, Value], Value]) -> Array:
        """Joins all elements along `dims`, or along all where there are none."""
        axes = {dim % max(len(self.shape), 1) for dim in dims} or set(range(len(self.shape)))
        groups: dict[tuple[int, ...], Value] = {}
        for value, at in zip(self.values, self.indices()):
            place = tuple(0 if axis in axes else x for axis, x in enumerate(at))
            groups[place] = join(groups[place], value) if place in groups else value
        if not groups:
            raise ValueError("a reduction of nothing")
        shape = [1 if axis in axes else size for axis, size in enumerate(self.shape)]
        if not keep:
            shape = [size for axis, size in enumerate(self.shape) if axis not in axes]
        return Array(shape, list(groups.values()))

    def indices(self) -> itertools.product[tuple[int, ...]]:
        return _indices_of(self.shape)

    def _at(self, indices: Sequence[int]) -> Value:
        """The element that is broadcast to this place of a larger array."""
        place = 0
        for size, index in zip(self.shape, indices[len(indices) - len(self.shape):]):
            place = place * size + (index if size != 1 else 0)
        return self.values[place]


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """As numpy and torch broadcast."""
    sizes: list[int] = []
    for column in itertools.zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        wanted = {size for size in column if size != 1}
        if len(wanted) > 1:
            raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        sizes.append(wanted.pop() if wanted else 1)
    return tuple(sizes[::-1])


@overload
def each(function: Callable[[Value], Value], a: Array, /) -> Array: ...
@overload
def each(function: Callable[[Value, Value], Value], a: Array, b: Array, /) -> Array: ...
@overload
def each(function: Callable[[Value, Value, Value], Value], a: Array, b: Array, c: Array,
         /) -> Array: ...
@overload
def each(function: Callable[..., Value], /, *operands: Array) -> Array: ...


def each(function: Callable[..., Value], /, *operands: Array) -> Array:
    """The function of the elements of all operands."""
    shape = broadcast([operand.shape for operand in operands])
    wide = [operand.expand(shape) for operand in operands]
    return Array(shape, [function(*elements) for elements in zip(*(x.values for x in wide))])


def _indices_of(shape: Sequence[int]) -> itertools.product[tuple[int, ...]]:
    return itertools.product(*map(range, shape))
