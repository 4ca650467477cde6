# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The core attention of Megatron-Core, in the place of TEDotProductAttention.

    from burst.integrations.megatron import CoreAttention
    spec.submodules.self_attention.submodules.core_attention = CoreAttention

Sequences are sharded over the context parallel group as Megatron and Transformer
Engine have them, in 2 * cp chunks of which a rank has one and its counterpart from
the end: zigzag order, of packed (thd) sequences of each by itself. Neither of the two
has to be installed.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch

from burst import api, tracing
from burst.integrations import packing
from burst.sequence import Layout, Sequence

# What of a config CoreAttention cannot honour: the values that are none of its
# concern, and what to do about others.
_REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "batch_invariant_mode": ((None, False), "set it to False: results depend on the batch in the "
                                            "last bits"),
    "experimental_attention_variant": ((None, "gdn", "gdn2", "gated_delta_net"),
                                       "its layers have another attention: keep Megatron's"),
    "flash_attention_version": ((None,), "leave it out: no FlashAttention is called"),
    "fp8_dot_product_attention": ((None, False), "set it to False; linear layers may be of fp8"),
    "fp8_multi_head_attention": ((None, False), "set it to False; linear layers may be of fp8"),
    "hierarchical_context_parallel_sizes": ((None,), "leave it out: burst has one ring of all "
                                                     "ranks, with cp_comm_type p2p"),
    "log_max_attention_logit": ((None, False), "set it to False: the largest score is not known"),
    "qk_clip": ((None, False), "set it to False: the largest score is not known"),
    "use_kitchen_attention": ((None, False), "set it to False: it is another attention"),
}

_STRATEGIES: dict[str | None, api.Strategy] = {
    None: "auto", "p2p": "ring_kv", "all_gather": "all_gather", "allgather": "all_gather",
    "a2a": "ulysses"}

_KINDS = ("no_mask", "padding", "causal", "padding_causal", "causal_bottom_right",
          "padding_causal_bottom_right", "arbitrary")


class _Kind(NamedTuple):
    """An attn_mask_type."""

    name: str

    @property
    def is_causal(self) -> bool:
        return "causal" in self.name

    @property
    def is_bottom_right(self) -> bool:
        """Whether the last query and the last key are at the same position."""
        return not self.is_causal or "bottom_right" in self.name

    @property
    def is_padding(self) -> bool:
        return "padding" in self.name


def _kind(given: Any) -> _Kind:
    """Of AttnMaskType, or as Transformer Engine writes it."""
    name = str(getattr(given, "name", given)).replace(",", "_")
    name = "padding_causal" if name == "causal_padding" else name
    if name not in _KINDS:
        raise ValueError(f"attn_mask_type: {given!r} is not known; it is one of "
                         f"{', '.join(_KINDS)}")
    return _Kind(name)


