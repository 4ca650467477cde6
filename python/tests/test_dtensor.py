# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention of DTensors: heads are sharded by tensor parallelism, the sequence by burst."""

import functools

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

import burst
import reference
from test_ranks import causal, on_ranks

def compare(mesh, layout, placements, mask, has_slopes):
    """Results and gradients, those of slopes and sinks as well, are of the whole tensors, and lie
    as the local ones do."""
    cp = burst.Sequence(mesh["cp"])
    head = layout.index("h")
    whole = [x.requires_grad_() for x in reference.draw(4, 8, 4, 24, 24, 8, 16)]
    sinks = torch.linspace(-1, 1, 8, requires_grad=True)
    slopes = torch.linspace(0.5, 0.05, 8, requires_grad=True)

    def of_heads(s, b, h, i, j):
        return s - slopes[h] * (i - j)

    score = of_heads if has_slopes else None

    def placed(x, dim, placements):
        shard = cp.shard(x.detach(), dim) if dim is not None else x.detach()
        if dim is not None and layout == "bshd":
            shard = shard.transpose(1, 2)
        return distribute_tensor(shard.contiguous(), mesh["tp"], placements).requires_grad_()

    wanted = list(reference.attention(*whole, mask, score))
    kept = torch.sigmoid(wanted[1] - sinks[:, None])
    wanted[0] = wanted[0] * kept[..., None]
    wanted[1] = torch.logaddexp(wanted[1], sinks[:, None].double())
    weights = [torch.linspace(-1, 1, x.numel(), dtype=torch.float64).reshape(x.shape)
               for x in wanted]
    sum((x * w).sum() for x, w in zip(wanted, weights)).backward()

    by_slopes, slopes.grad = slopes.grad, None
    parts = [placed(x, 2, placements) for x in whole]
    own = placed(sinks, None, [Shard(0) if x == Shard(head) else Replicate() for x in placements])
    found = burst.attention(*parts, mask=mask, score=score, sinks=own, sequence=cp, layout=layout,
                            return_lse=True)
    assert found[0].placements == tuple(placements)
    *both, largest = burst.attention(*parts, mask=mask, score=score, sinks=own, sequence=cp,
                                     layout=layout, return_lse=True, return_max_scores=True)
    assert torch.equal(both[1].to_local(), found[1].to_local())
    alone = burst.attention(*[x.detach() for x in whole], mask=mask, score=score, head_offset=0,
                            batch_offset=0, return_max_scores=True)[1]
    reference.assert_close(largest.full_tensor(), cp.shard(alone, 2))
    for x in found:
        assert x.is_contiguous() and x.to_local().is_contiguous()
    shards = [cp.shard(x, 2) for x in (*weights, *wanted)]
    if layout == "bshd":
        shards[0], shards[2] = shards[0].transpose(1, 2), shards[2].transpose(1, 2)
    loss = 0
    for x, w, y in zip(found, shards[:2], shards[2:]):
        reference.assert_close(x.full_tensor(), y)
        w = distribute_tensor(w.contiguous(), mesh["tp"], x.placements)
        loss = loss + (x.double() * w).sum()
    loss.full_tensor().backward()
    for x, y in zip(parts, whole):
        y = cp.shard(y.grad, 2)
        reference.assert_close(x.grad.full_tensor(),
                               y.transpose(1, 2) if layout == "bshd" else y)
    gradient = own.grad.full_tensor() # by the queries of this rank
    dist.all_reduce(gradient, group=mesh["cp"].get_group())
    reference.assert_close(gradient, sinks.grad)
    if has_slopes: # by this rank's heads as well
        dist.all_reduce(slopes.grad)
        reference.assert_close(slopes.grad, by_slopes)


