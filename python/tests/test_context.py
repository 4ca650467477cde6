# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.context_parallel: the meaning of torch's, over the whole sequence."""

import functools
import threading

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.functional import scaled_dot_product_attention as imported
from torch.utils import checkpoint

import burst
import reference
from test_ranks import on_ranks

TORCH = F.scaled_dot_product_attention
S = 48


class Model(torch.nn.Module):
    """Embeddings, with positions, one attention, and a loss of the next token."""

    def __init__(self, attend=None):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(32, 16)
        self.qkv = torch.nn.Linear(16, 48)
        self.attend = attend or (lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, is_causal=True))

    def hidden(self, tokens, positions):
        x = self.embedding(tokens) * (1 + positions)
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
        return x + self.attend(q, k, v).transpose(1, 2).flatten(2)

    def forward(self, tokens, labels, positions):
        scores = self.hidden(tokens, positions) @ self.embedding.weight.T
        return F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="sum")


def batch(length=S):
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 32, (2, length + 1), generator=generator)
    positions = torch.rand(length, 16, generator=generator)
    return tokens[:, :-1], tokens[:, 1:], positions # views of the same memory


def gradients(model):
    return [x.grad.clone() for x in model.parameters()]


def wanted(given, attend=None):
    """Of the whole sequence, in float64, by torch."""
    model = Model(attend).double()
    tokens, labels, positions = given
    loss = model(tokens, labels, positions.double())
    loss.backward()
    return loss.detach(), gradients(model)


def check(loss, model, expected):
    """Of all ranks together."""
    loss = loss.detach().clone()
    dist.all_reduce(loss)
    reference.assert_close(loss, expected[0], "loss")
    for n, (x, y) in enumerate(zip(gradients(model), expected[1])):
        dist.all_reduce(x)
        reference.assert_close(x, y, f"gradient {n}")


#===----------------------------------------------------------------------===#
# On ranks
#===----------------------------------------------------------------------===#


def training(mesh, length, backward_is_inside, run=None, **arguments):
    given = batch(length)
    before = [x.clone() for x in given]
    places = [x.data_ptr() for x in given]
    model = Model()
    with burst.context_parallel(mesh, buffers=list(given), buffer_seq_dims=[1, 1, 0],
                                **arguments) as cp:
        for x, y, dim in zip(given, before, (1, 1, 0)):
            assert torch.equal(x, cp.shard(y, dim))
        loss = (run or (lambda *x: x[0](*x[1:])))(model, *given)
        if backward_is_inside:
            loss.backward()
    for x, y, place in zip(given, before, places):
        assert torch.equal(x, y) and x.data_ptr() == place
    assert F.scaled_dot_product_attention is TORCH
    if not backward_is_inside:
        loss.backward()
    check(loss, model, wanted(before))


def as_torch_shards(mesh):
    """Buffers are those of torch's context, and so is the result."""
    from torch.distributed.tensor.experimental import context_parallel
    given = batch()
    x, y = given[0].clone(), given[0].clone()
    with burst.context_parallel(mesh, buffers=[x], buffer_seq_dims=[1], no_restore_buffers={x}):
        pass
    with context_parallel(mesh, buffers=[y], buffer_seq_dims=[1], no_restore_buffers={y}):
        pass
    assert torch.equal(x, y)


KEPT = torch.rand(2, 1, S, S, generator=torch.Generator().manual_seed(3)) < 0.6
KEPT[..., 0] = True
BIAS = torch.randn(4, S, S, generator=torch.Generator().manual_seed(4)).requires_grad_()


def arguments_of_attention(mesh, given, **arguments):
    """Of the whole sequence, each of them."""
    q, k, v = (x.requires_grad_() for x in reference.draw(2, 4, 2, S, S, 8))
    whole = TORCH(*(x.double() for x in (q, k, v)), enable_gqa=True,
                  **{name: x.double() if x is BIAS else x for name, x in given.items()})
    inputs = [q, k, v] + [x for x in given.values() if x is BIAS]
    weights = torch.randn(whole.shape, generator=torch.Generator().manual_seed(5)).double()
    expected = torch.autograd.grad((whole * weights).sum(), inputs)
    with burst.context_parallel(mesh, **arguments) as cp:
        shards = [cp.shard(x.detach(), 2).requires_grad_() for x in (q, k, v)]
        found = F.scaled_dot_product_attention(*shards, enable_gqa=True, **given)
    parts = torch.autograd.grad((found * cp.shard(weights, 2)).sum(), shards + inputs[3:])
    reference.assert_close(found, cp.shard(whole, 2))
    for x, y in zip(parts[:3], expected):
        reference.assert_close(x, cp.shard(y, 2))
    for x, y in zip(parts[3:], expected[3:]):
        dist.all_reduce(x)
        reference.assert_close(x, y, "bias")


