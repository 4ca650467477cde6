# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is checked and measured on GPUs: programs, as MLIR, and the cells that run them."""

MASKS = {
    "full": "",
    "causal": "mask causal",
    "window": "mask [causal, window<left = 200, right = 0>]",
    "documents": "mask [causal, documents](%ids : tensor<{keys}xi32>)",
}


def text(rank_count=1, queries="?", keys="?", heads=32, key_heads=8, dim=128, value_dim=None,
         element="bf16", mask="full", score="", order=None, backward=False, strategy=""):
    """A module with one function @attention over global tensors."""
    value_dim = value_dim or dim

    def tensor(length, number, size, kind=element):
        return f"tensor<1x{length}x{number}x{size}x{kind}>"

    q, k = tensor(queries, heads, dim), tensor(keys, key_heads, dim)
    v, o = tensor(keys, key_heads, value_dim), tensor(queries, heads, value_dim)
    lse = f"tensor<1x{heads}x{queries}xf32>"
    arguments = [("q", q), ("k", k), ("v", v)]
    if backward:
        arguments += [("o", o), ("lse", lse), ("do", o)]
    operands = ", ".join("%" + name for name, _ in arguments)
    operand_types = ", ".join(kind for _, kind in arguments)
    results = [("dq", q), ("dk", k), ("dv", v)] if backward else [("o", o), ("lse", lse)]
    if mask == "documents":
        arguments.append(("ids", f"tensor<{keys}xi32>"))
    order = order or ("zigzag" if rank_count > 1 else "contiguous")
    clauses = " ".join(filter(None, [
        MASKS[mask].format(keys=keys), score, f"sequence <@cp, {order}>", strategy]))
    op = "attention_backward" if backward else "attention"
    named = ", ".join(f'%{name}: {kind} {{burst.name = "{name}"}}' for name, kind in arguments)
    returned = ", ".join(f'{kind} {{burst.name = "{name}"}}' for name, kind in results)
    values = ", ".join("%r" + name for name, _ in results)
    kinds = ", ".join(kind for _, kind in results)
    return (f"shard.grid @cp(shape = {rank_count})\n"
            f"func.func @attention({named}) -> ({returned}) {{\n"
            f"  {values} = burst.{op} {operands} {clauses}\n"
            f"      : ({operand_types}) -> ({kinds})\n"
            f"  return {values} : {kinds}\n}}\n")


def truths():
    """Small programs, by name: every kind of mask, shape and number of ranks."""
    small = {"queries": 300, "keys": 300, "heads": 4, "key_heads": 2}
    for backward in (False, True):
        name = "backward" if backward else "forward"
        for dim in (64, 96, 128, 256):
            for mask in ("full", "causal"):
                yield f"{name}-{mask}-{dim}", text(dim=dim, mask=mask, backward=backward, **small)
        yield f"{name}-window-64", text(dim=64, mask="window", backward=backward, **small)
        for dim in (64, 128, 256):
            yield (f"{name}-documents-{dim}",
                   text(dim=dim, mask="documents", backward=backward, **small))
        yield f"{name}-softcap-64", text(dim=64, score="score softcap<20.0>", backward=backward,
                                         **small)
        yield f"{name}-f16-72", text(dim=72, element="f16", mask="causal", backward=backward,
                                     **small)
        for rank_count in (2, 3, 4, 8):
            yield (f"{name}-causal-128-ranks{rank_count}",
                   text(rank_count, dim=128, mask="causal", backward=backward, **small))
    yield "forward-values-64-32", text(dim=64, value_dim=32, mask="causal", **small)
    yield "forward-striped-64-ranks4", text(4, dim=64, mask="causal", order="striped", **small)
    yield ("forward-ring_q-64-ranks4",
           text(4, dim=64, mask="causal", strategy="strategy <ring_q>", **small))


# Bundles are made for each of these.
ARCHITECTURES = {"hopper": "sm_90a", "portable": "sm_80,sm_90"}
# What is asked for most comes first.
LENGTHS = (16384, 8192, 32768, 2048, 4096)
DIMS = (128, 64, 256)
# Of which counters of the hardware are read: a program, and which of its kernels.
COUNTED = (("forward-full-128.hopper", "attend"), ("forward-causal-128.hopper", "attend"),
           ("forward-causal-64.hopper", "attend"), ("forward-causal-256.hopper", "attend"),
           ("backward-causal-128.portable", "attend_grad_queries"),
           ("backward-causal-128.portable", "attend_grad_keys"))
RINGS = (2, 4, 8)


def speeds():
    """Programs of any length, by what is measured of them."""
    for backward in (False, True):
        for dim in DIMS:
            for causal in (False, True):
                yield (speed_name(dim, causal, backward),
                       text(dim=dim, mask="causal" if causal else "full", backward=backward))
    for rank_count in RINGS:
        yield f"ring{rank_count}-causal-128", text(rank_count, dim=128, mask="causal")


def speed_name(dim, causal, backward):
    return f"{'backward' if backward else 'forward'}-{'causal' if causal else 'full'}-{dim}"


