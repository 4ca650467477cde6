# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The masks and score mods of attention-gym, as they are, forward and backward."""

import pytest
import torch

import burst
import reference

S = 128


def masks():
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

    offsets = torch.tensor([0, 20, 57, 100, S])
    is_global = torch.rand(S, generator=torch.Generator().manual_seed(0)) < 0.1
    topk = torch.tensor([[[[0, 3], [1, 2], [2, 0], [3, 1]]] * 4] * 2)
    tree = build_tree_ancestor_matrix([-1, 0, 0, 1, 1, 2, 2, 3], device="cpu")
    return {
        "causal": causal_mask,
        "batchify": batchify_mask_mod(causal_mask, 32),
        "block_diffusion": generate_block_diffusion_mask(S // 2, 8),
        "dilated": generate_dilated_sliding_window(12, 3),
        "documents": generate_doc_mask_mod(causal_mask, offsets),
        "packed_documents": generate_packed_causal_doc_mask_mod(offsets),
        "flamingo": generate_vision_cross_attention_mask_mod(
            torch.tensor([[0, 60], [20, 100], [70, S], [0, 9]]), S // 4),
        "global_window": generate_global_sliding_window(10, is_global),
        "tree": (generate_jetspec_tree_causal_mask_mod(S - 8, tree), 8),
        "tree_training": generate_jetspec_training_mask_mod(S // 4, 8),
        "natten": generate_natten(16, 8, 5, 3),
        "tiled_natten": generate_tiled_natten(16, 8, 5, 3, 4, 4),
        "morton_natten": generate_morton_natten(8, 16, 5, 3),
        "prefix": generate_prefix_lm_mask(30),
        "shared_prefix": generate_shared_prefix_mask_mod(offsets, torch.tensor([0, 0, 0, 3])),
        "window": generate_sliding_window(17),
        "sta_2d": generate_sta_mask_mod_2d((8, 16), (4, 8), (2, 4)),
        "sta_3d": generate_sta_mask_mod_3d((4, 4, 8), (2, 2, 4), (2, 2, 2)),
        "spatial": generate_spatial_head_mask_mod(8, 6, 20, 2, round_width=16),
        "temporal": generate_temporal_head_mask_mod(8, 6, 20, 2),
        "vsa": vsa.generate_vsa_mask_mod(topk, S // 4),
    }


def mods():
    from attn_gym.mods.activation import generate_activation_score_mod
    from attn_gym.mods.alibi import generate_alibi_bias
    from attn_gym.mods.graphormer import (generate_graphormer_edge_bias,
                                          generate_graphormer_spatial_bias)
    from attn_gym.mods.latent_attention import generate_mla_rope_score_mod
    from attn_gym.mods.sandwich import generate_sandwich_bias
    from attn_gym.mods.softcapping import generate_tanh_softcap

    g = torch.Generator().manual_seed(3)
    distances = torch.randint(0, 5, (2, S, S), generator=g)
    return {
        "activation": generate_activation_score_mod(),
        "alibi": generate_alibi_bias(4),
        "graphormer_spatial": generate_graphormer_spatial_bias(
            torch.randn(4, 5, generator=g).requires_grad_(), distances),
        "graphormer_edges": generate_graphormer_edge_bias(
            torch.randn(4, 3, 6, generator=g),
            torch.randint(0, 6, (2, S, S, 3), generator=g),
            torch.randint(1, 4, (2, S, S), generator=g)),
        "rope": generate_mla_rope_score_mod(torch.randn(2, 4, S, 8, generator=g),
                                            torch.randn(2, 1, S, 8, generator=g), 4),
        "sandwich": generate_sandwich_bias(4, S),
        "softcap": generate_tanh_softcap(20),
    }


def compare(mask, score, queries=S):
    q, k, v = (x.requires_grad_() for x in reference.draw(2, 4, 2, queries, S, 16))
    found = burst.attention(q, k, v, mask=mask, score=score, return_lse=True)
    wanted = reference.attention(q, k, v, mask, score)
    for x, y in zip(found, wanted):
        reference.assert_close(x, y)
    reference.check_gradients(found, wanted, (q, k, v))


@pytest.mark.parametrize("name", sorted(masks()))
def test_mask(name):
    mask = masks()[name]
    mask, queries = mask if isinstance(mask, tuple) else (mask, S)
    compare(mask, None, queries)


@pytest.mark.parametrize("name", sorted(mods()))
def test_mod(name):
    compare(None, mods()[name])
