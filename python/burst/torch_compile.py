# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention in code that torch.compile reads.

TorchDynamo knows functions as operands only of its own operators of higher order,
flex_attention among them. `burst_attention` is one more of them: Dynamo makes
graphs of mask and score as it does for flex_attention, with guards and with the
tensors that they capture as inputs. The operator itself is no part of a graph
behind Dynamo: when AOTAutograd runs it, it becomes the op burst::attention, which
knows its gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch._dynamo import config
from torch._dynamo.guards import GuardBuilder, install_guard
from torch._dynamo.variables import higher_order_ops
from torch._dynamo.variables.builder import wrap_fx_proxy
from torch._dynamo.variables.tensor import SymNodeVariable
from torch._dynamo.variables.user_defined import UserDefinedObjectVariable
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import _disable_current_modes # pyright: ignore

from burst import torch_attention, torch_ops, tracing
from burst.sequence import Sequence


class _Attention(HigherOrderOperator):
    def __init__(self) -> None:
        super().__init__("burst_attention")

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                 mask: Callable[..., Any] | None, of_mask: tuple[Any, ...],
                 score: Callable[..., Any] | None, of_score: tuple[Any, ...],
                 scale: float | None, sequence: int | None, strategy: str,
                 without: tuple[str, ...], layout: str, head_offset: int | None,
                 batch_offset: int | None, max_scores: bool) -> Any:
        """Of graphs and what they take behind b, h, i, j."""
        from burst import torch_api
        options = torch_api.checked(q, k, v, None if scale is None else float(scale),
                                    None if sequence is None else _sequences[sequence], strategy,
                                    without, layout, head_offset, batch_offset, max_scores)
        closed = [None if graph is None else _closed(graph, captured)
                  for graph, captured in ((mask, of_mask), (score, of_score))]
        # Programs are for one size: dimensions that could vary are fixed here.
        sizes_q, sizes_k, sizes_v = (torch.Size([int(n) for n in x.shape]) for x in (q, k, v))
        with _disable_current_modes():
            found = torch_attention.build(sizes_q, sizes_k, sizes_v, q.dtype, closed[0], closed[1],
                                          options)
        torch_api.check_offsets(found, options, head_offset, batch_offset)
        shapes = [table.shape for table in found.tables]
        return torch_ops.attention(found, q, k, v, [x.reshape(shape) for x, shape in
                                                    zip(found.take_tables(), shapes)])


def _closed(graph: Callable[..., Any], captured: tuple[Any, ...]) -> tracing.Closed:
    """Numbers that a function captures are part of its program, also where they
    could vary."""
    numbers = [None if isinstance(x, torch.Tensor) else
               float(x) if isinstance(x, (float, torch.SymFloat)) else int(x) for x in captured]

    def function(*arguments: Any) -> Any:
        count = len(arguments) - numbers.count(None)
        tables = iter(arguments[count:])
        return graph(*arguments[:count], *(next(tables) if x is None else x for x in numbers))

    return tracing.Closed(function, tuple(x for x in captured if isinstance(x, torch.Tensor)))


# As it is called: Dynamo makes (graph, captured tensors) of each function.
attend = cast(Callable[..., torch_attention.Results], _Attention())
_sequences: list[Sequence] = [] # by their places in the graphs


class _Variable(higher_order_ops.FlexAttentionHigherOrderVariable):
    """What Dynamo does with a call of the operator."""

    _HOP_NAME = "burst.attention"

    def _call_function(self, tx: Any, args: Any, kwargs: Any) -> Any:
        q, k, v, mask, score, scale, sequence, *rest = args
        operands = [x.as_proxy() for x in (q, k, v)]
        for function, name in ((mask, "mask_fn"), (score, "score_mod")):
            if function.is_python_constant() and function.as_python_constant() is None:
                operands += [None, ()]
            else:
                # A float is part of the program: one that varies is another graph.
                with cast(Any, config).patch(specialize_float=True):
                    operands += self.create_wrapped_node(tx, q, function, name)
        operands += [scale.as_proxy(), _place_of(sequence)]
        # A number that could vary is one number of this graph.
        operands += [x.evaluate_expr() if isinstance(x, SymNodeVariable) else
                     x.as_python_constant() for x in rest]
        proxy = tx.output.create_proxy("call_function", self.value, tuple(operands), {})
        return wrap_fx_proxy(tx=tx, proxy=proxy, example_value=None)


def _place_of(sequence: Any) -> int | None:
    """A sequence is a constant of the graph: another one is another graph."""
    if not isinstance(sequence, UserDefinedObjectVariable):
        assert sequence.as_python_constant() is None
        return None
    source = sequence.source
    if source is None:
        raise TypeError("sequence: is made where torch.compile reads; make the burst.Sequence "
                        "before, outside of it")
    install_guard(source.make_guard(cast("Callable[..., Any]", GuardBuilder.ID_MATCH)))
    value = cast("Any", sequence).value
    place = next((n for n, x in enumerate(_sequences) if x is value), len(_sequences))
    if place == len(_sequences):
        _sequences.append(value)
    return place


cast(Any, higher_order_ops)._hop_name_to_variable_class["burst_attention"] = _Variable
