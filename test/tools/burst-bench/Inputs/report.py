# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks files of report.test: pictures, and useful operations by counting pairs."""

import glob
import json
import os
import sys
import xml.etree.ElementTree as tree


def pairs(name, sequence):
    """What the mask of a cell keeps, of one head."""
    words = name.split()
    if words[3] == "causal":
        return sum(1 for i in range(sequence) for j in range(i + 1))
    size = int(words[4])
    if words[3] == "window":
        return sum(1 for i in range(sequence) for j in range(sequence) if 0 <= i - j < size)
    # As many uneven parts of the sequence: weights 1, 6, 4, 2, 7, 5, 3, again and again.
    weights = [1 + i * 5 % 7 for i in range(size)]
    ends = [sequence * sum(weights[: i + 1]) // sum(weights) for i in range(size)]
    document = [sum(end <= i for end in ends) for i in range(sequence)]
    return sum(1 for i in range(sequence) for j in range(i + 1) if document[i] == document[j])


folder, expected = sys.argv[1], set(sys.argv[2:])
found = glob.glob(os.path.join(folder, "*.svg"))
assert {os.path.basename(path) for path in found} == expected, found
for path in found:
    picture = tree.parse(path).getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg", picture.tag
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert len(texts) > 8 and all(texts), texts
    assert "nan" not in open(path).read()

for cell in json.load(open(os.path.join(folder, "cpu.json")))["cells"]:
    words = dict(word.split("=") for word in cell["name"].split() if "=" in word)
    if not cell["name"].startswith("sparse"):
        continue
    products = 10 if "backward" in cell["name"] else 4
    wanted = products * pairs(cell["name"], int(words["S"])) * int(words["D"]) * int(words["H"])
    assert abs(cell["numbers"]["GFLOP"] * 1e9 - wanted) < 1, (cell, wanted)
