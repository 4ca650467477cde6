# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python of docs/python.md runs as it stands there."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_python(capsys):
    text = (DOCS / "python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 7
    scope = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), scope)
    printed = capsys.readouterr().out
    assert printed.startswith("right: o ") and "256 ranks" in printed


def test_commands():
    """Those of the example name options that it has; test_train.py runs it."""
    lines = re.findall(r"^\$ (.*examples/train.py.*)$", (DOCS / "python.md").read_text(), re.M)
    example = (DOCS.parent / "examples" / "train.py").read_text()
    assert len(lines) >= 4
    for line in lines:
        for option in re.findall(r"--\S+", line.split("train.py", 1)[1]):
            assert f'"{option}"' in example, line
