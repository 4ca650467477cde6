# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which lengths of an attention its program knows.

A program of known lengths is what a first call gets. A call that differs from it in
nothing but how many queries or keys there are, as those of a decoding loop do, gets
a program that is for any number of these: it is compiled once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from burst.sequence import Sequence

Lengths = tuple[int, int] # of queries and keys of all ranks
Open = tuple[bool, bool] # of queries, of keys


class _Seen:
    """Of one attention, whatever its lengths."""

    __slots__ = ("first", "is_open")

    def __init__(self, lengths: Lengths) -> None:
        self.first = lengths
        self.is_open: Open = (False, False)

    def of(self, lengths: Lengths) -> Open:
        if lengths == self.first:
            return False, False
        self.is_open = (self.is_open[0] or lengths[0] != self.first[0],
                        self.is_open[1] or lengths[1] != self.first[1])
        return self.is_open


# Of one process, None, and of groups of ranks by their names: all ranks of a group
# make the same calls of its attentions, and so agree on their programs, whatever else
# each of them does.
_seen: dict[Any, tuple[Any, dict[Hashable, _Seen]]] = {}
_LARGEST_CACHE = 4096


def opened(attention: Hashable, lengths: Lengths, sequence: Sequence | None) -> Open:
    """Which lengths the program of a call is to leave open. `attention` is all that
    the program depends on beside lengths and sequence."""
    group = None if sequence is None else sequence.group
    key = None if sequence is None else (sequence.group_name, sequence.layout, sequence.transport)
    found = _seen.get(key)
    if found is None or found[0] is not group: # which was destroyed, and its name given on
        found = _seen[key] = group, {}
    of_group = found[1]
    known = of_group.get(attention)
    if known is None:
        if len(of_group) >= _LARGEST_CACHE:
            of_group.clear()
        known = of_group[attention] = _Seen(lengths)
    return known.of(lengths)
