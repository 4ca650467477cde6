# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's functions and burst's of the same names agree, argument by argument."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import (AuxRequest, create_block_mask,
                                               flex_attention)

import burst
import reference


def causal(b, h, i, j):
    return i >= j


def softcap(s, b, h, i, j):
    return 10 * torch.tanh(s / 10)


def test_sdpa():
    q, k, v = (x.requires_grad_() for x in reference.draw(2, 4, 2, 24, 40, 16))
    bias = torch.randn(4, 24, 40).requires_grad_()
    kept = torch.rand(2, 1, 24, 40) < 0.7
    kept[..., 0] = True
    for arguments in (dict(), dict(is_causal=True), dict(attn_mask=kept), dict(attn_mask=bias),
                      dict(attn_mask=kept[0, 0]), dict(scale=0.3),
                      dict(attn_mask=bias[:1].detach())):
        arguments["enable_gqa"] = True
        found = burst.scaled_dot_product_attention(q, k, v, **arguments)
        wanted = F.scaled_dot_product_attention(
            q.double(), k.double(), v.double(),
            **{name: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
               for name, x in arguments.items()})
        reference.assert_close(found, wanted, str(arguments.keys()))
        inputs = (q, k, v, bias) if arguments.get("attn_mask") is bias else (q, k, v)
        reference.check_gradients((found,), (wanted,), inputs)
    q, k, v = (torch.randn(3, 9, 8) for _ in range(3))
    for arguments in (dict(), dict(attn_mask=torch.randn(3, 9, 9)), dict(is_causal=True)):
        reference.assert_close(burst.scaled_dot_product_attention(q, k, v, **arguments),
                               F.scaled_dot_product_attention(q, k, v, **arguments))


@pytest.mark.parametrize("arguments, message", [
    (dict(dropout_p=0.5), "dropout: got 0.5"),
    (dict(attn_mask=torch.ones(24, 40).bool(), is_causal=True), "is_causal: cannot be set"),
    (dict(attn_mask=torch.ones(24, 39).bool()), "attn_mask: .* does not broadcast"),
    (dict(attn_mask=torch.ones(24, 40).int()), "attn_mask: bool or torch.float32, got"),
    (dict(enable_gqa=False), "enable_gqa: must be set where query has 4 heads and key 2"),
])
def test_sdpa_refusals(arguments, message):
    q, k, v = reference.draw(2, 4, 2, 24, 40, 16)
    with pytest.raises((ValueError, TypeError), match=message):
        burst.scaled_dot_product_attention(q, k, v, **{"enable_gqa": True, **arguments})


def test_flex():
    q, k, v = (x.requires_grad_() for x in reference.draw(2, 4, 2, 48, 48, 16))
    block_mask = create_block_mask(causal, 2, 4, 48, 48, device="cpu")
    for arguments in (dict(), dict(block_mask=block_mask), dict(score_mod=softcap, scale=0.2),
                      dict(block_mask=block_mask, score_mod=softcap)):
        with torch.no_grad():
            wanted = flex_attention(*(x.detach() for x in (q, k, v)), enable_gqa=True,
                                    **arguments)
        found, lse = burst.flex_attention(q, k, v, enable_gqa=True, return_lse=True, **arguments)
        reference.assert_close(found, wanted)
        found.sum().backward() # which flex_attention cannot on a CPU
    o, aux = burst.flex_attention(q, k, v, enable_gqa=True, return_aux=AuxRequest(lse=True))
    assert aux.lse.shape == (2, 4, 48) and aux.max_scores is None
    o, aux = burst.flex_attention(q, k, v, block_mask=block_mask, enable_gqa=True,
                                  return_aux=AuxRequest(max_scores=True))
    s = torch.einsum("bhid,bhjd->bhij", q, k.repeat_interleave(2, 1)) / 4
    reference.assert_close(aux.max_scores,
                           s.masked_fill(torch.ones(48, 48).triu(1).bool(), -math.inf).amax(-1))
    assert aux.lse is None
    assert isinstance(burst.flex_attention(q, k, v, enable_gqa=True), torch.Tensor)


def test_flex_refusals():
    q, k, v = reference.draw(2, 4, 2, 48, 48, 16)
    block_mask = create_block_mask(causal, 2, 4, 32, 48, device="cpu")
    for arguments, message in ((dict(kernel_options={"BLOCK_M": 64}), "kernel_options: got"),
                               (dict(block_mask=block_mask), "block_mask: is for 32 queries"),
                               (dict(enable_gqa=False), "enable_gqa: must be set")):
        with pytest.raises(ValueError, match=message):
            burst.flex_attention(q, k, v, **{"enable_gqa": True, **arguments})


def packed(lengths, key_lengths, heads=4, key_heads=2, dim=16):
    g = torch.Generator().manual_seed(0)
    tensors = [torch.randn(sum(n), h, dim, generator=g, requires_grad=True)
               for n, h in ((lengths, heads), (key_lengths, key_heads), (key_lengths, key_heads))]
    offsets = [torch.tensor([0, *n], dtype=torch.int32).cumsum(0).to(torch.int32)
               for n in (lengths, key_lengths)]
    return tensors, offsets


@pytest.mark.parametrize("lengths, key_lengths", [([5, 17, 1, 9], None), ([3, 4], [11, 4])])
@pytest.mark.parametrize("arguments", [
    dict(), dict(causal=True), dict(window=(4, 2)), dict(window=(3, -1)),
    dict(causal=True, window=(5, 5)), dict(softcap=5.0), dict(scale=0.2)])
def test_varlen(lengths, key_lengths, arguments):
    (q, k, v), (cu_q, cu_k) = packed(lengths, key_lengths or lengths)
    given = dict(arguments) if key_lengths is None else dict(arguments, cu_seqlens_k=cu_k)
    found, lse = burst.varlen(q, k, v, cu_q, return_lse=True, **given)
    # Each sequence by itself.
    left, right = arguments.get("window", (-1, -1))
    right = 0 if arguments.get("causal") else right
    cap = arguments.get("softcap")
    parts = []
    for n in range(len(lengths)):
        own, keys = slice(cu_q[n], cu_q[n + 1]), slice(cu_k[n], cu_k[n + 1])
        shift = int((cu_k[n + 1] - cu_k[n]) - (cu_q[n + 1] - cu_q[n]))

        def mask(b, h, i, j):
            d = i + shift - j
            return (d <= left if left >= 0 else d == d) & (d >= -right if right >= 0 else d == d)

        parts.append(reference.attention(
            *(x.transpose(0, 1)[None] for x in (q[own], k[keys], v[keys])), mask,
            (lambda s, b, h, i, j: cap * torch.tanh(s / cap)) if cap else None,
            arguments.get("scale")))
    wanted = torch.cat([o[0].transpose(0, 1) for o, _ in parts])
    reference.assert_close(found, wanted)
    reference.assert_close(lse, torch.cat([x[0] for _, x in parts], 1))
    reference.check_gradients((found,), (wanted,), (q, k, v))


def test_varlen_refusals():
    (q, k, v), (cu, _) = packed([3, 4], [3, 4])
    for arguments, message in ((dict(cu_seqlens=cu[:-1]), "cu_seqlens: must rise from 0 to"),
                               (dict(cu_seqlens_k=cu[[0, 2]]), "1 sequences, cu_seqlens has 2"),
                               (dict(window=(-2, 0)), "window: sides are at least 0"),
                               (dict(softcap=-1.0), "softcap: positive")):
        with pytest.raises(ValueError, match=message):
            burst.varlen(q, k, v, **{"cu_seqlens": cu, **arguments})
