# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds includes of the runtime that go the wrong way: includes.py ROOT.

runtime/CMakeLists.txt says of each folder of runtime/src which others it may include.
They stand above it, so that there are no circles. Of what lies in runtime/src nothing
else includes anything, but tests; and nobody has it on the include path.
"""

import os
import re
import sys

SOURCES = (".c", ".cc", ".cpp", ".cu", ".h", ".hpp")
SRC = "runtime/src/"
MPI = "runtime/mpi/" # a library of its own
NOT_OURS = {"build", "__pycache__", "test"}


def rules(root):
    """What each folder may include, in the order of the file."""
    found = {}
    with open(os.path.join(root, "runtime/CMakeLists.txt"), encoding="utf-8") as file:
        comments = re.findall(r"(?:^#.*\n)+", file.read(), re.MULTILINE)
    for comment in comments:
        if match := re.fullmatch(r"([\w/]+)(?: \(\w+\.h\))?: .* May include: (.*)\.",
                                 " ".join(comment.replace("#", "").split())):
            found[match[1]] = [] if match[2] == "none" else match[2].split(", ")
    return found


def check_rules(found):
    seen = []
    for name, allowed in found.items():
        for other in allowed:
            if other not in seen:
                yield f"runtime/CMakeLists.txt: {name} may include {other}: not above it"
        seen.append(name)


def files(root, folder, skipped=()):
    for path, folders, names in os.walk(os.path.join(root, folder)):
        folders[:] = sorted(f for f in folders if f not in skipped and f[0] != ".")
        yield from (os.path.relpath(os.path.join(path, n), root) for n in sorted(names))


def includes(root, file):
    with open(os.path.join(root, file), encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if match := re.match(r'\s*#\s*include\s*"([^"]+)"', line):
                yield f"{file}:{number}", match[1]


def check_runtime(root, found):
    for file in files(root, "runtime"):
        if not file.endswith(SOURCES):
            continue
        folder = os.path.dirname(file)[len(SRC):] if file.startswith(SRC) else None
        if folder is not None and folder not in found:
            yield f"{file}: runtime/CMakeLists.txt does not say what its folder may include"
            continue
        for place, name in includes(root, file):
            if file.startswith(MPI) and name.startswith(MPI):
                continue
            other = os.path.dirname(name)[len(SRC):] if name.startswith(SRC) else None
            if other is None and not name.startswith("burst/"):
                yield f"{place}: '{name}', wanted {SRC}... or burst/..."
            elif other is not None and folder is None:
                yield f"{place}: '{name}' in a header for others"
            elif other is not None and other not in [folder, *found[folder]]:
                yield f"{place}: {folder} may not include {other}"


def check_others(root):
    for file in files(root, ".", NOT_OURS | {"runtime"}):
        if file.endswith(SOURCES):
            for place, name in includes(root, file):
                if SRC in name:
                    yield f"{place}: '{name}' is the runtime's own, see burst/internal"
        elif file.endswith(("CMakeLists.txt", ".cmake")):
            with open(os.path.join(root, file), encoding="utf-8") as text:
                if SRC[:-1] in text.read():
                    yield f"{file}: names {SRC[:-1]}"


found = rules(sys.argv[1])
problems = [*check_rules(found), *check_runtime(sys.argv[1], found), *check_others(sys.argv[1])]
if not found:
    problems = ["runtime/CMakeLists.txt: says of no folder what it may include"]
print(*problems, sep="\n")
sys.exit(bool(problems))
