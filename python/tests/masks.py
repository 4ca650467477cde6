# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 21 masks and 7 scores of attention-gym, written from their definitions.

A mask is a function of batch, head, query and key position, a score one of the
score and these. Their makers say in words which pairs are kept, or what is added.
"""

import math

import torch

#===----------------------------------------------------------------------===#
# Masks by distance
#===----------------------------------------------------------------------===#


def causal(b, h, i, j):
    """A query sees its own key and those before it."""
    return j <= i


def window(left):
    """Sliding window (Mistral 7B): the own key and `left` keys before it."""
    return lambda b, h, i, j: (i - left <= j) & (j <= i)


def dilated(reach, step):
    """Dilated window (Longformer): keys at a distance of a multiple of `step`, at most
    `reach`, on both sides."""
    return lambda b, h, i, j: (i <= j + reach) & (j <= i + reach) & ((j - i) % step == 0)


def window_and_global(reach, is_global):
    """Longformer: keys within `reach` on both sides; and tokens that are global see
    all keys and are seen by all queries."""
    return lambda b, h, i, j: is_global[i] | is_global[j] | ((i - j <= reach) & (j - i <= reach))


def prefix(length):
    """Prefix LM (T5): the first `length` keys are seen by all, others causally."""
    return lambda b, h, i, j: torch.where(j < length, True, j <= i)


def batches(inner, size):
    """Sequences of `size` tokens each in one, with the mask `inner` in each."""
    def mask(b, h, i, j):
        first = i - i % size
        return (j >= first) & (j < first + size) & inner(b, h, i - first, j % size)
    return mask


#===----------------------------------------------------------------------===#
# Packed documents
#===----------------------------------------------------------------------===#


def _documents_of(lengths):
    """Of each token: its document, and where that begins."""
    lengths = torch.tensor(lengths)
    ids = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    return ids, (lengths.cumsum(0) - lengths)[ids]


def documents(inner, lengths):
    """Tokens see their own document, by the mask `inner` of positions in it."""
    ids, starts = _documents_of(lengths)
    return lambda b, h, i, j: (ids[i] == ids[j]) & inner(b, h, i - starts[i], j - starts[j])


def packed_documents(lengths):
    """Causal in each document: the keys from its beginning to the query."""
    _, starts = _documents_of(lengths)
    return lambda b, h, i, j: (starts[i] <= j) & (j <= i)


def shared_prefix(lengths, prefixes):
    """Prompts with several answers each, all packed (Hydragen): document n is an answer
    to the prompt `prefixes[n]`, which it sees whole, or a prompt where that is n.
    In themselves documents are causal."""
    ids, _ = _documents_of(lengths)

    def mask(b, h, i, j):
        return torch.where(ids[i] == ids[j], j <= i, ids[j] == prefixes[ids[i]])

    return mask


def block_diffusion(length, block):
    """Block diffusion (BD3-LM): `length` noised tokens, then the clean ones, both in
    blocks. Noised tokens see their own noised block and the clean blocks before it;
    clean tokens see their own clean block and those before."""
    def mask(b, h, i, j):
        of_query, of_key = i % length // block, j % length // block
        clean = torch.where(i < length, of_key < of_query, of_key <= of_query)
        return torch.where(j < length, (i < length) & (of_key == of_query), clean)
    return mask


#===----------------------------------------------------------------------===#
# Trees and images
#===----------------------------------------------------------------------===#


def tree(before, parents):
    """Drafts as a tree (JetSpec): queries are its nodes, the first one the root, keys
    `before` tokens and then the nodes. Nodes see all that is before the tree, and
    their path from the root."""
    up = torch.tensor([max(parent, 0) for parent in parents])

    def mask(b, h, i, j):
        kept, node = (j < before) | (j == before + i), i
        for _ in range(_depth(parents)):
            node = up[node]
            kept = kept | (j == before + node)
        return kept

    return mask


def _depth(parents):
    """Steps from the deepest node to the root."""
    def steps(node):
        return 1 + steps(parents[node]) if node > 0 else 0
    return max(map(steps, range(len(parents))))


def tree_training(before, block):
    """Training of draft heads (JetSpec): queries are tokens in blocks, keys `before`
    tokens and then the same. All see what is before; blocks are causal."""
    def mask(b, h, i, j):
        own = j - before # the token that the key is
        return (own < 0) | ((own <= i) & (own >= i - i % block))
    return mask


def cross_attention(spans, size):
    """Text to images (Flamingo): keys are images of `size` tokens each; image n is seen
    by the queries from spans[n, 0] to before spans[n, 1]."""
    return lambda b, h, i, j: (spans[j // size, 0] <= i) & (spans[j // size, 1] > i)


#===----------------------------------------------------------------------===#
# Neighbourhoods on a canvas
#===----------------------------------------------------------------------===#


def _is_near(x, y, kernel, size):
    """Whether y is in the window of `kernel` places around x, of `size`, which is
    moved inward at the edges."""
    first = torch.clamp(x - kernel // 2, 0, size - kernel)
    return (first <= y) & (y < first + kernel)


def _neighbourhood(place_of, canvas, kernel):
    def mask(b, h, i, j):
        kept = None
        for x, y, *sizes in zip(place_of(i), place_of(j), kernel, canvas):
            near = _is_near(x, y, *sizes)
            kept = near if kept is None else kept & near
        return kept
    return mask


def _digits(number, *bases):
    """Of a number in mixed radix, the highest first."""
    digits = []
    for base in reversed(bases):
        digits.append(number % base)
        number = number // base
    return digits[::-1]


def natten(canvas, kernel):
    """Neighbourhood attention (NATTEN): tokens of a canvas (rows, columns) see the
    `kernel` around them, which does not leave the canvas: it is moved inward."""
    return _neighbourhood(lambda p: _digits(p, *canvas), canvas, kernel)


def tiled_natten(canvas, kernel, tile):
    """NATTEN of a canvas whose tokens are stored tile by tile."""
    def place(p):
        high, wide, y, x = _digits(p, canvas[0] // tile[0], canvas[1] // tile[1], *tile)
        return high * tile[0] + y, wide * tile[1] + x
    return _neighbourhood(place, canvas, kernel)


def morton_natten(canvas, kernel):
    """NATTEN of a canvas stored in Z order (Morton): bits of column and row alternate,
    the lowest one is the column's."""
    bits = max(canvas).bit_length()

    def place(p):
        return [sum(((p >> (2 * n + first)) & 1) << n for n in range(bits)) for first in (1, 0)]

    return _neighbourhood(place, canvas, kernel)


