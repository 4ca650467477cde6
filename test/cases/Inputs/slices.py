# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints an attention whose mask is a list of slices, as MLIR.

  slices.py RANKS QUERIES SLICE... [--keys N] [--heads HQ/HKV] [--dim D]
            [--type bf16] [--order zigzag] [--sinks N --inputs FILE]

A slice, such as 0-32:0-64c, lets the queries [0, 32) see the keys [0, 64): all
(f, also when left out), causal (c, the last query sees the last key), inverse
causal (i, the first query sees from the first key on) or both (b). A pair is
kept that any slice keeps. tiles:16x32 are as many slices as cover everything;
random:COUNT:QMIN-QMAX:KMIN-KMAX:TYPES draws them, TYPES being some of fcib.

A sink is a score per head that takes part in the softmax and has no value: here
a key behind the others, which every query sees, whose value is zero. FILE then
gets the tensors to run on.
"""

import argparse
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools/burst-run/Inputs"))
import tensors


def parse(text):
    kind = text[-1] if text[-1].isalpha() else "f"
    queries, keys = text.rstrip("fcib").split(":")
    return [int(n) for n in (queries + "-" + keys).split("-")] + [kind]


def tile(text, queries, keys):
    height, width = (int(n) for n in text.split(":")[1].split("x"))
    return [[q, q + height, k, k + width, "f"]
            for q in range(0, queries, height) for k in range(0, keys, width)]


def draw(text, queries, keys):
    _, count, *ranges, kinds = text.split(":")
    dice = random.Random(text)

    def interval(size, lengths):
        least, most = (int(n) for n in lengths.split("-"))
        length = dice.randint(least, min(most, size))
        begin = dice.randint(0, size - length)
        return [begin, begin + length]

    return [interval(queries, ranges[0]) + interval(keys, ranges[1]) + [dice.choice(kinds)]
            for _ in range(int(count))]


class Region:
    """Lines of ops on indices."""

    def __init__(self):
        self.lines, self.constants = [], {}

    def op(self, text):
        name = f"%{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, number):
        if number not in self.constants:
            self.constants[number] = self.op(f"arith.constant {number} : index")
        return self.constants[number]

    def compare(self, predicate, x, y):
        return self.op(f"arith.cmpi {predicate}, {x}, {y} : index")

    def all(self, op, values):
        result = values[0]
        for value in values[1:]:
            result = self.op(f"arith.{op} {result}, {value} : i1")
        return result

    def slice(self, q0, q1, k0, k1, kind):
        keep = [self.compare("sge", "%i", self.constant(q0)),
                self.compare("slt", "%i", self.constant(q1)),
                self.compare("sge", "%j", self.constant(k0)),
                self.compare("slt", "%j", self.constant(k1))]
        if kind in "cb":
            last = self.op(f"arith.addi %i, {self.constant(k1 - q1)} : index")
            keep.append(self.compare("sle", "%j", last))
        if kind in "ib":
            first = self.op(f"arith.addi %i, {self.constant(k0 - q0)} : index")
            keep.append(self.compare("sge", "%j", first))
        return self.all("andi", keep)

    def print(self, head, result):
        print(f"      {head} {{")
        for line in self.lines:
            print(f"        {line}")
        print(f"        burst.yield {result}\n      }}")


def print_sink_score(state, heads, sinks):
    region = Region()
    first = region.op(f"arith.subi %sk, {region.constant(sinks)} : index")
    is_sink = region.compare("sge", "%j", first)
    behind = region.op(f"arith.subi %j, {first} : index")
    number = region.op(f"arith.maxsi {behind}, {region.constant(0)} : index")
    table = f"tensor<{sinks}x{heads}x{state}>"
    sink = region.op(f"tensor.extract %sink[{number}, %h] : {table}")
    s = region.op(f"arith.select {is_sink}, {sink}, %s : {state}")
    region.print(f"score(%s : {state}, %b, %h, %i, %j, %sq, %sk, %sink = %sinks : {table})",
                 f"{s} : {state}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ranks", type=int)
    parser.add_argument("queries", type=int)
    parser.add_argument("slices", nargs="+")
    parser.add_argument("--keys", type=int)
    parser.add_argument("--heads", default="8/2")
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--type", default="bf16")
    parser.add_argument("--order", default="zigzag")
    parser.add_argument("--sinks", type=int, default=0)
    parser.add_argument("--inputs")
    args = parser.parse_intermixed_args()
    keys = args.keys or args.queries
    slices = []
    for text in args.slices:
        if text[0] == "r":
            slices += draw(text, args.queries, keys)
        elif text[0] == "t":
            slices += tile(text, args.queries, keys)
        else:
            slices.append(parse(text))
    heads, key_heads = (int(n) for n in args.heads.split("/"))
    state = "f64" if args.type == "f64" else "f32"

    shapes = {"q": [1, args.queries, heads, args.dim],
              "k": [1, keys + args.sinks, key_heads, args.dim],
              "v": [1, keys + args.sinks, key_heads, args.dim]}
    types = {name: f"tensor<{'x'.join(map(str, shape))}x{args.type}>"
             for name, shape in shapes.items()}
    lse = f"tensor<1x{heads}x{args.queries}x{state}>"
    operands = [f"%{name}: {types[name]} {{burst.name = \"{name}\"}}" for name in types]
    if args.sinks:
        operands.append(f"%sinks: tensor<{args.sinks}x{heads}x{state}> {{burst.name = \"sinks\"}}")
    print(f"shard.grid @g(shape = {args.ranks})")
    print(f"func.func @slices({', '.join(operands)}) -> ({types['q']}, {lse}) {{")
    print("  %o, %lse = burst.attention %q, %k, %v")
    region = Region()
    keep = [region.slice(*one) for one in slices]
    if args.sinks:
        keep.append(region.compare("sge", "%j", region.constant(keys)))
    region.print("mask(%b, %h, %i, %j, %sq, %sk)", f"{region.all('ori', keep)} : i1")
    if args.sinks:
        print_sink_score(state, heads, args.sinks)
    print(f"      sequence <@g, {args.order}>")
    print(f"      : ({', '.join(types.values())}) -> ({types['q']}, {lse})")
    print(f"  return %o, %lse : {types['q']}, {lse}\n}}")

    if args.inputs:
        dtype = args.type.upper()
        values = {name: tensors.normal(name, shape) for name, shape in shapes.items()}
        row = key_heads * args.dim
        values["v"][keys * row:] = [0.0] * (args.sinks * row)
        made = {name: (dtype, shape, values[name]) for name, shape in shapes.items()}
        made["sinks"] = (state.upper(), [args.sinks, heads],
                         tensors.normal("sinks", [args.sinks, heads]))
        tensors.write(args.inputs, made)


if __name__ == "__main__":
    main()
