# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks of a ring as processes, or as threads of one, and what they computed."""

import ctypes as c
import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import driver
import libraries
import runtime

ELEMENT_BYTES = {1: 8, 2: 4, 3: 2, 4: 2, 5: 8, 6: 4}


class HostMemory:
    """What a processor has in the place of a GPU."""

    def __init__(self):
        self.kept = {}

    def upload(self, content):
        room = c.create_string_buffer(content, len(content) + 64)
        self.kept[c.addressof(room)] = room
        return c.addressof(room)

    def read(self, memory, count):
        return c.string_at(memory, count)


class Array:
    """A dense tensor in memory, with as much of PyTorch's interface as binding takes."""

    def __init__(self, memory, type, shape):
        self.memory, self.shape = memory, shape
        self.dtype = next(name for name, number in runtime.TYPES.items() if number == type)
        self.strides = [1] * len(shape)
        for d in reversed(range(len(shape) - 1)):
            self.strides[d] = self.strides[d + 1] * shape[d + 1]

    def data_ptr(self):
        return self.memory

    def dim(self):
        return len(self.shape)

    def size(self, d):
        return self.shape[d]

    def stride(self, d):
        return self.strides[d]


def numbers(seed, count):
    """So many bf16 in [1, 2), with either sign."""
    drawn = int.from_bytes(random.Random(seed).randbytes(2 * count), "little")
    mask = int.from_bytes(b"\x7f\x80" * count, "little")
    ones = int.from_bytes(b"\x80\x3f" * count, "little")
    return (drawn & mask | ones).to_bytes(2 * count, "little")


class Rank:
    """The shards of one rank: seeded arguments, and results that are 0xff."""

    def __init__(self, memory, program, rank, length):
        self.memory, self.program, self.rank = memory, program, rank
        tensors, shapes = {}, {}
        self.results = []
        for parameter in program.parameters:
            if parameter.kind != 0:
                continue
            name = parameter.name.decode()
            shape = [parameter.sizes[d] for d in range(parameter.rank)]
            shape[parameter.shard_dim] = length // program.num_ranks
            count = 1
            for size in shape:
                count *= size
            bytes = count * ELEMENT_BYTES[parameter.type]
            content = (b"\xff" * bytes if parameter.is_result else
                       numbers(f"{name} {rank}", count))
            tensors[name] = Array(memory.upload(content), parameter.type, shape)
            if parameter.is_result:
                self.results.append((tensors[name].memory, bytes))
            shapes[name] = [length if d == parameter.shard_dim else size
                            for d, size in enumerate(shape)]
        self.bound = program.bind(tensors, program.extents(shapes))

    def run(self, transport, deadline=60.0):
        self.program.run(self.bound, None, self.rank, transport, deadline)

    def digest(self):
        found = hashlib.sha256()
        for memory, bytes in self.results:
            found.update(self.memory.read(memory, bytes))
        return found.hexdigest()[:16]


def memory_of(gpu):
    return HostMemory() if gpu is None else driver.Driver(gpu)


def connect(library, cell, rank, address):
    """The world and the transport of a rank."""
    world = library.world(rank, cell["ranks"], address)
    return world, library.nccl(world) if cell["transport"] == "nccl" else library.tcp(world)


def each_rank(count, body):
    """Runs body(rank) in a thread each, and gives what they return."""
    found, errors = [None] * count, []

    def run(rank):
        try:
            found[rank] = body(rank)
        except Exception as error:  # of a thread: told by the one that started it
            errors.append(error)
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found


def digests_of_threads(directory, cell, address=None):
    """Of all ranks in this process: over the memory of one device, or where there is an address
    over the cell's transport, each with a GPU of its own."""
    path = os.path.join(directory, "libburst_runtime.so")
    gpus = [cell["gpu"] if address is None or cell["gpu"] is None else rank
            for rank in range(cell["ranks"])]
    libraries_of = {gpu: runtime.Runtime(path, gpu) for gpu in set(gpus)}
    local = None if address else libraries_of[cell["gpu"]].transports(cell["ranks"])

    def run(rank):
        library, memory = libraries_of[gpus[rank]], memory_of(gpus[rank])
        program = library.load(os.path.join(directory, cell["program"]))
        mine = Rank(memory, program, rank, cell["length"])
        if local:
            mine.run(local[rank])
        else:
            _, transport = connect(library, cell, rank, address)
            mine.run(transport)
            library.destroy("transport", transport)
        return mine.digest()
    return each_rank(cell["ranks"], run)


def tell(**what):
    print(json.dumps(what), flush=True)


def work(directory, cell, rank, address):
    """A process with one rank: says what it computed; if one is to be killed, the last rank
    ends itself then, and the others say what they are told."""
    libraries.name_for_burst()
    library = runtime.Runtime(os.path.join(directory, "libburst_runtime.so"), cell["gpu"])
    mine = Rank(memory_of(cell["gpu"]),
                library.load(os.path.join(directory, cell["program"])), rank, cell["length"])
    world, transport = connect(library, cell, rank, address)
    mine.run(transport)
    tell(digest=mine.digest())
    if not cell["kills"]:
        begin = time.monotonic()
        for _ in range(5):
            mine.run(transport)
        tell(milliseconds=(time.monotonic() - begin) * 200)
        library.destroy("transport", transport)
        library.destroy("world", world)
        return
    if rank + 1 == cell["ranks"]:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:
        mine.run(transport, 30.0)
        tell(error="")
    except runtime.Failure as failure:
        tell(error=str(failure), seconds=round(time.monotonic() - begin, 2))
    os._exit(0)  # what is left of the GPU's work is the driver's


def environment(rank):
    """NCCL does not let two ranks of a host share a GPU: each is told that it has a host of
    its own, and talks over sockets."""
    return {**os.environ, "NCCL_HOSTID": f"burst-{rank}", "NCCL_SOCKET_IFNAME": "lo",
            "NCCL_IB_DISABLE": "1", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}


def free_address():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def check(script, directory, cell, seconds):
    """A cell: the ranks as processes give the bits that they give as threads, or are told."""
    address, ends = free_address(), time.monotonic() + seconds
    children = [subprocess.Popen(
        [sys.executable, script, directory, "--rank", json.dumps([cell, rank, address])],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(rank))
        for rank in range(cell["ranks"])]
    told, errors = [], []
    try:
        for child in children:
            out, error = child.communicate(timeout=max(1, ends - time.monotonic()))
            lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
            told.append({key: value for line in lines for key, value in line.items()})
            errors.append(error.strip()[-500:])
    except subprocess.TimeoutExpired:
        return {"verdict": "failed", "reason": f"took more than {seconds:.0f} s"}
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
                child.wait()
    missing = [f"rank {rank}: {errors[rank] or 'said nothing'}" for rank, said in enumerate(told)
               if "digest" not in said]
    if missing:
        return {"verdict": "failed", "reason": "; ".join(missing)}
    cell_found = {"verdict": "passed", "digests": [said["digest"] for said in told]}
    if not cell["kills"]:
        return {**cell_found, "ms_of_ranks": [said.get("milliseconds") for said in told]}
    last = cell["ranks"] - 1
    for rank, said in enumerate(told[:-1]):
        if f"rank {last}" not in said.get("error", ""):
            return {"verdict": "failed", "reason": f"rank {rank} was told: "
                                                   f"{said.get('error', errors[rank])!r}"}
    return {**cell_found, "seconds_until_told": max(said["seconds"] for said in told[:-1])}
