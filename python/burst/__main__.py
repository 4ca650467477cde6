# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m burst doctor: what burst finds on this machine.

python -m burst sweep: how long attentions would take on a machine, for every combination of
what is given. See burst.sweep.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from burst import arguments, doctor, sweeps, tracing
from burst.errors import Error

_DIMENSIONS = ("ranks", "nodes", "lengths", "orders", "strategies", "directions", "bandwidth",
               "node_bandwidth")


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m burst")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="what burst finds on this machine")
    _add_sweep(commands.add_parser(
        "sweep", help="how long attentions would take on a machine",
        description="How long attention would take on a machine, for every combination of what "
                    "is given. Prints a table. Fails where nothing of it can be had."))
    options = parser.parse_args(given)
    if options.command == "doctor":
        for name, found in doctor.report():
            print(f"{name + ':':20}{found}")
        return 0
    try:
        return _sweep(options)
    except (ValueError, OSError, Error) as error:
        print(f"python -m burst sweep: {error}", file=sys.stderr)
        return 2


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--machine", required=True, help="a file that describes it, as machines/h100.mlir")
    add("--lengths", nargs="+", type=_count, default=[131072], help="positions, as 4096 or 32K")
    add("--keys", type=_count, help="positions of the keys, where these are others")
    add("--ranks", nargs="+", type=_count, default=[8])
    add("--nodes", nargs="+", type=_count,
        help="axis 0 of the grid; as many as the ranks fill where it is left out")
    add("--orders", nargs="+", default=["zigzag"], help="contiguous, zigzag, striped")
    add("--strategies", nargs="+", default=["auto"],
        help=f"{', '.join(arguments.STRATEGIES)}, or along axes, or in chunks of heads")
    add("--directions", nargs="+", default=["forward"], choices=sweeps.DIRECTIONS)
    add("--bandwidth", nargs="+", type=float, default=[1.0],
        help="how many times as wide links between nodes are as in the file")
    add("--node-bandwidth", nargs="+", type=float, default=[1.0], help="and links in a node")
    add("--batch", type=_count, default=1)
    add("--heads", type=_count, default=32)
    add("--key-heads", type=_count, help="as --heads where it is left out")
    add("--dim", type=_count, default=128, help="of a head")
    add("--dtype", default="bfloat16")
    add("--mask", type=_mask, default="causal", help="none, causal, or window:N, causal as well")
    add("--without", nargs="+", default=[], help="overlap, dropping")
    add("--x", help="what a picture has as x; the first numbers of which there are several")
    add("--y", default="seconds", help="and as y, a column of numbers")
    add("--to", nargs="+", default=[], metavar="FILE", help="also written: .csv, .json, .svg, .txt")


def _sweep(options: argparse.Namespace) -> int:
    def check(planned: sweeps.Sweep) -> None:
        for path in options.to:
            planned.check(path, options.x, options.y)

    if options.mask is not None and (options.keys or 0) > min(options.lengths):
        raise ValueError("keys: causal masks and windows count queries and keys from 0, so that "
                         f"of {options.keys} keys those behind {min(options.lengths)} queries are "
                         "hidden; of a cache, whose keys are all seen, give --mask none")
    key_heads = options.heads if options.key_heads is None else options.key_heads
    found = sweeps.sweep(
        (options.batch, options.heads, None, options.dim),
        (options.batch, key_heads, options.keys, options.dim), machine=options.machine,
        mask=options.mask, dtype=options.dtype, without=options.without,
        planned=check, progress=_show if sys.stderr.isatty() else None,
        **{name: getattr(options, name) for name in _DIMENSIONS})
    print(found.table)
    for path in options.to:
        found.save(path, options.x, options.y)
    return int(all(row.reason is not None for row in found.rows))


def _show(done: int, of: int) -> None:
    print(f"\r{done}/{of}", end="\r" + " " * 20 + "\r" if done == of else "", file=sys.stderr,
          flush=True)


def _count(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KM]?)", text)
    number = int(found[1]) * {"": 1, "K": 2**10, "M": 2**20}[found[2]] if found else 0
    if number < 1:
        raise argparse.ArgumentTypeError("a whole number of at least 1 is wanted, as 4096, 32K or "
                                         f"1M, got {text}")
    return number


def _mask(text: str) -> tracing.Function | None:
    def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
        return i >= j

    if text in ("none", "causal"):
        return causal if text == "causal" else None
    if not text.startswith("window:"):
        raise argparse.ArgumentTypeError(f"none, causal or window:N is wanted, got {text}")
    width = _count(text.removeprefix("window:"))

    def window(b: Any, h: Any, i: Any, j: Any) -> Any:
        return (i >= j) & (i - j < width)

    return window


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
