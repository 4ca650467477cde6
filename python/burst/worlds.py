# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the processes of a group exchange shards: burst's own transport, whose
ranks find each other by the store of the group, or the group itself."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import secrets
import socket
import time
from typing import Any

from burst import _c, programs, running, transports
from burst.errors import Code, DeadlineError, Error
from burst.sequence import Sequence


class Rank:
    """Of a process group: with a transport of the CPU, and those of GPUs."""

    group: Any
    pid: int
    transport: _c.Handle

    def __init__(self) -> None:
        self._nccl: dict[int, _c.Handle] = {}

    def nccl(self, device: Any) -> _c.Handle:
        """A transport over a part of the NCCL communicator that the group has for a
        CUDA device; all ranks make it with their first exchange there."""
        found = self._nccl.get(device.index)
        if found is None and isinstance(self.group, running.MpiWorld):
            raise ValueError(f"a sequence over an MPI communicator is of tensors of the CPU, got "
                             f"{device}: over GPUs give a process group with NCCL")
        if found is None:
            backend = self.group._get_backend(device)
            if not hasattr(backend, "_comm_ptr"):
                raise ValueError(f"the process group has no NCCL communicator for {device}, but "
                                 f"{type(backend).__name__}: make it with backend=\"nccl\", or "
                                 "\"cpu:gloo,cuda:nccl\"")
            backend.eager_connect_single_device(device)
            found = _c.Handle()
            config = _c.NcclConfig(device=programs.stream(device.index, 0).device,
                                   communicator=backend._comm_ptr())
            _c.check(_c.library.burst_transport_create_nccl(config, found))
            self._nccl[device.index] = found
        return found


class GroupRank(transports.GroupTransport, Rank):
    """Whose group carries tensors itself."""

    def __init__(self, group: Any) -> None:
        Rank.__init__(self)
        transports.GroupTransport.__init__(self, group, _store(group))


class World(running.World, Rank):
    """Which has connections of its own."""

    def __init__(self, group: Any, deadline_seconds: float) -> None:
        store = _store(group)
        rank, ranks = group.rank(), group.size()
        if rank == 0:
            store.set("burst_world", f"{_address()} {secrets.token_hex(16)}")
        else:
            seconds = deadline_seconds or 600.0
            try:
                store.wait(["burst_world"], datetime.timedelta(seconds=seconds))
            except RuntimeError as error: # of torch's own kinds
                raise DeadlineError(f"rank {rank}: world: rank 0 has not come for {seconds} s",
                                    Code.DEADLINE_EXCEEDED, f"rank {rank}") from error
        address, token = store.get("burst_world").decode().split()
        Rank.__init__(self)
        running.World.__init__(self, ranks, rank, address, token, deadline_seconds)
        self.group = group


class MpiRank(Rank):
    """With a transport over MPI. Its group may be that of MPI itself."""

    def __init__(self, group: Any, mpi: running.MpiWorld) -> None:
        super().__init__()
        self.group, self.pid, self.transport = group, mpi.pid, mpi.transport
        self.rank, self.num_ranks = mpi.rank, mpi.num_ranks
        self._mpi = mpi


def _store(group: Any) -> Any:
    from torch.distributed import distributed_c10d as c10d
    return c10d._get_process_group_store(group) # pyright: ignore[reportPrivateUsage]


_worlds: dict[tuple[str, str], World | GroupRank | MpiRank] = {} # by group and transport
_explained: dict[str, Any] = {} # groups by name, of which ranks ran different programs


def of(sequence: Sequence) -> World | GroupRank | MpiRank:
    """The world of a sequence's group, which all its ranks make with their first
    exchange."""
    group = sequence.group
    name = group.name if isinstance(group, running.MpiWorld) else group.group_name
    key = (name, sequence.transport)
    world = _worlds.get(key)
    if world is not None and world.group is not group: # which was destroyed, and its name given on
        world = None
    if world is None:
        world = _worlds[key] = MpiRank(group, sequence.mpi) if sequence.mpi is not None else \
            GroupRank(group) if sequence.transport == "group" else \
            World(group, sequence.deadline_seconds)
    if world.pid != os.getpid():
        raise RuntimeError("burst: this process was forked from a rank; its transport belongs to "
                           "that one. Exchange shards in the rank itself")
    return world


def transport(sequence: Sequence, device: Any) -> _c.Handle:
    """What carries tensors of a torch device: as the sequence says those of the CPU,
    the communicator of the group those of a GPU."""
    world = of(sequence)
    if device.type == "cpu":
        return world.transport
    return world.nccl(device)


def explained(sequence: Sequence | None, error: Error, described: dict[str, str]) -> Error:
    """The error of a run; where ranks run different programs, with what is different
    about them. What this rank runs is `described`."""
    if sequence is None or sequence.ranks == 1 or error.code != Code.MISMATCH or \
            isinstance(sequence.group, running.MpiWorld): # which has no store
        return error
    # Later calls fail with the first error, which they are not about.
    if _explained.get(sequence.group.group_name) is sequence.group:
        return error
    _explained[sequence.group.group_name] = sequence.group
    store, ranks = _store(sequence.group), sequence.ranks # the world may not have come to be
    found: list[dict[str, str]] = []
    with contextlib.suppress(RuntimeError): # of the store, whose process may have ended
        store.set(f"burst_plan_{sequence.rank}", json.dumps(described))
        keys = [f"burst_plan_{rank}" for rank in range(ranks)]
        store.wait(keys, datetime.timedelta(seconds=5))
        found = [json.loads(store.get(key)) for key in keys]
        # Nobody leaves, with a store that is perhaps its own, before all have read.
        until = time.monotonic() + 2
        count = store.add("burst_plans_read", 1)
        while count < ranks and time.monotonic() < until:
            time.sleep(0.01)
            count = store.add("burst_plans_read", 0)
    differences = _differences(found)
    if not differences:
        return error
    return type(error)("\n  ".join([f"{error}; what is different:", *differences]), error.code,
                       error.location)


def _differences(ranks: list[dict[str, str]]) -> list[str]:
    """By field, which ranks have what."""
    told: list[str] = []
    for field in ranks[0] if ranks else ():
        known: dict[str, list[int]] = {}
        for rank, described in enumerate(ranks):
            known.setdefault(described.get(field, ""), []).append(rank)
        if len(known) > 1:
            told.append(f"{field}: " + "; ".join(
                f"{value} on rank{'s' * (len(held) > 1)} {', '.join(map(str, held))}"
                for value, held in zip(_short(list(known)), known.values())))
    return told


def _short(values: list[str]) -> list[str]:
    """Texts of functions, by the first line in which they differ."""
    if max(map(len, values)) <= 100:
        return values
    lines = [value.split("\n") for value in values]
    at = 0
    while all(len(x) > at and x[at] == lines[0][at] for x in lines):
        at += 1
    return [f"`{(x[at] if at < len(x) else 'nothing more').strip()}`" for x in lines]


def _address() -> str:
    """Where this process can be reached, and a port that is free."""
    host = "127.0.0.1"
    master = os.environ.get("MASTER_ADDR", "localhost")
    if master not in ("localhost", "127.0.0.1", "::1", socket.gethostname()):
        # The address by which this machine reaches rank 0 of the job.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((master, 9))
            host = probe.getsockname()[0]
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return f"{host}:{probe.getsockname()[1]}"
