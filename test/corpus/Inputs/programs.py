# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the programs of the corpus: the same ones on every machine, for ever.

program(n) gives the text of program n. Each pins its strategy, so that what the
compiler would choose may change without changing the corpus.
"""

import hashlib

NUM_PROGRAMS = 224

ORDERS = ("contiguous", "zigzag", "striped", "striped 4")
MASKS = ("", "causal", "window<left = 9, right = 0>", "window<left = 5, right = 3>", "prefix<7>",
         "documents", "[causal, documents]", "region")
SCORES = ("", "", "softcap<5.0>", "alibi", "bias", "region")
HEADS = ((1, 1), (2, 1), (3, 3), (4, 2), (6, 2))
DIMS = ((4, 4), (8, 8), (6, 5), (16, 24), (33, 16))
ELEMENTS = ("f32", "f32", "f64", "bf16", "f16")


class Draw:
    """Numbers that are drawn by the hash of a seed, so that no library decides them."""

    def __init__(self, seed):
        self.seed = seed
        self.count = 0

    def below(self, bound):
        self.count += 1
        digest = hashlib.sha256(f"{self.seed}/{self.count}".encode()).digest()
        return int.from_bytes(digest[:8], "little") % bound

    def pick(self, choices):
        return choices[self.below(len(choices))]


def mask_clause(mask, keys):
    if mask == "":
        return ""
    if mask == "region":
        return f"""
      mask(%b, %h, %i, %j, %sq, %sk, %t = %ids : tensor<{keys}xi32>) {{
        %c5 = arith.constant 5 : index
        %x = tensor.extract %t[%j] : tensor<{keys}xi32>
        %n = arith.index_cast %x : i32 to index
        %sum = arith.addi %i, %n : index
        %rest = arith.remui %sum, %c5 : index
        %keep = arith.cmpi ne, %rest, %h : index
        burst.yield %keep : i1
      }}"""
    table = f"(%ids : tensor<{keys}xi32>)" if "documents" in mask else ""
    return f"\n      mask {mask}{table}"


def score_clause(score, heads, queries, keys, scalar):
    if score == "":
        return ""
    if score == "alibi":
        return f"\n      score alibi(%slopes : tensor<{heads}x{scalar}>)"
    if score == "bias":
        return f"\n      score bias(%bias : tensor<{queries}x{keys}x{scalar}>)"
    if score == "region":
        return f"""
      score(%s : {scalar}, %b, %h, %i, %j, %sq, %sk) {{
        %x = math.tanh %s : {scalar}
        %y = arith.addf %x, %s : {scalar}
        burst.yield %y : {scalar}
      }}"""
    return f"\n      score {score}"


def program(n):
    draw = Draw(n)
    ranks = 1 + n % 8
    order = ORDERS[n // 8 % 4]
    is_backward = n // 32 % 2 == 1
    strategy = ("ring_kv", "ring_q", "ring_scores")[n // 64 % (2 if is_backward else 3)]
    element = draw.pick(ELEMENTS)
    scalar = "f64" if element == "f64" else "f32"
    heads, key_heads = draw.pick(HEADS)
    dim, value_dim = draw.pick(DIMS)
    batch = 1 + draw.below(2)
    keys = 5 * ranks + draw.below(90)
    mask, score = draw.pick(MASKS), draw.pick(SCORES)
    # Documents and biases have one length; elsewhere queries may be fewer.
    is_square = "documents" in mask or draw.below(3) != 0
    queries = keys if is_square else max(1, keys - draw.below(40))
    types = {
        "q": f"tensor<{batch}x{queries}x{heads}x{dim}x{element}>",
        "k": f"tensor<{batch}x{keys}x{key_heads}x{dim}x{element}>",
        "v": f"tensor<{batch}x{keys}x{key_heads}x{value_dim}x{element}>",
        "o": f"tensor<{batch}x{queries}x{heads}x{value_dim}x{element}>",
        "l": f"tensor<{batch}x{heads}x{queries}x{scalar}>",
    }
    clauses = mask_clause(mask, keys) + score_clause(score, heads, queries, keys, scalar)
    clauses += f"\n      sequence <@cp, {order}> strategy <{strategy}>"
    names = ["q", "k", "v"] + (["do"] if is_backward else [])
    arguments = [f"%{name}: !{'o' if name == 'do' else name} {{burst.name = \"{name}\"}}"
                 for name in names]
    for table, kind in (("ids", f"{keys}xi32"), ("slopes", f"{heads}x{scalar}"),
                        ("bias", f"{queries}x{keys}x{scalar}")):
        if f"%{table} :" in clauses:
            arguments.append(f"%{table}: tensor<{kind}> {{burst.name = \"{table}\"}}")
    results = "!q, !k, !v" if is_backward else "!o, !l"
    forward = "ring_kv" if is_backward else strategy
    text = [f"shard.grid @cp(shape = {ranks})"]
    text += [f"!{name} = {kind}" for name, kind in types.items()]
    text.append(f"func.func @p{n}({', '.join(arguments)}) -> ({results}) {{")
    text.append("  %o, %l = burst.attention %q, %k, %v"
                + clauses.replace(f"strategy <{strategy}>", f"strategy <{forward}>")
                + " : (!q, !k, !v) -> (!o, !l)")
    if is_backward:
        text.append("  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %do"
                    + clauses + " : (!q, !k, !v, !o, !l, !o) -> (!q, !k, !v)")
        text.append("  return %dq, %dk, %dv : !q, !k, !v")
    else:
        text.append("  return %o, %l : !o, !l")
    return "\n".join(text + ["}", ""])