class CoreAttention(torch.nn.Module):
    """Attention with the constructor and the forward of Megatron's DotProductAttention
    and TEDotProductAttention.

    Of the config are honoured: context_parallel_size, cp_comm_type (p2p is a ring of
    keys and values, all_gather gathers them, a2a shards heads in place of the
    sequence), num_attention_heads, kv_channels, tensor_model_parallel_size,
    softmax_scale, softmax_type (vanilla, off-by-one, learnable), window_size,
    window_attn_skip_freq, attention_dropout (which must be 0 in training),
    params_dtype, init_method, perform_initialization and use_cpu_initialization.
    Scores and softmax are of float32, so that apply_query_key_layer_scaling,
    attention_softmax_in_fp32 and masked_softmax_fusion change nothing; results are the
    same in each run, with and without deterministic_mode. What is not honoured is
    refused by its name.

    Of pg_collection cp is the group of the sequence, and tp says how many heads are
    here. Where it is left out, both are those of megatron.core.parallel_state.
    """

    def __init__(self, config: Any, layer_number: int, attn_mask_type: Any, attention_type: str,
                 attention_dropout: float | None = None, softmax_scale: float | None = None, *,
                 k_channels: int | None = None, v_channels: int | None = None,
                 num_splits: int | None = None, cp_comm_type: str | None = None,
                 pg_collection: Any = None) -> None:
        super().__init__()
        _check_config(config)
        self.config = config
        self.layer_number = max(1, layer_number)
        self.attn_mask_type = attn_mask_type
        _kind(attn_mask_type)
        if attention_type not in ("self", "cross"):
            raise ValueError(f"attention_type: self or cross, got {attention_type!r}")
        self.attention_type = attention_type
        _check_splits(num_splits)
        self.attention_dropout: float = _get(config, "attention_dropout", 0.0) \
            if attention_dropout is None else attention_dropout
        channels = _get(config, "kv_channels", None)
        self.k_channels = channels if k_channels is None else k_channels
        self.v_channels = channels if v_channels is None else v_channels
        self.softmax_scale: float | None = \
            _get(config, "softmax_scale", None) if softmax_scale is None else softmax_scale
        self.window_size = _window_of(config, self.layer_number)
        if cp_comm_type is None:
            cp_comm_type = _get(config, "cp_comm_type", None)
            if isinstance(cp_comm_type, list): # one for each layer
                cp_comm_type = cast("list[str]", cp_comm_type)[self.layer_number - 1]
        self.cp_comm_type = cp_comm_type
        self.cp_size: int = _get(config, "context_parallel_size", 1)
        self.cp_group: Any = None
        if self.cp_size > 1:
            self._strategy()
            self.cp_group = _group_of(pg_collection, "cp", "get_context_parallel_group")
        self.tp_group = _group_of(pg_collection, "tp", "get_tensor_model_parallel_group")
        self.tp_size: int = _get(config, "tensor_model_parallel_size", 1) \
            if self.tp_group is None else self.tp_group.size()
        self._add_sinks(_get(config, "softmax_type", "vanilla"))

    def _add_sinks(self, softmax_type: str) -> None:
        self.softmax_offset: torch.Tensor | None
        if softmax_type == "vanilla":
            self.softmax_offset = None
            return
        if softmax_type not in ("off-by-one", "learnable"):
            raise ValueError(f"softmax_type: vanilla, off-by-one or learnable, got "
                             f"{softmax_type!r}")
        config = self.config
        is_on_cpu = _get(config, "use_cpu_initialization", False) or not torch.cuda.is_available()
        offset = torch.zeros(config.num_attention_heads // self.tp_size,
                             dtype=_get(config, "params_dtype", torch.float32),
                             device="cpu" if is_on_cpu else torch.cuda.current_device())
        if softmax_type == "off-by-one":
            self.register_buffer("softmax_offset", offset, persistent=False)
            return
        self.softmax_offset = torch.nn.Parameter(offset)
        init_method = cast("Callable[[torch.Tensor], Any] | None",
                           _get(config, "init_method", None))
        if init_method is not None and _get(config, "perform_initialization", True):
            with torch.no_grad():
                init_method(self.softmax_offset)

    def set_context_parallel_group(self, cp_group: Any, cp_global_ranks: Any, cp_stream: Any,
                                   cp_comm_type: str | None = "p2p") -> None:
        """As of Transformer Engine. The ranks are those of the group, and no stream beside
        the current one is used."""
        if isinstance(cp_group, list):
            raise ValueError("cp_group: one process group is wanted; several are of cp_comm_type "
                             "a2a+p2p, which burst does not have: use p2p")
        self.cp_group = cp_group
        self.cp_comm_type = cp_comm_type
        self.cp_size = 1 if cp_group is None else cp_group.size()
        self._strategy()

    def _strategy(self) -> api.Strategy:
        if self.cp_comm_type not in _STRATEGIES:
            raise ValueError(f"cp_comm_type: {self.cp_comm_type!r} is not had; use p2p, "
                             "all_gather or a2a")
        return _STRATEGIES[self.cp_comm_type]

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                attention_mask: torch.Tensor | tuple[torch.Tensor, torch.Tensor] | None,
                attn_mask_type: Any = None, attention_bias: torch.Tensor | None = None,
                packed_seq_params: Any = None, num_splits: int | None = None) -> torch.Tensor:
        """query, key and value are (sequence, batch, heads, dim), and the result is
        (sequence, batch, heads * dim); with packed_seq_params of thd they are (tokens,
        heads, dim), and it is (tokens, heads * dim).

        causal and windows are those of the whole sequence. attention_mask is true where
        a pair is masked out, (batch or 1, heads or 1, S, S), or of padding (batch, 1, 1,
        S), for attention_type cross a pair of these; attention_bias is added to scores.
        Both are of the whole sequence, the same on every rank, and count beside what
        attn_mask_type says.
        """
        _check_splits(num_splits)
        if self.training and self.attention_dropout:
            raise ValueError(f"attention_dropout: got {self.attention_dropout}; burst has none: "
                             "set attention_dropout of the config to 0")
        kind = _kind(self.attn_mask_type if attn_mask_type is None else attn_mask_type)
        for x, name, channels in ((query, "query", self.k_channels), (key, "key", self.k_channels),
                                  (value, "value", self.v_channels)):
            if channels is not None and x.shape[-1] != channels:
                which = "v_channels" if name == "value" else "k_channels"
                raise ValueError(f"{name}: has a head dim of {x.shape[-1]}, {which} or kv_channels "
                                 f"is {channels}")
        left, right = self.window_size
        if kind.is_causal:
            right = 0
        elif (left, right) == (-1, 0):
            raise ValueError(f"window_size: (-1, 0) is a causal mask; attn_mask_type is "
                             f"{kind.name}: say causal, or (-1, -1)")
        sequence = self._sequence(packed_seq_params)
        if packed_seq_params is None:
            return self._attend_batch(query, key, value, attention_mask, kind, attention_bias,
                                      sequence, left, right)
        if attention_mask is not None or attention_bias is not None:
            name = "attention_bias" if attention_mask is None else "attention_mask"
            raise ValueError(f"{name}: cannot be given beside packed_seq_params, whose cu_seqlens "
                             "say what is masked")
        return self._attend_packed(query, key, value, kind, packed_seq_params, sequence, left,
                                   right)

    def _sequence(self, packed: Any) -> Sequence | None:
        """Over the group of the config, or of packed_seq_params where it has its own."""
        group, size = self.cp_group, self.cp_size
        if packed is not None:
            own, own_size = getattr(packed, "cp_group", None), getattr(packed, "local_cp_size",
                                                                       None)
            if own_size is not None and int(own_size) != (1 if own is None else own.size()):
                raise ValueError(f"local_cp_size: {int(own_size)}, where cp_group of "
                                 f"packed_seq_params has {1 if own is None else own.size()}")
            if own is not None or own_size is not None:
                group, size = own, 1 if own is None else own.size()
        if size == 1:
            return None
        if group is None:
            raise ValueError(f"pg_collection: has no group cp for a context_parallel_size of "
                             f"{size}; give it, or call set_context_parallel_group")
        sequence = Sequence(group, "zigzag")
        if sequence.ranks != size:
            raise ValueError(f"context_parallel_size: {size}, where the group has "
                             f"{sequence.ranks} ranks")
        return sequence

    # Batches.

    def _attend_batch(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                      attention_mask: Any, kind: _Kind, attention_bias: torch.Tensor | None,
                      sequence: Sequence | None, left: int, right: int) -> torch.Tensor:
        ranks = 1 if sequence is None else sequence.ranks
        for x, name in ((query, "query"), (key, "key"), (value, "value")):
            if x.dim() != 4:
                raise ValueError(f"{name}: (sequence, batch, heads, dim) is wanted, got "
                                 f"{tuple(x.shape)}")
            if ranks > 1 and x.shape[0] % 2:
                raise ValueError(f"{name}: {x.shape[0]} positions on a rank, which are no two "
                                 "chunks of one length: pad the sequence to a multiple of "
                                 f"{2 * ranks}")
        num_queries, num_keys = query.shape[0] * ranks, key.shape[0] * ranks
        if not kind.is_bottom_right and num_queries != num_keys:
            raise ValueError(f"attn_mask_type: causal, of {num_queries} queries and {num_keys} "
                             "keys: say causal_bottom_right, where the last ones are at the same "
                             "position, or no_mask")
        sizes = query.shape[1], query.shape[2], num_queries, num_keys
        tables = _tables(attention_mask, kind, sizes)
        mask = _mask(packing.window_mask(num_queries, num_keys, left, right), tables)
        score = None
        if attention_bias is not None:
            _check_whole(attention_bias, "attention_bias", sizes)
            score = _bias(attention_bias)
        o = self._attend([x.transpose(0, 1) for x in (query, key, value)], mask, score, sequence)
        return o.transpose(0, 1).contiguous().flatten(2)

    def _attend(self, tensors: list[torch.Tensor], mask: tracing.Function | None,
                score: tracing.Function | None, sequence: Sequence | None) -> torch.Tensor:
        q, k, v = tensors
        scale = self.softmax_scale
        if scale is None:
            scale = 1 / math.sqrt(q.shape[-1])
        # Sinks and biases are of the heads that are here.
        return api.attention(q, k, v, mask=mask, score=score, sinks=self.softmax_offset,
                             scale=scale, sequence=sequence, layout="bshd",
                             strategy="auto" if sequence is None else self._strategy(),
                             head_offset=0, batch_offset=0)

    # Packed sequences.

    def _attend_packed(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                       kind: _Kind, packed: Any, sequence: Sequence | None, left: int,
                       right: int) -> torch.Tensor:
        if packed.qkv_format != "thd":
            raise ValueError(f"packed_seq_params: qkv_format thd is wanted, got "
                             f"{packed.qkv_format!r}; of batches leave packed_seq_params out")
        if kind.name == "arbitrary":
            raise ValueError("attn_mask_type: arbitrary is of batches; packed_seq_params are "
                             "padding or padding_causal")
        for x, name in ((query, "query"), (key, "key"), (value, "value")):
            if x.dim() != 3:
                raise ValueError(f"{name}: (tokens, heads, dim) is wanted, got {tuple(x.shape)}")
        layout = Layout(1) if sequence is None else sequence.layout
        queries, keys = _sides(packed, layout, kind.is_bottom_right, query.shape[0], key.shape[0])
        if sequence is not None: # of which tables say the order
            sequence = Sequence(sequence.group, "contiguous")
        o = self._attend([x[None] for x in (query, key, value)],
                         packing.packed_mask(queries, keys, left, right), None, sequence)
        return o[0].contiguous().flatten(1)

    # Checkpoints.

    def sharded_state_dict(self, prefix: str = "", sharded_offsets: tuple[Any, ...] = (),
                           metadata: Any = None) -> Any:
        """As of Megatron's core attentions: softmax_offset is sharded over tp."""
        utils = cast(Any, importlib.import_module("megatron.core.transformer.utils"))
        state = self.state_dict(prefix="", keep_vars=True)
        groups: dict[str, Any] = {}
        if metadata and "dp_cp_group" in metadata: # as of newer versions
            groups = {"tp_group": self.tp_group, "dp_cp_group": metadata["dp_cp_group"]}
        return utils.make_sharded_tensors_for_checkpoint(
            state, prefix, {"softmax_offset": 0}, sharded_offsets, **groups)


