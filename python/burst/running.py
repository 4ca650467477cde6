# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What runs programs: devices, worlds of processes, runs.

Also a module of burst_runtime: what is imported here, both packages have. There
_c has loaded libburst_runtime.
"""

from __future__ import annotations

import ctypes as c
import functools
import os
import threading
import weakref
from collections.abc import Sequence
from concurrent import futures
from typing import Any, Protocol

from . import _c, errors

# Types of elements by MLIR's names (burst/program.h).
TYPES = {"f64": 1, "f32": 2, "bf16": 3, "f16": 4, "i64": 5, "i32": 6, "i16": 7, "i8": 8, "i1": 9}


class Program:
    """Of `burst_program`, to which it has a reference."""

    def __init__(self, handle: _c.Handle) -> None:
        self.handle = handle
        library = _c.library
        weakref.finalize(self, library.burst_program_release, handle)
        self.target: str = library.burst_program_target(handle).decode()
        self.num_ranks: int = library.burst_program_num_ranks(handle)


#===----------------------------------------------------------------------===#
# Devices
#===----------------------------------------------------------------------===#


class Device:
    """The threads that compute, of `burst_device`."""

    def __init__(self, threads: int) -> None:
        self.handle = _c.Handle()
        _c.check(_c.library.burst_device_create_cpu(_c.DeviceConfig(threads=threads),
                                                    self.handle))
        self.threads: int = _c.library.burst_device_threads(self.handle)
        self.destroy = weakref.finalize(self, _c.library.burst_device_destroy, self.handle)


_devices: dict[int, Device] = {}
_devices_lock = threading.Lock()


def device(threads: int) -> Device:
    """The one device with so many threads; 0: a thread per CPU."""
    found = _devices.get(threads)
    if found is None:
        with _devices_lock:
            found = _devices.get(threads)
            if found is None:
                found = _devices[threads] = Device(threads)
    return found


def _after_fork() -> None:
    """A child has none of the threads of its parent: it makes devices of its own,
    and leaves those of the parent as they are."""
    global _generation, _helper
    for device in _devices.values():
        device.destroy.detach()
    _lost.extend([*_devices.values(), _helper])
    _helper = None
    _devices.clear()
    _generation += 1


_lost: list[Any] = []
_helper: futures.ThreadPoolExecutor | None = None
_generation = 0
os.register_at_fork(after_in_child=_after_fork)


def generation() -> int:
    """Another number in a forked child, which has none of the devices of before."""
    return _generation


#===----------------------------------------------------------------------===#
# Worlds
#===----------------------------------------------------------------------===#


class Rank(Protocol):
    """One of the processes that run a program together."""

    rank: int
    num_ranks: int
    transport: _c.Handle


class World:
    """This process as one of the ranks of a job, of `burst_world`, and its transport
    to the others over TCP. All ranks make it at the same time.

    Without `num_ranks` all is as the launcher says, or BURST_RANK, BURST_NUM_RANKS
    and BURST_ADDRESS. `address` is where rank 0 listens, as host:port. `token` is
    the secret of the job, in place of BURST_TOKEN.
    """

    def __init__(self, num_ranks: int = 0, rank: int = 0, address: str | None = None,
                 token: str | None = None, timeout_seconds: float = 0) -> None:
        self.pid = os.getpid()
        self._world = _c.Handle()
        self.transport = _c.Handle()
        config = _c.WorldConfig(num_ranks=num_ranks, rank=rank, timeout_seconds=timeout_seconds,
                                address=None if address is None else address.encode())
        with _environment:
            before = os.environ.get("BURST_TOKEN")
            try:
                if token is not None:
                    os.environ["BURST_TOKEN"] = token
                _c.check(_c.library.burst_world_create(config, self._world))
            finally:
                if before is not None:
                    os.environ["BURST_TOKEN"] = before
                elif token is not None:
                    del os.environ["BURST_TOKEN"]
        try:
            _c.check(_c.library.burst_transport_create_tcp(_c.TcpConfig(world=self._world),
                                                           self.transport))
        except BaseException:
            _c.library.burst_world_destroy(self._world)
            raise
        self.rank: int = _c.library.burst_world_rank(self._world)
        self.num_ranks: int = _c.library.burst_world_num_ranks(self._world)
        self.close = weakref.finalize(self, _destroy, self.transport, self._world, self.pid)


def _destroy(transport: _c.Handle, world: _c.Handle, pid: int) -> None:
    # The threads of a world are of the process that made it.
    if os.getpid() == pid:
        _c.library.burst_transport_destroy(transport)
        _c.library.burst_world_destroy(world)


# BURST_TOKEN is the process's: one world at a time is made.
_environment = threading.Lock()


class MpiWorld:
    """This process as one of the ranks of an MPI communicator, and its transport to the
    others over MPI. All ranks make it, and close it, at the same time.

    `communicator` is one of mpi4py, or the number that MPI_Comm_c2f gives of one; None
    for all processes that the launcher (mpirun, srun) has started: then MPI is
    initialized where it is not, and finalized when Python ends.
    """

    def __init__(self, communicator: Any = None) -> None:
        self.pid = os.getpid()
        library = _mpi()
        self._table = _c.TransportTable()
        failure = _c.TransportFailure()
        if communicator is None:
            failed = library.burst_mpi_open(self._table, failure)
        else:
            failed = library.burst_mpi_transport_of(_communicator_number(communicator),
                                                    self._table, failure)
        _check_mpi(failed, failure)
        self.transport = _c.Handle()
        _c.check(_c.library.burst_transport_create(self._table, self.transport))
        self.rank: int = self._table.rank
        self.num_ranks: int = self._table.num_ranks
        global _num_mpi_worlds
        self.name = f"mpi_{_num_mpi_worlds}" # the same on all ranks that make the same ones
        _num_mpi_worlds += 1
        self.close = weakref.finalize(self, _destroy_mpi, self.transport, self.pid)

    def __repr__(self) -> str:
        return f"MpiWorld(rank {self.rank} of {self.num_ranks})"

    def gather(self, mine: bytes, deadline_seconds: float = 0) -> list[bytes]:
        """The bytes of each rank, equally many; all ranks call it, between runs."""
        parts: list[list[bytes]] = [[] for _ in range(self.num_ranks)]
        for begin in range(0, max(len(mine), 1), _GATHERED):
            piece = mine[begin:begin + _GATHERED]
            got = c.create_string_buffer(max(len(piece) * self.num_ranks, 1))
            failure = _c.TransportFailure()
            _check_mpi(_mpi().burst_mpi_gather(self._table, piece, len(piece), got,
                                               deadline_seconds or 600.0, failure), failure)
            for rank, part in enumerate(parts):
                part.append(got.raw[rank * len(piece):(rank + 1) * len(piece)])
        return [b"".join(part) for part in parts]


_GATHERED = 1 << 28 # bytes of a rank, at a time
_num_mpi_worlds = 0


@functools.lru_cache(maxsize=None)
def _mpi() -> c.CDLL:
    library = _c.load_mpi(_c.path)
    # What is made first ends last: behind all transports.
    weakref.finalize(library, _close_mpi, library.burst_mpi_close, os.getpid())
    return library


def _close_mpi(close: Any, pid: int) -> None:
    if os.getpid() == pid:
        close()


def _destroy_mpi(transport: _c.Handle, pid: int) -> None:
    if os.getpid() == pid:
        _c.library.burst_transport_destroy(transport)


def _communicator_number(communicator: Any) -> int:
    if isinstance(communicator, int):
        return communicator
    if not hasattr(communicator, "py2f"):
        raise TypeError("communicator: one of mpi4py, or the number that MPI_Comm_c2f gives, is "
                        f"wanted, got {type(communicator).__name__}")
    return communicator.py2f()


def _check_mpi(failed: int, failure: _c.TransportFailure) -> None:
    if failed:
        raise errors.make(failure.message.decode(errors="replace"), failure.code, "")


#===----------------------------------------------------------------------===#
# Runs
#===----------------------------------------------------------------------===#


def describe(tensor: _c.Tensor, data: int, kind: str, sizes: Sequence[int],
             strides: Sequence[int]) -> None:
    """Fills in a `burst_tensor`."""
    tensor.data = data
    tensor.type = TYPES[kind]
    tensor.rank = len(sizes)
    tensor.sizes[:len(sizes)] = list(sizes)
    tensor.strides[:len(sizes)] = list(strides)


def run(program: Program, config: _c.RunConfig, values: Any,
        counters: _c.Counters | None = None) -> None:
    """Runs one rank on an array of `burst_tensor`, without the GIL."""
    run_at(program.handle.value, config, c.addressof(values), len(values),
           None if counters is None else c.addressof(counters))


def run_at(program: int | None, config: _c.RunConfig, values: int, count: int,
           counters: int | None = None) -> None:
    """As `run`, of a handle and the address of the array: the shortest call."""
    if config.transport and threading.current_thread() is threading.main_thread():
        error = _run_for_main(program, config, values, count, counters)
    else:
        error = _run_at(program, c.addressof(config), values, count, counters)
    if error:
        _c.check(error)


def _run_for_main(program: int | None, config: _c.RunConfig, values: int, count: int,
                  counters: int | None) -> Any:
    """A run with other ranks, on another thread: signals such as an interrupt of the
    keyboard reach Python on the main one, also while it waits for a rank."""
    global _helper
    if _helper is None:
        _helper = futures.ThreadPoolExecutor(1, "burst")
    run = _helper.submit(_run_at, program, c.addressof(config), values, count, counters)
    try:
        # The kernel may give a signal to another thread, which wakes no one: look now
        # and then.
        while True:
            try:
                return run.result(timeout=1.0)
            except futures.TimeoutError:
                pass
    except BaseException as error:
        # The run ends here and on the other ranks, and with it their use of memory.
        reason = type(error).__name__
        _c.library.burst_transport_stop(config.transport, reason.encode())
        _c.library.burst_error_destroy(run.result())
        raise


_run_at = _c.library["burst_run"] # another one than by attribute, with types of its own
_run_at.restype = c.c_void_p
_run_at.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p, c.c_int64, c.c_void_p]


def run_all(program: Program, device: Device, values: Any, deadline_seconds: float = 0,
            transport: _c.Handle | None = None) -> list[_c.Counters]:
    """Runs all ranks on global tensors; gives what each did. They are threads, or
    with a transport processes of which each makes this call, and rank 0 gets the
    results and what the others did."""
    counters = (_c.Counters * program.num_ranks)()
    for counter in counters:
        counter.size = c.sizeof(_c.Counters)
    config = _c.RunAllConfig(device=device.handle, deadline_seconds=deadline_seconds,
                             transport=transport)
    _c.check(_c.library.burst_run_all(program.handle, config, values, len(values), counters))
    return list(counters)
