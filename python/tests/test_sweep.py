# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.sweep and python -m burst sweep: times of the clock by many choices."""

import csv
import io
import json
import re
import subprocess
import sys

import pytest
import torch

import burst
from burst import __main__ as command
from burst import drawing, sweeps

# A hop of 64 KiB in a node takes 2 ms, between nodes 8 ms, and a tile of 128 x 128 pairs and a
# head of 64 1 ms.
MACHINE = """module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.flops" = 4194304.0e3 : f64,
  "burst.peak" = 8388608.0e3 : f64, "burst.memory" = 5.0e6 : f64, "burst.node" = 2.0 : f64,
  "burst.node_bandwidth" = 32768.0e3 : f64, "burst.node_latency" = 0.0 : f64,
  "burst.bandwidth" = 8192.0e3 : f64, "burst.latency" = 0.0 : f64>>} {}"""


def causal(b, h, i, j):
    return i >= j


def small(*shapes, **more):
    return burst.sweep(*shapes or ((1, 1, None, 64),),
                       **{"machine": MACHINE, "dtype": "float32", "strategies": ["ring_kv"],
                          "orders": ["contiguous"], "ranks": [2],
                          "lengths": () if shapes else [256], **more})


def test_rows_are_those_of_explain():
    found = small(lengths=(256, 512), ranks=(2, 4), orders=("contiguous", "zigzag"),
                  directions=("forward", "backward"), mask=causal)
    assert len(found.rows) == 16
    assert found.varied == ["length", "ranks", "order", "direction"]
    for row in found.rows:
        plan = burst.explain((1, 1, row.length, 64), mask=causal, dtype="float32",
                             sequence=burst.Sequence(ranks=row.ranks, order=row.order,
                                                    nodes=row.nodes),
                             strategy="ring_kv", backward=row.direction == "backward",
                             machine=MACHINE)
        assert row.reason is None and row.chosen == row.strategy == "ring_kv"
        for name in ("seconds", "compute_seconds", "exposed_seconds", "share_of_peak",
                     "bytes_sent", "peak_bytes", "fits", "limit"):
            assert getattr(row, name) == plan.time[name], name
    assert len({row.seconds for row in found.rows}) > 8


def test_links_are_scaled():
    # Two tiles a rank: the hop is hidden by the first one, and waited for beyond that.
    rows = {row.node_bandwidth: row.seconds for row in small(node_bandwidth=(0.5, 1, 2, 4)).rows}
    assert rows == pytest.approx({0.5: 5e-3, 1: 3e-3, 2: 2e-3, 4: 2e-3})
    assert [row.seconds for row in small(bandwidth=(0.5, 1, 2)).rows] == pytest.approx([3e-3] * 3)
    between = small(lengths=[512], ranks=[4], bandwidth=(0.25, 1, 1024)).rows
    assert between[0].seconds > between[1].seconds > between[2].seconds
    assert "= 1.63840000000000000e+07 :" in sweeps.widened(MACHINE, "bandwidth", 2)
    # Whatever blanks and comments there are, and of factors whatever is a number.
    dense = '// "burst.bandwidth" = 1.0\n' + MACHINE.replace(" = ", "=")
    assert "=1.63840000000000000e+07 :" in sweeps.widened(dense, "bandwidth", 2)
    assert small(bandwidth=torch.tensor([1e6, 1.0]).numpy()).rows[0].bandwidth == 1e6
    with pytest.raises(ValueError, match='bandwidth: the machine has no decimal entry "burst.ba'):
        sweeps.widened(MACHINE.replace('"burst.bandwidth"', '"burst.other"'), "bandwidth", 2)
    with pytest.raises(ValueError, match="node_bandwidth: a factor above 0 is wanted, got 0"):
        small(node_bandwidth=[0])


