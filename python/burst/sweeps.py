# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.sweep: how long attentions would take on a machine, for all of many choices."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import math
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Sizes
from typing import Any, TypeVar, cast

from burst import arguments, drawing, plans
from burst.errors import Error
from burst.sequence import Layout, Sequence

DIRECTIONS = ("forward", "backward")

_Checked = TypeVar("_Checked")


@dataclasses.dataclass(frozen=True)
class Row:
    """A choice, and what the clock of burst.explain says of it, in seconds and bytes; None
    with a `reason` where it cannot be had. `bandwidth` and `node_bandwidth` are how many
    times as wide links are as the machine says."""

    length: int
    key_length: int
    ranks: int
    nodes: int
    order: str
    strategy: str
    direction: str
    bandwidth: float
    node_bandwidth: float
    chosen: str | None = None
    seconds: float | None = None
    compute_seconds: float | None = None
    exposed_seconds: float | None = None
    share_of_peak: float | None = None
    bytes_sent: float | None = None
    peak_bytes: float | None = None
    fits: bool | None = None
    limit: str | None = None
    reason: str | None = None


_NAMES = [field.name for field in dataclasses.fields(Row)]
_CHOICES = _NAMES[:_NAMES.index("chosen")]
# What is drawn, and in which unit.
_UNITS = {"seconds": "time", "compute_seconds": "time of computing",
          "exposed_seconds": "time of waiting", "share_of_peak": "share of the peak",
          "bytes_sent": "bytes sent by a rank", "peak_bytes": "bytes held by a rank"}


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What a sweep found, a row for each choice."""

    rows: tuple[Row, ...]

    @property
    def varied(self) -> list[str]:
        """The columns by which the choices differ, but for what follows from others."""
        found = [name for name in _CHOICES
                 if len({getattr(row, name) for row in self.rows}) > 1]
        if all(row.key_length == row.length for row in self.rows) and "length" in found:
            found.remove("key_length")
        if len({(row.ranks, row.nodes) for row in self.rows}) == \
                len({row.ranks for row in self.rows}) and "nodes" in found:
            found.remove("nodes")
        return found

    @property
    def table(self) -> str:
        """For people: what differs, time, what the last rank does, what a rank sends on
        average and at most holds, what limits; or why it cannot be had."""
        shown = [name for name in _CHOICES if name in self.varied or (
            name == "strategy" and any(row.strategy == "auto" for row in self.rows))]
        lines = [[*(name.replace("_", " ") for name in shown), "time", "computes", "waits", "sent",
                  "holds", "of the peak", "limited by"]]
        for row in self.rows:
            line = [_show(name, getattr(row, name)) for name in shown]
            if row.strategy == "auto" and row.chosen is not None:
                line[shown.index("strategy")] = row.chosen if "strategy" not in self.varied else \
                    f"auto: {row.chosen}"
            if row.reason is not None:
                lines.append([*line, f"x {row.reason}"])
                continue
            limit = str(row.limit).split(":")[0] + ("" if row.fits else "; holds too much")
            lines.append([*line, *(_show(name, getattr(row, name)) for name in (
                "seconds", "compute_seconds", "exposed_seconds", "bytes_sent", "peak_bytes",
                "share_of_peak")), limit])
        widths = [max((len(line[n]) for line in lines if n < len(line) - 1), default=0)
                  for n in range(len(lines[0]) - 1)]
        return "\n".join(" | ".join(f"{cell:{width}}" for cell, width in zip(
            line, [*widths[:len(line) - 1], 0])) for line in lines)

    @property
    def csv(self) -> str:
        """All columns of Row, with a line of their names."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_NAMES)
        writer.writerows([getattr(row, name) for name in _NAMES] for row in self.rows)
        return text.getvalue()

    @property
    def json(self) -> str:
        """A list of objects with the names of Row."""
        return json.dumps([dataclasses.asdict(row) for row in self.rows], indent=1) + "\n"

    def svg(self, x: str | None = None, y: str = "seconds", caption: str = "") -> str:
        """A picture: `y` over `x`, else over the first numbers that were varied, and a curve
        for each choice of the rest, with a gap where it cannot be had."""
        numeric = [name for name in self.varied if name not in ("order", "strategy", "direction")]
        if x is None and not numeric:
            raise ValueError("svg: several lengths, ranks, nodes or bandwidths are wanted, of "
                             "which this sweep has one each")
        x = numeric[0] if x is None else x
        if x not in numeric:
            raise ValueError(f"x: numbers of which this sweep has several are wanted, {x!r} is not "
                             f"among them: {', '.join(numeric) or 'there are none'}")
        if y not in _UNITS:
            raise ValueError(f"y: {y!r} is not known; it is one of {', '.join(_UNITS)}")
        if self.rows and all(row.reason is not None for row in self.rows):
            raise ValueError("svg: nothing of this sweep can be had, so that there is no curve")
        found: dict[str, list[tuple[float, float | None]]] = {}
        rest = [name for name in self.varied if name != x]
        for row in self.rows:
            name = ", ".join(_name(column, getattr(row, column)) for column in rest) or y
            # No logarithm has what takes no time.
            found.setdefault(name, []).append((getattr(row, x), getattr(row, y) or None))
        lines = [(name, sorted(line, key=lambda point: point[0])) for name, line in found.items()]
        xs = sorted({getattr(row, x) for row in self.rows})
        ys = [value for _, line in lines for _, value in line if value is not None]
        panel = drawing.Panel(
            lines, caption or f"{_UNITS[y]} by {x.replace('_', ' ')}",
            x_ticks=[(value, _show(x, value)) for value in xs],
            y_ticks=[(value, re.sub(r"\.0+\b", "", _show(y, value))) for value in _ticks(y, ys)])
        return drawing.curves([panel], is_logarithmic=True, has_points=True)

    def save(self, path: str | os.PathLike[str], x: str | None = None,
             y: str = "seconds") -> None:
        """Writes what the name of the file ends with: csv, json, svg or txt, the table."""
        drawing.write(path, self._file(path, x, y))

    def check(self, path: str | os.PathLike[str], x: str | None = None,
              y: str = "seconds") -> None:
        """That `save` could write it, also where no row has a time yet: see `sweep`."""
        self._file(path, x, y)
        drawing.check(path)

    def _file(self, path: str | os.PathLike[str], x: str | None, y: str) -> str:
        kinds = {".csv": lambda: self.csv, ".json": lambda: self.json,
                 ".svg": lambda: self.svg(x, y), ".txt": lambda: self.table + "\n"}
        kind = pathlib.Path(path).suffix
        if kind not in kinds:
            raise ValueError(f"{os.fspath(path)}: a name that ends in .csv, .json, .svg or .txt "
                             "is wanted")
        return kinds[kind]()


