# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention of torch tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.autograd import forward_ad

from burst import arguments, torch_attention, torch_ops, tracing
from burst.sequence import Sequence
from burst.torch_attention import Call, OpenCall, Options, Results

Pair = tuple[torch.Tensor, torch.Tensor]

_count_modes = cast(Callable[[], int], cast(Any, torch)._C._len_torch_dispatch_stack)
_has_transforms = cast(Callable[[], bool], cast(Any, torch)._C._are_functorch_transforms_active)

_forward_ad = cast(Any, forward_ad)

_calls: dict[tuple[Any, ...], Call] = {}
_open_calls: dict[tuple[Any, ...], OpenCall] = {} # whatever their lengths and strides
# Tensors that are no more than that: others, such as fake ones, know what to do
# with an op.
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: tracing.Function | None,
              score: tracing.Function | None, sinks: torch.Tensor | None, scale: float | None,
              sequence: Sequence | None, strategy: str, without: Iterable[str], layout: str,
              head_offset: int | None, batch_offset: int | None, return_lse: bool,
              return_max_scores: bool, out: Results | None, stream: int | None) -> Any:
    if stream is not None:
        raise ValueError("stream: of torch tensors it is the current one; use torch.cuda.stream")
    if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
        q, k, v = _as_autocast(q, k, v)
    if torch.compiler.is_dynamo_compiling():
        from burst import torch_compile
        if out is not None:
            raise ValueError("out: cannot be given where torch.compile reads, which reuses "
                             "memory itself")
        results = torch_compile.attend(q, k, v, mask, score, scale, sequence, strategy,
                                       arguments.check_without(without), layout, head_offset,
                                       batch_offset, return_max_scores)
        return _given(results, sinks, layout, return_lse)
    if head_offset is not None:
        head_offset = arguments.whole("head_offset", head_offset)
    if batch_offset is not None:
        batch_offset = arguments.whole("batch_offset", batch_offset)
    if _forward_ad._current_level >= 0:
        _refuse_tangents(q, k, v)
    call = None
    tables = None
    key = None
    try:
        key = (q.shape, q.stride(), k.shape, k.stride(), v.shape, v.stride(), q.dtype, k.dtype,
               v.dtype, q.device, k.device, v.device,
               None if mask is None else mask.__code__,
               None if score is None else score.__code__, scale, sequence, strategy, without,
               layout, head_offset, batch_offset, return_max_scores, torch.get_default_dtype())
        call = _calls.get(key)
        if call is not None and sequence is not None and not call.is_agreed():
            call = None
        if call is not None:
            tables = call.tables(mask, score)
    except (AttributeError, TypeError): # no tensors, which is said below; functions without code
        key = None
    is_plain = type(q) in _PLAIN and type(k) in _PLAIN and type(v) in _PLAIN and \
        not _count_modes() and not _has_transforms()
    if not is_plain:
        _refuse_dtensors(q=q, k=k, v=v)
    open_key = None
    if call is None and key is not None and layout in arguments.LAYOUTS:
        open_key = (*torch_attention.without_length(layout, q, k, v), *key[6:])
        known = _open_calls.get(open_key)
        if known is not None and is_plain and out is None and not (
                torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or
                                             v.requires_grad or known.has_gradients())) and \
                not (q.is_neg() or k.is_neg() or v.is_neg()):
            results = known(q, k, v, mask, score)
            if results is not None:
                return _given(results, sinks, layout, return_lse)
    if call is None or tables is None:
        call, attention, tables = _find(key, open_key, q, k, v, mask, score, scale, sequence,
                                        strategy, without, layout, head_offset, batch_offset,
                                        return_max_scores, is_plain)
    else:
        attention = call.attention
    if out is not None:
        if not isinstance(cast(object, out), (tuple, list)) or len(out) != attention.num_results:
            raise TypeError(f"out: {_NAMES[attention.num_results]} is wanted, got "
                            f"{type(out).__name__}")
        _check_out(attention, q, k, v, tables, sinks, out)
        results = tuple(out)
        if call is not None and is_plain and call.takes(results) and \
                not (q.is_neg() or k.is_neg() or v.is_neg()):
            call.run(q, k, v, tables, results)
        else:
            torch_attention.forward(attention, q, k, v, tables, results)
        torch.autograd.graph.increment_version(results)
    elif _has_transforms():
        raise NotImplementedError("burst.attention: has no rules for torch.func (grad, vmap, jvp); "
                                  "use torch.autograd.grad, and a batch in place of vmap")
    elif not is_plain or q.is_neg() or k.is_neg() or v.is_neg():
        results = torch_ops.attention(attention, q, k, v, tables)
    elif torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad or
                                      tables and any([x.requires_grad for x in tables])):
        results = _apply(attention, call, q, k, v, *tables)
    elif call is not None:
        results = call(q, k, v, tables)
    else:
        results = torch_attention.forward(attention, q, k, v, tables)
    return _given(results, sinks, layout, return_lse)