def test_lengths_and_placements():
    cross = small((1, 1, 64, 64), (1, 1, None, 64), lengths=(256, 512)).rows
    assert [(row.length, row.key_length) for row in cross] == [(64, 256), (64, 512)]
    bshd = small((1, 256, 1, 64), layout="bshd").rows
    assert bshd[0].length == 256 and bshd[0].seconds == pytest.approx(3e-3)
    placed = small(lengths=[512], ranks=[8], nodes=(2, 4), strategies=["double_ring_kv"]).rows
    assert [row.nodes for row in small(ranks=(1, 2, 3, 4, 8)).rows] == [1, 1, 1, 2, 4]
    # 4 or 2 ranks lie in a node of the grid, 2 in one of the machine.
    assert placed[0].seconds != placed[1].seconds
    assert placed[1].seconds == min(row.seconds for row in placed)


def test_strategies_of_each_direction():
    rows = small(strategies=["ring_kv then ring_q", "ring_q"],
                 directions=("forward", "backward")).rows
    assert [row.chosen for row in rows] == ["ring_kv", "ring_q", "ring_q", "ring_q"]
    assert rows[1].seconds == rows[3].seconds and rows[0].seconds != rows[2].seconds


def test_what_cannot_be_had_has_a_reason():
    found = small((1, 1, None, 64), lengths=[256], ranks=(2, 4), nodes=(1, 3),
                  strategies=("auto", "ulysses"))
    by = {(row.ranks, row.nodes, row.strategy): row for row in found.rows}
    assert by[4, 3, "auto"].reason == "3 nodes do not divide 4 ranks"
    assert by[4, 3, "auto"].seconds is None
    assert by[2, 1, "ulysses"].reason.startswith("shards 1 query heads over 2 ranks, of which")
    chunked = small((1, 8, None, 64), lengths=[256], ranks=[2],
                    strategies=["ulysses in 3 chunks", "ulysses in 4 chunks"]).rows
    assert chunked[0].reason == ("3 chunks do not divide the 4 query heads that a rank has in "
                                 "between; pin ulysses in 2 or 4 chunks, or without chunks")
    assert chunked[1].reason is None and chunked[1].seconds > 0
    assert by[2, 1, "auto"].reason is None and by[2, 1, "auto"].chosen in found.table
    assert "| x 3 nodes do not divide 4 ranks" in found.table
    large = small(lengths=[2**15], strategies=("auto", "ring_kv")).rows
    assert "and 'burst.memory' is 5000000" in large[0].reason
    assert large[1].reason is None and large[1].fits is False
    assert "holds too much" in burst.Sweep(large).table


def test_refusals():
    for wrong, error, message in (
            ({"strategies": ["rnig"]}, ValueError, "strategy: 'rnig' is not known"),
            ({"orders": ["zig"]}, ValueError, "order: 'zig' is not known"),
            ({"directions": ["up"]}, ValueError, "directions: 'up' is not known; there"),
            ({"machine": "module {}"}, burst.Error, "describes no machine"),
            ({"machine": "none.mlir"}, FileNotFoundError, "none.mlir"),
            ({"lengths": []}, ValueError, "lengths: are wanted for"),
            ({"dtype": "int8"}, ValueError, "got int8"),
            ({"layout": "hsbd"}, ValueError, "layout: 'hsbd' is not known"),
            *(({name: [2, wrong]}, ValueError,
               f"^{name}: a whole number of at least 1 is wanted, got {wrong}$")
              for name in ("lengths", "ranks", "nodes") for wrong in (0, -4)),
            *(({name: [1, wrong]}, error, f"^{name}: a factor above 0 is wanted, got ")
              for name in ("bandwidth", "node_bandwidth")
              for wrong, error in ((-1, ValueError), (float("nan"), ValueError), ("x", TypeError))),
            ({"lengths": 256}, TypeError, "^lengths: a list is wanted, got 256$"),
            ({"orders": "zigzag"}, TypeError, "^orders: a list is wanted, got 'zigzag'$")):
        with pytest.raises(error, match=message):
            small(**wrong)
    with pytest.raises(ValueError, match="lengths: no length of a shape is None"):
        small((1, 1, 256, 64), lengths=[256])
    for shapes in ((1, 1, 0, 64),), ((0, 1, 256, 64),), ((1, 1, 256, 64), (1, 1, 256, -2)):
        with pytest.raises(ValueError, match="^[qk]: a size: a whole number of at least 1 is"):
            small(*shapes)
    with pytest.raises(ValueError, match="^q: 4 dimensions bhsd are wanted"):
        small((256, 64))
    with pytest.raises(ValueError, match="svg: several lengths, ranks"):
        small().svg()
    with pytest.raises(ValueError, match="y: 'limit' is not known"):
        small(lengths=(256, 512)).svg(y="limit")


