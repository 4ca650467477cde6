# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch on the CPU, asked for timings by burst-bench.

Reads questions from the standard input, one a line in JSON, and answers each with a
line on the standard output: {"seconds": 0.12}, or {"error": "why not"}. The first line
it writes is its name. Questions are

    {"kind": "forward" or "backward", "type": "f32", "causal": true,
     "heads": 8, "sequence": 4096, "dim": 128}
        scaled_dot_product_attention, or its gradients alone; with "queries" (else as
        many as the keys, of which there are "sequence"), "key_heads" (else as many as
        heads) or "batch" (else 1)
    {"kind": "product", "type": "f32", "m": 4096, "n": 4096, "k": 128}
        a matrix product of oneDNN

Each is run once, without a warm-up: who asks first, and again, has that in hand. What
it runs on is kept until another question comes.
"""

import json
import os
import sys
import time

import torch
import torch.nn.functional as functional

TYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16}


def attention(question):
    heads, keys, batch = question["heads"], question["sequence"], question.get("batch", 1)
    key_heads = question.get("key_heads", heads)
    dtype = TYPES[question["type"]]
    is_backward = question["kind"] == "backward"

    def draw(heads, length):
        shape = (batch, heads, length, question["dim"])
        return torch.rand(shape, dtype=dtype).mul_(2).sub_(1).requires_grad_(is_backward)

    q = draw(heads, question.get("queries", keys))
    k, v = draw(key_heads, keys), draw(key_heads, keys)

    def forward():
        return functional.scaled_dot_product_attention(q, k, v, is_causal=question["causal"],
                                                       enable_gqa=heads != key_heads)

    if not is_backward:
        return forward
    out = forward()
    gradient = torch.rand_like(out)
    return lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)


def product(question):
    """Of oneDNN itself: torch.mm may take another library's."""
    m, n, k = question["m"], question["n"], question["k"]
    dtype = TYPES[question["type"]]
    if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        raise RuntimeError("oneDNN has no products of bf16 for this processor")
    left = torch.rand(m, k, dtype=dtype)
    right = torch.rand(n, k, dtype=dtype)
    return lambda: torch.ops.mkldnn._linear_pointwise(left, right, None, "none", [], "")


def main():
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**fields):
        print(json.dumps(fields), file=answers, flush=True)

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(0)
    answer(name=f"PyTorch {torch.__version__}")
    asked, run = None, None
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if question != asked:
                asked, run = None, None
                run = (product if question["kind"] == "product" else attention)(question)
                asked = question
            with torch.set_grad_enabled(question["kind"] == "backward"):
                begin = time.perf_counter()
                run()
                answer(seconds=time.perf_counter() - begin)
        except (RuntimeError, AttributeError) as error:
            asked = None
            answer(error=str(error).splitlines()[0])


if __name__ == "__main__":
    main()
