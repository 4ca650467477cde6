# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scaled_dot_product_attention of OpenVINO on CPUs. See protocol.py.

Two forms: a model of this operation alone, and one whose keys and values are state to
which those of a call are appended, as in OpenVINO's models of language: of that its
kernels for CPUs are made.
"""

import functools

import numpy
import protocol


def load():
    import openvino
    from openvino import opset13 as ops
    from openvino.op.util import Variable, VariableInfo
    types = {"f32": openvino.Type.f32, "bf16": openvino.Type.bf16}
    core = openvino.Core()

    def tensor(x, type_):
        if type_ == openvino.Type.bf16:
            made = openvino.Tensor(type_, openvino.Shape(x.shape))
            made.data.view(numpy.uint16).reshape(x.shape)[:] = protocol.bits_of_bfloat16(x)
            return made
        return openvino.Tensor(x)

    def compiled(attention, results, sinks, inputs):
        # Computes in the type of the tensors, and keeps state in it. Threads are placed
        # by the system, as those of other peers.
        return core.compile_model(openvino.Model(results, sinks, inputs), "CPU", {
            "INFERENCE_PRECISION_HINT": attention.type, "KV_CACHE_PRECISION": attention.type,
            "INFERENCE_NUM_THREADS": protocol.threads(), "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False}).create_infer_request()

    def repeated(attention, x):
        """Heads of keys for those of queries, in a form that is fused."""
        groups = attention.heads // attention.key_heads
        if groups == 1:
            return x
        ones = ops.constant(numpy.ones((1, 1, groups, 1, 1)), dtype=types[attention.type])
        wide = ops.multiply(ops.unsqueeze(x, ops.constant(numpy.array([2]))), ones)
        return ops.reshape(wide, ops.constant(numpy.array([0, attention.heads, -1,
                                                           attention.dim])), True)

    def node(attention, q, k, v, mask):
        k, v = repeated(attention, k), repeated(attention, v)
        if mask is not None:
            return ops.scaled_dot_product_attention(q, k, v, mask)
        return ops.scaled_dot_product_attention(q, k, v, causal=attention.causal)

    def mask_of(attention, type_):
        """A parameter and a tensor for it; nothing where `causal` says it all."""
        if not attention.documents:
            return [], []
        x = protocol.added_to_scores(attention)[None, None]
        return [ops.parameter(x.shape, type_)], [tensor(x, type_)]

    def run_of(request, given, type_, start=lambda: None):
        for n, x in enumerate(given):
            request.set_input_tensor(n, x)

        def results(_):
            found = request.get_output_tensor(0)
            if type_ == openvino.Type.bf16:
                bits = found.data.view(numpy.uint16)
                return {"o": protocol.floats_of_bfloat16(bits).reshape(found.shape)}
            return {"o": found.data}

        return protocol.Run(request.infer, results, start)

    def stateless(attention):
        type_ = types[attention.type]
        arrays = protocol.draw(attention)
        masks, given = mask_of(attention, type_)
        inputs = [ops.parameter(x.shape, type_) for x in arrays]
        results = [ops.result(node(attention, *inputs, masks[0] if masks else None))]
        request = compiled(attention, results, [], [*inputs, *masks])
        return run_of(request, [tensor(x, type_) for x in arrays] + given, type_)

    def stateful(attention):
        type_ = types[attention.type]
        heads, dim = attention.key_heads, attention.dim
        q, k, v = protocol.draw(attention)
        masks, given = mask_of(attention, type_)
        inputs = [ops.parameter([attention.batch, x.shape[1], -1, dim], type_) for x in (q, k, v)]
        beams = ops.parameter([-1], openvino.Type.i32)
        sinks = []

        def cached(x, name):
            info = VariableInfo()
            info.data_shape = openvino.PartialShape([-1, heads, -1, dim])
            info.data_type, info.variable_id = type_, name
            variable = Variable(info)
            empty = ops.broadcast(ops.constant(0.0, dtype=type_),
                                  ops.constant(numpy.array([attention.batch, heads, 0, dim])))
            past = ops.gather(ops.read_value(empty, variable), beams, ops.constant(0))
            whole = ops.concat([past, x], 2)
            sinks.append(ops.assign(whole, variable))
            return whole

        whole = [cached(x, name) for x, name in zip(inputs[1:], "kv")]
        results = [ops.result(node(attention, inputs[0], *whole, masks[0] if masks else None))]
        request = compiled(attention, results, sinks, [*inputs, beams, *masks])
        # One query is that of the last key; the keys before it are in the state, which
        # each run makes longer by one until the next question.
        num_past = attention.keys - attention.queries
        past = {name: tensor(numpy.ascontiguousarray(x[:, :, :num_past]), type_)
                for name, x in zip("kv", (k, v))}

        def start():
            for state in request.query_state():
                if num_past:
                    state.state = past[state.name]

        new = [tensor(numpy.ascontiguousarray(x[:, :, num_past:]), type_) for x in (k, v)]
        run = run_of(request, [tensor(q, type_), *new,
                               openvino.Tensor(numpy.arange(attention.batch, dtype=numpy.int32)), *given],
                     type_, start)
        if not num_past:
            infer = run.run

            def from_nothing():
                request.reset_state()
                infer()

            run.run = from_nothing
        return run

    def forms_of(attention):
        if not attention.is_forward:
            raise protocol.Unsupported("OpenVINO has no gradients")
        forms = {"one operation": functools.partial(stateless, attention)}
        # Masks of causal attention begin with the first key, which is right where there
        # are as many queries.
        if attention.queries == attention.keys or not attention.causal:
            forms["keys and values in the state"] = functools.partial(stateful, attention)
        return forms

    return f"OpenVINO {openvino.__version__.split('-')[0]}", forms_of


if __name__ == "__main__":
    protocol.serve(load)
