# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each argument of the interfaces of others has its effect, or is refused by name."""

import dataclasses
import enum
import functools
import inspect
import sys
import types
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.nn.attention.flex_attention import create_block_mask

import burst
import reference
from burst.integrations import megatron, packing, torchtitan
from burst.integrations import ring_flash_attention as ring
from test_ranks import on_ranks

H, HK, D = 4, 2, 8


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def qkv(*lead, keys=None, seed=0):
    """q, k, v of (*lead, heads, dim); `keys` are the leading sizes of k and v."""
    return [draw(*lead, H, D, seed=seed),
            *(draw(*(keys or lead), HK, D, seed=seed + n) for n in (1, 2))]


def by_definition(q, k, v, mask=None, score=None, scale=None):
    """Of (batch, sequence, heads, dim): o and lse, in float64."""
    o, lse = reference.attention(*(x.transpose(1, 2) for x in (q, k, v)), mask, score, scale)
    return o.transpose(1, 2), lse


def finite(x):
    return torch.where(torch.isfinite(x), x.double(), 0.0)


def check(attend, expect, inputs, split, places, shared=()):
    """attend, of shards, against expect, of whole tensors: results and gradients.
    `split(x, place)` gives this rank's part, and `places` say which dimension that is
    in each of the results. Gradients of `shared` are those of all ranks."""
    wanted = expect(*inputs)
    weights = [draw(*x.shape, seed=n + 9).detach().double() for n, x in enumerate(wanted)]
    loss = sum((finite(x) * w).sum() for x, w in zip(wanted, weights))
    expected = torch.autograd.grad(loss, [*inputs, *shared])
    shards = [split(x.detach(), places[0]).requires_grad_() for x in inputs]
    found = attend(*shards)
    assert len(found) == len(wanted)
    for x, y, place in zip(found, wanted, places):
        reference.assert_close(x, split(y, place), "result")
    loss = sum((finite(x) * split(w, place)).sum()
               for x, w, place in zip(found, weights, places))
    parts = torch.autograd.grad(loss, [*shards, *shared])
    for n, (x, y) in enumerate(zip(parts, expected)):
        if n < len(shards):
            y = split(y, places[0])
        elif dist.get_world_size() > 1:
            dist.all_reduce(x)
        reference.assert_close(x, y, f"gradient {n}")


def flash(num_queries, num_keys, causal=False, window_size=(-1, -1), softcap=0.0,
          alibi_slopes=None, softmax_scale=None):
    """What FlashAttention's arguments mean: mask, score and scale of one sequence."""
    left, right = window_size
    right = 0 if causal else right
    shift = num_keys - num_queries

    def mask(b, h, i, j):
        d = i + shift - j
        kept = d == d
        kept = kept & (d <= left) if left >= 0 else kept
        return kept & (d >= -right) if right >= 0 else kept

    def score(s, b, h, i, j):
        if softcap:
            s = softcap * torch.tanh(s / softcap)
        if alibi_slopes is not None:
            slope = alibi_slopes[h] if alibi_slopes.dim() == 1 else alibi_slopes[b, h]
            s = s - slope * (i + shift - j).abs()
        return s

    return mask, score, softmax_scale


def of_each(offsets, key_offsets, q, k, v, **arguments):
    """Of packed sequences (tokens, heads, dim), each by itself."""
    parts = []
    slopes = arguments.pop("alibi_slopes", None)
    for n in range(len(offsets) - 1):
        own, keys = slice(*offsets[n:n + 2]), slice(*key_offsets[n:n + 2])
        own_slopes = slopes[n] if slopes is not None and slopes.dim() == 2 else slopes
        parts.append(by_definition(q[own][None], k[keys][None], v[keys][None], *flash(
            own.stop - own.start, keys.stop - keys.start, alibi_slopes=own_slopes, **arguments)))
    return torch.cat([o[0] for o, _ in parts]), torch.cat([lse[0] for _, lse in parts], 1)


SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625]).requires_grad_()
SLOPES2 = torch.stack([SLOPES.detach(), 2 * SLOPES.detach(), 3 * SLOPES.detach()]).requires_grad_()


#===----------------------------------------------------------------------===#
# ring-flash-attention
#===----------------------------------------------------------------------===#

ORDERS = {"ring": "contiguous", "zigzag_ring": "zigzag", "stripe": "striped"}


def ring_batch(name, arguments, num_queries=16, num_keys=16):
    """One of the functions of a batch, and its packed forms."""
    cp = burst.Sequence(dist.group.WORLD, ORDERS[name])
    inputs = qkv(2, num_queries, keys=(2, num_keys))
    slopes = arguments.get("alibi_slopes")

    def attend(*x):
        o, lse, nothing = getattr(ring, f"{name}_flash_attn_func")(
            *x, return_attn_probs=True, deterministic=True, **arguments)
        assert nothing is None
        return o, lse

    check(attend, lambda *x: by_definition(*x, *flash(num_queries, num_keys, **arguments)),
          inputs, cp.shard, (1, 2), () if slopes is None else (slopes,))
    q, k, v = (cp.shard(x.detach(), 1) for x in inputs)
    o = getattr(ring, f"{name}_flash_attn_func")(q, k, v, **arguments)
    packed = getattr(ring, f"{name}_flash_attn_kvpacked_func")
    assert num_queries != num_keys or torch.equal(packed(q, torch.stack((k, v), 2), **arguments), o)
    q = q[:, :, :HK] # as many heads as keys have
    if slopes is None and num_queries == num_keys:
        o = getattr(ring, f"{name}_flash_attn_func")(q, k, v, **arguments)
        packed = getattr(ring, f"{name}_flash_attn_qkvpacked_func")
        assert torch.equal(packed(torch.stack((q, k, v), 2), **arguments), o)