def sliding_tiles(canvas, kernel, tile, text=0):
    """Sliding tile attention (STA), of a canvas of 2 or 3 dimensions stored tile by
    tile: a tile sees the tiles of the kernel around it, moved inward at edges.
    `text` tokens follow the canvas: they see all and are seen by all."""
    tiles = [size // n for size, n in zip(canvas, tile)]
    near = _neighbourhood(lambda p: _digits(p // math.prod(tile), *tiles), tiles,
                          [size // n for size, n in zip(kernel, tile)])
    end = math.prod(canvas)

    def mask(b, h, i, j):
        return (j < end + text) & ((i >= end) | (j >= end) | near(b, h, i, j))

    return mask


def spatial(prompt, frame, width, unit, has_sink=False):
    """Spatial heads (Sparse VideoGen): frames of `frame` tokens behind a prompt see keys
    at a distance below `width` frames, rounded down to `unit`s; the prompt, with a sink
    the first frame too, is seen by all, and the prompt sees all."""
    always = prompt + (frame if has_sink else 0)
    reach = width * frame // unit * unit
    return lambda b, h, i, j: (j < always) | (i < prompt) | ((i < j + reach) & (j < i + reach))


def temporal(prompt, frames, frame, width):
    """Temporal heads (Sparse VideoGen): tokens see those of all frames whose place in
    the frame is less than width * frame / frames from theirs; the prompt as above."""
    reach = width * frame // frames

    def mask(b, h, i, j):
        x, y = (i - prompt) % frame, (j - prompt) % frame
        return (j < prompt) | (i < prompt) | ((y - x < reach) & (x - y < reach))

    return mask


def chosen_tiles(chosen, tile, fill, num_tiles):
    """Video sparse attention (VSA): tile t of the queries of a batch and head sees the
    tiles chosen[b, h, t], and of key tile n the first fill[n] tokens."""
    is_chosen = torch.zeros(*chosen.shape[:3], num_tiles, dtype=torch.bool)
    is_chosen.scatter_(3, chosen, True)
    return lambda b, h, i, j: is_chosen[b, h, i // tile, j // tile] & (
        j - j // tile * tile < fill[j // tile])


#===----------------------------------------------------------------------===#
# Scores
#===----------------------------------------------------------------------===#


def activation(offset):
    """GELU in place of the exponential: softmax of log(gelu(s) + offset)."""
    def score(s, b, h, i, j):
        return torch.log(s * (0.5 + 0.5 * torch.erf(s / math.sqrt(2))) + offset)
    return score


def alibi(slopes):
    """ALiBi: less by the distance, times the slope of the head."""
    return lambda s, b, h, i, j: s - slopes[h] * (i - j)


def alibi_slopes(heads):
    """2^-a, 2^-2a, ... for a = 8 / heads."""
    return torch.tensor([2.0 ** (-8 * (n + 1) / heads) for n in range(heads)])


def graph_distance(bias, distances):
    """Graphormer, spatial encoding: a learnt number of each head for the distance of
    the two nodes in the graph of the batch."""
    return lambda s, b, h, i, j: s + bias[h, distances[b, i, j]]


def graph_edges(weights, edges, lengths):
    """Graphormer, edge encoding: the mean over the edges of the path between the nodes
    of learnt numbers of head, place in the path and type of edge."""
    def score(s, b, h, i, j):
        length = lengths[b, i, j]
        terms = [torch.where(n < length, weights[h, n, edges[b, i, j, n]], 0.0)
                 for n in range(weights.shape[1])]
        return s + sum(terms) / length.clamp(min=1)
    return score


def latent_rope(queries, keys, scale):
    """Multi-head latent attention (DeepSeek-V2): the product of the rotated parts, of
    queries of each head and of keys that all heads share, is added."""
    return lambda s, b, h, i, j: s + scale * (queries[b, h, i] * keys[b, j]).sum(-1)


def sandwich(heads, width):
    """Sandwich: the product of sinusoidal embeddings of `width` numbers, which depends on
    the distance only, less for each later head: by 8 (h + 1) / heads."""
    rates = [10000 ** (-2 * n / width) for n in range(width // 2)]

    def score(s, b, h, i, j):
        product = sum(torch.cos((i - j) * rate) for rate in rates)
        return s + product / ((h + 1) * 8 / heads)

    return score


def softcap(cap):
    """Gemma 2: scores stay within -cap and cap, smoothly."""
    return lambda s, b, h, i, j: torch.tanh(s / cap) * cap
