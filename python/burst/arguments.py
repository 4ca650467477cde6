# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What arguments of an attention must be, of whichever library its arrays are."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable
from collections.abc import Sequence as Sizes
from typing import Any, cast

from burst.regions import TABLE_TYPES

# Where a tensor has batch, sequence, head and head dim.
LAYOUTS = {"bhsd": (0, 2, 1, 3), "bshd": (0, 1, 2, 3)}
DTYPES = ("float32", "float64", "bfloat16", "float16")
STRATEGIES = ("auto", "ring_kv", "ring_q", "double_ring_kv", "double_ring_q", "bi_ring_kv",
              "bi_ring_q", "direct_kv", "direct_q", "all_gather", "gather_q", "ulysses",
              "ring_scores")
# Between that of the forward pass and that of the backward pass.
_THEN = " then "
# Optimisations that can be left out.
OPTIMISATIONS = ("overlap", "dropping", "local_tiling")


def _are_several(strategy: str) -> bool:
    """Whether it is some strategies, each along axes of the grid, or one in chunks of heads."""
    if " on " not in strategy and " in " not in strategy: # else nothing for torch.compile to read
        return False
    parts = re.split(r",\s*(?![^\[]*\])", strategy)
    names = [re.sub(r"(\s+on\s+\[[\d\s,]*\])?(\s+in\s+\d+\s+chunks)?$", "", part)
             for part in parts]
    return all(name in STRATEGIES and name != "auto" for name in names)


def strategy_of(strategy: str | None, is_backward: bool) -> str | None:
    """That of a pass; None where it is chosen."""
    if strategy is None:
        return None
    forward, _, backward = strategy.partition(_THEN)
    found = backward if is_backward and backward else forward
    return None if found == "auto" else found


def check_options(layout: str, scale: float | None, strategy: str) -> None:
    if scale is not None and not isinstance(cast(object, scale), (int, float)):
        raise TypeError(f"scale: a number is wanted, got {type(scale).__name__}")
    if layout not in LAYOUTS:
        raise ValueError(f"layout: {layout!r} is not known; it is bhsd or bshd")
    if not isinstance(cast(object, strategy), str):
        raise TypeError(f"strategy: a name is wanted, got {strategy!r}")
    for part in strategy.split(_THEN, 1):
        if part not in STRATEGIES and not _are_several(part):
            raise ValueError(f"strategy: {part!r} is not known; it is "
                             f"{', '.join(STRATEGIES[:-1])} or {STRATEGIES[-1]}, or some of them, "
                             "each along axes, as in ulysses on [1], ring_kv on [0]; or ulysses in "
                             "chunks of heads, as in ulysses in 4 chunks; or one of the forward "
                             "pass and one of the backward pass, as in ring_kv then ring_q")
    if scale is not None and not math.isfinite(scale):
        raise ValueError(f"scale: must be finite, got {scale}")


def check_names(argument: str, given: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    """Names of some that there are, each once and in one order."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{argument}: a tuple of names is wanted, as in (\"{known[0]}\",), got "
                        f"{given!r}")
    names = tuple(cast("Iterable[object]", given))
    for name in names:
        if name not in known:
            raise ValueError(f"{argument}: {name!r} is not known; there are {', '.join(known)}")
    return tuple([name for name in known if name in names])


def check_without(without: Any) -> tuple[str, ...]:
    """Names of optimisations."""
    return check_names("without", without, OPTIMISATIONS)


def check_functions(mask: object, score: object, sequence: object) -> None:
    """That each is a function or a sequence, if it is given."""
    for name, arguments, function in (("mask", "b, h, i, j", mask),
                                      ("score", "s, b, h, i, j", score)):
        if function is not None and not callable(function):
            found, mend = type(function).__name__, ""
            if hasattr(function, "shape"):
                found += f" of shape {tuple(cast(Any, function).shape)}"
                mend = f"; write lambda {arguments}: with x[i, j] of it" if name == "mask" else \
                    f"; write lambda {arguments}: s + x[i, j] of it"
            raise TypeError(f"{name}: a function of {arguments} is wanted, got {found}{mend}")
    if sequence is not None and not hasattr(sequence, "global_lengths"):
        raise TypeError(f"sequence: a burst.Sequence is wanted, got {type(sequence).__name__}")


def whole(name: str, value: Any) -> int:
    """A whole number: of Python, numpy or a tensor."""
    try:
        return operator.index(value)
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"{name}: a whole number is wanted, got {value!r}") from error


def at_least(least: int, name: str, value: Any) -> int:
    """A whole number that is not smaller."""
    number = whole(name, value)
    if number < least:
        raise ValueError(f"{name}: a whole number of at least {least} is wanted, got {number}")
    return number


def check_shapes(shapes: Sizes[Sizes[Any]], dtypes: Sizes[str], layout: str) -> None:
    """Of q, k and v, of which lengths may be None; the types by their names in numpy
    and torch."""
    for name, shape in zip("qkv", shapes):
        if len(shape) != 4:
            raise ValueError(f"{name}: 4 dimensions {layout} are wanted, got the shape "
                             f"{tuple(shape)}")
    if dtypes[0] not in DTYPES:
        raise TypeError(f"q: of {', '.join(DTYPES[:-1])} or {DTYPES[-1]}, got {dtypes[0]}")
    q, k, v = shapes
    batch, sequence, head, dim = LAYOUTS[layout]
    for name, shape, dtype in zip("kv", (k, v), dtypes[1:]):
        if dtype != dtypes[0]:
            raise TypeError(f"{name}: is of {dtype}, q of {dtypes[0]}; all must have one type "
                            "(torch.autocast casts q, k and v)")
        if shape[batch] != q[batch]:
            raise ValueError(f"{name}: has a batch of {shape[batch]}, q of {q[batch]}")
    if (k[sequence], k[head]) != (v[sequence], v[head]):
        raise ValueError(f"v: has {v[sequence]} positions and {v[head]} heads, k has "
                         f"{k[sequence]} and {k[head]}")
    if k[dim] != q[dim]:
        raise ValueError(f"k: has a head dim of {k[dim]}, q of {q[dim]}")
    if k[head] == 0 or q[head] % k[head]:
        raise ValueError(f"q: has {q[head]} heads, which is no multiple of the {k[head]} of k and "
                         "v")


def type_of_scores(dtype: str) -> str:
    """Of lse, and of gradients of tables."""
    return "float64" if dtype == "float64" else "float32"


assert set(DTYPES) <= set(TABLE_TYPES)
