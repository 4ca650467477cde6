# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention of a sequence over processes. See ranks.py."""

import functools

import burst_attention
import ranks


def load(rank, num_ranks):
    import burst
    import torch
    import torch_forms
    sequence = burst.Sequence(torch.distributed.group.WORLD, "zigzag")

    def make(attention):
        attend = functools.partial(burst.attention, mask=burst_attention.mask_of(attention),
                                   sequence=sequence)
        shards = [torch.from_numpy(x).to(torch_forms.TYPES[attention.type])
                  for x in ranks.shards(attention, rank)]
        return torch_forms.run_on(attention, attend, *shards)

    def forms_of(attention):
        return {"attention": functools.partial(make, attention)}

    return f"burst {burst.__version__} over {num_ranks} ranks", forms_of


if __name__ == "__main__":
    ranks.serve(__file__, load)