def variants(name):
    return {variant: f"{name}.{variant}" for variant in ARCHITECTURES}


def speed_cell(dim, causal, backward, length, heads=32, key_heads=8):
    name = speed_name(dim, causal, backward)
    return {"name": f"speed {name} {length}", "kind": "speed", "programs": variants(name),
            "dim": dim, "causal": causal, "backward": backward, "length": length,
            "heads": heads, "key_heads": key_heads}


def ring_cell(rank_count, length, dim=128, heads=32, key_heads=8):
    name, alone = f"ring{rank_count}-causal-{dim}", speed_name(dim, True, False)
    return {"name": f"ring {name} {length}", "kind": "ring", "ranks": rank_count,
            "programs": {variant: [f"{name}.{variant}", f"{alone}.{variant}"]
                         for variant in ARCHITECTURES},
            "dim": dim, "causal": True, "backward": False, "length": length,
            "heads": heads, "key_heads": key_heads}


def processes_cell(program, rank_count, length, transport="nccl", gpu=0, kills=False):
    name = f"{transport} {program} {length}" + (" killed" if kills else "")
    return {"name": "processes " + name, "kind": "processes", "transport": transport,
            "program": program + ".so", "ranks": rank_count, "length": length, "gpu": gpu,
            "kills": kills}


def primitive_cell(kernel):
    return {"name": "primitive " + kernel, "kind": "primitive", "kernel": kernel}


def peak_cell(kernel, zeros):
    return {"name": f"ceiling {kernel}{' zeros' if zeros else ''}", "kind": "peak",
            "kernel": kernel, "zeros": zeros}


def counters_cell(program, kernel, length=16384, heads=32, key_heads=8):
    direction, mask, dim = program.partition(".")[0].split("-")
    return {"name": f"counters {program} {kernel}", "kind": "counters", "program": program,
            "kernel": "attention_" + kernel, "dim": int(dim), "causal": mask == "causal",
            "backward": direction == "backward", "length": length, "heads": heads,
            "key_heads": key_heads}


def family(cell):
    """Cells that are likely to hang together."""
    kind = cell["kind"]
    if kind == "truth":
        direction = cell["program"].partition("-")[0]
        return f"{'portable ' if cell.get('architectures') else ''}truth {direction}"
    if kind == "primitive":
        return " ".join(["primitive", *cell["kernel"].split("_")[:2]])
    if kind == "speed":
        return " ".join(cell["name"].split()[:2])
    return kind


def cells(kernels):
    """All of them, in the order in which they run; `kernels`: the primitives. Cells with a `phase`
    of 0 get 60 s together; what is not done then comes behind those of phase 1."""
    truth = [name for name, _ in truths()]
    yield from ({"name": "truth " + name, "kind": "truth", "program": name, "phase": 0}
                for name in truth)
    yield from ({**speed_cell(128, causal, False, LENGTHS[0]), "large": True, "phase": 1}
                for causal in (False, True))
    yield from (primitive_cell(kernel) for kernel in kernels if not kernel.startswith("peak"))
    speed = [(128, False, True, length) for length in LENGTHS[1:]]
    speed += [(128, True, True, LENGTHS[0]), (128, True, False, LENGTHS[0])]
    speed += [(dim, False, causal, LENGTHS[0]) for dim in (64, 256) for causal in (True, False)]
    yield from ({**speed_cell(dim, causal, backward, length), "large": True}
                for dim, backward, causal, length in speed)
    yield from ({**counters_cell(*counted), "large": True} for counted in COUNTED)
    large = [{"name": f"ceiling matmul{' zeros' if zeros else ''}", "kind": "matmul",
              "size": 8192, "zeros": zeros} for zeros in (False, True)]
    large += [{"name": "ceiling copy", "kind": "copy", "bytes": 1 << 32}]
    yield from ({**cell, "large": True} for cell in large)
    yield from (peak_cell(kernel, zeros) for kernel in kernels if kernel.startswith("peak")
                for zeros in (False, True))
    yield from ({**ring_cell(rank_count, 16384), "large": True} for rank_count in RINGS)
    others = [(dim, backward, causal, length) for length in LENGTHS for dim in DIMS
              for backward in (False, True) for causal in (True, False)]
    first = [(128, False, causal, LENGTHS[0]) for causal in (False, True)]
    yield from ({**speed_cell(dim, causal, backward, length), "large": True}
                for dim, backward, causal, length in others
                if (dim, backward, causal, length) not in speed + first)
    yield from ({"name": "torch " + path, "kind": "torch", "path": path}
                for path in ("eager", "stream", "compile"))
    yield {"name": "compiler forward-causal-128", "kind": "compiler",
           "program": "forward-causal-128"}
    for rank_count in (2, 4):
        yield {**processes_cell(f"ring{rank_count}-causal-128.portable", rank_count, 4096),
               "large": True}
    yield {**processes_cell("ring2-causal-128.portable", 2, 4096, kills=True), "large": True}
    # Kernels for all GPUs, on this one.
    yield from ({"name": "portable " + name, "kind": "truth", "program": name,
                 "architectures": ARCHITECTURES["portable"]} for name in truth)
