# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table, in Markdown and in JSON."""

import json
import math
import os
import statistics


def ratio(found):
    """Of a cell: how much faster burst is than the best peer, in turns, and which that
    is; nothing where one of them was not timed."""
    others = {name: x for name, x in found.items() if name != "burst" and "median" in x}
    if not others:
        return None, None
    best = min(others, key=lambda name: others[name]["median"])
    if "median" not in found["burst"]:
        return None, best
    return statistics.median(x / y for x, y in zip(others[best]["seconds"],
                                                   found["burst"]["seconds"])), best


def as_json(head, cells):
    """`cells` are pairs of a cell and what was found."""
    rows = []
    for cell, found in cells:
        value, best = ratio(found)
        rows.append({"name": cell.name, "question": cell.question, "peers": found, "best": best,
                     "ratio": value})
    return json.dumps({**head, "cells": rows, "summary": counts(cells)}, indent=1) + "\n"


def counts(cells):
    """Of cells in which a peer was timed."""
    ratios = [ratio(found) for _, found in cells]
    known = [value for value, _ in ratios if value is not None]
    return {"cells": sum(best is not None for _, best in ratios),
            "ahead": sum(value > 1 for value in known),
            "median": statistics.median(known) if known else None}


def as_markdown(head, kinds, cells):
    """`kinds` are the columns before that of burst. The last line counts the cells."""
    lines = ["# Attention from Python on CPUs", "",
             "What cells and columns are, says `scripts/bench-python --help`. Times are in "
             "milliseconds:", "medians of rounds, and half of the distance of their quartiles.", ""]
    lines += [f"* {name}: {value}" for name, value in head.items() if isinstance(value, str)]
    lines += [f"* {title}: {name}" for title, name in head["peers"].items()]
    for many in (False, True):
        columns = [kind for kind in kinds if kind.many == many]
        rows = [(cell, found) for cell, found in cells if (cell.ranks > 1) == many]
        if rows:
            lines += ["", *table(columns, rows)]
    lines += ["", *reasons(kinds, cells), summary(cells), ""]
    return "\n".join(lines)


def table(columns, rows):
    titles = ["cell", *(kind.title for kind in columns), "burst", "burst over the best"]
    lines = [line_of(titles), "|" + "---|" * len(titles)]
    for cell, found in rows:
        value, best = ratio(found)
        texts = [text_of(found.get(kind.name, {"none": ""})) for kind in columns]
        over = "" if value is None else f"{value:.2f}"
        if value is not None and len(columns) > 1:
            over += f", {best}"
        lines.append(line_of([cell.name, *texts, text_of(found["burst"]), over]))
    return lines


def line_of(texts):
    return "| " + " | ".join(text.replace("|", "/") for text in texts) + " |"


def text_of(of_peer):
    if "failed" in of_peer:
        text = of_peer["failed"]
        return text if text.startswith(("missing: ", "given up: ", "failed: ")) else \
            f"failed: {text}"
    if "wrong" in of_peer:
        return f"wrong: {of_peer['wrong']}"
    if "median" not in of_peer:
        return "none"
    time = of_peer["median"] * 1e3
    digits = max(0, 2 - math.floor(math.log10(time))) # three significant ones
    return f"{time:.{digits}f} ±{spread(of_peer['seconds']) * 100:.0f} %"


def spread(seconds):
    """Half of the distance of the quartiles, over the median."""
    if len(seconds) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return (high - low) / 2 / middle


def reasons(kinds, cells):
    """Why there is none."""
    lines = []
    for kind in kinds:
        for text in dict.fromkeys(found[kind.name]["none"] for _, found in cells
                                  if "none" in found.get(kind.name, {})):
            lines.append(f"* none in the column {kind.title}: {text}")
    return [*lines, ""] if lines else []


def summary(cells):
    of = counts(cells)
    if of["median"] is None:
        return f"burst over the best peer: no ratio, in {of['cells']} cells with a peer"
    return (f"burst over the best peer: median of the ratios {of['median']:.2f}, ahead in "
            f"{of['ahead']} of {of['cells']} cells")


def check_prefix(prefix):
    """Why files cannot be written there, or nothing."""
    folder = os.path.dirname(prefix) or "."
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        return f"got {prefix!r}, wanted a name in a folder that can be written to"
    for path in (f"{prefix}.md", f"{prefix}.json"):
        if os.path.exists(path) and not os.path.isfile(path):
            return f"got {prefix!r}, but {path} is no file"
    return None


def write(path, text):
    """Whole or not at all."""
    new = f"{path}.{os.getpid()}.new"
    try:
        with open(new, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    finally:
        if os.path.exists(new):
            os.unlink(new)
