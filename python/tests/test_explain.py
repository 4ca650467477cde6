# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.explain: plans for any number of ranks, without compiling."""

import json
import re

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
    chosen = burst.explain((1, 2, 4096, 64), sequence=burst.Sequence(ranks=4))
    assert "x ulysses: shards 2 query heads over 4 ranks" in chosen.why


def test_heads_that_ranks_do_not_divide():
    # Two, two, two and none: three ranks get two heads of q, k and v and give them back.
    plan = burst.explain((1, 6, 4096, 64), dtype=torch.bfloat16, strategy="ulysses",
                         sequence=burst.Sequence(ranks=4))
    shard, head = 1024, 64 * 2
    goes, comes = 3 * head, head + 4
    assert [rank["bytes_sent"] for rank in plan.ranks] == [
        shard * ((6 - own) * goes + own * 3 * comes) for own in (2, 2, 2, 0)]


# A hop of 64 KiB takes 2 ms, a tile of 128 x 128 pairs and a head of 64 1 ms.
MACHINE = """module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.flops" = 4194304.0e3 : f64,
  "burst.peak" = 8388608.0e3 : f64, "burst.bandwidth" = 32768.0e3 : f64,
  "burst.latency" = 0.0 : f64>>} {}"""


def test_time_on_a_machine(tmp_path):
    file = tmp_path / "machine.mlir"
    two = burst.Sequence(ranks=2, order="contiguous")
    file.write_text("// Two lines\n" + MACHINE)
    for machine in (MACHINE, file, str(file)):
        plan = burst.explain((1, 1, 256, 64), sequence=two, dtype="float32",
                             strategy="ring_kv", machine=machine)
        assert plan.seconds == pytest.approx(3e-3)
        assert plan.time["compute_seconds"] == pytest.approx(2e-3)
        assert plan.time["share_of_peak"] == pytest.approx(1 / 3)
        assert plan.time["fits"] and "bandwidth of transfers" in plan.time["limit"]
        assert "program @attention, 2 ranks: 3.00 ms, 33.3 % of the peak" in plan.clock
        assert "ring_kv    | 3.00 ms" in plan.comparison and "all_gather" in plan.comparison
        assert plan.timeline_svg().startswith("<svg")
        spans = json.loads(plan.timeline(max_ranks=1))["traceEvents"]
        assert {span["pid"] for span in spans} == {0}
    nodes = burst.explain(
        (1, 1, 512, 64), sequence=burst.Sequence(ranks=4, nodes=2), dtype="float32",
        compare=("orders", "placements"), strategy="double_ring_kv",
        machine=MACHINE.replace('"burst.latency"', '"burst.node" = 2.0 : f64, "burst.latency"'))
    for order in ("contiguous", "zigzag", "striped"):
        for placement in ("[0, 1]", "[1, 0]"):
            assert re.search(rf"^chosen, {order}, placed {re.escape(placement)} +[|]",
                             nodes.comparison, re.MULTILINE), nodes.comparison
    for wrong, message in ((["masks"], "compare: 'masks' is not known; there are strategies, or"),
                           ([], "compare: at least one of strategies, orders, placements is wa")):
        with pytest.raises(ValueError, match=message):
            burst.explain((1, 1, 256, 64), sequence=two, compare=wrong)
    slower = burst.explain((1, 1, 256, 64), sequence=two, dtype="float32", strategy="ring_kv",
                           machine=MACHINE, without=["overlap"])
    assert slower.seconds == pytest.approx(4e-3)
    with pytest.raises(burst.Error, match="describes no machine: it has no "
                                          "'dlti.target_system_spec'"):
        print(burst.explain((1, 1, 256, 64), sequence=two, machine="module {}").clock)
    with pytest.raises(TypeError, match="machine: a path or the text of one is wanted, got True"):
        burst.explain((1, 1, 256, 64), sequence=two, machine=True)
    with pytest.raises(ValueError, match="^k: a size: a whole number of at least 0 is wanted, "
                                         "got -256$"):
        burst.explain((1, 1, 256, 64), (1, 1, -256, 64), sequence=two)
    with pytest.raises(FileNotFoundError):
        burst.explain((1, 1, 256, 64), sequence=two, machine="none.mlir")


