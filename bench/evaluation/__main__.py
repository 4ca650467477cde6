# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Of scripts/evaluate, whose --help says what it does."""

import argparse
import dataclasses
import os
import signal
import statistics
import sys

import provenance
from evaluation import check, measure, network, perplexity, plans, ranks, report, traffic
from evaluation.collectives import make_reduce_scatter_cheap
from evaluation.methods import METHODS
from evaluation.planted import PLANTED

PARTS = ("check", "perplexity", "measure")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="evaluate", add_help=False, allow_abbrev=False)
    parser.add_argument("parts", nargs="*", default=[])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--methods")
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--plant", choices=list(PLANTED))
    options = parser.parse_args(arguments)
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"got {part!r}, wanted some of {', '.join(PARTS)}")
    if not options.parts:
        options.parts = list(PARTS)
        if not (options.out or options.methods or options.ranks or options.plant):
            options.out = str(provenance.ROOT / "bench" / "results" / "evaluation")
    if options.ranks is not None and not 1 <= options.ranks <= 16:
        parser.error(f"--ranks: got {options.ranks}, wanted 1 to 16")
    names = options.methods.split(",") if options.methods else list(METHODS)
    for name in names:
        if name not in METHODS:
            parser.error(f"--methods: got {name!r}, wanted some of {', '.join(METHODS)}")
    options.names = [options.plant] if options.plant else names
    if options.plant and "measure" in options.parts:
        parser.error("--plant: is of check and perplexity, which have to find it")
    if options.out is not None and not os.path.isdir(os.path.dirname(options.out) or "."):
        parser.error(f"--out: got {options.out!r}, wanted a name in a folder that there is")
    return options


def say(text):
    print(text, file=sys.stderr, flush=True)


