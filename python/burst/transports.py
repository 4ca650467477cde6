# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shards that a process group carries itself: a transport of burst/transport.h, with
functions of Python, over the point-to-point messages of the group."""

from __future__ import annotations

import contextlib
import ctypes as c
import dataclasses
import datetime
import os
import time
import traceback
import weakref
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burst import _c
from burst.errors import Code

if TYPE_CHECKING:
    import torch

# Between two looks at the store.
_LEAST_PAUSE, _MOST_PAUSE = 50e-6, 5e-3
# Tags of a channel's messages, which come again when they are long done.
_CHANNELS, _NUMBERS, _FIRST_TAG = 64, 1 << 22, 1 << 30


class Failure(Exception):
    """Of a rank: its code, what it says, and the rank that it was with."""

    def __init__(self, code: Code, message: str, peer: int = -1) -> None:
        super().__init__(message)
        self.code, self.peer = code, peer


@dataclasses.dataclass
class _Side:
    """One message: the elements of its pieces without gaps, and what both sides have
    to say of them."""

    peer: int
    key: str # in the store
    tag: int
    header: bytes
    pieces: list[torch.Tensor]
    packed: torch.Tensor | None = None
    work: Any = None # of the group


class _Request:
    """The messages of one start, as far as they are not done."""

    def __init__(self) -> None:
        self.sent: list[_Side] = []
        self.received: list[_Side] = []


class GroupTransport:
    """Of one rank of a group.

    What a group was asked for cannot be taken back, nor can one look whether it is
    done. So the group is asked for what is sure to come alone: who sends says so in
    the store, and who receives, when it has asked the group for the data.
    """

    _made: Counter[str] = Counter() # by group, so that each has keys of its own

    def __init__(self, group: Any, store: Any) -> None:
        self.group, self.pid = group, os.getpid()
        self.rank, self.num_ranks = group.rank(), group.size()
        self._store = store
        name = group.group_name
        self._prefix = f"burst_{self._made[name]}"
        self._made[name] += 1
        self._stopped: str | None = None
        self._numbers: Counter[tuple[int, int, bool]] = Counter()
        self._requests: dict[int, _Request] = {}
        self._next = 1
        self._table = _table_of(self)
        self.transport = _c.Handle()
        _c.check(_c.library.burst_transport_create(self._table, self.transport))
        self.close = weakref.finalize(self, _destroy, self.transport, self._table, self.pid)

    def start(self, start: _c.TransportStart) -> int:
        self._check_stopped()
        if not 0 <= start.channel < _CHANNELS:
            raise Failure(Code.INVALID_ARGUMENT, f"channel {start.channel}, wanted 0 to "
                                                 f"{_CHANNELS - 1}")
        request = _Request()
        for i in range(start.messages.count):
            message = start.messages.list[i]
            side = self._side(message, start.channel, start.program)
            if message.receives:
                request.received.append(side)
            else:
                side.packed = _pack(side.pieces)
                side.work = self.group.send([side.packed], side.peer, side.tag)
                self._store.set(side.key, side.header)
                request.sent.append(side)
        handle = self._next
        self._next += 1
        self._requests[handle] = request
        self._ask()
        return handle

    def _side(self, message: _c.Message, channel: int, program: int) -> _Side:
        pieces = [_view(message.pieces[i]) for i in range(message.num_pieces)]
        shapes = [(x.element_size(), *x.shape) for x in pieces]
        of = (message.peer, channel, bool(message.receives))
        number = self._numbers[of]
        self._numbers[of] += 1
        way = (message.peer, self.rank) if message.receives else (self.rank, message.peer)
        return _Side(message.peer, f"{self._prefix}_{way[0]}_{way[1]}_{channel}_{number}",
                     _FIRST_TAG + number % _NUMBERS * _CHANNELS + channel,
                     f"program {program:016x}, {len(pieces)} pieces {shapes}".encode(), pieces)

    def _ask(self) -> bool:
        """Asks the group for what is on its way, of all requests; whether it was."""
        asked = False
        for request in self._requests.values():
            for side in request.received:
                if side.work is None and self._store.check([side.key]):
                    self._receive(side)
                    asked = True
        return asked

    def _receive(self, side: _Side) -> None:
        import torch
        found = self._store.get(side.key)
        if found != side.header:
            raise Failure(Code.MISMATCH, f"it sends {_short(found)}, wanted "
                                         f"{_short(side.header)}", side.peer)
        self._store.delete_key(side.key)
        side.packed = torch.empty(sum(x.numel() * x.element_size() for x in side.pieces),
                                  dtype=torch.uint8)
        side.work = self.group.recv([side.packed], side.peer, side.tag)
        self._store.set(side.key + "_asked", b"")

    def wait(self, handle: int, seconds: float) -> None:
        request = self._requests[handle]
        until, pause = time.monotonic() + seconds, _LEAST_PAUSE
        while request.received or request.sent:
            if self._ask() | self._finish(request, until):
                pause = _LEAST_PAUSE
                continue
            peer = (request.received or request.sent)[0].peer
            self._check_stopped(peer)
            if time.monotonic() >= until:
                raise Failure(Code.DEADLINE_EXCEEDED, "it has not come to the message", peer)
            time.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE)
        del self._requests[handle]

    def _finish(self, request: _Request, until: float) -> bool:
        """Ends the messages that the group has been asked for on both sides; whether
        there were any."""
        ended = False
        for side in list(request.received):
            if side.work is not None:
                self._wait_for(side, until)
                _unpack(side.pieces, side.packed)
                request.received.remove(side)
                ended = True
        for side in list(request.sent):
            if self._store.check([side.key + "_asked"]):
                self._store.delete_key(side.key + "_asked")
                self._wait_for(side, until)
                request.sent.remove(side)
                ended = True
        return ended

    def _wait_for(self, side: _Side, until: float) -> None:
        seconds = max(until - time.monotonic(), 1.0)
        try:
            side.work.wait(datetime.timedelta(seconds=min(seconds, 1e8)))
        except RuntimeError as error: # of the group: a process has ended, as a rule
            self._check_stopped(side.peer)
            code = Code.DEADLINE_EXCEEDED if time.monotonic() >= until else Code.PEER_STOPPED
            raise Failure(code, str(error).split("\n")[0], side.peer) from error

    def cancel(self, handle: int) -> None:
        # What the group was asked for has memory of its own.
        self._requests.pop(handle, None)

    def abort(self, reason: str) -> None:
        if self._stopped is None:
            self._stopped = f"rank {self.rank} stopped: {reason}"
            with contextlib.suppress(RuntimeError): # of the store, which may have ended
                if not self._store.check([self._prefix]):
                    self._store.set(self._prefix, self._stopped)

    def _check_stopped(self, peer: int = -1) -> None:
        if self._stopped is None:
            with contextlib.suppress(RuntimeError):
                if self._store.check([self._prefix]):
                    self._stopped = self._store.get(self._prefix).decode()
        if self._stopped is not None:
            raise Failure(Code.PEER_STOPPED, self._stopped, peer)


def _destroy(transport: _c.Handle, table: _c.TransportTable, pid: int) -> None:
    del table # whose functions are called until now
    if os.getpid() == pid:
        _c.library.burst_transport_destroy(transport)


def _short(header: bytes) -> str:
    text = header.decode()
    return text if len(text) <= 200 else text[:200] + "..."


#===----------------------------------------------------------------------===#
# Pieces
#===----------------------------------------------------------------------===#


def _view(piece: _c.Piece) -> torch.Tensor:
    """The elements of a piece, where they lie."""
    import torch
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    sizes, strides = list(piece.sizes), list(piece.strides)
    count = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))
    memory = (c.c_char * (count * piece.element_bytes)).from_address(piece.data)
    kind = kinds[piece.element_bytes]
    return torch.frombuffer(memory, dtype=kind, count=count).as_strided(sizes, strides)


def _pack(pieces: list[torch.Tensor]) -> torch.Tensor:
    import torch
    dense = [torch.empty(x.shape, dtype=x.dtype).copy_(x) for x in pieces]
    return torch.cat([x.view(-1).view(torch.uint8) for x in dense])


def _unpack(pieces: list[torch.Tensor], packed: torch.Tensor | None) -> None:
    assert packed is not None
    begin = 0
    for piece in pieces:
        end = begin + piece.numel() * piece.element_size()
        # A copy of its own where the elements would not be aligned.
        part = packed[begin:end]
        if begin % piece.element_size():
            part = part.clone()
        piece.copy_(part.view(piece.dtype).view(piece.shape))
        begin = end


#===----------------------------------------------------------------------===#
# The table
#===----------------------------------------------------------------------===#


def _table_of(transport: GroupTransport) -> _c.TransportTable:
    """Functions for the runtime, which find the transport as long as it lives."""
    found = weakref.ref(transport)

    def guarded(function: Callable[[GroupTransport], None], failure: Any) -> int:
        try:
            own = found()
            assert own is not None
            function(own)
        except Failure as error:
            _tell(failure, error.code, error.peer, str(error))
        except Exception: # which cannot pass through the runtime
            _tell(failure, Code.SYSTEM, -1, traceback.format_exc(limit=-3))
        else:
            return 0
        return 1

    def start(_: Any, given: Any, request: Any, failure: Any) -> int:
        def begin(own: GroupTransport) -> None:
            request[0] = own.start(given.contents)
        return guarded(begin, failure)

    def wait(_: Any, request: int, seconds: float, failure: Any) -> int:
        return guarded(lambda own: own.wait(request, seconds), failure)

    def cancel(_: Any, request: int) -> None:
        guarded(lambda own: own.cancel(request), None)

    def abort(_: Any, reason: bytes) -> None:
        guarded(lambda own: own.abort(reason.decode()), None)

    return _c.TransportTable(rank=transport.rank, num_ranks=transport.num_ranks,
                             start=_c.TransportBegin(start), wait=_c.TransportWait(wait),
                             cancel=_c.TransportCancel(cancel),
                             abort=_c.TransportAbort(abort))


def _tell(failure: Any, code: Code, peer: int, text: str) -> None:
    if failure:
        failure.contents.code, failure.contents.peer = code, peer
        failure.contents.message = text.encode()[:1000]


def check(sequence: Any, what: str = "messages", seed: int = 0, *,
          deadline_seconds: float = 0) -> None:
    """Tries whether what carries the shards of a sequence keeps the rules of
    burst/transport.h: all ranks call it, and an error says what is wrong on this
    one. `what` is messages or, behind which ranks can exchange no more, mismatch,
    deadline or stop, where one of them fails (burst_transport_check)."""
    from burst import running, worlds
    kinds = ("messages", "mismatch", "deadline", "stop")
    if what not in kinds:
        raise ValueError(f"what: one of {', '.join(kinds)}, got {what!r}")
    config = _c.CheckConfig(transport=worlds.of(sequence).transport,
                            device=running.device(1).handle, what=kinds.index(what), seed=seed,
                            deadline_seconds=deadline_seconds)
    _c.check(_c.library.burst_transport_check(config))
