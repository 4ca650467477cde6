# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a sequence is laid out over ranks."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, cast

from burst import arguments
from burst.running import MpiWorld

if TYPE_CHECKING:
    import torch


@dataclasses.dataclass(frozen=True)
class Layout:
    """Which positions of a sequence each of `ranks` ranks holds.

    The orders are those of `#burst.sequence`: contiguous; zigzag, of 2 P chunks
    the r-th and the r-th from the end; striped, or "striped N", every P-th block
    of N positions. Shards are uneven where a length does not divide. Ranks are those
    of `nodes`, one behind the other: strategies may take both as axes of a grid.
    """

    ranks: int
    order: str = "contiguous"
    nodes: int = 1

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise ValueError(f"ranks: a whole number of at least 1 is wanted, got {self.ranks}")
        if self.nodes < 1 or self.ranks % self.nodes:
            raise ValueError(f"nodes: a number that divides the {self.ranks} ranks is wanted, "
                             f"got {self.nodes}")
        kind, *block = self.order.split() or [""]
        if kind not in ("contiguous", "zigzag", "striped") or len(block) > (kind == "striped") \
                or not all(n.isdigit() and int(n) > 0 for n in block):
            raise ValueError(f"order: {self.order!r} is not known; it is contiguous, zigzag, "
                             "striped or, in blocks of 64, 'striped 64'")

    @property
    def grid(self) -> str:
        """The shape of the grid, as shard.grid has it."""
        return f"{self.nodes}x{self.ranks // self.nodes}" if self.nodes > 1 else str(self.ranks)

    def positions(self, rank: int, length: int) -> list[int]:
        """The global positions that a rank holds, as they lie in its shard."""
        if not 0 <= rank < self.ranks:
            raise ValueError(f"rank: from 0 to {self.ranks - 1}, got {rank}")
        return list(_positions(self.ranks, self.order, rank, length))

    def local_length(self, rank: int, length: int) -> int:
        return len(_positions(self.ranks, self.order, rank, length))


