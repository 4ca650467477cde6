# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.check: all ranks in one process, against attention in float64."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from burst import _c, arguments, programs, torch_attention, tracing
from burst.programs import Clauses, Shape
from burst.regions import Region, Table
from burst.sequence import Layout
from burst.torch_positions import AtPositions

# The largest error, in units of the largest number of a result: results and
# gradients are sums that are rounded to the type, and computed in float32.
BOUNDS = {torch.float64: 1e-12, torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 5e-3}


@dataclasses.dataclass(frozen=True)
class Report:
    """What a check found: the largest error of each result, of its largest number,
    and what ranks sent."""

    errors: dict[str, float]
    bytes_sent: list[int] # by the ranks, forward and backward

    def __str__(self) -> str:
        errors = ", ".join(f"{name} {error:.1e}" for name, error in self.errors.items())
        return f"right: {errors}; {sum(self.bytes_sent)} bytes sent"


def check(mask: tracing.Function | None = None, score: tracing.Function | None = None, *,
          S: int = 256, keys: int | None = None, ranks: int = 4,
          nodes: int = 1, order: str = "zigzag", strategy: str = "auto",
          without: Iterable[str] = (), heads: int = 2, key_heads: int | None = None,
          head_dim: int = 32, batch: int = 1,
          dtype: torch.dtype = torch.float32, backward: bool = True, seed: int = 0,
          scale: float | None = None, head_offset: int = 0, batch_offset: int = 0) -> Report:
    """Runs an attention of random numbers on `ranks` ranks, which are threads of
    this process, forward and backward, and compares it with what mask and score,
    run by PyTorch, mean in float64. Raises AssertionError where they differ.

    `nodes` and `order` are those of burst.Sequence, `without` that of burst.attention.
    S is the number of queries, and of keys unless `keys` says another. The comparison
    has all S x keys pairs of a head in memory. Some ranks show what many
    would: hundreds take minutes, since their schedule is simulated and each is a
    thread. The offsets are those of burst.attention; its sinks are applied behind
    what is checked here.
    """
    ranks = arguments.whole("ranks", ranks)
    heads = arguments.whole("heads", heads)
    offsets = (arguments.whole("head_offset", head_offset),
               arguments.whole("batch_offset", batch_offset))
    keys = S if keys is None else keys
    key_heads = heads if key_heads is None else key_heads
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    q = draw(batch, S, heads, head_dim)
    k, v = draw(batch, keys, key_heads, head_dim), draw(batch, keys, key_heads, head_dim)
    shape = Shape(batch, S, keys, heads, key_heads, head_dim, head_dim,
                  torch_attention.DTYPES[dtype])

    def region(function: tracing.Function | None, is_score: bool) -> Region | None:
        if function is None:
            return None
        return tracing.trace(function, is_score, shape.float_type, *offsets)

    clauses = Clauses(shape, region(mask, False), region(score, True), scale,
                      Layout(ranks, order, arguments.whole("nodes", nodes)),
                      None if strategy == "auto" else strategy,
                      without=arguments.check_without(without))
    text = programs.forward(clauses)
    tables = [table.source for table in text.tables]
    o = torch.empty(batch, S, heads, head_dim, dtype=dtype)
    lse = torch.empty(batch, heads, S, dtype=torch_attention.type_of_scores(q))
    sent = _run(text, [q, k, v, *tables, o, lse])
    found = {"o": o, "lse": lse}
    do, dlse = draw(*o.shape), draw(*lse.shape).to(lse.dtype)
    wanted_of = _gradients_of(clauses.score)
    if backward:
        text = programs.backward(clauses, wanted_of, with_lse=True)
        gradients = [torch.empty_like(x) for x in (q, k, v)]
        gradients += [torch.empty(table.shape, dtype=lse.dtype) for table in wanted_of]
        given = [q, k, v, o, lse, do, dlse]
        counts = _run(text, [*given, *tables, *gradients])
        sent = [a + b for a, b in zip(sent, counts)]
        names = ["dq", "dk", "dv"] + [f"d table {n}" for n in range(len(wanted_of))]
        found.update(zip(names, gradients))
    wanted = _reference(q, k, v, mask, score, scale, do, dlse, wanted_of, backward, offsets)
    return Report({name: _error(name, x, wanted[name], BOUNDS[dtype])
                   for name, x in found.items()}, sent)


def _run(text: programs.Text, tensors: list[torch.Tensor]) -> list[int]:
    values = (_c.Tensor * len(tensors))()
    for place, tensor in zip(values, tensors):
        programs.describe(place, tensor.data_ptr(), torch_attention.element_of(tensor),
                          tensor.shape, tensor.stride())
    counters = programs.run_all(programs.compiled_of(text),
                                programs.device(torch.get_num_threads()), values)
    return [counter.bytes_sent for counter in counters]


def _gradients_of(score: Region | None) -> list[Table]:
    if score is None:
        return []
    return [table for table in score.tables if table.source.requires_grad]


