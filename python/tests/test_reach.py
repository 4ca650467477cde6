# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/reach: formulas beside what follows by hand, figures and their calibration, and what
docs/reach.md says."""

import dataclasses
import itertools
import math
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from reach import compare, documents, page, plot, tables
from reach.attention import Problem, function, tool
from reach.calibrate import needed
from reach.collectives import all_gather, all_reduce, all_to_all
from reach.machines import machine, model, variant
from reach.step import (Attention, Plan, activation_bytes, fits, layers_forward, step_seconds,
                        tensor_traffic, training_bytes)


def has_tool():
    try:
        return bool(tool())
    except FileNotFoundError:
        return False


needs_tool = pytest.mark.skipif(not has_tool(), reason="no burst-opt: scripts/build makes it")

# Of the models' own pages, without the vectors of norms.
WEIGHTS = {"llama-2-7b": 6_738_415_616 - 65 * 4096, "llama-2-13b": 13_015_864_320 - 81 * 5120,
           "llama-3-8b": 8_030_261_248 - 65 * 4096, "llama-3-70b": 70_553_706_496 - 161 * 8192,
           "llama-3-405b": 405_853_388_800 - 253 * 16384}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_are_those_of_the_published_model(name):
    assert model(name).weights == WEIGHTS[name]


@pytest.mark.parametrize("name, billions, active", [("qwen3-235b-a22b", 235, 22),
                                                    ("deepseek-v3", 671, 37)])
def test_weights_of_experts(name, billions, active):
    found = model(name)
    assert round(found.weights / 1e9) == billions
    used = found.active_weights + 2 * found.head_weights
    assert abs(used / 1e9 - active) < 1


@pytest.mark.parametrize("causal, length, queries", [(True, 7, 0), (False, 7, 0), (True, 9, 2)])
def test_operations_are_those_of_all_pairs(causal, length, queries):
    rows = queries or length
    pairs = sum(1 for i in range(rows) for j in range(length)
                if not causal or j <= i + length - rows)
    forward = Problem(length, 3, 1, 1, "", causal=causal, queries=queries, dim=5, value_dim=4)
    assert forward.pairs == pairs
    assert forward.operations == pairs * 3 * 2 * (5 + 4)
    backward = dataclasses.replace(forward, backward=True)
    assert backward.operations == pairs * 3 * 2 * (3 * 5 + 2 * 4)


def test_a_ring_sends_all_but_a_rank_s_own_part():
    base = variant(machine("a100x8"), node_latency=8.4e-6)  # nothing beside the base of a call
    seconds = all_gather(base, 8e9, 8) - 8.4e-6
    assert seconds == pytest.approx(7e9 / base.node_bandwidth)
    assert all_reduce(base, 8e9, 8) == pytest.approx(2 * (seconds + 8.4e-6))
    assert all_gather(base, 8e9, 1) == all_reduce(base, 8e9, 1) == all_to_all(base, 8e9, 1) == 0


def test_collectives_of_few_bytes_go_by_a_tree():
    base = machine("h200")
    assert all_reduce(base, 1024, 64) == pytest.approx(
        6.8e-6 + 2 * (7 * 0.6e-6 + 3 * 5e-6), rel=0.01)


def test_between_nodes_cards_are_shared():
    base = machine("a800x8x4")
    node = base.links * base.bandwidth
    # 4 cards of 25 GB/s are less than NVLink: a ring over nodes goes as fast as they do.
    assert all_gather(base, 1e11, 32) == pytest.approx(1e11 * 31 / 32 / node, rel=0.01)
    # Of an all-to-all over 4 nodes three quarters leave the node, over its share of cards.
    assert all_to_all(base, 1e9, 32) == pytest.approx(0.75e9 / (node / 8), rel=0.01)


def test_tensor_traffic_is_megatron_s():
    base, shape = machine("a100x8"), model("llama-2-7b")
    bytes_ = 2.0 * 32768 * shape.hidden
    one = bytes_ * 7 / 8 / base.node_bandwidth
    def traffic(version, backward):
        return tensor_traffic(shape, base, 32768, Plan(tensor=8, version=version), backward)
    # Two all-reduces, which are two gathers' bytes each; V3 gathers once more in each backward.
    for version, backward, gathers in ((1, False, 4), (1, True, 4), (3, False, 4), (3, True, 6)):
        assert traffic(version, backward) == pytest.approx(32 * gathers * one, rel=0.05)


def test_layers_take_twice_their_weights():
    base = variant(machine("a100x8"), memory_bandwidth=1e30)
    shape = model("llama-2-7b")
    expected = 2.0 * shape.active_weights * 4096 / base.matmul
    assert layers_forward(shape, base, 4096, Plan()) == pytest.approx(expected)
    assert layers_forward(shape, base, 4096, Plan(tensor=8)) == pytest.approx(expected / 8)


def step(plan, **options):
    base, shape = machine("h100"), model("llama-2-7b")
    return step_seconds(shape, base, 8192, Attention(1.0, 3.0), plan, **options)


def test_a_pipeline_has_a_bubble():
    free = dataclasses.replace(Plan(), sharded_optimizer=True)
    def per_batch(stages, batches):
        plan = dataclasses.replace(free, pipeline=stages, microbatches=batches)
        return step(plan, ranks=1 << 40) * stages / batches
    assert per_batch(4, 8) / per_batch(1, 8) == pytest.approx((8 + 4 - 1) / 8, rel=0.05)
    assert per_batch(4, 1 << 20) / per_batch(1, 1 << 20) == pytest.approx(1, rel=0.05)


def test_what_is_kept_is_not_computed_again():
    seconds = {keep: step(Plan(keep=keep)) for keep in ("everything", "layers", "half",
                                                        "attention")}
    layers = seconds["attention"] - seconds["everything"]  # all but attention, once more
    assert layers > 0
    assert seconds["half"] - seconds["attention"] == pytest.approx(32 * 0.25)
    assert seconds["layers"] - seconds["attention"] == pytest.approx(32 * 1.0)


def test_zero_sends_three_times_the_weights():
    shape, base = model("llama-2-7b"), machine("a800x8x4")
    slow = step_seconds(shape, base, 1, Attention(0.0), Plan(context=32, zero=True))
    sent = 3 * 2 * shape.weights * 31 / 32 / (base.links * base.bandwidth)
    assert slow == pytest.approx(sent, rel=0.02)


def test_bytes_of_a_step():
    shape = model("llama-2-7b")
    # Queries, keys, values, outputs, both rotated, four of the feed-forward layer; two norms.
    plain = 2 * (6 * 4096 + 4 * 11008) + 2 * 4096 * 10
    assert activation_bytes(shape, Plan(fused_norms=False)) == plain
    assert activation_bytes(shape, Plan(tensor=8, fused_norms=False)) == plain / 8
    assert activation_bytes(shape, Plan(tensor=8, version=1, fused_norms=False)) == \
        2 * (6 * 4096 + 4 * 11008) / 8 + 2 * 4096 * 10
    parts = training_bytes(shape, 1000, Plan(context=4, zero=True, keep="attention",
                                             loss_by_sequence=True))
    assert parts["weights"] == parts["gradients"] == 2 * shape.weights / 4
    assert parts["optimizer"] == 12 * shape.weights / 4
    assert parts["logits"] == 0
    layer = activation_bytes(shape, Plan()) * 1000
    assert parts["activations"] == 32 * (2 + 2) * 4096 * 1000 + layer
    assert fits(machine("h100"), {"x": 77e9}) and not fits(machine("h100"), {"x": 79e9})


def test_documents_fill_a_pack_and_none_is_long():
    for pack in documents.packs(1 << 16):
        assert sum(pack) == 1 << 16 and max(pack) <= 1 << 14
    lengths = [length for pack in documents.packs(1 << 19) for length in pack]
    assert 1000 < sum(lengths) / len(lengths) < 3000


@pytest.mark.parametrize("length", [1, 127, 128, 129, 1000])
def test_tiles_of_a_causal_document(length):
    tile = 128
    blocks = math.ceil(length / tile)
    touched = sum(1 for a, b in itertools.product(range(blocks), repeat=2)
                  if b * tile <= min((a + 1) * tile, length) - 1)
    assert documents._causal(length, tile) == (blocks, touched)


def test_figures_and_calibration_are_whole():
    for name, table in tables.published().items():
        assert table["source"] and table["unit"]
        for row in table["rows"].values():
            assert len(row) == len(table["columns"])
            assert all(value is None or value == tables.OOM or value > 0 for value in row)
        assert name in tables.PREDICTIONS and page.NOTES[name]["runs"]
    for name, cells in tables.calibration().items():
        assert 1 <= len(cells) <= 2
        for cell in cells:
            table = tables.published()[name]
            assert isinstance(table["rows"][cell["row"]][table["columns"].index(cell["column"])],
                              float | int)


def test_every_entry_of_a_machine_has_its_source():
    for path in sorted((ROOT / "machines").glob("*.mlir")):
        previous = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if ": f64" in line:
                assert previous.strip().startswith("//"), (path.name, line)
            previous = line


@needs_tool
@pytest.mark.parametrize("table, number", [(name, number) for name, cells in
                                           tables.calibration().items()
                                           for number in range(len(cells))])
def test_calibrated_values_give_their_cell(table, number):
    cell = tables.calibration()[table][number]
    if "value" in cell:
        now = cell["value"]
    else:
        found = machine(cell["machine"])
        now = getattr(found, cell["entries"][0].split(".")[1])
    assert now == pytest.approx(needed(table, cell), rel=0.03)


@needs_tool
def test_the_module_of_a_problem_is_read():
    from reach.attention import attention_cost
    base = machine("h100")
    problem = Problem(4096, 4, 2, 2, "ring_kv", nodes=1)
    assert "@grid_p(shape = 2)" in function("p", problem)
    cost = attention_cost(base, problem)
    # No rank is faster than its kernel, and each sends keys and values of its half, or a part.
    assert cost.seconds > problem.operations / 2 / base.flops
    assert 0 < cost.bytes_sent <= 2 * 2 * 4096 / 2 * 2 * 128
    with pytest.raises(RuntimeError, match="burst-opt of 1 attentions: .*ulysses"):
        attention_cost(base, dataclasses.replace(problem, heads=1, key_heads=1,
                                                 strategy="ulysses"))


def table(published, predicted, fixed=()):
    return compare.Table("t", "t", "s", "s", ["a", "b"], published, predicted, set(fixed), True)


def test_errors_order_and_memory_are_counted():
    told = {"x": [1.0, 2.0], "y": [2.0, "OOM"], "z": [1.01, 4.0]}
    found = table(told, {"x": [1.1, 5.0], "y": [2.0, 3.0], "z": [4.0, 4.0]}, [("x", "a")])
    assert sorted(abs(error) for error in found.errors()) == pytest.approx(
        [0, 0, 1.5, 4.0 / 1.01 - 1])
    # x < y right, y > z wrong, x and z of the first column as good as equal; x < z wrong.
    assert found.order() == (1, 3)
    assert found.memory() == (5, 6)
    assert not found.met()
    assert table(told, told).met()


def test_a_picture_is_xml():
    import xml.etree.ElementTree as tree
    text = plot.lines("a & b", "s", ["1", "2"], {"x": [1.0, "OOM"]}, {"x": [2.0, 3.0]})
    assert tree.fromstring(text).tag.endswith("svg")


# --- The page. ------------------------------------------------------------------------------------

def rows_of(title):
    text = (ROOT / "docs" / "reach.md").read_text(encoding="utf-8")
    section = text.split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [[part.strip() for part in line.strip("|").split("|")]
             for line in section.splitlines() if line.startswith("|")]
    columns = lines[0][1:]
    return {line[0]: dict(zip(columns, line[1:], strict=True)) for line in lines[2:]}


def predicted(cell):
    found = re.search(r"/ \**([\d.]+|OOM)", cell)
    assert found, cell
    return tables.OOM if found[1] == tables.OOM else float(found[1])


@pytest.mark.parametrize("size", ["LLaMA-2-7B", "LLaMA-2-13B"])
def test_the_page_has_the_first_paper_s_shape(size):
    rows = rows_of(f"First token, {size}, 8 A100")
    for column in ("4K", "8K", "16K", "32K", "64K", "128K"):
        burst = predicted(rows["Burst"][column])
        for method in ("TP V1 + Flash", "TP V3 + Flash"):
            assert burst < predicted(rows[method][column])
        ring = predicted(rows["RingAttention"][column])
        assert (ring == tables.OOM) == (column in ("64K", "128K"))
        assert ring == tables.OOM or ring > burst
    assert predicted(rows["Burst without LAO"]["128K"]) == tables.OOM
    assert predicted(rows["Burst without LAO"]["64K"]) != tables.OOM
    # RingAttention meets tensor parallelism at 32K.
    ratio = predicted(rows["RingAttention"]["32K"]) / predicted(rows["TP V1 + Flash"]["32K"])
    assert 0.8 < ratio < 1.2


def test_the_page_has_burstengine_s_and_magiattention_s_order():
    rows = rows_of("Attention forward and backward, 32 A800, causal, 40 heads of 128")
    for column in ("128K", "256K", "512K", "1M"):
        rings = predicted(rows["LoongTrain double ring"][column])
        assert rings < predicted(rows["Burst"][column])
        assert column == "1M" or predicted(rows["Megatron-CP"][column]) < rings
    rows = rows_of("Causal documents forward, the same")
    for column in ("8", "16", "32", "64"):
        others = [predicted(rows[name][column]) for name in ("all-gather", "Ulysses", "USP")]
        assert predicted(rows["ring p2p"][column]) < min(others)
    rows = rows_of("Steps of BurstEngine's ablation, 14B, A800")
    steps = [predicted(row["1M on 32"]) for row in rows.values()]
    assert steps[0] < steps[1] < steps[2] and steps[3] < steps[4] < steps[5]


def test_the_page_names_what_fails():
    text = (ROOT / "docs" / "reach.md").read_text(encoding="utf-8")
    missed = len(re.findall(r"\| missed \|", text))
    assert missed == len(re.findall(r"^\*\*Missed\*\*: \w", text, re.MULTILINE))
    assert f"Of {len(tables.published())} tables {len(tables.published()) - missed} meet" in text


@needs_tool
def test_the_page_is_what_the_clock_says():
    """All but the outlook, whose runs of 1,024 ranks take minutes."""
    written = (ROOT / "docs" / "reach.md").read_text(encoding="utf-8")
    found = compare.compare()
    assert written.startswith(page.comparison(found)), "scripts/reach renews docs/reach.md"
    for each in found:
        if len(each.columns) > 2:
            assert page.picture(each) == (ROOT / "docs" / "reach" / f"{each.name}.svg").read_text(
                encoding="utf-8")


@needs_tool
@pytest.mark.long
def test_the_outlook_is_what_the_clock_says(tmp_path):
    page.write(tmp_path)
    assert (tmp_path / "reach.md").read_text("utf-8") == (ROOT / "docs" / "reach.md").read_text(
        "utf-8")


def test_published_figures_stand_once():
    """Figures with four digits of a table are typed nowhere else in bench/reach."""
    figures = {f"{value}" for each in tables.published().values() for row in each["rows"].values()
               for value in row if isinstance(value, float) and len(f"{value}") >= 6}
    for path in (ROOT / "bench" / "reach").iterdir():
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            assert not [figure for figure in figures if re.search(rf"\b{figure}\b", text)], path
