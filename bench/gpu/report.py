# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is told of cells: a line each, and a table of them."""

import json
import os
import subprocess
import sys

import libraries

PEERS = ("cudnn", "flash2")


def versions(directory, seconds):
    """What there is; `seconds`: how long PyTorch may take to say its own."""
    found = {}
    path = os.path.join(directory, "commit")
    if os.path.exists(path):
        with open(path) as file:
            found["commit"] = file.read().strip()
    query = "name,driver_version,power.limit,clocks.max.sm,memory.total"
    try:
        told = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=30).stdout.strip()
        found.update(zip(query.split(","), (x.strip() for x in told.split(","))))
    except (OSError, subprocess.TimeoutExpired):
        pass
    found.update((what, libraries.find(what) or "none") for what in ("nvrtc", "nccl"))
    # In a process of its own: it is this one's children that use the GPU.
    asked = ("import json, torch; print(json.dumps({'torch': torch.__version__, "
             "'cuda': torch.version.cuda, 'cudnn': torch.backends.cudnn.version(), "
             "'torch_nccl': '.'.join(map(str, torch.cuda.nccl.version()))}))")
    try:
        told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True,
                              timeout=seconds)
    except subprocess.TimeoutExpired:
        found["torch"] = f"does not begin in {seconds:.0f} s"
        return found
    if told.returncode == 0:
        found.update(json.loads(told.stdout))
    else:
        found["torch"] = told.stderr.strip().splitlines()[-1] if told.stderr else "none"
    return found


def ratio(cell):
    found = cell.get("worst_error_over_bound", "")
    return f"{found:.3f}" if isinstance(found, float) else str(found)


def number(value, form):
    return "" if value is None else format(value, form)


# How single numbers of cells are told.
FORMS = {"host_us": "host {:.0f} us", "rate": "{:.0f} TFLOP/s", "tb_per_s": "{:.2f} TB/s",
         "ulps_exp2": "exp2 up to {} units from the emulator",
         "seconds_until_told": "told after {:.2f} s"}


def describe(name, cell):
    parts = []
    if "worst_error_over_bound" in cell:
        parts.append(f"err/bound {ratio(cell)}")
    for variant, (low, median, high) in cell.get("ms", {}).items() if "tflops" in cell else ():
        parts.append(f"{variant} {low:.3f}/{median:.3f}/{high:.3f} ms "
                     f"{cell['tflops'][variant]:.0f} TFLOP/s"
                     + (" (keys repeated)" if variant in cell.get("repeated", ()) else ""))
    if cell.get("clock_mhz"):
        parts.append(f"{cell['clock_mhz']} MHz {cell['watts']:.0f} W")
    if "of_peak" in cell:
        parts.append(f"{100 * cell['of_peak']:.0f} % of the peak at that clock")
    parts += [f"{cell['over_' + peer]:.2f} of {peer}" for peer in PEERS if "over_" + peer in cell]
    if "over_alone" in cell:
        parts.append(f"{cell['variant']} {cell['ms']['ranks']:.2f} ms, alone "
                     f"{cell['ms']['alone']:.2f}: {cell['over_alone']:.3f}")
    if "counters" in cell:
        parts.append(f"{len(cell['counters'])} counters, {cell['counters'].get('Duration', '?')}")
    if "compile_seconds" in cell:
        parts.append("cold {:.2f} s, warm {:.2f} s".format(*cell["compile_seconds"]))
    if "ms_of_ranks" in cell:
        parts.append(f"{max(x or 0 for x in cell['ms_of_ranks']):.2f} ms")
    parts += [form.format(cell[key]) for key, form in FORMS.items() if key in cell]
    parts += [f"without {what}: {why}" for what, why in cell.get("without", {}).items()]
    parts += list(cell.get("bundles", {}).values())
    if "reason" in cell:
        parts.append(cell["reason"])
    return f"{cell['verdict']:8} {name:40} " + " | ".join(parts)


def table(report):
    lines = ["# Measured on a GPU", ""]
    lines += [f"* {key}: {value}" for key, value in report["versions"].items()]
    lines += ["", "TFLOP/s, of medians. Under flash2 is FlashAttention-2, which PyTorch's flash "
              "backend is. Portable kernels are for sm_80 and later.", "",
              "| cell | verdict | error/bound | ms | hopper | portable | cuDNN | flash2 | "
              "of cuDNN | of the peak |", "|---" * 10 + "|"]
    others = []
    for name, cell in report["cells"].items():
        if "tflops" not in cell:
            others.append(describe(name, cell))
            continue
        rates = cell["tflops"]
        if set(rates) - {"hopper", "portable", *PEERS}:  # variants have no columns
            others.append(describe(name, cell))
        own = [cell["ms"][v][1] for v in ("hopper", "portable") if v in cell["ms"]]
        lines.append("| " + " | ".join([
            name, cell["verdict"], ratio(cell), number(min(own, default=None), ".3f"),
            *(number(rates.get(v), ".0f") for v in ("hopper", "portable", *PEERS)),
            number(cell.get("over_cudnn"), ".2f"), number(cell.get("of_peak"), ".2f")]) + " |")
    return "\n".join(lines + ["", "```text", *others, "```"])
