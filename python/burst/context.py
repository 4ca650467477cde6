# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Context parallelism with the interface of PyTorch's prototype: a context in which
buffers are shards, and scaled_dot_product_attention is that of the whole sequence."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import types
from collections.abc import Callable, Generator, Iterable, Iterator
from collections.abc import Sequence as Sizes
from typing import Any, cast

import torch
import torch.nn.functional

from burst import arguments, torch_functions
from burst.api import Strategy
from burst.sequence import Sequence

_torch = cast(Any, torch)


@contextlib.contextmanager
def context_parallel(mesh: Any, *, buffers: Sizes[torch.Tensor] | None = None,
                     buffer_seq_dims: Sizes[int] | None = None,
                     no_restore_buffers: Iterable[torch.Tensor] | None = None,
                     order: str = "zigzag",
                     strategy: Strategy = "auto",
                     without: Iterable[str] = ()) -> Generator[Sequence, None, None]:
    """`torch.distributed.tensor.experimental.context_parallel`, with the arguments and
    the meaning that it has there.

    Inside, each of `buffers` is this rank's shard along its dimension of
    `buffer_seq_dims`: the tensors themselves have another shape and other memory,
    and get back their own when the context ends, but for `no_restore_buffers`. And
    torch.nn.functional.scaled_dot_product_attention, which takes shards, is the
    attention of the whole sequence: is_causal counts its positions, and attn_mask,
    which torch refuses here, is (..., S, S) of the whole sequence, the same on every
    rank. Gradients pass, also where backward() is called after the context has
    ended.

    `mesh` is a dimension of a DeviceMesh or a process group. `order` says which
    positions a rank has, see burst.Layout: zigzag is that of torch where the length
    is a multiple of twice the number of ranks. `strategy` and `without` are those of
    burst.attention.
    Given to `with ... as`, the context is the burst.Sequence: its unshard, positions,
    and burst.attention with masks and scores that are functions.

    The function is replaced in torch.nn.functional and wherever a module has
    imported it from there, for the thread that is inside and the threads of its
    backward passes; other threads keep the one of torch. Contexts nest, and the
    innermost one counts. Other attentions, such as flex_attention, are not replaced:
    they see no more than a rank's shard. torch.utils.checkpoint computes a forward
    pass again: its backward() belongs inside of the context.
    """
    if mesh is None or getattr(mesh, "ndim", 1) != 1:
        raise ValueError("mesh: one dimension of a DeviceMesh is wanted, as mesh[\"cp\"], or a "
                         f"process group; got {mesh!r}")
    given = list(buffers or ())
    dims = list(buffer_seq_dims or ())
    length = _check_buffers(given, dims)
    unrestored = list(no_restore_buffers or ())
    for buffer in unrestored:
        if not any(buffer is x for x in given):
            raise ValueError("no_restore_buffers: has a tensor that is none of buffers")
    replacement = _replacement_of(Sequence(mesh, order, length=length), strategy,
                                  arguments.check_without(without))
    with contextlib.ExitStack() as stack:
        if given:
            stack.enter_context(_sharded(given, dims, unrestored, replacement.sequence))
        stack.enter_context(_replaced(replacement))
        yield replacement.sequence


#===----------------------------------------------------------------------===#
# Buffers
#===----------------------------------------------------------------------===#

# Those that are shards now, in any thread, by their identity.
_shards: set[int] = set()
_lock = threading.RLock()


def _check_buffers(buffers: list[torch.Tensor], dims: list[int]) -> int | None:
    """The length of the sequence that they have."""
    if len(buffers) != len(dims):
        raise ValueError(f"buffer_seq_dims: {len(dims)} dimensions of {len(buffers)} buffers")
    length = None
    for n, (x, dim) in enumerate(zip(buffers, dims)):
        if not isinstance(cast(Any, x), torch.Tensor) or x.layout != torch.strided or \
                hasattr(x, "to_local"):
            raise TypeError(f"buffers: number {n} is no dense torch.Tensor, but "
                            f"{type(x).__name__}: masks are functions of burst.attention")
        if x.requires_grad:
            raise ValueError(f"buffers: number {n} requires gradients, which pass through no "
                             "change in place: give what it is computed from, or shard it by "
                             "burst.Sequence.shard")
        if any(x is y for y in buffers[:n]):
            raise ValueError(f"buffers: number {n} is there twice")
        if id(x) in _shards:
            raise ValueError(f"buffers: number {n} is a shard already, by a context around this "
                             "one")
        if not -x.dim() <= dim < x.dim():
            raise ValueError(f"buffer_seq_dims: {dim} of buffer {n}, which is {tuple(x.shape)}")
        if length is None:
            length = x.shape[dim]
        if x.shape[dim] != length:
            raise ValueError(f"buffers: number {n} has {x.shape[dim]} positions, number 0 has "
                             f"{length}: all are of one sequence; give a slice of it")
    return length