def sweep(q: Sizes[int | None], k: Sizes[int | None] | None = None,
          v: Sizes[int | None] | None = None, *, machine: str | os.PathLike[str],
          lengths: Iterable[int] = (), ranks: Iterable[int] = (8,),
          nodes: Iterable[int] | None = None,
          orders: Iterable[str] = ("zigzag",), strategies: Iterable[str] = ("auto",),
          directions: Iterable[str] = ("forward",), bandwidth: Iterable[float] = (1.0,),
          node_bandwidth: Iterable[float] = (1.0,),
          planned: Callable[[Sweep], None] | None = None,
          progress: Callable[[int, int], None] | None = None, **options: Any) -> Sweep:
    """How long attentions of these shapes would take: burst.explain(..., machine=machine).time
    of every combination of what is given.

    A length of a shape that is None is each of `lengths`. `ranks`, `nodes` and `orders` are
    those of burst.Sequence: more `nodes` put fewer ranks on the last axis, which lies inside
    a node where the machine has as many ranks there; left out they are as many as the ranks
    fill. Strategies are names, "auto" for what
    is chosen; directions "forward" and "backward". `bandwidth` and `node_bandwidth` are
    factors of the entries of these names of the machine: of links between nodes, or of all
    where it has no nodes, and of those in a node. `options` are those of burst.explain,
    such as mask= and dtype=. `planned` is called with all rows before any has a time, to say
    early what cannot be done with them, as Sweep.check does; `progress` with how many rows
    are done, of how many.

    What cannot be had is a row with the reason.
    """
    k = q if k is None else k
    shapes = (q, k, k if v is None else v)
    layout = options.get("layout", "bhsd")
    strategies = _each("strategies", strategies, _text)
    for strategy in strategies or ["auto"]:
        arguments.check_options(layout, options.get("scale"), strategy)
    place = arguments.LAYOUTS[layout][1]
    is_open = any(None in x for x in shapes)
    lengths = _each("lengths", lengths, _count)
    if bool(lengths) != is_open:
        raise ValueError("lengths: " + ("are wanted for the lengths of shapes that are None"
                                        if is_open else "no length of a shape is None"))
    ranks = _each("ranks", ranks, _count)
    nodes = None if nodes is None else _each("nodes", nodes, _count)
    bandwidth = _each("bandwidth", bandwidth, _factor)
    node_bandwidth = _each("node_bandwidth", node_bandwidth, _factor)
    orders = _each("orders", orders, _text)
    for order in orders:
        Layout(1, order)
    directions = _each("directions", directions, _text)
    for direction in directions:
        if direction not in DIRECTIONS:
            raise ValueError(f"directions: {direction!r} is not known; there are "
                             f"{' and '.join(DIRECTIONS)}")
    text = plans.read_machine(machine)
    # What is no machine is an error, and not the reason of all rows.
    plans.explain((1, 1, 16, 16), sequence=Sequence(ranks=1), machine=text).time
    machines = {(wide, wide_in_node): widened(widened(text, "bandwidth", wide),
                                              "node_bandwidth", wide_in_node)
                for wide, wide_in_node in itertools.product(bandwidth, node_bandwidth)}
    places = [(count, on_nodes) for count in ranks
              for on_nodes in ([_filled_nodes(text, count)] if nodes is None else nodes)]
    filled = {length: [_filled(name, x, place, length) for name, x in zip("qkv", shapes)]
              for length in lengths or [0]}
    for sizes in filled.values():
        arguments.check_shapes(sizes, arguments.DTYPES[:1] * 3, layout)
    choices = [(Row(sizes[0][place], sizes[1][place], count, on_nodes, order, strategy, direction,
                    *wide), sizes, machines[wide])
               for sizes, (count, on_nodes), order, strategy, direction, wide in itertools.product(
                   filled.values(), places, orders, strategies, directions, machines)]
    if planned is not None:
        planned(Sweep(tuple(row for row, _, _ in choices)))
    rows: list[Row] = []
    for row, sizes, text in choices:
        rows.append(_timed(row, sizes, text, options))
        if progress is not None:
            progress(len(rows), len(choices))
    return Sweep(tuple(rows))


