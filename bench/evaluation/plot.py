# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seconds by length as SVG, both in logarithms: first token and step side by side."""

import math
import statistics

from burst import drawing

from evaluation.measure import FIRST, STEP


def of(found):
    """None where there is no second length."""
    cells = [cell for cell in found.get("measure", {}).get("cells", ())
             if cell["group"] == "length"]
    if len(cells) < 2:
        return None
    names = list(dict.fromkeys(name for cell in cells for name in cell["methods"]))
    return drawing.curves([panel(cells, names, what) for what in (FIRST, STEP)],
                          is_logarithmic=True, has_points=True)


def panel(cells, names, what):
    lines = [(name, [(cell["length"], statistics.median(cell["methods"][name][what]["seconds"])
                      if what in cell["methods"].get(name, {}) else None) for cell in cells])
             for name in names]
    exponents = [math.log2(y) for _, line in lines for _, y in line if y is not None]
    low, high = math.floor(min(exponents, default=0)), math.ceil(max(exponents, default=1))
    return drawing.Panel(
        lines, f"{what}, seconds by positions",
        x_ticks=[(cell["length"], str(cell["length"])) for cell in cells],
        y_ticks=[(2.0 ** n, f"{2.0 ** n:g}") for n in range(low, max(high, low + 1) + 1)])
