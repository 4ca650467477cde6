# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks that have a name in `burst.attention`, recognised in regions.

A name has exact bounds, and a reader of the program knows what it means.
"""

from __future__ import annotations

from burst.regions import Region, Table, Value


def of_mask(region: Region, batch: int, num_queries: int | None,
            num_keys: int | None) -> tuple[list[str], list[Table]]:
    """The names whose intersection the mask is, with the tables that they take;
    no names where there is none for a part of it. Names count from the last key and
    query: of lengths that are not known there are none."""
    assert region.result is not None
    if region.result.constant is True:
        return ["full"], []
    if num_queries is None or num_keys is None:
        return [], []
    names: list[str] = []
    left: int | None = None
    right: int | None = None
    tables: list[Table] = []
    for term in _conjunction(region.result):
        offset = _distance(region, term)
        if offset is not None:
            # Keeps i - j >= lower, or i - j <= upper.
            is_lower, bound = offset
            bound += num_keys - num_queries
            if is_lower:
                right = min(-bound, right) if right is not None else -bound
            else:
                left = min(bound, left) if left is not None else bound
            continue
        table = _documents(region, term) if num_queries == num_keys else None
        if table is not None and not tables and \
                table.shape in ((num_keys,), (batch, num_keys)):
            tables = [table]
            continue
        prefix = _prefix(region, term, num_queries == num_keys)
        if prefix is None:
            return [], []
        names.append(f"prefix<{prefix}>")
    if (left is not None and left < 0) or (right is not None and right < 0):
        return [], [] # windows begin and end at the own position
    if right == 0 and left is None:
        names.append("causal")
    elif left is not None or right is not None:
        sides = [f"{side} = {n}" for side, n in (("left", left), ("right", right))
                 if n is not None]
        names.append(f"window<{', '.join(sides)}>")
    if tables:
        names.append("documents")
    if len(set(name.split("<")[0] for name in names)) != len(names):
        return [], [] # each name once
    return names, tables


def _conjunction(value: Value) -> list[Value]:
    if value.op == "arith.andi" and value.type == "i1":
        return [term for operand in value.operands for term in _conjunction(operand)]
    return [value]


def _distance(region: Region, term: Value) -> tuple[bool, int] | None:
    """Of a bound of i - j: whether it is the lower one, and which."""
    if term.op not in ("arith.cmpi sle,", "arith.cmpi slt,"):
        return None
    a, b = (_linear(region, operand) for operand in term.operands)
    if a is None or b is None:
        return None
    # b - a = di * i + dj * j + rest >= 0, or > 0.
    di, dj, rest = (y - x for x, y in zip(a, b))
    rest -= term.op == "arith.cmpi slt,"
    if (di, dj) == (1, -1):
        return True, -rest
    if (di, dj) == (-1, 1):
        return False, rest
    return None


def _linear(region: Region, value: Value) -> tuple[int, int, int] | None:
    """The coefficients of i and j and the constant of an integer."""
    if value is region.i:
        return 1, 0, 0
    if value is region.j:
        return 0, 1, 0
    if isinstance(value.constant, int):
        return 0, 0, value.constant
    if value.op in ("arith.addi", "arith.subi"):
        a, b = (_linear(region, operand) for operand in value.operands)
        if a is None or b is None:
            return None
        sign = 1 if value.op == "arith.addi" else -1
        return a[0] + sign * b[0], a[1] + sign * b[1], a[2] + sign * b[2]
    return None


def _documents(region: Region, term: Value) -> Table | None:
    """The table of ids[i] == ids[j], or of ids[b, i] == ids[b, j]."""
    if term.op != "arith.cmpi eq,":
        return None
    found: dict[str, Table] = {}
    for operand in term.operands:
        if operand.op in ("arith.index_cast", "arith.index_castui"):
            operand = operand.operands[0]
        if operand.op != "tensor.extract":
            return None
        table, *outer, index = operand.operands
        if outer not in ([], [region.b]):
            return None
        for name, position in (("i", region.i), ("j", region.j)):
            if index is position:
                found[name] = table
    if len(found) == 2 and found["i"] is found["j"]:
        return found["i"]
    return None


def _prefix(region: Region, term: Value, is_square: bool) -> int | None:
    """N of j < N or i >= j."""
    if term.op != "arith.ori" or not is_square:
        return None
    for first, second in (term.operands, term.operands[::-1]):
        if _distance(region, first) != (True, 0):
            continue
        if second.op in ("arith.cmpi slt,", "arith.cmpi sle,") and second.operands[0] is region.j:
            end = second.operands[1].constant
            if isinstance(end, int):
                return max(end + (second.op == "arith.cmpi sle,"), 0)
    return None
