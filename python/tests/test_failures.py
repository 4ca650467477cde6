# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that end, raise, are interrupted or leave their group: the others get an
error that names the rank, and nobody hangs. Children of fork."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch

import burst
import reference

# Each trial forks its ranks, which is quicker than to start Python: nothing has
# used a thread before.
TRIALS = """
import os, signal, sys, tempfile, threading, time
import torch, torch.distributed as dist
import burst
torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler) # else ignored behind an & of a shell
kinds, trials, seed = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3])
RANKS, CULPRIT = 3, 1

class Failed(Exception):
    pass

def culprit(kind, attend, group, store):
    if kind == "ends":
        os._exit(0)
    if kind == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "raises":
        raise Failed
    if kind == "leaves":
        dist.destroy_process_group()
        sys.exit(0)
    if kind == "is interrupted": # while it waits for the others, which are asleep
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            attend()
        except KeyboardInterrupt:
            open(store + ".interrupted", "w").close()
            try:
                attend()
            except burst.Error as error:
                assert error.rank == CULPRIT or "rank 1 stopped" in str(error), error
                time.sleep(2) # it lives on
                os._exit(0)
        os._exit(9)

def rank(kind, number, store, delay):
    dist.init_process_group("gloo", rank=number, world_size=RANKS,
                            init_method=f"file://{store}")
    cp = burst.Sequence(dist.group.WORLD, "contiguous")
    x = torch.ones(1, 1, 4, 8)
    attend = lambda: burst.attention(x, x, x, sequence=cp)
    assert torch.allclose(attend(), x)
    time.sleep(delay if number == CULPRIT else 0)
    if number == CULPRIT:
        culprit(kind, attend, cp.group, store)
        os._exit(9)
    begin = time.monotonic()
    while kind == "is interrupted" and not os.path.exists(store + ".interrupted"):
        assert time.monotonic() - begin < 30
        time.sleep(0.01)
    begin = time.monotonic()
    try:
        attend()
    except burst.Error as error:
        assert "rank 1" in str(error), str(error)
        assert time.monotonic() - begin < 20
        os._exit(0)
    os._exit(8)

for trial in range(trials):
    for kind in kinds:
        store = tempfile.mktemp()
        delay = (seed + 7 * trial) % 10 / 200
        children = []
        for number in range(RANKS):
            child = os.fork()
            if not child:
                signal.alarm(60)
                try:
                    rank(kind, number, store, delay)
                except Failed:
                    raise SystemExit # as Python ends: what is open is closed
                except BaseException as error:
                    print(f"rank {number}: {type(error).__name__}: {error}", flush=True)
                    if not isinstance(error, SystemExit):
                        os._exit(7)
                    raise
            children.append(child)
        for number, child in enumerate(children):
            status = os.waitpid(child, 0)[1]
            wanted = signal.SIGKILL if (kind, number) == ("is killed", CULPRIT) else 0
            assert status == wanted, f"trial {trial}: a rank {kind}: rank {number}: {status}"
print("no rank hung")
"""


def run(kinds, trials):
    done = subprocess.run([sys.executable, "-c", TRIALS, ",".join(kinds), str(trials), "3"],
                          capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0 and "no rank hung" in done.stdout, done.stdout + done.stderr


KINDS = ["ends", "is killed", "raises", "leaves", "is interrupted"]


@pytest.mark.all
def test_failures():
    run(KINDS, 1)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_many_failures(kind):
    run([kind], 100)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, n):
        q, k, v = reference.draw(1, 1, 1, 8, 8, 8, seed=n)
        return burst.attention(q, k, v)[0]


def test_fork():
    """A child of a process that has computed makes threads of its own."""
    wanted = [Rows()[n] for n in range(6)]
    loader = torch.utils.data.DataLoader(Rows(), batch_size=None, num_workers=2,
                                         multiprocessing_context="fork", timeout=60)
    for x, y in zip(loader, wanted, strict=True):
        assert torch.equal(x, y)


FORK_OF_A_RANK = """
import os, sys, tempfile
import torch, torch.distributed as dist
import burst
torch.set_num_threads(1)
store = tempfile.mktemp()
number = 0 if os.fork() else 1
dist.init_process_group("gloo", rank=number, world_size=2, init_method=f"file://{store}")
cp = burst.Sequence(dist.group.WORLD, "contiguous")
x = torch.ones(1, 1, 4, 8)
burst.attention(x, x, x, sequence=cp)
child = os.fork()
if not child:
    assert torch.allclose(burst.attention(x, x, x), x) # of its own it may
    try:
        burst.attention(x, x, x, sequence=cp)
    except RuntimeError as error:
        os._exit(0 if "was forked from a rank" in str(error) else 5)
    os._exit(6)
assert os.waitpid(child, 0)[1] == 0
assert torch.allclose(burst.attention(x, x, x, sequence=cp), x) # the rank goes on
if number == 0:
    assert os.wait()[1] == 0
    print("right")
"""


@pytest.mark.all
def test_fork_of_a_rank():
    done = subprocess.run([sys.executable, "-c", FORK_OF_A_RANK], capture_output=True, text=True,
                          timeout=120)
    assert done.stdout.strip() == "right", done.stdout + done.stderr


def test_threads():
    """As many as torch uses, which torchrun sets to 1 by OMP_NUM_THREADS."""
    code = textwrap.dedent("""
        import torch, burst
        from burst import running
        x = torch.ones(1, 1, 4, 8)
        burst.attention(x, x, x)
        torch.set_num_threads(2)
        burst.attention(x, x, x)
        print(sorted(running._devices), running._devices[1].threads)""")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=dict(os.environ, OMP_NUM_THREADS="1"), timeout=60)
    assert done.stdout.strip() == "[1, 2] 1", done.stdout + done.stderr