def _each(name: str, values: Iterable[Any],
          check: Callable[[str, Any], _Checked]) -> list[_Checked]:
    """All of an argument, of which there are several."""
    if isinstance(values, str) or not isinstance(cast(object, values), Iterable):
        raise TypeError(f"{name}: a list is wanted, got {values!r}")
    return [check(name, value) for value in values]


def _text(_: str, value: Any) -> str:
    return str(value)


def _count(name: str, value: Any) -> int:
    return arguments.at_least(1, name, value)


def _factor(name: str, value: Any) -> float:
    try:
        factor = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: a factor above 0 is wanted, got {value!r}") from error
    if not 0 < factor < math.inf:
        raise ValueError(f"{name}: a factor above 0 is wanted, got {factor:g}")
    return factor


def _filled_nodes(machine: str, ranks: int) -> int:
    """How many nodes of the machine so many ranks fill; 1 where they fill none."""
    found = _entry("node").search(_without_comments(machine))
    node = int(float(found[2])) if found else 0
    return ranks // node if node > 0 and ranks > node and ranks % node == 0 else 1


def _entry(name: str) -> re.Pattern[str]:
    """An entry of a machine, up to its number, which is decimal."""
    return re.compile(rf'("burst\.{name}"\s*=\s*)([-+.\deE]+)(?=\s*:)')


