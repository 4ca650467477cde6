# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention under torch.compile, torch.export, autocast, checkpoints, modes."""

import functools
import gc
import weakref

import pytest
import torch
import torch._dynamo.testing
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import checkpoint
from torch.utils._python_dispatch import TorchDispatchMode

import burst
import reference
from burst import programs, torch_api, torch_attention, torch_ops

IDS = torch.tensor([0] * 11 + [1] * 20 + [2] * 6)


def documents(b, h, i, j):
    return (i >= j) & (IDS[i] == IDS[j])


def attend(q, k, v, slopes, cap, weights):
    def score(s, b, h, i, j):
        return cap * torch.tanh(s / cap) - slopes[h] * (i - j)

    o, lse = burst.attention(q * 2, k, v, mask=documents, score=score, return_lse=True)
    return (o * weights).sum() + lse.square().sum()


def inputs():
    q, k, v = (x.requires_grad_() for x in reference.draw(2, 4, 2, 37, 37, 16))
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.1], requires_grad=True)
    return q, k, v, slopes, torch.tensor(3.0), reference.draw(2, 4, 2, 37, 37, 16, seed=7)[0]


def values_of(function, given):
    result = function(*given)
    return result, torch.autograd.grad(result, given[:4])


def compare(function, other, given):
    found, wanted = values_of(function, given), values_of(other, given)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.long)])
def test_compile(backend, monkeypatch):
    """Captured tensors are inputs of the graph: others, and other contents, compile
    nothing again."""
    given = inputs()
    counter = torch._dynamo.testing.CompileCounterWithBackend(backend)
    compiled = torch.compile(attend, fullgraph=True, backend=counter)
    compare(compiled, attend, given)
    given[4].fill_(1.0)
    compare(compiled, attend, given)
    monkeypatch.setitem(globals(), "IDS", torch.tensor([0] * 30 + [1] * 7))
    compare(compiled, attend, given)
    assert counter.frame_count == 1


def test_compile_with_a_mask_that_changes():
    """A number that a mask captures is part of the program."""
    q, k, v = reference.draw(1, 2, 2, 24, 24, 8)

    def windowed(x, left):
        return burst.attention(x, k, v, mask=lambda b, h, i, j: i - j <= left)

    compiled = torch.compile(windowed, fullgraph=True, backend="aot_eager")
    for left in (2, 5, 2):
        assert torch.equal(compiled(q, left), windowed(q, left))


def test_compile_sinks_layout_and_sizes():
    sinks = torch.tensor([0.5, -1.0], requires_grad=True)

    def attend(q, k, v):
        return burst.attention(q, k, v, sinks=sinks, layout="bshd", scale=0.5, strategy="ring_kv",
                               without=("overlap", "local_tiling"), head_offset=3)

    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager", dynamic=True)
    for size in (16, 24, 16):
        given = [x.transpose(1, 2).requires_grad_() for x in reference.draw(1, 2, 2, size, size, 8)]
        found, wanted = compiled(*given), attend(*given)
        assert torch.equal(found, wanted) and found.stride() == wanted.stride()
        for x, y in zip(torch.autograd.grad(found.sum(), [*given, sinks]),
                        torch.autograd.grad(wanted.sum(), [*given, sinks])):
            torch.testing.assert_close(x, y)


def test_compile_says_what_it_refuses():
    q, k, v = reference.draw(1, 2, 2, 8, 8, 8)
    out = torch.empty_like(q), torch.empty(1, 2, 8)
    for arguments, message in (
            (dict(strategy="best"), "strategy: 'best' is not known"),
            (dict(without=("x",)), "without: 'x' is not known"),
            (dict(out=out), "out: cannot be given where torch.compile reads"),
            (dict(mask=lambda b, h, i, j: i + j), "gives an integer, where True or False"),
            (dict(dropout=0.1), "dropout: got 0.1")):
        with pytest.raises(Exception, match=message):
            torch.compile(functools.partial(burst.attention, **arguments), fullgraph=True,
                          backend="aot_eager")(q, k, v)


def test_export():
    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return burst.attention(q, k, v, mask=documents)

    q, k, v = reference.draw(1, 2, 2, 37, 37, 8)
    for strict in (False, True):
        program = torch.export.export(Model(), (q, k, v), strict=strict)
        assert "burst.attention" in str(program.graph)
        assert torch.equal(program.module()(q, k, v), Model()(q, k, v))


kept = []


def op_of(q, k, v, *tables):
    """The op of an attention, and its arguments."""
    def score(s, b, h, i, j):
        for table in tables:
            s = s + table[h]
        return s

    burst.attention(q, k, v, mask=documents, score=score)
    found = torch_api._find(None, None, q, k, v, documents, score, None, None, "auto", (), "bhsd",
                            None, None, False, True)
    torch_ops.attention(found[1], q, k, v, found[2])
    kept.append(found[1]) # as the caller of an op does
    return torch.ops.burst.attention, (q, k, v, found[2], found[1].name)


