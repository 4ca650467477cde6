# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention against its definition, forward and backward."""

import functools
import gc
import math
import weakref

import pytest
import torch

import burst
import reference
from burst import programs, torch_attention

IDS = torch.tensor([0] * 11 + [1] * 20 + [2] * 6)
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])


def causal(b, h, i, j):
    return i >= j


def documents(b, h, i, j):
    return (i >= j) & (IDS[i] == IDS[j])


def window(b, h, i, j):
    return (i - j <= 5) & (i - j >= -2)


def by_head(b, h, i, j):
    return torch.where(h % 2 == 0, i >= j, (i // 4) == (j // 4)) | (b == 1)


def softcap(s, b, h, i, j):
    return 30 * torch.tanh(s / 30)


def alibi(s, b, h, i, j):
    return s - SLOPES[h] * (i - j).abs()


MASKS = [None, causal, documents, window, by_head]
SCORES = [None, softcap, alibi]


@pytest.mark.parametrize("mask", MASKS, ids=lambda f: getattr(f, "__name__", "full"))
@pytest.mark.parametrize("score", SCORES, ids=lambda f: getattr(f, "__name__", "plain"))
def test_forward_and_backward(mask, score):
    q, k, v = (x.requires_grad_() for x in reference.draw(2, 4, 2, 37, 37, 16, 24))
    found = burst.attention(q, k, v, mask=mask, score=score, return_lse=True)
    wanted = reference.attention(q, k, v, mask, score)
    for x, y in zip(found, wanted):
        reference.assert_close(x, y)
    reference.check_gradients(found, wanted, (q, k, v))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_types(dtype):
    q, k, v = reference.draw(1, 2, 1, 40, 40, 32, dtype=dtype)
    found = burst.attention(q, k, v, mask=causal, return_lse=True)
    for x, y in zip(found, reference.attention(q, k, v, causal)):
        reference.assert_close(x, y)
    assert found[0].dtype == dtype
    assert found[1].dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_queries_and_keys_of_other_lengths():
    q, k, v = reference.draw(1, 2, 2, 5, 19, 8)
    # Named masks count from the last query and key; a function does not.
    for mask in (causal, window):
        found = burst.attention(q, k, v, mask=mask, return_lse=True)
        for x, y in zip(found, reference.attention(q, k, v, mask)):
            reference.assert_close(x, y)


def test_rows_without_keys():
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 1, 1, 8, 8, 8))
    o, lse = burst.attention(q, k, v, mask=lambda b, h, i, j: (i >= 3) & (j < 4), return_lse=True)
    assert torch.equal(o[:, :, :3], torch.zeros(1, 1, 3, 8))
    assert torch.equal(lse[:, :, :3], torch.full((1, 1, 3), -math.inf))
    o.sum().backward()
    assert torch.equal(q.grad[:, :, :3], torch.zeros(1, 1, 3, 8))


def test_layouts_and_strides():
    q, k, v = reference.draw(2, 4, 2, 12, 12, 8)
    wanted = burst.attention(q, k, v, mask=causal)
    swapped = burst.attention(*(x.transpose(1, 2) for x in (q, k, v)), mask=causal, layout="bshd")
    assert torch.equal(swapped.transpose(1, 2), wanted)
    # Expanded, sliced and transposed tensors are read where they lie or copied.
    wide = torch.randn(2, 4, 12, 16)
    k = k[:, :1].expand(2, 2, 12, 8)
    v = v.transpose(2, 3).contiguous().transpose(2, 3)
    q = wide[..., ::2]
    reference.assert_close(burst.attention(q, k, v), reference.attention(q, k, v)[0])


def test_scale():
    q, k, v = reference.draw(1, 1, 1, 9, 9, 8)
    for scale in (0.1, 1e-5, 2, -0.5, 0.0):
        reference.assert_close(burst.attention(q, k, v, scale=scale),
                               reference.attention(q, k, v, scale=scale)[0])
    with pytest.raises(ValueError, match="scale: must be finite, got nan"):
        burst.attention(q, k, v, scale=math.nan)