class Evaluation:
    def __init__(self, options):
        self.options = options
        self.found = report.head(options.full)
        self.shares_network = network.isolate()
        self.found["bytes"] = "counted on a network of their own" if not self.shares_network \
            else f"those of others are counted as well: {self.shares_network}"
        self.failures = []

    def fails(self, text):
        text = text.replace("\n", "; ")
        say(f"evaluate: {text}")
        self.failures.append(text)

    def expect(self, what, name, is_right, off):
        """That a method is right; that one that is planted is not, unless it was asked for."""
        if is_right != (name in METHODS or self.options.plant is not None):
            values = [f"{x} off by {value:.1e}" for x, value in off.items()
                      if isinstance(value, float)]
            self.fails(f"{what}: {name} is " + ("not found to be wrong" if is_right else
                                                f"wrong: {', '.join(values)}"))

    def run(self, what, *arguments, **options):
        """What ranks.run gives; where a rank fails that is told, and others go on."""
        say(what)
        try:
            return ranks.run(*arguments, **options)
        except ranks.Failure as failure:
            self.fails(f"{what}: {failure}")
            return None

    def write(self):
        """What was found until now."""
        report.finish(self.found, self.failures)
        text = report.as_markdown(self.found)
        if self.options.out is not None:
            report.write_all(self.options.out, self.found, text)
        return text

    def check(self):
        """Every method is right, every planted mistake is found."""
        found = self.found["check"] = []
        for cell in plans.checks(self.options.full):
            names = self.options.names if self.options.methods or self.options.plant else \
                cell.names
            if self.options.ranks is not None:
                cell = dataclasses.replace(cell, ranks=self.options.ranks)
            planted = PLANTED if cell.ranks > 1 else {}
            names = [name for name in names if name in METHODS or name in planted]
            if not names:
                continue
            of_ranks = self.run(f"check {cell.title}", cell.ranks, check.check, cell.task, names)
            if of_ranks is None:
                continue
            of_methods = check.joined(of_ranks)
            for name, of_method in of_methods.items():
                of_method["right"] = check.is_right(of_method, cell.task.dtype)
                self.expect(f"check {cell.title}", name, of_method["right"], of_method)
                if name in METHODS and "traffic" in of_method:
                    self.check_traffic(cell, name, of_method["traffic"])
            found.append({"title": cell.title, "ranks": cell.ranks, "methods": of_methods})

    def check_traffic(self, cell, name, found):
        """Bytes and collectives of a step are as predicted."""
        found["predicted"] = traffic.predicted(name, cell.task, cell.ranks)
        wanted = traffic.collectives(name, cell.task.shape.layers)
        counts = {(phase, what): n for phase, what, n in found["collectives"]}
        for what, got, predicted in (("bytes", found["bytes"], found["predicted"]),
                                     ("collectives", counts, wanted)):
            if got != predicted:
                self.fails(f"check {cell.title}: {what} of {name}: got {got}, predicted "
                           f"{predicted}")

    def perplexity(self):
        task, count, steps = plans.trained(self.options.full)
        count = self.options.ranks or count
        one, = self.run(f"perplexity on one process, {steps} steps", 1, perplexity.train, task,
                        "single", steps) or [None]
        if one is None:
            return
        rows = {"single": one}
        is_all = self.options.full and not (self.options.methods or self.options.plant)
        for name in self.options.names + ["dropped_hop"] * is_all:
            method = {**METHODS, **PLANTED}[name]
            if name == "single":
                continue
            if why := method.why_no_step(task, count):
                rows[name] = {"none": why}
                continue
            of_ranks = self.run(f"perplexity of {name} on {count} ranks", count, perplexity.train,
                                task, name, steps)
            if of_ranks is None:
                continue
            rows[name] = of_ranks[0]
            rows[name]["off"] = off = perplexity.compare(rows[name], one)
            self.expect("perplexity", name, perplexity.is_equal(off), off)
        if steps >= perplexity.COPIES_AFTER and one["second half"] > perplexity.COPIED:
            self.fails(f"perplexity: of second halves {one['second half']:.3f} after {steps} "
                       f"steps, wanted at most {perplexity.COPIED}: the model has not learned to "
                       "attend")
        self.found["perplexity"] = {"ranks": count, "steps": steps, "batch": task.batch,
                                    "length": task.length, "methods": rows}

    def measure(self):
        options = self.options
        found = self.found["measure"] = {"cells": [], "memory": []}
        why_no_links = self.shares_network or network.add_switch()
        for cell in plans.cells(options.full):
            names = [name for name in cell.names if name in options.names]
            if not names or options.ranks not in (None, cell.ranks):
                continue
            cell = dataclasses.replace(cell, names=tuple(names))
            if cell.rate is not None and why_no_links:
                found["no links"] = why_no_links
                continue
            of_ranks = self.run(
                f"measure {cell.group}: P={cell.ranks} B={cell.task.batch} S={cell.task.length}"
                f"{' at ' + cell.rate if cell.rate else ''}: {', '.join(names)}", cell.ranks,
                measure.times, cell, before=network.link(cell.rate) if cell.rate else None)
            if of_ranks is None:
                continue
            methods = measure.joined(of_ranks, is_shared=not cell.rate)
            for name, passes in methods.items():
                if measure.STEP in passes:
                    self.check_wire(cell, name, passes[measure.STEP])
            found["cells"].append({
                "group": cell.group, "ranks": cell.ranks, "batch": cell.task.batch,
                "length": cell.task.length, "rate": cell.rate, "rounds": cell.rounds,
                "methods": methods})
        ended = set()
        for cell in plans.memories(options.full):
            if cell.name in options.names and (cell.name, cell.what) not in ended and \
                    options.ranks in (None, cell.ranks):
                of_cell = self.memory(cell)
                if of_cell is not None:
                    found["memory"].append(of_cell)
                    if "ended" in of_cell:
                        ended.add((cell.name, cell.what))

    def memory(self, cell):
        method = METHODS[cell.name]
        why_not = method.why_no_step if cell.what == measure.STEP else method.why_not
        if why_not(cell.task, cell.ranks): # which the tables of times say
            return None
        say(f"memory of {cell.name} in {cell.what}, P={cell.ranks} S={cell.task.length}")
        of_cell = {"method": cell.name, "pass": cell.what, "ranks": cell.ranks,
                   "length": cell.task.length, "limit": cell.limit}
        try:
            of_cell["bytes"] = max(ranks.run(
                cell.ranks, measure.memory, cell.task, cell.name, cell.what, cell.limit,
                before=measure.return_what_is_freed))
        except ranks.Failure as failure:
            if not measure.OUT_OF_MEMORY.search(str(failure)):
                self.fails(f"memory of {cell.name}: {failure}")
                return None
            of_cell["ended"] = str(failure).splitlines()[0]
        return of_cell

    def check_wire(self, cell, name, of_step):
        """What left by the network is what is predicted, and headers. What TCP sends again adds
        to a step by chance, so the least of all steps counts."""
        predicted = sum(traffic.predicted(name, cell.task, cell.ranks).values())
        of_step["predicted"] = predicted
        ratio = min(of_step["sent"]) / predicted if predicted else 1
        if not self.shares_network and not 1 <= ratio <= traffic.MOST_HEADERS:
            self.fails(f"bytes of {name}, P={cell.ranks} S={cell.task.length}: {ratio:.3f} of what "
                       f"is predicted, wanted 1 to {traffic.MOST_HEADERS}")


def main():
    options = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)) # ranks are ended, too
    cheap = make_reduce_scatter_cheap()
    evaluation = Evaluation(options)
    for part in options.parts:
        getattr(evaluation, part)()
        text = evaluation.write()
    del cheap
    print(text, end="")
    return 1 if evaluation.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