def split_each(x, dim, offsets, order):
    """As ring-flash-attention shards packed sequences: each by itself."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    layout = burst.Layout(ranks, order)
    held = [offset + place for offset, end in zip(offsets, offsets[1:])
            for place in layout.positions(rank, end - offset)]
    return x.index_select(dim, torch.tensor(held))


def ring_packed(name, offsets, arguments):
    ranks = dist.get_world_size()
    cu_seqlens = torch.tensor(offsets, dtype=torch.int32) // ranks
    longest = int((cu_seqlens[1:] - cu_seqlens[:-1]).max())
    inputs = qkv(offsets[-1])
    split = functools.partial(split_each, offsets=offsets, order=ORDERS[name])
    slopes = arguments.get("alibi_slopes")

    def attend(*x):
        return getattr(ring, f"{name}_flash_attn_varlen_func")(
            *x, cu_seqlens, longest, return_attn_probs=True, group=dist.group.WORLD,
            **arguments)[:2]

    check(attend, lambda *x: of_each(offsets, offsets, *x, **arguments), inputs, split, (0, 1),
          () if slopes is None else (slopes,))
    q, k, v = (split(x.detach(), 0)[:, :HK] for x in inputs)
    if slopes is None:
        o = getattr(ring, f"{name}_flash_attn_varlen_func")(q, k, v, cu_seqlens, longest,
                                                            **arguments)
        for form, given in (("kv", (q, torch.stack((k, v), 1))),
                            ("qkv", (torch.stack((q, k, v), 1),))):
            packed = getattr(ring, f"{name}_flash_attn_varlen_{form}packed_func")
            assert torch.equal(packed(*given, cu_seqlens, longest, **arguments), o)


def ring_llama3(offsets, arguments):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    cu_seqlens = torch.tensor(offsets, dtype=torch.int32)
    prepared = ring.llama3_flash_attn_prepare_cu_seqlens(
        cu_seqlens, arguments.get("causal", False), rank, ranks)
    cu_q, cu_k, longest_q, longest_k, keys = prepared
    cp = burst.Sequence(dist.group.WORLD, "contiguous")
    inputs = qkv(offsets[-1])
    slopes = arguments.get("alibi_slopes")

    def attend(*x):
        return ring.llama3_flash_attn_varlen_func(
            *x, cu_q, cu_k, longest_q, longest_k, 1, keys, return_attn_probs=True,
            **arguments)[:2]

    check(attend, lambda *x: of_each(offsets, offsets, *x, **arguments), inputs, cp.shard, (0, 1),
          () if slopes is None else (slopes,))
    # What the offsets say, for FlashAttention on this rank's queries and their keys.
    q, k, v = (x.detach() for x in inputs)
    q = cp.shard(q, 0)
    found = attend(q, *(cp.shard(x, 0) for x in (k, v)))
    if slopes is None:
        wanted = of_each(cu_q.tolist(), cu_k.tolist(), q, k[keys], v[keys], **arguments)
        for x, y in zip(found, wanted):
            reference.assert_close(x, y)
    q, k, v = (cp.shard(x, 0)[:, :HK] for x in (inputs[0].detach(), k, v))
    rest = cu_q, cu_k, longest_q, longest_k, 2, keys
    if slopes is None:
        o = ring.llama3_flash_attn_varlen_func(q, k, v, *rest, **arguments)
        for form, given in (("kv", (q, torch.stack((k, v), 1))),
                            ("qkv", (torch.stack((q, k, v), 1),))):
            packed = getattr(ring, f"llama3_flash_attn_varlen_{form}packed_func")
            assert torch.equal(packed(*given, *rest, **arguments), o)


RING = [
    (ring_batch, "zigzag_ring", dict(causal=True, alibi_slopes=SLOPES, softmax_scale=0.3)),
    (ring_packed, "zigzag_ring", [0, 8, 12, 24], dict(causal=True)),
    (ring_packed, "ring", [0, 8, 12, 24], dict(window_size=(3, 1), softcap=2.0)),
    (ring_llama3, [0, 7, 14, 24], dict(causal=True)),
]
MORE_RING = [
    *((ring_batch, name, arguments) for name in ORDERS for arguments in (
        dict(), dict(window_size=(3, 2)), dict(causal=True, softcap=1.5),
        dict(causal=True, alibi_slopes=SLOPES2[:2]), dict(window_size=(-1, 4)))),
    (ring_batch, "zigzag_ring", dict(causal=True), 16, 24),
    (ring_batch, "ring", dict(causal=True, window_size=(5, 3)), 16, 24),
    *((ring_packed, name, offsets, arguments) for name in ("ring", "zigzag_ring")
      for offsets in ([0, 16, 24, 64], [0, 40]) for arguments in (
          dict(), dict(causal=True, window_size=(4, -1)),
          dict(causal=True, alibi_slopes=SLOPES, softmax_scale=0.2))),
    (ring_packed, "zigzag_ring", [0, 16, 24, 64], dict(causal=True, alibi_slopes=SLOPES2)),
    *((ring_llama3, offsets, arguments) for offsets in ([0, 7, 14, 24], [0, 6, 12], [0, 24])
      for arguments in (dict(), dict(causal=True, window_size=(3, 0)), dict(softcap=2.0),
                        dict(causal=True, alibi_slopes=SLOPES))),
]


#===----------------------------------------------------------------------===#
# Megatron-Core
#===----------------------------------------------------------------------===#

AttnMaskType = enum.Enum("AttnMaskType", ["padding", "causal", "no_mask", "padding_causal",
                                          "arbitrary", "causal_bottom_right"])


@dataclasses.dataclass
class Config:
    """The fields of TransformerConfig that concern attention, with Megatron's defaults,
    but for dropout."""

    num_attention_heads: int = H
    num_query_groups: int = HK
    kv_channels: int = D
    attention_dropout: float = 0.0
    context_parallel_size: int = 1
    tensor_model_parallel_size: int = 1
    cp_comm_type: Any = None
    hierarchical_context_parallel_sizes: Any = None
    hybrid_context_parallel: bool = False
    softmax_scale: Any = None
    softmax_type: str = "vanilla"
    window_size: Any = None
    window_attn_skip_freq: Any = None
    apply_query_key_layer_scaling: bool = False
    attention_softmax_in_fp32: bool = True
    masked_softmax_fusion: bool = False
    attention_backend: str = "auto"
    flash_attention_version: Any = None
    fp8_dot_product_attention: bool = False
    fp8_multi_head_attention: bool = False
    qk_clip: bool = False
    log_max_attention_logit: bool = False
    batch_invariant_mode: bool = False
    deterministic_mode: bool = False
    use_kitchen_attention: bool = False
    experimental_attention_variant: Any = None
    params_dtype: torch.dtype = torch.float32
    perform_initialization: bool = True
    use_cpu_initialization: bool = True
    init_method: Any = functools.partial(torch.nn.init.normal_, std=0.5)


@dataclasses.dataclass
class Packed:
    """PackedSeqParams."""

    qkv_format: Any = "thd"
    cu_seqlens_q: Any = None
    cu_seqlens_kv: Any = None
    cu_seqlens_q_padded: Any = None
    cu_seqlens_kv_padded: Any = None
    max_seqlen_q: Any = None
    max_seqlen_kv: Any = None
    local_cp_size: Any = None
    cp_group: Any = None
    total_tokens: Any = None
    seq_idx: Any = None
    tokens_per_sample: Any = None
    pad_between_seqs: Any = None
    cp_scatter_cache: Any = None


def core(config=None, kind=AttnMaskType.causal, layer_number=1, attention_type="self",
         pg_collection=types.SimpleNamespace(tp=None, cp=None), **arguments):
    return megatron.CoreAttention(config=config or Config(), layer_number=layer_number,
                                  attn_mask_type=kind, attention_type=attention_type,
                                  pg_collection=pg_collection, **arguments)


def with_sink(o, lse, sinks):
    """(batch, sequence, heads, dim) and (batch, heads, sequence)."""
    kept = torch.sigmoid(lse - sinks[:, None]).transpose(1, 2)
    return torch.where(torch.isfinite(lse).transpose(1, 2), kept, 0.0)[..., None] * o


def expect_core(q, k, v, mask=None, score=None, scale=None, sinks=None):
    """Of (sequence, batch, heads, dim), in the shape of Megatron's result."""
    o, lse = by_definition(*(x.transpose(0, 1) for x in (q, k, v)), mask, score, scale)
    if sinks is not None:
        o = with_sink(o, lse, sinks.double())
    return (o.transpose(0, 1).flatten(2),)