def test_tables_with_gradients():
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 4, 2, 21, 21, 8))
    slopes = SLOPES.clone().requires_grad_()
    bias = torch.randn(21, 21).requires_grad_()
    fixed = torch.randn(4)

    def score(s, b, h, i, j):
        return s * fixed[h] + bias[i, j] - slopes[h] * (i - j)

    found = burst.attention(q, k, v, mask=causal, score=score, return_lse=True)
    wanted = reference.attention(q, k, v, causal, score)
    reference.check_gradients(found, wanted, (q, k, v, slopes, bias))


def test_other_tables_compile_nothing():
    q, k, v = reference.draw(1, 1, 1, 16, 16, 8)
    results = []
    for seed in (1, 2):
        ids = torch.randint(0, 3, (16,), generator=torch.Generator().manual_seed(seed))
        compiled = programs.compiled.cache_info().misses

        def mask(b, h, i, j):
            return ids[i] == ids[j]

        found = burst.attention(q, k, v, mask=mask)
        reference.assert_close(found, reference.attention(q, k, v, mask)[0])
        results.append(found)
    assert programs.compiled.cache_info().misses == compiled
    assert not torch.equal(*results)


def test_a_closure_that_changes():
    q, k, v = reference.draw(1, 1, 1, 16, 16, 8)
    limit = 3

    def mask(b, h, i, j):
        return i - j <= limit

    for limit in (3, 5, 3):
        reference.assert_close(burst.attention(q, k, v, mask=mask),
                               reference.attention(q, k, v, mask)[0])


def test_offsets():
    q, k, v = reference.draw(2, 4, 4, 13, 13, 8)

    def score(s, b, h, i, j):
        return s - h * 0.1 * (i - j).abs() + b

    def mask(b, h, i, j):
        return (i + h + b) % 3 != j % 3

    whole = burst.attention(q, k, v, mask=mask, score=score)
    part = burst.attention(q[1:, 2:], k[1:, 2:], v[1:, 2:], mask=mask, score=score, head_offset=2,
                           batch_offset=1)
    reference.assert_close(part, whole[1:, 2:])


def test_sinks():
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 4, 2, 17, 17, 8))
    sinks = torch.randn(4).requires_grad_()
    found = burst.attention(q, k, v, mask=causal, sinks=sinks, return_lse=True)
    # By definition: one more key with this score, whose value is 0.
    s = (q.double() @ k.double().repeat_interleave(2, 1).transpose(-1, -2)) / math.sqrt(8)
    s = torch.where(torch.ones(17, 17).tril().bool(), s, -math.inf)
    s = torch.cat([s, sinks.double()[None, :, None, None].expand(1, 4, 17, 1)], -1)
    o = torch.softmax(s, -1)[..., :-1] @ v.double().repeat_interleave(2, 1)
    wanted = o, torch.logsumexp(s, -1)
    for x, y in zip(found, wanted):
        reference.assert_close(x, y)
    reference.check_gradients(found, wanted, (q, k, v, sinks))
    with pytest.raises(ValueError, match=r"sinks: one number per head of q is wanted, \(4,\)"):
        burst.attention(q, k, v, sinks=torch.zeros(2))


