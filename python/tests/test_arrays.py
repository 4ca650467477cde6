# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of numpy, and arrays that only speak DLPack, on the CPU and on a GPU."""

import os
import pathlib
import subprocess
import sys

import numpy
import pytest
import torch

import burst
import reference
from burst import _c, programs

IDS = [0] * 9 + [1] * 8


class Speaker:
    """An array of another library: it has DLPack's functions and nothing else."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **arguments):
        return self.tensor.__dlpack__(**arguments)


class Old(Speaker):
    """Of before DLPack had versions."""

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__()


def arrays(kind, dtype=torch.float32):
    tensors = reference.draw(2, 4, 2, 17, 17, 8, dtype=dtype)
    return tensors, [x.numpy() if kind is numpy.asarray else kind(x) for x in tensors]


def documents(ids):
    return lambda b, h, i, j: (i >= j) & (ids[i] == ids[j])


@pytest.mark.parametrize("kind", [numpy.asarray, Speaker, Old])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_attention(kind, layout):
    tensors, given = arrays(kind)
    if layout == "bshd":
        given = [kind(x.transpose(1, 2)) for x in tensors]
    ids = burst.table(numpy.array(IDS))
    slopes = burst.table(numpy.array([0.5, 0.25, 0.1, 0.0], numpy.float32))
    o, lse = burst.attention(
        *given, mask=documents(ids), score=lambda s, b, h, i, j: s - slopes[h] * (i - j),
        return_lse=True, layout=layout)
    wanted = reference.attention(*tensors, documents(torch.tensor(IDS)), lambda s, b, h, i, j:
                                 s - torch.tensor([0.5, 0.25, 0.1, 0.0])[h] * (i - j))
    assert isinstance(o, numpy.ndarray)
    o = torch.tensor(o)
    reference.assert_close(o.transpose(1, 2) if layout == "bshd" else o, wanted[0])
    reference.assert_close(torch.tensor(lse), wanted[1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_types_and_strides(dtype):
    tensors, given = arrays(numpy.asarray, dtype)
    # numpy counts backwards, too.
    o = burst.attention(given[0][..., ::-1], given[1][..., ::-1], given[2][:, :, ::-1])
    wanted, _ = reference.attention(tensors[0], tensors[1], tensors[2].flip(2))
    assert o.dtype == given[0].dtype
    reference.assert_close(torch.tensor(o), wanted)


def test_bfloat16_and_out():
    tensors = reference.draw(1, 2, 2, 9, 9, 8, dtype=torch.bfloat16)
    out = torch.empty_like(tensors[0]), torch.empty(1, 2, 9)
    found = burst.attention(*map(Speaker, tensors), out=tuple(map(Speaker, out)))
    assert found.tensor is out[0]
    for x, y in zip(out, burst.attention(*tensors, return_lse=True)):
        assert torch.equal(x, y)


def test_sinks():
    tensors, given = arrays(numpy.asarray)
    sinks = torch.tensor([0.5, -1.0, 0.0, 2.0])
    for x, y in zip(burst.attention(*given, sinks=sinks.numpy(), return_lse=True),
                    burst.attention(*tensors, sinks=sinks, return_lse=True)):
        reference.assert_close(torch.tensor(x), y)


def test_another_library():
    """Results are of the library of q, where it has one."""
    class Space:
        @staticmethod
        def asarray(x):
            return "of the library", x

    class Own(Speaker):
        def __array_namespace__(self):
            return Space

    _, given = arrays(Own)
    word, o = burst.attention(*given)
    assert word == "of the library" and o.shape == (2, 4, 17, 8)


def test_refusals():
    (q, k, v), (a, b, c) = arrays(numpy.asarray)
    fixed = numpy.empty_like(a)
    fixed.flags.writeable = False
    lse = numpy.empty((2, 4, 17), numpy.float32)
    for arguments, options, message in (
            ((a, b, 3), {}, "v: a torch.Tensor, an array of numpy or one with __dlpack__"),
            ((a, b[:, :, 1:], c), {}, "v: has 17 positions and 2 heads, k has 16 and 2"),
            ((a, b.astype("float64"), c), {}, "k: is of float64, q of float32"),
            ((a.astype("int32"), b, c), {}, "q: of float32, float64, bfloat16 or float16, got int"),
            ((a, b, c), dict(out=(fixed, lse)), "out: o is read-only"),
            ((a, b, c), dict(out=(a[:1], lse)), r"out: o must be \(2, 4, 17, 8\)"),
            ((a, b, c), dict(stream=1), "stream: is of a GPU"),
            ((a, b, c), dict(mask=lambda b, h, i, j: numpy.arange(17)[i] > j), "burst.table"),
            ((a, b, c), dict(strategy="best"), "strategy: 'best' is not known"),
            ((q, k, v), dict(stream=1), "stream: of torch tensors it is the current one"),
            ((q, b, v), {}, "k: a torch.Tensor is wanted, as q is, got ndarray"),
            ((7, k, v), {}, "got int")):
        with pytest.raises((TypeError, ValueError), match=message):
            burst.attention(*arguments, **options)


GPU = """
import ctypes as c, sys
import numpy
import burst
cuda = c.CDLL(sys.argv[1])
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, (name, code)
call("cuInit", 0)
context = c.c_void_p()
call("cuDevicePrimaryCtxRetain", c.byref(context), 0)
call("cuCtxSetCurrent", context)
stream = c.c_void_p()
call("cuStreamCreate", c.byref(stream), 1)
streams = []

