# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst/burst.h for Python: as much of it as measuring takes."""

import ctypes as c

TYPES = {"float64": 1, "float32": 2, "bfloat16": 3, "float16": 4, "int64": 5, "int32": 6}


class Parameter(c.Structure):
    _fields_ = [("name", c.c_char_p), ("kind", c.c_int32), ("type", c.c_int32),
                ("rank", c.c_int32), ("is_result", c.c_int32), ("sizes", c.POINTER(c.c_int64)),
                ("shard_dim", c.c_int32), ("num_segments", c.c_int32), ("extent", c.c_int64),
                ("extent_parameter", c.c_int32), ("is_partial", c.c_int32),
                ("is_host", c.c_int32)]


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("type", c.c_int32), ("rank", c.c_int32),
                ("sizes", c.c_int64 * 8), ("strides", c.c_int64 * 8)]


class RunConfig(c.Structure):
    _fields_ = [("size", c.c_size_t), ("rank", c.c_int64), ("device", c.c_void_p),
                ("stream", c.c_void_p), ("transport", c.c_void_p),
                ("deadline_seconds", c.c_double), ("trace", c.c_void_p), ("checked", c.c_int64)]


class LocalConfig(c.Structure):
    _fields_ = [("size", c.c_size_t), ("num_ranks", c.c_int64), ("latency_seconds", c.c_double),
                ("bytes_per_second", c.c_double), ("checked", c.c_int64)]


class CudaConfig(c.Structure):
    _fields_ = [("size", c.c_size_t), ("ordinal", c.c_int64), ("allocate", c.c_void_p),
                ("release", c.c_void_p), ("context", c.c_void_p)]


class WorldConfig(c.Structure):
    _fields_ = [("size", c.c_size_t), ("num_ranks", c.c_int64), ("rank", c.c_int64),
                ("address", c.c_char_p), ("timeout_seconds", c.c_double),
                ("heartbeat_seconds", c.c_double), ("silence_seconds", c.c_double)]


class TcpConfig(c.Structure):
    _fields_ = [("size", c.c_size_t), ("world", c.c_void_p)]


class NcclConfig(c.Structure):
    _fields_ = [("size", c.c_size_t), ("device", c.c_void_p), ("world", c.c_void_p),
                ("communicator", c.c_void_p), ("timeout_seconds", c.c_double)]


class Failure(Exception):
    pass


class Runtime:
    """The library and one device: a GPU by its number, or this processor."""

    def __init__(self, path, gpu=0):
        self.library = c.CDLL(path)
        self.library.burst_error_message.restype = c.c_char_p
        self.library.burst_program_parameter.restype = c.POINTER(Parameter)
        for name in ("num_parameters", "num_ranks"):
            getattr(self.library, "burst_program_" + name).restype = c.c_int64
        if gpu is None:
            self.device = self.make("burst_device_create_cpu", None)
        else:
            config = CudaConfig(c.sizeof(CudaConfig), gpu, None, None, None)
            self.device = self.make("burst_device_create_cuda", c.byref(config))

    def call(self, name, *arguments):
        function = getattr(self.library, name)
        function.restype = c.c_void_p
        error = function(*arguments)
        if error:
            error = c.c_void_p(error)
            message = self.library.burst_error_message(error).decode()
            self.library.burst_error_destroy(error)
            raise Failure(message)

    def make(self, name, *arguments):
        """What a function writes to its last argument."""
        made = c.c_void_p()
        self.call(name, *arguments, c.byref(made))
        return made

    def destroy(self, what, handle):
        getattr(self.library, f"burst_{what}_destroy")(handle)

    def stream(self, cuda_stream):
        return self.make("burst_stream_create_cuda", self.device, c.c_void_p(cuda_stream))

    def synchronize(self, stream):
        self.call("burst_stream_synchronize", stream)

    def transports(self, count):
        config = LocalConfig(c.sizeof(LocalConfig), count, 0, 0, 0)
        handles = (c.c_void_p * count)()
        self.call("burst_transport_create_local", c.byref(config), handles)
        return [c.c_void_p(handle) for handle in handles]

    def world(self, rank, num_ranks, address):
        """Of processes, which find each other at an address."""
        config = WorldConfig(c.sizeof(WorldConfig), num_ranks, rank, address.encode(), 60, 0.2, 2)
        return self.make("burst_world_create", c.byref(config))

    def tcp(self, world):
        return self.make("burst_transport_create_tcp",
                         c.byref(TcpConfig(c.sizeof(TcpConfig), world)))

    def nccl(self, world):
        config = NcclConfig(c.sizeof(NcclConfig), self.device, world, None, 60)
        return self.make("burst_transport_create_nccl", c.byref(config))

    def load(self, path):
        return Program(self, self.make("burst_program_load", path.encode()))


class Program:
    def __init__(self, runtime, handle):
        self.runtime, self.handle = runtime, handle
        library = runtime.library
        self.num_ranks = library.burst_program_num_ranks(handle)
        self.parameters = [library.burst_program_parameter(handle, c.c_int64(i)).contents
                           for i in range(library.burst_program_num_parameters(handle))]

    def bind(self, tensors, extents):
        """The values of one rank: torch tensors by name; sequence lengths, by the number of
        the parameter that carries them, go where the program asks for them."""
        values = (Tensor * len(self.parameters))()
        kept = [values]
        for index, (value, parameter) in enumerate(zip(values, self.parameters)):
            if parameter.kind == 2:
                number = c.c_int64(extents[index])
                kept.append(number)
                value.data, value.type = c.addressof(number), parameter.type
                continue
            tensor = tensors[parameter.name.decode()]
            value.data = tensor.data_ptr()
            value.type = TYPES[str(tensor.dtype).removeprefix("torch.")]
            value.rank = tensor.dim()
            for d in range(tensor.dim()):
                value.sizes[d], value.strides[d] = tensor.size(d), tensor.stride(d)
        return kept

    def extents(self, shapes):
        """Of each parameter that is one, from the shapes of global tensors by name."""
        found = {}
        for parameter in self.parameters:
            if parameter.extent_parameter >= 0:
                shape = shapes[parameter.name.decode()]
                found[parameter.extent_parameter] = shape[parameter.shard_dim]
        return found

    def run(self, bound, stream=None, rank=0, transport=None, deadline=60.0):
        """Asks for a run on a stream; `bound` must live until that has been waited for. Without
        a stream the run is over when this returns."""
        device = None if stream else self.runtime.device
        config = RunConfig(c.sizeof(RunConfig), rank, device, stream, transport, deadline, None, 0)
        self.runtime.call("burst_run", self.handle, c.byref(config), bound[0],
                          c.c_int64(len(self.parameters)), None)