def collection(group):
    return types.SimpleNamespace(tp=None, cp=group)


def megatron_batch(comm, fields, kind, given, mask, score=None):
    """Sharded, with a learnable sink: results and gradients, and that of the sink."""
    group, ranks = dist.group.WORLD, dist.get_world_size()
    torch.manual_seed(3)
    module = core(Config(context_parallel_size=ranks, softmax_type="learnable", **fields), kind,
                  cp_comm_type=comm, pg_collection=collection(group))
    cp = burst.Sequence(group, "zigzag")
    sinks = module.softmax_offset
    bias = given.get("attention_bias")
    check(lambda *x: (module(*x, given.get("attention_mask"), attn_mask_type=kind,
                             attention_bias=bias),),
          lambda *x: expect_core(*x, mask, score, sinks=sinks), qkv(16, 2), cp.shard, (0, 0),
          (sinks,) if bias is None else (sinks, bias))


WHOLE_MASK = torch.rand(2, 1, 16, 16, generator=torch.Generator().manual_seed(8)) < 0.3
WHOLE_BIAS = draw(1, H, 16, 16, seed=4)


def megatron_packed(lengths, spaces, kind, window, own_group=False):
    """Packed sequences, padded to a multiple of twice the number of ranks."""
    ranks = dist.get_world_size()
    config = Config(context_parallel_size=1 if own_group else ranks, window_size=window)
    module = core(config, kind, pg_collection=None if own_group else collection(dist.group.WORLD),
                  cp_comm_type="p2p")
    offsets, padded = ([0, *torch.tensor(x).cumsum(0).tolist()] for x in (lengths, spaces))
    packed = Packed(cu_seqlens_q=torch.tensor(offsets, dtype=torch.int32),
                    cu_seqlens_kv=torch.tensor(offsets, dtype=torch.int32),
                    max_seqlen_q=max(lengths), max_seqlen_kv=max(lengths), total_tokens=padded[-1])
    if lengths != spaces:
        packed.cu_seqlens_q_padded = packed.cu_seqlens_kv_padded = torch.tensor(padded)
        packed.pad_between_seqs = True
    if own_group:
        packed.cp_group, packed.local_cp_size = dist.group.WORLD, ranks

    def expect(q, k, v):
        o = torch.zeros(padded[-1], H, D, dtype=torch.float64)
        for begin, length in zip(padded, lengths):
            own = slice(begin, begin + length)
            part, _ = by_definition(q[own][None], k[own][None], v[own][None], *flash(
                length, length, "causal" in kind.name, window or (-1, -1)))
            o[own] = part[0]
        return (o.flatten(1),)

    split = functools.partial(split_each, offsets=padded, order="zigzag")
    check(lambda *x: (module(*x, None, attn_mask_type=kind, attention_bias=None,
                             packed_seq_params=packed),), expect, qkv(padded[-1]), split, (0, 0))


def masked_out(b, h, i, j):
    return (i >= j) & ~WHOLE_MASK[b, 0, i, j]


def windowed(b, h, i, j):
    return (i >= j) & (i - j <= 3)


def biased(s, b, h, i, j):
    return s + WHOLE_BIAS[0, h, i, j]


MEGATRON = [
    (megatron_batch, "p2p", dict(window_size=(3, 0)), AttnMaskType.causal, {}, windowed),
    (megatron_batch, "a2a", dict(window_size=(3, 0)), AttnMaskType.causal, {}, windowed),
    (megatron_packed, [7, 3, 8], [8, 4, 8], AttnMaskType.causal, None),
]
MORE_MEGATRON = [
    (megatron_batch, "all_gather", {}, AttnMaskType.causal, dict(attention_mask=WHOLE_MASK),
     masked_out),
    (megatron_batch, None, {}, AttnMaskType.no_mask, dict(attention_bias=WHOLE_BIAS), None, biased),
    (megatron_packed, [16, 8, 32], [16, 8, 32], AttnMaskType.padding_causal, (5, 0)),
    (megatron_packed, [16, 8, 30], [16, 8, 32], AttnMaskType.padding, None, True),
]