# Of results, by how many there are.
_NAMES = {2: "(o, lse)", 3: "(o, lse, max_scores)"}


def _given(results: Results, sinks: torch.Tensor | None, layout: str, return_lse: bool) -> Any:
    """What of the results was asked for."""
    if sinks is not None:
        results = (*_with_sinks(results[0], results[1], sinks, layout), *results[2:])
    if return_lse:
        return results
    return results[0] if len(results) == 2 else (results[0], results[2])


def _find(key: tuple[Any, ...] | None, open_key: tuple[Any, ...] | None, q: torch.Tensor,
          k: torch.Tensor, v: torch.Tensor, mask: tracing.Function | None,
          score: tracing.Function | None, scale: float | None, sequence: Sequence | None,
          strategy: str, without: Iterable[str], layout: str, head_offset: int | None,
          batch_offset: int | None, max_scores: bool, is_plain: bool,
          ) -> tuple[Call | None, torch_attention.Attention, list[torch.Tensor]]:
    """What a call that is not known does, after checks of its arguments."""
    arguments.check_functions(mask, score, sequence)
    options = checked(q, k, v, scale, sequence, strategy, without, layout, head_offset,
                      batch_offset, max_scores)
    found = torch_attention.find(q, k, v, mask, score, options)
    check_offsets(found.attention, options, head_offset, batch_offset)
    call = None
    if is_plain and q.is_cpu and all([torch_attention.readable(x) is x
                                      for x in (q, k, v, *found.tables)]):
        call = Call(found, q, k, v)
        if found.guards is not None and any(found.attention.clauses.is_open):
            if open_key is not None:
                torch_attention.remember(_open_calls, open_key, OpenCall(found, q, k, v))
        elif found.guards is not None and key is not None:
            torch_attention.remember(_calls, key, call)
    return call, found.attention, found.tables


#===----------------------------------------------------------------------===#
# Gradients
#===----------------------------------------------------------------------===#


class Function(torch.autograd.Function):
    """As the op of torch.library, by the shorter way."""

    @staticmethod
    def forward(ctx: Any, attention: torch_attention.Attention, call: Call | None,
                q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                *tables: torch.Tensor) -> Results:
        if call is None:
            results = torch_attention.forward(attention, q, k, v, tables)
        else:
            results = call(q, k, v, tables)
        ctx.attention = attention
        ctx.save_for_backward(q, k, v, *results[:2], *tables)
        ctx.mark_non_differentiable(*results[2:])
        ctx.set_materialize_grads(False)
        return results

    @staticmethod
    def backward( # pyright: ignore[reportIncompatibleMethodOverride]
            ctx: Any, do: torch.Tensor | None, dlse: torch.Tensor | None, *_: None) -> Any:
        q, k, v, o, lse, *tables = ctx.saved_tensors
        needs = ctx.needs_input_grad
        if do is None and dlse is None:
            return (None,) * len(needs)
        wanted = ctx.attention.wanted(needs[5:])
        do = torch.zeros_like(o) if do is None else do
        if torch.is_grad_enabled(): # of create_graph: the op says that there is none
            dq, dk, dv, *found = torch_ops.attention_backward(
                ctx.attention, do, dlse, q, k, v, o, lse, tables, wanted)
        else:
            dq, dk, dv, *found = torch_attention.backward(
                ctx.attention, q, k, v, o, lse, do, dlse, tables, wanted)
        gradients: list[Any] = [None] * len(tables)
        for n, gradient in zip(wanted, found):
            gradients[n] = gradient.to(tables[n].dtype)
        return (None, None, dq, dk, dv, *gradients)


