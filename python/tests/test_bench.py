# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/bench-python: its table, and that a peer that is wrong is not timed."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# burst answers as it should; torch is wrong, flex ends, jax is not installed.
PEER = """
import json, sys
print(json.dumps({"missing": "no jax"} if sys.argv[1] == "jax" else {"name": sys.argv[1]}),
      flush=True)
for line in sys.stdin:
    question = json.loads(line)
    assert question["kind"] == "forward" and question["runs"] == 1
    if sys.argv[1] == "flex":
        sys.exit(3)
    off = {"torch": 0.5, "burst": 1e-7, "openvino": 1e-6}[sys.argv[1]]
    seconds = {"burst": 0.002, "torch": 0.001, "openvino": 0.003}[sys.argv[1]]
    print(json.dumps({"seconds": [seconds], "error": off}), flush=True)
"""


def run(*arguments):
    return subprocess.run([sys.executable, str(ROOT / "bench/compare.py"), *arguments],
                          capture_output=True, text=True, timeout=120)


def test_peers_that_fail(tmp_path):
    script = tmp_path / "peer.py"
    script.write_text(PEER)
    done = run("--quick", "--out", str(tmp_path / "table"), "--peers",
               "burst,torch,flex,openvino,jax", "--peer-command", f"{sys.executable} {script}")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "table.md").read_text()
    assert "| 2.00 | wrong | ended with status 3 | 3.00 | missing | 1.50 |" in text
    assert "ahead of all others in 1 of 1 cells; the median is 1.50" in text
    assert "torch: wrong: off by 5e-01 (1 cells)" in text and "jax: missing: no jax" in text
    report = json.loads((tmp_path / "table.json").read_text())
    found, = report["cells"].values()
    assert found["burst"]["median"] == 0.002 and len(found["burst"]["seconds"]) == 3


@pytest.mark.all
def test_a_cell():
    done = run("--quick", "--only", "causal", "--peers", "burst,torch", "--rounds", "1",
               "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert "wrong" not in done.stdout and "in 1 of 1" in done.stdout or "in 0 of 1" in done.stdout


def test_refusals():
    for arguments, message in ((["--peers", "numpy"], "--peers: numpy is not known"),
                               (["--only", "typo"], "--only typo: no cell has it in its name")):
        done = run(*arguments)
        assert done.returncode == 2 and message in done.stderr
