# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.compile, save and load."""

import numpy
import pytest
import torch
import torch.distributed as dist

import burst
import reference
import test_ranks

IDS = torch.tensor([0] * 9 + [1] * 15)
SLOPES = torch.tensor([0.5, 0.25, 0.1, 0.0], requires_grad=True)


def documents(b, h, i, j):
    return (i >= j) & (IDS[i] == IDS[j])


def alibi(s, b, h, i, j):
    return s - SLOPES[h] * (i - j).abs()


SHAPES = (2, 4, 24, 8), (2, 2, 24, 8)


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("constants", [False, True])
def test_save_and_load(ranks, constants, tmp_path):
    program = burst.compile(*SHAPES, mask=documents, score=alibi, constants=constants,
                            sequence=burst.Sequence(ranks=ranks) if ranks > 1 else None)
    path = tmp_path / "attention.so"
    program.save(path)
    q, k, v = reference.draw(2, 4, 2, 24, 24, 8)
    wanted = reference.attention(q, k, v, documents, alibi)
    tables = () if constants else (IDS, SLOPES.detach())
    for p in (program, burst.load(path)):
        assert p.num_ranks == ranks
        assert [x.name for x in p.signature if x.is_result] == ["o", "lse"]
        for x, y in zip(p(q, k, v, *tables), wanted):
            reference.assert_close(x, y)
        # Of numpy, in the layout of the program, tables by name.
        found = p(*(x.transpose(1, 2).numpy() for x in (q, k, v)), layout="bshd",
                  **{x.name: y.numpy() for x, y in zip(p.signature[3:], tables)})
        assert isinstance(found[0], numpy.ndarray)
        reference.assert_close(torch.tensor(found[0]).transpose(1, 2), wanted[0])


@pytest.mark.parametrize("ranks", [1, 4])
def test_any_length(ranks, tmp_path):
    sequence = burst.Sequence(ranks=ranks) if ranks > 1 else None
    arguments = dict(mask=documents, score=alibi, sequence=sequence)
    shapes = (2, 4, None, 8), (2, 2, None, 8)
    program = burst.compile(*shapes, **arguments)
    assert program.signature[0].shape == (2, None, 4, 8)
    assert program.proved == (None if ranks == 1 else "for every number of ranks")
    paths = [tmp_path / "forward.so", tmp_path / "backward.so"]
    program.save(paths[0])
    burst.compile(*shapes, **arguments, backward=True).save(paths[1])
    forward, backward = map(burst.load, paths)
    for num_queries, num_keys in ((24, 24), (5, 19), (24, 7)):
        q, k, v = (x.requires_grad_() for x in
                   reference.draw(2, 4, 2, num_queries, num_keys, 8))
        given = [x.detach() for x in (q, k, v)]
        wanted = reference.attention(q, k, v, documents, alibi)
        for p in (program, forward):
            for x, y in zip(p(*given, IDS, SLOPES.detach()), wanted):
                reference.assert_close(x, y)
        do = torch.randn(wanted[0].shape)
        gradients = torch.autograd.grad((wanted[0] * do).sum(), (q, k, v, SLOPES))
        given += [x.detach().float() for x in (*wanted, do)]
        for x, y in zip(backward(*given, IDS, SLOPES.detach()), gradients, strict=True):
            reference.assert_close(x, y)


def test_lengths_of_keys_alone():
    """What else is left open, or is contradicted, is an error."""
    program = burst.compile((1, 2, 1, 8), (1, 2, None, 8))
    q, k, v = reference.draw(1, 2, 2, 1, 33, 8)
    reference.assert_close(program(q, k, v)[0], reference.attention(q, k, v)[0])
    with pytest.raises(burst.Error, match="argument k: size 33 in dimension 1, wanted 34"):
        program(q, k, torch.zeros(1, 2, 34, 8))
    with pytest.raises(TypeError, match="q: a size: a whole number is wanted, got None"):
        burst.compile((1, None, 1, 8))
    with pytest.raises(ValueError, match="v: has 12 positions and 2 heads, k has None and 2"):
        burst.compile((1, 2, 1, 8), (1, 2, None, 8), (1, 2, 12, 8))
    with pytest.raises(ValueError, match="lengths are wanted to be explained, got None"):
        burst.explain((1, 2, None, 8), sequence=burst.Sequence(ranks=2))


