# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/bench-python measures."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Cell:
    group: str
    question: dict

    @property
    def ranks(self):
        return self.question.get("ranks", 1)

    @property
    def name(self):
        q = self.question
        heads = f"{q['heads']}/{q['key_heads']}" if "key_heads" in q else q["heads"]
        length = f"{q['queries']}x{q['sequence']}" if "queries" in q else q["sequence"]
        parts = [self.group, q["kind"], q["type"], "causal" if q["causal"] else "full",
                 f"S={length}", f"D={q['dim']}", f"H={heads}"]
        if "batch" in q:
            parts.insert(4, f"B={q['batch']}")
        if "documents" in q:
            parts.append(f"of {q['documents']}")
        if self.ranks > 1:
            parts.append(f"P={self.ranks}")
        return " ".join(parts)


def cell(group, kind, type_, causal, sequence, dim, heads=8, **others):
    return Cell(group, {"kind": kind, "type": type_, "causal": causal, "heads": heads,
                        "sequence": sequence, "dim": dim, **others})


def cells(quick):
    """With `quick` some of every kind, small."""
    lengths, dims = ((256,), (64,)) if quick else ((512, 2048, 4096), (64, 128))
    longest, dim = lengths[-1], dims[-1]
    types = ("f32", "bf16")
    plain = [(type_, length, d) for type_ in types for d in dims for length in lengths]
    found = [cell("attention", "forward", type_, causal, length, d)
             for type_, length, d in plain for causal in (False, True)]
    found += [cell("attention", "backward", type_, True, length, d) for type_, length, d in plain]
    for type_ in types:
        found += [
            cell("grouped", "forward", type_, True, longest, dim, key_heads=2),
            cell("documents", "forward", type_, True, longest, dim, documents=12)]
    found += [decode for type_ in types for decode in decodes(type_, dim, quick)]
    found += [cell("ranks", kind, "f32", True, longest, d, ranks=4)
              for d in dims for kind in ("forward", "step")]
    return found


def decodes(type_, dim, quick):
    """Few queries against the keys and values of a cache, of which each is read once."""
    lengths = (256,) if quick else (1024, 4096, 32768)
    for length in lengths:
        for heads in (32, 8):
            for queries in (1, 4, 16):
                yield cell("decode", "forward", type_, False, length, dim, heads, key_heads=8,
                           queries=queries)
            if length <= 4096: # the exact result of more takes minutes
                yield cell("decode", "forward", type_, False, length, dim, heads, key_heads=8,
                           queries=1, batch=8)
