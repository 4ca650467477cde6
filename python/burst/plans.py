# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.explain: what ranks would send, store and compute, for any number of them."""

from __future__ import annotations

import ctypes as c
import dataclasses
import functools
import json
from collections.abc import Sequence as Sizes
from typing import Any

from burst import _c, descriptions, programs, tracing
from burst.errors import Error
from burst.sequence import Sequence

_TABLE, _PLAN, _SVG = range(3)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The schedule of an attention, proved. Nothing was compiled or run."""

    text: programs.Text

    @property
    def module(self) -> str:
        """MLIR's text, for burst-opt and burst_compile_text."""
        return self.text.module

    @functools.cached_property
    def table(self) -> str:
        """Hop by hop what each rank computes and sends; of more than 64 ranks a
        summary."""
        return _tell(self.text, _TABLE)

    @property
    def why(self) -> str:
        """What each strategy would have sent and stored, or why it cannot be had, and
        which was chosen."""
        begin = self.table.index("strategy ")
        return self.table[begin:].split("\n\n")[0]

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
        found: list[dict[str, Any]] = json.loads(_tell(self.text, _PLAN))["per_rank"]
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
        return _tell(self.text, _SVG, max_ranks)

    def __str__(self) -> str:
        return self.table


def _tell(of: programs.Text, what: int, max_ranks: int = 0) -> str:
    told = c.c_void_p()
    text = of.module.encode()
    config = _c.ExplainConfig(what=what, max_ranks=max_ranks, name=b"attention")
    try:
        _c.check(_c.library.burst_explain_text(text, len(text), config, told))
    except Error as error:
        raise of.explained(error) from None
    try:
        return c.string_at(told.value or 0).decode()
    finally:
        _c.library.burst_text_destroy(told)


def explain(q: Sizes[int], k: Sizes[int] | None = None, v: Sizes[int] | None = None, *,
            sequence: Sequence, mask: tracing.Function | None = None,
            score: tracing.Function | None = None, dtype: Any = "bfloat16",
            scale: float | None = None, strategy: str = "auto", backward: bool = False,
            layout: str = "bhsd", head_offset: int = 0, batch_offset: int = 0) -> Plan:
    """What an attention of tensors of these shapes would send and store.

    The shapes are those of the whole tensors, not of shards: (batch, heads,
    sequence, dim), or with layout="bshd" (batch, sequence, heads, dim); k is like
    q where it is left out, v like k. `sequence` may be burst.Sequence(ranks=256).
    dtype is one of torch or its name. Tables that a mask reads decide what is sent,
    so they are read.
    """
    described = descriptions.clauses(q, k, v, mask, score, dtype, scale, sequence, strategy, layout,
                                     head_offset, batch_offset)
    if any(described.is_open):
        raise ValueError("q, k, v: lengths are wanted to be explained, got None; those of one run "
                         "will do")
    text = programs.backward(described, [], with_lse=False, has_constants=True) if backward else \
        programs.forward(described, has_constants=True)
    return Plan(text)