def largest(q, k, mask, score=None):
    s = torch.einsum("bhid,bhjd->bhij", q.double(),
                     k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)) / q.shape[3]**0.5
    grid = torch.meshgrid(*map(torch.arange, s.shape), indexing="ij")
    s = s if score is None else score(s, *grid)
    return torch.where(mask(*grid), s, -math.inf).amax(-1)


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_max_scores(layout):
    """Of each row, without a gradient; whatever else is returned."""
    q, k, v = reference.draw(2, 4, 2, 37, 33, 16)
    tensors = [x.transpose(1, 2) if layout == "bshd" else x for x in (q, k, v)]
    attend = functools.partial(burst.attention, mask=causal, score=alibi, layout=layout)
    wanted = largest(q, k, causal, alibi)
    for _ in range(2): # the second call is a known one
        o, lse, found = attend(*tensors, return_lse=True, return_max_scores=True)
        reference.assert_close(found, wanted)
        assert all(torch.equal(x, y) for x, y in zip((o, lse), attend(*tensors, return_lse=True)))
        o, found = attend(*tensors, return_max_scores=True)
        reference.assert_close(found, wanted)
    of_sinks = attend(*tensors, return_lse=True, return_max_scores=True, sinks=torch.ones(4))
    assert torch.equal(of_sinks[2], found) and not torch.equal(of_sinks[1], lse)
    out = tuple(torch.empty_like(x) for x in (o, lse, lse))
    assert attend(*tensors, return_max_scores=True, out=out)[1] is out[2]
    assert torch.equal(out[2], found)
    with pytest.raises(TypeError, match=r"^out: \(o, lse, max_scores\) is wanted"):
        attend(*tensors, return_max_scores=True, out=out[:2])
    with pytest.raises(ValueError, match=r"^out: max_scores must be \(2, 4, 37\) of torch.float32"):
        attend(*tensors, return_max_scores=True, out=(*out[:2], lse[:1]))
    with pytest.raises(TypeError, match=r"^out: \(o, lse\) is wanted"):
        attend(*tensors, out=out)
    tensors[0].requires_grad_()
    o, lse, found = attend(*tensors, return_lse=True, return_max_scores=True)
    assert o.requires_grad and lse.requires_grad and not found.requires_grad
    gradient, = torch.autograd.grad(o.sum() + lse.sum(), tensors[0])
    both = attend(*tensors, return_lse=True)
    assert torch.equal(gradient, *torch.autograd.grad(both[0].sum() + both[1].sum(), tensors[0]))


def test_max_scores_of_scores_that_are_not_finite():
    """NaN where one is, but +inf where one is that."""
    q, k, v = reference.draw(1, 1, 1, 4, 4, 8)
    table = torch.zeros(4, 4)
    table[0, 1] = table[1, 0] = table[1, 2] = math.nan
    table[1, 1] = math.inf
    table[2] = -math.inf
    _, found = burst.attention(q, k, v, score=lambda s, b, h, i, j: s + table[i, j],
                               return_max_scores=True)
    assert found[0, 0, 0].isnan() and found[0, 0, 1:3].tolist() == [math.inf, -math.inf]
    assert found[0, 0, 3].isfinite()


def test_merge():
    q, k, v = reference.draw(1, 2, 2, 6, 18, 8)
    parts = [burst.attention(q, k[:, :, part], v[:, :, part], return_lse=True)
             for part in (slice(0, 5), slice(5, 6), slice(6, 18))]
    nothing = burst.attention(q, k, v, mask=lambda b, h, i, j: i < 0, return_lse=True)
    for x, y in zip(burst.merge(*parts, nothing), reference.attention(q, k, v)):
        reference.assert_close(x, y)
    o, lse = burst.merge(nothing, nothing)
    assert not o.any() and (lse == -math.inf).all()


@pytest.mark.parametrize("arguments, message", [
    (dict(dropout=0.1), "dropout: got 0.1; burst has none"),
    (dict(strategy="best"), "strategy: 'best' is not known"),
    (dict(without=("tiling",)),
     "without: 'tiling' is not known; there are overlap, dropping, local"),
    (dict(without="overlap"), "without: a tuple of names is wanted, as in (\"overlap\","),
    (dict(layout="sbhd"), "layout: 'sbhd' is not known"),
    (dict(mask=lambda b, h, i, j: i - j), "gives an integer, where True or False is wanted"),
    (dict(mask=lambda b, h, i, j: True if i > j else False), "write & | ~ in place of"),
    (dict(mask=lambda b, h, i, j: i > j and i < 9), "write & | ~ in place of"),
    (dict(score=lambda s, b, h, i, j: torch.special.digamma(s)), "calls aten.digamma.default"),
])
def test_refusals(arguments, message):
    q, k, v = reference.draw(1, 2, 2, 8, 8, 8)
    with pytest.raises((ValueError, TypeError), match=message.replace("(", r"\(")):
        burst.attention(q, k, v, **arguments)


