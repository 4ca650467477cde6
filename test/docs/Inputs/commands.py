# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the commands of documents: commands.py [--demo] ROOT FILE-OR-FOLDER...

In a fenced block of the language `console`, a line `$ command` (continued by a
backslash and lines `> ...`) is run by bash, and must end with status 0. If lines
follow, they are what it prints: `...` on a line of its own stands for any lines,
within a line for any text. The commands of a document run in order, in a
directory of their own with a link to examples/ in it.

Blocks of shell commands in other languages are refused, so that none escapes.
With --demo, only the blocks of scripts/demo are looked at: they must show what
the commands in scripts/demo print, run by the tools on the PATH.
"""

import os
import re
import subprocess
import sys
import tempfile

# Not run: they build, or run the tests, of which this is one.
EXCEPTIONS = ["scripts/build", "scripts/demo", "scripts/docs", "scripts/test"]


def blocks(path):
    """The blocks of console lines of a document: line number and lines."""
    block = None
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.rstrip()
        if match := re.match(r" *```(.*)", line):
            if block is not None:
                if language == "console":
                    yield first, block
                block = None
                continue
            language, first, block = match[1], number + 1, []
            if language in ("", "sh", "bash", "shell", "shell-session"):
                sys.exit(f"{path}:{number}: a block of commands must be `console`, one of "
                         f"anything else must say what, got: `{language}`")
        elif block is not None:
            block.append(line)


def commands(lines):
    """Pairs of a command and the lines that it is said to print."""
    result = []
    for line in lines:
        if result and result[-1][0].endswith("\\") and line.startswith("> "):
            result[-1][0] = result[-1][0][:-1] + line[2:]
        elif line.startswith("$ "):
            result.append([line[2:], []])
        elif result:
            result[-1][1].append(line)
        else:
            sys.exit(f"a block begins without a command: {line}")
    return result


def matches(shown, printed):
    """Whether the lines shown are those printed."""
    def pattern(line):
        return ".*".join(re.escape(part) for part in line.split("..."))
    whole = "".join(r"(?:.*\n)*?" if line.strip() == "..." else pattern(line) + r"\n"
                    for line in shown)
    return re.fullmatch(whole, "".join(line.rstrip() + "\n" for line in printed))


def run(command, directory):
    result = subprocess.run(["bash", "-c", command], cwd=directory, text=True, timeout=300,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return result.returncode, result.stdout.rstrip("\n").split("\n")


def demo(root):
    """The commands of scripts/demo that use the tools."""
    script = open(os.path.join(root, "scripts/demo"), encoding="utf-8").read()
    found = re.findall(r"^build/release/bin/(.*)$", script, re.MULTILINE)
    if not found:
        sys.exit("scripts/demo runs no tool")
    return " && ".join(found)


def check(path, root, only_demo):
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        for folder in ("examples", "machines"):
            os.symlink(os.path.join(root, folder), os.path.join(directory, folder))
        count = 0
        for first, lines in blocks(path):
            for command, shown in commands(lines):
                if only_demo and command != "scripts/demo":
                    continue
                if not only_demo and command.split()[0] in EXCEPTIONS:
                    continue
                count += 1
                status, printed = run(demo(root) if only_demo else command, directory)
                why = None
                if status != 0:
                    why = f"ended with status {status}"
                elif shown and not matches(shown, printed):
                    why = "did not print what is shown"
                if why:
                    failures += 1
                    print(f"{path}:{first}: `{command}` {why}:", *printed, sep="\n")
        print(f"{path}: {count} commands")
        if only_demo and count != 1:
            sys.exit("scripts/demo is shown in no block, or in several")
    return failures


def main():
    arguments = sys.argv[1:]
    only_demo = arguments[:1] == ["--demo"]
    root, *names = arguments[only_demo:]
    files = []
    for name in names:
        if os.path.isdir(name):
            # What is generated from .td files shows no commands.
            files += sorted(os.path.join(name, file) for file in os.listdir(name)
                            if file.endswith(".md"))
        else:
            files.append(name)
    sys.exit(sum(check(path, root, only_demo) for path in files) > 0)


main()
