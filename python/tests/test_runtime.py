# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst_runtime runs what the compiler has written to files."""

import ctypes
import math
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch

from burst import _c

# The library of the same build.
os.environ["BURST_RUNTIME_LIBRARY"] = str(
    Path(_c.path).resolve().parent / "libburst_runtime.so")
import burst_runtime # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TINY = (ROOT / "examples" / "tiny.mlir").read_text()
OPEN = TINY.replace("1x64x", "1x?x").replace("x64xf32", "x?xf32")
Q, K, LSE = (1, 64, 4, 16), (1, 64, 2, 16), (1, 4, 64)


@pytest.fixture
def compiled(tmp_path):
    def compile(text):
        path = tmp_path / "bundle.so"
        text = text.encode()
        _c.check(_c.library.burst_compile_to_file(text, len(text), _c.CompileConfig(),
                                                  os.fsencode(path)))
        return path
    return compile


def draw(length=64):
    """Arguments and results, which nobody has written yet."""
    numbers = numpy.random.default_rng(0)
    shapes = {"q": (1, length, 4, 16), "k": (1, length, 2, 16), "v": (1, length, 2, 16)}
    operands = {name: numbers.standard_normal(shape, dtype=numpy.float32)
                for name, shape in shapes.items()}
    return operands | {"o": numpy.full(shapes["q"], numpy.nan, numpy.float32),
                       "lse": numpy.full((1, 4, length), numpy.nan, numpy.float32)}


def expected(operands):
    q, k, v = (torch.from_numpy(operands[name]).transpose(1, 2) for name in "qkv")
    o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                         enable_gqa=True)
    return o.transpose(1, 2).numpy()


def test_signature(compiled):
    program = burst_runtime.load(compiled(TINY))
    assert (program.name, program.num_ranks) == ("tiny", 4) and program.target
    assert [(x.name, x.kind, x.dtype, x.shape, x.is_result, x.shard_dim, x.is_partial)
            for x in program.signature] == [
        ("q", "tensor", "float32", Q, False, 1, False),
        ("k", "tensor", "float32", K, False, 1, False),
        ("v", "tensor", "float32", K, False, 1, False),
        ("o", "tensor", "float32", Q, True, 1, False),
        ("lse", "tensor", "float32", LSE, True, 2, False)]
    held = [program.positions("q", rank) for rank in range(4)]
    assert held[0] == [*range(8), *range(56, 64)] # zigzag
    assert sorted(sum(held, [])) == list(range(64))
    with pytest.raises(ValueError, match="^x: @tiny has q, k, v, o, lse$"):
        program.positions("x", 0)
    assert burst_runtime.__version__ == _c.library.burst_version().decode()


def test_grid(compiled):
    """Heads over two ranks, the sequence over two: tensors are those of all ranks."""
    text = TINY.replace("shape = 4", "shape = 2x2").replace(
        "sequence <@cp, zigzag>", "sequence <@cp[1], zigzag> heads <@cp[0]>")
    program = burst_runtime.load(compiled(text))
    assert [(x.name, x.shape, x.shard_dim, x.parts) for x in program.signature] == [
        ("q", Q, 1, (1, 1, 2, 1)), ("k", K, 1, (1, 1, 2, 1)), ("v", K, 1, (1, 1, 2, 1)),
        ("o", Q, 1, (1, 1, 2, 1)), ("lse", LSE, 2, (1, 2, 1))]
    # Ranks that have the same positions differ in their heads.
    held = [program.positions("q", rank) for rank in range(4)]
    assert held[0] == held[2] == [*range(16), *range(48, 64)] and held[1] == held[3]
    operands = draw()
    counters = program.run(operands)
    assert len(counters) == 4
    numpy.testing.assert_allclose(operands["o"], expected(operands), atol=2e-6)


class Speaker:
    """An array of another library: it has DLPack's functions and nothing else."""

    def __init__(self, array):
        self.array = torch.from_numpy(array)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)


def nested(array):
    """Of ctypes, that shares the memory."""
    kind = ctypes.c_float
    for size in reversed(array.shape):
        kind = kind * size
    return kind.from_buffer(array)


@pytest.mark.parametrize("kind", [numpy.asarray, torch.from_numpy, Speaker, memoryview, nested])
def test_all_ranks(compiled, kind):
    program = burst_runtime.load(compiled(TINY))
    operands = draw()
    did = program.run({name: kind(x) for name, x in operands.items()}, threads=1)
    assert abs(operands["o"] - expected(operands)).max() < 1e-5
    assert len(did) == 4 and all(x.bytes_sent > 0 for x in did)
    again = draw()
    program.run([kind(again[x.name]) for x in program.signature])
    assert (again["o"] == operands["o"]).all() and (again["lse"] == operands["lse"]).all()


def test_one_rank_and_half_precision(compiled):
    program = burst_runtime.load(
        compiled(TINY.replace("16xf32", "16xbf16").replace("shape = 4", "shape = 1")))
    assert [x.dtype for x in program.signature] == ["bfloat16"] * 4 + ["float32"]
    operands = {name: torch.from_numpy(x) for name, x in draw().items()}
    halves = {name: x if name == "lse" else x.bfloat16() for name, x in operands.items()}
    (did,) = program.run(halves)
    assert did.bytes_sent == 0 and did.launches > 0
    wanted = torch.from_numpy(expected(draw()))
    assert (halves["o"].float() - wanted).abs().max() < 0.05