#===----------------------------------------------------------------------===#
# The config
#===----------------------------------------------------------------------===#


def _get(config: Any, name: str, default: Any) -> Any:
    """Configs of other versions of Megatron have fewer fields."""
    return getattr(config, name, default)


def _check_config(config: Any) -> None:
    for name, (accepted, mend) in _REFUSED.items():
        given = _get(config, name, accepted[0])
        if given not in accepted:
            raise ValueError(f"{name}: got {given!r}, which CoreAttention does not have; {mend}")


def _check_splits(num_splits: int | None) -> None:
    if num_splits not in (None, 1):
        raise ValueError(f"num_splits: got {num_splits}; it is of FlashAttention's kernels: leave "
                         "it out")


def _window_of(config: Any, layer_number: int) -> tuple[int, int]:
    """Of a layer, counted from 1; (-1, -1) where it has none."""
    window = cast("tuple[int, int] | None", _get(config, "window_size", None))
    skips = cast("int | list[int] | None", _get(config, "window_attn_skip_freq", None))
    if not window:
        return -1, -1
    if isinstance(skips, int):
        has_window = layer_number % skips != 0
    else:
        has_window = skips is None or bool(skips[layer_number - 1])
    if len(window) != 2 or min(window) < -1:
        raise ValueError(f"window_size: (left, right) of at least 0, or -1 for no bound, got "
                         f"{window}")
    return (window[0], window[1]) if has_window else (-1, -1)