def masks_of_heads(mesh):
    """Where there are more ranks, they are of the heads that are given."""
    q, k, v = reference.draw(2, 4, 2, S, S, 8)
    found = burst.scaled_dot_product_attention(q, k, v, attn_mask=BIAS.detach(), enable_gqa=True)
    reference.assert_close(found, TORCH(q, k, v, attn_mask=BIAS.detach(), enable_gqa=True))


def a_mask_of_a_shard(mesh):
    shards = [x[:, :, :S // 2] for x in reference.draw(2, 4, 2, S, S, 8)]
    with burst.context_parallel(mesh):
        with pytest.raises(ValueError, match=r"attn_mask: \(..., 24, 24\); inside .* of the whole "
                                             r"sequence, \(..., 48, 48\)"):
            F.scaled_dot_product_attention(*shards, attn_mask=torch.ones(24, 24).bool(),
                                           enable_gqa=True)


def nested_and_failing(mesh):
    """The innermost context counts; all end with the buffers as they were."""
    x, y = torch.arange(8.0).reshape(1, 1, 8, 1), torch.arange(8.0)
    whole = x.clone()
    rank = mesh.get_local_rank()
    order = [0, 1, 6, 7] if rank == 0 else [2, 3, 4, 5]

    def mean(): # of all positions that a causal query sees
        zero = torch.zeros(x.shape)
        return F.scaled_dot_product_attention(zero, zero, x, is_causal=True).flatten().tolist()

    with burst.context_parallel(mesh, buffers=[x], buffer_seq_dims=[2]):
        assert mean() == [n / 2 for n in order]
        with pytest.raises(ValueError, match="buffers: number 0 is a shard already"):
            with burst.context_parallel(mesh, buffers=[x], buffer_seq_dims=[2]):
                pass
        with burst.context_parallel(mesh, buffers=[y], buffer_seq_dims=[-1], order="contiguous"):
            assert y.tolist() == [n + 4.0 * rank for n in range(4)]
            assert mean() != [n / 2 for n in order] # shards of x in another order
        with pytest.raises(KeyError):
            with burst.context_parallel(mesh, buffers=[y], buffer_seq_dims=[0]):
                raise KeyError
        assert y.tolist() == list(range(8)) and x.shape[2] == 4
        assert mean() == [n / 2 for n in order]
    assert torch.equal(x, whole) and F.scaled_dot_product_attention is TORCH


def threads(mesh):
    """Another thread has the attention of torch; an imported name is replaced."""
    q = torch.randn(1, 2, 8, 4, generator=torch.Generator().manual_seed(0))
    shard, results = burst.Sequence(mesh).shard(q, 2), {}

    def elsewhere():
        results["elsewhere"] = F.scaled_dot_product_attention(q, q, q, is_causal=True)

    with burst.context_parallel(mesh):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        results["here"] = imported(shard, shard, shard, is_causal=True)
    whole = TORCH(q, q, q, is_causal=True)
    assert torch.equal(results["elsewhere"], whole)
    reference.assert_close(results["here"], burst.Sequence(mesh).shard(whole, 2))
    assert imported is TORCH


def attention_of_heads(mesh):
    """nn.MultiheadAttention calls scaled_dot_product_attention, or is refused."""
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    x = torch.randn(2, 8, 16)
    whole, shard = x.clone(), burst.Sequence(mesh).shard(x, 1)
    expected = module.double()(*(whole.double(),) * 3, need_weights=False)[0]
    module.float()
    for is_evaluated in (False, True):
        with burst.context_parallel(mesh) as cp, torch.set_grad_enabled(not is_evaluated):
            found = module.train(not is_evaluated)(*(shard,) * 3, need_weights=False)[0]
            with pytest.raises(ValueError, match="need_weights: must be False"):
                module(*(shard,) * 3)
        reference.assert_close(found, cp.shard(expected, 1))
    assert torch.backends.mha.get_fastpath_enabled()


def whole_again(model, *given):
    return checkpoint.checkpoint(model, *given, use_reentrant=False)


def attention_again(model, *given):
    model.attend = lambda *x: checkpoint.checkpoint(
        functools.partial(F.scaled_dot_product_attention, is_causal=True), *x, use_reentrant=True)
    return model(*given)


def checkpoints(mesh):
    """Inside they are right; behind the context the attention of torch would be
    computed again, which is an error."""
    for run in (whole_again, attention_again):
        training(mesh, S, True, run)
    with pytest.raises(checkpoint.CheckpointError):
        training(mesh, S, False, whole_again)


def compiled(mesh):
    """One graph inside, one outside, as often as the context is entered."""
    import torch._dynamo.testing
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    model, given = Model(), batch()
    graph = torch.compile(model, fullgraph=True, backend=counter)
    expected = wanted(given)
    for turn in range(3):
        model.zero_grad()
        with burst.context_parallel(mesh, buffers=list(given), buffer_seq_dims=[1, 1, 0]):
            loss = graph(*given)
            if turn == 1:
                loss.backward()
        if turn != 1:
            loss.backward()
        check(loss, model, expected)
        reference.assert_close(graph(*given), expected[0])
    assert counter.frame_count == 2


ATTENTIONS = [(dict(is_causal=True, scale=0.3),), (dict(attn_mask=KEPT),), (dict(attn_mask=BIAS),)]
CASES = [(training, S, True), (training, 45, False), (as_torch_shards,), (nested_and_failing,),
         (threads,), (attention_of_heads,), (checkpoints,), (a_mask_of_a_shard,),
         (masks_of_heads,), *((arguments_of_attention, *given) for given in ATTENTIONS)]


def of_transformers(mesh):
    """Models call scaled_dot_product_attention, without a mask if they are told that
    there is no padding: jumps of position_ids are packed sequences to them."""
    import transformers
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=64)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    tokens = torch.randint(0, 64, (2, S))
    positions = torch.arange(S).repeat(2, 1)
    expected = model.double()(tokens, position_ids=positions, use_cache=False).logits
    model.float()
    with burst.context_parallel(mesh, buffers=[tokens, positions], buffer_seq_dims=[1, 1]) as cp:
        arguments = dict(position_ids=positions, use_cache=False)
        found = model(tokens, attention_mask=torch.ones_like(tokens), **arguments).logits
        if mesh.get_local_rank() == 0: # those of the last rank have no jump
            with pytest.raises(ValueError, match="transformers make one where position_ids jump"):
                model(tokens, **arguments)
    reference.assert_close(found, cp.shard(expected, 1))


def all_cases(cases):
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),),
                                             mesh_dim_names=("cp",))["cp"]
    for function, *arguments in cases:
        try:
            function(mesh, *arguments)
        except Exception as error:
            raise AssertionError(f"rank {dist.get_rank()} of {function} {arguments}") from error
        dist.barrier()


