# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what programs become with digests that were frozen.

Of each program of programs.py: the ring program behind `burst-to-ring`, with
and without its passes, and its plan; and the results for two processors, where
this one can run their code. A change that should not change them shows so; one
that should freezes them anew, in a commit of its own.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import tempfile

import programs

# Optional passes are left out one by one.
PIPELINES = {"ring": "", "ring-no-drop": "drop=false", "ring-no-overlap": "overlap=false"}
# Processors with AVX2 and AVX-512, and the flags that tell that one can be had.
PROCESSORS = {"haswell": {"avx2", "fma", "f16c"},
              "skylake-avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}}


def flags_of_machine():
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("flags"):
                return set(line.split(":")[1].split())
    return set()


class Corpus:
    def __init__(self, tools, leave):
        self.tools = tools
        self.leave = leave

    def call(self, tool, *arguments, text=None):
        run = subprocess.run([os.path.join(self.tools, tool), *arguments], input=text,
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"{tool} {' '.join(arguments)}: {run.stderr.strip()}")
        return run.stdout

    def digest(self, n, kind, content):
        """Of text or bytes, which a directory may keep."""
        if isinstance(content, str):
            content = content.encode()
        if self.leave:
            with open(os.path.join(self.leave, f"p{n}.{kind}"), "wb") as file:
                file.write(content)
        return hashlib.sha256(content).hexdigest()[:16]

    def lower(self, n):
        """The ring programs and the plan of program n, by what they are."""
        text = programs.program(n)
        found = {}
        for kind, options in PIPELINES.items():
            verify = "verify=false"
            ring = self.call("burst-opt", f"--burst-to-ring={verify} {options}".rstrip(),
                             "--canonicalize", "--cse", text=text)
            found[kind] = self.digest(n, kind, ring)
            if kind == "ring":
                found["plan"] = self.digest(n, "plan", self.plan(ring))
        return found

    def plan(self, ring):
        try:
            return self.call("burst-opt", "-", "--ring-plan", "-o", os.devnull, text=ring)
        except RuntimeError as error:
            # Tables decide what this program sends: its results have its plan.
            if "known at run time only" not in str(error):
                raise
            return "by tables"

    def run(self, n, processor):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.safetensors")
            report = json.loads(
                self.call("burst-run", "-", f"--target-cpu={processor}", "--seed=1",
                          f"--out={out}", "--json", text=programs.program(n)))
            # Every table is known here, and so is what is sent, held and dropped.
            plan = {key: value for key, value in report.items()
                    if key.endswith("_planned") or key.startswith("pairs_")}
            with open(out, "rb") as file:
                return self.digest(n, processor,
                                   json.dumps(plan, sort_keys=True).encode() + file.read())

    def of(self, n, processors):
        found = self.lower(n)
        for processor in processors:
            found[processor] = self.run(n, processor)
        return n, found


def compare(frozen, found, n):
    # Where results were frozen on a machine that lacks a processor, it has none.
    wrong = [kind for kind, digest in found.items()
             if frozen.get(kind) != digest and (kind in frozen or kind not in PROCESSORS)]
    for kind in wrong:
        print(f"p{n}: {kind} is {found[kind]}, frozen was {frozen.get(kind)}")
    return not wrong


def write(path, found):
    temporary = path + ".new"
    with open(temporary, "w") as file:
        file.write("{\n" + ",\n".join(
            f'"p{n}": {json.dumps(digests)}' for n, digests in sorted(found.items())) + "\n}\n")
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tools", help="folder of burst-opt and burst-run")
    parser.add_argument("frozen", help="file of digests")
    parser.add_argument("--freeze", action="store_true", help="write them")
    parser.add_argument("--freeze-text", action="store_true",
                        help="write those of ring programs, if no plan or result has changed")
    parser.add_argument("--freeze-plans", action="store_true",
                        help="write those of ring programs and plans, and of results with "
                             "plans; compare the results themselves before, with --leave")
    parser.add_argument("--leave", help="folder for what is digested")
    parser.add_argument("--lower", type=int, default=1, help="programs to lower: each n-th")
    parser.add_argument("--run", type=int, default=1, help="of these, programs to run: each n-th")
    options = parser.parse_args()
    flags = flags_of_machine()
    processors = [name for name, needs in PROCESSORS.items() if needs <= flags]
    freezes = options.freeze or options.freeze_text or options.freeze_plans
    if freezes and (options.lower, options.run) != (1, 1):
        sys.exit("all programs are frozen, or none")
    if options.freeze and len(processors) < len(PROCESSORS):
        sys.exit(f"freezing needs a machine that can run {', '.join(PROCESSORS)}, "
                 f"this one can run {', '.join(processors) or 'none'}")
    if options.leave:
        os.makedirs(options.leave, exist_ok=True)
    corpus = Corpus(options.tools, options.leave)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        numbers = range(0, programs.NUM_PROGRAMS, options.lower)
        found = dict(pool.map(
            lambda n: corpus.of(n, processors if n in numbers[::options.run] else []), numbers))
    if options.freeze:
        write(options.frozen, found)
        return
    with open(options.frozen) as file:
        frozen = json.load(file)
    if options.freeze_plans:
        # What this machine cannot run stays where nothing else has changed.
        write(options.frozen,
              {n: {**({} if any(frozen[f"p{n}"].get(kind) != digests[kind]
                                for kind in ("plan", *processors)) else frozen[f"p{n}"]),
                   **digests} for n, digests in found.items()})
        return
    if options.freeze_text:
        # What this machine cannot run stays as it was.
        merged = {n: {**frozen[f"p{n}"], **digests} for n, digests in found.items()}
        if all([compare(frozen[f"p{n}"],
                        {kind: digests[kind] for kind in digests if kind not in PIPELINES}, n)
                for n, digests in merged.items()]):
            write(options.frozen, merged)
            return
        sys.exit("plans or results have changed: nothing was frozen")
    same = [compare(frozen.get(f"p{n}", {}), digests, n) for n, digests in found.items()]
    print(f"{sum(same)} of {len(same)} programs as frozen, results for "
          f"{', '.join(processors) or 'no processor'}")
    sys.exit(not all(same))


if __name__ == "__main__":
    main()