def _group_of(pg_collection: Any, name: str, function: str) -> Any:
    if pg_collection is not None:
        return getattr(pg_collection, name, None)
    try:
        state = cast(Any, importlib.import_module("megatron.core.parallel_state"))
    except ModuleNotFoundError:
        return None
    return getattr(state, function)(check_initialized=False)


#===----------------------------------------------------------------------===#
# Masks
#===----------------------------------------------------------------------===#


def _check_whole(table: torch.Tensor, name: str, sizes: tuple[int, ...]) -> None:
    if table.dim() != 4 or any(size not in (1, whole) for size, whole in zip(table.shape, sizes)):
        raise ValueError(f"{name}: {tuple(table.shape)} does not broadcast to {sizes}, (batch, "
                         "heads, queries, keys) of the whole sequence; it is the same on every "
                         "rank, and no shard")


def _tables(given: Any, kind: _Kind, sizes: tuple[int, int, int, int]) -> list[torch.Tensor]:
    """Of (batch, heads, queries, keys), each of them true where a pair is masked out."""
    if given is None:
        if kind.is_padding or kind.name == "arbitrary":
            raise ValueError(f"attention_mask: is wanted, as attn_mask_type is {kind.name}")
        return []
    if kind.name == "no_mask":
        raise ValueError("attention_mask: is given, and attn_mask_type is no_mask: leave it out, "
                         "or say padding or arbitrary")
    parts = cast("tuple[torch.Tensor, ...]", given if isinstance(given, (tuple, list)) else
                 (given,))
    if any(x.dtype != torch.bool for x in parts):
        raise TypeError("attention_mask: of bool, true where a pair is masked out, got "
                        f"{', '.join(str(x.dtype) for x in parts)}")
    is_vector = [x.dim() == 4 and x.shape[1:3] == (1, 1) for x in parts]
    if kind.is_padding and all(is_vector): # of tokens
        if len(parts) == 1:
            parts = parts[0], parts[0]
        parts = parts[0].transpose(2, 3), parts[1]
    elif len(parts) != 1:
        raise ValueError("attention_mask: a pair is of padding, each (batch, 1, 1, sequence)")
    for x in parts:
        _check_whole(x, "attention_mask", sizes)
    return list(parts)


