"""Finds links of documents that lead nowhere: links.py ROOT FILE...

A relative link names a file or folder that is there and, behind a `#`, one of its
headings. A document that lists its headings (as links to itself, one a line) lists
all those of the second level.
"""

import os
import re
import sys


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