def test_what_is_wrong_is_said_before_the_first_row(monkeypatch):
    """Also of what only the last rows have."""
    def never(*_):
        raise AssertionError("a row was timed")

    monkeypatch.setattr(sweeps, "_timed", never)
    for wrong in ({"lengths": [256, 0]}, {"orders": ["zigzag", "zig"]},
                  {"strategies": ["auto", "rnig"]}, {"node_bandwidth": [1, -1]},
                  {"nodes": [1, 0]}):
        with pytest.raises(ValueError, match=f"^({next(iter(wrong))}|order|strategy): "):
            small(**wrong)
    found = []
    with pytest.raises(AssertionError, match="a row was timed"):
        small(lengths=(256, 512), planned=found.append)
    assert [row.length for row in found[0].rows] == [256, 512]
    assert all(row.seconds is None for row in found[0].rows)


def test_told_bandwidth():
    """It is that at which the last rank waits for bandwidth for 5 % of its time."""
    wide = re.compile(r"with ([\d.]+) GB/s it would wait for less than 5 %")
    for strategy, direction, ranks in (("ring_kv", "forward", 8), ("ring_q", "backward", 4),
                                       ("direct_kv", "forward", 4)):
        def timed(factor, strategy=strategy, direction=direction, ranks=ranks):
            return small((1, 1, 2048, 64), strategies=[strategy], directions=[direction],
                         ranks=[ranks], nodes=[1], bandwidth=[factor]).rows[0]
        told = wide.search(timed(0.5).limit)
        factor = float(told[1]) * 1e9 / 8192e3
        assert factor > 0.5
        for much, waits in ((1.02, False), (0.95, True)):
            row = timed(factor * much)
            assert (row.exposed_seconds / row.seconds > 0.049) == waits, (strategy, row)
    row = small((1, 1, 2048, 64), strategies=["all_gather"], ranks=[4], nodes=[1]).rows[0]
    assert row.limit.endswith("; 16 times as much would not be enough")


def test_files_are_checked_before_the_first_row(tmp_path, monkeypatch, capsys):
    (tmp_path / "machine.mlir").write_text(MACHINE)
    (tmp_path / "folder.csv").mkdir()

    def never(*_):
        raise AssertionError("a row was timed")

    monkeypatch.setattr(sweeps, "_timed", never)
    common = ["sweep", "--machine", str(tmp_path / "machine.mlir"), "--lengths", "256", "512"]
    for name, more, message in (
            ("none/a.csv", [], f"none/a.csv: a file in a folder that exists is wanted, {tmp_path}/"
                               "none is none"),
            ("folder.csv", [], "folder.csv: a file is wanted, it is a folder"),
            ("a.pdf", [], "a.pdf: a name that ends in .csv, .json, .svg or .txt is wanted"),
            ("a.svg", ["--x", "ranks"], "'ranks' is not among them: length"),
            ("a.svg", ["--y", "limit"], "y: 'limit' is not known"),
            ("a.svg", ["--lengths", "256"], "svg: several lengths, ranks")):
        to = ["--to", str(tmp_path / "good.txt"), str(tmp_path / name)]
        assert command.main([*common, *more, *to]) == 2
        assert message in capsys.readouterr().err
    monkeypatch.setattr(drawing.os, "access", lambda *_: False)
    assert command.main([*common, "--to", str(tmp_path / "a.csv")]) == 2
    assert f"a folder that can be written is wanted, {tmp_path} cannot" in capsys.readouterr().err


