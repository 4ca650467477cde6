# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the processes of a group exchange shards: burst's own transport, whose
ranks find each other by the store of the group."""

from __future__ import annotations

import os
import secrets
import socket
from typing import Any

from burst import _c, programs, running


class World(running.World):
    """A rank of a process group."""

    def __init__(self, group: Any) -> None:
        from torch.distributed import distributed_c10d as c10d
        store = c10d._get_process_group_store(group) # pyright: ignore[reportPrivateUsage]
        rank, ranks = group.rank(), group.size()
        if rank == 0:
            store.set("burst_world", f"{_address()} {secrets.token_hex(16)}")
        # Waits for rank 0, as long as the store does.
        address, token = store.get("burst_world").decode().split()
        super().__init__(ranks, rank, address, token)
        self.group = group
        self._nccl: dict[int, _c.Handle] = {}

    def nccl(self, device: Any) -> _c.Handle:
        """A transport over a part of the NCCL communicator that the group has for a
        CUDA device; all ranks make it with their first exchange there."""
        found = self._nccl.get(device.index)
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


_worlds: dict[str, World] = {}


def of(group: Any) -> World:
    """The world of a group, which all its ranks make with their first exchange."""
    name = group.group_name
    world = _worlds.get(name)
    if world is not None and world.group is not group: # which was destroyed, and its name given on
        world = None
    if world is None:
        world = _worlds[name] = World(group)
    if world.pid != os.getpid():
        raise RuntimeError("burst: this process was forked from a rank; its transport belongs to "
                           "that one. Exchange shards in the rank itself")
    return world


def transport(group: Any, device: Any) -> _c.Handle:
    """What carries tensors of a torch device: TCP those of the CPU, the communicator
    of the group those of a GPU."""
    world = of(group)
    if device.type == "cpu":
        return world.transport
    return world.nccl(device)


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
