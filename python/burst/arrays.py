# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small arrays of a region's scalars, such as a row of a table.

What a traced function makes of rows, it makes of each element: a region has
scalars only, and loops of known length are unrolled.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import overload

from burst.regions import Region, Table, Value

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

    def keep(self, dim: int, places: Sequence[int]) -> Array:
        """The elements at some places along `dim`, in their order."""
        shape = [*self.shape[:dim], len(places), *self.shape[dim + 1:]]
        return Array(shape, [self._at([*at[:dim], places[at[dim]], *at[dim + 1:]])
                             for at in _indices_of(shape)])

    def permute(self, order: Sequence[int]) -> Array:
        """With dimension order[n] as dimension n."""
        shape = [self.shape[dim] for dim in order]
        return Array(shape, [self._at([at[order.index(dim)] for dim in range(len(order))])
                             for at in _indices_of(shape)])

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


#===----------------------------------------------------------------------===#
# Parts of tables
#===----------------------------------------------------------------------===#


@dataclasses.dataclass(frozen=True)
class Axis:
    """Places along a dimension of a table: first, first + step, ..."""

    dim: int
    first: int
    step: int
    size: int

    def place(self, region: Region, index: Value) -> Value:
        """In the table, of an index from its first place."""
        return region.add(region.mul(index, region.constant(self.step)),
                          region.constant(self.first))


@dataclasses.dataclass(frozen=True)
class Rows:
    """A part of a table, of which elements are not read yet: some of its dimensions
    have an index, others are dimensions of this part."""

    table: Table
    indices: dict[int, Value]
    axes: tuple[Axis, ...]

    @staticmethod
    def whole(table: Table) -> Rows:
        axes = [Axis(dim, 0, 1, size) for dim, size in enumerate(table.shape)]
        return Rows(table, {}, tuple(axes))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    def at(self, region: Region, *indices: Value | None) -> Rows:
        """With indices along the first dimensions; None: that dimension stays."""
        table = self.table
        known, kept = dict(self.indices), list(self.axes[len(indices):])
        for axis, index in reversed(list(zip(self.axes, indices))):
            if index is None:
                kept.insert(0, axis)
                continue
            if axis.size < table.shape[axis.dim] and not region.bound(index, axis.size) and \
                    not getattr(table.captured, "requires_grad", False):
                # A table of its own, so that its end is checked; not where the gradient
                # is that of the whole one.
                table = region.part(table, axis.dim, axis.first, axis.step, axis.size)
                axis = Axis(axis.dim, 0, 1, axis.size)
            # In a whole table negative indices are those of its reads.
            is_whole = axis == Axis(axis.dim, 0, 1, table.shape[axis.dim])
            known[axis.dim] = index if is_whole else \
                axis.place(region, region.position(index, axis.size))
        return Rows(table, known, tuple(kept))

    def load(self, region: Region) -> Value:
        return region.load(self.table, [self.indices[dim] for dim in range(len(self.indices))])
