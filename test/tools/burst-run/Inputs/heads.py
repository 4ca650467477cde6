# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs whose heads are exchanged, in chunks or unevenly, each compared with the oracle:
heads.py chunks|uneven FOLDER BURST_RUN. BURST_SEED and BURST_COUNT choose others; one that fails is
left in the folder."""

import os
import pathlib
import random
import subprocess
import sys


def draw_chunks(dice):
    """A grid, heads of queries and keys, a strategy, axes of the sequence, and a clause."""
    chunks, ranks = dice.choice([2, 3, 4, 8]), dice.choice([1, 2, 3, 4])
    if dice.random() < 0.5: # chunks have keys of their own
        heads = key_heads = ranks * chunks * dice.choice([1, 2])
    else:
        key_heads = dice.choice([1, 2, ranks])
        if key_heads % ranks and ranks % key_heads:
            key_heads = 1
        heads = key_heads * chunks * ranks
    return str(ranks), heads, key_heads, f"ulysses in {chunks} chunks", "0", ""


def draw_uneven(dice):
    """As draw_chunks: heads of which some ranks have fewer than others, or none, maybe beside ranks
    that a clause gives heads, maybe in chunks."""
    def is_uneven(heads, key_heads):
        if heads < ranks and ranks % heads == 0: # refused
            return False
        if key_heads * 2 <= ranks and heads > key_heads: # shared
            return ranks % key_heads or heads % ranks
        return key_heads % ranks

    ranks, parts = dice.choice([2, 3, 4, 5, 8]), dice.choice([1, 1, 2, 3])
    chunks = dice.choice([1, 1, 2, 3])
    while True:
        key_heads = dice.randint(1, 9)
        group = dice.randint(1, 9)
        heads = key_heads * group
        most = -(-key_heads // ranks) * group
        if key_heads * 2 <= ranks and group > 1:
            most = -(-group // (ranks // key_heads))
        divided = heads if group == 1 else group
        if heads <= 24 and is_uneven(heads, key_heads) and not (most % chunks or divided % chunks):
            break
    sequence = f"{int(parts > 1)}"
    strategy = f"ulysses in {chunks} chunks" if chunks > 1 else "ulysses"
    axes = [ranks]
    if chunks == 1 and dice.random() < 0.5:
        rest = dice.choice(["ring_kv", "ring_q", "all_gather", "gather_q", "direct_kv", "bi_ring_q"])
        strategy = f"ulysses on [{len(axes) + int(parts > 1)}], {rest} on [{sequence}]"
        sequence += f", {len(axes) + int(parts > 1)}"
        axes.insert(0, 2)
    clause = ""
    if parts > 1:
        axes.insert(0, parts)
        clause = "heads <@g[0]> "
    return ("x".join(map(str, axes)), heads * parts, key_heads * parts, strategy, sequence, clause)


def draw(dice, of):
    """A program, and what burst-run takes to run it."""
    shape, heads, key_heads, strategy, sequence, clause = of(dice)
    length = dice.choice([17, 33, 64])
    keys = length if dice.random() < 0.7 else 40
    batch, dim = dice.choice([1, 2]), dice.choice([16, 32])
    element = dice.choice(["f32", "f32", "bf16", "f64"])
    state = "f64" if element == "f64" else "f32"
    order = dice.choice(["zigzag", "contiguous", "striped", "striped 3"])
    is_open = dice.random() < 0.3

    def tensor(positions, count):
        return f"tensor<{batch}x{'?' if is_open else positions}x{count}x{dim}x{element}>"

    q, k = tensor(length, heads), tensor(keys, key_heads)
    rows = f"tensor<{batch}x{heads}x{'?' if is_open else length}x{state}>"
    slopes = f"tensor<{heads}x{state}>"
    has_slopes, is_backward = dice.random() < 0.5, dice.random() < 0.6
    has_maxima = dice.random() < 0.2
    gradients = has_slopes and is_backward and dice.random() < 0.6
    clauses = "mask causal " if length == keys and dice.random() < 0.5 else ""
    clauses += f"score alibi(%slopes : {slopes}) " if has_slopes else ""
    clauses += f"sequence <@g[{sequence}], {order}> {clause}strategy <{strategy}>"
    arguments = f"%q: {q}, %k: {k}, %v: {k}"
    arguments += f", %slopes: {slopes}" if has_slopes else ""
    arguments += f", %do: {q}" if is_backward else ""
    body = (f"  %o, %lse{', %max' if has_maxima else ''} = burst.attention %q, %k, %v {clauses}\n"
            f"      : ({q}, {k}, {k}) -> ({q}, {rows}{', ' + rows if has_maxima else ''})\n")
    results = [("%o", q), ("%lse", rows), *([("%max", rows)] if has_maxima else [])]
    if is_backward:
        body += (f"  %dq, %dk, %dv{', %ds' if gradients else ''} = burst.attention_backward "
                 f"%q, %k, %v, %o, %lse, %do {clauses} {'gradients [0]' if gradients else ''}\n"
                 f"      : ({q}, {k}, {k}, {q}, {rows}, {q}) -> ({q}, {k}, {k}"
                 f"{', ' + slopes if gradients else ''})\n")
        results += [("%dq", q), ("%dk", k), ("%dv", k), *([("%ds", slopes)] if gradients else [])]
    dice.shuffle(results)
    results = results[:dice.randint(1, len(results))]
    if dice.random() < 0.2:
        results.append(results[0])
    names, types = (", ".join(x[i] for x in results) for i in (0, 1))
    options = [f"--extents={length},{keys}"] if is_open else []
    options += dice.choice([[], [], ["--without=overlap"], ["--interpret"]])
    return (f"shard.grid @g(shape = {shape})\nfunc.func @f({arguments}) -> ({types}) {{\n{body}"
            f"  return {names} : {types}\n}}\n", options)


def main():
    of = {"chunks": draw_chunks, "uneven": draw_uneven}[sys.argv[1]]
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    first, count = (int(os.environ.get(f"BURST_{x}", y)) for x, y in (("SEED", 1), ("COUNT", 16)))
    for seed in range(first, first + count):
        text, options = draw(random.Random(seed), of)
        program = folder / f"{seed}.mlir"
        program.write_text(text)
        command = [sys.argv[3], str(program), "--check", *options]
        found = subprocess.run(command, capture_output=True, text=True)
        assert found.returncode == 0 and ": ok" in found.stdout, (command, found)
        program.unlink()


main()