def test_open_lengths(compiled):
    program = burst_runtime.load(compiled(OPEN))
    names = [x.name for x in program.signature]
    extents = [x.name for x in program.signature if x.kind == "extent"]
    assert program.signature[0].shape == (1, None, 4, 16) and len(extents) == 2
    for length in 64, 50:
        operands = draw(length)
        program.run(operands)
        assert abs(operands["o"] - expected(operands)).max() < 1e-5
        again = draw(length) | dict.fromkeys(extents, length)
        program.run([again[name] for name in names])
        assert (again["o"] == operands["o"]).all()
    assert sum(len(program.positions("q", rank, extent=50)) for rank in range(4)) == 50
    with pytest.raises(ValueError, match="extent: is wanted"):
        program.positions("q", 0)
    with pytest.raises(TypeError, match=f"^{extents[0]}: a number of int64 is wanted, got 'x'"):
        program.run(operands | {extents[0]: "x"})
    with pytest.raises(burst_runtime.ArgumentError, match="dimension 1"):
        program.run(operands | {extents[0]: 51})


def test_what_is_wrong_is_named(compiled, tmp_path):
    program = burst_runtime.load(compiled(TINY))
    operands = draw()
    frozen = draw()
    for x in frozen.values():
        x.flags.writeable = False
    program.run(frozen | {"o": operands["o"], "lse": operands["lse"]})
    for changed, kind, message in [
            ({"o": frozen["o"]}, ValueError, "^o: is a result, and read-only$"),
            ({"x": operands["o"]}, ValueError, "^x: @tiny has q, k, v, o, lse$"),
            ({"k": None}, ValueError, "^k: is missing; @tiny takes q, k, v, o, lse$"),
            ({"k": b"bytes"}, ValueError, "^k: a buffer must be"),
            ({"k": 3}, TypeError, "^k: a tensor of torch, .* is wanted, got int$"),
            ({"k": operands["k"].astype("u2")}, TypeError, "^k: float32 is wanted, got uint16$"),
            ({"k": operands["k"].astype("f8")}, burst_runtime.ArgumentError, "k: type f64"),
            ({"k": operands["k"][:, 1:]}, burst_runtime.ArgumentError, "k: size 63 in dimension 1"),
            ({"o": operands["q"]}, burst_runtime.ArgumentError, "o overlaps q")]:
        with pytest.raises(kind, match=message):
            program.run(operands | changed)
    with pytest.raises(ValueError, match="takes 5 operands, q, k, v, o, lse; got 1"):
        program.run([operands["q"]])
    with pytest.raises(burst_runtime.Error, match="no.so: No such file"):
        burst_runtime.load(tmp_path / "no.so")
    text = tmp_path / "text.so"
    text.write_text("no bundle")
    with pytest.raises(burst_runtime.ArgumentError, match="text.so: not a shared object"):
        burst_runtime.load(text)


RANK = """
import os, sys
import numpy
import burst_runtime

bundle, path, address, rank = *sys.argv[1:4], int(sys.argv[4])
program = burst_runtime.load(bundle)
world = burst_runtime.World(4, rank, address, token="secret", timeout_seconds=60)
assert (world.rank, world.num_ranks) == (rank, 4) and "BURST_TOKEN" not in os.environ
held = program.positions("q", rank)
whole = numpy.load(path)
shards = {name: numpy.ascontiguousarray(x[:, :, held] if name == "lse" else x[:, held])
          for name, x in whole.items()}
wanted = {name: shards[name].copy() for name in ("o", "lse")}
for x in wanted:
    shards[x][:] = numpy.nan
(did,) = program.run(shards, world, threads=1, deadline_seconds=60)
assert did.bytes_sent > 0
assert all((shards[x] == wanted[x]).all() for x in wanted)
# Of tensors that all processes have, rank 0 gets the results.
operands = {name: x.copy() for name, x in whole.items()}
for x in wanted:
    operands[x][:] = numpy.nan
did = program.run(operands, world, threads=1, deadline_seconds=60, whole=True)
assert [x.bytes_sent > 0 for x in did] == [rank == 0] * 4
for x in wanted:
    assert (operands[x] == whole[x]).all() if rank == 0 else numpy.isnan(operands[x]).all()
world.close()
"""


ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "python")}


def test_processes(compiled, tmp_path):
    bundle = compiled(TINY)
    operands = draw()
    burst_runtime.load(bundle).run(operands)
    numpy.savez(tmp_path / "whole.npz", **operands)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, bundle, tmp_path / "whole.npz", address,
                               str(rank)], env=ENVIRONMENT) for rank in range(4)]
    assert [rank.wait(120) for rank in ranks] == [0] * 4


ALONE = """
import ctypes, math, sys
sys.modules["burst"] = sys.modules["numpy"] = sys.modules["torch"] = None # not there
import burst_runtime
program = burst_runtime.load(sys.argv[1])
operands = {x.name: memoryview((ctypes.c_byte * (4 * math.prod(x.shape)))()).cast("B")
            .cast("f", x.shape) for x in program.signature}
program.run(operands)
print(operands["lse"][0, 3, 63])
"""


def test_needs_nothing(compiled):
    """Where keys are 0, lse is the logarithm of how many there are."""
    told = subprocess.run([sys.executable, "-c", ALONE, compiled(TINY)], env=ENVIRONMENT,
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    assert math.isclose(float(told), math.log(64), rel_tol=1e-6)
