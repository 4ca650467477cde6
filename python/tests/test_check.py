# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.check: it passes what is right on all ranks, and fails what is not."""

import re

import pytest
import torch

import burst
from burst import checking

SLOPES = torch.tensor([0.5, 0.25], requires_grad=True)


def causal(b, h, i, j):
    return i >= j


def alibi(s, b, h, i, j):
    return s - SLOPES[h] * (i - j).abs()


@pytest.mark.parametrize("ranks, order, strategy", [
    (8, "zigzag", "auto"), (8, "striped 8", "ring_q"), (3, "contiguous", "all_gather"),
    (5, "zigzag", "bi_ring_kv"), (8, "zigzag", "bi_ring_q"),
    (1, "contiguous", "auto")])
def test_is_right(ranks, order, strategy):
    report = burst.check(causal, alibi, S=77, ranks=ranks, order=order, strategy=strategy)
    assert set(report.errors) == {"o", "lse", "dq", "dk", "dv", "d table 0"}
    assert len(report.bytes_sent) == ranks
    assert (sum(report.bytes_sent) > 0) == (ranks > 1)


@pytest.mark.parametrize("strategy", ["double_ring_kv", "double_ring_q", "ring_q",
                                      "ulysses on [1], ring_kv on [0]", "ulysses on [0, 1]"])
def test_nodes(strategy):
    report = burst.check(causal, S=77, ranks=6, nodes=3, heads=12, key_heads=6, strategy=strategy)
    assert len(report.bytes_sent) == 6
    with pytest.raises(ValueError, match="nodes: a number that divides the 6 ranks"):
        burst.check(causal, S=24, ranks=6, nodes=4)
    for strategy in ("double_ring_kv", "ulysses on [1], ring_kv on [0]"):
        with pytest.raises(burst.ArgumentError, match="over several nodes.* say nodes="):
            burst.check(causal, S=24, ranks=6, strategy=strategy)
    with pytest.raises(TypeError, match="heads: a whole number is wanted, got \\(28, 4\\)"):
        burst.check(causal, S=24, ranks=6, heads=(28, 4))
    with pytest.raises(ValueError, match="'ulysses on 1' is not known"):
        burst.explain((1, 4, 24, 16), sequence=burst.Sequence(ranks=6, nodes=3),
                      strategy="ulysses on 1")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_key_heads_that_ranks_share(dtype):
    report = burst.check(causal, S=45, ranks=4, heads=8, key_heads=2, strategy="ulysses",
                         dtype=dtype)
    assert "dk" in report.errors
    with pytest.raises(burst.Error, match="2 query heads over 4 ranks.*the last one of 2 ranks"):
        burst.check(causal, S=48, ranks=4, heads=2, key_heads=2, strategy="ulysses")
    # Of seven query heads four and three.
    burst.check(causal, S=48, ranks=8, heads=28, key_heads=4, strategy="ulysses", backward=True)
    # Room for two key heads on each of five ranks.
    burst.check(causal, S=45, ranks=5, heads=18, key_heads=9, strategy="ulysses", backward=True)


@pytest.mark.parametrize("ranks, nodes, strategy", [
    (2, 1, "ulysses in 4 chunks"), (4, 2, "ulysses on [0, 1] in 2 chunks")])
def test_chunks_of_heads(ranks, nodes, strategy):
    def peak(strategy):
        return burst.explain((1, 8, 1024, 64), mask=causal, strategy=strategy,
                             sequence=burst.Sequence(ranks=ranks, nodes=nodes)).peak_bytes

    report = burst.check(causal, lambda s, b, h, i, j: s - 0.1 * (h + 1) * (i - j).abs(), S=77,
                         ranks=ranks, nodes=nodes, heads=8, key_heads=8, strategy=strategy)
    assert set(report.errors) == {"o", "lse", "dq", "dk", "dv"}
    slopes = torch.rand(8, requires_grad=True)
    report = burst.check(causal, lambda s, b, h, i, j: s + slopes[h] * (j - i), S=45, ranks=ranks,
                         nodes=nodes, heads=8, key_heads=2, strategy=strategy, dtype=torch.bfloat16)
    assert set(report.errors) == {"o", "lse", "dq", "dk", "dv", "d table 0"}
    with pytest.raises(burst.Error, match="in 3 chunks, which do not divide the 4 query heads"):
        burst.check(causal, S=48, ranks=2, heads=8, strategy="ulysses in 3 chunks")
    for wrong in ("ulysses in chunks", "ulysses in 4", "ulysses in 2 chunks on [0]"):
        with pytest.raises(ValueError, match=f"strategy: '{re.escape(wrong)}' is not known"):
            peak(wrong)
    if "4" in strategy: # which halves buffers
        of = [peak(x) for x in ("ulysses", strategy)]
        assert of[1] < 0.8 * of[0], of


