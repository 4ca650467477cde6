"""Programs that are checked and measured on GPUs, as MLIR."""

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
        for mask in ("window", "documents"):
            yield f"{name}-{mask}-64", text(dim=64, mask=mask, backward=backward, **small)
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


def speeds():
    """Programs of any length, by what is measured of them: name, dim, causal, backward, ranks."""
    for backward in (False, True):
        for dim in (64, 128, 256):
            for causal in (False, True):
                mask = "causal" if causal else "full"
                name = f"{'backward' if backward else 'forward'}-{mask}-{dim}"
                yield name, text(dim=dim, mask=mask, backward=backward)
    for rank_count in (2, 4, 8):
        yield f"ring{rank_count}-causal-128", text(rank_count, dim=128, mask="causal")
