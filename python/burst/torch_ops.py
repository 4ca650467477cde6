# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of torch.library: attention as torch.compile, torch.export, modes and
policies of checkpoints see it.

    burst::attention(q, k, v, tables, name) -> (o, lse)
    burst::attention_backward(do, dlse, q, k, v, o, lse, tables, wanted, name) -> gradients

`name` is that of an attention of known sizes, a digest of its program: burst.attention
calls the ops by it.
"""

from __future__ import annotations

from typing import Any, cast

import torch

from burst import torch_attention
from burst.torch_attention import Attention

_torch = cast(Any, torch.library) # which has not said all types
_library = _torch.Library("burst", "DEF")
_library.define("attention(Tensor q, Tensor k, Tensor v, Tensor[] tables, str name) -> "
                "(Tensor o, Tensor lse)")
_library.define("attention_backward(Tensor do, Tensor? dlse, Tensor q, Tensor k, Tensor v, "
                "Tensor o, Tensor lse, Tensor[] tables, int[] wanted, str name) -> Tensor[]")

# Those that graphs may have.
_named: dict[str, Attention] = {}


def attention(found: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
              tables: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    _named[found.name] = found
    return torch.ops.burst.attention(q, k, v, tables, found.name)


def attention_backward(found: Attention, do: torch.Tensor, dlse: torch.Tensor | None,
                       q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
                       lse: torch.Tensor, tables: list[torch.Tensor],
                       wanted: tuple[int, ...]) -> list[torch.Tensor]:
    _named[found.name] = found
    return torch.ops.burst.attention_backward(do, dlse, q, k, v, o, lse, tables, list(wanted),
                                              found.name)


def _of(name: str, *tensors: torch.Tensor) -> Attention:
    try:
        found = _named[name]
    except KeyError:
        raise RuntimeError(f"burst::attention: this process has no attention {name}; it is "
                           "burst.attention that makes them and calls the op") from None
    for x, shape, what in zip(tensors, found.shapes, "qkv"):
        if x.shape != shape:
            raise ValueError(f"burst::attention: {what} is {tuple(x.shape)}, the program is for "
                             f"{tuple(shape)}")
    return found


@_torch.impl("burst::attention", ("cpu", "cuda"), lib=_library)
def _forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, tables: list[torch.Tensor],
             name: str) -> tuple[torch.Tensor, torch.Tensor]:
    return torch_attention.forward(_of(name, q, k, v), q, k, v, tables)


@_torch.impl("burst::attention_backward", ("cpu", "cuda"), lib=_library)
def _backward(do: torch.Tensor, dlse: torch.Tensor | None, q: torch.Tensor, k: torch.Tensor,
              v: torch.Tensor, o: torch.Tensor, lse: torch.Tensor, tables: list[torch.Tensor],
              wanted: list[int], name: str) -> list[torch.Tensor]:
    return torch_attention.backward(_of(name, q, k, v), q, k, v, o, lse, do, dlse, tables,
                                    tuple(wanted))


@_torch.register_fake("burst::attention", lib=_library)
def _(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, tables: list[torch.Tensor],
      name: str) -> tuple[torch.Tensor, torch.Tensor]:
    return _of(name, q, k, v).empty_results(q)


@_torch.register_fake("burst::attention_backward", lib=_library)
def _(do: torch.Tensor, dlse: torch.Tensor | None, q: torch.Tensor, k: torch.Tensor,
      v: torch.Tensor, o: torch.Tensor, lse: torch.Tensor, tables: list[torch.Tensor],
      wanted: list[int], name: str) -> list[torch.Tensor]:
    found = _of(name, q, k, v)
    return torch_attention.empty_gradients(found, q, k, v, tables, tuple(wanted))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    q, k, v, tables, ctx.name = inputs
    ctx.wanted = list(_named[ctx.name].wanted([table.requires_grad for table in tables]))
    ctx.save_for_backward(q, k, v, *output, *tables)
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, do: torch.Tensor | None, dlse: torch.Tensor | None) -> Any:
    q, k, v, o, lse, *tables = ctx.saved_tensors
    if do is None and dlse is None:
        return None, None, None, [None] * len(tables), None
    dq, dk, dv, *found = torch.ops.burst.attention_backward(
        torch.zeros_like(o) if do is None else do, dlse, q, k, v, o, lse, tables, ctx.wanted,
        ctx.name)
    of_tables: list[torch.Tensor | None] = [None] * len(tables)
    for n, gradient in zip(ctx.wanted, found):
        of_tables[n] = gradient.to(tables[n].dtype)
    return dq, dk, dv, of_tables, None


def _no_second_derivative(*_: Any) -> Any:
    raise RuntimeError("burst.attention: has no second derivative")


_torch.register_autograd("burst::attention", _gradients, setup_context=_setup,
                                lib=_library)
_torch.register_autograd("burst::attention_backward", _no_second_derivative,
                                lib=_library)
