# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables, in Markdown and in JSON. Everything in them was found by the run."""

import datetime
import json
import os
import pathlib
import platform
import statistics
import textwrap

import torch

import burst
import provenance
from evaluation import perplexity, plot
from evaluation.check import BOUNDS
from evaluation.collectives import REDUCE_SCATTER
from evaluation.measure import FIRST, STEP
from evaluation.methods import METHODS
from evaluation.planted import PLANTED
from evaluation.traffic import PHASES

MIB = 1 << 20


def head(is_full):
    return {"date": datetime.date.today().isoformat(), "commit": provenance.commit(),
            "processor": f"{provenance.processor()}, {len(os.sched_getaffinity(0))} cores",
            "Python": platform.python_version(), "PyTorch": f"{torch.__version__}, gloo",
            "burst": burst.__version__, "run": "full" if is_full else "short",
            "load before": f"{os.getloadavg()[0]:.1f}"}


def finish(found, failures):
    found["load after"] = f"{os.getloadavg()[0]:.1f}"
    if float(found["load before"]) > len(os.sched_getaffinity(0)):
        found["others"] = "had the cores, too: seconds are longer than on a quiet machine, those " \
            "of CPUs less so"
    found["failures"] = failures


#===----------------------------------------------------------------------===#
# Markdown
#===----------------------------------------------------------------------===#


def as_markdown(found):
    lines = ["# Whole models over CPU ranks", "", *paragraph(
        "The evaluation of BurstAttention (arXiv 2403.09347) on this machine, by "
        "`scripts/evaluate`, whose `--help` says what rows and columns are."), ""]
    lines += [f"* {name}: {value}" for name, value in found.items() if isinstance(value, str)]
    if "check" in found:
        lines += ["", *of_check(found["check"])]
        if many := [cell for cell in found["check"] if cell["ranks"] > 1]:
            lines += ["", *of_traffic(max(many, key=lambda cell: cell["ranks"]))]
    if "perplexity" in found:
        lines += ["", *of_perplexity(found["perplexity"])]
    if "measure" in found:
        lines += ["", *of_measure(found["measure"])]
    lines += ["", *(f"failed: {text}" for text in found["failures"])]
    lines.append(f"{len(found['failures'])} failures")
    return "\n".join(lines) + "\n"


def paragraph(text, **options):
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False, **options)


def table(titles, rows):
    return [line_of(titles), "|" + "---|" * len(titles), *map(line_of, rows)]


def line_of(texts):
    return "| " + " | ".join(str(text).replace("|", "/") for text in texts) + " |"


class Reasons:
    """Why cells are empty, told once below a table."""

    def __init__(self):
        self.texts = {} # by text, its number

    def mark(self, text):
        return f"none ({self.texts.setdefault(text, len(self.texts) + 1)})"

    def lines(self):
        return [""] * bool(self.texts) + [line for text, n in self.texts.items()
                                          for line in paragraph(f"{n}. {text}",
                                                                subsequent_indent="   ")]


def of_check(cells):
    f64, f32 = (f"{BOUNDS[dtype]:.0e}" for dtype in (torch.float64, torch.float32))
    reasons = Reasons()
    rows = [[method.name, method.title,
             *(checked(cell["methods"].get(method.name), reasons) for cell in cells)]
            for method in (*METHODS.values(), *PLANTED.values())
            if any(method.name in cell["methods"] for cell in cells)]
    return ["## The same model by every method", "", *paragraph(
                "Logits, the loss and all gradients beside those of the whole model on one process "
                "with PyTorch's attention: the largest difference over the largest number, at most "
                f"{f64} in float64 and {f32} in float32. Mistakes that are planted come last: they "
                "are to be wrong."), "",
            *table(["method", "what it is", *(cell["title"] for cell in cells)], rows),
            *reasons.lines()]


def checked(off, reasons):
    if off is None:
        return ""
    if "none" in off:
        return reasons.mark(off["none"])
    values = {what: x for what, x in off.items() if isinstance(x, float)}
    text = f"{max(values.values()):.0e}"
    if not off["right"]:
        text = f"wrong: {max(values, key=values.get)} {text}"
    return f"{text}, forward; {reasons.mark(off['no step'])}" if "no step" in off else text


