# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.check: it passes what is right on all ranks, and fails what is not."""

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
    (1, "contiguous", "auto")])
def test_is_right(ranks, order, strategy):
    report = burst.check(causal, alibi, S=77, ranks=ranks, order=order, strategy=strategy)
    assert set(report.errors) == {"o", "lse", "dq", "dk", "dv", "d table 0"}
    assert len(report.bytes_sent) == ranks
    assert (sum(report.bytes_sent) > 0) == (ranks > 1)


def test_lengths_and_types():
    burst.check(causal, S=9, keys=30, ranks=4, heads=4, key_heads=1, dtype=torch.float64)
    burst.check(None, S=64, ranks=2, dtype=torch.bfloat16, backward=False)


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