def test_opcheck():
    given = inputs()
    op, arguments = op_of(*given[:4])
    torch.library.opcheck(op, arguments)
    q, k, v, tables, name = arguments
    o, lse = op(*arguments)
    plain = [x.detach() for x in (o, None or lse, q, k, v, o, lse)]
    torch.library.opcheck(torch.ops.burst.attention_backward,
                          (*plain, [x.detach() for x in tables], [1], name))


def test_ops_refuse():
    q, k, v = reference.draw(1, 2, 2, 37, 37, 8)
    op, (_, _, _, tables, name) = op_of(q, k, v)
    with pytest.raises(ValueError, match=r"q is \(1, 2, 36, 8\), the program is for \(1, 2, 37"):
        op(q[:, :, 1:], k, v, tables, name)
    with pytest.raises(RuntimeError, match="this process has no attention abc"):
        op(q, k, v, tables, "abc")


def forget():
    """What caches of bounded size have forgotten after many other calls."""
    torch_attention._found.clear()
    torch_attention._families.clear()
    torch_api._calls.clear()
    torch_api._open_calls.clear()
    torch_ops._again.cache_clear()
    programs.compiled.cache_clear()
    gc.collect()


def test_ops_keep_no_attention(monkeypatch):
    """Those of calls under a mode go with their results, or out of a cache of bounded size."""
    monkeypatch.setattr(torch_attention, "_LARGEST_CACHE", 4)
    forget()
    kept.clear()
    gc.collect()
    before, of_graphs = len(torch_ops._alive), len(torch_ops._of_graphs)

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            return op(*args, **(kwargs or {}))

    def results(length):
        q, k, v = (x.requires_grad_() for x in reference.draw(1, 1, 1, length, length, 8))
        with Mode():
            return burst.attention(q, k, v, mask=documents), q

    o, q = results(9)
    found = weakref.ref(next(x for x in torch_ops._alive.values() if x.o_shape == o.shape))
    for length in range(10, 30):
        results(length)
    gc.collect()
    assert len(torch_ops._alive) <= before + 6 and len(torch_ops._of_graphs) == of_graphs
    forget()
    with Mode():
        o.sum().backward() # has kept its own
    assert q.grad.isfinite().all()
    del o, q
    gc.collect()
    assert found() is None


@pytest.mark.parametrize("make, dim", [("make_fx", 40), ("export", 48), ("compile", 56),
                                       ("compile with gradients", 72)]) # sizes of no other test
def test_graphs_outlive_caches(make, dim):
    has_gradients = make.endswith("gradients")
    q, k, v = (x.requires_grad_(has_gradients) for x in reference.draw(1, 2, 2, 37, 37, dim))

    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return burst.attention(torch.sin(q), k, v, mask=documents)

    if make.startswith("compile"):
        graph = torch.compile(Model(), fullgraph=True, backend="aot_eager")
    elif make == "export":
        graph = torch.export.export(Model(), (q, k, v)).module()
    else:
        graph = make_fx(Model())(q, k, v)
    wanted = Model()(q, k, v)
    for _ in range(2):
        found = graph(q, k, v)
        forget()
        assert torch.equal(found, wanted)
        if has_gradients:
            gradients = torch.autograd.grad(found.sum(), (q, k, v))
            wants = torch.autograd.grad(Model()(q, k, v).sum(), (q, k, v))
            assert all(map(torch.equal, gradients, wants))
        forget()


def test_no_second_derivative():
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 1, 1, 8, 8, 8))
    op, arguments = op_of(*(x[:, :1] for x in inputs()[:3]))
    for result in (burst.attention(q, k, v), op(*arguments)[0]):
        of = q if result.shape == q.shape else arguments[0]
        first, = torch.autograd.grad(result.sum(), of, create_graph=True)
        with pytest.raises(RuntimeError):
            first.sum().backward()


def test_autocast():
    q, k, v = reference.draw(1, 2, 2, 16, 16, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        # Rotary embeddings leave q in float32, as a product leaves v in bfloat16.
        found = burst.attention(q, k, v.bfloat16())
        assert burst.attention(q.double(), k.double(), v.double()).dtype == torch.float64
        compiled = torch.compile(burst.attention, fullgraph=True, backend="aot_eager")
        assert torch.equal(compiled(q, k, v), found)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, burst.attention(*(x.bfloat16() for x in (q, k, v))))
    q.requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        burst.attention(q, k, v).sum().backward()
    assert q.grad.dtype == torch.float32


