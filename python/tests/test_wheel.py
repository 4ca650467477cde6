# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/wheel makes can be installed and works, where there is nothing else."""

import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
COMPILER, RUNTIME = "burst_attention", "burst_attention_runtime"
VERSION = re.search(r'BURST_VERSION "(.*)"',
                    (ROOT / "runtime/include/burst/version.h").read_text())[1]
# Without what leads tests to the sources and builds of this clone.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name not in ("PYTHONPATH", "BURST_LIBRARY", "BURST_RUNTIME_LIBRARY")}


@pytest.fixture(scope="module")
def wheels():
    subprocess.run([ROOT / "scripts" / "wheel"], check=True, env=ENVIRONMENT)
    found = {}
    for path in (ROOT / "dist").glob("*.whl"):
        assert path.name.split("-")[0] not in found, "of each distribution there is one wheel"
        found[path.name.split("-")[0]] = path
    return found


@pytest.fixture(scope="module")
def pythons(wheels, tmp_path_factory):
    """For each wheel an interpreter that has nothing else."""
    pythons = {}
    for name, wheel in wheels.items():
        folder = tmp_path_factory.mktemp(name)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pythons[name] = folder / "bin" / "python"
        subprocess.run([pythons[name], "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                        wheel], check=True)
    return pythons


def run(python, folder, *arguments):
    return subprocess.run([python, *arguments], cwd=folder, env=ENVIRONMENT, check=True,
                          stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.parametrize("name, largest, package, library", [
    (COMPILER, 30_000_000, "burst", "libburst.so"),
    (RUNTIME, 1_000_000, "burst_runtime", "libburst_runtime.so")])
def test_contents(wheels, name, largest, package, library):
    wheel = wheels[name]
    tag = re.fullmatch(rf"{name}-{re.escape(VERSION)}-py3-none-manylinux_2_(\d+)_(\w+)\.whl",
                       wheel.name)
    assert tag and tag[2] == platform.machine()
    assert int(tag[1]) <= 34
    assert wheel.stat().st_size <= largest
    with zipfile.ZipFile(wheel) as archive:
        files = {x.filename for x in archive.infolist() if not x.is_dir()}
        about = {x.split("/", 1)[1]: archive.read(x).decode() for x in files if "dist-info/" in x}
        expected = {f"{package}/lib/{library}"}
        sources = ROOT / "python"
        expected |= {str(x.relative_to(sources)) for x in (sources / package).rglob("*")
                     if x.is_file() and "__pycache__" not in x.parts}
    assert {x for x in files if "dist-info/" not in x} == expected
    assert set(about) == {"METADATA", "RECORD", "WHEEL", "licenses/LICENSE"}
    assert about["licenses/LICENSE"] == (ROOT / "LICENSE").read_text()
    assert f"Tag: py3-none-manylinux_2_{tag[1]}_{tag[2]}\n" in about["WHEEL"]
    assert "Root-Is-Purelib: false" in about["WHEEL"]
    assert f"\nName: {name.replace('_', '-')}\n" in about["METADATA"]
    assert "\nRequires-Python: >=3.10\n" in about["METADATA"]
    assert "Requires-Dist" not in about["METADATA"]


EXPLAIN = """
import burst
plan = burst.explain((1, 32, 4096, 128), (1, 8, 4096, 128), dtype="bfloat16",
                     mask=lambda b, h, i, j: i >= j, sequence=burst.Sequence(ranks=256))
assert plan.bytes_sent > 0 and len(plan.ranks) == 256
print(burst.__version__, burst.__file__)
"""


def test_compiler(pythons, tmp_path):
    told = run(pythons[COMPILER], tmp_path, "-m", "burst", "doctor")
    assert re.search(r"^compiles and runs: +yes$", told, re.M)
    assert re.search(r"^torch: +none", told, re.M) and re.search(r"^numpy: +none", told, re.M)
    version, path = run(pythons[COMPILER], tmp_path, "-c", EXPLAIN).split()
    assert version == VERSION and Path(path).is_relative_to(pythons[COMPILER].parents[1])


COMPILE = """
import sys
from burst import _c
text = open(sys.argv[1], "rb").read()
_c.check(_c.library.burst_compile_to_file(text, len(text), _c.CompileConfig(), b"tiny.so"))
"""

# Where keys are 0, lse is the logarithm of how many a query sees, and o the mean of
# their values.
RUN = """
import ctypes, importlib.util, math
import burst_runtime
assert all(importlib.util.find_spec(name) is None for name in ("burst", "numpy", "torch"))
program = burst_runtime.load("tiny.so")
operands = {x.name: memoryview((ctypes.c_byte * (4 * math.prod(x.shape)))()).cast("B")
            .cast("f", x.shape) for x in program.signature}
for j in range(64):
    operands["v"][0, j, 1, 3] = j
program.run(operands)
for i in range(64):
    assert math.isclose(operands["lse"][0, 2, i], math.log(i + 1), rel_tol=1e-5, abs_tol=1e-6)
    assert math.isclose(operands["o"][0, i, 3, 3], i / 2, rel_tol=1e-5, abs_tol=1e-5)
    assert operands["o"][0, i, 0, 3] == 0
print(burst_runtime.__version__, burst_runtime.__file__)
"""


def test_bundle(pythons, tmp_path):
    run(pythons[COMPILER], tmp_path, "-c", COMPILE, ROOT / "examples" / "tiny.mlir")
    version, path = run(pythons[RUNTIME], tmp_path, "-c", RUN).split()
    assert version == VERSION and Path(path).is_relative_to(pythons[RUNTIME].parents[1])


def test_both(wheels, pythons, tmp_path):
    """Beside each other."""
    python = pythons[COMPILER]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                    wheels[RUNTIME]], check=True)
    run(python, tmp_path, "-c", COMPILE, ROOT / "examples" / "tiny.mlir")
    run(python, tmp_path, "-c", "import burst, burst_runtime; burst_runtime.load('tiny.so')")
