# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/reach.md and its pictures."""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import tempfile
import textwrap

from reach import plot
from reach.attention import Problem, together
from reach.compare import ERROR, ORDER, TIE, Table, compare
from reach.forward import (MACHINE, MODEL, STRATEGIES, Run, best, decode, prefill, sensitivity,
                           training)
from reach.machines import GB, ROOT, Machine, machine, model
from reach.peers import MERGED
from reach.tables import Figure, calibration

INTRODUCTION = """# What was published, predicted; and what was not

Figures that others published of attention over many GPUs, beside what burst's clock says they
should be. The clock runs the programs of all ranks over a machine of `machines/` (`burst-opt
--burst-simulate`); the rest of a step is counted by formulas of `bench/reach/step.py`, each
with its source. Published figures stand in `bench/reach/published.json` and nowhere else,
models in `models/`. Nothing on this page was measured by this project.

Rates of kernels are those of published measurements on one GPU. What is fitted to a cell that
is predicted is listed in `bench/reach/calibration.json`, two cells of a table at most; these
cells are marked ° below, and their errors are not counted:

{calibrated}

What the runs of a table were, where their sources do not say it (full masks, what overlaps, what is
kept, how operations are counted), was settled with the table in view; rates of kernels, links and
memory were not.

The goals for each table: a median error of at most {error:.0f} %, {order:.0f} % of the pairs of
methods in the order of the published figures (those that differ by more than {tie:.0f} %; what
is wrongly said not to fit counts as wrong), and every cell that ran out of memory, and no
other, said to. `scripts/reach` writes this page.

## All tables

| table | cells | median error | in order | memory right | goals |
|---|---|---|---|---|---|
{summary}

Of {tables} tables {met} meet all three. Over all {cells} cells the median error is {median:.0f}
%, {right} of {pairs} pairs are in order ({share:.0f} %), and {fits} of {asked} cells are
rightly said to fit or not.

What fails, most often:

* *Small shards.* Below 8K positions on a GPU published systems take tens of milliseconds more for
  each attention, whatever its length: programs in Python that launch many kernels. One table has a
  cell that fixes it, the others show it.
* *Transfers through the host.* Behind the longest kernels of the first paper they seem not to be
  hidden at all, at shorter ones they are.
* *Order within a few percent.* Methods that send and compute alike are predicted alike; what their
  implementations make of it is not known.
* *Kernels of many short documents.* They are slower than a count of tiles says.
* *Memory close to the limit*, where it is an allocator that decides.

## What all tables assume

* Published systems are timed by the programs of burst that send what theirs send: keys and
  values, or queries, round one ring or two, Ulysses around a ring. Burst's send less where a
  causal mask in zigzag order needs half of a slice, and more where gradients travel, in fp32.
  Where transfers are hidden, neither shows.
* Partial results of a hop are merged by kernels of their own, {merged} bytes of memory traffic
  for each element, as in those systems; burst's kernels need none.
* Matrix products run at the most that large ones reach, norms and activations at the bandwidth
  of memory. Python, and kernels that wait for it, take no time.
* Memory is what the formulas count, and 2 GB for CUDA and NCCL; an allocator that keeps more is
  not counted.
"""

# By table: how its runs are taken, and what fails where a goal is missed.
NOTES: dict[str, dict[str, str]] = json.loads(
    pathlib.Path(__file__).with_name("notes.json").read_text(encoding="utf-8"))


def number(value: Figure) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def cell(told: Figure, found: Figure, fixed: bool) -> str:
    if told is None:
        return ""
    text = f"{number(told)} / {number(found)}"
    if isinstance(told, (int, float)) and isinstance(found, (int, float)):
        text += f" ({100 * (found / told - 1):+.0f} %)"
    elif told != found:
        text = f"**{text}**"
    return text + (" °" if fixed else "")


def share(right: int, total: int) -> str:
    return f"{right} of {total}" if total else "-"


def summary(table: Table) -> str:
    return (f"| [{table.title}](#{anchor(table.title)}) | {len(table.cells())} | "
            f"{100 * table.median():.0f} % | {share(*table.order())} | {share(*table.memory())} | "
            f"{'met' if table.met() else 'missed'} |")


