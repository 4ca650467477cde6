# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of tables, in SVG: published figures as dots, predicted ones as lines."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf")
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, LEGEND = 720, 360, 64, 34, 40, 200


def _ticks(low: float, high: float) -> list[float]:
    found = [factor * 10.0 ** power
             for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
             for factor in (1, 2, 5)]
    inside = [tick for tick in found if low <= tick <= high]
    return inside if len(inside) <= 9 else [tick for tick in inside if f"{tick:e}"[0] == "1"]


def lines(title: str, unit: str, columns: list[str], rows: Mapping[str, Sequence[object]],
          predicted: Mapping[str, Sequence[object]]) -> str:
    values = [value for table in (rows, predicted) for row in table.values() for value in row
              if isinstance(value, (int, float))]
    low, high = min(values) / 1.15, max(values) * 1.15
    right, floor = WIDTH - LEGEND, HEIGHT - BOTTOM

    def x(index: int) -> float:
        return LEFT + (index + 0.5) * (right - LEFT) / len(columns)

    def y(value: float) -> float:
        return floor - (floor - TOP) * math.log(value / low) / math.log(high / low)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="20" font-size="13">{html.escape(title)}, {unit}</text>']
    for tick in _ticks(low, high):
        out.append(f'<path d="M{LEFT} {y(tick):.1f}H{right}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for index, column in enumerate(columns):
        out.append(f'<text x="{x(index):.1f}" y="{floor + 16}" text-anchor="middle">'
                   f'{html.escape(column)}</text>')
    for number, row in enumerate(rows):
        color = COLORS[number % len(COLORS)]
        points = [(x(index), y(value)) for index, value in enumerate(predicted[row])
                  if isinstance(value, (int, float))]
        if points:
            path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
            out.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        out += [f'<circle cx="{x(index):.1f}" cy="{y(value):.1f}" r="3.5" fill="{color}"/>'
                for index, value in enumerate(rows[row]) if isinstance(value, (int, float))]
        at = TOP + 12 + 18 * number
        out.append(f'<circle cx="{right + 14}" cy="{at - 4}" r="3.5" fill="{color}"/>'
                   f'<text x="{right + 24}" y="{at}">{html.escape(row)}</text>')
    at = TOP + 24 + 18 * len(rows)
    out += [f'<text x="{right + 8}" y="{at}" fill="#666">dots: published</text>',
            f'<text x="{right + 8}" y="{at + 16}" fill="#666">lines: predicted</text>',
            "</svg>", ""]
    return "\n".join(out)