def unmarked_cases():
    all_cases(CASES)


@pytest.mark.all
def test_ranks(tmp_path):
    on_ranks(2, tmp_path, unmarked_cases)


def more_cases():
    orders = [functools.partial(training, order=order, strategy=strategy)
              for order in ("zigzag", "contiguous", "striped")
              for strategy in ("ring_kv", "ring_q", "all_gather")]
    of_attention = functools.partial(arguments_of_attention, order="contiguous",
                                     strategy="all_gather")
    cases = [(compiled,), (of_transformers,), *((function, S + 3, True) for function in orders),
             *((of_attention, given) for given, in ATTENTIONS),
             (of_attention, dict(attn_mask=KEPT[:1, 0, :1]))]
    all_cases(cases)


@pytest.mark.long
def test_more_ranks(tmp_path):
    on_ranks(4, tmp_path, more_cases)


#===----------------------------------------------------------------------===#
# In one process
#===----------------------------------------------------------------------===#


@pytest.fixture(scope="module")
def mesh():
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield dist.device_mesh.init_device_mesh("cpu", (1,), mesh_dim_names=("cp",))["cp"]
    dist.destroy_process_group()


X, Y = torch.zeros(2, 12), torch.zeros(12)


@pytest.mark.parametrize("arguments, message", [
    (dict(buffers=[X], buffer_seq_dims=[1, 0]), "buffer_seq_dims: 2 dimensions of 1 buffers"),
    (dict(buffers=[X], buffer_seq_dims=[2]), "buffer_seq_dims: 2 of buffer 0"),
    (dict(buffers=[X]), "buffer_seq_dims: 0 dimensions"),
    (dict(buffers=[X, X], buffer_seq_dims=[1, 1]), "buffers: number 1 is there twice"),
    (dict(buffers=[X, Y[:7]], buffer_seq_dims=[1, 0]), "buffers: number 1 has 7 positions, number"),
    (dict(buffers=[torch.nn.Parameter(Y)], buffer_seq_dims=[0]), "buffers: number 0 requires grad"),
    (dict(buffers=["x"], buffer_seq_dims=[0]), "buffers: number 0 is no dense torch.Tensor"),
    (dict(buffers=[X], buffer_seq_dims=[1], no_restore_buffers={Y}), "no_restore_buffers: has a"),
    (dict(order="zag"), "order: 'zag' is not known"),
    (dict(strategy="ring"), "strategy: 'ring' is not known"),
    (dict(without=("ring",)), "without: 'ring' is not known"),
])
def test_refusals(mesh, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        with burst.context_parallel(mesh, **arguments):
            q = torch.zeros(1, 1, 12, 4)
            F.scaled_dot_product_attention(q, q, q)
    assert F.scaled_dot_product_attention is TORCH and X.shape == (2, 12)


def test_mesh_is_one_dimension():
    with pytest.raises(ValueError, match="mesh: one dimension of a DeviceMesh is wanted"):
        with burst.context_parallel(None):
            pass


@pytest.mark.parametrize("arguments, message", [
    (dict(dropout_p=0.1), "dropout_p: got 0.1"),
    (dict(attn_mask=torch.ones(12, 12), is_causal=True), "is_causal: cannot be set beside"),
    (dict(attn_mask=torch.ones(12, 12).int()), "attn_mask: bool or torch.float32"),
    (dict(attn_mask="causal"), "attn_mask: a torch.Tensor is wanted, got str"),
    (dict(key=torch.zeros(1, 2, 5, 4), value=torch.zeros(1, 2, 5, 4)), "key: 5 positions, where"),
    (dict(query=torch.zeros(1, 2, 10, 4)), "query: 10 positions, where this rank has 12 of the 12"),
    (dict(key=torch.zeros(1, 1, 12, 4), value=torch.zeros(1, 1, 12, 4)), "enable_gqa: must be set"),
])
def test_refusals_of_attention(mesh, arguments, message):
    q = torch.zeros(1, 2, 12, 4)
    x = X.clone()
    with pytest.raises((TypeError, ValueError), match=message):
        with burst.context_parallel(mesh, buffers=[x], buffer_seq_dims=[1]):
            F.scaled_dot_product_attention(**{"query": q, "key": q, "value": q, **arguments})
    assert F.scaled_dot_product_attention is TORCH


def test_without_buffers_lengths_are_free(mesh):
    q, k, v = reference.draw(1, 2, 2, 7, 9, 4)
    with burst.context_parallel(mesh):
        found = F.scaled_dot_product_attention(q, k, v)
        with pytest.raises(ValueError, match="is_causal: of 7 queries and 9 keys"):
            F.scaled_dot_product_attention(q, k, v, is_causal=True)
    reference.assert_close(found, TORCH(q, k, v))


def test_hooks_around_the_context(mesh):
    """Those of the caller, such as of offloading, still see what is saved."""
    seen = []
    x = torch.randn(3, 12)
    weight = torch.randn(12, requires_grad=True)

    def pack(y):
        seen.append(y.shape)
        return y

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda y: y):
        with burst.context_parallel(mesh, buffers=[x], buffer_seq_dims=[1]):
            loss = (weight * x).sum()
    assert torch.Size([3, 12]) in seen
    loss.backward()
    assert torch.equal(weight.grad, x.sum(0))


def test_a_shard_that_changes_in_place(mesh):
    """What autograd has saved must not: the error is torch's."""
    x = torch.randn(3, 12)
    weight = torch.randn(12, requires_grad=True)
    with burst.context_parallel(mesh, buffers=[x], buffer_seq_dims=[1]):
        loss = (weight * x).sum()
        x.zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
