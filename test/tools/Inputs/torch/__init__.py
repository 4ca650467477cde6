# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""As much of PyTorch as bench/gpu asks for, over the driver of CUDA that the environment names.

It stands for PyTorch where check.py is tested: a name that it does not have is a mistake there
or is missing here. Tensors are lists of numbers, and lie on the GPU from when somebody asks
for their address. Views are copies; what would write through one is refused."""

import contextlib
import itertools
import math
import random as _random
import struct
import types

from . import cuda

__version__ = "stand-in"
version = types.SimpleNamespace(cuda="0.0")
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 0))

_generator = _random.Random(0)


class dtype:
    def __init__(self, name, letter):
        self.name, self.letter = name, letter

    def __str__(self):
        return "torch." + self.name

    def pack(self, values):
        if self.name == "bfloat16":
            return struct.pack(f"<{len(values)}H", *map(_bf16, values))
        if self.letter in "Bq?":
            values = list(map(int, values))
        return struct.pack(f"<{len(values)}{self.letter}", *values)

    def unpack(self, content):
        count = len(content) // struct.calcsize("<" + self.letter)
        values = struct.unpack(f"<{count}{self.letter}", content)
        if self.name == "bfloat16":
            return [struct.unpack("<f", struct.pack("<I", x << 16))[0] for x in values]
        return list(values)


def _bf16(number):
    if math.isnan(number):
        return 0x7fc0
    pattern = struct.unpack("<I", struct.pack("<f", number))[0]
    return (pattern + 0x7fff + (pattern >> 16 & 1)) >> 16


float64, float32 = dtype("float64", "d"), dtype("float32", "f")
bfloat16, uint8 = dtype("bfloat16", "H"), dtype("uint8", "B")
int64, bool_ = dtype("int64", "q"), dtype("bool", "?")


def _strides(shape):
    found = [1] * len(shape)
    for d in reversed(range(len(shape) - 1)):
        found[d] = found[d + 1] * shape[d + 1]
    return found


class Tensor:
    def __init__(self, values, shape, dtype):
        self.shape, self.dtype, self.address = tuple(shape), dtype, None
        self.kept = dtype.unpack(dtype.pack(values))
        assert len(self.kept) == math.prod(self.shape)

    # Where it is

    @property
    def values(self):
        if self.address is None:
            return self.kept
        bytes = len(self.kept) * struct.calcsize("<" + self.dtype.letter)
        return self.dtype.unpack(cuda.gpu().read(self.address, bytes))

    @values.setter
    def values(self, values):
        if self.address is None:
            self.kept = self.dtype.unpack(self.dtype.pack(values))
        else:
            cuda.gpu().write(self.address, self.dtype.pack(values))

    def data_ptr(self):
        if self.address is None:
            self.address = cuda.gpu().upload(self.dtype.pack(self.kept))
        return self.address

    # Shape

    def dim(self):
        return len(self.shape)

    def size(self, d):
        return self.shape[d]

    def stride(self, d):
        return _strides(self.shape)[d]

    def _places(self, index):
        """Places of what an index takes, and the shape of that."""
        index = list(index) if isinstance(index, tuple) else [index]
        lists, shape, sizes, d = [], [], list(self.shape), 0
        for at in index:
            if at is None:
                shape.append(1)
                continue
            if isinstance(at, int):
                assert -sizes[d] <= at < sizes[d], (at, self.shape)
                lists.append([at % sizes[d]])
            else:
                chosen = ([int(x) for x in at.values] if isinstance(at, Tensor)
                          else range(*at.indices(sizes[d])))
                assert all(0 <= x < sizes[d] for x in chosen)
                lists.append(list(chosen))
                shape.append(len(lists[-1]))
            d += 1
        for size in sizes[d:]:
            lists.append(list(range(size)))
            shape.append(size)
        strides = _strides(self.shape)
        places = [sum(x * s for x, s in zip(at, strides)) for at in itertools.product(*lists)]
        return places, shape

    def __getitem__(self, index):
        places, shape = self._places(index)
        values = self.values
        return Tensor([values[p] for p in places], shape, self.dtype)

    def __setitem__(self, index, other):
        places, shape = self._places(index)
        assert tuple(shape) == other.shape and self.dtype is other.dtype
        values = self.values
        for place, value in zip(places, other.values):
            values[place] = value
        self.values = values

    def transpose(self, a, b):
        order = list(range(self.dim()))
        order[a], order[b] = order[b], order[a]
        shape, strides = [self.shape[d] for d in order], _strides(self.shape)
        values = self.values
        return Tensor([values[sum(x * strides[d] for x, d in zip(at, order))]
                       for at in itertools.product(*map(range, shape))], shape, self.dtype)

    @property
    def T(self):
        assert self.dim() == 2
        return self.transpose(0, 1)

    def repeat_interleave(self, count, dim):
        chosen = [at for at in range(self.shape[dim]) for _ in range(count)]
        return self[(slice(None),) * dim + (Tensor(chosen, [len(chosen)], int64),)]

    # Arithmetic

    def double(self):
        return Tensor(self.values, self.shape, float64)

    def _each(self, other, function, dtype=None):
        if not isinstance(other, Tensor):
            return Tensor([function(x, other) for x in self.values], self.shape,
                          dtype or self.dtype)
        assert self.dtype is other.dtype and self.dim() == other.dim()
        shape = [max(a, b) for a, b in zip(self.shape, other.shape)]
        assert all({a, b} <= {1, n} for a, b, n in zip(self.shape, other.shape, shape))
        mine, theirs = self.values, other.values

        def take(values, sizes, at):
            return values[sum((0 if n == 1 else x) * s
                              for x, n, s in zip(at, sizes, _strides(sizes)))]
        return Tensor([function(take(mine, self.shape, at), take(theirs, other.shape, at))
                       for at in itertools.product(*map(range, shape))], shape,
                      dtype or self.dtype)

    def __add__(self, other):
        return self._each(other, lambda x, y: x + y)

    def __sub__(self, other):
        return self._each(other, lambda x, y: x - y)

    def __mul__(self, other):
        return self._each(other, lambda x, y: x * y)

    def __rmul__(self, other):
        return self * other

    def __truediv__(self, other):
        return self._each(other, lambda x, y: x / y)

    def __gt__(self, other):
        return self._each(other, lambda x, y: x > y, bool_)

    def __matmul__(self, other):
        assert self.dtype is other.dtype and self.dim() == other.dim() == 2
        (n, depth), (same, m) = self.shape, other.shape
        assert depth == same, (self.shape, other.shape)
        a, b = self.values, other.values
        columns = [b[j::m] for j in range(m)]
        return Tensor([sum(map(lambda x, y: x * y, a[i * depth:(i + 1) * depth], column))
                       for i in range(n) for column in columns], (n, m), self.dtype)

    def abs(self):
        return Tensor(list(map(abs, self.values)), self.shape, self.dtype)

    def max(self):
        values = self.values
        return next((x for x in values if x != x), None) or max(values)

    def sum(self, dim):
        assert dim in (-1, self.dim() - 1)
        values, size = self.values, self.shape[-1]
        return Tensor([sum(values[at:at + size]) for at in range(0, len(values), size)],
                      self.shape[:-1], self.dtype)

    def softmax(self, dim):
        assert dim == -1 and self.dim() == 2
        rows, size = [], self.shape[1]
        for at in range(0, len(self.values), size):
            row = self.values[at:at + size]
            most = max(row)
            weights = [math.exp(x - most) for x in row]
            rows += [x / sum(weights) for x in weights]
        return Tensor(rows, self.shape, self.dtype)

    def masked_fill(self, mask, value):
        assert mask.dtype is bool_ and mask.shape == self.shape
        return Tensor([value if hidden else x for x, hidden in zip(self.values, mask.values)],
                      self.shape, self.dtype)

    # In place, and gradients

    def fill_(self, value):
        self.values = [value] * len(self.kept)
        return self

    def copy_(self, other):
        self[(slice(None),) * self.dim()] = other
        return self

    def detach(self):
        return Tensor(self.values, self.shape, self.dtype)

    def requires_grad_(self):
        self.requires_grad = True
        return self


def _make(shape, device, dtype, value):
    assert device == "cuda"
    shape = shape[0] if shape and isinstance(shape[0], (tuple, list)) else shape
    return Tensor([value() for _ in range(math.prod(shape))], shape, dtype or float32)


def randn(*shape, device, dtype=None):
    return _make(shape, device, dtype, lambda: _generator.gauss(0, 1))


def zeros(*shape, device, dtype=None):
    return _make(shape, device, dtype, lambda: 0)


def empty(*shape, device, dtype=None):
    return _make(shape, device, dtype, lambda: 0)


def empty_like(tensor):
    return Tensor([0] * len(tensor.kept), tensor.shape, tensor.dtype)


def full(shape, value, *, device, dtype):
    return _make(shape, device, dtype, lambda: value)


def full_like(tensor, value):
    return Tensor([value] * len(tensor.kept), tensor.shape, tensor.dtype)


def randint(high, shape, *, device):
    assert device == "cuda"
    return Tensor([_generator.randrange(high) for _ in range(math.prod(shape))], shape, int64)


def arange(*bounds, device):
    assert device == "cuda"
    values = list(range(*bounds))
    return Tensor(values, [len(values)], int64)


def cat(tensors, dim):
    sizes = [t.shape[dim] for t in tensors]
    shape = list(tensors[0].shape)
    assert all(t.dtype is tensors[0].dtype and t.shape[:dim] == tensors[0].shape[:dim] and
               t.shape[dim + 1:] == tensors[0].shape[dim + 1:] for t in tensors)
    shape[dim] = sum(sizes)
    inner = math.prod(shape[dim + 1:])
    found, all_values = [], [t.values for t in tensors]
    for outer in range(math.prod(shape[:dim])):
        for values, size in zip(all_values, sizes):
            found += values[outer * size * inner:(outer + 1) * size * inner]
    return Tensor(found, shape, tensors[0].dtype)


def manual_seed(seed):
    _generator.seed(seed)


@contextlib.contextmanager
def no_grad():
    yield


def _gradients(out, leaves, upstream, retain_graph):
    assert retain_graph and out.shape == upstream.shape
    assert all(leaf.requires_grad for leaf in leaves)
    return [empty_like(leaf) for leaf in leaves]


autograd = types.SimpleNamespace(grad=_gradients)