@pytest.mark.parametrize("shapes, message", [
    (((1, 3, 8, 8), (1, 2, 8, 8), (1, 2, 8, 8)), "q: has 3 heads, which is no multiple of the 2"),
    (((1, 2, 8, 8), (2, 2, 8, 8), (2, 2, 8, 8)), "k: has a batch of 2, q of 1"),
    (((1, 2, 8, 8), (1, 2, 8, 4), (1, 2, 8, 8)), "k: has a head dim of 4, q of 8"),
    (((1, 2, 8, 8), (1, 2, 8, 8), (1, 2, 9, 8)), "v: has 9 positions and 2 heads, k has 8 and 2"),
    (((2, 8, 8), (1, 2, 8, 8), (1, 2, 9, 8)), "q: 4 dimensions bhsd are wanted"),
])
def test_wrong_sizes(shapes, message):
    with pytest.raises(ValueError, match=message):
        burst.attention(*(torch.zeros(shape) for shape in shapes))


def test_a_head_dim_that_is_too_large():
    with pytest.raises(burst.ArgumentError, match=r"head dims must be in \[1, 256\], got: 300"):
        burst.attention(*(torch.zeros(1, 1, 8, 300) for _ in range(3)))


def test_one_table_of_mask_and_score_becomes_two():
    q, k, v = reference.draw(1, 1, 1, 16, 16, 8)
    one, other = (torch.randint(0, 3, (16,), generator=torch.Generator().manual_seed(n))
                  for n in (1, 2))
    for x, y in ((one, one), (one, other), (other, one)):
        def mask(b, h, i, j):
            return x[i] == x[j]

        def score(s, b, h, i, j):
            return s + y[i] * 0.5 - y[j] * 0.25

        reference.assert_close(burst.attention(q, k, v, mask=mask, score=score),
                               reference.attention(q, k, v, mask, score)[0])


def test_what_is_read_from_a_tensor_is_not_kept():
    q, k, v = reference.draw(1, 1, 1, 16, 16, 8)
    limit = torch.tensor([3])
    for size in (3, 7):
        limit[0] = size

        def mask(b, h, i, j):
            return (i - j).abs() < int(limit[0])

        reference.assert_close(burst.attention(q, k, v, mask=mask),
                               reference.attention(q, k, v, mask)[0])


def test_second_derivatives_are_refused():
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 1, 1, 8, 8, 8))
    dq, = torch.autograd.grad(burst.attention(q, k, v).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="has no second derivative"):
        dq.sum().backward()


@pytest.mark.parametrize("arguments, message", [
    (dict(mask=torch.ones(8, 8).bool()), r"mask: a function of b, h, i, j is wanted, got Tensor of "
                                         r"shape \(8, 8\); write lambda"),
    (dict(mask="causal"), "mask: a function of b, h, i, j is wanted, got str"),
    (dict(score=1.0), "score: a function of s, b, h, i, j is wanted, got float"),
    (dict(sequence=4), "sequence: a burst.Sequence is wanted, got int"),
    (dict(scale="x"), "scale: a number is wanted, got str"),
    (dict(out=torch.ones(1)), "out: \\(o, lse\\) is wanted, got Tensor"),
])
def test_arguments_of_other_kinds(arguments, message):
    q, k, v = reference.draw(1, 1, 1, 8, 8, 8)
    with pytest.raises(TypeError, match=message):
        burst.attention(q, k, v, **arguments)
    if "out" not in arguments:
        with pytest.raises(TypeError, match=message):
            burst.attention(*(x.numpy() for x in (q, k, v)), **arguments)


