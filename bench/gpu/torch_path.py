# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""burst.attention of PyTorch's CUDA tensors, in a process of its own, against attention in fp64.

usage: torch_path.py NAME    writes one line of JSON, the fields of a cell that was found
"""

import json
import math
import sys

IDS = 100 * [0] + 61 * [1] + 95 * [2]


def reference(torch, q, k, v, mask, bias):
    scores = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).transpose(2, 3)
    scores = scores / math.sqrt(q.shape[3]) + bias
    scores = torch.where(mask, scores, -math.inf)
    values = v.repeat_interleave(q.shape[1] // v.shape[1], 1)
    return scores.softmax(-1) @ values, scores.logsumexp(-1)


def check(name):
    import torch
    import burst
    if not torch.cuda.is_available():
        return {"verdict": "skipped", "reason": "PyTorch finds no GPU"}
    torch.manual_seed(0)
    device, length = torch.device("cuda"), len(IDS)
    ids = torch.tensor(IDS)
    slopes = torch.tensor([0.02, 0.01, 0.005, 0.0], device=device, requires_grad=True)
    given = [torch.randn(2, heads, length, 128, device=device, dtype=torch.bfloat16,
                         requires_grad=True) for heads in (4, 2, 2)]

    def mask(b, h, i, j):
        return (i >= j) & (ids[i] == ids[j])

    def score(s, b, h, i, j):
        return s - slopes[h] * (i - j)

    def attend(q, k, v):
        return burst.attention(q, k, v, mask=mask, score=score, return_lse=True)

    stream = torch.cuda.Stream() if name == "stream" else torch.cuda.current_stream()
    if name == "compile":
        attend = torch.compile(attend, fullgraph=True, backend="aot_eager")
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        found = attend(*given)
        weights = [torch.randn_like(x, dtype=torch.float32) for x in found]
        loss = sum((x.float() * w).sum() for x, w in zip(found, weights))
        gradients = torch.autograd.grad(loss, [*given, slopes])
    torch.cuda.current_stream().wait_stream(stream)
    exact = [x.detach().double().cpu().requires_grad_() for x in (*given, slopes)]
    i = torch.arange(length)
    kept = (i[:, None] >= i) & (ids[:, None] == ids)
    wanted = reference(torch, *exact[:3], kept, -exact[3][:, None, None] * (i[:, None] - i))
    loss = sum((x * w.double().cpu()).sum() for x, w in zip(wanted, weights))
    wanted += torch.autograd.grad(loss, exact)
    worst = 0.0
    for x, y in zip((*found, *gradients), wanted):
        size = max(1.0, y.abs().max().item())
        error = (x.detach().double().cpu() - y).abs().max().item() / size
        worst = max(worst, error / 3e-2 if math.isfinite(error) else math.inf)
    return {"verdict": "passed" if worst <= 1 else "failed",
            "worst_error_over_bound": worst if math.isfinite(worst) else "inf"}


if __name__ == "__main__":
    print(json.dumps(check(sys.argv[1])))
