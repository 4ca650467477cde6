# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks and scores without PyTorch: operators on symbols give the same regions as
torch functions, and what they cannot say is an error."""

import pytest
import torch

import burst
from burst import programs, torch_tracing, tracing
from burst.regions import Region


def regions(function, is_score):
    """By operators, and by make_fx."""
    found = []
    for frontend in (tracing.by_operators, torch_tracing.trace):
        region = Region(is_score, "f32")
        arguments = [region.b, region.h, region.i, region.j]
        chosen = [region.s, *arguments] if is_score else arguments
        region.result = frontend(function, region, chosen)
        found.append(region.text(""))
    return found


@pytest.mark.parametrize("mask", [
    lambda b, h, i, j: i >= j,
    lambda b, h, i, j: (i - j < 7) & ~(j > i) | (b == 1),
    lambda b, h, i, j: (i // 4 == j // 4) ^ (h % 2 == 0),
    lambda b, h, i, j: (3 - i) // 2 * (j % 5) != abs(i - j) + 1,
    lambda b, h, i, j: (i >> 2) <= (j << 1),
    lambda b, h, i, j: -i < 2 * j,
])
def test_masks(mask):
    by_operators, by_torch = regions(mask, is_score=False)
    assert by_operators == by_torch


def test_scores():
    by_operators, by_torch = regions(lambda s, b, h, i, j: s * 0.5 - (i - j) / 8 + 1, True)
    assert by_operators == by_torch
    by_operators, _ = regions(lambda s, b, h, i, j: abs(s) ** 1.7, True)
    assert "math.powf" in by_operators


def test_tables_and_functions():
    numpy = pytest.importorskip("numpy")
    ids = burst.table(numpy.array([0, 0, 1, 1], dtype=numpy.int32))
    region = Region(False, "f32")
    result = tracing.by_operators(lambda b, h, i, j: ids[i] == ids[j], region,
                                  [region.b, region.h, region.i, region.j])
    assert result.op.startswith("arith.cmpi eq") and len(region.tables) == 1
    assert ids[2] == 1 # outside of a mask it is the array
    region = Region(True, "f32")
    result = tracing.by_operators(
        lambda s, b, h, i, j: tracing.where(i > j, 30 * tracing.function("tanh", s / 30), s),
        region, [region.s, region.b, region.h, region.i, region.j])
    assert result.op == "arith.select"


@pytest.mark.parametrize("mask, message", [
    (lambda b, h, i, j: i >= j and j > 2, "write & | ~ in place of"),
    (lambda b, h, i, j: [1, 2, 3][i] > 0, "wrap it in burst.table"),
    (lambda b, h, i, j: i >= "3", "uses str beside"),
    (lambda b, h, i, j: {1: True}[i], "looks a position up"),
])
def test_refusals(mask, message):
    region = Region(False, "f32")
    with pytest.raises(tracing.TracingError, match=message):
        tracing.by_operators(mask, region, [region.b, region.h, region.i, region.j])


def test_names():
    ids = torch.zeros(16, dtype=torch.int32)
    for mask, wanted in (
            (lambda b, h, i, j: i >= j, "mask causal"),
            (lambda b, h, i, j: j <= i, "mask causal"),
            (lambda b, h, i, j: i - j > -1, "mask causal"),
            (lambda b, h, i, j: (i >= j) & (i - j < 5), "mask window<left = 4, right = 0>"),
            (lambda b, h, i, j: (i - j <= 3) & (j - i <= 2), "mask window<left = 3, right = 2>"),
            (lambda b, h, i, j: j < i + 3, "mask window<right = 2>"),
            (lambda b, h, i, j: (j < 4) | (i >= j), "mask prefix<4>"),
            (lambda b, h, i, j: ids[i] == ids[j], "mask documents("),
            (lambda b, h, i, j: (i >= j) & (ids[i] == ids[j]), "mask [causal, documents]("),
            (lambda b, h, i, j: i > j, "mask("), # no query sees its own key
            (lambda b, h, i, j: (i >= j) & (h == 0), "mask(")):
        module = burst.explain((1, 2, 16, 8), mask=mask, sequence=burst.Sequence(ranks=1)).module
        assert f"      {wanted}" in module, module
    # Of other lengths named masks count from the last query and key.
    module = burst.explain((1, 2, 4, 8), (1, 2, 16, 8), mask=lambda b, h, i, j: i + 12 >= j,
                           sequence=burst.Sequence(ranks=1)).module
    assert "mask causal" in module
    assert programs.compiled.cache_info().maxsize