def _without_comments(machine: str) -> str:
    return re.sub(r"//[^\n]*", "", machine)


def _filled(name: str, shape: Sizes[int | None], place: int, length: int) -> tuple[int, ...]:
    """A shape whose length is known; other sizes that are None are refused."""
    return tuple(length if size is None and n == place else
                 arguments.at_least(1, f"{name}: a size", size)
                 for n, size in enumerate(shape))


def widened(machine: str, entry: str, factor: float) -> str:
    """The text of a machine whose links of `entry`, bandwidth or node_bandwidth, are wider."""
    if factor == 1:
        return machine
    text, count = _entry(entry).subn(
        lambda found: f"{found[1]}{float(found[2]) * factor:.17e}", _without_comments(machine))
    if count == 0:
        raise ValueError(f"{entry}: the machine has no decimal entry \"burst.{entry}\" to make "
                         "wider")
    return text


def _timed(row: Row, shapes: Sizes[Any], machine: str, options: dict[str, Any]) -> Row:
    if row.ranks % row.nodes:
        return dataclasses.replace(row, reason=f"{row.nodes} nodes do not divide {row.ranks} ranks")
    try:
        plan = plans.explain(*shapes, sequence=Sequence(ranks=row.ranks, order=row.order,
                                                        nodes=row.nodes),
                             strategy=row.strategy, backward=row.direction == "backward",
                             machine=machine, **options)
        found = plan.time
        pin = arguments.strategy_of(row.strategy, row.direction == "backward")
        return dataclasses.replace(
            row, chosen=plan.chosen if pin is None else pin,
            **{name: found.get(name) for name in _NAMES if name in found})
    except Error as error:
        reason = re.sub(r"^pins the strategy (?:.* in (\d+ chunks)|[^,]*), which ", _subject,
                        str(error).split("\n")[0])
        if "goes over several nodes" in reason:
            reason = f"goes over several nodes, of which the {row.ranks} ranks have {row.nodes}"
        return dataclasses.replace(row, reason=reason)


def _subject(found: re.Match[str]) -> str:
    """What a reason is of, where the strategy is not all of it."""
    return f"{found[1]} " if found[1] else ""


def _show(name: str, value: Any) -> str:
    """A value of a column, for people."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    if name.endswith("seconds"):
        return _round(value, 1000, (("us", 1e-6), ("ms", 1e-3), ("s", 1.0)))
    if name.endswith("bytes") or name.startswith("bytes"):
        return _round(value, 1024, (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20),
                                    ("GiB", 2.0**30), ("TiB", 2.0**40)))
    if name == "share_of_peak":
        return f"{100 * value:.0f} %"
    if name.endswith("length"):
        for unit, size in (("M", 2**20), ("K", 2**10)):
            if value >= size and value % size == 0:
                return f"{value // size}{unit}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _round(value: float, step: int, units: Sizes[tuple[str, float]]) -> str:
    """With three digits, in the last unit that is not larger."""
    name, unit = units[0]
    for name, unit in units:
        if value < 0.9995 * step * unit:
            break
    number = value / unit
    digits = 0 if name == "B" or number >= 99.95 else 1 if number >= 9.995 else 2
    return f"{number:.{digits}f} {name}"


def _name(column: str, value: Any) -> str:
    """A value in the name of a curve."""
    text = _show(column, value)
    return text if isinstance(value, str) else f"{text} {column.replace('_', ' ')}"


def _ticks(name: str, values: Sizes[float]) -> Iterator[float]:
    """Powers of ten, of 1024 or, where there are few of these, of two, from below all values to
    above them."""
    if not values:
        yield from (1.0, 2.0)
        return
    step = 2.0
    if name.endswith("seconds") and max(values) > 20 * min(values):
        step = 10.0
    elif "bytes" in name and max(values) > 32 * min(values):
        step = 8.0
    first = math.floor(math.log(min(values), step) + 1e-9)
    last = max(math.ceil(math.log(max(values), step) - 1e-9), first + 1)
    yield from (step**n for n in range(first, last + 1))
