# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of torch.library: attention as torch.compile, torch.export, modes and
policies of checkpoints see it.

    burst::attention(q, k, v, tables, name) -> (o, lse)
    burst::attention_with_max_scores(q, k, v, tables, name) -> (o, lse, max_scores)
    burst::attention_backward(do, dlse, q, k, v, o, lse, tables, wanted, name) -> gradients

`name` is that of an attention of known sizes, a digest of its program: burst.attention
calls the ops by it.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any, cast

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from burst import torch_attention
from burst.torch_attention import Attention, Results

_torch = cast(Any, torch.library) # which has not said all types
_library = _torch.Library("burst", "DEF")
_library.define("attention(Tensor q, Tensor k, Tensor v, Tensor[] tables, str name) -> "
                "(Tensor o, Tensor lse)")
_library.define("attention_with_max_scores(Tensor q, Tensor k, Tensor v, Tensor[] tables, "
                "str name) -> (Tensor o, Tensor lse, Tensor max_scores)")
_FORWARD = ("burst::attention", "burst::attention_with_max_scores")
_library.define("attention_backward(Tensor do, Tensor? dlse, Tensor q, Tensor k, Tensor v, "
                "Tensor o, Tensor lse, Tensor[] tables, int[] wanted, str name) -> Tensor[]")

# Those of calls, of autograd and of caches, while these have them.
_alive: weakref.WeakValueDictionary[str, Attention] = weakref.WeakValueDictionary()
# What those of graphs are made from: nobody says when a graph is gone, that of torch.export may
# be anywhere. Their programs, which are large, come and go.
_of_graphs: dict[str, tuple[Any, ...]] = {}
_lock = threading.Lock()


def attention(found: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
              tables: list[torch.Tensor]) -> Results:
    found = _named(found)
    op = torch.ops.burst.attention if found.num_results == 2 else \
        torch.ops.burst.attention_with_max_scores
    return op(q, k, v, tables, found.name)


def attention_backward(found: Attention, do: torch.Tensor, dlse: torch.Tensor | None,
                       q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
                       lse: torch.Tensor, tables: list[torch.Tensor],
                       wanted: tuple[int, ...]) -> list[torch.Tensor]:
    found = _named(found)
    return torch.ops.burst.attention_backward(do, dlse, q, k, v, o, lse, tables, list(wanted),
                                              found.name)


def _named(found: Attention) -> Attention:
    """The one of its name, which the op finds while the caller keeps it, or by a graph."""
    with _lock:
        found = _alive.setdefault(found.name, found)
    if get_proxy_mode() is not None:
        _of_graphs[found.name] = found.made_from
    return found


@functools.lru_cache(maxsize=1024)
def _again(name: str) -> Attention:
    return Attention(*_of_graphs[name])


def _of(name: str, *tensors: torch.Tensor) -> Attention:
    try:
        found = _alive.get(name) or _again(name)
    except KeyError:
        raise RuntimeError(f"burst::attention: this process has no attention {name}; it is "
                           "burst.attention that makes them and calls the op") from None
    for x, shape, what in zip(tensors, found.shapes, "qkv"):
        if x.shape != shape:
            raise ValueError(f"burst::attention: {what} is {tuple(x.shape)}, the program is for "
                             f"{tuple(shape)}")
    return found


def _forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, tables: list[torch.Tensor],
             name: str) -> Results:
    return torch_attention.forward(_of(name, q, k, v), q, k, v, tables)


@_torch.impl("burst::attention_backward", ("cpu", "cuda"), lib=_library)
def _backward(do: torch.Tensor, dlse: torch.Tensor | None, q: torch.Tensor, k: torch.Tensor,
              v: torch.Tensor, o: torch.Tensor, lse: torch.Tensor, tables: list[torch.Tensor],
              wanted: list[int], name: str) -> list[torch.Tensor]:
    return torch_attention.backward(_of(name, q, k, v), q, k, v, o, lse, do, dlse, tables,
                                    tuple(wanted))


def _fake(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, tables: list[torch.Tensor],
          name: str) -> Results:
    return _of(name, q, k, v).empty_results(q)


@_torch.register_fake("burst::attention_backward", lib=_library)
def _(do: torch.Tensor, dlse: torch.Tensor | None, q: torch.Tensor, k: torch.Tensor,
      v: torch.Tensor, o: torch.Tensor, lse: torch.Tensor, tables: list[torch.Tensor],
      wanted: list[int], name: str) -> list[torch.Tensor]:
    found = _of(name, q, k, v)
    return torch_attention.empty_gradients(found, q, k, v, tables, tuple(wanted))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    q, k, v, tables, name = inputs
    ctx.attention = _of(name)
    ctx.wanted = ctx.attention.wanted([table.requires_grad for table in tables])
    ctx.save_for_backward(q, k, v, *output[:2], *tables)
    ctx.mark_non_differentiable(*output[2:])
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, do: torch.Tensor | None, dlse: torch.Tensor | None, *_: None) -> Any:
    q, k, v, o, lse, *tables = ctx.saved_tensors
    if do is None and dlse is None:
        return None, None, None, [None] * len(tables), None
    dq, dk, dv, *found = attention_backward(
        ctx.attention, torch.zeros_like(o) if do is None else do, dlse, q, k, v, o, lse, tables,
        ctx.wanted)
    of_tables: list[torch.Tensor | None] = [None] * len(tables)
    for n, gradient in zip(ctx.wanted, found):
        of_tables[n] = gradient.to(tables[n].dtype)
    return dq, dk, dv, of_tables, None


def _no_second_derivative(*_: Any) -> Any:
    raise RuntimeError("burst.attention: has no second derivative")


for _op in _FORWARD:
    _torch.impl(_op, ("cpu", "cuda"), _forward, lib=_library)
    _torch.register_fake(_op, _fake, lib=_library)
    _torch.register_autograd(_op, _gradients, setup_context=_setup, lib=_library)
_torch.register_autograd("burst::attention_backward", _no_second_derivative,
                                lib=_library)
