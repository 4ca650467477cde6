# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where results come from: the processor, and the commit of this tree."""

import pathlib
import platform
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def commit():
    def git(*arguments):
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    found = git("rev-parse", "--short", "HEAD")
    if found.returncode:
        return "unknown"
    return found.stdout.strip() + (", changed since" if git("status", "--porcelain",
                                                            "--untracked-files=no").stdout else "")
