# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds links of documents that lead nowhere: links.py ROOT FILE...

A relative link names a file or folder that is there and, behind a `#`, one of its
headings. So does a path in backticks that begins in a folder of the repository, unless
it is one of those that are still to be written. A document that lists its headings (as links to itself, one a line) lists
all those of the second level.
"""

import glob
import os
import re
import sys


# Which readers, or a visit to a GPU, make.
TO_BE_MADE = ["passes/FooBar.cpp", "bench/results/gpu.md"]
FOLDERS = ("bench", "cmake", "codegen", "dialect", "docs", "examples", "jit", "passes", "runtime",
           "scripts", "support", "test", "tools")


def missing_paths(root, line):
    for path in re.findall(r"`((?:[\w.-]+/)+[\w.*-]*)`", line):
        if path.startswith(tuple(folder + "/" for folder in FOLDERS)) \
                and path not in TO_BE_MADE and not glob.glob(os.path.join(root, path)):
            yield path


def without_code(path):
    """The lines of a document outside of fenced blocks."""
    inside = False
    for line in open(path, encoding="utf-8"):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield line.rstrip()


def anchor(heading):
    """What GitHub calls a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def headings(path, levels="#+"):
    found = {}
    for line in without_code(path):
        if match := re.fullmatch(rf"{levels} +(.*)", line):
            name = anchor(match[1])
            count = found[name] = found.get(name, -1) + 1
            yield f"{name}-{count}" if count else name


def check(root, name):
    path = os.path.join(root, name)
    listed = []
    for line in without_code(path):
        if match := re.fullmatch(r"\* \[[^]]*\]\(#([^)]*)\)", line):
            listed.append(match[1])
        for target in missing_paths(root, line):
            yield f"{name}: `{target}`: no such file"
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"\w+:", target):
                continue
            file, _, heading = target.partition("#")
            file = os.path.join(os.path.dirname(path), file) if file else path
            if not os.path.exists(file):
                yield f"{name}: link to {target}: no such file"
            elif heading and heading not in headings(file):
                yield f"{name}: link to {target}: no such heading"
    if listed and listed != (all := list(headings(path, "##"))):
        yield f"{name}: lists {listed}, has {all}"


problems = [p for name in sys.argv[2:] for p in check(sys.argv[1], name)]
print(*problems, sep="\n")
sys.exit(bool(problems))
