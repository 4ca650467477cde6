# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""break.py FILE HOW: writes a safetensors file with arg0, arg1 and arg2 that is broken."""

import json
import struct
import sys

path, how = sys.argv[1:]
size = 64  # of 1x4x1x4xf32
header = {f"arg{n}": {"dtype": "F32", "shape": [1, 4, 1, 4], "data_offsets": [n * size, (n + 1) * size]}
          for n in range(3)}
body = bytes(3 * size)
if how == "overlap":
    header["arg1"]["data_offsets"] = [32, 96]
elif how == "negative":
    header["arg0"]["shape"] = [-1, -4, 1, 4]
elif how == "overflow":
    header["arg0"]["shape"] = [1 << 32, 1 << 32, 1, 4]
elif how == "dtype":
    header["arg0"]["dtype"] = "F4"
elif how == "truncated":
    body = body[:-1]
text = json.dumps(header).encode()
if how == "json":
    text = text[:-1]
elif how == "twice":
    text = text.replace(b"arg1", b"arg0")
length = 2**64 - 1 if how == "huge" else len(text)
data = b"" if how == "empty" else struct.pack("<Q", length) + text + body
with open(path, "wb") as file:
    file.write(data)
