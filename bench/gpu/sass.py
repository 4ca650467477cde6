#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code of kernels, as text, and what can be read from it.

usage: sass.py [--pipelined] CUBIN...

Prints of each loop in which two asynchronous products are under way how many of its exponentials
are computed before the wait for the older one's end, which is when tensor cores have work
meanwhile. --pipelined: fails where a kernel has no such loop, or fewer than a third of them are.
"""

import os
import re
import shutil
import subprocess
import sys


def find_disassembler():
    """nvdisasm: on the PATH, in a toolkit, or where scripts/setup brings it; or None."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    homes = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda",
             os.path.join(cache, "burst", "cuda", "nvidia", "cu13")]
    folders = [os.path.join(home, "bin") for home in homes if home]
    return shutil.which("nvdisasm") or shutil.which("nvdisasm", path=os.pathsep.join(folders))


def disassemble(cubin):
    """The text of a file of machine code."""
    program = find_disassembler()
    if program is None:
        raise RuntimeError("no nvdisasm: scripts/setup brings it")
    done = subprocess.run([program, "-c", cubin], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"nvdisasm {cubin}: {done.stderr.strip()}")
    return done.stdout


def instructions(text):
    """Opcodes with their operands, in order."""
    return [match[1] for match in
            re.finditer(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][^;]*);", text)]


def waits_for(instruction):
    """How many products may be under way behind a wait; None where it is none."""
    match = re.match(r"WARPGROUP\.DEPBAR\S* gsb0, (0x[0-9a-f]+)", instruction)
    return int(match[1], 16) if match else None


class Iteration:
    """Of a loop that waits for scores while outputs go on, and then for these: exponentials in
    front of the second wait, and all of them up to the next product."""

    def __init__(self, code, begin):
        before = after = 0
        waited = False
        for instruction in code[begin + 1:]:
            if instruction.startswith("HGMMA"):
                break
            waited |= waits_for(instruction) == 0
            if instruction.startswith("MUFU.EX2"):
                before, after = before + (not waited), after + waited
        self.before, self.all, self.waits = before, before + after, waited

    @property
    def is_pipelined(self):
        return self.waits and 3 * self.before >= self.all > 0


def iterations(text):
    code = instructions(text)
    return [Iteration(code, at) for at, instruction in enumerate(code) if waits_for(instruction) == 1]


def main():
    wanted = "--pipelined" in sys.argv
    failed = False
    for path in (argument for argument in sys.argv[1:] if not argument.startswith("--")):
        found = iterations(disassemble(path))
        for iteration in found:
            print(f"{path}: {iteration.before} of {iteration.all} exponentials before the wait for outputs")
        if wanted and not (found and all(iteration.is_pipelined for iteration in found)):
            print(f"{path}: not pipelined", file=sys.stderr)
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
