# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/evaluate: every method is the model of one process, planted mistakes are found, bytes
and collectives are those of closed forms, and what ends says why."""

import json
import os
import pathlib
import re
import subprocess
import sys
import xml.dom.minidom

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench"))

import burst
from evaluation import check, measure, perplexity, plot, report, traffic
from evaluation.__main__ import parse
from evaluation.methods import METHODS, Task
from evaluation.model import SHAPES
from evaluation.planted import PLANTED

# Ranks are forked, which is for a process that has done nothing else.
DRIVER = """
import json, sys
import torch
from evaluation import check, measure, network, perplexity, ranks
from evaluation.collectives import make_reduce_scatter_cheap
from evaluation.methods import Task
from evaluation.model import SHAPES
cheap = make_reduce_scatter_cheap()
print("\\n" + json.dumps(eval(sys.argv[1])))
"""


def driven(expression, timeout=600):
    """What an expression of ranks gives, in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(
        [str(ROOT / "bench"), *sys.path])}
    done = subprocess.run([sys.executable, "-c", DRIVER, expression], capture_output=True,
                          text=True, env=environment, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def check_of(ranks, shape, length, dtype, order, names):
    """What `check` finds at 2 sequences, as an expression."""
    return (f"check.joined(ranks.run({ranks}, check.check, Task(SHAPES[{shape!r}], 2, {length}, "
            f"torch.{dtype}, {order!r}), {list(names)}))")


def checked(*cell):
    """What `check` finds, after looking at it."""
    of_methods = driven(check_of(*cell))
    look_at(of_methods, *cell)
    return of_methods


def look_at(of_methods, ranks, shape, length, dtype, order, names):
    """Methods are right, and what they send is as predicted; planted mistakes are wrong."""
    assert set(of_methods) == set(names)
    task = Task(SHAPES[shape], 2, length, getattr(torch, dtype), order)
    for name, found in of_methods.items():
        assert check.is_right(found, task.dtype) == (name in METHODS), (name, found)
        if "traffic" in found and name in METHODS:
            assert found["traffic"]["bytes"] == traffic.predicted(name, task, ranks), name
            assert {(phase, what): n for phase, what, n in found["traffic"]["collectives"]} == \
                traffic.collectives(name, task.shape.layers), name


def sent_as(steps, predicted, most):
    """Each step sends what is predicted, at most so many times that with headers. What TCP sends
    again adds to a step by chance, so the least of all steps counts."""
    assert predicted <= min(steps) <= most * predicted, (steps, predicted, most)


def test_check():
    names = ("tp_v1", "tp_v3", "ring_scores", "ring", "usp", "burst", "burst_fsdp2", "torch")
    found = checked(4, "tiny", 64, "float64", "zigzag", (*names, *PLANTED))
    for name in names:
        wanted = {"logits", "first token"}
        if METHODS[name].why_no_step(Task(SHAPES["tiny"], 2, 64, torch.float64), 4) is None:
            wanted |= {"loss", "gradients", "traffic"}
        assert set(found[name]) - {"no step"} == wanted, name
    for name in PLANTED:
        assert found[name]["gradients"] > 0.1, name
    # A loss and logits of weights that were drawn do not show all mistakes.
    assert check.off(torch.tensor(found["not_summed"]["loss"]), torch.tensor(1.0)) == 1.0
    # Megatron-LM's, of 2 layers.
    of = {name: [n for _, what, n in found[name]["traffic"]["collectives"] if what != "all-reduce"]
          for name in ("tp_v1", "tp_v3")}
    assert of == {"tp_v1": [], "tp_v3": [5, 5, 5, 5]}
    assert ["backward", "all-reduce", 5] in found["tp_v1"]["traffic"]["collectives"]
    # BurstAttention sends less than a ring in the backward pass, and as much forward.
    ring, of_burst = (found[name]["traffic"]["bytes"] for name in ("ring", "burst"))
    assert of_burst["backward"] < 0.8 * ring["backward"]
    assert of_burst["forward"] == ring["forward"]


SHARDED = """
from evaluation.methods import METHODS
def sizes(mesh):
    split = METHODS["burst_fsdp2"](Task(SHAPES["grouped"], 2, 128), mesh)
    return sum(p.numel() for p in split.parts())
def on_the_wire():
    cell = measure.Cell("", Task(SHAPES["grouped"], 2, 128), 2, ("burst_fsdp2",), 3)
    return network.isolate() or measure.joined(ranks.run(2, measure.times, cell), True)
"""


def test_sharded_weights():
    """They cost three times what shards have, but for what is outside of layers, in place of an
    all-reduce, which is two. Those of some ranks are padded."""
    cells = [(2, "grouped", 61, "float32", "contiguous", ["burst_fsdp2"]),
             (3, "tiny", 61, "float64", "contiguous", ["burst_fsdp2"])]
    *found, sizes, times = driven(f"exec({SHARDED!r}, globals()) or [{check_of(*cells[0])}, "
                                  f"{check_of(*cells[1])}, ranks.run(2, sizes), on_the_wire()]")
    for of_methods, cell in zip(found, cells):
        look_at(of_methods, *cell)
        ranks, shape, length, dtype, order, (name,) = cell
        task = Task(SHAPES[shape], 2, length, getattr(torch, dtype), order)
        sharded = of_methods[name]["traffic"]["bytes"]
        of_burst = traffic.predicted("burst", task, ranks)
        layers, others = traffic.num_padded(task.shape, ranks)
        weights = traffic.num_weights(task.shape)
        assert layers + others > weights if ranks == 3 else layers + others == weights
        each = (ranks - 1) * task.dtype.itemsize
        assert sharded["forward"] - of_burst["forward"] == each * (layers + others)
        assert sharded["backward"] - of_burst["backward"] == each * (2 * layers + others)
        assert of_burst["gradients"] - sharded["gradients"] == 2 * each * weights
    assert sizes == [traffic.num_weights(SHAPES["grouped"]) // 2] * 2
    if isinstance(times, str):
        pytest.skip(times)
    # A first token leaves no weights whole: the step behind it gathers all of them.
    task = Task(SHAPES["grouped"], 2, 128)
    predicted = traffic.predicted("burst_fsdp2", task, 2)
    last = task.batch * task.shape.dim * 4 # what the head sees is broadcast
    for what, wanted in (("first token", predicted["forward"] + last),
                         ("step", sum(predicted.values()))):
        sent_as(times["burst_fsdp2"][what]["sent"], wanted, traffic.MOST_HEADERS)


def test_perplexity():
    """In 12 steps equal ones are equal, and a hop that is dropped is seen."""
    names = ["burst", "burst_fsdp2", "dropped_hop"]
    one, *others = driven(
        "[ranks.run(count, perplexity.train, Task(SHAPES['tiny'], 4, 64), name, 12)[0] for count, "
        f"name in [(1, 'single'), *((2, name) for name in {names})]]")
    assert len(one["losses"]) == 12 and one["losses"][-1] < 0.9 * one["losses"][0]
    right, sharded, dropped = (perplexity.compare(found, one) for found in others)
    assert perplexity.is_equal(right), right
    assert perplexity.is_equal(sharded), sharded
    assert not perplexity.is_equal(dropped), dropped
    assert not perplexity.is_equal({**right, "second half": 2e-3})


FAILURES = """
def fails(mesh, how):
    if mesh.get_local_rank() == 1:
        import os
        os._exit(3) if how == "ends" else {}["nothing"]
    torch.distributed.barrier()
def told(how):
    try:
        return ranks.run(2, fails, how, timeout=60)
    except ranks.Failure as failure:
        return str(failure).splitlines()[0]
"""


def test_ranks_that_fail():
    source = f"exec({FAILURES!r}, globals()) or [told(how) for how in ('ends', 'raises')]"
    assert driven(source) == ["rank 1: ended with status 3", "rank 1: KeyError: 'nothing'"]


def test_what_is_refused():
    task = Task(SHAPES["tiny"], 1, 61)
    for name, ranks, message in (
            ("tp_v1", 3, "tp_v1: 4 heads are no multiple of 3 ranks"),
            ("tp_v3", 4, "tp_v3: the length 61 is no multiple of 4 ranks"),
            ("ulysses", 8, "ulysses: .*heads"), ("double_ring", 3, "double_ring: .*nodes"),
            ("single", 2, "single: one process is wanted, got 2")):
        assert re.match(message, METHODS[name].why_not(task, ranks) or "none"), name
    assert METHODS["tp_v1"].why_not(Task(SHAPES["grouped"], 1, 61), 8) == \
        "tp_v1: 4 heads of keys are no multiple of 8 ranks"
    for name in ("tp_v1", "ring", "burst", "burst_fsdp2", "usp", "torch"):
        assert METHODS[name].why_no_step(task, 4) is None, name


def test_arguments(capsys):
    assert parse([]).parts == ["check", "perplexity", "measure"]
    for arguments, message in (
            (["speed"], "got 'speed', wanted some of check, perplexity, measure"),
            (["--methods", "ring,rings"], "--methods: got 'rings', wanted some of single, tp_v1"),
            (["--ranks", "0"], "--ranks: got 0, wanted 1 to 16"),
            (["measure", "--plant", "dropped_hop"], "--plant: is of check and perplexity"),
            (["--out", "no/such/x"], "--out: got 'no/such/x', wanted a name in a folder")):
        with pytest.raises(SystemExit):
            parse(arguments)
        assert message in capsys.readouterr().err
    done = subprocess.run([ROOT / "scripts" / "evaluate", "--help"], capture_output=True, text=True)
    for name in (*(name for name in METHODS if "without" not in name), *PLANTED):
        assert name in done.stdout, name


@pytest.mark.all
def test_planted(tmp_path):
    """What is planted fails the command; what has a reason does not."""
    for plant, status in (([], 0), (["--plant", "not_summed"], 1)):
        done = subprocess.run([ROOT / "scripts" / "evaluate", "check", "--ranks", "2", "--methods",
                               "torch,tp_v1", "--out", str(tmp_path / "found"), *plant],
                              capture_output=True, text=True, timeout=600)
        assert done.returncode == status, done.stderr
        assert ("not_summed is wrong: logits off by" in done.stderr) == bool(plant), done.stderr
        assert (tmp_path / "found.md").read_text() == done.stdout
        cells = json.loads((tmp_path / "found.json").read_text())["check"]
        assert [cell["ranks"] for cell in cells] == [2, 2, 2]


def test_the_picture_is_that_of_the_results():
    results = ROOT / "bench" / "results"
    found = json.loads((results / "evaluation.json").read_text())
    assert (results / "evaluation.svg").read_text() == plot.of(found)


def fabricated(length):
    def timed(*seconds):
        return {"seconds": seconds, "cpu": seconds, "sent": [2 << 20], "predicted": 2 << 20}
    methods = {"tp_v1": {"first token": timed(2.0, 3.0, 3.0), "step": timed(8.0)},
               "burst": {"first token": timed(1.0, 1.0, 1.5), "step": timed(4.0)},
               "ring_scores": {"first token": timed(4.0), "no step": "ring_scores: forward only"},
               "tp_v3": {"none": "tp_v3: why not"}}
    return {"group": "length", "ranks": 4, "batch": 1, "length": length, "rate": None,
            "rounds": 3, "methods": methods}


def test_report(tmp_path):
    cells = [fabricated(length) for length in (512, 2048)]
    found = {**report.head(False), "measure": {"cells": cells, "memory": [
        {"method": "burst", "pass": "first token", "ranks": 4, "length": 512, "limit": 1 << 28,
         "bytes": 50 << 20},
        {"method": "ring_scores", "pass": "first token", "ranks": 4, "length": 512,
         "limit": 1 << 28, "ended": "rank 1: out of memory"},
        {"method": "burst", "pass": "step", "ranks": 4, "length": 512, "limit": 1 << 29,
         "bytes": 90 << 20}]}}
    report.finish(found, ["x is wrong"])
    text = report.as_markdown(found)
    for line in ("| tp_v1 | 3 (3, 2): 0.50 | 3 (3, 2): 0.50 |", "| burst | 1 (1, 2) | 1 (1, 2) |",
                 "| tp_v3 | none (1) | none (1) |", "1. tp_v3: why not",
                 "| ring_scores | none (1) | none (1) |", "1. ring_scores: forward only",
                 "| burst | 50 | 90 |", "| ring_scores | ends: none (1) |  |",
                 "1. rank 1: out of memory", "failed: x is wrong", "1 failures"):
        assert line in text.splitlines(), text
    assert "256 MiB in the first token and 512 MiB in a step" in text.replace("\n", " "), text
    report.write_all(str(tmp_path / "x"), found, text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.json", "x.md", "x.svg"]
    assert json.loads((tmp_path / "x.json").read_text())["failures"] == ["x is wrong"]
    svg = (tmp_path / "x.svg").read_text()
    xml.dom.minidom.parseString(svg)
    assert svg.count("<circle") == 2 * (3 + 2) and plot.of({}) is None
    assert svg.count(">burst</text>") == 1 and "first token, seconds by positions" in svg
    for said, is_meant in (("burst: allocate: out of memory: wanted 3 bytes", True),
                           ("DefaultCPUAllocator: can't allocate memory", True),
                           ("ended with status -11", False)):
        assert bool(measure.OUT_OF_MEMORY.search(said)) == is_meant


MEMORY = """
def told(name):
    task = Task(SHAPES["small"], 1, 4096)
    try:
        return max(ranks.run(4, measure.memory, task, name, "first token", 200 << 20,
                             before=measure.return_what_is_freed))
    except ranks.Failure as failure:
        return str(failure).splitlines()[0]
"""


@pytest.mark.long
def test_memory():
    """Where all scores of a rank are stored there is no memory left; BurstAttention has some."""
    burst_has, scores_have = driven(
        f"exec({MEMORY!r}, globals()) or [told(name) for name in ('burst', 'ring_scores')]")
    assert 50 << 20 < burst_has < 200 << 20
    assert re.match(r"rank \d: .*out of memory", scores_have), scores_have
    assert measure.OUT_OF_MEMORY.search(scores_have)


@pytest.mark.long
def test_memory_of_sharded_weights():
    """Gradients and states of AdamW are a quarter on each of 4 ranks, and whole beside it."""
    whole, sharded = driven(
        "[max(ranks.run(4, measure.memory, Task(SHAPES['small'], 1, 512), name, 'step', 512 << 20, "
        "before=measure.return_what_is_freed)) for name in ('burst', 'burst_fsdp2')]")
    weights = 4 * traffic.num_weights(SHAPES["small"])
    assert 1.5 * weights < whole - sharded < 3 * weights, (whole, sharded, weights)


@pytest.mark.all
def test_links():
    """A slow link slows; the bytes that leave are those of closed forms; nothing is left."""
    told = driven("""(network.isolate() or network.add_switch()) or [measure.joined(ranks.run(2,
        measure.times, measure.Cell("", Task(SHAPES["tiny"], 8, 512), 2, ("tp_v1", "burst"), 3),
        before=network.link(rate)), False) for rate in (None, "50mbit")]""")
    if isinstance(told, str):
        pytest.skip(told)
    fast, slow = told
    for name in ("tp_v1", "burst"):
        assert min(slow[name]["step"]["seconds"]) > 2 * max(fast[name]["step"]["seconds"]), told
        predicted = sum(traffic.predicted(name, Task(SHAPES["tiny"], 8, 512), 2).values())
        # At most each 1448 bytes have their own headers and half an acknowledgement, of 66 bytes.
        sent_as([step for found in told for step in found[name]["step"]["sent"]], predicted,
                1 + 1.5 * 66 / 1448)
    assert "switch:" not in pathlib.Path("/proc/net/dev").read_text() # which is another network


@pytest.mark.long
@pytest.mark.parametrize(("ranks", "shape", "length", "dtype", "order"), [
    (2, "tiny", 61, "float64", "contiguous"), (2, "grouped", 64, "float32", "zigzag"),
    (4, "grouped", 61, "float64", "zigzag"), (4, "tiny", 64, "float32", "contiguous")])
def test_all_methods(ranks, shape, length, dtype, order):
    checked(ranks, shape, length, dtype, order, (*METHODS, *PLANTED))


@pytest.mark.long
def test_copies():
    """A model that was trained foretells second halves; where a hop is dropped it does not."""
    task = "Task(SHAPES['tiny'], 16, 64)"
    one, right, dropped = driven(
        f"[ranks.run(count, perplexity.train, {task}, name, {perplexity.COPIES_AFTER})[0] for "
        "count, name in [(1, 'single'), (4, 'burst'), (4, 'dropped_hop')]]", timeout=1200)
    assert one["second half"] < perplexity.COPIED < one["first half"]
    assert perplexity.is_equal(perplexity.compare(right, one))
    assert dropped["second half"] > 1.2 * one["second half"]
