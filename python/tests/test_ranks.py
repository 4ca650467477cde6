# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention on the processes of a group equals that of one process."""

import functools
import os
import re
import time

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import burst
import reference
from burst import programs, torch_api

IDS = torch.tensor([0] * 13 + [1] * 22 + [2] * 13)


def causal(b, h, i, j):
    return i >= j


def documents(b, h, i, j):
    return (i >= j) & (IDS[i] == IDS[j])


def _rank(rank, ranks, store, function, arguments):
    dist.init_process_group("gloo", rank=rank, world_size=ranks, init_method=f"file://{store}")
    torch.set_num_threads(1)
    try:
        function(*arguments)
    finally:
        dist.destroy_process_group()


def on_ranks(ranks, tmp_path, function, *arguments):
    mp.start_processes(_rank, (ranks, tmp_path / "store", function, arguments), ranks,
                       start_method="spawn")


CASES = [
    (2, "zigzag", "auto", causal, (48, 48)),
    (3, "striped 4", "ring_kv", documents, (48, 48)),
    (4, "contiguous", "all_gather", documents, (48, 48)),
    (4, "zigzag", "ring_q", causal, (45, 45)),
    (2, "zigzag", "ulysses", causal, (45, 45)),
    (2, "striped", "ulysses in 2 chunks", causal, (45, 45)),
    (3, "zigzag", "ulysses", causal, (45, 45)), # heads that they do not divide
    (2, "contiguous", "auto", causal, (20, 33)),
    (4, "zigzag", "double_ring_kv", documents, (45, 45), 2),
    (4, "contiguous", "ulysses on [1], ring_q on [0]", causal, (45, 45), 2),
    (4, "zigzag", "ring_kv then ring_q", documents, (45, 45)),
    (3, "zigzag", "ring_kv", causal, (45, 45), 1, ("overlap", "dropping", "local_tiling")),
]


def compare(ranks, order, strategy, mask, lengths, nodes=1, without=()):
    """Forward and backward of shards, with a table that has a gradient, on the
    first `ranks` of the processes."""
    group = dist.new_group(range(ranks))
    if dist.get_rank() >= ranks:
        return
    sq, sk = lengths
    cp = burst.Sequence(group, order, nodes=nodes, length=sq, key_length=sk)
    whole = [x.requires_grad_() for x in reference.draw(2, 4, 2, sq, sk, 16)]
    slopes = torch.tensor([0.5, 0.25, 0.1, 0.05], requires_grad=True)

    def score(s, b, h, i, j):
        return s - slopes[h] * (i - j).abs()

    # Rows without keys have an infinite lse, which gives no gradient.
    def loss_of(results, weights):
        return sum((torch.where(torch.isfinite(x), x.double(), 0.0) * w).sum()
                   for x, w in zip(results, weights))

    wanted = reference.attention(*whole, mask, score)
    generator = torch.Generator().manual_seed(5)
    weights = [torch.randn(x.shape, generator=generator, dtype=torch.float64) for x in wanted]
    loss_of(wanted, weights).backward()
    wanted_gradients = [x.grad for x in (*whole, slopes)]
    slopes.grad = None

    shards = [cp.shard(x.detach(), 2).requires_grad_() for x in whole[:1]]
    # Keys may be of another length than queries, and are laid out by their own.
    shards += [x.detach().index_select(2, torch.tensor(cp.layout.positions(dist.get_rank(), sk)))
               .requires_grad_() for x in whole[1:]]
    found = burst.attention(*shards, mask=mask, score=score, sequence=cp, strategy=strategy,
                            without=without, head_offset=0, return_lse=True)
    loss_of(found, [cp.shard(w, 2) for w in weights]).backward()
    for x, y in zip(found, wanted):
        reference.assert_close(x, cp.shard(y, 2))
    for x, y in zip(shards, wanted_gradients):
        reference.assert_close(x.grad, cp.shard(y, 2))
    dist.all_reduce(slopes.grad, group=group)
    reference.assert_close(slopes.grad, wanted_gradients[3])
    if sq == sk:
        assert torch.equal(cp.unshard(shards[0], 2), whole[0])
    # Known from one rank, which has the rows of all.
    *both, largest = burst.attention(*shards, mask=mask, score=score, sequence=cp,
                                     strategy=strategy, without=without, head_offset=0,
                                     return_lse=True, return_max_scores=True)
    alone = burst.attention(*[x.detach() for x in whole], mask=mask, score=score, head_offset=0,
                            return_max_scores=True)[1]
    reference.assert_close(largest, cp.shard(alone, 2))
    assert all(torch.equal(x, y) for x, y in zip(both, found))
    of_heads = largest.amax((0, 2))
    dist.all_reduce(of_heads, dist.ReduceOp.MAX, group=group)
    reference.assert_close(of_heads, alone.amax((0, 2)))


