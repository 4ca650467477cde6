# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of PyTorch over gloo: one of them made cheaper, all of them counted."""

import collections
import contextlib

import torch
import torch.distributed as dist
from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

REDUCE_SCATTER = ("gloo's reduce-scatter sends what an all-reduce does, twice what it has to; here "
                  "it is an all-to-all and a sum")


def make_reduce_scatter_cheap():
    """For what autograd and DTensor call, until the library that is returned is gone."""
    def reduce_scatter(x, op, ranks, group):
        if isinstance(group, str):
            group = dist.distributed_c10d._resolve_process_group(group)
        parts = torch.empty_like(x, memory_format=torch.contiguous_format)
        dist.all_to_all_single(parts, x.contiguous(), group=group)
        total = parts.unflatten(0, (ranks, -1)).sum(0)
        if op not in ("sum", "avg"):
            raise ValueError(f"reduce_scatter: sum or avg, got {op}")
        return total / ranks if op == "avg" else total

    library = torch.library.Library("_c10d_functional", "IMPL")
    library.impl("reduce_scatter_tensor", reduce_scatter, "CPU")
    return library


class SummedScatter(ReduceScatter):
    """For fully_shard, which calls the reduce-scatter of c10d: by that of DTensor, which is made
    cheap above, and counted below."""

    def allocate(self, size, *, dtype, device):
        return torch.empty(size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        if op != dist.ReduceOp.SUM or async_op:
            raise ValueError(f"SummedScatter: a sum that is waited for, got {op}")
        total = torch.ops._c10d_functional.reduce_scatter_tensor(
            input_tensor, "sum", group.size(), group.group_name)
        output_tensor.copy_(torch.ops._c10d_functional.wait_tensor(total))


# How often the input of each is sent, by all ranks together, of P: gloo's all-reduce is a
# reduce-scatter and an all-gather round a ring.
SENT = {
    "all-reduce": lambda ranks: 2 * (ranks - 1),
    "all-gather": lambda ranks: ranks * (ranks - 1), # the input is a shard
    "reduce-scatter": lambda ranks: ranks - 1,
    "broadcast": lambda ranks: ranks - 1,
}
# By op: the collective, and which argument is its input.
NAMES = {
    "_c10d_functional.all_reduce": ("all-reduce", 0),
    "_c10d_functional.all_gather_into_tensor": ("all-gather", 0),
    "_c10d_functional.reduce_scatter_tensor": ("reduce-scatter", 0),
    "c10d.allreduce_": ("all-reduce", 0),
    "c10d.broadcast_": ("broadcast", 0),
    "c10d._allgather_base_": ("all-gather", 1), # behind the output
}


class Counted(TorchDispatchMode):
    """Counts the collectives of a step, and the bytes that all ranks send for them, by phase:
    forward, backward, and gradients, which is what comes after."""

    def __init__(self, ranks):
        super().__init__()
        self.ranks = ranks
        self.counts = collections.Counter()
        self.bytes = collections.Counter()
        self.was_backward = False

    def phase(self):
        if torch._C._current_graph_task_id() >= 0: # autograd is running
            self.was_backward = True
            return "backward"
        return "gradients" if self.was_backward else "forward"

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented # it becomes collectives of its parts, which come here
        packet = f"{func.namespace}.{func.overloadpacket.__name__}"
        if packet in NAMES:
            name, input_at = NAMES[packet]
            x = args[input_at]
            size = sum(part.nbytes for part in (x if isinstance(x, (list, tuple)) else [x]))
            phase = self.phase()
            self.counts[phase, name] += 1
            self.bytes[phase] += size * SENT[name](self.ranks)
        elif func.namespace == "c10d" or func.namespace.startswith("_c10d_functional") and \
                not packet.endswith((".wait_tensor", "._wrap_tensor_autograd")):
            raise NotImplementedError(f"{packet}: how much it sends is not known")
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def runs_of_burst(phase):
    """Gives a list of the phases and counters of runs inside, of this rank. burst.attention has
    no counters of its runs, which it makes by the one function below."""
    from burst import _c, programs, running
    found, run_at = [], running.run_at

    def counted(program, config, values, count, counters=None):
        of_run = _c.Counters()
        run_at(program, config, values, count, _c.address(of_run))
        found.append((phase(), of_run))

    programs.run_at = running.run_at = counted
    try:
        yield found
    finally:
        programs.run_at = running.run_at = run_at
