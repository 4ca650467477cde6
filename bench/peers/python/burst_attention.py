# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention, of tensors of PyTorch. See protocol.py."""

import functools

import protocol


def mask_of(attention):
    """As flex_attention has it."""
    if attention.documents:
        import torch
        ids = torch.from_numpy(protocol.document_ids(attention))
        return lambda b, h, i, j: (i >= j) & (ids[i] == ids[j])
    return (lambda b, h, i, j: i >= j) if attention.causal else None


def load():
    import burst
    import torch_forms
    torch_forms.setup()

    def forms_of(attention):
        attend = functools.partial(burst.attention, mask=mask_of(attention))
        return {"attention": functools.partial(torch_forms.run_of, attention, attend)}

    return f"burst {burst.__version__}", forms_of


if __name__ == "__main__":
    protocol.serve(load)
