# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the arrays of other libraries lie: those of numpy, and by DLPack any other.

Nothing is copied but by `readable`, and neither numpy nor PyTorch is needed.
"""

from __future__ import annotations

import ctypes as c
import dataclasses
from typing import Any

# Of DLPack (dlpack.h, version 1).
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_TYPES = {(0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
          (1, 8): "uint8", (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
          (4, 16): "bfloat16", (6, 8): "bool"}


class _Device(c.Structure):
    _fields_ = [("kind", c.c_int32), ("ordinal", c.c_int32)]


class _Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", _Device), ("rank", c.c_int32),
                ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16),
                ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
                ("byte_offset", c.c_uint64)]


class _Versioned(c.Structure):
    _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("context", c.c_void_p),
                ("deleter", c.c_void_p), ("flags", c.c_uint64), ("tensor", _Tensor)]


_READ_ONLY = 1 # of the flags

_is_capsule = c.pythonapi.PyCapsule_IsValid
_is_capsule.restype, _is_capsule.argtypes = c.c_int, [c.py_object, c.c_char_p]
_pointer_of = c.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = c.c_void_p, [c.py_object, c.c_char_p]


@dataclasses.dataclass(frozen=True)
class View:
    """An array that lies in memory."""

    data: int
    dtype: str # such as float32
    shape: tuple[int, ...]
    strides: tuple[int, ...] # in elements
    gpu: int | None # its ordinal; None: in the memory of the CPU
    is_read_only: bool
    owner: Any # keeps the memory


def is_array(x: object) -> bool:
    return hasattr(x, "__array_interface__") or hasattr(x, "__dlpack__")


def of(x: Any, name: str, stream: int | None = None, *, is_written: bool = False) -> View:
    """Of an argument. `stream` is the CUDA stream that will read it: work that its
    producer has begun is waited for there."""
    if hasattr(x, "__array_interface__"):
        if hasattr(x, "mask") and hasattr(x, "filled"):
            raise TypeError(f"{name}: a masked array of numpy, whose mask would be ignored; give "
                            "x.filled(0), and a function as the mask of the attention")
        return _of_numpy(x)
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"{name}: a torch.Tensor, an array of numpy or one with __dlpack__ is "
                        f"wanted, got {type(x).__name__}")
    if getattr(x, "is_neg", None) is not None and x.is_neg(): # which DLPack does not carry
        if is_written:
            raise ValueError(f"{name}: is a view of the negative of a tensor, which cannot be "
                             "written; give another one")
        x = x.resolve_neg()
    kind, ordinal = x.__dlpack_device__()
    if kind not in (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
        raise ValueError(f"{name}: lies on a device of DLPack's type {kind}; memory of CPUs and "
                         "of CUDA devices can be read")
    arguments: dict[str, Any] = {}
    if kind in (_CUDA, _CUDA_MANAGED):
        arguments["stream"] = stream or 1 # 1: the legacy default stream
    try:
        capsule = x.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError: # it is older than versions
        capsule = x.__dlpack__(**arguments)
    # A capsule that nobody takes the tensor out of destroys both.
    if _is_capsule(capsule, b"dltensor_versioned"):
        versioned = c.cast(_pointer_of(capsule, b"dltensor_versioned"),
                           c.POINTER(_Versioned)).contents
        if versioned.major != 1:
            raise ValueError(f"{name}: is of version {versioned.major} of DLPack; 1 is known")
        tensor, is_read_only = versioned.tensor, bool(versioned.flags & _READ_ONLY)
    elif _is_capsule(capsule, b"dltensor"):
        tensor = c.cast(_pointer_of(capsule, b"dltensor"), c.POINTER(_Tensor)).contents
        is_read_only = False
    else:
        raise TypeError(f"{name}: __dlpack__ of {type(x).__name__} gives "
                        f"{type(capsule).__name__}, and no capsule with a tensor")
    dtype = _TYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise TypeError(f"{name}: has elements of DLPack's type {tensor.code} with {tensor.bits} "
                        f"bits and {tensor.lanes} lanes, which is not known")
    shape = tuple(tensor.shape[:tensor.rank])
    strides = tuple(tensor.strides[:tensor.rank]) if tensor.strides and 0 not in shape else \
        _contiguous(shape)
    return View((tensor.data or 0) + tensor.byte_offset, dtype, shape, strides,
                ordinal if kind in (_CUDA, _CUDA_MANAGED) else None, is_read_only, capsule)


def is_readable(view: View) -> bool:
    """Whether the library can read it where it lies: the elements of the last dimension side
    by side, and none backwards."""
    return min(view.strides, default=0) >= 0 and \
        (not view.shape or view.strides[-1] == 1 or view.shape[-1] == 1)


def readable(view: View, x: Any, name: str, stream: int | None = None) -> View:
    """The view of an array that is read, or that of a copy where it has to be one."""
    if is_readable(view):
        return view
    if hasattr(x, "__array_interface__"):
        return of(x.copy(order="C"), name)
    if hasattr(x, "contiguous"): # a tensor
        return of(x.contiguous(), name, stream)
    raise ValueError(f"{name}: has the strides {view.strides}; where the elements of the last "
                     "dimension lie side by side, and none backwards, it can be read: copy it "
                     "first")


def _of_numpy(x: Any) -> View:
    if not x.dtype.isnative:
        raise TypeError(f"an array of numpy of {x.dtype.str}, whose bytes are in the other order; "
                        "give x.astype(x.dtype.newbyteorder('='))")
    size = x.dtype.itemsize
    if any(stride % size for stride in x.strides):
        raise ValueError(f"an array of numpy whose strides {x.strides} are no multiples of its "
                         f"elements of {size} bytes; copy it first")
    # Where there is nothing numpy knows no strides.
    strides = tuple(stride // size for stride in x.strides) if x.size else _contiguous(x.shape)
    return View(x.__array_interface__["data"][0], x.dtype.name, tuple(x.shape), strides, None,
                not x.flags.writeable, x)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    size = 1
    for extent in reversed(shape):
        strides.append(size)
        size *= max(extent, 1)
    return tuple(reversed(strides))