def compiled():
    """Where torch.compile reads, sequences are constants of the graph."""
    cp = burst.Sequence(dist.group.WORLD, "zigzag")
    shards = [cp.shard(x, 2).requires_grad_() for x in reference.draw(1, 4, 2, 48, 48, 16)]
    attend = functools.partial(burst.attention, mask=documents, sequence=cp)
    wanted = attend(*shards)
    found = torch.compile(attend, fullgraph=True, backend="aot_eager")(*shards)
    assert torch.equal(found, wanted)
    for x, y in zip(torch.autograd.grad(found.sum(), shards),
                    torch.autograd.grad(wanted.sum(), shards)):
        assert torch.equal(x, y)


def keys_that_grow():
    """A decoding loop over ranks, which append keys in place: each position belongs to
    one of them in turn. Rank 0 has the query."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    q, keys, values = reference.draw(1, 4, 2, 1, 48, 16)
    cache = [x.new_zeros(1, 2, 12, 16) for x in (keys, values)]
    modules = []
    compile = programs.Program.compile
    programs.Program.compile = staticmethod(
        lambda module, *how: modules.append(module) or compile(module, *how))
    for n in range(48):
        if n % ranks == rank:
            for held, x in zip(cache, (keys, values)):
                held[:, :, n // ranks] = x[:, :, n]
        cp = burst.Sequence(dist.group.WORLD, "striped", length=1, key_length=n + 1)
        count = cp.layout.local_length(rank, n + 1)
        found = burst.attention(q if rank == 0 else q[:, :, :0], *(x[:, :, :count] for x in cache),
                                sequence=cp, return_lse=True)
        if rank == 0 and n % 7 == 0:
            for x, y in zip(found, reference.attention(q, keys[:, :, :n + 1],
                                                       values[:, :, :n + 1])):
                reference.assert_close(x, y)
    programs.Program.compile = compile
    assert ["?" in module for module in modules] == [False, True]


def programs_that_ranks_remember():
    """Each rank remembers calls by the strides of its tensors, and may have forgotten
    some: all run the same programs."""
    cp = burst.Sequence(dist.group.WORLD, "contiguous")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    whole = reference.draw(1, 2, 2, 12 * ranks, 12 * ranks, 8)
    for n, (num_queries, num_keys) in enumerate(
            [(8, 8), (8, 10), (8, 12), (8, 8), (4, 11), (4, 11), (8, 10), (8, 8)]):
        shards = [x[:, :, rank * count:(rank + 1) * count] for x, count in
                  zip(whole, (num_queries, num_keys, num_keys))]
        if rank == 1 and n > 2: # others strides, or elements that are not side by side
            shards = [x.transpose(2, 3).contiguous().transpose(2, 3) if n % 2 else x.contiguous()
                      for x in shards]
        if rank == 0 and n in (3, 6):
            torch_api._calls.clear()
            torch_api._open_calls.clear()
        o = burst.attention(*shards, sequence=cp)
        wanted, _ = reference.attention(*(x[:, :, :count * ranks] for x, count in
                                          zip(whole, (num_queries, num_keys, num_keys))))
        reference.assert_close(o, wanted[:, :, rank * num_queries:(rank + 1) * num_queries])


def all_cases():
    for case in CASES:
        try:
            compare(*case)
        except Exception as error:
            raise AssertionError(f"rank {dist.get_rank()} of {case}") from error
        dist.barrier()
    compiled()
    keys_that_grow()
    programs_that_ranks_remember()
    offsets()
    dist.barrier()


def test_ranks(tmp_path):
    on_ranks(4, tmp_path, all_cases)


def offsets():
    """Two ranks of four have a sequence, the others might have other heads."""
    group = dist.new_group([0, 1])
    if dist.get_rank() > 1:
        return
    cp = burst.Sequence(group, "contiguous")
    q, k, v = (cp.shard(x, 2) for x in reference.draw(1, 4, 4, 16, 16, 8))
    burst.attention(q, k, v, mask=causal, sequence=cp)

    def by_head(s, b, h, i, j):
        return s * (h + 1)

    with pytest.raises(ValueError, match="head_offset: mask or score depend on the head, and "
                                         "there are 4 ranks, more than the 2 of the sequence"):
        burst.attention(q, k, v, score=by_head, sequence=cp)
    burst.attention(q, k, v, score=by_head, sequence=cp, head_offset=0)
    with pytest.raises(ValueError, match="batch_offset: mask or score depend on the batch"):
        burst.attention(q, k, v, mask=lambda b, h, i, j: i >= b, sequence=cp, head_offset=0)


def groups_again(store):
    """A group is destroyed, and another one has its name."""
    x = torch.zeros(1, 1, 4, 8)
    for turn in range(2):
        if turn:
            rank, ranks = dist.get_rank(), dist.get_world_size()
            dist.destroy_process_group()
            dist.init_process_group("gloo", rank=rank, world_size=ranks,
                                    init_method=f"file://{store}")
        cp = burst.Sequence(dist.group.WORLD, "contiguous")
        shard = cp.shard(torch.arange(8.0).reshape(1, 1, 8, 1).expand(1, 1, 8, 8), 2)
        reference.assert_close(burst.attention(x, x, shard, sequence=cp),
                               torch.full((1, 1, 4, 8), 3.5))


@pytest.mark.all
def test_groups_that_come_again(tmp_path):
    on_ranks(2, tmp_path, groups_again, tmp_path / "again")


def disagreements():
    """Ranks that run different programs say what is different."""
    ranks = range(dist.get_world_size())
    own = dist.get_rank()

    def later(b, h, i, j):
        return i >= j + 1

    def cap(number):
        return lambda s, b, h, i, j: number * torch.tanh(s / number)

    odd = own == 1
    for arguments, length, message in (
            (dict(mask=later if odd else causal), 8,
             r"mask: `causal` on ranks 0, 2; `mask\(%b, %h, .* on rank 1"),
            (dict(scale=0.5 if odd else None), 8,
             r"scale: 1 / sqrt\(head dim\) on ranks 0, 2; 0.5 on rank 1"),
            (dict(score=cap(30.0 if odd else 20.0)), 8,
             r"score: `%x0 = arith.constant 0x\w+ : f32` on ranks 0, 2; `%x0 = "),
            (dict(without=["overlap"] if odd else [], strategy="ring_kv"), 8,
             "without: nothing on ranks 0, 2; overlap on rank 1"),
            (dict(without=("local_tiling",) if odd else ()), 8,
             "without: nothing on ranks 0, 2; local_tiling on rank 1"),
            (dict(), 5 if odd else 4,
             "q of all ranks: batch 1, 12 positions, 1 heads of 8 on ranks 0, 2; batch 1, 15 "
             "positions, 1 heads of 8 on rank 1")):
        cp = burst.Sequence(dist.new_group(ranks), "contiguous", deadline_seconds=60)
        x = torch.zeros(1, 1, length, 8)
        with pytest.raises(burst.Error, match="; what is different:\n") as found:
            burst.attention(x, x, x, sequence=cp, **arguments)
        assert found.value.code == burst.Code.MISMATCH
        assert re.search(message, str(found.value)), str(found.value)


@pytest.mark.all
def test_ranks_that_disagree(tmp_path):
    on_ranks(3, tmp_path, disagreements)


def whole_on_each_rank():
    cp = burst.Sequence(dist.group.WORLD, "contiguous")
    x = torch.zeros(1, 1, 48, 8)
    with pytest.raises(ValueError, match="reads IDS .mask_table0. outside of its bounds: .* the "
                                         "sequence of all 2 ranks has 96 queries: q, k and v are"):
        burst.attention(x, x, x, mask=documents, sequence=cp)


def patience():
    """For the time of the deadline, a rank that does not come is waited for."""
    cp = burst.Sequence(dist.group.WORLD, "contiguous", deadline_seconds=2)
    x = torch.zeros(1, 1, 4, 8)
    begin = time.monotonic()
    if dist.get_rank() == 1:
        with pytest.raises(burst.DeadlineError, match="rank 0 has not come for 2.0 s"):
            burst.attention(x, x, x, sequence=cp)
        assert time.monotonic() - begin < 20
    dist.barrier()
    with pytest.raises(ValueError, match="deadline_seconds: a number above 0 is wanted, got -1"):
        burst.Sequence(dist.group.WORLD, deadline_seconds=-1)


def deadlines():
    whole_on_each_rank()
    patience()


@pytest.mark.all
def test_deadlines(tmp_path):
    on_ranks(2, tmp_path, deadlines)


def failures():
    """One rank ends: the others say so."""
    cp = burst.Sequence(dist.group.WORLD, "contiguous")
    x = torch.zeros(1, 1, 4, 8)
    burst.attention(x, x, x, sequence=cp)
    if dist.get_rank() == 1:
        os._exit(3)
    with pytest.raises(burst.Error, match="rank 1"):
        burst.attention(x, x, x, sequence=cp)


@pytest.mark.all
def test_a_rank_that_ends(tmp_path):
    with pytest.raises(Exception, match="exit code 3"):
        on_ranks(3, tmp_path, failures)


def uneven():
    cp = burst.Sequence(dist.group.WORLD, "contiguous")
    x = torch.zeros(1, 1, 4 + dist.get_rank(), 8)
    with pytest.raises(burst.Error, match="rank"):
        burst.attention(x, x, x, sequence=cp)


@pytest.mark.long
def test_lengths_that_contradict(tmp_path):
    on_ranks(2, tmp_path, uneven)


def test_layouts():
    for order in ("contiguous", "zigzag", "striped", "striped 3"):
        for length in (0, 1, 7, 24, 25):
            layout = burst.Layout(4, order)
            held = [layout.positions(rank, length) for rank in range(4)]
            assert sorted(sum(held, [])) == list(range(length))
            assert [len(x) for x in held] == [layout.local_length(r, length) for r in range(4)]
    with pytest.raises(ValueError, match="order: 'zig' is not known"):
        burst.Layout(2, "zig")
    with pytest.raises(ValueError, match="wants a DeviceMesh dimension"):
        burst.Sequence()
    with pytest.raises(ValueError, match="is only for plans"):
        burst.Sequence(ranks=4).positions(8)
