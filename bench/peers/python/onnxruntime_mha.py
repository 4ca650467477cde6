# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of ONNX Runtime on CPUs. See protocol.py.

Three operators: MultiHeadAttention and GroupQueryAttention of com.microsoft, and
Attention of ONNX.
"""

import functools

import numpy
import protocol


def load():
    import onnxruntime
    from onnx import TensorProto, helper

    def run_of(operator, inputs, output, results):
        """Of a model with one operator; inputs are arrays by name, "" for none."""
        types = {numpy.dtype("float32"): TensorProto.FLOAT, numpy.dtype("int32"): TensorProto.INT32}

        def described(name, shape, dtype="float32"):
            return helper.make_tensor_value_info(name, types[numpy.dtype(dtype)], shape)

        given = {name: x for name, x in inputs if name}
        graph = helper.make_graph(
            [operator([name for name, _ in inputs], [name for name, _ in output])], "attention",
            [described(name, x.shape, x.dtype) for name, x in given.items()],
            [described(name, shape) for name, shape in output])
        model = helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = protocol.threads()
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name, x in given.items():
            binding.bind_cpu_input(name, x)
        for name, _ in output:
            binding.bind_output(name, "cpu")
        return protocol.Run(lambda: session.run_with_iobinding(binding),
                            lambda _: {"o": results(binding.copy_outputs_to_cpu()[0])})

    def packed(x):
        """(batch, sequence, heads * dim)."""
        return numpy.ascontiguousarray(x.swapaxes(1, 2)).reshape(x.shape[0], x.shape[2], -1)

    def unpacked(attention, x):
        return x.reshape(attention.batch, attention.queries, attention.heads, -1).swapaxes(1, 2)

    def node(name, **attributes):
        return lambda inputs, outputs: helper.make_node(name, inputs, outputs, **attributes)

    def mask_of(attention):
        return protocol.added_to_scores(attention)[None, None] if attention.documents else None

    def multi_head(attention):
        q, k, v = map(packed, protocol.draw(attention))
        inputs = [("q", q), ("k", k), ("v", v)]
        if attention.documents:
            inputs += [("", None), ("", None), ("mask", mask_of(attention))]
        operator = node("MultiHeadAttention", domain="com.microsoft", num_heads=attention.heads,
                        unidirectional=int(attention.causal and not attention.documents))
        return run_of(operator, inputs, [("o", q.shape)],
                      functools.partial(unpacked, attention))

    def group_query(attention):
        arrays = protocol.draw(attention)
        q, k, v = map(packed, arrays)
        length = numpy.array([attention.keys], numpy.int32)
        each = numpy.full(attention.batch, attention.keys - 1, numpy.int32)
        operator = node("GroupQueryAttention", domain="com.microsoft",
                        num_heads=attention.heads, kv_num_heads=attention.key_heads)
        return run_of(operator, [("q", q), ("k", k), ("v", v), ("", None), ("", None),
                                 ("last", each), ("length", length)],
                      [("o", q.shape), ("present k", arrays[1].shape),
                       ("present v", arrays[2].shape)], functools.partial(unpacked, attention))

    def standard(attention):
        q, k, v = protocol.draw(attention)
        inputs = [("q", q), ("k", k), ("v", v)]
        if attention.documents:
            inputs.append(("mask", mask_of(attention)))
        operator = node("Attention", is_causal=int(attention.causal and not attention.documents))
        return run_of(operator, inputs, [("o", q.shape)], lambda x: x)

    def forms_of(attention):
        if not attention.is_forward:
            raise protocol.Unsupported("ONNX Runtime has no gradients of attention")
        if attention.type != "f32":
            raise protocol.Unsupported(f"ONNX Runtime has no attention of {attention.type} on CPUs")
        forms = {"Attention": standard}
        if attention.heads == attention.key_heads:
            forms["MultiHeadAttention"] = multi_head
        if attention.causal and not attention.documents:
            forms["GroupQueryAttention"] = group_query
        return {name: functools.partial(form, attention) for name, form in forms.items()}

    return f"ONNX Runtime {onnxruntime.__version__}", forms_of


if __name__ == "__main__":
    protocol.serve(load)
