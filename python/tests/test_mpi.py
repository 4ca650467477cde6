# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks of an MPI communicator. Run by mpirun, this file is one of them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import burst
from burst import _c

RANKS = 3


def mpirun(command, ranks=RANKS):
    """Of a process of Python: its arguments."""
    if not shutil.which("mpirun") or not (Path(_c.path).parent / "libburst_mpi.so").exists():
        pytest.skip("this machine lacks MPI")
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMP_NUM_THREADS": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        ["mpirun", "--oversubscribe", "--quiet", "-n", str(ranks), sys.executable, *command],
        capture_output=True, text=True, env=environment, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.split("\n")) == ["", *(f"rank {n}: ok" for n in range(ranks))]


def causal(b, h, i, j):
    return i >= j


def draw(*shape, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape, dtype=numpy.float32)


def tensors():
    return draw(1, 24, 4, 16), draw(1, 24, 2, 16, seed=1), draw(1, 24, 2, 16, seed=2)


def of_threads(ranks):
    """A program, and what it gives where ranks are threads."""
    q, k, v = tensors()
    program = burst.compile(q.shape, k.shape, v.shape, mask=causal, layout="bshd",
                            sequence=burst.Sequence(ranks=ranks))
    return program, program(q, k, v, layout="bshd")


#===----------------------------------------------------------------------===#
# Without torch and mpi4py
#===----------------------------------------------------------------------===#


def whole():
    """Tensors that all ranks have; a sequence over all ranks."""
    world = burst.MpiWorld()
    program, wanted = of_threads(world.num_ranks)
    q, k, v = tensors()
    o, lse = (numpy.full_like(x, numpy.nan) for x in wanted)
    counted = program.run([q, k, v, o, lse], world, whole=True)
    if world.rank == 0:
        assert numpy.array_equal(o, wanted[0]) and numpy.array_equal(lse, wanted[1])
        assert sum(x.bytes_sent for x in counted) > 0
    else:
        assert numpy.isnan(o).all()

    cp = burst.Sequence(world)
    assert (cp.rank, cp.ranks, cp.transport) == (world.rank, world.num_ranks, "mpi")
    held = cp.layout.positions(world.rank, 24)
    shards = [numpy.ascontiguousarray(x[:, held]) for x in (q, k, v)]
    o = burst.attention(*shards, mask=causal, layout="bshd", sequence=cp)
    assert numpy.array_equal(o, wanted[0][:, held])
    o, lse = program(*shards, layout="bshd", sequence=cp)
    assert numpy.array_equal(o, wanted[0][:, held])
    assert world.gather(bytes([world.rank] * 3)) == [bytes([n] * 3)
                                                     for n in range(world.num_ranks)]
    assert world.gather(b"") == [b""] * world.num_ranks

    with pytest.raises(ValueError, match="transport: 'tcp' is of a process group"):
        burst.Sequence(world, transport="tcp")


def test_without_torch():
    mpirun([__file__, "whole"])


RUNTIME = """
import os, sys
import numpy, burst_runtime
program = burst_runtime.load(sys.argv[1])
world = burst_runtime.MpiWorld()
operands = {x.name: numpy.load(f"{sys.argv[1]}.{x.name}.npy") for x in program.signature}
wanted = {x.name: operands[x.name].copy() for x in program.signature if x.is_result}
for name in wanted:
    operands[name][:] = numpy.nan
program.run(operands, world, whole=True)
for name, value in wanted.items():
    assert numpy.array_equal(operands[name], value) == (world.rank == 0), name
os.write(1, f"rank {world.rank}: ok\\n".encode())
"""


def test_runtime_alone(tmp_path, monkeypatch):
    program, (o, lse) = of_threads(2)
    path = tmp_path / "program.so"
    program.save(path)
    for name, value in zip(("q", "k", "v", "o", "lse"), (*tensors(), o, lse)):
        numpy.save(f"{path}.{name}.npy", value)
    monkeypatch.setenv("BURST_RUNTIME_LIBRARY", str(Path(_c.path).parent / "libburst_runtime.so"))
    mpirun(["-c", RUNTIME, path], 2)


