# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention by its definition, in float64, with masks and scores as torch runs them."""

import torch

from burst import checking


def attention(q, k, v, mask=None, score=None, scale=None, head_offset=0, batch_offset=0):
    """q, k, v are (batch, heads, sequence, dim)."""
    def shifted(function, n):
        return function and (lambda *x: function(
            *x[:n], x[n] + batch_offset, x[n + 1] + head_offset, *x[n + 2:]))
    o, lse = checking.attend(*(x.double().transpose(1, 2) for x in (q, k, v)), shifted(mask, 0),
                             shifted(score, 1), scale)
    return o.transpose(1, 2), lse


def draw(b, h, hk, sq, sk, d, dv=None, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    def make(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    return make(b, h, sq, d), make(b, hk, sk, d), make(b, hk, sk, dv or d)


def assert_close(found, wanted, name=""):
    """Within a few roundings of the type that was computed in."""
    wanted = wanted.double()
    finite = torch.isfinite(wanted)
    assert torch.equal(torch.isfinite(found), finite), f"{name}: infinite elsewhere"
    error = (found.double() - wanted)[finite].abs().max() if finite.any() else torch.zeros(())
    size = wanted[finite].abs().max() if finite.any() else torch.zeros(())
    bound = checking.BOUNDS[found.dtype] * max(1.0, size.item())
    assert error <= bound, f"{name}: off by {error:.2e} of {size:.2e}"


def check_gradients(found, wanted, inputs, seed=1):
    """Of a random loss by o and lse of both, with respect to `inputs`."""
    generator = torch.Generator().manual_seed(seed)
    grads = []
    weights = [torch.randn(x.shape, generator=generator, dtype=torch.float64) for x in found]
    for results in (found, wanted):
        loss = sum((torch.where(torch.isfinite(x), x.double(), 0.0) * w).sum()
                   for x, w in zip(results, weights))
        grads.append(torch.autograd.grad(loss, inputs))
    for n, (x, y) in enumerate(zip(*grads)):
        assert_close(x, y, f"gradient {n}")