#===----------------------------------------------------------------------===#
# TorchTitan
#===----------------------------------------------------------------------===#


class ScaledDotProductAttention(torch.nn.Module):
    pass


class FlexAttention(torch.nn.Module):
    kernel_options: Any = {}


DOCUMENTS = torch.tensor([0] * 9 + [1] * 15)


def document_mask(b, h, i, j):
    return (i >= j) & (DOCUMENTS[i] == DOCUMENTS[j])


def softcap(s, b, h, i, j):
    return 3 * torch.tanh(s / 3)


def titan(balancer):
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),),
                                             mesh_dim_names=("cp",))["cp"]
    cp = burst.Sequence(mesh, "zigzag" if balancer else "contiguous")
    tokens, labels, positions = torch.arange(24), torch.arange(24) + 1, torch.arange(24) % 9
    block_mask = create_block_mask(document_mask, 1, 1, 24, 24, device="cpu")
    kwargs = {"positions": positions, "attention_masks": {"all": block_mask}, "other": 5}
    a, b, c = torchtitan.prepare_context_parallel_input(tokens, labels, kwargs, mesh, "cpu",
                                                        balancer)
    assert c is kwargs and c["other"] == 5 and c["attention_masks"]["all"] is block_mask
    for x, y in zip((a, b, c["positions"]), (tokens, labels, positions)):
        assert torch.equal(x, cp.shard(y, 0))
    (x,), masks = torchtitan.cp_shard(mesh, (tokens.reshape(2, 12),), None, balancer, 1)
    assert torch.equal(x, cp.shard(tokens.reshape(2, 12), 1)) and masks is None

    flex, sdpa = FlexAttention(), ScaledDotProductAttention()
    torchtitan.apply_cp_to_forward([flex, sdpa], mesh, load_balancer_type=balancer)
    check(lambda *x: (flex(*x, attention_masks=block_mask, score_mod=softcap, scale=0.3,
                           enable_gqa=True, out_transform=lambda o, lse: o * lse[..., None]),),
          lambda *x: (lambda o, lse: ((o * lse.transpose(1, 2)[..., None])[0],))(
              *by_definition(*(y[None] for y in x), document_mask, softcap, 0.3)),
          qkv(24), cp.shard, (0, 0))
    cases = [(dict(), causal)] if balancer else [(dict(), causal), (dict(is_causal=False), None)]
    for arguments, mask in cases:
        check(lambda *x: (sdpa(*x, enable_gqa=True, **arguments),),
              lambda *x: by_definition(*x, mask)[:1], qkv(2, 12), cp.shard, (1, 1))


#===----------------------------------------------------------------------===#
# On ranks
#===----------------------------------------------------------------------===#


def all_cases(cases):
    for function, *arguments in cases:
        try:
            function(*arguments)
        except Exception as error:
            raise AssertionError(f"rank {dist.get_rank()} of {function.__name__} "
                                 f"{arguments}") from error
        dist.barrier()


def unmarked_cases():
    all_cases([*RING, *MEGATRON, (titan, "headtail")])


@pytest.mark.all
def test_ranks(tmp_path):
    on_ranks(2, tmp_path, unmarked_cases)


def more_cases():
    all_cases([*MORE_RING, *MORE_MEGATRON, (titan, None)])


@pytest.mark.long
def test_more_ranks(tmp_path):
    on_ranks(4, tmp_path, more_cases)


#===----------------------------------------------------------------------===#
# In one process
#===----------------------------------------------------------------------===#


@pytest.fixture(scope="module", autouse=True)
def group():
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_names_are_there():
    assert burst.integrations.megatron is megatron
    assert {"context_parallel", "integrations"} <= set(burst.__all__)
    for module in (ring, burst.integrations):
        for name in module.__all__:
            assert getattr(module, name).__name__.endswith(name)
    with pytest.raises(AttributeError, match="'burst.integrations' has no attribute 'jax'"):
        burst.integrations.jax
    upstream = ["q", "k", "v", "dropout_p", "softmax_scale", "causal", "window_size",
                "alibi_slopes", "deterministic", "return_attn_probs", "group"]
    given = list(inspect.signature(ring.zigzag_ring_flash_attn_func).parameters)
    assert given == [*upstream, "softcap"]
    given = list(inspect.signature(ring.llama3_flash_attn_varlen_func).parameters)
    assert given == [*upstream[:3], "cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k",
                     "heads_k_stride", "local_k_slice", *upstream[3:], "softcap"]


BATCH = [x.detach() for x in qkv(2, 12)]
PACKED = [x.detach() for x in qkv(12)]
CU = torch.tensor([0, 4, 12])


@pytest.mark.parametrize("arguments, message", [
    (dict(dropout_p=0.1), "dropout_p: got 0.1"),
    (dict(window_size=(-2, 0)), r"window_size: \(left, right\) of at least 0"),
    (dict(softcap=-1.0), "softcap: positive, or 0"),
    (dict(alibi_slopes=torch.ones(3)), r"alibi_slopes: \(4,\) or \(2, 4\) are wanted"),
    (dict(softmax_scale=float("nan")), "scale: must be finite"),
    (dict(group=3), "wants a DeviceMesh dimension, a ProcessGroup, a communicator"),
])
def test_refusals_of_ring_flash_attention(arguments, message):
    prepared = ring.llama3_flash_attn_prepare_cu_seqlens(CU, False, 0, 1)
    for function, given in ((ring.ring_flash_attn_func, BATCH),
                            (ring.zigzag_ring_flash_attn_varlen_func, [*PACKED, CU, 8]),
                            (ring.llama3_flash_attn_varlen_func, [*PACKED, *prepared[:4], 1,
                                                                  prepared[4]])):
        with pytest.raises((TypeError, ValueError), match=message):
            function(*given, **arguments)


