# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests that are files: each .mlir and .test file holds its RUN lines."""

import ctypes
import os
import platform
import shutil
import subprocess
import sys

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "burst"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".smt2", ".test"]
config.excludes = ["Inputs", "fuzz"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.burst_build, "test")

# A variable of FileCheck ends at the next CHECK-LABEL unless its name starts
# with $: what one function defines must not satisfy the checks of another.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"
llvm_config.with_system_environment(["CUDA_VISIBLE_DEVICES"])

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
config.substitutions.append(("%burst_build", config.burst_build))
config.substitutions.append(("%burst_source", config.burst_source))
# Of the corpus some programs are compared, and all of them in the long form of the tests.
some = "" if os.environ.get("BURST_TEST_FULL") else "--lower=3 --run=4"
config.substitutions.append(("%corpus", some))
config.substitutions.append(("%examples", os.path.join(config.burst_source, "examples")))


def has_gpu():
    """Whether a CUDA device can be listed here."""
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return any(line.startswith("GPU ") for line in listing.stdout.splitlines())


def has_nvrtc():
    """Whether the runtime would find the run-time compiler of CUDA."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    homes = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    folders = [os.path.join(home, "lib64") for home in homes if home]
    folders.append(os.path.join(cache, "burst", "cuda", "nvidia", "cu13", "lib"))
    names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    given = os.environ.get("BURST_NVRTC_LIBRARY")
    paths = [given] if given else names + [os.path.join(f, n) for f in folders for n in names]
    for path in paths:
        try:
            ctypes.CDLL(path)
            return True
        except OSError:
            pass
    return False


def has_disassembler():
    """Whether machine code of GPUs can be read here."""
    sys.path.insert(0, os.path.join(config.burst_source, "bench", "gpu"))
    import sass
    return sass.find_disassembler() is not None


def has_hosts():
    """Whether this user can make namespaces with networks that are connected."""
    script = os.path.join(config.test_source_root, "mpi", "Inputs", "hosts.py")
    try:
        return subprocess.run([sys.executable, script, "true"], capture_output=True,
                              timeout=30).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def peers():
    """Where scripts/peers installs what burst-bench compares with."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("BURST_PEERS") or os.path.join(cache, "burst", "peers")


config.substitutions.append(("%peers", peers()))
if os.access(os.path.join(peers(), "bin", "python"), os.X_OK):
    config.available_features.add("peers")

clang = os.path.join(config.llvm_tools_dir, "clang")


def has_aarch64():
    """Whether programs for aarch64 can be linked here, and run in an emulator."""
    files = [clang] + ["/usr/aarch64-linux-gnu/lib/" + name
                       for name in ("crt1.o", "libc.so.6", "libm.so.6")]
    return shutil.which("qemu-aarch64") is not None and all(map(os.path.exists, files))


def processor_flags():
    """What this processor can do, by Linux's names."""
    try:
        with open("/proc/cpuinfo") as info:
            lines = [line for line in info if line.startswith("flags")]
    except OSError:
        return set()
    return set(lines[0].split(":")[1].split()) if lines else set()


# Where tests for processors run that are not this one. What is not there is
# skipped, and listed with its name by --show-unsupported.
if has_aarch64():
    config.available_features.add("qemu-aarch64")
if shutil.which("z3"):
    config.available_features.add("z3")
flags = processor_flags()
if platform.machine() in ("x86_64", "AMD64"):
    config.available_features.add("x86")
    if {"avx2", "fma"} <= flags:
        config.available_features.add("avx2")
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= flags:
        config.available_features.add("avx512")
    if "avx512_bf16" in flags and "avx512" in config.available_features:
        config.available_features.add("avx512bf16")
config.substitutions.append(("%clang", clang))
config.substitutions.append(
    ("%other_machine", "aarch64" if "x86" in config.available_features else "x86_64"))

# Tests over MPI start ranks so, more than there may be cores. MPI itself leaks. Where a
# rank fails, mpirun would wait for seconds before it ends the others.
if "burst-test-mpi" in config.burst_tools and shutil.which("mpirun"):
    config.available_features.add("mpi")
    if has_hosts():
        config.available_features.add("netns")
# Of all programs one of so many; fewer where each takes longer.
is_slow = "asan" in config.available_features
config.substitutions.append(("%mpi_many", "11" if is_slow else "1"))
config.substitutions.append(("%mpi_few", "45" if is_slow else "15"))
config.substitutions.append(("%lld", os.path.join(config.llvm_tools_dir, "ld.lld")))
leaks = config.environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
config.substitutions.append(("%mpirun", "env OMPI_ALLOW_RUN_AS_ROOT=1 "
                             f"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS={leaks} "
                             "OMPI_MCA_odls_base_sigkill_timeout=0 mpirun --oversubscribe --quiet"))

if has_gpu():
    config.available_features.add("cuda")
if has_nvrtc():
    config.available_features.add("nvrtc")
if has_disassembler():
    config.available_features.add("nvdisasm")
# A directory of tests that need a device to themselves sets
# config.parallelism_group = "gpu" in its lit.local.cfg.
lit_config.parallelism_groups["gpu"] = 1
