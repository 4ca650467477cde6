# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a function in processes that are the ranks of a group."""

import multiprocessing
import multiprocessing.connection
import os
import tempfile
import time
import traceback

import torch
import torch._dynamo # for seconds, by DTensor's first op: here before there are ranks
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


class Failure(Exception):
    """Of a rank: what it said, or how it ended."""


def run(ranks, function, *arguments, timeout=600, before=None):
    """What function(mesh, *arguments) gives on each rank. Processes are forked: this one has
    imported what they need. `before` is called in each, with its rank, first of all."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory(prefix="burst-evaluation-") as folder:
        pipes = [context.Pipe(duplex=False) for _ in range(ranks)]
        children = [context.Process(target=_rank, args=(rank, ranks, f"{folder}/store", pipes,
                                                        before, function, arguments))
                    for rank in range(ranks)]
        try:
            for child in children:
                child.start()
            for _, write in pipes:
                write.close()
            return _collect(children, [read for read, _ in pipes], time.monotonic() + timeout)
        finally:
            for child in children:
                if child.pid is not None:
                    child.kill()
                    child.join()


def _collect(children, pipes, until):
    """Ends soon after the first failure: others would wait for that rank, or fail with it."""
    waiting, results, ended, raised = dict(enumerate(pipes)), {}, [], []
    while waiting:
        ready = multiprocessing.connection.wait(waiting.values(),
                                                max(0, until - time.monotonic()))
        if not ready:
            break
        for rank in [rank for rank, pipe in waiting.items() if pipe in ready]:
            try:
                results[rank], error = waiting.pop(rank).recv()
                raised += [f"rank {rank}: {error}"] if error else []
            except EOFError:
                children[rank].join()
                ended.append(f"rank {rank}: ended with status {children[rank].exitcode}")
        if ended or raised:
            until = min(until, time.monotonic() + 2)
    if ended or raised: # what others say is often no more than that a rank has ended
        raise Failure("\n".join(ended + raised))
    if waiting:
        raise Failure(f"ranks {', '.join(map(str, waiting))}: gave nothing in time")
    for child in children:
        child.join(max(0, until - time.monotonic()))
    return [results[rank] for rank in range(len(children))]


def _rank(rank, ranks, store, pipes, before, function, arguments):
    write = pipes[rank][1]
    for _, other in pipes: # of which the end is seen when all have closed it
        if other is not write:
            other.close()
    try:
        if before is not None:
            before(rank)
        torch.set_num_threads(1)
        dist.init_process_group("gloo", rank=rank, world_size=ranks,
                                init_method=f"file://{store}")
        mesh = init_device_mesh("cpu", (ranks,), mesh_dim_names=("ranks",))
        write.send((function(mesh, *arguments), None))
        dist.barrier()
    except Exception as error: # told to the one who waits
        if "BURST_EVALUATION_TRACE" in os.environ:
            traceback.print_exc()
        write.send((None, f"{type(error).__name__}: {error}"))
        os._exit(1) # ranks that wait for this one are ended, not waited for
    os._exit(0)