@functools.lru_cache(maxsize=256)
def _positions(ranks: int, order: str, rank: int, length: int) -> tuple[int, ...]:
    kind, *block = order.split()
    if kind == "striped":
        size = int(block[0]) if block else 1
        return tuple(x for begin in range(rank * size, length, ranks * size)
                     for x in range(begin, min(begin + size, length)))
    chunks = 2 * ranks if kind == "zigzag" else ranks
    held = (rank, chunks - 1 - rank) if kind == "zigzag" else (rank,)
    return tuple(x for n in held
                 for x in range(n * length // chunks, (n + 1) * length // chunks))


class Sequence:
    """A sequence over the ranks of a process group, or of an MPI communicator.

    `over` is a dimension of a DeviceMesh (mesh["cp"]) or a ProcessGroup; a communicator
    of mpi4py or a burst.MpiWorld, of which no process group is needed; None with
    `ranks`, for what only plans and checks. `order` says which positions a rank
    has, see Layout. `nodes` is how many nodes they are on, in their order and as many
    on each: the double rings take it, and strategies that name axes, "ulysses on [1],
    ring_kv on [0]", where 0 is the axis of nodes. `length` is the number of positions
    of all ranks: it may be left out where all ranks have equally many; `key_length`
    that of the keys, where it is another one. A rank that waits for another one for longer than
    `deadline_seconds` (600 where it is left out) gives up with a burst.Error, which
    ends the runs of all ranks.

    The processes of the group find each other by its store, once, when ranks first
    exchange data. `transport` says what carries tensors of the CPU: "tcp",
    connections of burst's own; "group", the messages of the group itself, where
    no others may be opened or a backend knows a faster way; "mpi", MPI, for a group
    that has the ranks of MPI_COMM_WORLD in their order. Left out it is "mpi" over a
    communicator, else "tcp". With "mpi" all ranks of the sequence make it at the same
    time.
    """

    def __init__(self, over: Any = None, order: str = "zigzag", *, ranks: int | None = None,
                 nodes: int = 1, length: int | None = None, key_length: int | None = None,
                 deadline_seconds: float | None = None, transport: str | None = None) -> None:
        # Of torch, or the communicator in its place.
        self.group = _group_of(over)
        if (self.group is None) == (ranks is None):
            raise ValueError("Sequence: wants a DeviceMesh dimension, a ProcessGroup, a "
                             "communicator of mpi4py or a burst.MpiWorld, or ranks=N to plan for "
                             "N ranks")
        if transport not in (None, "tcp", "group", "mpi"):
            raise ValueError(f"transport: \"tcp\", \"group\" or \"mpi\", got {transport!r}")
        self.rank: int | None = None
        self.mpi: MpiWorld | None = None # which carries tensors
        if isinstance(self.group, MpiWorld):
            if transport not in (None, "mpi"):
                raise ValueError(f"transport: {transport!r} is of a process group, and the "
                                 "sequence is over an MPI communicator")
            self.mpi = self.group
            self.rank, ranks = self.mpi.rank, self.mpi.num_ranks
        elif self.group is not None:
            self.rank, ranks = self.group.rank(), self.group.size()
            self.mpi = _mpi_of(self.group) if transport == "mpi" else None
        ranks = arguments.whole("ranks", ranks)
        self.layout = Layout(ranks, order, arguments.whole("nodes", nodes))
        self.length = None if length is None else arguments.whole("length", length)
        self.key_length = None if key_length is None else \
            arguments.whole("key_length", key_length)
        self.transport = "mpi" if self.mpi is not None else transport or "tcp"
        self.deadline_seconds = 0.0 # 0: the runtime's
        if deadline_seconds is not None:
            if not (isinstance(cast(object, deadline_seconds), (int, float)) and
                    0 < deadline_seconds < math.inf):
                raise ValueError("deadline_seconds: a number above 0 is wanted, got "
                                 f"{deadline_seconds!r}")
            self.deadline_seconds = float(deadline_seconds)

    @property
    def ranks(self) -> int:
        return self.layout.ranks

    @property
    def group_name(self) -> str:
        """The same on all ranks of the group."""
        if self.group is None:
            return ""
        name: str = self.group.name if isinstance(self.group, MpiWorld) else self.group.group_name
        return name

    @property
    def name(self) -> str:
        """Of the group and what is said of it: the same on all its ranks, and in the
        processes of another run."""
        return f"{self.group_name} {self.layout} {self.length} {self.key_length}"

    def _key(self) -> tuple[Any, ...]:
        # A name may come again when groups are destroyed.
        return (id(self.group), self.layout, self.length, self.key_length,
                self.deadline_seconds, self.transport)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"burst.Sequence({self.ranks} ranks, {self.layout.order})"

    def _own_rank(self) -> int:
        if self.rank is None:
            raise ValueError(f"{self} is only for plans: it has no process group")
        return self.rank

    def positions(self, length: int) -> torch.Tensor:
        """The positions of this rank's shard, int64: what RoPE and masks see."""
        import torch
        return torch.tensor(self.layout.positions(self._own_rank(), length), dtype=torch.int64)

    def shard(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """This rank's part of a tensor that every rank has, along `dim`."""
        if not -x.dim() <= dim < x.dim():
            raise IndexError(f"dim: from {-x.dim()} to {x.dim() - 1} for the shape "
                             f"{tuple(x.shape)}, got {dim}")
        positions = self.positions(x.shape[dim])
        return x.index_select(dim, positions.to(x.device))

    def unshard(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """The whole tensor, on every rank, of the shards of all. Not differentiable."""
        import torch
        rank = self._own_rank()
        length = self.global_length(x.shape[dim], self.length)
        moved = x.detach().movedim(dim, 0)
        # Shards are padded to one size: gloo gathers equal ones.
        most = max(self.layout.local_length(r, length) for r in range(self.ranks))
        padded = moved.new_zeros((most, *moved.shape[1:]))
        padded[:self.layout.local_length(rank, length)] = moved
        parts = self._gather(padded)
        whole = moved.new_empty((length, *moved.shape[1:]))
        for r, part in enumerate(parts):
            held = self.layout.positions(r, length)
            whole[torch.tensor(held, dtype=torch.int64)] = part[:len(held)]
        return whole.movedim(0, dim)

    def _gather(self, x: torch.Tensor) -> list[torch.Tensor]:
        import torch
        import torch.distributed as dist
        if isinstance(self.group, MpiWorld):
            mine = x.contiguous().view(-1).view(torch.uint8).cpu()
            got = self.group.gather(bytes(mine.numpy()), self.deadline_seconds)
            return [torch.frombuffer(bytearray(part), dtype=x.dtype).view(x.shape).to(x.device)
                    if part else x for part in got]
        parts = [torch.empty_like(x) for _ in range(self.ranks)]
        dist.all_gather(parts, x, group=self.group) # pyright: ignore[reportUnknownMemberType]
        return parts

    @staticmethod
    def roll(x: torch.Tensor, shift: int, dim: int = -1) -> torch.Tensor:
        """torch.roll of the whole sequence: labels are rolled before they are
        sharded, since the next token of a shard's last one is elsewhere."""
        import torch
        return torch.roll(x, shift, dim)

    def global_lengths(self, num_queries: int, num_keys: int) -> tuple[int, int]:
        """Of queries and keys, of which this rank has so many."""
        key_length = self.length if self.key_length is None else self.key_length
        return (self.global_length(num_queries, self.length),
                self.global_length(num_keys, key_length))

    def global_length(self, local: int, length: int | None) -> int:
        """Of a shard of `local` positions; `length` is what is known of it."""
        rank = self._own_rank()
        found = local * self.ranks if length is None else length
        wanted = self.layout.local_length(rank, found)
        if wanted == local:
            return found
        if length is None:
            raise ValueError(
                f"rank {rank} of {self} has {local} positions, which is no shard of "
                f"{found}: where shards are uneven, say length= to burst.Sequence")
        raise ValueError(f"rank {rank} of {self} has {local} positions; of {length} it should "
                         f"have {wanted}")


def _group_of(over: Any) -> Any:
    """The process group of a DeviceMesh dimension, or of itself; of a communicator of
    MPI what stands in its place."""
    if over is None or isinstance(over, MpiWorld):
        return over
    if hasattr(over, "py2f"):
        return _mpi_world(over)
    if hasattr(over, "get_group"):
        if getattr(over, "ndim", 1) != 1:
            raise ValueError(f"Sequence: wants one dimension of a mesh, as in mesh[\"cp\"], got "
                             f"one of {over.ndim}")
        return over.get_group()
    if hasattr(over, "rank") and hasattr(over, "size"):
        return over
    raise TypeError("Sequence: wants a DeviceMesh dimension, a ProcessGroup, a communicator of "
                    f"mpi4py or a burst.MpiWorld, got {type(over).__name__}")


# By communicator of mpi4py, which is kept, so that no other one is taken for it; None
# for all ranks.
_mpi_worlds: dict[int, tuple[Any, MpiWorld]] = {}


def _mpi_world(communicator: Any) -> MpiWorld:
    _, found = _mpi_worlds.get(id(communicator), (None, None))
    if found is None or not found.close.alive:
        found = MpiWorld(communicator)
        _mpi_worlds[id(communicator)] = communicator, found
    return found


def _mpi_of(group: Any) -> MpiWorld:
    """All ranks of MPI, which a group has to have, too."""
    world = _mpi_world(None)
    if (world.rank, world.num_ranks) != (group.rank(), group.size()):
        raise ValueError(f"transport: \"mpi\" is for a group with the {world.num_ranks} ranks of "
                         f"MPI_COMM_WORLD in their order; this process is rank {group.rank()} of "
                         f"{group.size()} there, and {world.rank} of MPI. Give a communicator of "
                         "mpi4py, as burst.Sequence(comm.Split(color, key))")
    return world
