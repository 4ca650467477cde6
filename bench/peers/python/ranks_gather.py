# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All-gather of keys and values over gloo, and attention of PyTorch. See ranks.py.

Each rank has two chunks of queries, and computes each with the keys that it may see
and no others. Shards of keys and values are (sequence, heads, dim), so that what is
gathered is read in place. Two forms:

    masked  scaled_dot_product_attention of the keys up to the chunk's own, with a mask
            for these
    merged  causal attention of the chunk's own keys, which are here, while the others
            travel, and attention of those without a mask; joined by the logarithms of
            the sums, which PyTorch's kernel gives as well
"""

import functools

import protocol
import ranks


def load(rank, num_ranks):
    import torch
    import torch_forms
    from torch import distributed
    from torch.nn import functional
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    gather = getattr(distributed, "all_gather_single", None) or \
        distributed.all_gather_into_tensor

    # Of keys or values, of all ranks: late chunks, the latest first, then early ones.
    # The keys of both chunks of a rank are then in one piece each.
    def late_keys(gathered, skipped=0):
        return gathered.flatten(0, 2)[(rank + skipped) * gathered.shape[2]:]

    def early_keys(gathered, skipped=0):
        return gathered[1, :rank + 1 - skipped].flatten(0, 1)

    def heads_first(x):
        return x.transpose(0, 1)[None]

    class Travel:
        """All-gathers that are under way."""

        def __init__(self, *shards):
            self.gathered, self.works = [], []
            for shard in shards: # of (chunk, position, head, dim)
                whole = shard.new_empty(2, num_ranks, *shard.shape[1:])
                self.works += [gather(whole[0].flatten(0, 1), shard[1], async_op=True),
                               gather(whole[1].flatten(0, 1), shard[0], async_op=True)]
                self.gathered.append(whole)

        def wait(self):
            for work in self.works:
                work.wait()
            return self.gathered

    def sum_home(*gradients):
        """Of what all ranks have for all chunks, the sums of this rank's. Quicker than
        reduce_scatter, which in gloo is an all-reduce."""
        works, parts = [], []
        for gradient in gradients:
            part = torch.empty_like(gradient)
            works += [distributed.all_to_all_single(part[n], gradient[n], async_op=True)
                      for n in range(2)]
            parts.append(part)
        for work in works:
            work.wait()
        return [part.sum(1).flip(0) for part in parts]

    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(ctx, k, v):
            return tuple(Travel(k, v).wait())

        @staticmethod
        def backward(ctx, dk, dv):
            return tuple(sum_home(dk.contiguous(), dv.contiguous()))

    def masked(early_mask, late_mask, q, k, v):
        k, v = Gather.apply(k, v)
        parts = [functional.scaled_dot_product_attention(
            chunk, heads_first(of(k)), heads_first(of(v)), attn_mask=mask)
            for chunk, of, mask in zip(q.chunk(2, 2), (early_keys, late_keys),
                                       (early_mask, late_mask), strict=True)]
        return torch.cat(parts, 2)

    def merge(o, lse, other, other_lse):
        total = torch.logaddexp(lse, other_lse)
        first, second = ((x - total).exp_()[..., None] for x in (lse, other_lse))
        return (o * first).addcmul_(other, second), total

    class Merged(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            travel = Travel(k, v)
            chunks = q.chunk(2, 2)
            parts = [flash(chunk, heads_first(k[n]), heads_first(v[n]), 0.0, True)
                     for n, chunk in enumerate(chunks)]
            k, v = travel.wait()
            for n, of in enumerate((early_keys, late_keys)):
                if n == 1 or rank > 0:
                    parts[n] = merge(*parts[n], *flash(chunks[n], heads_first(of(k, 1)),
                                                       heads_first(of(v, 1))))
            if ctx is not None:
                ctx.save_for_backward(q, k, v, *parts[0], *parts[1])
            return torch.cat([o for o, _ in parts], 2)

        @staticmethod
        def backward(ctx, g):
            q, k, v, *parts = ctx.saved_tensors
            dk, dv, found = torch.zeros_like(k), torch.zeros_like(v), []
            for n, of in enumerate((early_keys, late_keys)):
                o, lse = parts[2 * n:2 * n + 2]
                chunk, gradient = q.chunk(2, 2)[n], g.chunk(2, 2)[n]
                of_chunk = 0
                # Its own keys, then the others.
                for is_own in (True, False):
                    def keys(x):
                        return x[1 - n, rank] if is_own else of(x, 1)
                    if not is_own and n == 0 and rank == 0:
                        continue
                    dq, *others = flash_backward(gradient, chunk, heads_first(keys(k)),
                                                 heads_first(keys(v)), o, lse, 0.0, is_own)
                    of_chunk = of_chunk + dq
                    for whole, part in zip((dk, dv), others, strict=True):
                        keys(whole).add_(part[0].transpose(0, 1))
                found.append(of_chunk)
            return torch.cat(found, 2), *sum_home(dk, dv)

    def make(attention, attend):
        q, k, v, g = (torch.from_numpy(x).to(torch_forms.TYPES[attention.type])
                      for x in ranks.shards(attention, rank))
        # (chunk, position, head, dim)
        k, v = (x[0].transpose(0, 1).unflatten(0, (2, -1)).contiguous() for x in (k, v))
        run = torch_forms.run_on(attention, attend, q, k, v, g)

        def results(found):
            named = made(found)
            for name in ("dk", "dv"):
                if name in named:
                    named[name] = named[name].reshape(-1, *named[name].shape[2:]).swapaxes(0, 1)[
                        None]
            return named

        made, run.results = run.results, results
        return run

    def masks(attention):
        """For the early and for the late chunk: the last keys of the one are its own,
        and the first ones of the other."""
        size = attention.keys // (2 * num_ranks)
        dtype = torch_forms.TYPES[attention.type]
        own = torch.full((size, size), -torch.inf, dtype=dtype).triu_(1)
        early = torch.zeros(size, (rank + 1) * size, dtype=dtype)
        early[:, -size:] = own
        late = torch.zeros(size, (2 * num_ranks - rank) * size, dtype=dtype)
        late[:, :size] = own
        return early, late

    def forms_of(attention):
        if not attention.causal or attention.documents or attention.queries != attention.keys or \
                attention.heads != attention.key_heads:
            raise protocol.Unsupported("only causal attention of as many key heads is written")
        merged = Merged.apply
        if attention.is_forward:
            merged = functools.partial(Merged.forward, None)
        return {"masked": lambda: make(attention, functools.partial(masked, *masks(attention))),
                "merged": lambda: make(attention, merged)}

    return f"all-gather over gloo and SDPA of PyTorch {torch.__version__}", forms_of


if __name__ == "__main__":
    ranks.serve(__file__, load)