def anchor(title: str) -> str:
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def wrapped(paragraph: str) -> str:
    return textwrap.fill(paragraph, 100, break_long_words=False, break_on_hyphens=False)


def section(table: Table) -> str:
    notes = NOTES[table.name]
    out = [f"## {table.title}", "", wrapped(f"Published / predicted, {table.unit}. Source: "
                                            f"{table.source}."), ""]
    if len(table.columns) > 2:
        out += [f"![{table.title}](reach/{table.name}.svg)", ""]
    out += ["| | " + " | ".join(table.columns) + " |", "|---|" + "---|" * len(table.columns)]
    for row in table.published:
        cells = [cell(told, found, (row, column) in table.fixed) for column, told, found in zip(
            table.columns, table.published[row], table.predicted[row], strict=True)]
        out.append(f"| {row} | " + " | ".join(cells) + " |")
    for paragraph in (notes["runs"], notes["remark"]):
        out += ["", wrapped(paragraph)] if paragraph else []
    if not table.met():
        if not notes["fails"]:
            raise ValueError(f"{table.name} misses a goal, and notes.json does not say what fails")
        out += ["", wrapped(f"**Missed**: {notes['fails']}")]
    return "\n".join(out) + "\n"


def seconds(value: float) -> str:
    if value >= 120:
        return f"{value / 60:.1f} min"
    return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def run_row(first: str, run: Run, share_of: str) -> str:
    return (f"| {first} | {run.how} | {seconds(run.seconds)} | {seconds(run.attention)} | "
            f"{seconds(run.exposed)} | {run.bytes_ / GB:.0f} GB{'' if run.fits else ' (too much)'} "
            f"| {share_of} |")


HEADER = ("| | strategy | time | attention | of it waits | memory | {} |\n"
          "|---|---|---|---|---|---|---|")


def faster(gains: dict[str, float]) -> str:
    ordered = sorted(gains.items(), key=lambda item: -item[1])
    return ", ".join(f"{called} {gain:.2f}" for called, gain in ordered)


def outlook() -> str:
    base, long, million = machine(MACHINE), 8 << 20, 1 << 20
    keeps = ("layers", "half", "attention")
    # A group of 8 for tensors has its own share of links; Ulysses has no use for it here.
    ways = [(1, strategy) for strategy in STRATEGIES] + [(8, "ring_kv"), (8, "all_gather")]

    def train(where: Machine, way: tuple[int, str], keep: str) -> Run:
        return training(where, long, 1024, *way, keep)
    steps = {(way, keep): train(base, way, keep) for way in ways for keep in keeps}
    chosen = best(list(steps.values()))
    way, keep = next(key for key, run in steps.items() if run is chosen)
    gains = sensitivity(base, lambda where: train(where, way, keep))
    operations = training_operations(long)
    out = ["## Not published: Llama-3-405B on H200", "",
           wrapped("Predicted, for machines of `machines/h200.mlir` and bf16. "
                   "*waits* is what no computation hides. Kernels and links are as published ones "
                   "are, nothing fails, and no other job uses the network."), "",
           "### A step of 8M positions on 1,024 GPUs", "",
           wrapped("One sequence, ZeRO over all GPUs, the loss by sequence; of what is kept, the "
                   "fastest that fits. The share is of useful operations in the datasheet's "
                   "peak."), "",
           HEADER.format("of the peak")]
    for each in ways:
        run = best([steps[each, keep] for keep in keeps])
        out.append(run_row("**chosen**" if run is chosen else "", run,
                           f"{100 * operations / 1024 / base.peak / run.seconds:.0f} %"))
    out += ["", wrapped(f"The limit is {chosen.limit}. Twice as fast, a part makes the step faster "
                        f"by: {faster(gains)}."), "",
            "### The first token after 1M positions", "", HEADER.format("limit")]
    served = []
    for ranks in (16, 32, 64, 128, 256):
        runs = {(strategy, tensor): prefill(base, million, ranks, strategy, tensor)
                for tensor in (8, 16) if ranks % tensor == 0
                for strategy in ("ring_kv", "all_gather")}
        run = best(list(runs.values()))
        served.append((ranks, next(key for key, value in runs.items() if value is run), run))
        out.append(run_row(f"{ranks} GPUs", run, run.limit or "the kernel"))
    ranks, (strategy, tensor), _ = next((each for each in served if each[2].fits), served[-1])
    gains = sensitivity(base, lambda where: prefill(where, million, ranks, strategy, tensor))
    out += ["", wrapped(
        "Weights in 16 bits over the GPUs of one node or two, the sequence over such groups; "
        "feed-forward layers take 32K positions at a time. On "
        f"{ranks} GPUs, twice as fast, a part makes it faster by: {faster(gains)}."), "",
            "### A token after 1M positions", "", HEADER.format("limit")]
    for batch in (1, 8):
        for ranks in (16, 32, 64, 128):
            run = best([decode(base, million, ranks, strategy, batch)
                        for strategy in ("ring_q", "direct_q", "gather_q")])
            out.append(run_row(f"{ranks} GPUs", run, run.limit))
    gains = {ranks: sensitivity(base, lambda where, ranks=ranks: decode(
        where, million, ranks, "gather_q", 1)) for ranks in (16, 64)}
    out += ["", wrapped(
        "Heads are over the GPUs of a node, positions of the cache over nodes, weights of other "
        "layers over all GPUs (Helix, arXiv 2507.07120); collectives of few bytes go by trees. "
        "Of one sequence, twice as fast, a part makes a token faster on 16 GPUs by: "
        f"{faster(gains[16])}; on 64 by: {faster(gains[64])}."), ""]
    return "\n".join(out)


