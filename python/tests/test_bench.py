# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/bench-python: its protocol, its table, and what happens to a peer that is wrong
or ends."""

import json
import os
import pathlib
import subprocess
import sys

import numpy
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "bench" / "peers" / "python"
sys.path[:0] = [str(PEERS), str(ROOT / "bench" / "python")]

import peers
import protocol
import exact
import report

QUESTION = {"kind": "forward", "type": "f32", "causal": True, "heads": 2, "sequence": 8, "dim": 4}
CELL = "attention forward f32 causal S=256 D=64 H=8"

# Libraries: one whose fastest way is wrong, one of which all are, one that ends, and one
# that is not there.
PEER = """
import sys, time
kind, *folders = sys.argv[1:]
sys.path[:0] = folders
import protocol, exact
if kind == "missing":
    protocol.serve(lambda: __import__("jaxlib_that_is_not_there"))
    sys.exit()

def forms_of(attention):
    if kind == "ended":
        print("no memory", file=sys.stderr)
        sys.exit(3)
    o = exact.reference(attention)["o"].astype("float32")
    def form(off, seconds):
        return lambda: protocol.Run(lambda: time.sleep(seconds), lambda _: {"o": o + off})
    forms = {"fast": form(0.001, 0)}
    if kind == "right":
        forms |= {"slow": form(0, 0.1), "right": form(0, 0.05)}
    return forms

