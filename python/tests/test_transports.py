# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shards that the process group carries itself."""

import time

import pytest
import torch
import torch.distributed as dist

import burst
from burst import transports
from test_ranks import causal, on_ranks


def check_all(whats):
    for what in whats:
        group = dist.new_group() # what has failed stays so
        transports.check(burst.Sequence(group, transport="group"), what, deadline_seconds=30)


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.all), 3])
def test_keeps_the_rules(ranks, tmp_path):
    on_ranks(ranks, tmp_path, check_all, ["messages"])


def test_fails_as_it_should(tmp_path):
    on_ranks(3, tmp_path, check_all, ["mismatch", "deadline", "stop"])


def check_tcp():
    transports.check(burst.Sequence(dist.group.WORLD), "messages", 2)


@pytest.mark.all
def test_tcp_keeps_the_rules(tmp_path):
    on_ranks(2, tmp_path, check_tcp)


def test_kinds_of_checks_are_named():
    with pytest.raises(ValueError, match="what: one of messages, mismatch, deadline, stop"):
        transports.check(None, "speed")


def test_kinds_of_transports_are_named():
    with pytest.raises(ValueError, match="transport: \"tcp\", \"group\" or \"mpi\", got 'smoke'"):
        burst.Sequence(ranks=2, transport="smoke")


def same_bits(strategy):
    """As over connections of burst's own, forward and backward."""
    results = []
    for transport in ("tcp", "group"):
        torch.manual_seed(dist.get_rank())
        cp = burst.Sequence(dist.group.WORLD, transport=transport)
        q, k, v = (torch.randn(1, heads, 24, 16, requires_grad=True) for heads in (4, 2, 2))
        o = burst.attention(q, k, v, mask=causal, strategy=strategy, sequence=cp)
        o.square().sum().backward()
        results.append((o.detach(), q.grad, k.grad, v.grad))
    for x, y in zip(*results):
        assert torch.equal(x, y)


@pytest.mark.parametrize("strategy", ["ring_kv",
                                      pytest.param("all_gather", marks=pytest.mark.all)])
def test_bits_are_those_of_tcp(strategy, tmp_path):
    on_ranks(3, tmp_path, same_bits, strategy)


def lose_a_rank():
    cp = burst.Sequence(dist.group.WORLD, transport="group", deadline_seconds=2)
    q = torch.randn(1, 2, 8, 16)
    burst.attention(q, q, q, sequence=cp)
    if dist.get_rank() == 1:
        time.sleep(4) # while the others attend
        return
    with pytest.raises(burst.Error) as failed:
        burst.attention(q, q, q, sequence=cp)
    # One waits for the other, which tells it.
    assert failed.value.code in (burst.Code.DEADLINE_EXCEEDED, burst.Code.PEER_STOPPED)
    assert "rank" in str(failed.value)


@pytest.mark.all
def test_waits_until_the_deadline(tmp_path):
    on_ranks(3, tmp_path, lose_a_rank)
