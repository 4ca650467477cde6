# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own attention functions, with their signatures and meaning: every
argument is honoured, or refused by name."""

from __future__ import annotations

from typing import Any, cast

import torch

from burst import api, tracing
from burst.sequence import Sequence


def flex_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                   score_mod: tracing.Function | None = None, block_mask: Any = None,
                   scale: float | None = None, enable_gqa: bool = False,
                   return_lse: bool = False, kernel_options: Any = None, *,
                   return_aux: Any = None) -> Any:
    """`torch.nn.attention.flex_attention.flex_attention`, on CPUs backward, too.

    The mask is the `mask_mod` of the block mask; its blocks are not used, since the
    compiler finds out itself which are empty. kernel_options are those of Triton, and
    refused.
    """
    if kernel_options:
        raise ValueError(f"kernel_options: got {kernel_options}; they are options of Triton's "
                         "kernels, which are not used here: leave them out")
    _check_heads(query, key, enable_gqa)
    wants_lse = return_lse if return_aux is None else return_aux.lse
    wants_max_scores = return_aux is not None and return_aux.max_scores
    mask = None
    if block_mask is not None:
        mask = block_mask.mask_mod
        lengths = tuple(block_mask.seq_lengths)
        if lengths != (query.shape[2], key.shape[2]) and not _is_empty(block_mask):
            raise ValueError(f"block_mask: is for {lengths[0]} queries and {lengths[1]} keys, got "
                             f"{query.shape[2]} and {key.shape[2]}")
        if _is_empty(block_mask):
            mask = None
    o, lse, *rest = api.attention(query, key, value, mask=mask, score=score_mod, scale=scale,
                                  return_lse=True, return_max_scores=wants_max_scores)
    if return_aux is not None:
        from torch.nn.attention.flex_attention import AuxOutput
        return o, AuxOutput(lse=lse if wants_lse else None,
                            max_scores=rest[0] if wants_max_scores else None)
    return (o, lse) if wants_lse else o


def _is_empty(block_mask: Any) -> bool:
    """Whether it is the one that flex_attention makes where none is given."""
    return getattr(block_mask.mask_mod, "__name__", "") == "noop_mask"


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                                 attn_mask: torch.Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> torch.Tensor:
    """`torch.nn.functional.scaled_dot_product_attention`.

    As there, is_causal keeps the keys j <= i: where there are fewer queries than
    keys, these are the first ones. attn_mask is broadcast to (batch, heads,
    queries, keys): truths say what is kept, other numbers are added to scores and
    have gradients if they require them. Its values are not known when programs are
    compiled: a function, as burst.attention takes it, saves what it rules out.
    """
    return attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
           attn_mask: torch.Tensor | None, dropout_p: float, is_causal: bool,
           scale: float | None, enable_gqa: bool, sequence: Sequence | None = None,
           strategy: api.Strategy = "auto", without: tuple[str, ...] = ()) -> torch.Tensor:
    """scaled_dot_product_attention of shards of a sequence: is_causal and attn_mask
    are those of the whole."""
    if attn_mask is not None and is_causal:
        raise ValueError("is_causal: cannot be set beside attn_mask")
    lead = query.shape[:-3]
    if query.dim() < 3 or len(lead) > 1 and query.dim() != 4:
        raise ValueError(f"query: 3 or 4 dimensions are wanted, got the shape "
                         f"{tuple(query.shape)}")
    if query.dim() == 3:
        attn_mask = attn_mask if attn_mask is None or attn_mask.dim() < 3 else attn_mask[:, None]
        o = attend(query[:, None], key[:, None], value[:, None], attn_mask, dropout_p, is_causal,
                   scale, enable_gqa, sequence, strategy, without)
        return o[:, 0]
    _check_heads(query, key, enable_gqa)
    mask = score = None
    if is_causal:
        mask = _causal
    if attn_mask is not None:
        lengths = query.shape[2], key.shape[2]
        if sequence is not None:
            lengths = sequence.global_lengths(*lengths)
        table = _broadcast(attn_mask, (query.shape[0], query.shape[1], *lengths))
        if table.dtype == torch.bool:
            mask = _kept(table)
        elif table.dtype == query.dtype or table.dtype == torch.float32:
            score = _added(table)
        else:
            raise TypeError(f"attn_mask: bool or {query.dtype}, got {attn_mask.dtype}")
    # The tensor is of these heads and this batch, also where others are elsewhere.
    return api.attention(query, key, value, mask=mask, score=score, dropout=dropout_p,
                         scale=scale, sequence=sequence, strategy=strategy, without=without,
                         head_offset=0, batch_offset=0)


def _causal(b: Any, h: Any, i: Any, j: Any) -> Any:
    return j <= i


def _broadcast(mask: torch.Tensor, wanted: tuple[int, int, int, int]) -> torch.Tensor:
    """The mask with 4 dimensions, each of size 1 or whole, without copies."""
    if mask.dim() > 4 or mask.dim() < 2:
        raise ValueError(f"attn_mask: 2 to 4 dimensions are wanted, got {tuple(mask.shape)}")
    mask = mask.reshape((1,) * (4 - mask.dim()) + tuple(mask.shape))
    for size, whole in zip(mask.shape, wanted):
        if size not in (1, whole):
            raise ValueError(f"attn_mask: {tuple(mask.shape)} does not broadcast to {wanted}")
    return mask


def _read(table: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    at = [x if size != 1 else 0 for size, x in zip(table.shape, (b, h, i, j))]
    return table[at[0], at[1], at[2], at[3]]


def _kept(table: torch.Tensor) -> tracing.Function:
    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        return _read(table, b, h, i, j)
    return mask


def _added(table: torch.Tensor) -> tracing.Function:
    def score(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return s + _read(table, b, h, i, j)
    return score


def varlen(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens: torch.Tensor,
           cu_seqlens_k: torch.Tensor | None = None, *, causal: bool = False,
           window: tuple[int, int] = (-1, -1), softcap: float = 0.0,
           scale: float | None = None, return_lse: bool = False,
           seqused_k: torch.Tensor | None = None,
           block_table: torch.Tensor | None = None) -> Any:
    """Attention of packed sequences (THD), as flash_attn_varlen_func has it.

    q is (tokens, heads, dim), k and v are (tokens, heads, dim); sequence n has the
    tokens from cu_seqlens[n] to cu_seqlens[n + 1], of k and v those of
    cu_seqlens_k, which is cu_seqlens where it is left out, or the first
    seqused_k[n] of these. In each sequence masks count from the last query and key:
    causal keeps d = i + lk - lq - j >= 0, window = (left, right) keeps
    -right <= d <= left, and -1 is no bound; softcap is C * tanh(s / C), and none
    where it is 0. lse is (heads, tokens).
    """
    cu_q = _offsets(cu_seqlens, "cu_seqlens", q)
    cu_k = _offsets(cu_seqlens, "cu_seqlens", k) if cu_seqlens_k is None else \
        _offsets(cu_seqlens_k, "cu_seqlens_k", k)
    if cu_q.numel() != cu_k.numel():
        raise ValueError(f"cu_seqlens_k: {cu_k.numel() - 1} sequences, cu_seqlens has "
                         f"{cu_q.numel() - 1}")
    if block_table is not None:
        raise ValueError("block_table: keys are packed here; burst.with_kvcache reads pages")
    left, right = sides(causal, window, softcap)
    ends = cu_k[1:]
    if seqused_k is not None:
        used = torch.as_tensor(seqused_k).cpu()
        if used.is_floating_point() or used.shape != ends.shape or \
                bool(((used < 0) | (used > ends - cu_k[:-1])).any()):
            raise ValueError(f"seqused_k: for each of the {ends.numel()} sequences at most its "
                             f"number of keys is wanted, got {seqused_k}")
        ends = cu_k[:-1] + used
    query_ids, query_places = _places(cu_q, ends)
    key_ids, key_places = _places(cu_k, cu_k[1:])
    if seqused_k is not None and k.shape[0]:
        key_ids[key_places >= ends[key_ids]] = -1

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        kept = query_ids[i] == key_ids[j]
        if left < 0 and right < 0:
            return kept
        return within(kept, query_places[i] - key_places[j], left, right)

    def score(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return softcap * torch.tanh(s / softcap)

    o, lse = api.attention(*(x.transpose(0, 1)[None] for x in (q, k, v)), mask=mask,
                           score=score if softcap else None, scale=scale, return_lse=True)
    o = o[0].transpose(0, 1)
    return (o, lse[0]) if return_lse else o


def _offsets(offsets: torch.Tensor, name: str, packed: torch.Tensor) -> torch.Tensor:
    if packed.dim() != 3:
        raise ValueError(f"varlen: (tokens, heads, dim) is wanted, got {tuple(packed.shape)}")
    if offsets.dim() != 1 or offsets.numel() < 1:
        raise ValueError(f"{name}: one dimension is wanted, got {tuple(offsets.shape)}")
    if offsets.is_floating_point() or offsets.dtype == torch.bool:
        raise ValueError(f"{name}: integers are wanted, got {offsets.dtype}")
    offsets = offsets.cpu().long()
    if int(offsets[0]) != 0 or int(offsets[-1]) != packed.shape[0] or \
            bool((offsets[1:] < offsets[:-1]).any()):
        raise ValueError(f"{name}: must rise from 0 to the number of tokens, {packed.shape[0]}, "
                         f"got {offsets}")
    return offsets


def sides(causal: bool, window: tuple[int, int], softcap: float) -> tuple[int, int]:
    """How far the window of a mask reaches to the left and to the right."""
    if not isinstance(cast(object, window), (tuple, list)) or len(window) != 2:
        raise ValueError(f"window: (left, right) is wanted, got {window!r}")
    left, right = window
    if left < -1 or right < -1:
        raise ValueError(f"window: sides are at least 0, or -1 for no bound, got {window}")
    if softcap < 0:
        raise ValueError(f"softcap: positive, or 0 for none, got {softcap}")
    return left, 0 if causal else right


def within(kept: Any, d: Any, left: int, right: int) -> Any:
    """Of what is kept, what lies in a window."""
    if left >= 0:
        kept = kept & (d <= left)
    if right >= 0:
        kept = kept & (d >= -right)
    return kept


def _places(own: torch.Tensor, ends: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Which sequence each token is of, and its place, so that the last query of a
    sequence has the place of its last key, in front of the end of these. Of no tokens
    there is one that nobody reads: a table has an element."""
    if not int(own[-1]):
        return torch.full((1,), -1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    lengths = own[1:] - own[:-1]
    ids = torch.repeat_interleave(torch.arange(lengths.numel()), lengths)
    places = torch.arange(int(own[-1])) + (ends - own[1:])[ids]
    return ids.to(torch.int32), places.to(torch.int32)


def _check_heads(query: torch.Tensor, key: torch.Tensor, enable_gqa: bool) -> None:
    if not enable_gqa and query.dim() == 4 and query.shape[1] != key.shape[1]:
        raise ValueError(f"enable_gqa: must be set where query has {query.shape[1]} heads and key "
                         f"{key.shape[1]}")