protocol.serve(lambda: ("a library", forms_of))
"""


def run(*arguments):
    return subprocess.run([ROOT / "scripts" / "bench-python", "--quick", *arguments],
                          capture_output=True, text=True, timeout=300)


def peer(tmp_path, kind):
    script = tmp_path / "peer.py"
    script.write_text(PEER)
    return f"--peer={kind}={sys.executable} {script} {kind} {PEERS} {ROOT / 'bench' / 'python'}"


@pytest.mark.all
def test_table(tmp_path):
    done = run("--only", CELL, "--rounds", "2", "--peers", "torch", "--out",
               str(tmp_path / "table"),
               *(peer(tmp_path, kind) for kind in ("right", "wrong", "ended", "missing")))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "table.md").read_text()
    assert text == done.stdout and not list(tmp_path.glob("*.new"))
    lines = text.splitlines()
    assert "* burst: burst " in text and "* measured: 1 of 1 cells" in lines
    for what in ("date", "commit", "processor", "threads", "load before", "right: a library",
                 "SDPA of PyTorch: PyTorch "):
        assert any(line.startswith(f"* {what}") for line in lines), what
    titles, _, row = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    assert titles == ["cell", "SDPA of PyTorch", "right", "wrong", "ended", "missing",
                      "burst", "burst over the best"]
    found = dict(zip(titles, row, strict=True))
    assert found["cell"] == CELL
    assert found["wrong"].startswith("wrong: off by ") and "wanted at most 1e-04" in found["wrong"]
    assert found["ended"] == "failed: ended with status 3: no memory"
    assert found["missing"] == "failed: no module jaxlib_that_is_not_there"
    assert " ±" in found["burst"] and found["burst over the best"].endswith(", torch")
    assert lines[-1].startswith("burst over the best peer: median of the ratios ")
    assert lines[-1].endswith(" of 1 cells")
    cell, = json.loads((tmp_path / "table.json").read_text())["cells"]
    of_right = cell["peers"]["right"]
    assert of_right["form"] == "right" and "wrong" in of_right["forms"]["fast"]
    assert of_right["median"] >= 0.05 and cell["peers"]["burst"]["error"] < 1e-5
    assert len(cell["peers"]["burst"]["seconds"]) == 2


@pytest.mark.all
def test_ranks(tmp_path):
    done = run("--only", "ranks step", "--rounds", "1", "--out", str(tmp_path / "table"))
    assert done.returncode == 0, done.stderr
    cell, = json.loads((tmp_path / "table.json").read_text())["cells"]
    assert all(isinstance(x, float) for x in cell["peers"]["gather"]["forms"].values())
    assert len(cell["peers"]["gather"]["forms"]) == 2 and cell["ratio"] > 0


def test_refusals(tmp_path):
    for arguments, message in (
            (["--peers", "numpy"], "--peers: got 'numpy', wanted of torch, flex, "),
            (["--peer", "torch=x"], "--peer: got 'torch=x', wanted NAME=COMMAND"),
            (["--only", "typo"], "--only: got 'typo', wanted a part of a name"),
            (["--threads", "0"], "--threads: got 0, wanted 1 to "),
            (["--out", str(tmp_path / "no" / "x")], "wanted a name in a folder")):
        done = run(*arguments)
        assert done.returncode == 2 and message in done.stderr, done.stderr


def test_burst_that_is_missing(tmp_path):
    done = subprocess.run([ROOT / "scripts" / "bench-python"], capture_output=True, text=True,
                          env={**os.environ, "BURST_LIBRARY": str(tmp_path / "x.so")})
    assert done.returncode == 1 and "scripts/build release burst makes it" in done.stderr


def server():
    def forms_of(attention):
        if attention.type == "bf16":
            raise protocol.Unsupported("no bf16 here")
        o = numpy.ones((1, attention.heads, attention.queries, attention.dim), numpy.float32)
        return {"ones": lambda: protocol.Run(lambda: o, lambda x: {"o": x}),
                "worse": lambda: protocol.Run(lambda: 1 / 0, lambda x: x)}
    return protocol.Server(forms_of)


def test_protocol(tmp_path):
    asked, path = server(), str(tmp_path / "o.npz")
    assert asked.answer(QUESTION)["seconds"] > 0 # as bench/peers/torch_sdpa.py is asked
    assert asked.answer({**QUESTION, "ask": "forms"}) == {"forms": ["ones", "worse"]}
    question = {**QUESTION, "ask": "results", "form": "ones", "path": path}
    assert asked.answer(question) == {"results": path}
    assert numpy.load(path)["o"].shape == (1, 2, 8, 4)
    assert len(asked.answer({**QUESTION, "ask": "seconds", "runs": 3})["all"]) == 3
    assert asked.answer({**QUESTION, "ask": "seconds", "form": "worse"}) == {
        "error": "ZeroDivisionError: division by zero"}
    assert asked.answer({**QUESTION, "type": "bf16"}) == {"none": "no bf16 here"}
    assert "wanted one of ['ones', 'worse']" in asked.answer({**QUESTION, "form": "x"})["error"]


@pytest.mark.parametrize("extra", [{}, {"causal": False, "queries": 1}, {"key_heads": 1},
                                   {"documents": 3}, {"kind": "step"}])
def test_reference(extra):
    """A mask that is off by a key is found in one row of many."""
    attention = protocol.Attention.of({**QUESTION, "sequence": 600, **extra})
    wanted = exact.reference(attention)
    found = {name: x.astype(numpy.float32) for name, x in wanted.items()}
    assert exact.error(found, wanted) < 1e-6
    found["o"][0, -1, -1] *= 1.001
    assert exact.error(found, wanted) > exact.BOUNDS["f32"]
    found["o"][0, -1, -1] = numpy.nan
    assert exact.error(found, wanted) == numpy.inf


def test_what_is_missing():
    """A column says how to get it."""
    for module in ("jax", "openvino", "onnx", "onnxruntime"):
        assert peers.INSTALLED_BY[module] == "missing: scripts/peers --all installs it"
    of_peer = {"failed": peers.INSTALLED_BY["jax"]}
    assert report.text_of(of_peer) == "missing: scripts/peers --all installs it"


def test_ratio():
    found = {"burst": {"median": 1.0, "seconds": [1.0, 2.0, 1.0]},
             "a": {"median": 3.0, "seconds": [3.0, 3.0, 4.0]}, "b": {"none": "why"},
             "c": {"median": 9.0, "seconds": [9.0]}}
    assert report.ratio(found) == (3.0, "a")
    assert report.ratio({**found, "burst": {"wrong": "x"}}) == (None, "a")
    assert report.ratio({"burst": found["burst"], "b": found["b"]}) == (None, None)
