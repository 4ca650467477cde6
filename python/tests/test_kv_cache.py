# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.with_kvcache, and packed sequences of which some keys are used, against each
sequence by itself."""

import pytest
import torch

import burst
import reference
from burst import programs

HEADS, KEY_HEADS, DIM, PAGE = 4, 2, 16, 8


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def expected(q, keys, values, left=-1, right=-1, softcap=0.0, scale=None):
    """Of one sequence: q is (queries, heads, dim), keys are those that count."""
    shift = keys.shape[0] - q.shape[0]

    def mask(b, h, i, j):
        d = i + shift - j
        return (d <= left if left >= 0 else d == d) & (d >= -right if right >= 0 else d == d)

    def score(s, b, h, i, j):
        return softcap * torch.tanh(s / softcap)

    o, lse = reference.attention(*(x.transpose(0, 1)[None] for x in (q, keys, values)), mask,
                                 score if softcap else None, scale)
    return o[0].transpose(0, 1), lse[0]


def paged(caches, seed=1):
    """The caches in pages that lie anywhere, and whose they are; one page is nobody's."""
    batch, room = caches[0].shape[:2]
    count = batch * room // PAGE
    order = torch.randperm(count + 1, generator=torch.Generator().manual_seed(seed))[:count]
    pools = [x.new_full((count + 1, PAGE, *x.shape[2:]), float("nan")) for x in caches]
    for pool, x in zip(pools, caches):
        pool[order] = x.reshape(count, PAGE, *x.shape[2:])
    return pools, order.reshape(batch, room // PAGE).to(torch.int32)


@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize("num_queries", [1, 5])
@pytest.mark.parametrize("arguments", [
    dict(), dict(causal=True), dict(causal=True, window=(6, 0)), dict(window=(3, 2)),
    dict(softcap=5.0, scale=0.3)])
def test_lengths(pages, num_queries, arguments):
    used = torch.tensor([7, 32, 19], dtype=torch.int32)
    q = draw(3, num_queries, HEADS, DIM)
    caches = [draw(3, 32, KEY_HEADS, DIM, seed=n) for n in (1, 2)]
    given, table = paged(caches) if pages else (caches, None)
    o, lse = burst.with_kvcache(q, *given, cache_seqlens=used, block_table=table,
                                return_lse=True, **arguments)
    left, right = arguments.get("window", (-1, -1))
    right = 0 if arguments.get("causal") else right
    for n, count in enumerate(used):
        wanted = expected(q[n], *(x[n, :count] for x in caches), left, right,
                          arguments.get("softcap", 0.0), arguments.get("scale"))
        reference.assert_close(o[n], wanted[0])
        reference.assert_close(lse[n], wanted[1])


@pytest.mark.parametrize("pages", [False, True])
def test_keys_are_appended(pages):
    """A decoding loop writes to its cache in place, and compiles twice at most."""
    keys, values = (draw(2, 24, KEY_HEADS, DIM, seed=n) for n in (1, 2))
    caches = [torch.full_like(x, float("nan")) for x in (keys, values)]
    given, table = paged(caches) if pages else (caches, None)
    begin = torch.tensor([3, 0])
    programs.compiled.cache_clear()
    # The first keys at once, as of a prompt that is longer for one of two.
    for new in (5, *[1] * 12):
        parts = [torch.stack([x[n, begin[n]:begin[n] + new] for n in range(2)])
                 for x in (keys, values)]
        if new == 5:
            for cache, x in zip(given, (keys, values)):
                page = cache[0] if table is None else cache[int(table[0, 0])]
                page[:3] = x[0, :3]
        q = draw(2, new, HEADS, DIM, seed=new)
        o = burst.with_kvcache(q, *given, *parts, cache_seqlens=begin, block_table=table,
                               causal=True)
        begin = begin + new
        for n in range(2):
            wanted, _ = expected(q[n], keys[n, :begin[n]], values[n, :begin[n]], right=0)
            reference.assert_close(o[n], wanted)
    assert programs.compiled.cache_info().misses <= 3 # of five queries, and of one


def test_of_all_positions():
    q, k, v = (draw(2, n, h, DIM) for n, h in ((1, HEADS), (9, KEY_HEADS), (9, KEY_HEADS)))
    wanted = burst.attention(q, k, v, layout="bshd")
    reference.assert_close(burst.with_kvcache(q, k, v), wanted)
    reference.assert_close(burst.with_kvcache(q, k, v, cache_seqlens=9), wanted)
    nothing = burst.with_kvcache(q, k, v, cache_seqlens=0)
    assert torch.equal(nothing, torch.zeros_like(q))


def test_refusals():
    q, k, v = (draw(2, n, h, DIM) for n, h in ((1, HEADS), (8, KEY_HEADS), (8, KEY_HEADS)))
    table = torch.tensor([[0], [1]])
    for arguments, message in (
            (dict(cache_seqlens=9), "cache_seqlens: from 0 to the 8 positions of the cache, got 9"),
            (dict(cache_seqlens=torch.ones(3).int()), r"cache_seqlens: \(2,\) integers are wanted"),
            (dict(cache_seqlens=torch.ones(2)), "integers are wanted, got .* of torch.float32"),
            (dict(block_table=table + 1), "block_table: names page 2 where a sequence has keys, "
                                          "and there are 2"),
            (dict(block_table=table - 1), "block_table: names page -1 where a sequence has keys"),
            (dict(cache_seqlens=torch.tensor([True, False])), "integers are wanted, got .* of "
                                                              "torch.bool"),
            (dict(window=4), r"window: \(left, right\) is wanted, got 4"),
            (dict(block_table=table[0]), r"block_table: \(2, pages\) integers are wanted"),
            (dict(k=k[:, :1]), "k, v: new keys and values come together"),
            (dict(k=k[:, :1], v=v[:, :1]), "k: 1 new keys behind 8, and the cache has room for 8"),
            (dict(k=k[:, :1], v=v[:, :2], cache_seqlens=0), r"v: \(2, 1, 2, 16\) is wanted"),
            (dict(window=(-2, 0)), "window: sides are at least 0")):
        with pytest.raises(ValueError, match=message):
            burst.with_kvcache(q, k, v, **arguments)
    with pytest.raises(ValueError, match="k_cache: has a batch of 2, q of 1; of pages a"):
        burst.with_kvcache(q[:1], k, v)
    # Nothing is written by a call that fails.
    before = k.clone()
    with pytest.raises(TypeError, match="v: is of torch.bfloat16, q of torch.float32"):
        burst.with_kvcache(q, k, v, k[:, :1] + 1, v[:, :1].bfloat16(), cache_seqlens=0)
    with pytest.raises(ValueError, match="k_cache: has a head dim of 16, q of 8"):
        burst.with_kvcache(q[..., :8], k, v, k[:, :1] + 1, v[:, :1], cache_seqlens=0)
    assert torch.equal(k, before)


def test_lengths_of_few_bits():
    q, k, v = (draw(1, n, h, DIM) for n, h in ((5, HEADS), (160, KEY_HEADS), (160, KEY_HEADS)))
    new = [draw(1, 60, KEY_HEADS, DIM, seed=n) for n in (3, 4)]
    wanted = burst.with_kvcache(q, k.clone(), v.clone(), *new, cache_seqlens=100, causal=True)
    for dtype in (torch.int8, torch.uint8, torch.int32):
        found = burst.with_kvcache(q, k.clone(), v.clone(), *new, causal=True,
                                   cache_seqlens=torch.tensor([100], dtype=dtype))
        assert torch.equal(found, wanted)
    few = burst.with_kvcache(q, k, v, cache_seqlens=torch.tensor([3], dtype=torch.uint8),
                             causal=True)
    reference.assert_close(few[0], expected(q[0], k[0, :3], v[0, :3], right=0)[0])
    assert burst.with_kvcache(q[:0], k[:0], v[:0]).shape == (0, 5, HEADS, DIM)


def test_caches_have_no_gradients():
    q, k, v = (draw(1, n, h, DIM).requires_grad_() for n, h in
               ((1, HEADS), (1, KEY_HEADS), (1, KEY_HEADS)))
    caches = [torch.zeros(1, 8, KEY_HEADS, DIM) for _ in range(2)]
    for n in range(3):
        assert not burst.with_kvcache(q, *caches, k * 2, v, cache_seqlens=n).requires_grad
    assert not caches[0].requires_grad and torch.equal(caches[0][0, 2], 2 * k[0, 0].detach())


@pytest.mark.parametrize("causal", [False, True])
def test_used_keys_of_packed_sequences(causal):
    lengths, rooms, used = [1, 3, 2], [6, 4, 9], torch.tensor([5, 4, 2], dtype=torch.int32)
    cu_q, cu_k = (torch.tensor([0, *n]).cumsum(0) for n in (lengths, rooms))
    q, k, v = (draw(sum(n), h, DIM) for n, h in
               ((lengths, HEADS), (rooms, KEY_HEADS), (rooms, KEY_HEADS)))
    o = burst.varlen(q, k, v, cu_q, cu_k, causal=causal, seqused_k=used)
    for n, count in enumerate(used):
        keys = slice(int(cu_k[n]), int(cu_k[n] + count))
        own = slice(int(cu_q[n]), int(cu_q[n + 1]))
        wanted, _ = expected(q[own], k[keys], v[keys], right=0 if causal else -1)
        reference.assert_close(o[own], wanted)
    with pytest.raises(ValueError, match="seqused_k: for each of the 3 sequences at most its"):
        burst.varlen(q, k, v, cu_q, cu_k, seqused_k=used + 3)
    with pytest.raises(ValueError, match="block_table: keys are packed here; burst.with_kvcache"):
        burst.varlen(q, k, v, cu_q, cu_k, block_table=torch.zeros(3, 1))
    with pytest.raises(ValueError, match="cu_seqlens: must rise from 0 to the number of tokens, 5"):
        burst.varlen(q, k[:5], v[:5], cu_q)
    q.requires_grad_()
    nothing, lse = burst.varlen(q, k[:0], v[:0], cu_q, cu_k * 0, return_lse=True)
    assert torch.equal(nothing, torch.zeros_like(q)) and bool(lse.isneginf().all())
    nothing.sum().backward()
    assert torch.equal(q.grad, torch.zeros_like(q))
    assert burst.varlen(q[:0], k, v, cu_q * 0, cu_k).shape == (0, HEADS, DIM)
