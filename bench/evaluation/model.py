# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model as LLaMA-2, whose attention is a function that a method of splitting it sets."""

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass(frozen=True)
class Shape:
    vocab: int
    dim: int
    layers: int
    heads: int
    key_heads: int
    hidden: int

    @property
    def head_dim(self):
        return self.dim // self.heads


SHAPES = {
    "tiny": Shape(vocab=256, dim=64, layers=2, heads=4, key_heads=4, hidden=176),
    "grouped": Shape(vocab=256, dim=128, layers=2, heads=8, key_heads=4, hidden=352),
    "small": Shape(vocab=1024, dim=512, layers=4, heads=8, key_heads=8, hidden=1376),
    "wide": Shape(vocab=1024, dim=1024, layers=2, heads=8, key_heads=8, hidden=2752),
    "7b": Shape(vocab=32000, dim=4096, layers=32, heads=32, key_heads=32, hidden=11008),
    "13b": Shape(vocab=32000, dim=5120, layers=40, heads=40, key_heads=40, hidden=13824),
}


class Attention(nn.Module):
    """`attend` takes q, k and v as (batch, sequence, heads, head dim) and gives o like q; it is
    causal. There are as many heads as the projections give: some of them in tensor parallelism."""

    def __init__(self, shape, attend):
        super().__init__()
        self.head_dim = shape.head_dim
        self.attend = attend
        self.q = nn.Linear(shape.dim, shape.heads * shape.head_dim, bias=False)
        self.k = nn.Linear(shape.dim, shape.key_heads * shape.head_dim, bias=False)
        self.v = nn.Linear(shape.dim, shape.key_heads * shape.head_dim, bias=False)
        self.o = nn.Linear(shape.heads * shape.head_dim, shape.dim, bias=False)

    def forward(self, x, rotation):
        q, k, v = (proj(x).unflatten(-1, (-1, self.head_dim)) for proj in (self.q, self.k, self.v))
        o = self.attend(rotate(q, *rotation), rotate(k, *rotation), v)
        return self.o(o.flatten(-2))


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate = nn.Linear(shape.dim, shape.hidden, bias=False)
        self.up = nn.Linear(shape.dim, shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, shape, attend):
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.dim, eps=1e-5)
        self.attention = Attention(shape, attend)
        self.mlp_norm = nn.RMSNorm(shape.dim, eps=1e-5)
        self.mlp = Mlp(shape)

    def forward(self, x, rotation):
        x = x + self.attention(self.attention_norm(x), rotation)
        return x + self.mlp(self.mlp_norm(x))


class Model(nn.Module):
    def __init__(self, shape, attend):
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocab, shape.dim)
        self.layers = nn.ModuleList(Layer(shape, attend) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.dim, eps=1e-5)
        self.head = nn.Linear(shape.dim, shape.vocab, bias=False)

    def forward(self, tokens, positions, pick=None):
        """Logits of tokens (batch, sequence) at `positions` of the whole sequence. `pick` chooses
        rows of what the head sees: where one token is wanted, no others are computed."""
        rotation = self.rotation(positions)
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, rotation)
        x = self.norm(x)
        return self.head(x if pick is None else pick(x))

    def rotation(self, positions):
        """Cosines and sines of rotary embeddings, for (batch, sequence, heads, head dim)."""
        exponents = torch.arange(0, self.shape.head_dim, 2, dtype=torch.float64)
        angles = positions.double()[:, None] * 10000.0 ** (-exponents / self.shape.head_dim)
        dtype = self.embedding.weight.dtype
        return angles.cos().to(dtype)[:, None], angles.sin().to(dtype)[:, None]


def build(shape, attend, dtype=torch.float32, seed=0):
    """With the same weights in every process."""
    torch.manual_seed(seed)
    return Model(shape, attend).to(dtype)
