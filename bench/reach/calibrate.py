# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints what each calibrated quantity has to be for its cell to be predicted exactly.

    PYTHONPATH=bench python3 -m reach.calibrate

Values are put into machines/ and calibration.json by hand, rounded.
"""

from __future__ import annotations

import pathlib
import re
import tempfile
from collections.abc import Callable
from unittest import mock

from reach import machines, tables
from reach.machines import Machine, machine
from reach.tables import calibration, magi_shape, published


def solve(error: Callable[[float], float], low: float, high: float) -> float:
    """Where a monotonous function crosses 0, by halving on a scale of powers."""
    rising = error(high) > error(low)
    for _ in range(24):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if (error(middle) < 0) == rising else (low, middle)
    return (low * high) ** 0.5


def with_entries(base: Machine, entries: list[str], value: float, folder: str) -> Machine:
    text = base.path.read_text(encoding="utf-8")
    for entry in entries:
        text, count = re.subn(rf'("{re.escape(entry)}" = )[-+.e\d]+', rf"\g<1>{value!r}", text)
        if count != 1:
            raise KeyError(f"{base.path}: {count} entries {entry}, wanted 1")
    path = pathlib.Path(folder) / f"{base.name}-{value!r}.mlir"
    path.write_text(text, encoding="utf-8")
    return machines.read(path)


def needed(table: str, cell: dict) -> float:
    told = published()[table]
    target = told["rows"][cell["row"]][told["columns"].index(cell["column"])]

    def error_of() -> float:
        found = tables.predict(table, cell["row"], cell["column"])
        assert isinstance(found, float), (table, cell, found)
        return found - target
    if "entries" not in cell:
        kept = cell["value"]

        def error_with(value: float) -> float:
            cell["value"] = value
            magi_shape.cache_clear()
            return error_of()
        try:
            return solve(error_with, 1e-5, 1.0)
        finally:
            cell["value"] = kept
            magi_shape.cache_clear()
    with tempfile.TemporaryDirectory(prefix="reach-") as folder:
        def error_on(value: float) -> float:
            base = with_entries(machine(cell["machine"]), cell["entries"], value, folder)
            with mock.patch.object(tables, "machine", lambda name: base if name == cell["machine"]
                                   else machine(name)):
                return error_of()
        return solve(error_on, 1e9, 1e12)


if __name__ == "__main__":
    for name, cells in calibration().items():
        for each in cells:
            print(f"{name}: {each['row']}, {each['column']}: {needed(name, each):.4g}")
