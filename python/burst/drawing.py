# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Curves as a picture, SVG, by nothing but Python; files that are whole or not there."""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

Curve = Sequence[tuple[float, float | None]]
Tick = tuple[float, str]

_COLORS = ("#1b6ca8", "#d1495b", "#3a7d44", "#7b4fa3", "#c77d1e", "#4a4a4a", "#1a9c9c")
_WIDTH, _HEIGHT = 640, 360


@dataclasses.dataclass(frozen=True)
class Panel:
    """Names and points (x, y) of curves, which have a gap where y is None. The axis of y begins
    at 0, with a line at each quarter, or with `y_ticks` at each of these."""

    lines: Sequence[tuple[str, Curve]]
    caption: str
    x_ticks: Sequence[Tick] = ()
    y_ticks: Sequence[Tick] = ()


def curves(drawn: Sequence[Panel], *, is_logarithmic: bool = False,
           has_points: bool = False) -> str:
    """Panels side by side, all of whose curves have the names of the first. With
    `is_logarithmic` x and y are logarithms, y from the first tick to the last one."""
    # Names of curves that fall stand in the corner above them, others beside.
    is_beside = bool(drawn[0].x_ticks)
    end = _WIDTH * len(drawn)
    name_at = f'x="{end}"' if is_beside else f'x="{end - 25}" text-anchor="end"'
    names = [name for name, _ in drawn[0].lines]
    width = end + (7 * max(map(len, names), default=0) if is_beside else 0)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{_HEIGHT}" fill="white"/>']
    for n, panel in enumerate(drawn):
        parts += _panel(panel, _WIDTH * n, name_at if n == 0 else "", is_logarithmic, has_points)
    return "\n".join(parts) + "</svg>\n"


def _panel(panel: Panel, begin: int, name_at: str, is_logarithmic: bool,
           has_points: bool) -> list[str]:
    """One that begins so many pixels from the left; its names stand there, if anywhere."""
    xs = [x for _, line in panel.lines for x, _ in line]
    ys = [y for _, line in panel.lines for _, y in line if y is not None]
    top = max(ys, default=1.0)
    y_ticks = panel.y_ticks or [(top * n / 4, f"{top * n / 4:.1f}") for n in range(5)]
    left, right = begin + (60 if panel.x_ticks else 50), begin + _WIDTH - 20
    bottom, above = _HEIGHT - 40, 40
    place = math.log2 if is_logarithmic else float
    across = _scale(place, min(xs, default=0), max(xs, default=1), left, right)
    up = _scale(place, y_ticks[0][0], y_ticks[-1][0], bottom, above)
    drawn: list[str] = []
    for y, text in y_ticks:
        drawn.append(f'<path d="M{left} {up(y):.1f}H{right}" stroke="#ddd"/>'
                     f'<text x="{left - 5}" y="{up(y) + 4:.1f}" text-anchor="end">'
                     f'{escape(text)}</text>')
    for x, text in panel.x_ticks:
        drawn.append(f'<path d="M{across(x):.1f} {bottom}v4" stroke="#888"/>'
                     f'<text x="{across(x):.1f}" y="{bottom + 16}" text-anchor="middle">'
                     f'{escape(text)}</text>')
    for n, (name, line) in enumerate(panel.lines):
        color = _COLORS[n % len(_COLORS)]
        # Curves that are equal lie on each other: dashes show all of them.
        dash = f"{12 - 3 * n % 12} {3 * n}"
        for piece in _pieces(line):
            points = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in piece)
            drawn.append(f'<polyline points="{points}" fill="none" stroke="{color}" '
                         f'stroke-width="2" stroke-dasharray="{dash}"/>')
            drawn += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="{color}"/>'
                      for x, y in piece if has_points]
        if name_at:
            drawn.append(f'<text {name_at} y="{30 + 16 * n}" fill="{color}">{escape(name)}</text>')
    drawn.append(f'<text x="{begin + _WIDTH / 2}" y="{_HEIGHT - 6}" text-anchor="middle">'
                 f'{escape(panel.caption)}</text>')
    return drawn


def _scale(place: Callable[[float], float], first: float, last: float, begin: int,
           end: int) -> Callable[[float], float]:
    """From [first, last] to pixels [begin, end]."""
    low, high = place(first), place(last)
    return lambda x: begin + (end - begin) * (place(x) - low) / ((high - low) or 1)


def _pieces(line: Curve) -> list[list[tuple[float, float]]]:
    """A curve between its gaps."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in line:
        if y is None:
            pieces.append([])
        else:
            pieces[-1].append((x, y))
    return [piece for piece in pieces if piece]


def check(path: str | os.PathLike[str]) -> None:
    """That `write` could write it."""
    folder = pathlib.Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)}: a file in a folder that exists is wanted, "
                                f"{folder} is none")
    if pathlib.Path(path).is_dir():
        raise IsADirectoryError(f"{os.fspath(path)}: a file is wanted, it is a folder")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{os.fspath(path)}: a file in a folder that can be written is "
                              f"wanted, {folder} cannot")


def write(path: str | os.PathLike[str], text: str) -> None:
    """To a new file, which then replaces the old one."""
    new = pathlib.Path(f"{os.fspath(path)}.new")
    new.write_text(text, encoding="utf-8")
    try:
        new.replace(path)
    except OSError:
        new.unlink()
        raise
