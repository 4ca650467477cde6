# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from . import attention
import torch


def scaled_dot_product_attention(query, key, value, *, is_causal, enable_gqa):
    """Of (batch, heads, positions, dim); the result has the right shape, no more. cuDNN takes
    no fewer heads of keys here, for what PyTorch says then to be seen."""
    assert attention.chosen, "no backend was chosen"
    assert isinstance(is_causal, bool) and query.dim() == 4
    assert key.shape == value.shape and key.shape[0] == query.shape[0]
    if query.shape[1] != key.shape[1]:
        assert enable_gqa and query.shape[1] % key.shape[1] == 0
        if attention.chosen[-1] == attention.SDPBackend.CUDNN_ATTENTION:
            raise RuntimeError("No available kernel. Aborting execution.")
    return torch.empty_like(query)
