# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python of docs/python.md and docs/choosing.md runs as it stands there, and prints what the
latter shows, and draws its pictures: `python test_docs.py` renews both."""

import contextlib
import io
import re
import shlex
from pathlib import Path

from burst import __main__ as command
from burst import drawing

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


def renewed(text):
    """A page, with what its blocks print, in the folder of the repository."""
    scope = {}

    def run(match):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match[1], "docs/choosing.md", "exec"), scope)
        lines = [line.rstrip() + "\n" for line in printed.getvalue().splitlines()]
        return match[0].removesuffix(match[2] or "") + \
            (f"\n```text\n{''.join(lines)}```\n" if lines else "")

    with contextlib.chdir(DOCS.parent):
        return re.sub(r"^```python\n(.*?)^```\n(\n```text\n.*?^```\n)?", run, text,
                      flags=re.M | re.S)


def draw(text, folder):
    """Runs the sweeps of a page, whose pictures are written to a folder: their names."""
    names = []
    for line in re.findall(r"^\$ python -m burst (sweep (?:.*\\\n> )*.*)$", text, re.M):
        arguments = shlex.split(line.replace("\\\n> ", ""))
        place = arguments.index("--to") + 1
        names.append(arguments[place])
        arguments[place] = str(folder / Path(names[-1]).name)
        with contextlib.chdir(DOCS.parent), contextlib.redirect_stdout(io.StringIO()):
            assert command.main(arguments) == 0, line
    return names


def test_choosing():
    text = (DOCS / "choosing.md").read_text()
    assert text.count("```text") >= 15 and renewed(text) == text


def test_pictures(tmp_path):
    names = draw((DOCS / "choosing.md").read_text(), tmp_path)
    assert len(names) == 3
    for name in names:
        assert (tmp_path / Path(name).name).read_text() == (DOCS.parent / name).read_text(), name
        assert f"({name.removeprefix('docs/')})" in (DOCS / "choosing.md").read_text()


if __name__ == "__main__":
    page = DOCS / "choosing.md"
    drawing.write(page, renewed(page.read_text()))
    (DOCS / "choosing").mkdir(exist_ok=True)
    draw(page.read_text(), DOCS / "choosing")
