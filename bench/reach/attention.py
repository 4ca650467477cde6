# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What burst's clock says of attention over the ranks of a machine."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Callable, Iterable

from reach.machines import ROOT, Machine


@dataclasses.dataclass(frozen=True)
class Problem:
    """Attention of one layer, sequence over all ranks: forward, or backward alone."""

    length: int
    heads: int
    key_heads: int
    ranks: int
    strategy: str
    backward: bool = False
    causal: bool = True
    nodes: int = 1  # above 1 the grid is nodes x ranks of a node
    dim: int = 128
    value_dim: int = 0
    batch: int = 1
    queries: int = 0  # of a cache of `length` positions; 0: as many as there are
    overlap: bool = True

    @property
    def pairs(self) -> float:
        queries = self.queries or self.length
        if not self.causal:
            return float(queries) * self.length
        return queries * (self.length - queries) + queries * (queries + 1) / 2

    @property
    def operations(self) -> float:
        """Useful ones: 2 products of 2 operations forward, 5 backward."""
        width = self.dim + (self.value_dim or self.dim)
        products = 3 * self.dim + 2 * (self.value_dim or self.dim) if self.backward else width
        return 2.0 * products * self.batch * self.heads * self.pairs


@dataclasses.dataclass(frozen=True)
class Cost:
    seconds: float
    compute_seconds: float
    exposed_seconds: float
    peak_bytes: float
    bytes_sent: float
    limit: str = ""


def tool() -> str:
    """burst-opt of BURST_OPT, of the path, or as scripts/build leaves it."""
    built = [ROOT / "build" / preset / "bin" / "burst-opt" for preset in ("dev", "release")]
    found = os.environ.get("BURST_OPT") or shutil.which("burst-opt") or next(
        (str(path) for path in built if path.exists()), None)
    if not found:
        raise FileNotFoundError("burst-opt: neither in BURST_OPT nor on the path nor in build/; "
                                "scripts/build makes it")
    return found


def function(name: str, problem: Problem) -> str:
    queries, values = problem.queries or problem.length, problem.value_dim or problem.dim

    def tensor(*sizes: int, element: str = "bf16") -> str:
        return f"tensor<{'x'.join(map(str, sizes))}x{element}>"
    q = tensor(problem.batch, queries, problem.heads, problem.dim)
    k = tensor(problem.batch, problem.length, problem.key_heads, problem.dim)
    v = tensor(problem.batch, problem.length, problem.key_heads, values)
    o = tensor(problem.batch, queries, problem.heads, values)
    lse = tensor(problem.batch, problem.heads, queries, element="f32")
    shape = f"{problem.nodes}x{problem.ranks // problem.nodes}" if problem.nodes > 1 else \
        str(problem.ranks)
    clauses = (f"{'mask causal ' if problem.causal else ''}sequence <@grid_{name}, "
               f"{'zigzag' if problem.causal else 'contiguous'}> strategy <{problem.strategy}>")
    grid = f"  shard.grid @grid_{name}(shape = {shape})\n"
    if not problem.backward:
        return (f"{grid}  func.func @{name}(%q: {q}, %k: {k}, %v: {v}) -> {o} {{\n"
                f"    %o, %lse = burst.attention %q, %k, %v {clauses} "
                f": ({q}, {k}, {v}) -> ({o}, {lse})\n    return %o : {o}\n  }}\n")
    return (f"{grid}  func.func @{name}(%q: {q}, %k: {k}, %v: {v}, %o: {o}, %lse: {lse}, "
            f"%do: {o}) -> ({q}, {k}, {v}) {{\n"
            f"    %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do {clauses} "
            f": ({q}, {k}, {v}, {o}, {lse}, {o}) -> ({q}, {k}, {v})\n"
            f"    return %dq, %dk, %dv : {q}, {k}, {v}\n  }}\n")


_known: dict[tuple[pathlib.Path, Problem], Cost] = {}
_wanted: dict[pathlib.Path, list[Problem]] | None = None


def attention_cost(machine: Machine, problem: Problem) -> Cost:
    """The cost of an attention; while `together` gathers problems, a guess of it."""
    cost = _known.get((machine.path, problem))
    if cost:
        return cost
    if _wanted is not None:
        _wanted.setdefault(machine.path, []).append(problem)
        return Cost(1.0, 1.0, 0.0, 1.0, 1.0)
    time_all(machine.path, [problem])
    return _known[machine.path, problem]


def together(ask: Callable[[], object]) -> None:
    """Times all attentions that `ask` asks for in few processes."""
    global _wanted
    _wanted = {}
    try:
        ask()
        found = _wanted
    finally:
        _wanted = None
    for path, problems in found.items():
        time_all(path, problems)


def time_all(machine: pathlib.Path, problems: Iterable[Problem]) -> None:
    """Times many in a process each for those with and without overlap."""
    for overlap in (True, False):
        group = [each for each in dict.fromkeys(problems) if each.overlap == overlap]
        if group:
            for problem, cost in zip(group, _run(machine, group, overlap), strict=True):
                _known[machine, problem] = cost


def _run(machine: pathlib.Path, problems: list[Problem], overlap: bool) -> list[Cost]:
    text = "module {\n" + "".join(function(f"p{number}", problem)
                                  for number, problem in enumerate(problems)) + "}\n"
    clock = f"machine={machine} overlap={json.dumps(overlap)} format=json"
    done = subprocess.run([tool(), f"--burst-simulate={clock}", "-o", os.devnull], input=text,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"burst-opt of {len(problems)} attentions: {done.stderr}")
    found: dict[str, Cost] = {}
    decoder, rest = json.JSONDecoder(), done.stdout.strip()
    while rest:
        told, end = decoder.raw_decode(rest)
        rest = rest[end:].strip()
        found[told["program"]] = Cost(told["seconds"], told["compute_seconds"],
                                      told["exposed_seconds"], told["peak_bytes"],
                                      told["bytes_sent"], told["limit"])
    return [found[f"p{number}"] for number in range(len(problems))]
