# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that a picture is well-formed XML of the wanted size.

usage: svg.py FILE CLASS=COUNT...

Elements of each class are so many, and blocks lie inside of the picture.
"""
import collections
import sys
import xml.etree.ElementTree as tree

root = tree.parse(sys.argv[1]).getroot()
assert root.tag == "{http://www.w3.org/2000/svg}svg", root.tag
width, height = int(root.get("width")), int(root.get("height"))
found = collections.Counter(e.get("class") for e in root.iter() if e.get("class"))
for wanted in sys.argv[2:]:
    name, count = wanted.split("=")
    assert found[name] == int(count), (name, found[name])
for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
    if rect.get("x"):
        assert 0 <= int(rect.get("x")) < width, rect.attrib
        assert 0 <= int(rect.get("y")) < height, rect.attrib
