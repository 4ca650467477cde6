# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What burst raises."""

from __future__ import annotations

import enum
import re


class Code(enum.IntEnum):
    """What the caller may do about an error (`burst_code` of burst/burst.h)."""

    INVALID_ARGUMENT = 1
    INVALID_PROGRAM = 2
    OUT_OF_MEMORY = 3
    DEADLINE_EXCEEDED = 4
    PEER_STOPPED = 5
    MISMATCH = 6
    PROGRAM_FAULT = 7
    SYSTEM = 8


class Error(RuntimeError):
    """An error of the library, or of a rank.

    `code` says what may be done about it. `rank`, `hop` and `peer` are where it
    happened, and None where it happened nowhere in particular.
    """

    def __init__(self, message: str, code: Code, location: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.location = location
        self.rank = _number(r"^rank (\d+)", location)
        self.hop = _number(r"hop (\d+)", location)
        self.peer = _number(r"\brank (\d+)", message.removeprefix(location))


class ArgumentError(Error, ValueError):
    """An argument, or a program, that cannot be used."""


class OutOfMemoryError(Error, MemoryError):
    """Memory is out."""


class DeadlineError(Error, TimeoutError):
    """A rank waited for a peer for too long."""


_KINDS: dict[Code, type[Error]] = {
    Code.INVALID_ARGUMENT: ArgumentError,
    Code.INVALID_PROGRAM: ArgumentError,
    Code.OUT_OF_MEMORY: OutOfMemoryError,
    Code.DEADLINE_EXCEEDED: DeadlineError,
}


def make(message: str, code: int, location: str) -> Error:
    """The exception for an error of the C API."""
    # Diagnostics end with the op that they are about, regions and all, which the
    # caller has not written.
    lines = message.split("\n")
    begins = [n for n, line in enumerate(lines) if re.match(r"[^\s:]+:\d+:\d+: ", line)]
    for begin, end in reversed(list(zip(begins, begins[1:] + [len(lines)]))):
        if "note: see current operation" in lines[begin]:
            del lines[begin:end]
    message = "\n".join(lines)
    known = Code(code)
    return _KINDS.get(known, Error)(message, known, location)


def _number(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    return int(found[1]) if found else None
