# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Causal attention over processes: burst in zigzag order beside all-gather of keys and values over
gloo with scaled_dot_product_attention, in turns, by torchrun.

usage: ranks.py HEADS KEY_HEADS LENGTH DIM RUNS

Rank 0 writes {"burst": {"forward": [...], "both": [...]}, "gather": ..., "difference": E} in JSON.
The other method computes no more than it must either: each chunk of queries sees the keys up to its
end alone.
"""

import json
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.nn.functional import all_gather

import burst


def gathered(sequence, x):
    """Of (batch, heads, length, dim), in the order of positions."""
    parts = all_gather(x)
    order = torch.cat([torch.tensor(sequence.layout.positions(r, x.shape[2] * sequence.ranks))
                       for r in range(sequence.ranks)])
    return torch.cat(parts, 2)[:, :, order.argsort()]


def by_gathering(sequence, q, k, v):
    k, v = gathered(sequence, k), gathered(sequence, v)
    length, ranks, rank = q.shape[2] * sequence.ranks, sequence.ranks, sequence.rank
    chunk = length // (2 * ranks)
    results = []
    for n, part in zip((rank, 2 * ranks - 1 - rank), q.chunk(2, 2)):
        end = (n + 1) * chunk
        # is_causal counts from the first key: the keys before the chunk, and the triangle.
        mask = torch.ones(chunk, end, dtype=torch.bool).tril(n * chunk)
        results.append(F.scaled_dot_product_attention(part, k[:, :, :end], v[:, :, :end],
                                                      attn_mask=mask, enable_gqa=True))
    return torch.cat(results, 2)


def main():
    heads, key_heads, length, dim, runs = map(int, sys.argv[1:])
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    sequence = burst.Sequence(dist.group.WORLD, "zigzag")
    torch.manual_seed(0)
    q, k, v = (sequence.shard(torch.randn(1, h, length, dim), 2).requires_grad_()
               for h in (heads, key_heads, key_heads))

    def causal(b, h, i, j):
        return i >= j

    methods = {"burst": lambda: burst.attention(q, k, v, mask=causal, sequence=sequence),
               "gather": lambda: by_gathering(sequence, q, k, v)}
    found = {name: {"forward": [], "both": []} for name in methods}
    worst = torch.zeros(())
    for n in range(runs + 1):
        results = {}
        for kind in ("forward", "both"):
            for name, attend in methods.items():
                dist.barrier()
                begin = time.perf_counter()
                with torch.set_grad_enabled(kind == "both"):
                    o = attend()
                    if kind == "both":
                        o = torch.autograd.grad(o.sum(), (q, k, v))
                dist.barrier()
                if n: # the first one warms up
                    found[name][kind].append(time.perf_counter() - begin)
                results[kind, name] = (o,) if kind == "forward" else o
            for x, y in zip(results[kind, "burst"], results[kind, "gather"]):
                worst = torch.maximum(worst, (x - y).abs().max() / y.abs().max())
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print(json.dumps({**found, "difference": worst.item()}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
