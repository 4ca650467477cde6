#!/usr/bin/env python3
"""Writes what scripts/gpu-check compiles or takes along: programs, primitives and cells.json.

usage: prepare.py SOURCE DIRECTORY
"""

import json
import os
import sys

import primitives
import programs


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def main():
    source, directory = sys.argv[1:]
    for kind, made in (("truth", programs.truths()), ("speed", programs.speeds())):
        os.makedirs(os.path.join(directory, kind), exist_ok=True)
        for name, text in made:
            write(os.path.join(directory, kind, name + ".mlir"), text)
    folder = os.path.join(directory, "primitives")
    primitives.compile_all(source, folder)
    cells = list(programs.cells(primitives.names(folder)))
    write(os.path.join(directory, "cells.json"), json.dumps(cells, indent=1) + "\n")


if __name__ == "__main__":
    main()