def test_backward(tmp_path):
    arguments = dict(mask=documents, score=alibi, backward=True, lse_gradient=True)
    path = tmp_path / "backward.so"
    burst.compile(*SHAPES, **arguments).save(path)
    q, k, v = (x.requires_grad_() for x in reference.draw(2, 4, 2, 24, 24, 8))
    o, lse = reference.attention(q, k, v, documents, alibi)
    do, dlse = torch.randn(o.shape), torch.randn(lse.shape)
    wanted = torch.autograd.grad((o * do).sum() + (lse * dlse).sum(), (q, k, v, SLOPES))
    given = [x.detach().float() for x in (q, k, v, o, lse, do, dlse)]
    found = burst.load(path)(*given, IDS, SLOPES.detach())
    for x, y in zip(found, wanted, strict=True):
        reference.assert_close(x, y)


def on_ranks(*paths):
    cp = burst.Sequence(dist.group.WORLD, "striped 2", length=24)
    whole = reference.draw(2, 4, 2, 24, 24, 8)
    wanted = reference.attention(*whole, documents)
    for path in paths: # the last one is for any length
        program = burst.load(path)
        o, lse = program(*(cp.shard(x, 2) for x in whole), IDS, sequence=cp)
        reference.assert_close(o, cp.shard(wanted[0], 2))
        reference.assert_close(lse, cp.shard(wanted[1], 2))
    shorter = burst.Sequence(dist.group.WORLD, "striped 2", length=19)
    o, _ = program(*(shorter.shard(x[:, :, :19], 2) for x in whole), IDS, sequence=shorter)
    reference.assert_close(o, shorter.shard(wanted[0][:, :, :19], 2)) # of a causal mask
    with pytest.raises(ValueError, match="sequence: burst.Sequence.2 ranks, zigzag. does not fit"):
        program(*whole, IDS, sequence=burst.Sequence(ranks=2))


@pytest.mark.all
def test_ranks_that_are_processes(tmp_path):
    sequence = burst.Sequence(ranks=3, order="striped 2")
    paths = [tmp_path / "ranks.so", tmp_path / "any_length.so"]
    for path, shapes in zip(paths, (SHAPES, ((2, 4, None, 8), (2, 2, None, 8)))):
        burst.compile(*shapes, mask=documents, sequence=sequence).save(path)
    test_ranks.on_ranks(3, tmp_path, on_ranks, *paths)


def test_processors():
    program = burst.compile((1, 2, 8, 8), processor="x86-64-v3", features="-fma")
    assert program.target.startswith("x86-64-v3") or "haswell" in program.target
    for arguments, message in (
            (dict(processor="zz"), "zz"), (dict(lse_gradient=True), "add backward=True"),
            (dict(dtype="int8"), "dtype: float32"), (dict(strategy="best"), "strategy: 'best'"),
            (dict(without=["fuse"]), "without: 'fuse' is not known"),
            (dict(score=alibi, backward=True, constants=True), "constants: tables that have")):
        with pytest.raises(ValueError, match=message):
            burst.compile((1, 4, 8, 8), **arguments)


def test_refusals(tmp_path):
    program = burst.compile((1, 2, 8, 8))
    x = torch.zeros(1, 2, 8, 8)
    for given, named, message in (
            ((x, x, x, x), {}, "takes q, k, v; got 4"), ((), {}, "takes q, k, v; got none"),
            ((x, x), {}, "v: is missing"), ((x, x), dict(w=x), "w: @attention takes q, k, v, each"),
            ((x, x), dict(q=x), "q: @attention takes"), ((x, x, x.double()), {}, "v"),
            ((x, x, x[:, :, :4]), {}, "v")):
        with pytest.raises((TypeError, ValueError), match=message):
            program(*given, **named)
    with pytest.raises(burst.Error, match="none.so"):
        burst.load(tmp_path / "none.so")
    (tmp_path / "text.so").write_text("no program")
    with pytest.raises(burst.Error, match="text.so"):
        burst.load(tmp_path / "text.so")
    with pytest.raises(burst.Error, match="missing"):
        program.save(tmp_path / "missing" / "a.so")


