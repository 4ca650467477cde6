# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One cell: results of every peer are compared, then the right ones run in turns."""

import dataclasses
import math
import pathlib
import statistics
import time

import numpy
import protocol
import exact
from peers import Failure

SLEEP = 0.05 # seconds, in which threads of the last peer go to sleep
SLOW = 5 # times the time of the fastest: a peer that is measured in few rounds
FEW_ROUNDS = 3
MOST_RUNS = 50 # of a short call, in a round


@dataclasses.dataclass(frozen=True)
class Plan:
    rounds: int
    least: float # seconds, of a round: shorter calls run more than once

    def runs(self, seconds):
        return max(1, min(MOST_RUNS, math.ceil(self.least / max(seconds, 1e-9))))


def measure(cell, peers, plan, folder):
    """What is found of each peer, by its name: a dict with "median" and what belongs to
    it, or with one of "none", "wrong" and "failed" and a text."""
    wanted = exact.reference(protocol.Attention.of(cell.question))
    found = {}
    for peer in peers:
        try:
            found[peer.kind.name] = prepare(cell, peer, plan, wanted, folder)
        except Failure as failure:
            found[peer.kind.name] = {"failed": str(failure)}
    del wanted
    timed = [peer for peer in peers if "trial" in found[peer.kind.name]]
    fastest = min((found[peer.kind.name]["trial"] for peer in timed), default=0)
    for turn in range(plan.rounds):
        for peer in timed:
            of_peer = found[peer.kind.name]
            if "failed" in of_peer or \
                    turn >= FEW_ROUNDS and of_peer["trial"] > SLOW * fastest:
                continue
            try:
                of_peer["seconds"].append(seconds(cell, peer, of_peer["form"], of_peer["runs"]))
            except Failure as failure:
                of_peer["failed"] = str(failure)
    for of_peer in found.values():
        if "failed" not in of_peer and "seconds" in of_peer:
            of_peer["median"] = statistics.median(of_peer["seconds"])
    return found


def prepare(cell, peer, plan, wanted, folder):
    """The fastest of its forms that are right."""
    answer = peer.ask({**cell.question, "ask": "forms"})
    if "none" in answer:
        return {"none": answer["none"]}
    best, others, last = None, {}, None
    for form in answer["forms"]:
        try:
            off = compare(cell, peer, form, wanted, folder)
            if off > exact.bound(cell.question):
                others[form] = last = {
                    "wrong": f"off by {off:.1e} of a row, wanted at most "
                             f"{exact.bound(cell.question):.0e}"}
                continue
            trial = seconds(cell, peer, form, 1)
            runs = plan.runs(trial)
            if len(answer["forms"]) > 1 and trial < 2:
                trial = seconds(cell, peer, form, runs)
        except Failure as failure:
            others[form] = last = {"failed": str(failure)}
            continue
        others[form] = trial
        if best is None or trial < best["trial"]:
            best = {"form": form, "trial": trial, "runs": runs, "error": off, "seconds": []}
    if best is None:
        return last
    return {**best, "forms": others}


def compare(cell, peer, form, wanted, folder):
    path = pathlib.Path(folder) / "results.npz"
    path.unlink(missing_ok=True)
    answer = peer.ask({**cell.question, "ask": "results", "form": form, "path": str(path)})
    try:
        with numpy.load(answer["results"]) as results:
            return exact.error(results, wanted)
    except (KeyError, OSError, ValueError) as error:
        raise Failure(f"its results: {error}") from None


def seconds(cell, peer, form, runs):
    time.sleep(SLEEP)
    answer = peer.ask({**cell.question, "ask": "seconds", "form": form, "runs": runs})
    taken = answer.get("seconds")
    if not isinstance(taken, float) or not taken > 0:
        raise Failure(f"seconds: got {answer}, wanted a number above 0")
    return taken
