"""The tests that are files: each .mlir and .test file holds its RUN lines."""

import ctypes
import os
import subprocess
import sys

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "burst"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "fuzz"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.burst_build, "test")

# A variable of FileCheck ends at the next CHECK-LABEL unless its name starts
# with $: what one function defines must not satisfy the checks of another.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"
llvm_config.with_system_environment(["CUDA_HOME", "CUDA_VISIBLE_DEVICES"])

build_bin = os.path.join(config.burst_build, "bin")
tools = ["FileCheck", "not", "split-file"]
for name in filter(None, config.burst_tools):
    # With BURST_CHECK_ROUNDTRIP a module is printed, parsed and compared before
    # the passes run.
    roundtrip = name == "burst-opt" and os.environ.get("BURST_CHECK_ROUNDTRIP", "0") != "0"
    tools.append(ToolSubst(name, os.path.join(build_bin, name),
                           extra_args=["--verify-roundtrip"] if roundtrip else []))
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
llvm_config.add_tool_substitutions(tools, [build_bin, config.llvm_tools_dir])
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%examples", os.path.join(config.burst_source, "examples")))


def has_gpu():
    """Whether a CUDA device can be listed here."""
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return any(line.startswith("GPU ") for line in listing.stdout.splitlines())


def has_nvrtc():
    """Whether the loader finds the run-time compiler of CUDA."""
    homes = [home for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home]
    for folder in [""] + [os.path.join(home, "lib64", "") for home in homes]:
        for version in ["", ".13", ".12", ".11.2"]:
            try:
                ctypes.CDLL(f"{folder}libnvrtc.so{version}")
                return True
            except OSError:
                pass
    return False


if has_gpu():
    config.available_features.add("cuda")
if has_nvrtc():
    config.available_features.add("nvrtc")
# A directory of tests that need a device to themselves sets
# config.parallelism_group = "gpu" in its lit.local.cfg.
lit_config.parallelism_groups["gpu"] = 1
