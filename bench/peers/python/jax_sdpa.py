# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dot_product_attention of JAX, jitted. See protocol.py."""

import functools

import numpy
import protocol


def load():
    import jax
    jax.config.update("jax_platforms", "cpu")
    import jax.numpy as jnp
    types = {"f32": jnp.float32, "bf16": jnp.bfloat16}

    def arrays(attention, names):
        # (batch, sequence, heads, dim), as JAX has it.
        return [jnp.asarray(x.swapaxes(1, 2), dtype=types[attention.type])
                for x in protocol.draw(attention, names)]

    def wait_for(function, *arguments):
        return lambda: jax.block_until_ready(function(*arguments))

    def results(names, found):
        return {name: numpy.asarray(x.astype(jnp.float32)).swapaxes(1, 2)
                for name, x in zip(names, found)}

    def run_of(attention, attend, form):
        q, k, v, g = arrays(attention, "qkvg")

        def pullback(q, k, v):
            return jax.vjp(attend, q, k, v)

        def gradients(q, k, v, g):
            return pullback(q, k, v)[1](g)

        def step(q, k, v, g):
            o, pull = pullback(q, k, v)
            return o, *pull(g)

        names = ["dq", "dk", "dv"]
        if form == "forward":
            run, names = wait_for(jax.jit(lambda *x: [attend(*x)]), q, k, v), ["o"]
        elif form == "step":
            run, names = wait_for(jax.jit(step), q, k, v, g), ["o", *names]
        elif form == "gradients with a forward pass":
            run = wait_for(jax.jit(gradients), q, k, v, g)
        else:
            _, pull = jax.block_until_ready(jax.jit(pullback)(q, k, v))
            run = wait_for(jax.jit(lambda pull, g: pull(g)), pull, g)
        return protocol.Run(run, functools.partial(results, names))

    def forms_of(attention):
        options = {"is_causal": attention.causal}
        if attention.documents:
            options = {"mask": jnp.asarray(protocol.kept_pairs(attention))[None, None]}
        attend = functools.partial(jax.nn.dot_product_attention, **options)
        names = [attention.kind]
        if attention.kind == "backward":
            names = ["gradients of what forward kept", "gradients with a forward pass"]
        return {name: functools.partial(run_of, attention, attend, name) for name in names}

    return f"JAX {jax.__version__}", forms_of


if __name__ == "__main__":
    protocol.serve(load)