def test_files(tmp_path):
    found = small(lengths=(256, 512), ranks=(2, 4, 3), nodes=(2,))
    for name in ("csv", "json", "svg", "txt"):
        found.save(tmp_path / f"sweep.{name}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "sweep.csv", "sweep.json", "sweep.svg", "sweep.txt"]
    rows = json.loads((tmp_path / "sweep.json").read_text())
    assert [sweeps.Row(**row) for row in rows] == list(found.rows)
    lines = list(csv.DictReader(io.StringIO((tmp_path / "sweep.csv").read_text())))
    assert [line["seconds"] for line in lines] == [
        "" if row.seconds is None else str(row.seconds) for row in found.rows]
    assert (tmp_path / "sweep.txt").read_text() == found.table + "\n"
    picture = (tmp_path / "sweep.svg").read_text()
    # Of 3 ranks there is nothing to draw.
    assert picture.count("<polyline") == 2 and picture.count("<circle") == 4
    assert ">2 ranks</text>" in picture and ">512</text>" in picture
    with pytest.raises(ValueError, match="sweep.pdf: a name that ends in .csv"):
        found.save(tmp_path / "sweep.pdf")
    with pytest.raises(ValueError, match="svg: nothing of this sweep can be had"):
        small(lengths=(256, 512), ranks=(3,), nodes=(2,)).save(tmp_path / "none.svg")


def test_curves():
    panel = drawing.Panel([("a < b", [(1, 1.0), (2, None), (4, 4.0)])], "c",
                          x_ticks=[(1, "1"), (4, "4")], y_ticks=[(1, "1"), (4, "4")])
    picture = drawing.curves([panel], is_logarithmic=True, has_points=True)
    assert picture.count("<polyline") == 2 and "a &lt; b" in picture
    # The corners of the axes.
    assert 'points="60.0,320.0"' in picture and 'points="620.0,40.0"' in picture
    two = drawing.curves([panel, panel], is_logarithmic=True, has_points=True)
    assert two.count("<polyline") == 4 and two.count("a &lt; b") == 1
    assert 'points="700.0,320.0"' in two and 'points="1260.0,40.0"' in two


def test_command(tmp_path, capsys):
    machine = tmp_path / "machine.mlir"
    machine.write_text(MACHINE)
    common = ["sweep", "--machine", str(machine), "--heads", "1", "--dim", "64", "--dtype",
              "float32", "--orders", "contiguous"]
    files = [tmp_path / "a.csv", tmp_path / "a.svg"]
    done = subprocess.run(
        [sys.executable, "-m", "burst", *common, "--lengths", "256", "1K", "--ranks", "2", "4",
         "--strategies", "ring_kv", "--mask", "window:256", "--to", *map(str, files)],
        capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    expected = small(lengths=(256, 1024), ranks=(2, 4),
                     mask=lambda b, h, i, j: (i >= j) & (i - j < 256))
    assert done.stdout == expected.table + "\n"
    assert done.stdout.splitlines()[0].startswith("length | ranks | time ")
    assert [file.read_text() for file in files] == [expected.csv, expected.svg()]
    for wrong, message in ((["--to", "a.pdf"], "a.pdf: a name that ends in"),
                           (["--machine", "none.mlir"], "No such file or directory: 'none.mlir'"),
                           (["--orders", "zig"], "order: 'zig' is not known")):
        assert command.main(common + wrong) == 2
        assert message in capsys.readouterr().err
    for mask in ([], ["--mask", "window:8"]):
        assert command.main([*common, "--keys", "1M", *mask]) == 2
        assert "keys: causal masks and windows count queries and keys from 0" in \
            capsys.readouterr().err
    assert command.main([*common, "--ranks", "3", "--strategies", "double_ring_kv"]) == 1
    assert "x goes over several nodes, of which the 3 ranks have 1" in capsys.readouterr().out
    assert command.main([*common, "--ranks", "3", "--nodes", "2"]) == 1
    assert "2 nodes do not divide 3 ranks" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main([*common, "--mask", "odd"])
    assert "none, causal or window:N is wanted, got odd" in capsys.readouterr().err
    for option in ("--lengths", "--keys", "--ranks", "--nodes", "--heads", "--dim", "--batch"):
        with pytest.raises(SystemExit):
            command.main([*common, option, "0"])
        assert f"argument {option}: a whole number of at least 1 is wanted, as 4096, 32K or " \
            "1M, got 0" in capsys.readouterr().err
