# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""As much of the driver of CUDA as checking takes: modules, memory, launches, events."""

import ctypes as c

import libraries

MULTIPROCESSORS, MAJOR, MINOR, MAX_SHARED = 16, 75, 76, 97


class LaunchConfig(c.Structure):
    _fields_ = [("grid", c.c_uint * 3), ("block", c.c_uint * 3), ("shared_bytes", c.c_uint),
                ("stream", c.c_void_p), ("attributes", c.c_void_p),
                ("num_attributes", c.c_uint)]


class TensorMap(c.Structure):
    """Must lie at a multiple of 64, see Driver.tensor_map."""
    _fields_ = [("opaque", c.c_uint64 * 16)]


class Failure(Exception):
    pass


class Driver:
    """One GPU by its primary context, which is the current one of the thread."""

    def __init__(self, ordinal=0):
        name = libraries.find("cuda")
        if name is None:
            raise Failure("no driver of CUDA: libcuda.so.1")
        self.library = c.CDLL(name)
        self.call("cuInit", 0)
        self.device = self.make(c.c_int, "cuDeviceGet", ordinal)
        context = c.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", c.byref(context), self.device)
        self.context = context
        self.enter()

    def enter(self):
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result:
            text = c.c_char_p()
            self.library.cuGetErrorName(result, c.byref(text))
            raise Failure(f"{name}: {(text.value or b'error').decode()} ({result})")

    def make(self, kind, name, *arguments):
        """What a function writes to its first argument."""
        made = kind()
        self.call(name, c.byref(made), *arguments)
        return made.value

    def attribute(self, number):
        return self.make(c.c_int, "cuDeviceGetAttribute", number, self.device)

    @property
    def capability(self):
        return 10 * self.attribute(MAJOR) + self.attribute(MINOR)

    def load(self, image):
        """A module: the bytes of PTX or of machine code."""
        return c.c_void_p(self.make(c.c_void_p, "cuModuleLoadData", c.c_char_p(image)))

    def function(self, module, name):
        return c.c_void_p(
            self.make(c.c_void_p, "cuModuleGetFunction", module, name.encode()))

    def allow_shared(self, function, bytes):
        self.call("cuFuncSetAttribute", function, 8, bytes)

    def allocate(self, bytes):
        return self.make(c.c_uint64, "cuMemAlloc_v2", c.c_size_t(max(bytes, 1)))

    def free(self, memory):
        self.call("cuMemFree_v2", c.c_uint64(memory))

    def upload(self, content):
        memory = self.allocate(len(content))
        self.write(memory, content)
        return memory

    def write(self, memory, content):
        if content:
            self.call("cuMemcpyHtoDAsync_v2", c.c_uint64(memory), bytes(content),
                      c.c_size_t(len(content)), None)
            self.synchronize()

    def read(self, memory, count):
        content = c.create_string_buffer(count)
        self.call("cuMemcpyDtoHAsync_v2", content, c.c_uint64(memory), c.c_size_t(count), None)
        self.synchronize()
        return content.raw

    def clear(self, memory, bytes, value=0):
        self.call("cuMemsetD8Async", c.c_uint64(memory), c.c_ubyte(value), c.c_size_t(bytes), None)

    def launch(self, function, grid, block, arguments, shared_bytes=0):
        """Arguments are values of ctypes, which the call copies."""
        config = LaunchConfig((c.c_uint * 3)(grid, 1, 1), (c.c_uint * 3)(block, 1, 1),
                              shared_bytes, None, None, 0)
        pointers = (c.c_void_p * len(arguments))(*(c.addressof(a) for a in arguments))
        self.call("cuLaunchKernelEx", c.byref(config), function, pointers, None)

    def synchronize(self):
        self.call("cuStreamSynchronize", None)

    def time(self, body):
        """Milliseconds of what a body asks for."""
        begin, end = (c.c_void_p(self.make(c.c_void_p, "cuEventCreate", 0)) for _ in range(2))
        self.call("cuEventRecord", begin, None)
        body()
        self.call("cuEventRecord", end, None)
        self.call("cuEventSynchronize", end)
        passed = self.make(c.c_float, "cuEventElapsedTime", begin, end)
        for event in (begin, end):
            self.call("cuEventDestroy_v2", event)
        return passed

    def tensor_map(self, memory, sizes, strides, box, swizzle):
        """Of a tensor of 16-bit floats, the innermost dimension first; strides in bytes, of all
        dimensions but that one; `swizzle` in bytes. What lies outside reads as 0."""
        room = c.create_string_buffer(c.sizeof(TensorMap) + 64)
        at = -c.addressof(room) % 64
        made = TensorMap.from_buffer(room, at)
        rank = len(sizes)
        self.call("cuTensorMapEncodeTiled", c.byref(made), 9, rank, c.c_void_p(memory),
                  (c.c_uint64 * rank)(*sizes), (c.c_uint64 * max(1, rank - 1))(*strides),
                  (c.c_uint32 * rank)(*box), (c.c_uint32 * rank)(*([1] * rank)), 0,
                  {0: 0, 32: 1, 64: 2, 128: 3}[swizzle], 2, 0)
        return made