def uneven(mesh):
    """3 heads over 2 ranks, by other functions, within a checkpoint that keeps results."""
    q, k, v = reference.draw(1, 3, 3, 8, 8, 8)
    wanted, _ = reference.attention(q, k, v, causal)
    parts = [distribute_tensor(x, mesh["tp"], [Shard(1)]).requires_grad_() for x in (q, k, v)]
    attend = functools.partial(burst.scaled_dot_product_attention, is_causal=True)
    keep = functools.partial(create_selective_checkpoint_contexts,
                             [torch.ops.burst.attention.default])
    found = checkpoint(attend, *parts, use_reentrant=False, context_fn=keep)
    assert found.shape == wanted.shape
    reference.assert_close(found.full_tensor(), wanted)
    gradients = [torch.autograd.grad(x.square().sum(), parts) for x in (found, attend(*parts))]
    for x, y in zip(*gradients):
        assert torch.equal(x.full_tensor(), y.full_tensor())


def refusals(mesh):
    x = torch.zeros(2, 4, 8, 8)

    def placed(*placements, heads=4):
        return distribute_tensor(x[:, :1].expand(2, heads, 8, 8).contiguous(), mesh["tp"],
                                 placements)

    ok = placed(Shard(1))
    for tensors, more, error, message in (
            ((ok, x, x), {}, TypeError, "k: a DTensor is wanted, as q is, got Tensor"),
            ((x, ok, x), {}, TypeError, r"k: is a DTensor, .* or give k.to_local\(\)"),
            ((x, x, x), dict(sinks=distribute_tensor(torch.zeros(4), mesh["tp"])), TypeError,
             r"sinks: is a DTensor, .* or give sinks.to_local\(\)"),
            ((ok, ok, ok), dict(sinks=torch.zeros(4)), ValueError,
             r"sinks: where q is a DTensor .* one of \[Shard\(dim=0\)\] on the same mesh is "
             "wanted, got Tensor"),
            ((placed(Shard(2)),) * 3, {}, ValueError,
             r"q: its sequence is Shard\(dim=2\) by DTensor; .* pass shards"),
            ((placed(Shard(3)),) * 3, {}, ValueError,
             r"q: is Shard\(dim=3\) by DTensor; attention takes Shard\(dim=1\) of the heads, .*: "
             "use redistribute"),
            ((ok, placed(Replicate()), ok), {}, ValueError,
             r"k: is \(Replicate\(\),\) on .*, q \(Shard\(dim=1\),\) on"),
            ((placed(Shard(1), heads=6), *(placed(Shard(1), heads=3),) * 2), {}, ValueError,
             "k: of 3 heads this rank has [12], from [02], and of the 6 of q 3, from [03]: groups "
             "of 2 must not be split"),
            ((ok, ok, ok), dict(out=(x, x)), ValueError,
             "out: cannot be given where q is a DTensor")):
        with pytest.raises(error, match=message):
            burst.attention(*tensors, **more)
    partial = ok.from_local(x, mesh["tp"], [Partial()])
    with pytest.raises(ValueError, match="q: is Partial.* by DTensor; attention takes"):
        burst.attention(partial, partial, partial)


def compiled():
    """Where torch.compile reads all, they are refused; else the call is none of its graph."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    x = distribute_tensor(reference.draw(2, 4, 4, 8, 8, 8)[0], mesh["tp"], [Shard(1)])
    compile = functools.partial(torch.compile, burst.attention, backend="aot_eager")
    with pytest.raises(Exception, match="q: is a DTensor where torch.compile reads, .*head_off"):
        compile(fullgraph=True)(x, x, x)
    wanted = burst.attention(x, x, x)
    assert torch.equal(compile()(x, x, x).full_tensor(), wanted.full_tensor())


def all_cases():
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("cp", "tp"))
    for case in (("bhsd", [Shard(1)], causal, True),
                 ("bshd", [Shard(2)], causal, True),
                 ("bshd", [Shard(0)], lambda b, h, i, j: i >= j + b, False),
                 ("bhsd", [Replicate()], causal, False)):
        compare(mesh, *case)
    uneven(mesh)
    refusals(mesh)


def test_dtensors(tmp_path):
    on_ranks(4, tmp_path, all_cases)


@pytest.mark.all
def test_compiled(tmp_path):
    on_ranks(2, tmp_path, compiled)