class Device(c.Structure):
    _fields_ = [("kind", c.c_int32), ("ordinal", c.c_int32)]
class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", Device), ("rank", c.c_int32),
                ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16),
                ("shape", c.c_void_p), ("strides", c.c_void_p), ("byte_offset", c.c_uint64)]
class Managed(c.Structure):
    _fields_ = [("tensor", Tensor), ("context", c.c_void_p), ("deleter", c.c_void_p)]
capsule = c.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]

class OnGpu:
    # An array in the memory of GPU 0.
    def __init__(self, array):
        self.array = array
        self.address = c.c_uint64()
        call("cuMemAlloc_v2", c.byref(self.address), c.c_size_t(array.nbytes))
        call("cuMemcpyHtoDAsync_v2", self.address, c.c_void_p(array.ctypes.data),
             c.c_size_t(array.nbytes), stream)
        self.shape = (c.c_int64 * array.ndim)(*array.shape)
        self.managed = Managed(Tensor(self.address.value, Device(2, 0), array.ndim, 2,
                                      array.itemsize * 8, 1, c.addressof(self.shape)))
    def __dlpack_device__(self):
        return 2, 0
    def __dlpack__(self, stream=None):
        streams.append(stream)
        return capsule(c.addressof(self.managed), b"dltensor", None)
    def read(self):
        call("cuMemcpyDtoHAsync_v2", c.c_void_p(self.array.ctypes.data), self.address,
             c.c_size_t(self.array.nbytes), stream)
        call("cuStreamSynchronize", stream)
        return self.array

random = numpy.random.default_rng(0)
host = [random.standard_normal((1, h, 40, 32)).astype(numpy.float16) for h in (2, 1, 1)]
given = [OnGpu(x) for x in host]
ids = burst.table(numpy.array([0] * 25 + [1] * 15, numpy.int32))
slopes = numpy.array([0.5, 0.25], numpy.float32)
on_gpu = burst.table(OnGpu(slopes)); on_cpu = burst.table(slopes)
def mask(b, h, i, j): return (i >= j) & (ids[i] == ids[j])
def score(table): return lambda s, b, h, i, j: s - table[h] * (i - j)
out = OnGpu(numpy.empty_like(host[0])), OnGpu(numpy.empty((1, 2, 40), numpy.float32))
for wrong, message in ((dict(), "out: is wanted where arrays lie on a GPU"),
                       (dict(out=out, score=score(on_cpu)), "a table: lies in the memory"),
                       (dict(out=(host[0], host[0])), "out: o")):
    try:
        burst.attention(*given, mask=mask, stream=stream.value, **wrong)
        raise AssertionError(wrong)
    except ValueError as error:
        assert message in str(error), error