def _read(table: Any, indices: tuple[Any, ...]) -> Any:
    return table[tuple(0 if size == 1 else x for size, x in zip(table.shape, indices))]


def _mask(window: tracing.Function | None,
          tables: list[torch.Tensor]) -> tracing.Function | None:
    if not tables:
        return window
    first, *rest = tables

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        kept = ~_read(first, (b, h, i, j))
        for table in rest:
            kept = kept & ~_read(table, (b, h, i, j))
        return kept if window is None else kept & window(b, h, i, j)
    return mask


def _bias(table: torch.Tensor) -> tracing.Function:
    def score(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return s + _read(table, (b, h, i, j))
    return score


_known = packing.Cache()
_OFFSETS = ("cu_seqlens_q", "cu_seqlens_kv", "cu_seqlens_q_padded", "cu_seqlens_kv_padded")


def _sides(packed: Any, layout: Layout, is_bottom_right: bool, num_queries: int,
           num_keys: int) -> tuple[packing.Side, packing.Side]:
    """Of packed_seq_params, whose offsets are those of all ranks."""
    given = tuple(getattr(packed, name, None) for name in _OFFSETS)
    pads = getattr(packed, "pad_between_seqs", None)
    key = _known.key(given, layout, is_bottom_right, num_queries, num_keys, pads)
    found = _known.get(key)
    if found is None:
        found = _known.put(key, given, _make_sides(given, layout, is_bottom_right, num_queries,
                                                   num_keys, pads))
    queries, keys, longest = found
    for name, most in zip(("max_seqlen_q", "max_seqlen_kv"), longest):
        most_given = getattr(packed, name, None)
        if most_given is not None and int(most_given) < most:
            raise ValueError(f"{name}: got {int(most_given)}, a sequence has {most} tokens")
    return queries, keys


def _make_sides(given: tuple[Any, ...], layout: Layout, is_bottom_right: bool, num_queries: int,
                num_keys: int, pads: bool | None) -> tuple[packing.Side, packing.Side,
                                                           tuple[int, int]]:
    for x, name in zip(given[:2], _OFFSETS):
        if x is None:
            raise ValueError(f"{name}: is wanted in packed_seq_params of thd")
    of_queries, of_keys = (packing.check_offsets(x, name) for x, name in zip(given[:2], _OFFSETS))
    padded = [own if x is None else packing.check_offsets(x, name)
              for x, own, name in zip(given[2:], (of_queries, of_keys), _OFFSETS[2:])]
    for x, name in zip((of_keys, *padded), _OFFSETS[1:]):
        if x.numel() != of_queries.numel():
            raise ValueError(f"{name}: of {x.numel() - 1} sequences, cu_seqlens_q of "
                             f"{of_queries.numel() - 1}")
    if pads is False and not (torch.equal(padded[0], of_queries) and
                              torch.equal(padded[1], of_keys)):
        raise ValueError("pad_between_seqs: is False, and padded offsets are others than "
                         "cu_seqlens_q and cu_seqlens_kv")
    lengths = [x[1:] - x[:-1] for x in (of_queries, of_keys)]
    shift = lengths[1] - lengths[0] if is_bottom_right else None
    queries = _side(of_queries, padded[0], layout, "cu_seqlens_q", shift, num_queries)
    if shift is None or not bool(shift.any()):
        is_same = torch.equal(of_queries, of_keys) and torch.equal(*padded) and \
            num_queries == num_keys
    else:
        is_same = False
    keys = queries if is_same else _side(of_keys, padded[1], layout, "cu_seqlens_kv", None,
                                         num_keys)
    return queries, keys, (packing.longest(of_queries), packing.longest(of_keys))


def _side(offsets: torch.Tensor, padded: torch.Tensor, layout: Layout, name: str,
          shift: torch.Tensor | None, num_tokens: int) -> packing.Side:
    side = packing.side(offsets, padded, layout, name, shift)
    rest = num_tokens * layout.ranks - side.ids.numel()
    if rest < 0 or rest > 0 and layout.ranks > 1:
        raise ValueError(f"{name}: {side.ids.numel()} tokens of all {layout.ranks} ranks, each of "
                         f"which should have {num_tokens}")
    if rest: # behind the last sequence
        side = packing.Side(torch.cat([side.ids, side.ids.new_full((rest,), -1)]),
                            torch.cat([side.places, side.places.new_zeros(rest)]), True)
    return side