# Not Function.apply, which looks for transforms of functorch first: there are none
# where this is called.
_apply = cast(Callable[..., Results], cast(Any, super(torch.autograd.Function, Function)).apply)


#===----------------------------------------------------------------------===#
# Arguments
#===----------------------------------------------------------------------===#


def checked(q: Any, k: Any, v: Any, scale: float | None,
            sequence: Sequence | None, strategy: str, without: Iterable[str], layout: str,
            head_offset: int | None, batch_offset: int | None, max_scores: bool) -> Options:
    """The options, when all is as it should be."""
    arguments.check_options(layout, scale, strategy)
    left_out = arguments.check_without(without)
    for x, name in ((q, "q"), (k, "k"), (v, "v")):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name}: a torch.Tensor is wanted, as q is, got {type(x).__name__}")
        if x.layout != torch.strided:
            raise ValueError(f"{name}: a dense tensor is wanted, got one of {x.layout}")
    arguments.check_shapes([x.shape for x in (q, k, v)],
                           [str(x.dtype).removeprefix("torch.") for x in (q, k, v)], layout)
    _check_devices(q, k, v)
    return Options(layout, scale, sequence, None if strategy == "auto" else strategy, left_out,
                   head_offset or 0, batch_offset or 0, q.device.type, max_scores)


def _as_autocast(*tensors: Any) -> list[Any]:
    """In the type of torch.autocast, as the attention of torch is."""
    return [x.to(torch.get_autocast_dtype(x.device.type))
            if isinstance(x, torch.Tensor) and torch.is_autocast_enabled(x.device.type) and
            x.is_floating_point() and x.dtype != torch.float64 else x for x in tensors]


def _refuse_tangents(*tensors: Any) -> None:
    for x in tensors:
        if isinstance(x, torch.Tensor) and _forward_ad.unpack_dual(x).tangent is not None:
            raise NotImplementedError("burst.attention: has no forward-mode derivative; use "
                                      "torch.autograd.grad, which goes backward")


def _refuse_dtensors(**tensors: Any) -> None:
    """Among others, such as their shards."""
    for name, x in tensors.items():
        if hasattr(x, "to_local"):
            raise TypeError(f"{name}: is a DTensor, and others are none: make one of each, or "
                            f"give {name}.to_local()")