@contextlib.contextmanager
def _sharded(buffers: list[torch.Tensor], dims: list[int], unrestored: list[torch.Tensor],
             sequence: Sequence) -> Generator[None, None, None]:
    """The data of a tensor is exchanged, and not written over, so that its memory,
    of which other tensors may be views, stays as it is."""
    with torch.no_grad():
        shards = [sequence.shard(x, dim) for x, dim in zip(buffers, dims)]
    wholes = [x.data for x in buffers]
    keys = {id(x) for x in buffers}
    try:
        with _lock:
            _shards.update(keys)
        for x, shard in zip(buffers, shards):
            x.data = shard
        with _kept(shards):
            yield
    finally:
        for x, whole in zip(buffers, wholes):
            if not any(x is y for y in unrestored):
                x.data = whole
        with _lock:
            _shards.difference_update(keys)


def _kept(shards: list[torch.Tensor]) -> Any:
    """What autograd saves of shards inside is saved by itself: the buffers have other
    data when a backward pass that follows the context reads them."""
    storages = {_storage_of(x) for x in shards}
    outer = _hooks()

    def pack(x: torch.Tensor) -> Any:
        if _storage_of(x) in storages:
            x = x.detach()
        return (x, x._version) if outer is None else outer[0](x)

    def unpack(saved: Any) -> torch.Tensor:
        if outer is not None:
            return outer[1](saved)
        x, version = saved
        if x._version != version:
            raise RuntimeError("one of the variables needed for gradient computation has been "
                               f"modified by an inplace operation: a tensor {tuple(x.shape)} is at "
                               f"version {x._version}; expected version {version} instead")
        return x

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


def _storage_of(x: torch.Tensor) -> int | None:
    try:
        return cast(Any, x.untyped_storage())._cdata
    except (NotImplementedError, RuntimeError): # it has none
        return None


_hooks = cast(Callable[[], "tuple[Callable[..., Any], Callable[..., Any]] | None"],
              functools.partial(_torch._C._autograd._top_saved_tensors_default_hooks, True))


#===----------------------------------------------------------------------===#
# Attention
#===----------------------------------------------------------------------===#


class _Replacement:
    """scaled_dot_product_attention inside of a context."""

    def __init__(self, sequence: Sequence, strategy: Strategy,
                 without: tuple[str, ...]) -> None:
        self.sequence = sequence
        self.strategy: Strategy = strategy
        self.without = without
        self.length = sequence.length
        # Of this rank.
        self.local = None if self.length is None or sequence.rank is None else \
            sequence.layout.local_length(sequence.rank, self.length)

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
               attn_mask: torch.Tensor | None, dropout_p: float, is_causal: bool,
               scale: float | None, enable_gqa: bool) -> torch.Tensor:
        if dropout_p:
            raise ValueError(f"dropout_p: got {dropout_p}; inside of burst.context_parallel there "
                             "is none: set it to 0, or apply dropout to what attention gives")
        for x, name in ((query, "query"), (key, "key"), (value, "value")):
            if hasattr(x, "to_local"):
                raise TypeError(f"{name}: is a DTensor; burst.context_parallel takes the shard "
                                "itself, which to_local() gives")
            if self.local is not None and x.shape[-2] != self.local:
                raise ValueError(
                    f"{name}: {x.shape[-2]} positions, where this rank has {self.local} of the "
                    f"{self.length} of the buffers: name what it is computed from among buffers, "
                    "or, where the lengths are others, none of them")
        if is_causal and query.shape[-2] != key.shape[-2]:
            raise ValueError(f"is_causal: of {query.shape[-2]} queries and {key.shape[-2]} keys on "
                             "a rank; burst.attention takes a mask that says which see which")
        if attn_mask is not None:
            self.check_mask(attn_mask, query, key)
        o = torch_functions.attend(query, key, value, attn_mask, 0.0, is_causal, scale, enable_gqa,
                                   self.sequence, self.strategy, self.without)
        if not torch.compiler.is_compiling() and o.requires_grad and _hooks() is not None:
            o = cast(torch.Tensor, cast(Any, _Mark).apply(o))
        return o

    def check_mask(self, attn_mask: torch.Tensor, query: torch.Tensor,
                   key: torch.Tensor) -> None:
        if type(attn_mask) not in (torch.Tensor, torch.nn.Parameter):
            raise TypeError(f"attn_mask: a torch.Tensor is wanted, got {type(attn_mask).__name__}")
        wanted = self.sequence.global_lengths(query.shape[-2], key.shape[-2])
        found = tuple(attn_mask.shape[-2:])
        if any(size not in (1, whole) for size, whole in zip(found, wanted)):
            raise ValueError(
                f"attn_mask: (..., {', '.join(map(str, found))}); inside of burst.context_parallel "
                f"it is of the whole sequence, (..., {wanted[0]}, {wanted[1]}), on every rank, and "
                "none of the buffers. Models of transformers make one where position_ids jump, as "
                "in zigzag order: give them attention_mask=torch.ones_like(input_ids)")


