# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What peers that compute with tensors of PyTorch share."""

import functools

import protocol
import torch

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def setup():
    torch.set_num_threads(protocol.threads())
    return f"PyTorch {torch.__version__}"


def tensors(attention, names="qkv"):
    return [torch.from_numpy(x).to(TYPES[attention.type])
            for x in protocol.draw(attention, names)]


def run_of(attention, attend):
    """`attend` of q, k and v, or its gradients, or both."""
    q, k, v, g = tensors(attention, "qkvg")
    return run_on(attention, attend, q, k, v, g)


def run_on(attention, attend, q, k, v, g):
    """The same of tensors that are there."""
    if attention.is_forward:
        return protocol.Run(torch.no_grad()(lambda: [attend(q, k, v)]),
                            functools.partial(_arrays, ["o"]))
    inputs = [x.requires_grad_() for x in (q, k, v)]
    names = ["dq", "dk", "dv"]
    if attention.kind == "step":
        def step():
            o = attend(*inputs)
            return [o.detach(), *torch.autograd.grad(o, inputs, g)]
        return protocol.Run(step, functools.partial(_arrays, ["o", *names]))
    o = attend(*inputs)
    return protocol.Run(lambda: torch.autograd.grad(o, inputs, g, retain_graph=True),
                        functools.partial(_arrays, names))


def _arrays(names, results):
    return {name: x.float().numpy() for name, x in zip(names, results)}
