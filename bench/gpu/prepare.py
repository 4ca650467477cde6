#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what scripts/gpu-check compiles or takes along.

usage: prepare.py SOURCE DIRECTORY         programs, primitives and cells.json
       prepare.py --code DUMPS DIRECTORY   machine code of kernels that are counted, as it is and,
                                           with nvdisasm, as text, from what burst-compile dumped
"""

import json
import os
import shutil
import sys

import primitives
import programs
import sass


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def prepare(source, directory):
    for kind, made in (("truth", programs.truths()), ("speed", programs.speeds())):
        os.makedirs(os.path.join(directory, kind), exist_ok=True)
        for name, text in made:
            write(os.path.join(directory, kind, name + ".mlir"), text)
    folder = os.path.join(directory, "primitives")
    primitives.compile_all(source, folder)
    cells = list(programs.cells(primitives.names(folder)))
    write(os.path.join(directory, "cells.json"), json.dumps(cells, indent=1) + "\n")


def keep_code(dumps, directory):
    """What the driver takes of each kernel on compute capability 9.0."""
    os.makedirs(os.path.join(directory, "sass"), exist_ok=True)
    for program, kernel in programs.COUNTED:
        architecture = "sm_90a" if program.endswith("hopper") else "sm_90"
        kernel = "attention_" + kernel
        made = os.path.join(directory, "sass", f"{program}.{kernel}")
        shutil.copy(os.path.join(dumps, program, f"{kernel}.{architecture}.cubin"),
                    made + ".cubin")
        if sass.find_disassembler():
            write(made + ".sass", sass.disassemble(made + ".cubin"))


def main():
    if sys.argv[1] == "--code":
        keep_code(*sys.argv[2:])
    else:
        prepare(*sys.argv[1:])


if __name__ == "__main__":
    main()