def test_a_strategy_of_each_pass():
    def pinned(strategy, backward):
        return burst.explain((1, 2, 4096, 64), sequence=burst.Sequence(ranks=4), mask=causal,
                             strategy=strategy, backward=backward)
    assert "strategy <ring_kv>" in pinned("ring_kv then ring_q", False).module
    both = pinned("ring_kv then ring_q", True)
    assert "strategy <ring_q>" in both.module and "* ring_q" in both.why
    assert "strategy <" not in pinned("auto then ring_q", False).module
    along = "ulysses on [1], ring_kv on [0] then all_gather"
    assert "strategy <all_gather>" in pinned(along, True).module
    with pytest.raises(ValueError, match="strategy: 'best' is not known"):
        pinned("ring_kv then best", True)


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


class Exchanged:
    """Of a library that speaks DLPack, and no other."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


@pytest.mark.parametrize("wrap", [
    lambda x: x.numpy(), lambda x: x.numpy()[::-1].copy()[::-1], lambda x: Exchanged(x),
    lambda x: x], ids=["numpy", "backwards", "dlpack", "torch"])
def test_tables_of_any_library(wrap):
    """As burst.attention of arrays takes them, also where PyTorch traces."""
    ids, slopes = burst.table(wrap(IDS)), burst.table(wrap(torch.linspace(0, 1, 2)))

    def plan(ids, slopes, where):
        return burst.explain((1, 2, 4096, 64), strategy="ring_kv", dtype="float32",
                             mask=lambda b, h, i, j: (i >= j) & (ids[i] == ids[j]),
                             score=lambda s, b, h, i, j: where(i - j < 64, s - slopes[h], s),
                             sequence=burst.Sequence(ranks=8, order="contiguous"))

    found = plan(ids, slopes, burst.where)
    expected = plan(IDS, torch.linspace(0, 1, 2), torch.where)
    assert found.ranks == expected.ranks
    assert "2549123E" not in found.module and "score_table0" in found.module
    if found.module != expected.module: # a copy for each read is no pair that has a name
        assert isinstance(ids.array, type(IDS.numpy())) and ids.array.strides[0] < 0
    with pytest.raises(burst.TracingError, match="mask .*: captures a tensor of type uint16"):
        wrong = burst.table(IDS.numpy().astype("uint16"))
        plan(wrong, slopes, burst.where)


def test_read_only_tables_of_numpy(recwarn):
    ids = IDS.numpy().copy()
    ids.flags.writeable = False
    ids = burst.table(ids)
    plan = burst.explain((1, 2, 4096, 64), mask=lambda b, h, i, j: ids[i] == ids[j],
                         sequence=burst.Sequence(ranks=2))
    assert "mask documents(%mask_table0" in plan.module and not recwarn.list
    short = burst.table(IDS.numpy()[:7])
    q = torch.zeros(1, 2, 64, 16)
    with pytest.raises(burst.Error, match=r"short \(mask_table0\)"):
        burst.attention(q, q, q, mask=lambda b, h, i, j: short[i] == short[j])


def test_without():
    def plan(**arguments):
        return burst.explain((1, 2, 4096, 64), mask=causal, strategy="ring_kv",
                             sequence=burst.Sequence(ranks=4, order="contiguous"), **arguments)

    assert plan(without=("overlap",)).bytes_sent == plan().bytes_sent
    everything = plan(without=("dropping",))
    assert [rank["bytes_sent"] for rank in everything.ranks] == [3 * 2 * 1024 * 2 * 64 * 2] * 4
    assert "0 are dropped" in everything.proved and "0 are dropped" not in plan().proved
    assert "that it rules out are computed too" in everything.table
    with pytest.raises(ValueError, match="burst_explain_config: without 'local_tiling', which is "
                                         "no part of a schedule; there are: overlap, dropping"):
        print(plan(without=("local_tiling",)))


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