def of_perplexity(found):
    reasons, rows = Reasons(), []
    for name, row in found["methods"].items():
        if "none" in row:
            rows.append([name, reasons.mark(row["none"]), "", "", "", ""])
            continue
        off = row.get("off")
        rows.append([name, f"{row['losses'][0]:.4f}",
                     f"{statistics.mean(row['losses'][-10:]):.5f}", f"{row['first half']:.5f}",
                     f"{row['second half']:.5f}",
                     "" if off is None else f"{off['losses']:.0e}, {off['first half']:.0e}, "
                                            f"{off['second half']:.0e}"])
    return ["## Perplexity", "", *paragraph(
                f"{found['steps']} steps of {found['batch']} pieces of English, each twice in its "
                f"sequence of {found['length']} bytes, over {found['ranks']} ranks in float32. The "
                "last column is beside one process: losses of the first "
                f"{min(perplexity.COMPARED_STEPS, found['steps'])} steps (off by at most {perplexity.LOSS_BOUND:.0e}), "
                "and perplexities of halves of held-out text, per byte (at most "
                f"{perplexity.PERPLEXITY_BOUND:.0e}). A mistake that is planted comes last, if "
                "there is one."), "",
            *table(["method", "first loss", "mean of the last 10", "first halves", "second halves",
                    "off"], rows), *reasons.lines()]


def of_measure(found):
    lines = []
    for group, title in (("length", "by length"), ("ranks", "by ranks"), ("batch", "by batch"),
                         ("ablations", "without one thing"),
                         ("links", "by the rate of links")):
        cells, names = of_group(found["cells"], group)
        for what in (FIRST, STEP):
            if lines_of := of_times(cells, names, what):
                lines += [f"## Seconds of {pass_of(what)}, {title}", "", *lines_of, ""]
    if "no links" in found:
        lines += [f"No links of a given rate: {found['no links']}.", ""]
    if found["memory"]:
        lines += ["## Private memory", "", *of_memory(found["memory"]), ""]
    return lines + caveats()


def pass_of(what):
    return "the first token" if what == FIRST else "a step"


def of_traffic(cell):
    rows = []
    for name, of_method in cell["methods"].items():
        found = of_method.get("traffic")
        if found is not None and name in METHODS:
            total = sum(found["predicted"].values())
            rows.append([name, *(f"{found['predicted'][phase]:,}" for phase in PHASES),
                         f"{sum(found['bytes'].values()) / total:.4f}",
                         ", ".join(f"{n} {what} {phase}" for phase, what, n in
                                   found["collectives"])])
    return ["## Bytes of a step", "", *paragraph(
                f"Of all ranks at {cell['title']}, 2 sequences, 2 layers: what closed forms and "
                "burst's plans say, and what is counted over it. Collectives are those of PyTorch: "
                f"{REDUCE_SCATTER}."), "",
            *table(["method", "forward", "backward", "gradients of weights, loss", "counted",
                    "collectives"], rows)]


def of_group(cells, group):
    """Beside those by length that are like them but for one thing; and their methods."""
    own = [cell for cell in cells if cell["group"] == group]
    names = list(dict.fromkeys(name for cell in own for name in cell["methods"]))
    if group not in ("length", "ablations"):
        lengths = {cell["length"] for cell in own}
        own = [cell for cell in cells if cell["group"] == "length" and
               cell["length"] in lengths] + own
    return sorted(own, key=lambda cell: (cell["ranks"], cell["batch"])), names


def of_times(cells, names, what):
    cells = [cell for cell in cells if any(what in row for row in cell["methods"].values())]
    if not cells:
        return []
    reasons = Reasons()
    rows = [[name, *(timed(cell["methods"], name, what, reasons) for cell in cells)]
            for name in names]
    told = "Medians (CPU seconds of all ranks; MiB sent by all, with headers): the time of burst " \
        "over that of the method, in turns; below 1 burst is faster."
    off = [statistics.median(row[what]["sent"]) / row[what]["predicted"] for cell in cells
           for row in cell["methods"].values() if row.get(what, {}).get("predicted")]
    if off:
        told += f" What was sent is {min(off):.4f} to {max(off):.4f} of what is predicted."
    return [*paragraph(told), "",
            *table(["method", *map(title_of, cells)], rows), *reasons.lines()]