def test_a_program_says_what_it_is():
    program = burst.compile((1, 2, 24, 16), sequence=burst.Sequence(ranks=2))
    assert repr(program) == (
        f"<burst program @attention for 2 ranks, {program.target}: q float32 (1, 24, 2, 16), "
        "k float32 (1, 24, 2, 16), v float32 (1, 24, 2, 16) -> o float32 (1, 24, 2, 16), "
        "lse float32 (1, 2, 24)>")
    with pytest.raises(TypeError, match="q: a size: a whole number is wanted, got 1.5"):
        burst.compile((1, 2, 24, 1.5))
    with pytest.raises(TypeError, match="ranks: a whole number is wanted, got 1.5"):
        burst.Sequence(ranks=1.5)


@pytest.mark.parametrize("lies", [
    lambda x: torch.stack((x, -x), -1)[..., 0], lambda x: x.mT.contiguous().mT,
    lambda x: numpy.flip(numpy.flip(x.numpy(), -1).copy(), -1),
    lambda x: numpy.flip(numpy.flip(x.numpy(), 0).copy(), 0)],
    ids=["apart", "transposed", "backwards", "outer backwards"])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_arguments_are_read_however_they_lie(lies, layout):
    """As burst.attention reads them; also tables and lse."""
    bias = reference.draw(1, 1, 1, 24, 24, 24, seed=3)[0][0, 0]
    program, backward = (burst.compile(*SHAPES, score=lambda s, b, h, i, j: s + bias[i, j],
                                       backward=is_backward) for is_backward in (False, True))
    given = [x.transpose(1, 2) if layout == "bshd" else x
             for x in reference.draw(2, 4, 2, 24, 24, 8)]
    given.append(bias)
    wanted = program(*given, layout=layout)
    found = program(*map(lies, given), layout=layout)
    assert all(map(torch.equal, map(torch.as_tensor, found), wanted))
    rest = [*wanted, torch.ones_like(wanted[0]), given.pop()]
    wanted = backward(*given, *rest, layout=layout)
    found = backward(*map(lies, (*given, *rest)), layout=layout)
    assert all(map(torch.equal, map(torch.as_tensor, found), wanted))


def test_expanded_and_empty_arguments():
    program = burst.compile((1, 2, None, 8))
    q, k, v = reference.draw(1, 2, 2, 24, 24, 8)
    q = q[..., :1].expand(q.shape)
    assert torch.equal(program(q, k, v)[0], program(q.contiguous(), k, v)[0])
    empty = torch.zeros(1, 2, 0, 16)[..., ::2]
    assert program(empty, empty, empty)[0].shape == (1, 2, 0, 8)


def test_results_that_cannot_be_written():
    program = burst.compile((1, 1, 8, 8))
    x = torch.zeros(1, 8, 1, 8)
    with pytest.raises(ValueError, match="o: is a view of the negative of a tensor"):
        program.run([x, x, x, torch._neg_view(x), torch.zeros(1, 1, 8)])
    with pytest.raises(burst.ArgumentError, match="result o: stride 2 in dimension 3, wanted 1"):
        program.run([x, x, x, torch.zeros(1, 8, 1, 16)[..., ::2], torch.zeros(1, 1, 8)])


def test_what_is_proved():
    def proved(ranks, strategy="auto"):
        return burst.compile(*SHAPES, mask=lambda b, h, i, j: i >= j, strategy=strategy,
                             sequence=burst.Sequence(ranks=ranks)).proved
    assert proved(7, "bi_ring_kv") == "for every odd number of ranks"
    assert proved(8, "bi_ring_q") == "for every even number of ranks"
    assert proved(3) == "for every number of ranks"
    # Of two ranks the program does not tell the one ahead from the one behind.
    assert proved(2) == "for these ranks, sizes and tables"