def test_checkpoint_that_keeps_results(monkeypatch):
    """With a policy that keeps what the op gives, it runs once and not twice."""
    runs = []
    forward = torch_ops.torch_attention.forward
    monkeypatch.setattr(torch_ops.torch_attention, "forward",
                        lambda *x: runs.append(1) or forward(*x))
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 2, 2, 37, 37, 8))

    def layer(q, k, v):
        return burst.attention(torch.sin(q), k, v, mask=documents).square().sum()

    wanted = torch.autograd.grad(layer(q, k, v), (q, k, v))
    keep = functools.partial(checkpoint.create_selective_checkpoint_contexts,
                             [torch.ops.burst.attention.default])
    for arguments, count in ((dict(context_fn=keep), 1), ({}, 2)):
        runs.clear()
        loss = checkpoint.checkpoint(layer, q, k, v, use_reentrant=False, **arguments)
        found = torch.autograd.grad(loss, (q, k, v))
        for x, y in zip(found, wanted):
            assert torch.equal(x, y)
        if "context_fn" in arguments:
            assert len(runs) == count


def test_negative_views_and_subclasses():
    """What only looks like its memory is not read as that."""
    q, k, v = reference.draw(1, 1, 1, 8, 8, 8)
    burst.attention(q, k, v) # a call of these sizes is known
    negative = torch.view_as_complex(torch.stack((q, -q), -1)).conj().imag
    assert negative.is_neg()
    wanted = burst.attention(negative.resolve_neg(), k, v)
    assert torch.equal(burst.attention(negative, k, v), wanted)

    class Doubled(torch.Tensor):
        pass

    assert torch.equal(burst.attention(q.as_subclass(Doubled), k, v), burst.attention(q, k, v))
    with torch.device("meta"):
        meta = torch.empty(1, 1, 8, 8)
    with pytest.raises(ValueError, match="q: is on meta; tensors must be on a CPU or"):
        burst.attention(meta, k, v)
    with pytest.raises(ValueError, match="k: is on meta"):
        burst.attention(q, meta, v)


def test_max_scores():
    """Another op, which has the same gradients."""
    q, k, v = (x.requires_grad_() for x in reference.draw(1, 2, 2, 37, 37, 8))
    attend = functools.partial(burst.attention, mask=documents, return_lse=True,
                               return_max_scores=True)
    wanted = attend(q, k, v)
    found = torch.compile(attend, fullgraph=True, backend="aot_eager")(q, k, v)
    assert [x.requires_grad for x in found] == [True, True, False]
    assert all(torch.equal(x, y) for x, y in zip(found, wanted))
    gradients = [torch.autograd.grad(x[0].sum() + x[1].sum(), (q, k, v)) for x in (found, wanted)]
    assert all(torch.equal(x, y) for x, y in zip(*gradients))


def test_out():
    q, k, v = reference.draw(1, 2, 2, 37, 37, 8)
    wanted = burst.attention(q, k, v, mask=documents, return_lse=True)
    out = torch.empty(1, 37, 2, 8).transpose(1, 2), torch.empty(1, 2, 37)
    for _ in range(2):
        found = burst.attention(q, k, v, mask=documents, out=out, return_lse=True)
        assert found[0] is out[0] and found[1] is out[1]
        for x, y in zip(found, wanted):
            assert torch.equal(x, y)
    for bad, message in (((out[0][:, :1], out[1]), r"o must be \(1, 2, 37, 8\)"),
                         ((out[0], out[1].double()), r"of torch.float32, got"),
                         ((out[0][:, :1].expand(1, 2, 37, 8), out[1]), "o must be dense")):
        with pytest.raises(ValueError, match=message):
            burst.attention(q, k, v, mask=documents, out=bad)
    with pytest.raises(ValueError, match="out: results that are given have no gradients"):
        burst.attention(q.requires_grad_(), k, v, mask=documents, out=out)


def test_offsets_that_vary():
    q, k, v = inputs()[:3]
    attend = torch.compile(lambda n: burst.attention(
        q, k, v, score=lambda s, b, h, i, j: s * (h + 1), head_offset=n), fullgraph=True,
        backend="aot_eager")
    for n in (0, 3, 5):
        wanted = burst.attention(q, k, v, score=lambda s, b, h, i, j: s * (h + 1), head_offset=n)
        assert torch.equal(attend(n), wanted)


def test_floats_that_vary():
    q, k, v = inputs()[:3]
    slope = 0.5

    def score(s, b, h, i, j):
        return s - slope * (i - j)

    def mask(b, h, i, j):
        return i - j <= slope * 8

    def attend(q):
        return burst.attention(q, k, v, mask=mask, score=score)

    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    for slope in (0.5, 0.25, 1.0):
        assert torch.equal(compiled(q), attend(q))
