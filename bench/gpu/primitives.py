# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of GPUs, one by one: their kernels, and what these give.

What lies in a folder of primitives: portable.ptx, portable.cubin (for sm_90), hopper.ptx and
hopper.cubin (for sm_90a); and for each kernel NAME.out, the bytes that it gave for numbers that
are the same everywhere.
"""

import ctypes as c
import glob
import math
import os
import random
import re
import struct

import driver
import libraries

DEVICE_LIBRARY = "types shared fragments softmax memory gradients wgmma hopper".split()


# ---------------------------------------------------------------------------
# Texts to code
# ---------------------------------------------------------------------------

def compile_text(text, architecture, machine_code, options=()):
    """PTX or machine code of a text, by NVRTC."""
    name = libraries.find("nvrtc")
    if name is None:
        raise RuntimeError("no NVRTC: scripts/setup brings it")
    # NVRTC opens it by name, and has no search path of its own.
    for path in glob.glob(os.path.join(os.path.dirname(name), "libnvrtc-builtins.so.*")):
        if ".alt." not in path:
            c.CDLL(path)
    nvrtc = c.CDLL(name)
    program = c.c_void_p()
    nvrtc.nvrtcCreateProgram(c.byref(program), text.encode(), b"primitives.cu", 0, None, None)
    options = [f"--gpu-architecture={architecture}", "--std=c++20", *options]
    result = nvrtc.nvrtcCompileProgram(
        program, len(options), (c.c_char_p * len(options))(*(o.encode() for o in options)))

    def get(what):
        size = c.c_size_t()
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, c.byref(size))
        content = c.create_string_buffer(size.value)
        getattr(nvrtc, "nvrtcGet" + what)(program, content)
        return content.raw
    if result:
        raise RuntimeError(get("ProgramLog").decode())
    return get("CUBIN") if machine_code else get("PTX").rstrip(b"\0")


def compile_all(source, directory, few=False):
    """`source`: the repository. Few kernels, as PTX, are what tests take."""
    text = ""
    for file in DEVICE_LIBRARY:
        with open(os.path.join(source, "codegen/cuda/device", file + ".cuh")) as stream:
            text += stream.read()
    with open(os.path.join(source, "bench/gpu/primitives.cu")) as stream:
        text += stream.read()
    os.makedirs(directory, exist_ok=True)
    for name, architecture in (("portable.ptx", "compute_80"), ("portable.cubin", "sm_90"),
                               ("hopper.ptx", "compute_90a"), ("hopper.cubin", "sm_90a")):
        machine_code = name.endswith(".cubin")
        if few and machine_code:
            continue
        code = compile_text(text, architecture, machine_code, ["--define-macro=FEW"] * few)
        with open(os.path.join(directory, name), "wb") as stream:
            stream.write(code)


class Modules:
    """Kernels of this folder on a GPU: as machine code where there is some for it."""

    def __init__(self, gpu, directory, emulated):
        self.gpu, self.directory = gpu, directory
        self.takes_code = not emulated and gpu.capability == 90
        self.loaded = {}

    def function(self, name):
        module = "hopper" if re.search("wgmma|tma", name) else "portable"
        if module == "hopper" and self.gpu.capability != 90:
            raise driver.Failure(f"for compute capability 9.0, this is {self.gpu.capability / 10}")
        if module not in self.loaded:
            path = os.path.join(self.directory,
                                module + (".cubin" if self.takes_code else ".ptx"))
            with open(path, "rb") as stream:
                self.loaded[module] = self.gpu.load(stream.read())
        return self.gpu.function(self.loaded[module], name)


def names(directory):
    """Kernels that have a result to compare with, or may have."""
    with open(os.path.join(directory, "portable.ptx")) as portable, \
         open(os.path.join(directory, "hopper.ptx")) as hopper:
        found = re.findall(r"\.entry (\w+)\(", portable.read() + hopper.read())
    return sorted(set(found))


# ---------------------------------------------------------------------------
# Numbers
# ---------------------------------------------------------------------------

def bits(number, element):
    """Of a number that the type holds."""
    if element == "f16":
        return struct.unpack("<H", struct.pack("<e", number))[0]
    return struct.unpack("<I", struct.pack("<f", number))[0] >> 16


def matrix(seed, count, element):
    """Numbers of which sums of products are exact in fp32, as bytes: multiples of 1/4 up
    to 2."""
    draw = random.Random(seed)
    return struct.pack(f"<{count}H", *(bits(draw.randint(-8, 8) / 4, element)
                                       for _ in range(count)))


def arguments_of_functions():
    """Floats of all kinds: every exponent, exact powers, what is none, and around rounding."""
    draw = random.Random(3)
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 3.4e38, -3.4e38, 65504.0,
               65520.0, -126.0, -126.5, -127.0, -149.0, -150.0, 127.5, 128.0, 1.00390625]
    found = special + [float(n) for n in range(-20, 21)]
    found += [draw.uniform(-130, 130) for _ in range(2000)]
    while len(found) < 4096:
        pattern = draw.getrandbits(32)
        found.append(struct.unpack("<f", struct.pack("<I", pattern))[0])
    return struct.pack("<4096f", *found)


# ---------------------------------------------------------------------------
# Running
# ---------------------------------------------------------------------------

def give(gpu, modules, name):
    """The bytes that a kernel writes."""
    function = modules.function(name)
    if name == "functions":
        x = gpu.upload(arguments_of_functions())
        out = gpu.allocate(4096 * 12)
        gpu.clear(out, 4096 * 12)
        gpu.launch(function, 16, 256,
                   [c.c_uint64(x)] + [c.c_uint64(out + 4096 * at) for at in (0, 4, 8, 10)])
        return gpu.read(out, 4096 * 12)
    if name.startswith("tma"):
        return give_box(gpu, function, *(int(n) for n in name.split("_")[1:]))
    _, kind, element, first, second = name.split("_")
    first, second = int(first), int(second)
    # rows and tiles: N columns, a depth of D; columns and weights: a depth of K, D columns.
    depth, width = (second, first) if kind in ("rows", "tiles") else (first, second)
    a, b = (gpu.upload(matrix(seed, count * depth, element))
            for seed, count in ((1, 64), (2, width)))
    c_bytes = 64 * width * 4
    out = gpu.allocate(c_bytes)
    gpu.clear(out, c_bytes, 0xff)
    shared = (64 * depth + width * depth) * 2 if kind in ("rows", "tiles") else depth * width * 2
    if shared > 48 * 1024:
        gpu.allow_shared(function, shared)
    gpu.launch(function, 1, 128, [c.c_uint64(a), c.c_uint64(b), c.c_uint64(out)], shared)
    return gpu.read(out, c_bytes)


def exact(name):
    """What a product must give, as bytes; None where that is not known."""
    if name == "functions" or name.startswith("tma"):
        return None
    _, kind, element, first, second = name.split("_")
    first, second = int(first), int(second)
    transposed = kind in ("rows", "tiles")
    depth, width = (second, first) if transposed else (first, second)

    def numbers(seed, count):
        draw = random.Random(seed)
        return [draw.randint(-8, 8) for _ in range(count)]
    a, b = numbers(1, 64 * depth), numbers(2, width * depth)
    rows = [a[i * depth:(i + 1) * depth] for i in range(64)]
    columns = [b[j * depth:(j + 1) * depth] if transposed else b[j::width] for j in range(width)]
    return struct.pack(f"<{64 * width}f", *(sum(x * y for x, y in zip(row, column)) / 16
                                            for row in rows for column in columns))


def give_box(gpu, function, rows, columns):
    """Rows 5 before the end of 40, or of as many as a box has: the last are outside; and so are
    columns where the tensor has fewer."""
    length, heads = max(40, rows), 3
    width = 64 if columns % 64 == 0 else 32 if columns % 32 == 0 else 16
    dim = columns - 8
    content = matrix(4, length * heads * dim, "bf16")
    tensor = gpu.upload(content)
    tensor_map = gpu.tensor_map(tensor, [dim, heads, length, 1],
                                [2 * dim, 2 * dim * heads, 2 * dim * heads * length],
                                [width, 1, rows, 1], 2 * width)
    count = rows * columns * 2
    out = gpu.allocate(count)
    gpu.clear(out, count, 0xff)
    if count > 48 * 1024:
        gpu.allow_shared(function, count)
    gpu.launch(function, 1, 128, [tensor_map, c.c_uint64(out), c.c_int(1), c.c_int(length - 5)],
               count)
    return gpu.read(out, count)


# ---------------------------------------------------------------------------
# Comparing
# ---------------------------------------------------------------------------

def units_apart(x, y):
    """Floats between two patterns of 32 bits; 0 for what is none on both sides."""
    def ordered(pattern):
        return pattern if pattern < 1 << 31 else (1 << 31) - pattern

    def is_none(pattern):
        return pattern & 0x7fffffff > 0x7f800000
    if is_none(x) or is_none(y):
        return 0 if is_none(x) and is_none(y) else 1 << 32
    return abs(ordered(x) - ordered(y))


def compare(name, found, expected):
    """What differs, as a cell."""
    if name != "functions":
        wrong = sum(x != y for x, y in zip(found, expected)) + abs(len(found) - len(expected))
        return {"verdict": "failed" if wrong else "passed",
                **({"reason": f"{wrong} of {len(found)} bytes differ"} if wrong else {})}
    cell = {"verdict": "passed"}
    for at, what in ((0, "exp2"), (4, "log2")):
        x, y = (struct.unpack("<4096I", part[4096 * at:4096 * (at + 4)])
                for part in (found, expected))
        cell["ulps_" + what] = max(map(units_apart, x, y))
        # 2 ulps are what PTX promises of ex2; lg2 is that good relative to 1.
        if what == "exp2" and cell["ulps_exp2"] > 4:
            cell.update(verdict="failed", reason=f"exp2 is {cell['ulps_exp2']} units away")
        if what == "log2":
            far = sum(1 for a, b in zip(x, y) if not close(a, b))
            if far:
                cell.update(verdict="failed", reason=f"{far} logarithms are far away")
    if found[4096 * 8:] != expected[4096 * 8:]:
        cell.update(verdict="failed", reason="numbers are converted in another way")
    return cell


def close(x, y):
    """Logarithms: within 2^-21 of each other, or relatively, or none on both sides."""
    a, b = (struct.unpack("<f", struct.pack("<I", pattern))[0] for pattern in (x, y))
    if a != a or b != b or math.isinf(a) or math.isinf(b):
        return (a != a) == (b != b) and (a == b or a != a)
    return abs(a - b) <= 2**-21 * max(1, abs(b))
