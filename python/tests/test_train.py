# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/train.py gives one curve, however the sequence and the batch are split; and
what compares curves notices a hop that is left out."""

import json
import os
import pathlib
import runpy
import subprocess
import sys

import pytest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "train.py"

# Rank 1 sees its own keys and no others, in one of 4 steps.
PLANTED = """
import sys, runpy
import torch.distributed as dist
import burst
attention, calls = burst.attention, [0]
def without_a_hop(q, k, v, *, mask, sequence, **arguments):
    calls[0] += 1
    if calls[0] % 4 or sequence.ranks == 1:
        return attention(q, k, v, mask=mask, sequence=sequence, **arguments)
    own = set(sequence.layout.positions(1, q.shape[1] * sequence.ranks))
    import torch
    held = torch.zeros(q.shape[1] * sequence.ranks, dtype=torch.bool)
    held[list(own)] = True
    return attention(q, k, v, mask=lambda b, h, i, j: mask(b, h, i, j) & (~held[i] | held[j]),
                     sequence=sequence, **arguments)
burst.attention = without_a_hop
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(tmp_path, processes, *options, planted=False):
    """What the example wrote."""
    found = tmp_path / f"{processes}-{len(list(tmp_path.iterdir()))}.json"
    command = [str(EXAMPLE), *options, "--json", str(found)]
    if planted:
        script = tmp_path / "planted.py"
        script.write_text(PLANTED)
        command.insert(0, str(script))
    if processes > 1:
        command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                   str(processes), *command]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True,
                          env=environment, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(found.read_text())


def compare(found, wanted, bound=1e-4):
    """Every loss and norm of a gradient, and held-out perplexity, within the rounding of
    float32."""
    for name in ("losses", "norms"):
        assert len(found[name]) == len(wanted[name])
        for n, (x, y) in enumerate(zip(found[name], wanted[name])):
            assert abs(x - y) <= bound * abs(y) * (10 if name == "norms" else 1), (name, n, x, y)
    for name in ("perplexity", "perplexity_first", "perplexity_second"):
        assert abs(found[name] - wanted[name]) <= bound * wanted[name], name


SMALL = ["--steps", "30", "--length", "64", "--dim", "32", "--batch", "4"]


@pytest.mark.all
def test_ranks(tmp_path):
    one = run(tmp_path, 1, *SMALL)
    assert one["losses"][-1] < 0.8 * one["losses"][0]
    compare(run(tmp_path, 4, *SMALL, "--cp", "4"), one)
    with pytest.raises(AssertionError):
        compare(run(tmp_path, 4, *SMALL, "--cp", "4", planted=True), one)


def test_refusals(monkeypatch, capsys):
    for options, message in (
            (["--cp", "2"], "--dp 1 --cp 2: takes 2 processes, and there are 1"),
            (["--heads", "3"], "--heads 3: must be a multiple of 2"),
            (["--length", "20"], "--length 20: must be at least 32"),
            (["--plot", "a.svg"], "--plot: wants an SVG to write")):
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *options])
        with pytest.raises(SystemExit) as error:
            runpy.run_path(str(EXAMPLE), run_name="__main__")
        assert message in f"{error.value} {capsys.readouterr().err}"


def test_plot(tmp_path, monkeypatch):
    for name, losses in (("one", [3.0, 2.0, 1.0]), ("four", [3.0, 2.0, 1.0])):
        (tmp_path / f"{name}.json").write_text(json.dumps({"losses": losses}))
    files = [str(tmp_path / name) for name in ("plot.svg", "one.json", "four.json")]
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--plot", *files])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    text = (tmp_path / "plot.svg").read_text()
    assert text.count("<polyline") == 2 and ">one</text>" in text and ">four</text>" in text


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["--sinks", "--window", "24"]], ids=["plain", "sinks"])
def test_100_steps(tmp_path, options):
    one = run(tmp_path, 1, *options)
    assert one["losses"][-1] < 0.7 * one["losses"][0]
    compare(run(tmp_path, 4, "--cp", "4", *options), one)
    compare(run(tmp_path, 4, "--dp", "2", "--cp", "2", *options), one)
    compare(run(tmp_path, 3, "--cp", "3", "--order", "striped 8", *options), one)
