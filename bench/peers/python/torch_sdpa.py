# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scaled_dot_product_attention of PyTorch. See protocol.py."""

import functools

import protocol


def load():
    import torch
    import torch_forms
    from torch.nn import attention as kernels
    from torch.nn import functional

    def forms_of(attention):
        attend = functools.partial(functional.scaled_dot_product_attention,
                                   enable_gqa=attention.heads != attention.key_heads)

        def form(**options):
            return functools.partial(torch_forms.run_of, attention,
                                     functools.partial(attend, **options))

        def without_flash(q, k, v):
            with kernels.sdpa_kernel(kernels.SDPBackend.MATH):
                return attend(q, k, v, is_causal=attention.causal)

        def dense(mask):
            return form(attn_mask=mask[None, None])

        if attention.documents:
            kept = torch.from_numpy(protocol.kept_pairs(attention))
            added = torch.from_numpy(protocol.added_to_scores(attention))
            return {"mask of truths": dense(kept),
                    "mask that is added": dense(added.to(torch_forms.TYPES[attention.type]))}
        forms = {"is_causal" if attention.causal else "no mask": form(is_causal=attention.causal)}
        if attention.queries == 1: # there are no scores to speak of, which it would store
            forms["math kernel"] = functools.partial(torch_forms.run_of, attention, without_flash)
        return forms

    return torch_forms.setup(), forms_of


if __name__ == "__main__":
    protocol.serve(load)