@pytest.mark.parametrize("function, given, message", [
    (ring.ring_flash_attn_func, PACKED, r"q: \(batch, sequence, heads, dim\) is wanted"),
    (ring.zigzag_ring_flash_attn_func, [x[:, :11] for x in BATCH], "q: 11 positions, which are no"),
    (ring.ring_flash_attn_kvpacked_func, [BATCH[0], BATCH[1]], r"kv: \(batch, sequence, 2, heads"),
    (ring.ring_flash_attn_varlen_qkvpacked_func, [PACKED[0], CU, 8], r"qkv: \(tokens, 3, heads,"),
    (ring.ring_flash_attn_varlen_func, [*BATCH, CU, 8], r"q: \(tokens, heads, dim\) is wanted"),
    (ring.ring_flash_attn_varlen_func, [*PACKED, CU[:2], 8], "q: 12 tokens, of which cu_seqlens"),
    (ring.ring_flash_attn_varlen_func, [*PACKED, CU[[1, 0, 2]], 8], "cu_seqlens: must rise from 0"),
    (ring.ring_flash_attn_varlen_func, [*PACKED, [0, 12], 12], "cu_seqlens: integers of one dim"),
    (ring.ring_flash_attn_varlen_func, [*PACKED, CU, 5], "max_seqlen: got 5, a sequence has 8"),
    (ring.zigzag_ring_flash_attn_varlen_func, [*PACKED, torch.tensor([0, 5, 12]), 8],
     "cu_seqlens: sequence 0 has 5 tokens over 1 ranks, which do not make 2 equal chunks"),
])
def test_shapes_of_ring_flash_attention(function, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        function(*given)


def test_llama3_takes_what_was_prepared():
    cu_q, cu_k, longest_q, longest_k, keys = \
        ring.llama3_flash_attn_prepare_cu_seqlens(CU, True, 0, 1)
    given = dict(cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, max_seqlen_q=longest_q,
                 max_seqlen_k=longest_k, heads_k_stride=1, local_k_slice=keys, causal=True)
    ring.llama3_flash_attn_varlen_func(*PACKED, **given)
    ring.llama3_flash_attn_varlen_func(*PACKED, **{**given, "cu_seqlens_k": cu_k.clone()})
    elsewhere = ring.llama3_flash_attn_prepare_cu_seqlens(CU, True, 1, 2)[0]
    for arguments, message in (
            (dict(cu_seqlens_q=cu_q.clone()), "cu_seqlens_q: must be the tensor that burst"),
            (dict(cu_seqlens_q=elsewhere), "group: this is rank 0 of 1; cu_seqlens_q was prepared"),
            (dict(cu_seqlens_k=cu_k + 1), "cu_seqlens_k: .* is not what was prepared"),
            (dict(local_k_slice=slice(1, 12)), "local_k_slice: .* is not what was prepared"),
            (dict(max_seqlen_q=2), "max_seqlen_q: got 2, a sequence has 8"),
            (dict(max_seqlen_k=2), "max_seqlen_k: got 2, a sequence has 8"),
            (dict(heads_k_stride=3), "heads_k_stride: a divisor of the 2 heads"),
            (dict(causal=False), "causal: False, where llama3_flash_attn_prepare_cu_seqlens was")):
        with pytest.raises(ValueError, match=message):
            ring.llama3_flash_attn_varlen_func(*PACKED, **{**given, **arguments})
    for arguments, message in (((CU, True, 2, 2), "rank: from 0 to 1, got 2"),
                               ((CU, True, 0, 5), "cu_seqlens: 12 tokens do not divide into 5")):
        with pytest.raises(ValueError, match=message):
            ring.llama3_flash_attn_prepare_cu_seqlens(*arguments)


def test_offsets_of_llama3():
    """Of each rank: what FlashAttention would be given."""
    for offsets in ([0, 7, 14, 16], [0, 2, 4, 16], [0, 16]):
        for causal in (True, False):
            for rank in range(8):
                cu_q, cu_k, longest_q, longest_k, keys = ring.llama3_flash_attn_prepare_cu_seqlens(
                    torch.tensor(offsets, dtype=torch.int32), causal, rank, 8)
                begin, end = 2 * rank, 2 * rank + 2
                held = [(max(a, begin), min(b, end), a, min(b, end) if causal else b)
                        for a, b in zip(offsets, offsets[1:]) if a < end and b > begin]
                assert cu_q.tolist() == [0, *(b - begin for _, b, _, _ in held)]
                assert keys == slice(held[0][2], held[-1][3])
                assert cu_k.tolist() == [0, *(b - held[0][2] for _, _, _, b in held)]
                assert longest_q == max(b - a for a, b, _, _ in held)
                assert longest_k == max(b - a for _, _, a, b in held)
                assert cu_q.dtype == cu_k.dtype == torch.int32


def test_layouts_of_packed_sequences():
    """As Transformer Engine and ring-flash-attention deal them."""
    offsets = torch.tensor([0, 8, 12, 24])
    for order in ("contiguous", "zigzag"):
        side = packing.side(offsets, offsets, burst.Layout(2, order), "cu_seqlens")
        ids, places = [], []
        for rank in range(2):
            for n, (begin, end) in enumerate(zip(offsets.tolist(), offsets.tolist()[1:])):
                held = burst.Layout(2, order).positions(rank, end - begin)
                ids += [n] * len(held)
                places += held
        assert side.ids.tolist() == ids and side.places.tolist() == places


# Megatron, where the sequence is whole.

QKV = [x.detach() for x in qkv(12, 2)]


def causal(b, h, i, j):
    return i >= j


def test_core_attention_with_each_field():
    """Those that change attention do so, as in the definition; others do not."""
    plain = core().eval()(*QKV, None)
    assert plain.shape == (12, 2, H * D) and plain.is_contiguous()
    reference.assert_close(plain, expect_core(*QKV, causal)[0])
    for fields, arguments, expected in (
            (dict(softmax_scale=0.2), {}, (causal, None, 0.2)),
            (dict(softmax_scale=0.2), dict(softmax_scale=0.4), (causal, None, 0.4)),
            (dict(window_size=(3, 0)), {}, (lambda b, h, i, j: (i >= j) & (i - j <= 3),)),
            (dict(window_size=(3, 5)), dict(kind=AttnMaskType.no_mask),
             (lambda b, h, i, j: (i - j >= -5) & (i - j <= 3),)),
            (dict(window_size=(3, 0), window_attn_skip_freq=2), dict(layer_number=2), (causal,)),
            (dict(window_size=(3, 0), window_attn_skip_freq=[1, 0]), dict(layer_number=1),
             (lambda b, h, i, j: (i >= j) & (i - j <= 3),)),
            (dict(softmax_type="off-by-one"), {}, (causal, None, None, torch.zeros(H)))):
        found = core(Config(**fields), **arguments)(*QKV, None)
        reference.assert_close(found, expect_core(*QKV, *expected)[0], str(fields))
    for fields in (dict(apply_query_key_layer_scaling=True), dict(deterministic_mode=True),
                   dict(attention_softmax_in_fp32=False), dict(masked_softmax_fusion=True),
                   dict(attention_backend="flash"), dict(num_query_groups=HK),
                   dict(experimental_attention_variant="gdn"), dict(hybrid_context_parallel=True),
                   dict(cp_comm_type="a2a")):
        assert torch.equal(core(Config(**fields), layer_number=3)(*QKV, None), plain), fields
    assert torch.equal(core(Config(attention_dropout=0.1)).eval()(*QKV, None), plain)
    assert torch.equal(core(Config(attention_dropout=0.1), attention_dropout=0.0)(*QKV, None),
                       plain)
    assert torch.equal(core(Config(kv_channels=5), k_channels=D, v_channels=D)(*QKV, None), plain)
    narrow = *QKV[:2], QKV[2][..., :4]
    found = core(k_channels=D, v_channels=4)(*narrow, None)
    assert found.shape == (12, 2, H * 4)
    reference.assert_close(found, expect_core(*narrow, causal)[0])


def test_core_attention_with_a_learnable_sink():
    config = Config(softmax_type="learnable", params_dtype=torch.float64)
    module = core(config)
    assert module.softmax_offset.dtype == torch.float64 and module.softmax_offset.std() > 0
    assert list(module.state_dict()) == ["softmax_offset"]
    found = module(*QKV, None)
    reference.assert_close(found, expect_core(*QKV, causal, sinks=module.softmax_offset)[0])
    found.sum().backward()
    assert module.softmax_offset.grad.abs().sum() > 0
    zero = core(Config(softmax_type="learnable", perform_initialization=False,
                       tensor_model_parallel_size=2))
    assert zero.softmax_offset.tolist() == [0.0] * (H // 2)
    two = types.SimpleNamespace(tp=types.SimpleNamespace(size=lambda: 4), cp=None)
    assert core(config, pg_collection=two).softmax_offset.shape == (1,)
    assert list(core(Config(softmax_type="off-by-one")).state_dict()) == []


def test_core_attention_with_each_mask():
    tokens = torch.tensor([[0] * 12, [0] * 9 + [1] * 3]).bool()[:, None, None]
    pairs = torch.rand(2, H, 12, 12, generator=torch.Generator().manual_seed(6)) < 0.4
    bias = torch.randn(1, H, 12, 12, generator=torch.Generator().manual_seed(7))

    def padded(b, h, i, j):
        return ~tokens[b, 0, 0, i] & ~tokens[b, 0, 0, j]

    def of_pairs(b, h, i, j):
        return ~pairs[b, h, i, j]

    for kind, mask, expected in (
            (AttnMaskType.no_mask, None, None),
            (AttnMaskType.causal, None, causal),
            ("causal", None, causal),
            (AttnMaskType.causal_bottom_right, None, causal),
            (AttnMaskType.padding, tokens, padded),
            ("padding,causal", tokens, lambda *x: padded(*x) & causal(*x)),
            (AttnMaskType.padding_causal, tokens, lambda *x: padded(*x) & causal(*x)),
            (AttnMaskType.arbitrary, pairs, of_pairs),
            (AttnMaskType.causal, pairs[:, :1], lambda b, h, i, j: (i >= j) & ~pairs[b, 0, i, j]),
            (AttnMaskType.padding, pairs, of_pairs)):
        found = core()(*QKV, mask, attn_mask_type=kind)
        reference.assert_close(found, expect_core(*QKV, expected)[0], str(kind))
    found = core()(*QKV, None, attention_bias=bias)
    reference.assert_close(found, expect_core(*QKV, causal,
                                              lambda s, b, h, i, j: s + bias[0, h, i, j])[0])
    # Other lengths of keys.
    q, k, v = (x.detach() for x in qkv(5, 2, keys=(12, 2)))
    found = core()(q, k, v, None, attn_mask_type=AttnMaskType.causal_bottom_right)
    reference.assert_close(found, expect_core(q, k, v, lambda b, h, i, j: i + 7 >= j)[0])
    found = core(kind="padding", attention_type="cross")(q, k, v, (tokens[..., 4:9], tokens))
    reference.assert_close(found, expect_core(q, k, v, lambda b, h, i, j: ~tokens[b, 0, 0, i + 4] &
                                              ~tokens[b, 0, 0, j])[0])


def test_core_attention_of_packed_sequences():
    q, k, v = (x.detach() for x in qkv(12, keys=(15,)))
    offsets, key_offsets = [0, 4, 10], [0, 5, 15]
    given = Packed(cu_seqlens_q=torch.tensor(offsets), cu_seqlens_kv=torch.tensor(key_offsets),
                   max_seqlen_q=6, max_seqlen_kv=torch.tensor(10), pad_between_seqs=False)
    module = core(Config(window_size=(3, 0)), attention_type="cross")
    found = module(q, k, v, None, attn_mask_type="padding_causal_bottom_right",
                   packed_seq_params=given)
    wanted, _ = of_each(offsets, key_offsets, q, k, v, causal=True, window_size=(3, 0))
    assert found.shape == (12, H * D) and not found[10:].any()
    reference.assert_close(found[:10], wanted.flatten(1))
    # From the first ones.
    found = core()(q, k, v, None, packed_seq_params=given)
    for n in range(2):
        own, keys = slice(*offsets[n:n + 2]), slice(*key_offsets[n:n + 2])
        part, _ = by_definition(q[own][None], k[keys][None], v[keys][None], causal)
        reference.assert_close(found[own], part[0].flatten(1))
    given.local_cp_size = torch.tensor(1)
    assert torch.equal(core()(q, k, v, None, packed_seq_params=given), found)


@pytest.mark.parametrize("fields, message", [
    (dict(batch_invariant_mode=True), "batch_invariant_mode: got True"),
    (dict(cp_comm_type=["a2a+p2p"], context_parallel_size=2), r"cp_comm_type: 'a2a\+p2p' is not"),
    (dict(experimental_attention_variant="dsa"), "experimental_attention_variant: got 'dsa'"),
    (dict(flash_attention_version=3), "flash_attention_version: got 3"),
    (dict(fp8_dot_product_attention=True), "fp8_dot_product_attention: got True"),
    (dict(fp8_multi_head_attention=True), "fp8_multi_head_attention: got True"),
    (dict(hierarchical_context_parallel_sizes=[2, 2]), "hierarchical_context_parallel_sizes: got"),
    (dict(log_max_attention_logit=True), "log_max_attention_logit: got True"),
    (dict(qk_clip=True), "qk_clip: got True"),
    (dict(softmax_type="sharp"), "softmax_type: vanilla, off-by-one or learnable, got 'sharp'"),
    (dict(use_kitchen_attention=True), "use_kitchen_attention: got True"),
    (dict(window_size=(-3, 0)), r"window_size: \(left, right\) of at least 0"),
])
def test_refusals_of_the_config(fields, message):
    with pytest.raises(ValueError, match=message):
        core(Config(**fields))


@pytest.mark.parametrize("arguments, message", [
    (dict(attention_type="both"), "attention_type: self or cross, got 'both'"),
    (dict(kind="diagonal"), "attn_mask_type: 'diagonal' is not known"),
    (dict(num_splits=4), "num_splits: got 4"),
])
def test_refusals_of_the_constructor(arguments, message):
    with pytest.raises(ValueError, match=message):
        core(**arguments)
    with pytest.raises(TypeError, match="cp_stream"):
        core(cp_stream=None)


SHORT = [x[:5] for x in QKV]
THD = [x.detach() for x in qkv(12)]


@pytest.mark.parametrize("fields, given, arguments, message", [
    (dict(attention_dropout=0.1), [*QKV, None], {}, "attention_dropout: got 0.1"),
    (dict(kv_channels=4), [*QKV, None], {}, "query: has a head dim of 8, k_channels or kv_chann"),
    ({}, [*QKV, None], dict(num_splits=2), "num_splits: got 2"),
    ({}, [*THD, None], {}, r"query: \(sequence, batch, heads, dim\) is wanted"),
    ({}, [SHORT[0], *QKV[1:], None], {}, "attn_mask_type: causal, of 5 queries and 12 keys"),
    ({}, [*QKV, None], dict(attn_mask_type="padding"), "attention_mask: is wanted, as attn_mask"),
    ({}, [*QKV, None], dict(attn_mask_type="arbitrary"), "attention_mask: is wanted, as attn_mask"),
    ({}, [*QKV, torch.ones(1, 1, 12, 12)], {}, "attention_mask: of bool, true where"),
    ({}, [*QKV, torch.ones(1, 1, 6, 12).bool()], {}, "attention_mask: .* does not broadcast"),
    ({}, [*QKV, torch.ones(1, 1, 12, 12).bool()], dict(attn_mask_type="no_mask"),
     "attention_mask: is given, and attn_mask_type is no_mask"),
    ({}, [*QKV, None], dict(attention_bias=torch.ones(1, H, 6, 12)), "attention_bias: .* does not"),
    (dict(window_size=(-1, 0)), [*QKV, None], dict(attn_mask_type="no_mask"),
     r"window_size: \(-1, 0\) is a causal mask"),
])
def test_refusals_of_the_forward(fields, given, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        core(Config(**fields))(*given, **arguments)


@pytest.mark.parametrize("fields, arguments, message", [
    (dict(qkv_format="sbhd"), {}, "packed_seq_params: qkv_format thd is wanted, got 'sbhd'"),
    (dict(cu_seqlens_kv=None), {}, "cu_seqlens_kv: is wanted in packed_seq_params"),
    (dict(cu_seqlens_kv=torch.tensor([0, 12])), {}, "cu_seqlens_kv: of 1 sequences, cu_seqlens_q"),
    (dict(cu_seqlens_q=torch.tensor([0, 4, 13])), {}, "cu_seqlens_q: 13 tokens of all 1 ranks"),
    (dict(cu_seqlens_q_padded=torch.tensor([0, 3, 12])), {}, "cu_seqlens_q: has sequences that"),
    (dict(cu_seqlens_kv_padded=torch.tensor([0, 5, 12]), pad_between_seqs=False,
          cu_seqlens_kv=torch.tensor([0, 4, 11])), {}, "pad_between_seqs: is False"),
    (dict(max_seqlen_q=3), {}, "max_seqlen_q: got 3, a sequence has 8 tokens"),
    (dict(max_seqlen_kv=3), {}, "max_seqlen_kv: got 3, a sequence has 8 tokens"),
    (dict(local_cp_size=2), {}, "local_cp_size: 2, where cp_group of packed_seq_params has 1"),
    ({}, dict(attn_mask_type="arbitrary"), "attn_mask_type: arbitrary is of batches"),
    ({}, dict(attention_mask=torch.ones(1, 1, 12, 12).bool()), "attention_mask: cannot be given"),
    ({}, dict(attention_bias=torch.ones(1, 1, 12, 12)), "attention_bias: cannot be given beside"),
])
def test_refusals_of_packed_sequences(fields, arguments, message):
    given = Packed(**{"cu_seqlens_q": CU, "cu_seqlens_kv": CU, **fields})
    with pytest.raises(ValueError, match=message):
        core()(*THD, **{"attention_mask": None, "packed_seq_params": given, **arguments})


def test_groups_of_megatron(group, monkeypatch):
    """Of pg_collection, of megatron.core.parallel_state, or set afterwards."""
    config = Config(context_parallel_size=2)
    with pytest.raises(ValueError, match="pg_collection: has no group cp for a context_parallel"):
        core(config)(*QKV, None)
    with pytest.raises(ValueError, match="context_parallel_size: 2, where the group has 1 ranks"):
        core(config, pg_collection=collection(group))(*QKV, None)
    state = types.ModuleType("megatron.core.parallel_state")
    state.get_context_parallel_group = lambda check_initialized=True: group
    state.get_tensor_model_parallel_group = lambda check_initialized=True: None
    for name in ("megatron", "megatron.core"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "megatron.core.parallel_state", state)
    module = core(config, pg_collection=None)
    assert module.cp_group is group
    module.set_context_parallel_group(group, [0], None, "all_gather")
    assert torch.equal(module(*QKV, None), core()(*QKV, None))
    for arguments, message in ((([group], [0], None), "cp_group: one process group is wanted"),
                               ((group, [0], None, "a2a+p2p"), "cp_comm_type: 'a2a.p2p' is not")):
        with pytest.raises(ValueError, match=message):
            module.set_context_parallel_group(*arguments)


def test_checkpoints_of_megatron(monkeypatch):
    utils = types.ModuleType("megatron.core.transformer.utils")
    utils.make_sharded_tensors_for_checkpoint = lambda *x, **y: (x, y)
    for name in ("megatron", "megatron.core", "megatron.core.transformer"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, utils.__name__, utils)
    module = core(Config(softmax_type="learnable"))
    (state, prefix, axes, offsets), groups = module.sharded_state_dict("a.", ((0, 1, 2),))
    assert state["softmax_offset"] is module.softmax_offset and prefix == "a."
    assert axes == {"softmax_offset": 0} and offsets == ((0, 1, 2),) and groups == {}
    groups = module.sharded_state_dict("", (), {"dp_cp_group": 5})[1]
    assert groups == {"tp_group": None, "dp_cp_group": 5}


# TorchTitan.


@pytest.mark.parametrize("arguments, message", [
    (dict(load_balancer_type="ptrr"), "load_balancer_type: 'ptrr' is not had"),
    (dict(ptrr_mask_key="all"), "ptrr_mask_key: got 'all'"),
    (dict(inputs=(torch.zeros(12), torch.zeros(10))), "inputs: number 1 has 10 positions along"),
    (dict(inputs=(torch.zeros(11),)), "inputs: 11 positions do not divide into 2 chunks"),
    (dict(attention_masks="causal"), "attention_masks: a BlockMask, a dictionary"),
    (dict(attention_masks=create_block_mask(causal, 1, 1, 8, 12, device="cpu")),
     "attention_masks: of 8 queries and 12 keys, the whole sequence has 12 and 12"),
    (dict(input_seq_dim=1, inputs=(torch.zeros(2, 7),)), "inputs: 7 positions do not divide"),
])
def test_refusals_of_cp_shard(group, arguments, message):
    given = dict(cp_mesh=group, inputs=(torch.zeros(12),), attention_masks=None)
    torchtitan.cp_shard(**given)
    with pytest.raises((TypeError, ValueError), match=message):
        torchtitan.cp_shard(**{**given, **arguments})


def test_refusals_of_torchtitan(group):
    x = torch.zeros(12)
    for arguments, message in (((x, x, {}, group, "cpu"), "extra_kwargs: \"positions\" are want"),
                               ((x, x, {"positions": x}, group, "cuda"), "device: cuda, where")):
        with pytest.raises(ValueError, match=message):
            torchtitan.prepare_context_parallel_input(*arguments)
    torchtitan.validate_cp_backend(types.SimpleNamespace(context_parallel_degree=2,
                                                         spmd_backend="partial_dtensor"))
    with pytest.raises(ValueError, match="context_parallel_degree: at least 1"):
        torchtitan.validate_cp_backend(types.SimpleNamespace(context_parallel_degree=0))
    with pytest.raises(TypeError, match="attention_modules: FlexAttention or Scaled.*, got Linear"):
        torchtitan.apply_cp_to_forward([torch.nn.Linear(2, 2)], group)
    flex, sdpa, other = FlexAttention(), ScaledDotProductAttention(), FlexAttention()
    other.kernel_options = {"BLOCK_M": 64}
    with pytest.raises(ValueError, match="kernel_options: {'BLOCK_M': 64} are of Triton's"):
        torchtitan.apply_cp_to_forward([other], group)
    torchtitan.apply_cp_to_forward([flex, sdpa], group)
    mask = create_block_mask(causal, 1, 1, 12, 12, device="cpu")
    for module, arguments, message in (
            (flex, dict(attention_masks=None), "attention_masks: a BlockMask is wanted"),
            (flex, dict(attention_masks=mask, enable_gqa=False), "enable_gqa: must be set where q"),
            (flex, dict(attention_masks=mask, q=THD[0][:10]), "attention_masks: of 12 queries and"),
            (sdpa, dict(attention_masks=mask), "attention_masks: are of FlexAttention"),
            (sdpa, dict(q=THD[0][0]), r"q: a shard is wanted, \[tokens, heads, dim\]"),
            (sdpa, dict(q=THD[0][:10]), "is_causal: of 10 queries and 12 keys on a rank"),
            (sdpa, dict(dropout_p=0.1), "unexpected keyword argument 'dropout_p'")):
        given = dict(q=THD[0], k=THD[1], v=THD[2], enable_gqa=True)
        with pytest.raises((TypeError, ValueError), match=message):
            module(**{**given, **arguments})