def training_operations(length: int) -> float:
    shape = model(MODEL)
    attention = Problem(length, shape.heads, shape.key_heads, 1, "").operations
    return 6.0 * (shape.active_weights + shape.head_weights) * length + \
        3.5 * shape.layers * attention


def calibrated(tables: list[Table]) -> str:
    titles = {table.name: table.title for table in tables}
    out = []
    for name, cells in calibration().items():
        for each in cells:
            entries = " and ".join(f"`{entry}`" for entry in each.get("entries", []))
            value = seconds(float(each["value"])) if "value" in each else \
                f"{entries} of `machines/{each['machine']}.mlir`"
            out += textwrap.wrap(f"* {titles[name]}: {each['row']}, {each['column']} fixes the "
                                 f"{each['fixes']}: {value}", 100, subsequent_indent="  ")
    return "\n".join(out)


def comparison(tables: list[Table]) -> str:
    """The page but for its outlook."""
    errors = [abs(error) for table in tables for error in table.errors()]
    order = [table.order() for table in tables]
    memory = [table.memory() for table in tables]
    right, pairs = sum(a for a, _ in order), sum(b for _, b in order)
    head = INTRODUCTION.format(
        calibrated=calibrated(tables), error=100 * ERROR, order=100 * ORDER, tie=100 * TIE,
        summary="\n".join(summary(table) for table in tables), tables=len(tables),
        met=sum(table.met() for table in tables), cells=sum(len(t.cells()) for t in tables),
        median=100 * statistics.median(errors), right=right, pairs=pairs,
        share=100 * right / pairs, fits=sum(a for a, _ in memory),
        asked=sum(b for _, b in memory), merged=MERGED)
    # Figures make lines longer or shorter: paragraphs are filled anew.
    head = "\n\n".join(wrapped(" ".join(part.split())) if part[0].isalpha() else part
                        for part in head.split("\n\n"))
    return "\n".join([head, *(section(table) for table in tables)])


def picture(table: Table) -> str:
    return plot.lines(table.title, table.unit, table.columns, table.published, table.predicted)


def replace(path: pathlib.Path, content: str) -> None:
    """Whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False,
                                     encoding="utf-8") as file:
        file.write(content)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def write(folder: pathlib.Path = ROOT / "docs") -> None:
    tables = compare()
    together(outlook)
    replace(folder / "reach.md", f"{comparison(tables)}\n{outlook()}")
    for table in tables:
        if len(table.columns) > 2:
            replace(folder / "reach" / f"{table.name}.svg", picture(table))
