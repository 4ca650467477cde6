# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of one package on the CPU, asked for timings by bench/compare.py.

usage: attention.py PEER    one of burst, torch, flex, openvino, onnxruntime, jax

Writes a greeting in JSON, {"name": "PyTorch 2.13.0"} or {"missing": "why"}, then answers each line
of the standard input, {"kind": "forward" or "backward", "mask": "full", "causal" or "documents",
"type": "f32" or "bf16", "heads", "key_heads", "queries", "keys", "dim"}, with {"seconds": [...],
"error": E}: as many runs as "runs" says after one that is not counted, and the largest error of the
result, in units of its largest number, against float64. {"error": "why not"} where it cannot.
"""

import importlib.metadata
import json
import math
import os
import sys
import time

import numpy

THREADS = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))


def problem(question):
    """q, k, v (1, heads, length, dim) as float64, and ids of documents."""
    random = numpy.random.default_rng(0)
    def draw(heads, length):
        return random.standard_normal((1, heads, length, question["dim"]))
    q = draw(question["heads"], question["queries"])
    k, v = (draw(question["key_heads"], question["keys"]) for _ in range(2))
    ids = numpy.arange(question["keys"]) * 5 // question["keys"]
    return q, k, v, ids


def kept(question, ids):
    i, j = numpy.arange(question["queries"])[:, None], numpy.arange(question["keys"])
    if question["mask"] == "causal":
        return j <= i
    return (j <= i) & (ids[i] == ids) if question["mask"] == "documents" else None


def exact(question, q, k, v, ids):
    """o, or the gradient of its sum by q; a head at a time."""
    mask, ratio = kept(question, ids), q.shape[1] // k.shape[1]
    result = numpy.empty_like(q)
    for h in range(q.shape[1]):
        keys, values = k[0, h // ratio], v[0, h // ratio]
        s = q[0, h] @ keys.T / math.sqrt(q.shape[3])
        if mask is not None:
            s = numpy.where(mask, s, -numpy.inf)
        p = numpy.exp(s - s.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        o = p @ values
        if question["kind"] == "backward":
            ds = p * (values.sum(1) - o.sum(1, keepdims=True))
            o = ds @ keys / math.sqrt(q.shape[3])
        result[0, h] = o
    return result


class Torch:
    """scaled_dot_product_attention, or what else takes torch's tensors."""

    def __init__(self):
        import torch
        torch.set_num_threads(THREADS)
        self.torch, self.name = torch, f"PyTorch {torch.__version__}"

    def function(self, question, ids):
        functional = self.torch.nn.functional
        gqa = question["heads"] != question["key_heads"]
        mask = None
        if question["mask"] == "documents":
            mask = self.torch.tensor(kept(question, ids))
        return lambda q, k, v: functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=question["mask"] == "causal", enable_gqa=gqa)

    def prepare(self, question, q, k, v, ids):
        torch = self.torch
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[question["type"]]
        backward = question["kind"] == "backward"
        q, k, v = (torch.tensor(x).to(dtype).requires_grad_(backward) for x in (q, k, v))
        attend = self.function(question, ids)
        if not backward:
            def forward():
                with torch.no_grad():
                    return attend(q, k, v)
            return forward, lambda o: o.double().numpy()
        o = attend(q, k, v)
        gradient = torch.ones_like(o)
        return (lambda: torch.autograd.grad(o, (q, k, v), gradient, retain_graph=True),
                lambda found: found[0].double().numpy())


class Burst(Torch):
    def __init__(self):
        super().__init__()
        import burst
        self.burst, self.name = burst, f"burst {burst.__version__}"

    def function(self, question, ids):
        ids = self.torch.tensor(ids)
        mask = {"full": None, "causal": lambda b, h, i, j: i >= j,
                "documents": lambda b, h, i, j: (i >= j) & (ids[i] == ids[j])}[question["mask"]]
        return lambda q, k, v: self.burst.attention(q, k, v, mask=mask)


class Flex(Torch):
    def __init__(self):
        super().__init__()
        from torch.nn.attention import flex_attention
        self.flex, self.name = flex_attention, f"flex_attention, compiled, {self.name}"
        self.compiled = self.torch.compile(flex_attention.flex_attention)

    def function(self, question, ids):
        if question["kind"] == "backward":
            raise NotImplementedError("no backward pass on CPUs")
        ids, block = self.torch.tensor(ids), None
        if question["mask"] != "full":
            def mask(b, h, i, j):
                return (i >= j) & (ids[i] == ids[j]) if question["mask"] == "documents" else i >= j
            block = self.flex.create_block_mask(mask, None, None, question["queries"],
                                                question["keys"], device="cpu")
        gqa = question["heads"] != question["key_heads"]
        return lambda q, k, v: self.compiled(q, k, v, block_mask=block, enable_gqa=gqa)


