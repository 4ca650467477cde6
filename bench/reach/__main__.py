# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/reach.md: scripts/reach."""

import argparse
import pathlib

from reach import page
from reach.machines import ROOT

parser = argparse.ArgumentParser(prog="scripts/reach", description="Predicts published figures of "
                                 "attention over many GPUs, and writes the page that compares.")
parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs",
                    help="folder for reach.md and reach/*.svg; left out: docs")
page.write(parser.parse_args().out)
