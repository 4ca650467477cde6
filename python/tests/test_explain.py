# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.explain: plans for any number of ranks, without compiling."""

import pytest
import torch

import burst

IDS = torch.arange(4096) // 600


def causal(b, h, i, j):
    return i >= j


def documents(b, h, i, j):
    return (i >= j) & (IDS[i] == IDS[j])


def test_a_plan():
    plan = burst.explain((1, 8, 4096, 64), (1, 2, 4096, 64), mask=causal,
                         sequence=burst.Sequence(ranks=4), dtype=torch.bfloat16,
                         strategy="ring_kv")
    assert "rank 3" in plan.table and str(plan) == plan.table
    assert plan.proved.startswith("for every number of ranks: each of 36 pairs of segments that")
    assert plan.why.startswith("strategy") and "all_gather" in plan.why
    assert [rank["rank"] for rank in plan.ranks] == [0, 1, 2, 3]
    # Three hops at most, of a quarter of k and v each.
    assert plan.bytes_sent == 3 * 2 * 1024 * 2 * 64 * 2
    assert plan.peak_bytes > plan.bytes_sent
    assert plan.svg().startswith("<svg")


def test_bytes_by_axis():
    plan = burst.explain((1, 8, 4096, 64), (1, 2, 4096, 64), dtype=torch.bfloat16,
                         sequence=burst.Sequence(ranks=8, nodes=2), strategy="double_ring_kv")
    hop = 2 * 512 * 2 * 64 * 2
    assert all(rank["bytes_sent_by_axis"] == [hop, 2 * 3 * hop] for rank in plan.ranks)
    assert "| on [0]" in plan.why
    chosen = burst.explain((1, 6, 4096, 64), sequence=burst.Sequence(ranks=4))
    assert "x ulysses: shards 6 query heads over 4 ranks" in chosen.why


def test_many_ranks():
    plan = burst.explain((1, 8, 2**17, 64), mask=causal, sequence=burst.Sequence(ranks=256))
    assert "256 ranks" in plan.table and len(plan.ranks) == 256


def test_tables_decide_what_is_sent():
    def sent(mask):
        return burst.explain((1, 2, 4096, 64), mask=mask, strategy="ring_kv",
                             sequence=burst.Sequence(ranks=8, order="contiguous"),
                             dtype="float32").bytes_sent
    assert sent(documents) < sent(causal)
    assert "mask documents" not in burst.explain(
        (1, 2, 4096, 64), mask=causal, sequence=burst.Sequence(ranks=2)).module
    flags = torch.zeros(8, 8, dtype=torch.bool)
    flags[0, 7] = True
    assert sent(lambda b, h, i, j: flags[i // 512, j // 512]) > 0


def test_backward_and_strategies():
    for strategy in ("ring_kv", "ring_q", "all_gather"):
        plan = burst.explain((1, 4, 512, 32), sequence=burst.Sequence(ranks=3), backward=True,
                             strategy=strategy, layout="bhsd")
        assert plan.bytes_sent > 0


def test_refusals():
    with pytest.raises(ValueError, match="dtype: float32, .*, got torch.int8"):
        burst.explain((1, 2, 8, 8), sequence=burst.Sequence(ranks=2), dtype=torch.int8)
    with pytest.raises(ValueError, match="q: 4 dimensions bhsd are wanted, got the shape"):
        burst.explain((2, 8, 8), sequence=burst.Sequence(ranks=2))
    with pytest.raises(ValueError, match="k: has a batch of 2, q of 1"):
        burst.explain((1, 2, 8, 8), (2, 2, 8, 8), sequence=burst.Sequence(ranks=2))
    with pytest.raises(ValueError, match="head dims must be in"):
        burst.explain((1, 2, 8, 512), sequence=burst.Sequence(ranks=2)).table