def _check_devices(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    if q.device.type not in ("cpu", "cuda"):
        raise ValueError(f"q: is on {q.device}; tensors must be on a CPU or a CUDA device")
    for x, name in ((k, "k"), (v, "v")):
        if x.device != q.device:
            raise ValueError(f"{name}: is on {x.device}, q on {q.device}")


def check_offsets(attention: torch_attention.Attention, options: Options,
                  head_offset: int | None, batch_offset: int | None) -> None:
    """Where there are more ranks than those of the sequence, heads or batch may be
    sharded over the others: what a function sees of them must not be a guess."""
    reads = attention.reads
    if True not in reads or not dist.is_available() or not dist.is_initialized():
        return
    ranks = 1 if options.sequence is None else options.sequence.ranks
    for name, what, is_read, offset in (("head_offset", "head", reads[0], head_offset),
                                        ("batch_offset", "batch", reads[1], batch_offset)):
        if is_read and offset is None and dist.get_world_size() > ranks:
            raise ValueError(
                f"{name}: mask or score depend on the {what}, and there are "
                f"{dist.get_world_size()} ranks, more than the {ranks} of the sequence: say which "
                f"{what} of the whole model the first one here is; 0 is a value")


def _check_out(attention: torch_attention.Attention, q: torch.Tensor, k: torch.Tensor,
               v: torch.Tensor, tables: list[torch.Tensor], sinks: torch.Tensor | None,
               out: Results) -> None:
    names = ("o", "lse", "max_scores")
    for x, name in zip(out, names):
        if not isinstance(cast(object, x), torch.Tensor):
            raise TypeError(f"out: {name} must be a torch.Tensor, as q is, got {type(x).__name__}")
    if torch.is_grad_enabled() and any([x.requires_grad for x in (q, k, v, *tables, *out)]):
        raise ValueError("out: results that are given have no gradients: use torch.no_grad(), or "
                         "leave it out")
    if sinks is not None:
        raise ValueError("out: cannot be given with sinks, which make other tensors of the "
                         "results")
    for x, name in zip(out, names):
        shape, dtype = (attention.o_shape, attention.dtype) if name == "o" else \
            (attention.lse_shape, attention.lse_dtype)
        if x.shape != shape or x.dtype is not dtype:
            raise ValueError(f"out: {name} must be {shape} of {dtype}, got {tuple(x.shape)} of "
                             f"{x.dtype}")
        if x.device != q.device or x.is_neg() or \
                not x.is_contiguous() and (x.stride(-1) != 1 or 0 in x.stride()):
            raise ValueError(f"out: {name} must be dense, on {q.device} and have the elements of "
                             f"its last dimension side by side, got strides {x.stride()} on "
                             f"{x.device}")


def _with_sinks(o: torch.Tensor, lse: torch.Tensor, sinks: torch.Tensor, layout: str) -> Pair:
    _refuse_dtensors(sinks=sinks)
    if not isinstance(cast(object, sinks), torch.Tensor) or not sinks.is_floating_point():
        found = sinks.dtype if isinstance(cast(object, sinks), torch.Tensor) else \
            type(sinks).__name__
        raise TypeError("sinks: a torch.Tensor of floating point is wanted, one number per head of "
                        f"q, got {found}")
    if sinks.shape != lse.shape[1:2]:
        raise ValueError(f"sinks: one number per head of q is wanted, ({lse.shape[1]},), got the "
                         f"shape {tuple(sinks.shape)}")
    sinks = sinks.to(lse.dtype)[None, :, None]
    # Where a row has no keys, another sink: of -inf, which is no sink, and -inf the
    # sum has no derivative.
    is_empty = lse == -math.inf
    other = torch.where(is_empty, 0.0, sinks)
    total = torch.where(is_empty, sinks, torch.logaddexp(lse, other))
    kept = torch.sigmoid(lse - other) # of the softmax, by keys and not by the sink
    if layout == "bshd":
        kept = kept.transpose(1, 2)
    return o * kept[..., None].to(o.dtype), total


#===----------------------------------------------------------------------===#
# Partial results
#===----------------------------------------------------------------------===#


def merge(parts: tuple[Pair, ...], layout: str) -> Pair:
    o, lse = parts[0]
    for other, other_lse in parts[1:]:
        total = torch.logaddexp(lse, other_lse)
        # Of rows that see no key in either part, nothing.
        weights = [torch.exp(torch.where(total == -math.inf, -math.inf, x - total))
                   for x in (lse, other_lse)]
        a, b = (w[..., None] if layout == "bhsd" else w.transpose(1, 2)[..., None]
                for w in weights)
        o, lse = (a * o + b * other).to(o.dtype), total
    return o, lse
