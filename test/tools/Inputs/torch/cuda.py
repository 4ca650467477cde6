# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.cuda over the driver."""

import ctypes as c
import types

import driver

_made = []


def gpu():
    if not _made:
        _made.append(driver.Driver())
    return _made[0]


def init():
    gpu()


def synchronize():
    gpu().synchronize()


class Stream:
    def __init__(self):
        self.cuda_stream = gpu().make(c.c_void_p, "cuStreamCreate", 1)


def current_stream():
    return types.SimpleNamespace(cuda_stream=0)


class Event:
    def __init__(self, *, enable_timing):
        assert enable_timing
        self.handle = c.c_void_p(gpu().make(c.c_void_p, "cuEventCreate", 0))

    def record(self):
        gpu().call("cuEventRecord", self.handle, None)

    def elapsed_time(self, end):
        return gpu().make(c.c_float, "cuEventElapsedTime", self.handle, end.handle)


def clock_rate():
    return 1000


def power_draw():
    return 100000


def get_device_properties(ordinal):
    return types.SimpleNamespace(major=gpu().attribute(driver.MAJOR),
                                 minor=gpu().attribute(driver.MINOR),
                                 multi_processor_count=gpu().attribute(driver.MULTIPROCESSORS))


nccl = types.SimpleNamespace(version=lambda: (0, 0))
