# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sets predictions beside what was published."""

from __future__ import annotations

import dataclasses
import itertools
import statistics

from reach.attention import together
from reach.tables import OOM, Figure, calibration, predict, published

# Goals: the median error of a table, and the share of pairs of methods in the right order.
ERROR, ORDER = 0.10, 0.90
# Figures of methods that are closer have no order: runs of the same command differ by as much.
TIE = 0.02


@dataclasses.dataclass(frozen=True)
class Table:
    name: str
    title: str
    source: str
    unit: str
    columns: list[str]
    published: dict[str, list[Figure]]
    predicted: dict[str, list[Figure]]
    fixed: set[tuple[str, str]]  # cells that calibrate
    ordered: bool  # rows are methods

    def cells(self) -> list[tuple[str, str, Figure, Figure]]:
        return [(row, column, told, found) for row in self.published
                for column, told, found in zip(self.columns, self.published[row],
                                               self.predicted[row], strict=True)
                if told is not None]

    def errors(self) -> list[float]:
        """Of cells that nothing was calibrated by, signed, in parts of what was published."""
        return [found / told - 1 for row, column, told, found in self.cells()
                if isinstance(told, (int, float)) and isinstance(found, (int, float))
                and (row, column) not in self.fixed]

    def median(self) -> float:
        return statistics.median(abs(error) for error in self.errors())

    def order(self) -> tuple[int, int]:
        """Pairs of methods of a column in the right order, and all that have one."""
        right = total = 0
        if not self.ordered:
            return right, total
        for index in range(len(self.columns)):
            for a, b in itertools.combinations(self.published, 2):
                told = self.published[a][index], self.published[b][index]
                found = self.predicted[a][index], self.predicted[b][index]
                if not all(isinstance(value, (int, float)) for value in told):
                    continue
                if abs(told[0] / told[1] - 1) <= TIE:  # type: ignore[operator]
                    continue
                total += 1
                # What is said not to fit has no place in the order.
                right += all(isinstance(value, (int, float)) for value in found) and (
                    told[0] < told[1]) == (found[0] < found[1])  # type: ignore[operator]
        return right, total

    def memory(self) -> tuple[int, int]:
        """Cells of which it is rightly said whether they fit, and all of a table with any OOM."""
        cells = self.cells()
        if not any(told == OOM or found == OOM for _, _, told, found in cells):
            return 0, 0
        return sum((told == OOM) == (found == OOM) for _, _, told, found in cells), len(cells)

    def met(self) -> bool:
        right, total = self.order()
        fits, cells = self.memory()
        return self.median() <= ERROR and right >= ORDER * total and fits == cells


def compare() -> list[Table]:
    def ask() -> dict[str, dict[str, list[Figure]]]:
        return {name: {row: [None if told is None else predict(name, row, column)
                             for column, told in zip(table["columns"], figures, strict=True)]
                       for row, figures in table["rows"].items()}
                for name, table in published().items()}
    together(ask)
    predicted = ask()
    return [Table(name, table["title"], table["source"], table["unit"], table["columns"],
                  table["rows"], predicted[name],
                  {(cell["row"], cell["column"]) for cell in calibration().get(name, [])},
                  ordered=len(table["rows"]) > 1 and "cases" not in table)
            for name, table in published().items()]
