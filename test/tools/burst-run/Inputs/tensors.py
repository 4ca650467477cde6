# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Safetensors files for tests: makes, shows and compares them.

  tensors.py make FILE NAME=TYPE:SHAPE[:VALUES]...
      SHAPE is 2x3, or empty for a scalar. VALUES are numbers between commas, the
      last one repeated; without them, normal numbers that depend on the name.
  tensors.py show FILE
  tensors.py compare FILE OTHER [TOLERANCE]
      What FILE holds OTHER holds, too: the same types and shapes, and values
      that differ by at most TOLERANCE (0), where an infinity equals itself.
"""

import json
import math
import random
import struct
import sys

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "BOOL": 1}
FORMATS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b",
           "BOOL": "?"}


def to_bf16(value):
    if math.isnan(value):
        return 0x7FC0
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def encode(dtype, values):
    if dtype == "BF16":
        return struct.pack(f"<{len(values)}H", *map(to_bf16, values))
    kind = FORMATS[dtype]
    if kind not in "dfe":
        values = [int(value) for value in values]
    return struct.pack(f"<{len(values)}{kind}", *values)


def decode(dtype, data):
    count = len(data) // SIZES[dtype]
    if dtype == "BF16":
        words = struct.unpack(f"<{count}H", data)
        return [struct.unpack("<f", struct.pack("<I", word << 16))[0] for word in words]
    return list(struct.unpack(f"<{count}{FORMATS[dtype]}", data))


def numel(shape):
    return math.prod(shape)


def normal(name, shape):
    generator = random.Random(name)
    return [generator.gauss(0, 1) for _ in range(numel(shape))]


def write(path, tensors):
    """Of {name: (dtype, shape, values)}."""
    header, body = {}, b""
    for name, (dtype, shape, values) in sorted(tensors.items()):
        data = encode(dtype, values)
        assert len(data) == numel(shape) * SIZES[dtype], name
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = (entry["dtype"], entry["shape"], decode(entry["dtype"], data[begin:end]))
    return tensors


def make(path, specs):
    tensors = {}
    for spec in specs:
        name, rest = spec.split("=", 1)
        dtype, shape, *values = rest.split(":")
        shape = [int(size) for size in shape.split("x")] if shape else []
        if values:
            numbers = [float(number) for number in values[0].split(",")]
            numbers += numbers[-1:] * (numel(shape) - len(numbers))
        else:
            numbers = normal(name, shape)
        tensors[name] = (dtype.upper(), shape, numbers)
    write(path, tensors)


def show(path):
    for name, (dtype, shape, values) in sorted(read(path).items()):
        finite = [value for value in values if math.isfinite(value)]
        print(f"{name}: {dtype} {shape}, {len(values) - len(finite)} not finite")


def compare(path, other, tolerance):
    one, two = read(path), read(other)
    for name in one:
        if name not in two or one[name][:2] != two[name][:2]:
            sys.exit(f"{name} is {one[name][:2]} in {path}, {two.get(name, [])[:2]} in {other}")
        for at, (a, b) in enumerate(zip(one[name][2], two[name][2])):
            if a != b and not abs(a - b) <= tolerance:
                sys.exit(f"{name}, element {at}: {a} in {path}, {b} in {other}")


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "make":
        make(arguments[0], arguments[1:])
    elif command == "show":
        show(arguments[0])
    else:
        compare(*arguments[:2], float(arguments[2]) if len(arguments) > 2 else 0.0)
