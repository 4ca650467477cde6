# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""flex_attention of PyTorch, compiled. See protocol.py."""

import functools

import protocol


def load():
    import torch
    import torch_forms
    from torch.nn.attention import flex_attention as flex

    def make(attention, block):
        compiled = torch.compile(flex.flex_attention, dynamic=False, fullgraph=True)
        mask = None
        if block:
            mask = flex.create_block_mask(mask_of(attention), None, None, attention.queries,
                                          attention.keys, device="cpu", BLOCK_SIZE=block)
        return torch_forms.run_of(attention, functools.partial(
            compiled, block_mask=mask, enable_gqa=attention.heads != attention.key_heads))

    def mask_of(attention):
        if not attention.documents:
            return lambda b, h, i, j: i >= j
        ids = torch.from_numpy(protocol.document_ids(attention))
        return lambda b, h, i, j: (i >= j) & (ids[i] == ids[j])

    def forms_of(attention):
        if not attention.is_forward:
            raise protocol.Unsupported("flex_attention has no backward pass on CPUs")
        # What was compiled for other sizes counts against a limit, behind which nothing
        # is compiled.
        torch._dynamo.reset()
        if not attention.causal:
            return {"no mask": functools.partial(make, attention, 0)}
        return {f"blocks of {n}": functools.partial(make, attention, n) for n in (128, 64)}

    return f"flex_attention of {torch_forms.setup()}", forms_of


if __name__ == "__main__":
    protocol.serve(load)
