# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All case programs of the tests, for ranks that are processes.

  cases.py make FOLDER BURST-RUN LINKER [--ranks N] [--every N]
      Takes the programs of test/cases and examples, on so many ranks (8) each. Every
      one is compiled once, run by ranks that are threads, and compared with the
      oracle; FOLDER gets its code as NAME.so, what it runs on as in/NAME.safetensors
      where that is not seeded, and its plan in NAME.json. --every takes one of so
      many.
  cases.py compare FOLDER [--carried FILE]
      Whether ranks that are processes, which wrote to ranks/ and printed JSON to
      ranks.json, have the bits of those that wrote to threads/, and sent and held
      the bytes of the plan. Between two hosts FILE says how many went by the cable:
      at least an eighth of all is wanted.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[3]
CASES = SOURCE / "test" / "cases"
sys.path.insert(0, str(CASES / "Inputs"))
import backward

STRATEGIES = ["ring_kv", "ring_q", "all_gather"]


@dataclasses.dataclass
class Program:
    name: str
    module: str
    entry: str
    make_inputs: list = None # a command, behind which the file's name stands


def on_ranks(module, ranks):
    return re.sub(r"\(shape = (\d+|RANKS)\)", f"(shape = {ranks})", module)


def examples(ranks):
    for path in sorted((SOURCE / "examples").glob("*.mlir")):
        module = on_ranks(path.read_text(), ranks)
        if path.stem == "llama3":
            module = module.replace("2048", "128")
        yield Program(f"example-{path.stem}", module,
                      re.findall(r"func\.func @(\w+)", module)[0])


def in_files(ranks):
    """Every third one with its backward pass, as in backward.test, or all of them in
    the long form of the tests."""
    values = {"SIZE": "128", "KV": "1", "ORDER": "striped 4", "ELEMENT": "bf16"}
    step, number = 1 if os.environ.get("BURST_TEST_FULL") else 3, 0
    for path in sorted(CASES.glob("*.mlir")):
        module = on_ranks(path.read_text(), ranks)
        for name, value in values.items():
            module = re.sub(f"\\b{name}|(?<=x){name}", value, module)
        for entry in re.findall(r"func\.func @(\w+)", module):
            text = module
            if number % step == 0:
                strategy = STRATEGIES[number // step % len(STRATEGIES)]
                text = backward.differentiate(module, entry, strategy)
            number += 1
            yield Program(f"{path.stem}-{entry}", text, entry)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def slices(ranks, folder):
    """Those that slices.py makes, by the RUN lines of the tests."""
    script = CASES / "Inputs" / "slices.py"
    for path in sorted(CASES.glob("*.test")):
        macros = {}
        for line in path.read_text().splitlines():
            if found := re.match(r"(?:RE)?DEFINE: %\{(\w+)\} = (.*)", line):
                macros[found[1]] = found[2]
            if not line.startswith("RUN: ") or "|" not in line:
                continue
            text = line.removeprefix("RUN: ").split("|")[0]
            while found := re.search(r"%\{(\w+)\}", text):
                text = text.replace(found[0], macros[found[1]])
            words = shlex.split(text)
            if words[:2] != ["%python", "%S/Inputs/slices.py"]:
                continue
            name = f"{path.stem}-{line_number(path, line)}"
            inputs = folder / "in" / f"{name}.safetensors"
            words = [inputs if word == "%t" else word for word in words[3:]]
            yield Program(name, run([sys.executable, script, str(ranks), *words]), "slices")


def line_number(path, line):
    return path.read_text().splitlines().index(line) + 1


def part(name, file):
    """What split-file would write."""
    return re.search(rf"//--- {re.escape(file)}\n(.*?)(?=//---|\Z)",
                     (CASES / name).read_text(), re.S)[1]


def with_inputs(ranks, folder):
    script = [sys.executable, str(CASES / "Inputs" / "padding.py")]
    yield Program("padding", on_ranks(part("padding.test", "padded.mlir"), ranks), "padded",
                  [*script, folder / "in" / "padding.safetensors", "2", "37", "29"])
    module = on_ranks(part("sinks.test", "sink.mlir"), ranks)
    for name, value in {"ELEMENT": "f64", "STATE": "f64", "ORDER": "zigzag"}.items():
        module = module.replace(name, value)
    script = [sys.executable, str(CASES / "Inputs" / "sinks.py")]
    yield Program("sinks", module, "sink",
                  [*script, "make", folder / "in" / "sinks.safetensors",
                   folder / "off-by-one.safetensors"])


def make_one(program, folder, burst_run, linker):
    module, dump = folder / f"{program.name}.mlir", folder / "dump" / program.name
    module.write_text(program.module)
    if program.make_inputs:
        run(program.make_inputs)
    inputs = folder / "in" / f"{program.name}.safetensors"
    given = ["--in", inputs] if inputs.exists() else []
    printed = run([burst_run, module, "--entry", program.entry, "--check=rows:32", "--json",
                   "--threads=1", "--dump-dir", dump, *given])
    module.with_suffix(".json").write_text(printed)
    # What burst-compile would compile once more.
    run([linker, "-shared", "-o", module.with_suffix(".so"), *sorted(dump.glob("5-program*.o"))])
    for path in dump.iterdir():
        path.unlink()


def make(args):
    folder = Path(args.folder)
    for name in ("in", "threads", "ranks", "dump"):
        (folder / name).mkdir(parents=True)
    programs = [*examples(args.ranks), *in_files(args.ranks), *slices(args.ranks, folder),
                *with_inputs(args.ranks, folder)][::args.every]
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count())) as pool:
        list(pool.map(lambda program: make_one(program, folder, args.burst_run, args.linker),
                      programs))
    print(f"{len(programs)} programs")


def objects(text):
    decoder, at = json.JSONDecoder(), 0
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        yield value


def compare(args):
    folder, wrong = Path(args.folder), []
    files = sorted(folder.glob("*.so"))
    counted = list(objects((folder / "ranks.json").read_text()))
    if not files or len(files) != len(counted):
        sys.exit(f"ranks.json has {len(counted)} programs, wanted {len(files)}")
    for path, found in zip(files, counted):
        wanted = json.loads(path.with_suffix(".json").read_text())
        for key, plan in (("program", "program"), ("bytes_sent", "bytes_planned"),
                          ("peak_bytes", "peak_bytes_planned")):
            if found[key] != wanted[plan]:
                wrong.append(f"{path.stem}: {key} {found[key]}, wanted {wanted[plan]}")
        name = f"{path.stem}.safetensors"
        if (folder / "ranks" / name).read_bytes() != (folder / "threads" / name).read_bytes():
            wrong.append(f"{path.stem}: other bits than of threads")
    sent = sum(sum(found["bytes_sent"]) for found in counted)
    if args.carried and int(Path(args.carried).read_text()) < sent / 8:
        wrong.append(f"{Path(args.carried).read_text().strip()} bytes went by the cable, wanted "
                     f"an eighth of {sent} or more")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(files)} programs on {len(counted[0]['bytes_sent'])} ranks: the same bits, and the "
          "bytes of the plan")


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    maker = commands.add_parser("make")
    maker.set_defaults(run=make)
    for name in ("folder", "burst_run", "linker"):
        maker.add_argument(name)
    maker.add_argument("--ranks", type=int, default=8)
    maker.add_argument("--every", type=int, default=1)
    comparer = commands.add_parser("compare")
    comparer.set_defaults(run=compare)
    comparer.add_argument("folder")
    comparer.add_argument("--carried")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
