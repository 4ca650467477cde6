# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The masks and scores of attention-gym, forward and backward: the originals, and
those of masks.py, which mean the same."""

import pytest
import torch

import burst
import masks
import reference
from burst import checking

BATCH, HEADS, KEY_HEADS, S, DIM = 2, 4, 2, 128, 16
RANKS = 8
# Queries and keys, where they are not S each.
SIZES = {"flamingo": (S, 96), "natten": (144, 144), "tree": (16, S), "tree_training": (96, S)}

LENGTHS = [20, 37, 43, 28]
OFFSETS = torch.tensor([0, 20, 57, 100, 128])
PREFIXES = torch.tensor([0, 0, 0, 3])
# Queries 0 to 4 and 90 to 99 see no image, and no query sees the last one.
SPANS = torch.tensor([[5, 60], [20, 90], [100, S], [110, 110]])
PARENTS = [-1, 0, 0, 1, 1, 2, 2, 3, 3, 7, 5, 10, 11, 0, 13, 13]


def drawn():
    return torch.Generator().manual_seed(3)


IS_GLOBAL = torch.rand(S, generator=drawn()) < 0.04
CHOSEN = torch.rand(BATCH, HEADS, 8, 8, generator=drawn()).argsort(-1)[..., :2]
FILL = torch.tensor([16, 16, 9, 16, 16, 1, 16, 12])


def own_masks():
    return {
        "batchify": masks.batches(masks.causal, 32),
        "block_diffusion": masks.block_diffusion(S // 2, 8),
        "causal": masks.causal,
        "dilated": masks.dilated(12, 3),
        "documents": masks.documents(masks.causal, LENGTHS),
        "flamingo": masks.cross_attention(SPANS, 24),
        "global_window": masks.window_and_global(10, IS_GLOBAL),
        "morton_natten": masks.morton_natten((8, 16), (3, 5)),
        "natten": masks.natten((12, 12), (5, 3)),
        "packed_documents": masks.packed_documents(LENGTHS),
        "prefix": masks.prefix(30),
        "shared_prefix": masks.shared_prefix(LENGTHS, PREFIXES),
        "spatial": masks.spatial(8, 20, 2, 16, has_sink=True),
        "sta_2d": masks.sliding_tiles((8, 12), (4, 8), (2, 4), text=24),
        "sta_3d": masks.sliding_tiles((4, 4, 8), (2, 2, 4), (2, 2, 2)),
        "temporal": masks.temporal(8, 6, 20, 2),
        "tiled_natten": masks.tiled_natten((8, 16), (3, 5), (2, 4)),
        "tree": masks.tree(S - 16, PARENTS),
        "tree_training": masks.tree_training(32, 8),
        "vsa": masks.chosen_tiles(CHOSEN, 16, FILL, 8),
        "window": masks.window(17),
    }


def original_masks():
    from attn_gym.masks import vsa
    from attn_gym.masks.batchify import batchify_mask_mod
    from attn_gym.masks.block_diffusion import generate_block_diffusion_mask
    from attn_gym.masks.causal import causal_mask
    from attn_gym.masks.dilated_sliding_window import generate_dilated_sliding_window
    from attn_gym.masks.document_mask import (generate_doc_mask_mod,
                                              generate_packed_causal_doc_mask_mod)
    from attn_gym.masks.flamingo import generate_vision_cross_attention_mask_mod
    from attn_gym.masks.global_sliding_window import generate_global_sliding_window
    from attn_gym.masks.jetspec import (build_tree_ancestor_matrix,
                                        generate_jetspec_training_mask_mod,
                                        generate_jetspec_tree_causal_mask_mod)
    from attn_gym.masks.natten import (generate_morton_natten, generate_natten,
                                       generate_tiled_natten)
    from attn_gym.masks.prefix_lm import generate_prefix_lm_mask
    from attn_gym.masks.shared_prefix import generate_shared_prefix_mask_mod
    from attn_gym.masks.sliding_window import generate_sliding_window
    from attn_gym.masks.sta import generate_sta_mask_mod_2d, generate_sta_mask_mod_3d
    from attn_gym.masks.svg import (generate_spatial_head_mask_mod,
                                    generate_temporal_head_mask_mod)

    ancestors = build_tree_ancestor_matrix(PARENTS, device="cpu")
    return {
        "batchify": batchify_mask_mod(causal_mask, 32),
        "block_diffusion": generate_block_diffusion_mask(S // 2, 8),
        "causal": causal_mask,
        "dilated": generate_dilated_sliding_window(12, 3),
        "documents": generate_doc_mask_mod(causal_mask, OFFSETS),
        "flamingo": generate_vision_cross_attention_mask_mod(SPANS, 24),
        "global_window": generate_global_sliding_window(10, IS_GLOBAL),
        "morton_natten": generate_morton_natten(16, 8, 5, 3),
        # Its first size is that of the columns, which it takes the row to be: it keeps
        # a neighbourhood where the canvas is a square, and the kernel is transposed.
        "natten": generate_natten(12, 12, 5, 3),
        "packed_documents": generate_packed_causal_doc_mask_mod(OFFSETS),
        "prefix": generate_prefix_lm_mask(30),
        "shared_prefix": generate_shared_prefix_mask_mod(OFFSETS, PREFIXES),
        "spatial": generate_spatial_head_mask_mod(8, 6, 20, 2, attn_sink=True, round_width=16),
        "sta_2d": generate_sta_mask_mod_2d((8, 12), (4, 8), (2, 4), 24),
        "sta_3d": generate_sta_mask_mod_3d((4, 4, 8), (2, 2, 4), (2, 2, 2)),
        "temporal": generate_temporal_head_mask_mod(8, 6, 20, 2),
        "tiled_natten": generate_tiled_natten(16, 8, 5, 3, 4, 2),
        "tree": generate_jetspec_tree_causal_mask_mod(S - 16, ancestors),
        "tree_training": generate_jetspec_training_mask_mod(32, 8),
        "vsa": vsa.generate_vsa_mask_mod(CHOSEN, 16, FILL),
        "window": generate_sliding_window(17),
    }


class Parameters:
    """Tensors that scores read: those that have gradients, and others."""

    def __init__(self):
        g = drawn()
        self.slopes = masks.alibi_slopes(HEADS).requires_grad_()
        self.bias = torch.randn(HEADS, 5, generator=g).requires_grad_()
        self.weights = torch.randn(HEADS, 3, 6, generator=g).requires_grad_()
        self.queries = torch.randn(BATCH, HEADS, S, 8, generator=g).requires_grad_()
        self.keys = torch.randn(BATCH, S, 8, generator=g).requires_grad_()
        self.cap = torch.tensor(20.0, requires_grad=True)
        self.distances = torch.randint(0, 5, (BATCH, S, S), generator=g)
        self.edges = torch.randint(0, 6, (BATCH, S, S, 3), generator=g)
        self.lengths = torch.randint(0, 4, (BATCH, S, S), generator=g)


def own_scores(p):
    """With the tensors whose gradients are wanted."""
    return {
        "activation": (masks.activation(1.0), ()),
        "alibi": (masks.alibi(p.slopes), (p.slopes,)),
        "graphormer_edges": (masks.graph_edges(p.weights, p.edges, p.lengths), (p.weights,)),
        "graphormer_spatial": (masks.graph_distance(p.bias, p.distances), (p.bias,)),
        "rope": (masks.latent_rope(p.queries, p.keys, 0.5), (p.queries, p.keys)),
        "sandwich": (masks.sandwich(HEADS, 16), ()),
        "softcap": (masks.softcap(p.cap), (p.cap,)),
    }


def original_scores(p):
    from attn_gym.mods.activation import generate_activation_score_mod
    from attn_gym.mods.alibi import generate_alibi_bias
    from attn_gym.mods.graphormer import (generate_graphormer_edge_bias,
                                          generate_graphormer_spatial_bias)
    from attn_gym.mods.latent_attention import generate_mla_rope_score_mod
    from attn_gym.mods.sandwich import generate_sandwich_bias
    from attn_gym.mods.softcapping import generate_tanh_softcap

    return {
        "activation": (generate_activation_score_mod(), ()),
        "alibi": (generate_alibi_bias(HEADS), ()),
        "graphormer_edges": (generate_graphormer_edge_bias(p.weights, p.edges, p.lengths),
                             (p.weights,)),
        "graphormer_spatial": (generate_graphormer_spatial_bias(p.bias, p.distances), (p.bias,)),
        "rope": (generate_mla_rope_score_mod(p.queries, p.keys[:, None], HEADS, 0.5),
                 (p.queries, p.keys)),
        "sandwich": (generate_sandwich_bias(HEADS, S, 16), ()),
        "softcap": (generate_tanh_softcap(20), ()),
    }


MASKS = sorted(own_masks())
SCORES = sorted(own_scores(Parameters()))


def test_all_are_there():
    assert len(MASKS) == 21 and len(SCORES) == 7
    assert MASKS == sorted(original_masks())
    assert SCORES == sorted(original_scores(Parameters()))


#===----------------------------------------------------------------------===#
# Own functions mean what the originals mean
#===----------------------------------------------------------------------===#


def over_pairs(function, sizes, *first):
    """By broadcasting, without vmap, which the originals are evaluated by."""
    positions = []
    for n, size in enumerate(sizes):
        shape = [1] * 4
        shape[n] = size
        positions.append(torch.arange(size).reshape(shape))
    return function(*first, *positions).expand(sizes)


@pytest.mark.parametrize("name", MASKS)
def test_mask_is_the_original(name):
    sizes = (BATCH, HEADS, *SIZES.get(name, (S, S)))
    found = over_pairs(own_masks()[name], sizes)
    assert torch.equal(found, checking.over_pairs(original_masks()[name], sizes))
    assert found.any() and not found.all()


@pytest.mark.parametrize("name", SCORES)
def test_score_is_the_original(name):
    p = Parameters()
    sizes = (BATCH, HEADS, S, S)
    s = torch.randn(sizes, generator=drawn(), dtype=torch.float64) * 3
    found = over_pairs(own_scores(p)[name][0], sizes, s)
    wanted = checking.over_pairs(original_scores(p)[name][0], sizes, s)
    assert found.dtype == wanted.dtype == torch.float64
    assert (found - wanted).abs().max() <= 1e-6 * wanted.abs().max()


#===----------------------------------------------------------------------===#
# On one rank
#===----------------------------------------------------------------------===#


def compare(mask, score=None, queries=S, keys=S, inputs=(), backward=True):
    q, k, v = (x.requires_grad_() for x in
               reference.draw(BATCH, HEADS, KEY_HEADS, queries, keys, DIM))
    found = burst.attention(q, k, v, mask=mask, score=score, return_lse=True)
    wanted = reference.attention(q, k, v, mask, score)
    for x, y in zip(found, wanted):
        reference.assert_close(x, y)
    if backward:
        reference.check_gradients(found, wanted, (q, k, v, *inputs))


def long_but_for(names, some):
    return [name if name in some else pytest.param(name, marks=pytest.mark.long)
            for name in names]


@pytest.mark.parametrize("name", MASKS)
def test_original_mask(name):
    compare(original_masks()[name], None, *SIZES.get(name, (S, S)), backward=False)


@pytest.mark.parametrize("name", long_but_for(MASKS, (
    "batchify", "documents", "flamingo", "morton_natten", "tree", "vsa")))
def test_original_mask_backward(name):
    compare(original_masks()[name], None, *SIZES.get(name, (S, S)))


@pytest.mark.parametrize("name", SCORES)
def test_original_score(name):
    score, inputs = original_scores(Parameters())[name]
    compare(None, score, inputs=inputs)


@pytest.mark.parametrize("name", long_but_for(MASKS, ()))
def test_own_mask(name):
    compare(own_masks()[name], None, *SIZES.get(name, (S, S)))


@pytest.mark.parametrize("name", long_but_for(SCORES, ("softcap",)))
def test_own_score(name):
    score, inputs = own_scores(Parameters())[name]
    compare(None, score, inputs=inputs)


#===----------------------------------------------------------------------===#
# On 8 ranks
#===----------------------------------------------------------------------===#

ORDERS = ("contiguous", "zigzag", "striped", "striped 8")


def check(mask, score, order, queries=S, keys=S):
    report = burst.check(mask, score, S=queries, keys=keys, ranks=RANKS, order=order,
                         heads=HEADS, key_heads=KEY_HEADS, head_dim=DIM, batch=BATCH)
    assert len(report.bytes_sent) == RANKS
    return report


@pytest.mark.parametrize("name, order", [
    (name, ORDERS[n % 4]) for n, name in enumerate(MASKS)])
def test_own_mask_on_ranks(name, order):
    check(own_masks()[name], None, order, *SIZES.get(name, (S, S)))


@pytest.mark.parametrize("name, order", [
    (name, ORDERS[n % 4]) for n, name in enumerate(SCORES)])
def test_own_score_on_ranks(name, order):
    score, inputs = own_scores(Parameters())[name]
    report = check(masks.causal, score, order)
    assert sum(key.startswith("d table") for key in report.errors) == len(inputs)