@pytest.mark.parametrize("strategy", ["ring_kv", "ring_q", "direct_kv", "ulysses"])
def test_without(strategy):
    """What is left out shows in what is sent, or only in the time."""
    def sent(*without):
        report = burst.check(causal, S=77, ranks=4, heads=4, strategy=strategy, without=without)
        return sum(report.bytes_sent)

    everything = sent()
    assert sent("overlap") == sent("local_tiling") == everything
    rings = strategy != "ulysses" # which sends heads, whatever the mask
    assert (sent("local_tiling", "dropping", "overlap") > everything) == rings


def test_scores_that_are_stored():
    """The baseline of a ring without online softmax, forward and backward."""
    report = burst.check(causal, lambda s, b, h, i, j: s - 0.1 * (i - j).abs(), S=77, ranks=4,
                         heads=4, key_heads=2, strategy="ring_scores", without=("overlap",))
    assert set(report.errors) == {"o", "lse", "dq", "dk", "dv"}
    for score, message in ((alibi, "has no gradients of tables"),
                           (lambda s, b, h, i, j: torch.tanh(s),
                            "whose derivative reads products")):
        with pytest.raises(burst.Error, match=message):
            burst.check(causal, score, S=77, ranks=4, strategy="ring_scores")


def test_lengths_and_types():
    burst.check(causal, S=9, keys=30, ranks=4, heads=4, key_heads=1, dtype=torch.float64)
    burst.check(None, S=64, ranks=2, dtype=torch.bfloat16, backward=False)


def test_a_number_with_a_gradient():
    factor = torch.tensor(0.7, requires_grad=True)
    report = burst.check(causal, lambda s, b, h, i, j: factor * s + torch.sin(factor * j), S=40)
    assert set(report.errors) == {"o", "lse", "dq", "dk", "dv", "d table 0"}
    parts = torch.randn(3, requires_grad=True)
    own = parts[1] # no leaf
    report = burst.check(causal, lambda s, b, h, i, j: own * s + parts[h], S=40, ranks=2)
    assert "d table 1" in report.errors


def test_a_table_that_decides():
    """Its gradients are zeros."""
    bounds = torch.linspace(-1, 1, 40, requires_grad=True)
    report = burst.check(causal, lambda s, b, h, i, j: torch.where(s > bounds[j], s, 0.5 * s), S=40)
    assert report.errors["d table 0"] == 0


@pytest.mark.parametrize("dtype, of_table", [
    (torch.float32, torch.bfloat16), (torch.float32, torch.float64),
    (torch.float64, torch.float32), (torch.float64, torch.float16)])
def test_types_of_tables(dtype, of_table):
    """What is computed of them is compared in the type that programs compute in."""
    generator = torch.Generator().manual_seed(0)
    bias = torch.randn(2, 4, generator=generator).to(of_table).requires_grad_()
    buckets = torch.randint(0, 4, (150, 150), generator=generator)
    scale = torch.tensor(0.3).to(of_table)

    def score(s, b, h, i, j):
        return s + bias[h, buckets[i, j]] * (i - j) * 0.01 + scale * j + 0.1 * i * (j < 3)

    burst.check(causal, score, S=150, ranks=2, dtype=dtype)
    assert torch.get_default_dtype() == torch.float32


def test_a_wrong_result_is_found(monkeypatch):
    run = checking.programs.run_all

    def wrong(program, device, values):
        counters = run(program, device, values)
        tensor = values[3] # o, of which a number changes
        import ctypes
        ctypes.cast(tensor.data, ctypes.POINTER(ctypes.c_float))[5] += 0.01
        return counters

    monkeypatch.setattr(checking.programs, "run_all", wrong)
    with pytest.raises(AssertionError, match="o: off by"):
        burst.check(causal, S=32, ranks=2, backward=False)


def test_offsets():
    slopes = torch.tensor([0.0, 0.5, 0.25, 0.125, 1.0])

    def by_head(s, b, h, i, j):
        return s - slopes[h] * (i - j).abs()

    burst.check(score=by_head, S=24, ranks=2, head_offset=3)
    with pytest.raises(TypeError, match="ranks: a whole number is wanted, got 1.5"):
        burst.check(S=24, ranks=1.5)