def test_torch_func():
    x = torch.ones(1, 1, 8, 8)
    with pytest.raises(NotImplementedError, match="has no rules for torch.func"):
        torch.func.grad(lambda q: burst.attention(q, q, q).sum())(x)
    with pytest.raises(NotImplementedError, match="has no rules for torch.func"):
        torch.vmap(lambda q: burst.attention(q, q, q))(x[None])


def test_merge_of_other_kinds():
    with pytest.raises(TypeError, match="merge: pairs .o, lse. are wanted, got Tensor"):
        burst.merge(torch.ones(3), torch.ones(3))


def test_tables_of_another_type():
    """Of a parameter that becomes one of another type, between calls."""
    q, k, v = reference.draw(1, 2, 2, 24, 24, 16)
    table = torch.nn.Parameter(torch.rand(24))

    def score(s, b, h, i, j):
        return s + table[j]

    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        table.data = table.data.to(dtype)
        reference.assert_close(burst.attention(q, k, v, score=score),
                               reference.attention(q, k, v, score=score)[0])


def test_saved_tensors_of_another_type():
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 2, 2, 24, 24, 16))
    burst.attention(q, k, v).sum().backward()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x.bfloat16()):
        o = burst.attention(q, k, v)
    with pytest.raises(burst.Error, match="wanted"):
        o.sum().backward()


def test_penalties_of_gradients_are_refused():
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 1, 1, 8, 8, 8))
    loss = burst.attention(q, k, v).sum() + q.pow(3).sum()
    with pytest.raises(RuntimeError, match="has no second derivative"):
        gradient, = torch.autograd.grad(loss, q, create_graph=True)
        gradient.square().sum().backward()


def test_out_of_negative_views():
    q, k, v = reference.draw(1, 1, 1, 8, 8, 8)
    out = torch.empty_like(q), torch.empty(1, 1, 8)
    burst.attention(q, k, v, out=out)
    burst.attention(torch._neg_view(q), k, v, out=out)
    assert torch.equal(out[0], burst.attention(-q, k, v))


def test_sinks_of_rows_without_keys():
    """A sink of -inf is none."""
    for sinks in (torch.tensor([-math.inf, 0.5]), torch.tensor([-math.inf, -math.inf])):
        given = [x.requires_grad_() for x in reference.draw(1, 2, 2, 8, 8, 8)]
        sinks.requires_grad_()
        o, lse = burst.attention(*given, mask=lambda b, h, i, j: j < i - 1, sinks=sinks,
                                 return_lse=True)
        assert not o[0, :, :2].any()
        assert torch.equal(lse[0, :, :2], sinks.detach()[:, None].expand(2, 2))
        gradients = torch.autograd.grad((o.sum() + lse[0, :, 2:].sum()), [*given, sinks])
        assert all(torch.isfinite(x).all() for x in gradients)
        arrays = burst.attention(*(x.detach().numpy() for x in given),
                                 mask=lambda b, h, i, j: j < i - 1,
                                 sinks=sinks.detach().numpy(), return_lse=True)
        for x, y in zip(arrays, (o, lse)):
            reference.assert_close(torch.from_numpy(x), y.detach())


def test_a_table_of_a_mask_that_requires_a_gradient():
    limits = torch.full((8,), 2.5, requires_grad=True)
    slopes = torch.ones(8, requires_grad=True)
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 1, 1, 8, 8, 8))

    def attend(q):
        return burst.attention(q, k, v, mask=lambda b, h, i, j: i - j < limits[i],
                               score=lambda s, b, h, i, j: s * slopes[i])

    wanted = None
    for way in (attend, torch.compile(attend, backend="aot_eager")):
        dq, of_limits, of_slopes = torch.autograd.grad(
            way(q).square().sum(), (q, limits, slopes), allow_unused=True)
        assert of_limits is None or not of_limits.any() # torch.compile gives zeros
        assert of_slopes.any()
        assert wanted is None or torch.equal(dq, wanted)
        wanted = dq


