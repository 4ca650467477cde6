# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.explain: what ranks would send, store and compute, for any number of them."""

from __future__ import annotations

import ctypes as c
import dataclasses
import functools
import json
import os
from collections.abc import Iterable
from collections.abc import Sequence as Sizes
from typing import Any, cast

from burst import _c, arguments, descriptions, programs, tracing
from burst.errors import Error
from burst.sequence import Sequence

_TABLE, _PLAN, _SVG, _TIME, _TIME_JSON, _TIMELINE, _TIMELINE_SVG, _COMPARISON = range(8)
COMPARED = ("strategies", "orders", "placements")


@dataclasses.dataclass(frozen=True)
class Plan:
    """The schedule of an attention, proved. Nothing was compiled or run."""

    text: programs.Text
    machine: str | None = None
    compare: tuple[str, ...] = ("strategies",)

    @property
    def module(self) -> str:
        """MLIR's text, for burst-opt and burst_compile_text."""
        return self.text.module

    @functools.cached_property
    def table(self) -> str:
        """Hop by hop what each rank computes and sends; of more than 64 ranks a
        summary."""
        return self._tell(_TABLE)

    @property
    def why(self) -> str:
        """What each strategy would have sent and stored, or why it cannot be had, and
        which was chosen."""
        begin = self.table.index("strategy ")
        return self.table[begin:].split("\n\n")[0]

    @property
    def chosen(self) -> str:
        """The strategy that computes it: the cheapest by what `why` tells, or the one that
        was asked for."""
        line = next(line for line in self.why.split("\n") if line.startswith("*"))
        return line[1:].split("|")[0].strip()

    @property
    def proved(self) -> str:
        """For what ranks the schedule was proved, and what was proved, in a sentence."""
        begin = self.table.index("\nproved for ") + len("\nproved ")
        return " ".join(self.table[begin:].split("\n\n")[0].split())

    @functools.cached_property
    def ranks(self) -> list[dict[str, Any]]:
        """Of each rank: hops, messages, bytes_sent, bytes_sent_by_tensor, peak_slices
        and peak_bytes; on several nodes also bytes_sent_by_axis, of [between nodes,
        within one]."""
        found: list[dict[str, Any]] = json.loads(self._tell(_PLAN))["per_rank"]
        return found

    @property
    def bytes_sent(self) -> int:
        """By the rank that sends most."""
        return max(rank["bytes_sent"] for rank in self.ranks)

    @property
    def peak_bytes(self) -> int:
        """Held by the rank that holds most: tensors, state and received slices."""
        return max(rank["peak_bytes"] for rank in self.ranks)

    def svg(self, max_ranks: int = 16) -> str:
        """The table as a picture: of at most `max_ranks` ranks and 64 hops."""
        return self._tell(_SVG, max_ranks)

    @functools.cached_property
    def time(self) -> dict[str, Any]:
        """What a clock says of the machine: seconds, compute_seconds and exposed_seconds
        of the rank that ends last, exposed_seconds_by_axis, compute_seconds_mean, flops
        of all ranks, share_of_peak where the peak is known, whether it fits the memory of
        a rank, and limit, a sentence. A simulation: nothing is measured."""
        found: dict[str, Any] = json.loads(self._tell(_TIME_JSON))
        return found

    @property
    def seconds(self) -> float:
        """Until the last rank ends, see time."""
        return float(self.time["seconds"])

    @functools.cached_property
    def clock(self) -> str:
        """What time says, for people."""
        return self._tell(_TIME)

    @functools.cached_property
    def comparison(self) -> str:
        """A table of how long each strategy would take, by the clock, or of what else
        `compare` asked for."""
        return self._tell(_COMPARISON)

    def timeline(self, max_ranks: int = 16) -> str:
        """When the first ranks compute and send: a trace for Perfetto, in JSON."""
        return self._tell(_TIMELINE, max_ranks)

    def timeline_svg(self, max_ranks: int = 16) -> str:
        """The same as a picture."""
        return self._tell(_TIMELINE_SVG, max_ranks)

    def __str__(self) -> str:
        return self.table

    def _tell(self, what: int, max_ranks: int = 0) -> str:
        told = c.c_void_p()
        text = self.text.module.encode()
        config = _c.ExplainConfig(
            what=what, max_ranks=max_ranks, name=b"attention",
            without=",".join(self.text.clauses.without).encode(),
            machine=None if self.machine is None else self.machine.encode(),
            compare=",".join(self.compare).encode() if what == _COMPARISON else None)
        try:
            _c.check(_c.library.burst_explain_text(text, len(text), config, told))
        except Error as error:
            raise self.text.explained(error) from None
        try:
            return c.string_at(told.value or 0).decode()
        finally:
            _c.library.burst_text_destroy(told)


def explain(q: Sizes[int], k: Sizes[int] | None = None, v: Sizes[int] | None = None, *,
            sequence: Sequence, mask: tracing.Function | None = None,
            score: tracing.Function | None = None, dtype: Any = "bfloat16",
            scale: float | None = None, strategy: str = "auto", without: Iterable[str] = (),
            backward: bool = False,
            layout: str = "bhsd", head_offset: int = 0, batch_offset: int = 0,
            machine: str | os.PathLike[str] | None = None,
            compare: Iterable[str] = ("strategies",)) -> Plan:
    """What an attention of tensors of these shapes would send and store, and how long
    it would take on a machine.

    The shapes are those of the whole tensors, not of shards: (batch, heads,
    sequence, dim), or with layout="bshd" (batch, sequence, heads, dim); k is like
    q where it is left out, v like k. `sequence` may be burst.Sequence(ranks=256).
    dtype is one of torch or its name. Tables that a mask reads decide what is sent,
    so they are read. `without` is that of burst.attention; a schedule knows no
    local_tiling.

    `machine` is a file that describes the machine, as those of machines/, or the text of
    one. It counts where a strategy is chosen, and for time. `compare` says what
    `comparison` varies: "strategies", "orders", and "placements" of the axes of
    `Sequence(nodes=)` over the machine's nodes.
    """
    compared = arguments.check_names("compare", compare, COMPARED)
    if not compared:
        raise ValueError(f"compare: at least one of {', '.join(COMPARED)} is wanted, got none")
    described = descriptions.clauses(q, k, v, mask, score, dtype, scale, sequence, strategy,
                                     without, layout, head_offset, batch_offset)
    if any(described.is_open):
        raise ValueError("q, k, v: lengths are wanted to be explained, got None; those of one run "
                         "will do")
    text = programs.backward(described, [], with_lse=False, has_constants=True) if backward else \
        programs.forward(described, has_constants=True)
    return Plan(text, None if machine is None else read_machine(machine), compared)


def read_machine(machine: str | os.PathLike[str]) -> str:
    """The text of a machine, of itself or of its file."""
    if isinstance(machine, str) and "{" in machine:
        return machine
    if not isinstance(cast(object, machine), (str, os.PathLike)):
        raise TypeError(f"machine: a path or the text of one is wanted, got {machine!r}")
    with open(machine, encoding="utf-8") as file:
        return file.read()
