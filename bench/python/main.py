# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Of scripts/bench-python, whose --help says what it does."""

import argparse
import datetime
import os
import pathlib
import platform
import signal
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "peers" / "python"))
sys.path.append(str(ROOT / "bench"))

import measuring
import peers
import provenance
import report
from cells import cells


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench-python", add_help=False, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--only", default="")
    parser.add_argument("--peers")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--timeout", type=int, default=600)
    options = parser.parse_args(arguments)
    processors = sorted(os.sched_getaffinity(0))
    options.threads = len(processors) if options.threads is None else options.threads
    if not 1 <= options.threads <= len(processors):
        parser.error(f"--threads: got {options.threads}, wanted 1 to {len(processors)}, the "
                     "processors of this process")
    options.processors = processors[:options.threads]
    options.rounds = (3 if options.quick else 7) if options.rounds is None else options.rounds
    if options.rounds < 1:
        parser.error(f"--rounds: got {options.rounds}, wanted at least 1")
    options.kinds = list(peers.OTHERS)
    if options.peers is not None:
        names = [name for name in options.peers.split(",") if name and name != "burst"]
        known = [kind.name for kind in peers.OTHERS]
        for name in names:
            if name not in known:
                parser.error(f"--peers: got {name!r}, wanted of {', '.join(known)}")
        options.kinds = [kind for kind in peers.OTHERS if kind.name in names]
    try:
        options.kinds += [peers.named(text) for text in options.peer]
    except ValueError as error:
        parser.error(str(error))
    options.cells = [cell for cell in cells(options.quick) if options.only in cell.name]
    if not options.cells:
        parser.error(f"--only: got {options.only!r}, wanted a part of a name that --list shows, "
                     f"such as {cells(options.quick)[0].name!r}")
    if options.out is not None and (why := report.check_prefix(options.out)):
        parser.error(f"--out: {why}")
    return options


def head(options):
    return {
        "date": datetime.date.today().isoformat(), "commit": provenance.commit(),
        "processor": provenance.processor(),
        "threads": f"{options.threads} in each process, on the processors "
                   f"{', '.join(map(str, options.processors))}; ranks have one each",
        "rounds": f"{options.rounds}, {min(options.rounds, measuring.FEW_ROUNDS)} of what takes "
                  f"{measuring.SLOW} times as long as the fastest",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "Python": platform.python_version(),
        "library": os.environ["BURST_LIBRARY"].removeprefix(f"{ROOT}/")}


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(options, started, keep):
    """Pairs of a cell and what was found, of cells in order; `keep` is called with those
    that there are, after each."""
    plan = measuring.Plan(options.rounds, 0.02 if options.quick else 0.1)
    found = []
    with tempfile.TemporaryDirectory(prefix="bench-python-") as folder:
        for n, cell in enumerate(options.cells):
            say(f"[{n + 1}/{len(options.cells)}] {cell.name}")
            asked = [peer for peer in started if peer.kind.many == (cell.ranks > 1)]
            found.append((cell, measuring.measure(cell, asked, plan, folder)))
            value, best = report.ratio(found[-1][1])
            for name, of_peer in found[-1][1].items():
                say(f"    {name}: {report.text_of(of_peer)}")
            if value is not None:
                say(f"    burst over {best}: {value:.2f}")
            keep(found)
    return found


def main():
    options = parse(sys.argv[1:])
    if options.list:
        print("\n".join(cell.name for cell in options.cells))
        return 0
    # What this process starts inherits it.
    os.sched_setaffinity(0, set(options.processors))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    described = head(options)

    def texts(found):
        described["measured"] = f"{len(found)} of {len(options.cells)} cells"
        described["load after"] = f"{os.getloadavg()[0]:.1f}"
        return (report.as_markdown(described, columns, found), report.as_json(described, found))

    def keep(found):
        if options.out is not None:
            for suffix, text in zip((".md", ".json"), texts(found), strict=True):
                report.write(options.out + suffix, text)

    kinds = [kind for kind in (*options.kinds, peers.BURST, peers.BURST_RANKS)
             if any((cell.ranks > 1) == kind.many for cell in options.cells)]
    columns = [kind for kind in kinds if kind.name != "burst"]
    started = [peers.Peer(kind, options.threads, options.timeout) for kind in kinds]
    try:
        for peer in started:
            peer.start()
        described["peers"] = {}
        for peer in started:
            title = peer.kind.title
            described["peers"].setdefault(title, peer.greet())
            say(f"{title}: {peer.greet()}")
        found = run(options, started, keep)
    finally:
        for peer in started:
            peer.stop()
    print(texts(found)[0], end="")
    bad = [cell.name for cell, of in found if "median" not in of["burst"]]
    for name in bad:
        say(f"bench-python: burst failed or was wrong in {name}")
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