@pytest.mark.parametrize("offset", [3, torch.tensor(3)])
def test_whole_numbers(offset):
    q, k, v = reference.draw(1, 1, 1, 8, 8, 8)
    found = burst.attention(q, k, v, score=lambda s, b, h, i, j: s * h, head_offset=offset)
    assert torch.equal(found, burst.attention(q, k, v, score=lambda s, b, h, i, j: s * 3))


@pytest.mark.parametrize("offset", ["3", 1.5, torch.tensor(1.5)])
def test_offsets_of_other_kinds(offset):
    q, k, v = reference.draw(1, 1, 1, 8, 8, 8)
    for arrays in ((q, k, v), (x.numpy() for x in (q, k, v))):
        with pytest.raises(TypeError, match="head_offset: a whole number is wanted, got"):
            burst.attention(*arrays, head_offset=offset)


def test_forward_mode_is_refused():
    q, k, v = reference.draw(1, 1, 1, 8, 8, 8)
    with torch.autograd.forward_ad.dual_level():
        burst.attention(q, k, v)
        with pytest.raises(NotImplementedError, match="has no forward-mode derivative"):
            burst.attention(torch.autograd.forward_ad.make_dual(q, k), k, v)


@pytest.mark.parametrize("arguments, message", [
    (dict(sinks=torch.zeros(1, dtype=torch.int64)), "sinks: a torch.Tensor of floating point is "
                                                    "wanted, .* got torch.int64"),
    (dict(sinks=[0.0]), "sinks: .* got list"),
    (dict(out=([], [])), "out: o must be a torch.Tensor, as q is, got list"),
])
def test_tensors_of_other_kinds(arguments, message):
    q, k, v = reference.draw(1, 1, 1, 8, 8, 8)
    with pytest.raises(TypeError, match=message):
        burst.attention(q, k, v, **arguments)


def test_tables_are_not_kept():
    q, k, v = reference.draw(1, 1, 1, 24, 24, 8)
    ids = torch.zeros(24, dtype=torch.int64)
    seen = weakref.ref(ids)
    burst.attention(q, k, v, mask=lambda b, h, i, j: ids[i] <= ids[j] + 1)
    del ids
    gc.collect()
    assert seen() is None


@pytest.fixture
def compiled(monkeypatch):
    """Counts the programs that are compiled."""
    programs.compiled.cache_clear()
    count = []
    compile = programs.Program.compile

    def counted(module, *how):
        count.append(module)
        return compile(module, *how)

    monkeypatch.setattr(programs.Program, "compile", staticmethod(counted))
    return count


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_keys_that_grow(compiled, layout, monkeypatch):
    """A decoding loop is one program behind the first step's, also with tables."""
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625, 1.0, 0.0])
    length = torch.tensor([0])

    def mask(b, h, i, j):
        return (j <= i + length[0]) & ((j % 3 != 1) | (h != 2))

    def score(s, b, h, i, j):
        return s - slopes[h] * (j - i)

    finds = []
    find = torch_attention.find
    monkeypatch.setattr(torch_attention, "find", lambda *x: finds.append(x) or find(*x))
    q, keys, values = reference.draw(2, 6, 3, 1, 40, 8, 12)
    if layout == "bshd":
        q, keys, values = (x.transpose(1, 2).contiguous() for x in (q, keys, values))
    swapped = (lambda x: x.transpose(1, 2)) if layout == "bshd" else lambda x: x
    for n in [*range(1, 12), 40, 7]:
        k, v = (swapped(swapped(x)[:, :, :n]) for x in (keys, values))
        length[0] = n - 1
        found = burst.attention(q, k, v, mask=mask, score=score, layout=layout, return_lse=True)
        wanted = reference.attention(swapped(q), swapped(k), swapped(v), mask, score)
        reference.assert_close(swapped(found[0]), wanted[0])
        reference.assert_close(found[1], wanted[1])
    for n in range(1, 6): # and another two that give more
        k, v = (swapped(swapped(x)[:, :, :n]) for x in (keys, values))
        length[0] = n - 1
        _, found = burst.attention(q, k, v, mask=mask, score=score, layout=layout,
                                   return_max_scores=True)
        reference.assert_close(found, largest(swapped(q), swapped(k), mask, score))
    assert len(compiled) == 4
    del compiled[2:]
    assert ["?" in module for module in compiled] == [False, True]
    assert len(finds) == 4 # others know their program by one look-up
    # What the program is not for is another one, and what is wrong an error.
    assert burst.attention(q, q, q, layout=layout).shape == q.shape
    with pytest.raises(ValueError, match=r"^v: has 40 positions and 3 heads, k has 5 and 3"):
        burst.attention(q, k, values, mask=mask, score=score, layout=layout)