try:
    burst.attention(given[0], *host[1:], out=out)
    raise AssertionError
except ValueError as error:
    assert "k: lies in the memory of the CPU, and should on GPU 0" in str(error), error
burst.attention(*given, mask=mask, score=score(on_gpu), out=out, stream=stream.value)
wanted = burst.attention(*host, mask=mask, score=score(on_cpu), return_lse=True)
for x, y in zip(out, wanted):
    error = numpy.abs(x.read().astype(numpy.float32) - y).max()
    assert error < 5e-3, error
assert set(streams) == {1, stream.value}, streams
print("right on", burst.__version__)
"""


def test_gpu():
    """DLPack's objects in the memory of an emulated GPU, in the order of a stream."""
    build = pathlib.Path(_c.path).resolve().parent.parent
    emulated = build / "test/standins/libburst-emulated-cuda.so"
    if not emulated.exists(): # of a build without tests
        emulated = build.parent / "dev/test/standins/libburst-emulated-cuda.so"
    assert emulated.exists(), f"no {emulated}; scripts/build dev makes it"
    environment = dict(os.environ, BURST_CUDA_DRIVER_LIBRARY=str(emulated))
    done = subprocess.run([sys.executable, "-c", GPU, str(emulated)], env=environment,
                          capture_output=True, text=True, timeout=300)
    if "BURST_NVRTC_LIBRARY" in done.stderr: # which names where it was looked for
        pytest.skip("this machine lacks NVRTC")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("right on")


def test_masked_arrays_are_refused():
    x = numpy.zeros((1, 1, 8, 8), numpy.float32)
    with pytest.raises(TypeError, match="q: a masked array of numpy, whose mask would be ignored"):
        burst.attention(numpy.ma.masked_array(x, x > 0), x, x)
    table = burst.table(numpy.ma.masked_array(numpy.zeros(8), numpy.ones(8)))
    with pytest.raises(TypeError, match="a table: a masked array"):
        burst.attention(x, x, x, score=lambda s, b, h, i, j: s + table[i])


def test_capsules_that_are_none():
    class Wrong:
        def __dlpack__(self, **_):
            return None

        def __dlpack_device__(self):
            return 1, 0

    x = numpy.zeros((1, 1, 8, 8), numpy.float32)
    with pytest.raises(TypeError, match="k: __dlpack__ of Wrong gives NoneType, and no capsule"):
        burst.attention(x, Wrong(), x)


def test_lengths_that_vary(monkeypatch):
    """The program of a first call is for its lengths, that of others for all."""
    compiled = []
    compile = programs.Program.compile
    monkeypatch.setattr(programs.Program, "compile", staticmethod(
        lambda module, *how: compiled.append(module) or compile(module, *how)))
    tensors = reference.draw(1, 5, 5, 3, 30, 8)
    q, keys, values = [x.numpy() for x in tensors]
    for n in (6, 7, 8, 30, 0):
        o, lse = burst.attention(q, keys[:, :, :n], values[:, :, :n],
                                 mask=lambda b, h, i, j: j <= i + 4, return_lse=True)
        wanted = reference.attention(tensors[0], *[x[:, :, :n] for x in tensors[1:]],
                                     lambda b, h, i, j: j <= i + 4)
        reference.assert_close(torch.from_numpy(o), wanted[0])
        reference.assert_close(torch.from_numpy(lse), wanted[1])
    assert len(compiled) == 2