def _error(name: str, found: torch.Tensor, wanted: torch.Tensor, bound: float) -> float:
    is_finite = torch.isfinite(wanted)
    if not torch.equal(torch.isfinite(found), is_finite):
        raise AssertionError(f"{name}: infinite or NaN where it should not be, or the other way "
                             "round")
    if not is_finite.any():
        return 0.0
    size = max(1.0, wanted[is_finite].abs().max().item())
    error = (found.detach().double() - wanted)[is_finite].abs().max().item() / size
    if error > bound:
        raise AssertionError(f"{name}: off by {error:.1e} of its largest number, at most "
                             f"{bound:.0e} is wanted")
    return error


def _reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
               mask: tracing.Function | None, score: tracing.Function | None,
               scale: float | None, do: torch.Tensor, dlse: torch.Tensor,
               tables: list[Table], backward: bool,
               offsets: tuple[int, int]) -> dict[str, torch.Tensor]:
    with torch.set_grad_enabled(backward):
        inputs = [x.double().requires_grad_(backward) for x in (q, k, v)]
        # In place of tables, so that each has gradients of its own: some may be made
        # of others.
        wide = [_wide(table.captured, dlse.dtype).detach().clone().requires_grad_(backward)
                for table in tables]
        known = {id(table.captured): (table.captured, x) for table, x in zip(tables, wide)}
        o, lse = attend(inputs[0], inputs[1], inputs[2], mask, score, scale, dlse.dtype, known,
                        offsets)
        results = {"o": o.detach(), "lse": lse.detach()}
        if backward:
            # A row without keys has an infinite lse and gives no gradient.
            loss = (o * do.double()).sum() + \
                (torch.where(torch.isfinite(lse), lse, 0.0) * dlse.double()).sum()
            # Of a table that only decides something, zeros.
            gradients = torch.autograd.grad(loss, [*inputs, *wide], materialize_grads=True)
            shapes = [*(x.shape for x in inputs), *(table.shape for table in tables)]
            names = ["dq", "dk", "dv"] + [f"d table {n}" for n in range(len(tables))]
            results.update((name, x.double().reshape(shape))
                           for name, x, shape in zip(names, gradients, shapes))
        return results


# Captured tensors, by their identity, and those that take their place.
_Known = dict[int, tuple[torch.Tensor, torch.Tensor]]


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: tracing.Function | None,
           score: tracing.Function | None, scale: float | None,
           floats: torch.dtype = torch.float32,
           known: _Known | None = None,
           offsets: tuple[int, int] = (0, 0)) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention by its definition, of (batch, sequence, heads, dim). Mask and score
    compute in `floats`, the type of scores, where they have no float64. The offsets
    are those of the head and of the batch."""
    b, sq, h, d = q.shape
    sk = k.shape[1]
    k, v = (x.repeat_interleave(h // x.shape[2], 2) for x in (k, v))
    s = torch.einsum("bihd,bjhd->bhij", q, k) * (1 / math.sqrt(d) if scale is None else scale)
    sizes = (b, h, sq, sk)
    with _computing_in(floats, known or {}):
        if score is not None:
            s = over_pairs(score, sizes, s, offsets=offsets)
        kept = over_pairs(mask, sizes, offsets=offsets) if mask is not None else None
    if kept is not None:
        s = torch.where(kept, s, -math.inf)
    lse = torch.logsumexp(s, -1)
    p = torch.exp(s - torch.where(lse == -math.inf, 0.0, lse)[..., None])
    return torch.einsum("bhij,bjhd->bihd", p, v), lse


def over_pairs(function: tracing.Function, sizes: tuple[int, int, int, int],
               *first: torch.Tensor, offsets: tuple[int, int] = (0, 0)) -> torch.Tensor:
    """What a mask or a score gives for all pairs: (batch, heads, queries, keys)."""
    mapped: Any = function
    for axis in (3, 2, 1, 0):
        dims = (0,) * len(first) + tuple(0 if axis == n else None for n in range(4))
        mapped = torch.vmap(mapped, in_dims=dims, out_dims=0)
    with AtPositions():
        h, b = offsets
        result = mapped(*first, *(torch.arange(begin, begin + n)
                                  for begin, n in zip((b, h, 0, 0), sizes)))
    return result.expand(sizes)


def _wide(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return x.to(dtype) if x.dtype.itemsize < dtype.itemsize else x


class _Wide(TorchFunctionMode):
    """Floats of fewer bits take part as numbers of a type, as in programs."""

    def __init__(self, dtype: torch.dtype, known: _Known) -> None:
        super().__init__()
        self.dtype = dtype
        # One of each tensor: its gradients are summed before they are rounded.
        self.known = dict(known)

    def __torch_function__(self, func: Callable[..., Any], types: Any,
                           args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        given: Any = (args, kwargs or {})
        args, kwargs = tree_map_only(torch.Tensor, self._wide, given)
        return func(*args, **(kwargs or {}))

    def _wide(self, x: torch.Tensor) -> torch.Tensor:
        if not x.is_floating_point():
            return x
        if id(x) in self.known:
            return self.known[id(x)][1]
        wide = _wide(x, self.dtype)
        if wide is not x:
            self.known[id(x)] = x, wide
        return wide


@contextmanager
def _computing_in(dtype: torch.dtype, known: _Known) -> Generator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with _Wide(dtype, known):
            yield
    finally:
        torch.set_default_dtype(before)
