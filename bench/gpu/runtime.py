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


class Failure(Exception):
    pass


class Runtime:
    """The library, one CUDA device, and a caller's stream for each rank."""

    def __init__(self, path):
        self.library = c.CDLL(path)
        self.library.burst_error_message.restype = c.c_char_p
        self.library.burst_program_parameter.restype = c.POINTER(Parameter)
        for name in ("num_parameters", "num_ranks"):
            getattr(self.library, "burst_program_" + name).restype = c.c_int64
        self.device = self.make("burst_device_create_cuda", None)

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

    def stream(self, cuda_stream):
        return self.make("burst_stream_create_cuda", self.device, c.c_void_p(cuda_stream))

    def synchronize(self, stream):
        self.call("burst_stream_synchronize", stream)

    def transports(self, count):
        config = LocalConfig(c.sizeof(LocalConfig), count, 0, 0, 0)
        handles = (c.c_void_p * count)()
        self.call("burst_transport_create_local", c.byref(config), handles)
        return [c.c_void_p(handle) for handle in handles]

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

    def run(self, bound, stream, rank=0, transport=None, deadline=60.0):
        """Asks for a run on a stream; `bound` must live until that has been waited for."""
        config = RunConfig(c.sizeof(RunConfig), rank, None, stream, transport, deadline, None, 0)
        self.runtime.call("burst_run", self.handle, c.byref(config), bound[0],
                          c.c_int64(len(self.parameters)), None)