def test_lengths_that_vary(compiled):
    """Of queries and keys, with gradients: those of tables, and by lse."""
    slopes = torch.rand(2, requires_grad=True)

    def score(s, b, h, i, j):
        return s - slopes[h] * (i - j).abs()

    for num_queries, num_keys in [(5, 5), (5, 9), (7, 9), (3, 30), (33, 2)]:
        given = [x.requires_grad_() for x in reference.draw(1, 2, 2, num_queries, num_keys, 8)]
        found = burst.attention(*given, mask=causal, score=score, return_lse=True)
        wanted = reference.attention(*given, causal, score)
        for x, y in zip(found, wanted):
            reference.assert_close(x, y)
        reference.check_gradients(found, wanted, (*given, slopes))
    # One for (5, 5), for 5 queries and any keys, and for any of both; each has two passes.
    assert len(compiled) == 6
    assert sum("attention_backward" in module for module in compiled) == 3


def test_tables_and_lengths_that_grow():
    q, keys, values = reference.draw(1, 2, 2, 1, 20, 8)
    kept = torch.rand(16) < 0.7

    def mask(b, h, i, j):
        return kept[j]

    for n in (4, 9, 16):
        found = burst.attention(q, keys[:, :, :n], values[:, :, :n], mask=mask)
        wanted, _ = reference.attention(q, keys[:, :, :n], values[:, :, :n], mask)
        reference.assert_close(found, wanted)
    with pytest.raises(burst.Error, match=r"kept \(mask_table0\): 16, wanted at least 17"):
        burst.attention(q, keys[:, :, :17], values[:, :, :17], mask=mask)


def test_results_of_any_length_that_are_given():
    q, keys, values = reference.draw(1, 2, 2, 3, 20, 8)
    for n in (4, 9, 16):
        o, lse = torch.empty_like(q), torch.empty(1, 2, 3)
        burst.attention(q, keys[:, :, :n], values[:, :, :n], mask=by_head, out=(o, lse))
        wanted = reference.attention(q, keys[:, :, :n], values[:, :, :n], by_head)
        reference.assert_close(o, wanted[0])
        reference.assert_close(lse, wanted[1])


def test_inference_mode_and_default_devices():
    """What the caller has switched on is not for what is made in between."""
    q, keys, values = reference.draw(1, 2, 2, 1, 9, 8)
    first = torch.tensor([3])

    def mask(b, h, i, j):
        return j > first[0]

    for n in (6, 7, 9):
        k, v = keys[:, :, :n], values[:, :, :n]
        wanted, _ = reference.attention(q, k, v, mask)
        with torch.inference_mode():
            reference.assert_close(burst.attention(q, k, v, mask=mask), wanted)
        for _ in range(2):
            with torch.device("meta"):
                found = burst.attention(q, k, v, mask=mask)
            reference.assert_close(found, wanted)


def test_names_tell_both_passes_apart():
    """Ops find an attention by its name: one that differs in the strategy of the backward pass
    alone is another one."""
    shape = torch.Size((1, 2, 16, 8))
    names = set()
    for strategy in ("ring_kv", "ring_kv then ring_q", "ring_kv then direct_q"):
        options = torch_attention.Options("bhsd", None, None, strategy, (), 0, 0, "cpu", False)
        names.add(torch_attention.build(shape, shape, shape, torch.float32, None, None, options,
                                        (False, False)).name)
    assert len(names) == 3