def title_of(cell):
    parts = [f"P={cell['ranks']}", f"B={cell['batch']}", f"S={cell['length']}"]
    return " ".join(parts + [f"at {cell['rate']}"] * bool(cell["rate"]))


def timed(methods, name, what, reasons):
    row = methods.get(name)
    if row is None:
        return ""
    if what not in row:
        return reasons.mark(row.get("none") or row["no step"])
    median = {of: statistics.median(row[what][of]) for of in ("seconds", "cpu", "sent")}
    text = f"{median['seconds']:.3g} ({median['cpu']:.3g}, {median['sent'] / MIB:.0f})"
    if name != "burst" and what in methods.get("burst", {}):
        text += f": {ratio(methods['burst'][what], row[what]):.2f}"
    return text


def ratio(of_burst, of_other):
    """Of seconds, in rounds."""
    return statistics.median(x / y for x, y in zip(of_burst["seconds"], of_other["seconds"]))


def of_memory(cells):
    limits = {cell["pass"]: cell["limit"] // MIB for cell in cells}
    limit = " and ".join(f"{limit} MiB in {pass_of(what)}" for what, limit in limits.items())
    columns = list(dict.fromkeys((cell["pass"], cell["length"]) for cell in cells))
    rows, reasons = [], Reasons()
    for name in dict.fromkeys(cell["method"] for cell in cells):
        of_method = {(cell["pass"], cell["length"]): cell for cell in cells
                     if cell["method"] == name}
        row = []
        for column in columns:
            cell = of_method.get(column)
            row.append("" if cell is None else f"ends: {reasons.mark(cell['ended'])}"
                       if "ended" in cell else f"{cell['bytes'] / MIB:.0f}")
        rows.append([name, *row])
    return [*paragraph(f"MiB of the rank with most, beside an idle one, P={cells[0]['ranks']} B=1; "
                       f"a rank may have {limit}."), "",
            *table(["method", *(f"{what} S={length}" for what, length in columns)], rows),
            *reasons.lines()]


CAVEATS = (
    "The model has layers of dimension 512: attention has the share of the work that it has in a "
    "model of 7B, of dimension 4096, at 8 times the length.",
    "Ranks are processes of one thread that share the cores: with more ranks than cores nothing is "
    "hidden behind computation for free, and no more ranks are faster. What overlap gives is to be "
    "seen where each rank has a core, or in burst's plans.",
    "Attention inside of tensor parallelism is burst's, too: what differs is the split alone.",
    "Weights, gradients and the optimizer are whole on each rank where the sequence is split, and "
    "split in tensor parallelism; fully_shard shards them over the same ranks in burst_fsdp2.",
    "A layer of burst_fsdp2 is whole while it is computed, and beside it fully_shard has the "
    "buffers of its gather and of the one before: as much as 3 layers, most of a model of 4, "
    "little of one of 32. On CPUs it waits for each gather, where streams of a GPU would hide it.",
    "Tensor parallelism is that of DTensor, whose Python takes part of short steps, and which "
    "computes a whole gradient of the embedding on each rank; V3 keeps gathered activations, where "
    "Megatron-LM gathers them again.")


def caveats():
    lines = ["## What this cannot show", ""]
    for text in CAVEATS:
        lines += paragraph(text, initial_indent="* ", subsequent_indent="  ")
    return lines


#===----------------------------------------------------------------------===#
# Files
#===----------------------------------------------------------------------===#


def write_all(prefix, found, text):
    picture = plot.of(found)
    if picture is not None:
        write(f"{prefix}.svg", picture)
        text += f"\n![Seconds by length]({os.path.basename(prefix)}.svg)\n"
    write(f"{prefix}.json", json.dumps(found, indent=1) + "\n")
    write(f"{prefix}.md", text)


def write(path, text):
    """To a new file, which then replaces the old one."""
    new = pathlib.Path(f"{path}.{os.getpid()}.new")
    new.write_text(text)
    new.replace(path)