def leave():
    """A rank that ends first, and errors that name it."""
    world = burst.MpiWorld()
    if world.rank == 1:
        world.close()
        return
    with pytest.raises(burst.Error) as failed:
        burst.attention(*tensors(), layout="bshd", sequence=burst.Sequence(world))
    assert failed.value.code == burst.Code.PEER_STOPPED and "rank 1 stopped" in str(failed.value)
    with pytest.raises(burst.Error, match="rank [01]"):
        world.gather(b"x")


@pytest.mark.all
def test_ranks_that_leave_are_named():
    mpirun([__file__, "leave"], 2)


def test_a_library_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("BURST_MPI_LIBRARY", str(tmp_path / "none.so"))
    with pytest.raises(ImportError, match="no libburst_mpi at .*none.so; .* scripts/setup --mpi"):
        _c.load_mpi(_c.path)


#===----------------------------------------------------------------------===#
# With them
#===----------------------------------------------------------------------===#


def communicators():
    import torch
    import torch.distributed as dist
    from mpi4py import MPI

    from burst import transports
    everybody = MPI.COMM_WORLD
    rank = everybody.rank
    with pytest.raises(TypeError, match="communicator: one of mpi4py, or .* got str"):
        burst.MpiWorld("world")

    # Forward and backward, as in one process.
    cp = burst.Sequence(everybody, "striped 4")
    transports.check(cp, "messages", 1)
    whole = [torch.from_numpy(x).transpose(1, 2).requires_grad_() for x in tensors()]
    burst.attention(*whole, mask=causal).square().sum().backward()
    shards = [cp.shard(x.detach(), 2).requires_grad_() for x in whole]
    o = burst.attention(*shards, mask=causal, sequence=cp)
    o.square().sum().backward()
    torch.testing.assert_close(cp.unshard(o, 2), burst.attention(*whole, mask=causal).detach())
    for x, shard in zip(whole, shards):
        torch.testing.assert_close(cp.unshard(shard.grad, 2), x.grad, rtol=1e-4, atol=1e-5)
    assert burst.Sequence(everybody, "striped 4") == cp

    # Ranks 0 and 2, and all of them in between.
    some = everybody.Split(rank % 2, rank)
    part = burst.Sequence(some)
    assert part.ranks == (2 if rank % 2 == 0 else 1) and part != cp
    torch.testing.assert_close(attend_over(part, whole), attend_over(cp, whole))

    # A process group that has the same ranks.
    dist.init_process_group("gloo", rank=rank, world_size=everybody.size,
                            init_method=f"file://{sys.argv[2]}/store")
    group = burst.Sequence(dist.group.WORLD, transport="mpi")
    assert torch.equal(attend_over(group, whole), attend_over(burst.Sequence(everybody), whole))
    pair = dist.new_group([0, 1])
    if rank < 2:
        with pytest.raises(ValueError, match="\"mpi\" is for a group with the 3 ranks of MPI_COMM"):
            burst.Sequence(pair, transport="mpi")
    everybody.Barrier()
    dist.destroy_process_group()


def attend_over(cp, whole):
    shards = [cp.shard(x.detach(), 2) for x in whole]
    return cp.unshard(burst.attention(*shards, mask=causal, sequence=cp), 2)


def test_communicators_of_mpi4py(tmp_path):
    mpirun([__file__, "communicators", tmp_path])


if __name__ == "__main__":
    if sys.argv[1] != "communicators":
        sys.modules["torch"] = sys.modules["mpi4py"] = None # not there
    globals()[sys.argv[1]]()
    # In one piece: ranks share the terminal.
    os.write(1, f"rank {os.environ['OMPI_COMM_WORLD_RANK']}: ok\n".encode())
