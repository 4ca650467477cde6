# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles programs of bench/gpu for sm_90a, several at a time.

usage: compile.py SOURCE DIRECTORY COMPILER NAME...

Of NAME, such as forward-causal-128, DIRECTORY/NAME holds what --dump-dir leaves.
"""

import concurrent.futures
import os
import subprocess
import sys

source, directory, compiler, *names = sys.argv[1:]
sys.path.insert(0, os.path.join(source, "bench", "gpu"))
import programs  # noqa: E402


def compile(name):
    direction, mask, dim = name.split("-")
    folder = os.path.join(directory, name)
    os.makedirs(folder)
    path = os.path.join(folder, "program.mlir")
    with open(path, "w") as file:
        file.write(programs.text(dim=int(dim), mask=mask, queries=4096, keys=4096,
                                 backward=direction == "backward"))
    subprocess.run([compiler, path, "--target=cuda", "--arch=sm_90a", "--dump-dir=" + folder,
                    "-o", os.path.join(folder, "program.so")], check=True)


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(compile, names))
