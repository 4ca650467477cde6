# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the hardware counts of a kernel, by ncu; clocks while cells run; machine code."""

import csv
import glob
import io
import json
import os
import shutil
import subprocess
import sys

import sass

# By ncu's own names of sections, which outlive those of metrics.
SECTIONS = ("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "SchedulerStats",
            "WarpStateStats", "LaunchStats", "Occupancy", "InstructionStats")
CLOCKS = "timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active"


def find_ncu():
    """What BURST_NCU names, or is on the PATH, in a toolkit, or a package of its own."""
    if os.environ.get("BURST_NCU"):
        return os.environ["BURST_NCU"]
    homes = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    others = sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"))
    others = [os.path.join(home, "bin", "ncu") for home in homes if home] + others
    return shutil.which("ncu") or next((path for path in others if os.access(path, os.X_OK)), None)


def values(text):
    """Of ncu's table: values with their units, by the name of what was counted."""
    begin = text.find('"ID"')
    rows = csv.DictReader(io.StringIO(text[begin:] if begin >= 0 else ""))
    return {row["Metric Name"]: f"{row['Metric Value']} {row.get('Metric Unit') or ''}".strip()
            for row in rows if row.get("Metric Name")}


def count(script, directory, cell, seconds, scratch):
    """A cell: what ncu counts of one launch of a kernel. The table lies in `scratch`."""
    ncu = find_ncu()
    if ncu is None:
        return {"verdict": "skipped", "reason": "no ncu: neither on the PATH nor with CUDA"}
    command = [ncu, "--csv", "--page", "details", "--target-processes", "all",
               "--kernel-name", f"regex:^{cell['kernel']}(_[0-9]+)?$", "--launch-count", "1"]
    command += [word for section in SECTIONS for word in ("--section", section)]
    command += [sys.executable, script, directory, "--once", json.dumps(cell)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    found = values(done.stdout)
    if not found:
        said = (done.stdout + done.stderr).strip().splitlines()
        return {"verdict": "failed", "reason": f"ncu counted nothing ({done.returncode}): "
                                               + " ".join(said[-3:])[-500:]}
    path = os.path.join(scratch, "counters", f"{cell['program']}.{cell['kernel']}.csv")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(done.stdout)
    keep_code(directory, cell, scratch)
    return {"verdict": "passed", "counters": found}


def keep_code(directory, cell, scratch):
    """The machine code of a kernel that was counted: as text, from where this was prepared or
    made here, and as it is."""
    name = os.path.join("sass", f"{cell['program']}.{cell['kernel']}")
    cubin = os.path.join(directory, name + ".cubin")
    if not os.path.exists(cubin):
        return
    os.makedirs(os.path.join(scratch, "sass"), exist_ok=True)
    shutil.copy(cubin, os.path.join(scratch, "sass"))
    if os.path.exists(os.path.join(directory, name + ".sass")):
        shutil.copy(os.path.join(directory, name + ".sass"), os.path.join(scratch, "sass"))
    elif sass.find_disassembler():
        with open(os.path.join(scratch, name + ".sass"), "w") as file:
            file.write(sass.disassemble(cubin))


class Clocks:
    """Clocks and power from now on, twice a second, as a table in `scratch`."""

    def __init__(self, scratch):
        self.process = None
        with open(os.path.join(scratch, "clocks.csv"), "w") as file:
            try:
                self.process = subprocess.Popen(
                    ["nvidia-smi", "--query-gpu=" + CLOCKS, "--format=csv,nounits", "-lms", "500"],
                    stdout=file, stderr=subprocess.DEVNULL)
            except OSError:  # no GPU, or none to be asked
                pass

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()