class OpenVino:
    def __init__(self):
        import openvino
        self.openvino, self.name = openvino, f"OpenVINO {openvino.__version__.split('-')[0]}"

    def prepare(self, question, q, k, v, ids):
        from openvino import opset13
        if question["kind"] == "backward":
            raise NotImplementedError("no gradients")
        if question["type"] != "f32":
            raise NotImplementedError("measured in f32 alone")
        if question["heads"] != question["key_heads"]:
            raise NotImplementedError("its op has as many heads of keys as of queries")
        q, k, v = (numpy.asarray(x, numpy.float32) for x in (q, k, v))
        inputs = [opset13.parameter(x.shape, numpy.float32) for x in (q, k, v)]
        operands = list(inputs)
        mask = kept(question, ids)
        if question["mask"] == "documents":
            operands.append(opset13.constant(mask[None, None]))
        node = opset13.scaled_dot_product_attention(*operands,
                                                    causal=question["mask"] == "causal")
        model = self.openvino.compile_model(
            self.openvino.Model([node], inputs), "CPU",
            {"INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32",
             "NUM_STREAMS": 1})
        request = model.create_infer_request()
        given = [self.openvino.Tensor(numpy.ascontiguousarray(x)) for x in (q, k, v)]
        for n, x in enumerate(given):
            request.set_input_tensor(n, x)
        def run(): # tensors live as long as it does
            assert given
            request.infer()
            return request.get_output_tensor(0).data
        return run, lambda o: o.astype(numpy.float64)


class OnnxRuntime:
    def __init__(self):
        import onnx
        import onnxruntime
        self.onnx, self.runtime = onnx, onnxruntime
        self.name = f"ONNX Runtime {onnxruntime.__version__}"

    def prepare(self, question, q, k, v, ids):
        if question["kind"] == "backward":
            raise NotImplementedError("no gradients")
        if question["type"] != "f32" or question["heads"] != question["key_heads"]:
            raise NotImplementedError("MultiHeadAttention is of f32, with equally many heads")
        if question["mask"] == "documents":
            raise NotImplementedError("MultiHeadAttention takes causal and padding masks")
        helper, heads = self.onnx.helper, question["heads"]
        # (batch, length, heads * dim), as the op wants it.
        q, k, v = (numpy.ascontiguousarray(x.transpose(0, 2, 1, 3), numpy.float32)
                   .reshape(1, x.shape[2], -1) for x in (q, k, v))
        values = [helper.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, x.shape)
                  for name, x in zip("qkv", (q, k, v))]
        node = helper.make_node("MultiHeadAttention", list("qkv"), ["o"], domain="com.microsoft",
                                num_heads=heads, unidirectional=int(question["mask"] == "causal"))
        graph = helper.make_graph([node], "attention", values, [helper.make_tensor_value_info(
            "o", self.onnx.TensorProto.FLOAT, q.shape)])
        model = helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)])
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = self.runtime.InferenceSession(model.SerializeToString(), options,
                                                ["CPUExecutionProvider"])
        given = dict(zip("qkv", (q, k, v)))
        return (lambda: session.run(None, given)[0],
                lambda o: o.reshape(1, -1, heads, question["dim"]).transpose(0, 2, 1, 3)
                .astype(numpy.float64))


class Jax:
    def __init__(self):
        import jax
        self.jax, self.name = jax, f"JAX {jax.__version__}"

    def prepare(self, question, q, k, v, ids):
        jax, jnp = self.jax, self.jax.numpy
        dtype = {"f32": jnp.float32, "bf16": jnp.bfloat16}[question["type"]]
        q, k, v = (jnp.asarray(x.transpose(0, 2, 1, 3), dtype) for x in (q, k, v))
        mask = None
        if question["mask"] == "documents":
            mask = jnp.asarray(kept(question, ids))[None, None]
        def attend(q, k, v):
            return jax.nn.dot_product_attention(q, k, v, mask=mask,
                                                is_causal=question["mask"] == "causal")
        if question["kind"] == "backward": # it has no gradient without the forward pass
            attend = jax.grad(lambda *x, inner=attend: inner(*x).astype(jnp.float32).sum(),
                              argnums=(0, 1, 2))
        compiled = jax.jit(attend)
        def plain(found):
            found = found[0] if question["kind"] == "backward" else found
            return numpy.asarray(found.astype(jnp.float32)).transpose(0, 2, 1, 3).astype("f8")
        return lambda: jax.block_until_ready(compiled(q, k, v)), plain


PEERS = {"burst": Burst, "torch": Torch, "flex": Flex, "openvino": OpenVino,
         "onnxruntime": OnnxRuntime, "jax": Jax}


def answer_to(peer, question, known):
    key = json.dumps({**question, "runs": 0}, sort_keys=True)
    if known.get("key") != key:
        known.clear()
        q, k, v, ids = problem(question)
        run, plain = peer.prepare(question, q, k, v, ids)
        found, wanted = plain(run()), exact(question, q, k, v, ids)
        error = float(numpy.abs(found - wanted).max() / max(1.0, numpy.abs(wanted).max()))
        known.update(key=key, run=run, error=error)
    seconds = []
    for _ in range(question["runs"]):
        begin = time.perf_counter()
        known["run"]()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": seconds, "error": known["error"]}


def main():
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**fields):
        print(json.dumps(fields), file=answers, flush=True)

    try:
        peer = PEERS[sys.argv[1]]()
    except (ImportError, importlib.metadata.PackageNotFoundError) as error:
        return answer(missing=f"{error}: scripts/peers --all installs it")
    answer(name=peer.name)
    known = {}
    for line in sys.stdin:
        try:
            answer(**answer_to(peer, json.loads(line), known))
        except Exception as error: # the cell says why
            known.clear()
            answer(error=(str(error).splitlines() or [type(error).__name__])[0][:200])


if __name__ == "__main__":
    main()