class _Mark(torch.autograd.Function):
    """Saves one tensor more than the attention of torch, so that a checkpoint which
    is computed again outside of the context, and so with that one, is an error of
    torch.utils.checkpoint."""

    @staticmethod
    def forward(ctx: Any, o: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(o.new_empty(0))
        return o.view_as(o)

    @staticmethod
    def backward(ctx: Any, do: torch.Tensor) -> torch.Tensor: # pyright: ignore
        _ = ctx.saved_tensors
        return do


# The same object for equal sequences: compiled graphs depend on it.
@functools.lru_cache(maxsize=64)
def _replacement_of(sequence: Sequence, strategy: Strategy,
                    without: tuple[str, ...]) -> _Replacement:
    return _Replacement(sequence, strategy, without)


# Where this thread, and those of its backward passes, find the innermost one.
_KEY = "burst.context_parallel"


def _current() -> _Replacement | None:
    return _torch._C._get_obj_in_tls(_KEY) if _torch._C._is_key_in_tls(_KEY) else None


# The innermost ones of all threads; of the last of them torch.compile knows.
_active: list[_Replacement] = []
_innermost: _Replacement | None = None


@contextlib.contextmanager
def _replaced(replacement: _Replacement) -> Generator[None, None, None]:
    global _innermost
    outer = _current()
    with _lock:
        if not _active:
            _install()
        _active.append(replacement)
        _innermost = replacement
    _torch._C._stash_obj_in_tls(_KEY, replacement)
    try:
        yield
    finally:
        _torch._C._stash_obj_in_tls(_KEY, outer)
        with _lock:
            # One of another thread may have come behind it.
            _active.pop(max(n for n, x in enumerate(_active) if x is replacement))
            _innermost = _active[-1] if _active else None
            if not _active:
                _uninstall()


_original: Callable[..., torch.Tensor] = torch.nn.functional.scaled_dot_product_attention
_original_of_heads: Callable[..., Any] = torch.nn.functional.multi_head_attention_forward


def _here() -> _Replacement | None:
    return _innermost if torch.compiler.is_dynamo_compiling() else _current()


def _attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
               attn_mask: torch.Tensor | None = None, dropout_p: float = 0.0,
               is_causal: bool = False, scale: float | None = None,
               enable_gqa: bool = False) -> torch.Tensor:
    """In the place of torch.nn.functional.scaled_dot_product_attention."""
    replacement = _here()
    if replacement is None:
        return _original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                         enable_gqa=enable_gqa)
    return replacement.attend(query, key, value, attn_mask, dropout_p, is_causal, scale,
                              enable_gqa)


def _attention_of_heads(*args: Any, **kwargs: Any) -> Any:
    """In the place of torch.nn.functional.multi_head_attention_forward, which has
    another attention where weights are wanted."""
    wants_weights = args[15] if len(args) > 15 else kwargs.get("need_weights", True)
    if wants_weights and _here() is not None:
        raise ValueError("need_weights: must be False inside of burst.context_parallel, as no rank "
                         "has the weights of the whole sequence: call nn.MultiheadAttention with "
                         "need_weights=False")
    return _original_of_heads(*args, **kwargs)


#===----------------------------------------------------------------------===#
# Where it is replaced
#===----------------------------------------------------------------------===#

_ATTENTION = "scaled_dot_product_attention"
_ATTENTION_OF_HEADS = "multi_head_attention_forward"
# Modules that have imported the function, as of so many modules.
_importers: list[tuple[dict[str, Any], str]] = []
_num_modules = 0
_had_fast_path = True


def _install() -> None:
    global _original, _original_of_heads, _importers, _num_modules, _had_fast_path
    module = _names_of(torch.nn.functional)
    if len(sys.modules) != _num_modules or module[_ATTENTION] is not _original:
        _original = module[_ATTENTION]
        _num_modules = len(sys.modules)
        _importers = [(names, name) for names in _namespaces()
                      for name, value in list(names.items()) if value is _original]
    _original_of_heads = module[_ATTENTION_OF_HEADS]
    for names, name in _importers:
        if names.get(name) is _original:
            names[name] = _attention
    module[_ATTENTION_OF_HEADS] = _attention_of_heads
    # Of nn.MultiheadAttention, which calls another attention.
    _had_fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)


def _uninstall() -> None:
    module = _names_of(torch.nn.functional)
    for names, name in _importers:
        if names.get(name) is _attention:
            names[name] = _original
    if module[_ATTENTION_OF_HEADS] is _attention_of_heads:
        module[_ATTENTION_OF_HEADS] = _original_of_heads
    torch.backends.mha.set_fastpath_enabled(_had_fast_path)


def _namespaces() -> Iterator[dict[str, Any]]:
    """Of torch.nn.functional, and of modules that are none of torch or burst."""
    yield _names_of(torch.nn.functional)
    for name, module in list(sys.modules.items()):
        if isinstance(cast(Any, module), types.ModuleType) and \
                name.split(".")[0] not in ("torch", "burst"):
            yield _names_of(module)


def _names_of(module: types.ModuleType) -> dict[str, Any]:
    return module.__dict__
