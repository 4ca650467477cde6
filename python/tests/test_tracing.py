# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ops of masks and scores mean is what torch means, and a call never uses what
an earlier one has captured."""

import math
import pathlib
import sys
import time
import traceback
import types

import numpy
import pytest
import torch
from torch.nn.attention.flex_attention import and_masks

import burst
import reference
from burst import fingerprint

SMALL = torch.tensor([3, 1, 250, 7, 255, 0, 2, 9], dtype=torch.uint8)
SIGNED = torch.tensor([100, -100, 5, -7, 127, -128, 2, 9], dtype=torch.int8)
DIVISORS = torch.tensor([3, -1, 2, -7, 5, 4, -2, 9])
FLOATS = torch.tensor([0.5, math.nan, 2.5, -2.7, 3.0, math.inf, -0.3, -math.inf])
SQUARE = torch.randint(-3, 4, (8, 8), generator=torch.Generator().manual_seed(0))


def compare(mask=None, score=None, queries=8, keys=8, inputs=()):
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 2, 2, queries, keys, 8))
    found = burst.attention(q, k, v, mask=mask, score=score, return_lse=True)
    wanted = reference.attention(q, k, v, mask, score)
    for x, y in zip(found, wanted):
        reference.assert_close(x, y)
    if score is not None:
        reference.check_gradients(found, wanted, (q, k, v, *inputs))


MASKS = {
    "add truths": lambda b, h, i, j: ((i >= j) + (j < 2)) == 1,
    "mul truths": lambda b, h, i, j: (i >= j) * (i - j < 5),
    "max of truths": lambda b, h, i, j: torch.maximum(i >= j, j < 2),
    "min of truths": lambda b, h, i, j: torch.minimum(i >= j, j > 2),
    "amax of truths": lambda b, h, i, j: torch.stack([i > j, i > 3, j < 2]).amax(0),
    "sum of truths": lambda b, h, i, j: torch.stack([i > j, i > 3, j < 2]).sum() >= 2,
    "finite": lambda b, h, i, j: torch.isfinite(FLOATS[i]) & (FLOATS[j] != FLOATS[i]),
    "nan in max": lambda b, h, i, j: torch.maximum(FLOATS[i], FLOATS[j]) > 1,
    "divide": lambda b, h, i, j: (i - j) // DIVISORS[j] >= -1,
    "remainder": lambda b, h, i, j: (i - j) % DIVISORS[j] <= 0,
    "fmod": lambda b, h, i, j: torch.fmod(i - j, 3) >= 0,
    "divide floats": lambda b, h, i, j: (i * 1.0) // 0.1 >= j * 10,
    "remainder of floats": lambda b, h, i, j: ((i - j) * 0.7) % -0.3 < -0.15,
    "remainder by infinity": lambda b, h, i, j: ((i - j) * 1.0) % math.inf < 5,
    "shift": lambda b, h, i, j: (i - j) >> 1 >= -1,
    "truncate": lambda b, h, i, j: ((i - j) * 0.6).int() == 0,
    "half": lambda b, h, i, j: (i * 0.1 + 1000).half() == (j * 0.1 + 1000).half(),
    "sub uint8": lambda b, h, i, j: SMALL[i] - SMALL[j] > 3,
    "add uint8": lambda b, h, i, j: SMALL[i] + 5 > SMALL[j],
    "invert uint8": lambda b, h, i, j: ~SMALL[i] > SMALL[j],
    "add int8": lambda b, h, i, j: SIGNED[i] + SIGNED[j] > 3,
    "to uint8": lambda b, h, i, j: (i - j).to(torch.uint8) < 100,
    "int8 and positions": lambda b, h, i, j: SIGNED[i] + i * 20 > SIGNED[j],
    "power": lambda b, h, i, j: ((i - j) ** 5 & 3) == 0,
    "power of a position": lambda b, h, i, j: (3 ** i & 3) == 1,
    "clamp": lambda b, h, i, j: (i - j).clamp(3, 1) == 1,
    "where": lambda b, h, i, j: torch.where(i > j, SQUARE[i, j], 1) > 0,
    "negative index": lambda b, h, i, j: SQUARE[i - 8, -2] > SQUARE[0, j],
    "negative index of few": lambda b, h, i, j: torch.stack([i, j, i - j])[j % 3 - 3] > 2,
    "reduce one": lambda b, h, i, j: i.sum(-1) >= j,
    "default arguments": lambda b, h, i, j, left=2: i - j <= left,
}


@pytest.mark.parametrize("name", MASKS)
def test_masks(name):
    compare(MASKS[name])


@pytest.mark.parametrize("score", [
    lambda s, b, h, i, j: s % 0.7, lambda s, b, h, i, j: torch.fmod(s, 0.7),
    lambda s, b, h, i, j: s * torch.sign(s), lambda s, b, h, i, j: s ** 3 - (i - j) ** 2])
def test_scores(score):
    compare(score=score)


def test_refusals():
    q, k, v = reference.draw(1, 1, 1, 8, 8, 8)
    for mask, message in (
            (lambda b, h, i, j: torch.round(i * 0.37, decimals=1) > 1, "calls aten.round.decimals"),
            (lambda b, h, i, j: torch.arange(0, 1, 0.5).sum() > i, "calls aten.arange.start_step"),
            (lambda b, h, i, j: SQUARE[SMALL[i], j] > 0, r"write index.int\(\)"),
            (lambda b, h, i, j: SQUARE[0][SQUARE[0] > 0].sum() > i, r"write index.int\(\)"),
            (lambda b, h, i, j: SQUARE[torch.arange(2)].sum() > i, "torch.stack what is read"),
            (lambda b, h, i, j: 3, "gives an integer")):
        with pytest.raises(burst.TracingError, match=message):
            burst.attention(q, k, v, mask=mask)


def test_named_masks():
    ids = torch.tensor([0] * 3 + [1] * 9)
    compare(lambda b, h, i, j: ids[i] == ids[j]) # of more positions than there are
    compare(lambda b, h, i, j: (j < -3) | (i >= j))


#===----------------------------------------------------------------------===#
# What functions capture
#===----------------------------------------------------------------------===#

WINDOW = types.ModuleType("window")


def of_module(b, h, i, j):
    return i - j <= WINDOW.left_of_window


def of_attribute(b, h, i, j):
    return i - j <= of_attribute.left_of_function


class Settings:
    left_of_class = 1


def of_class(b, h, i, j):
    return i - j <= Settings.left_of_class


@pytest.mark.parametrize("mask, holder, name", [
    (of_module, WINDOW, "left_of_window"), (of_attribute, of_attribute, "left_of_function"),
    (of_class, Settings, "left_of_class")])
def test_attributes_that_change(mask, holder, name):
    for left in (1, 5):
        setattr(holder, name, left)
        compare(mask)


def by_keyword(left):
    return lambda b, h, i, j, *, left=left: i - j <= left


def by_scalar(left):
    left = torch.tensor(left)
    return lambda b, h, i, j: i - j <= left


def by_item(left):
    left = torch.tensor([left])
    return lambda b, h, i, j: i - j <= left[0].item()


def by_numpy(left):
    left = pytest.importorskip("numpy").int64(left)
    return lambda b, h, i, j: i - j <= left


@pytest.mark.parametrize("make", [by_keyword, by_scalar, by_item, by_numpy])
def test_values_that_change(make):
    for left in (1, 5):
        compare(make(left))


def test_a_scalar_changed_in_place():
    left = torch.tensor(1)

    def mask(b, h, i, j):
        return i - j <= left

    compare(mask)
    left.fill_(5)
    compare(mask)


def test_one_table_becomes_two():
    a, b = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2]), torch.tensor([0, 1, 0, 1, 1, 1, 2, 2])

    def make(x, y):
        return lambda b, h, i, j: x[i] == y[j]

    compare(make(a, a))
    compare(make(a, b))


def test_masks_of_torch():
    """Closures that torch makes are told apart by what is in them."""
    masks = [and_masks(lambda b, h, i, j: i >= j, by_keyword(left)) for left in (1, 5, 1)]
    first, other, same = (fingerprint.of(mask).key for mask in masks)
    assert first == same != other


LIMIT = 3


def by_global(b, h, i, j):
    return i - j <= LIMIT


def by_helper(helper):
    return lambda b, h, i, j: helper(i - j)


def test_guards(monkeypatch):
    """They hold while all is there that a function was read from, and no longer."""
    def read(function):
        found = fingerprint.of(function)
        assert found is not None and found.guard is not None
        assert found.guard.holds(function)
        return found.guard

    guard = read(by_global)
    monkeypatch.setitem(globals(), "LIMIT", 4)
    assert not guard.holds(by_global)
    monkeypatch.setitem(globals(), "LIMIT", 3)
    assert guard.holds(by_global)

    def make(left):
        return lambda b, h, i, j: i - j <= left

    guard = read(make(2))
    assert guard.holds(make(2)) and not guard.holds(make(3))

    table = torch.arange(4)
    guard = read(make(table))
    assert guard.holds(make(table)) and not guard.holds(make(torch.arange(4)))
    del table
    assert not guard.holds(make(torch.arange(4)))

    limit = 1
    function = by_helper(lambda x: x <= limit)
    guard = read(function)
    limit = 2
    assert not guard.holds(function)

    def with_default(b, h, i, j, left=2):
        return i - j <= left

    guard = read(with_default)
    with_default.__defaults__ = (3,)
    assert not guard.holds(with_default)
    # What may change in its place is read on each call.
    for function in (make(torch.tensor(1)), with_list([1])):
        assert getattr(fingerprint.of(function), "guard", None) is None


def with_list(limits):
    return lambda b, h, i, j: i - j <= limits[0]


def test_tables_that_change_their_form():
    """A table of other strides is not read as the one before."""
    q, k, v = reference.draw(1, 1, 1, 6, 6, 8)
    table = torch.randn(6, 6)

    def score(s, b, h, i, j):
        return s + table[i, j]

    burst.attention(q, k, v, score=score)
    table.t_()
    reference.assert_close(burst.attention(q, k, v, score=score),
                           reference.attention(q, k, v, score=score)[0])
    table.resize_(9, 9).normal_()  # What it grew by is memory that nobody wrote.
    reference.assert_close(burst.attention(q, k, v, score=score),
                           reference.attention(q, k, v, score=score)[0])


def test_a_scalar_with_a_gradient():
    factor = torch.tensor(0.7, requires_grad=True)
    compare(score=lambda s, b, h, i, j: factor * s, inputs=(factor,))
    compare(score=lambda s, b, h, i, j: factor * s + (factor * j).sin(), inputs=(factor,))


@pytest.mark.parametrize("score", [
    lambda s, b, h, i, j: torch.nn.functional.softplus(s * 20) * 0.1,
    lambda s, b, h, i, j: torch.nn.functional.leaky_relu(s, 0.2),
    lambda s, b, h, i, j: s.masked_fill(i - j > 3, -5.0),
    lambda s, b, h, i, j: s + torch.atan2(s, (i + 1).to(s.dtype)),
    lambda s, b, h, i, j: s + NUMBERS[i % 6].mean() - NUMBERS[j % 6].max() + NUMBERS[0].prod()
    + NUMBERS[h].mean(0, keepdim=True)[0] - NUMBERS[1].min(),
], ids=["softplus", "leaky_relu", "masked_fill", "atan2", "reductions"])
def test_more_functions(score):
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 2, 2, 12, 12, 8))
    found = burst.attention(q, k, v, score=score, return_lse=True)
    wanted = reference.attention(q, k, v, score=score)
    for x, y in zip(found, wanted):
        reference.assert_close(x, y)
    reference.check_gradients(found, wanted, (q, k, v))


NUMBERS = torch.randn(6, 3, generator=torch.Generator().manual_seed(4))
TIES = torch.tensor([[2, 3, 3, 1], [0, -1, -1, 0], [5, 5, 5, 5]])
HOLES = torch.tensor([[1.0, math.nan, 3.0, math.nan], [2.0, 2.0, 1.0, 1.0]])


@pytest.mark.parametrize("score", [
    lambda s, b, h, i, j: s + NUMBERS[i % 6].argmax() * (j - 1) - NUMBERS[j % 6].argmin(),
    lambda s, b, h, i, j: s + TIES[i % 3].argmax() * j - TIES[j % 3].argmin(),
    lambda s, b, h, i, j: s + HOLES[i % 2].argmax() * j - HOLES[j % 2].argmin(),
    lambda s, b, h, i, j: s + TIES.argmax(0)[j % 4] - TIES.argmin(1, keepdim=True)[j % 3, 0],
    lambda s, b, h, i, j: s + (NUMBERS * s).argmax() * j - NUMBERS.argmin(keepdim=True)[0, 0],
    lambda s, b, h, i, j: s * NUMBERS[j % 6].max(0).values + NUMBERS.min(0).indices[h] * j,
], ids=["floats", "ties", "nan", "dimensions", "all", "max and min"])
def test_places_of_extremes(score):
    compare(score=score)


@pytest.mark.parametrize("score", [
    lambda s, b, h, i, j: s + BOX[:, i].sum() * j - BOX[:, j, 1].amax() * i,
    lambda s, b, h, i, j: s + BOX[..., h].sum() * j + BOX[h, :, h].argmax() - BOX[h, ..., 0][j],
    lambda s, b, h, i, j: s + BOX[h, :, i % 3][j] + BOX[:, :, 1][-1, i - 8] * BOX[None, h][0, j, 0],
    lambda s, b, h, i, j: s + BOX[1, 2:7, h][i % 5 - 5] + BOX[h, j, 1:].sum()
    + BOX[:, 1::3, h][h, 2],
    lambda s, b, h, i, j: s + BOX[h][:, 1][j] + BOX[h][2:][i % 6].sum()
    + BOX[:, 1::2][:, 1::2][h, j % 2, 2],
    lambda s, b, h, i, j: s + BOX.transpose(0, 1)[i, h, 2] + BOX.permute(2, 1, 0)[h][j].sum()
    + BOX[h].T[1, i] + BOX[0].t()[h][j],
    lambda s, b, h, i, j: s + (BOX * 2)[:, i, 1][h] + (BOX * s)[h, 4:].mT[h, 1]
    + (BOX + j).permute(1, 2, 0)[j, 1:][0, h] + (BOX * 2)[1, ::3][h, j % 3],
    lambda s, b, h, i, j: s + BOX[h, torch.arange(8), h].sum() * j
    + BOX[1, torch.stack([i, j]), 0].sum(),
    lambda s, b, h, i, j: s + BOX[h, SIGNED[i] % 8, 0],
], ids=["column", "ellipsis", "several", "slices", "of rows", "transposed", "of numbers", "vectors",
        "int8"])
def test_reads_of_parts(score):
    compare(score=score, inputs=(BOX,))


BOX = torch.randn(2, 8, 3, generator=torch.Generator().manual_seed(5)).requires_grad_()


def test_a_part_of_a_large_table():
    """Only what is read of it is unrolled."""
    table = torch.randn(3, 20000, generator=torch.Generator().manual_seed(5))
    compare(score=lambda s, b, h, i, j: s + table[1:, j].sum() + table.T[i][1])
    q, k, v = reference.draw(1, 2, 2, 8, 8, 8)
    with pytest.raises(burst.TracingError, match="makes 20000 numbers of one pair; at most 4096"):
        burst.attention(q, k, v, score=lambda s, b, h, i, j: s + table[h].argmax())


def test_ids_of_more_sequences_than_the_batch():
    q, k, v = reference.draw(2, 2, 2, 12, 12, 8)
    ids = torch.randint(0, 3, (5, 12), generator=torch.Generator().manual_seed(6))

    def mask(b, h, i, j):
        return ids[b, i] == ids[b, j]

    for offset in (0, 3):
        reference.assert_close(
            burst.attention(q, k, v, mask=mask, batch_offset=offset),
            reference.attention(q, k, v, mask, batch_offset=offset)[0])


def test_positions_beyond_what_is_read():
    """Of tables the compiler checks it; of parts of them, and of numbers, it is checked here."""
    q, k, v = reference.draw(1, 4, 4, 16, 16, 8)
    t = torch.arange(16.0)
    for score, message in (
            (lambda s, b, h, i, j: s + t[:8][i], "score: reads 8 elements at i, which has 16"),
            (lambda s, b, h, i, j: s + torch.full((2,), 3.0)[h], "reads 2 elements at h, which ha"),
            (lambda s, b, h, i, j: s + torch.stack([t[i], t[j]])[h], "reads 2 elements at h")):
        with pytest.raises(IndexError, match=message):
            burst.attention(q, k, v, score=score)
    burst.attention(q, k, v, score=lambda s, b, h, i, j: s + t[:4][h] + t[:8][i // 2])
    for score in (lambda s, b, h, i, j: s + t[:8][i // 2 + 1], lambda s, b, h, i, j: s + t[:8][9],
                  lambda s, b, h, i, j: s + t[1:9][i * 2]):
        with pytest.raises((TypeError, ValueError), match="outside of its bounds|reads element 9|"
                                                           "out of bounds"):
            burst.attention(q, k, v, score=score)
    near = t[2:14:3]
    for score in (lambda s, b, h, i, j: s + t[:8][-1 - i // 2] * t[4:8][-2],
                  lambda s, b, h, i, j: s + t[2:14:3][(i - j) % 4]):
        reference.assert_close(burst.attention(q, k, v, score=score),
                               reference.attention(q, k, v, score=score)[0])
    assert torch.equal(burst.attention(q, k, v, score=lambda s, b, h, i, j: s + near[i % 4]),
                       burst.attention(q, k, v, score=lambda s, b, h, i, j: s + t[2:14:3][i % 4]))


def test_what_code_imports_and_asks_for_is_read_again():
    settings = types.ModuleType("settings_of_test")
    sys.modules["settings_of_test"] = settings
    table = torch.full((8,), 1)

    def imported(b, h, i, j):
        from settings_of_test import left
        return i - j <= left

    def by_globals(b, h, i, j):
        return i - j <= globals()["LIMIT"] + getattr(settings, "left")

    def by_value(b, h, i, j):
        return (table[i] > 0) & (i - j <= int(table[0]))

    for mask in (imported, by_globals, by_value):
        for left in (1, 4):
            settings.left = left
            table.fill_(left)
            compare(mask)
    del sys.modules["settings_of_test"]


def test_numpy_where_tensors_are_wanted():
    """It would read what the function is traced with."""
    q, k, v = reference.draw(1, 1, 1, 8, 8, 8)
    slopes = numpy.arange(8.0)
    for score in (lambda s, b, h, i, j: s + slopes[i], lambda s, b, h, i, j: numpy.tanh(s),
                  lambda s, b, h, i, j: s + sum(i.tolist() for _ in range(2))):
        with pytest.raises(TypeError, match="of what depends on b, h, i, j or s"):
            burst.attention(q, k, v, score=score)
    two = torch.tensor(2.0)
    found = burst.attention(q, k, v, score=lambda s, b, h, i, j: s * float(two.numpy()))
    assert torch.equal(found, burst.attention(q, k, v, score=lambda s, b, h, i, j: s * 2))


def test_errors_are_about_the_function():
    q, k, v = reference.draw(1, 1, 1, 16, 16, 8)
    ids = torch.zeros(9, dtype=torch.int64)

    def same(b, h, i, j):
        return ids[i] == ids[j]

    for mask in (same, lambda b, h, i, j: same(b, h, i, j) & (i >= j)):
        with pytest.raises(ValueError) as found:
            burst.attention(q, k, v, mask=mask)
        assert str(found.value) == "reads ids (mask_table0) outside of its bounds: dimension 0 " \
                                   "has 9 entries, wanted at least 16"
    here = pathlib.Path(__file__).name

    def ordered(b, h, i, j):
        return 0 <= i - j < 8

    def undefined(b, h, i, j):
        return i - nothing >= j # noqa: F821

    line = ordered.__code__.co_firstlineno + 1
    with pytest.raises(burst.TracingError, match=rf"{here}, line {line}\)") as found:
        burst.attention(q, k, v, mask=ordered)
    assert len(traceback.format_exception(found.value)) < 12 # nothing of PyTorch's
    with pytest.raises(NameError) as found:
        burst.attention(q, k, v, mask=undefined)
    assert [x.name for x in traceback.extract_tb(found.value.__traceback__)][-1] == "undefined"
    with pytest.raises(burst.TracingError, match=r"gives an array of shape \(3,\), where one"):
        burst.attention(q, k, v, mask=lambda b, h, i, j: torch.zeros(16, 3)[i] > 0)


SPAN = 1.7e9 + 7 * torch.arange(8, dtype=torch.float64)


def straight_through(s, b, h, i, j):
    return s + (s.round() - s).detach()


def without_gradients(s, b, h, i, j):
    with torch.no_grad():
        factor = s * 2
    return s * factor


@pytest.mark.parametrize("arguments, message", [
    (dict(mask=lambda b, h, i, j: torch.tensor([i, 2]).max() >= j), "takes numbers of what it is"),
    (dict(mask=lambda b, h, i, j: torch.as_tensor([i, 2]).max() >= j), "takes numbers of what it"),
    (dict(mask=lambda b, h, i, j: torch.LongTensor([i])[0] >= j), "takes numbers of what it is"),
    (dict(mask=lambda b, h, i, j: (h in {0, 2}) | (i >= j)), "looks a tensor up in a set or dict"),
    (dict(mask=lambda b, h, i, j: i - j <= {0: 3, 1: 5}.get(h, 2)), "looks a tensor up in a set"),
    (dict(mask=lambda b, h, i, j: (SPAN[i] - SPAN[j]).abs() < 20), "float64 in a mask"),
    (dict(mask=lambda b, h, i, j: i.double() > j), "float64 in a mask"),
    (dict(mask=lambda b, h, i, j: i // j > 0), "ZeroDivisionError"),
    (dict(score=straight_through), "the gradient of a score has all parts"),
    (dict(score=without_gradients), "switches gradients on or off"),
    (dict(score=lambda s, b, h, i, j: s * s.data), "the gradient of a score has all parts"),
    (dict(score=lambda s, b, h, i, j: s + torch.sum(torch.stack([s, s]), 0, out=torch.zeros(()))),
     "out= is not known"),
])
def test_what_would_be_wrong_is_refused(arguments, message):
    q, k, v = reference.draw(1, 2, 2, 8, 8, 8)
    with pytest.raises(burst.TracingError, match=message):
        burst.attention(q, k, v, **arguments)


@pytest.mark.parametrize("mask", [
    lambda b, h, i, j: 3 ** (i * 2 + j) % 7 < 3,
    lambda b, h, i, j: (i + 3) ** j % 11 < 5,
    lambda b, h, i, j: (torch.tensor(0.1) == 0.1) & (i >= j),
    lambda b, h, i, j: torch.stack([i * 0.6, j * 0.7]).sum(dtype=torch.int64) > 5,
    lambda b, h, i, j: (SIGNED[i] ^ 127) > j,
    lambda b, h, i, j: torch.stack([i, j]).max() >= 3,
], ids=["power", "powers", "a number of float32", "sum of integers", "xor", "stack"])
def test_numbers_of_torch(mask):
    compare(mask=mask)


def test_derivatives_where_a_score_is_zero():
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 1, 1, 8, 8, 8))
    with torch.no_grad():
        q[0, 0, 3:] = 0

    def score(s, b, h, i, j):
        return torch.relu(s) + 0.1 * torch.relu(-s) + torch.maximum(s, 2 * s) + \
            torch.minimum(s, -s) + torch.maximum(s, torch.zeros(()))

    found = burst.attention(q, k, v, score=score).square().sum()
    wanted = reference.attention(q, k, v, score=score)[0].square().sum()
    for x, y in zip(torch.autograd.grad(found, (q, k, v)), torch.autograd.grad(wanted, (q, k, v))):
        reference.assert_close(x, y)


def test_a_negative_index_is_one_once():
    """An index that is too small is not made right by a second look."""
    table = torch.arange(16.0)
    module = burst.explain((1, 1, 16, 8), score=lambda s, b, h, i, j: s + table[i - j],
                           sequence=burst.Sequence(ranks=1)).module
    assert module.count("arith.select") == 1


def test_attributes_and_variables_of_one_name():
    stride = 3

    def dilated(b, h, i, j):
        return (i - j) % stride == 0

    def by_stride(b, h, i, j):
        return i - j < SPAN.stride(0)

    assert fingerprint.of(dilated) is not None
    assert fingerprint.of(by_stride) is None


def test_what_is_another_on_each_call():
    q, k, v = reference.draw(1, 1, 1, 16, 16, 8)
    limit = [2]
    settings = types.ModuleType("settings")
    settings.__getattr__ = lambda name: getattr(types.SimpleNamespace(window=limit[0]), name)

    def by_module(b, h, i, j):
        return i - j < settings.window

    def drawn(b, h, i, j):
        return i - j <= time.perf_counter_ns() % 1000

    first = burst.attention(q, k, v, mask=by_module)
    limit[0] = 5
    assert not torch.equal(first, burst.attention(q, k, v, mask=by_module))
    with pytest.raises(burst.TracingError, match="gives another result on each call"):
        burst.attention(q, k, v, mask=drawn)
