# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst behind the interfaces of others, a module for each.

    burst.integrations.ring_flash_attention   functions of zhuzilin/ring-flash-attention
    burst.integrations.megatron               core attention of Megatron-Core
    burst.integrations.torchtitan             context parallelism of TorchTitan

Arguments have the names, the places and the meaning that they have there. Each one
is honoured, or refused by name. For models of transformers see burst.hf.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burst.integrations import megatron, ring_flash_attention, torchtitan

__all__ = ["megatron", "ring_flash_attention", "torchtitan"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'burst.integrations' has no attribute {name!r}")
    return importlib.import_module(f"burst.integrations.{name}")
