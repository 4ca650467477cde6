# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machines and models, as their files describe them."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import re
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GB = 1e9
# Of protocol Simple, in NCCL's src/graph/tuning.cc, of which the latencies in machines/ are.
NCCL_CALL = 8.4e-6


@dataclasses.dataclass(frozen=True)
class Machine:
    """The entries of the device "burst" in machines/NAME.mlir, SI units."""

    path: pathlib.Path
    flops: float
    flops_backward: float
    peak: float
    launch: float
    processors: float
    tile: float
    memory: float
    memory_bandwidth: float
    node: int
    node_bandwidth: float
    node_latency: float
    bandwidth: float
    latency: float
    links: float
    busy: float
    call: float  # seconds of a call of NCCL, which latencies include
    matmul: float  # of large matrix products, bf16
    matmul_fp8: float
    collective_bandwidth: float  # of a rank in NCCL's collectives; 0: as of its links
    block: float  # seconds that a block of rows takes beside its tiles, forward
    block_backward: float  # and of keys, backward

    @property
    def name(self) -> str:
        return self.path.stem


_ENTRY = r'"(?:burst|reach)\.(\w+)" = ([-+.e\d]+) : f64'


@functools.cache
def read(path: pathlib.Path) -> Machine:
    text = path.read_text(encoding="utf-8")
    found = {key: float(value) for key, value in re.findall(_ENTRY, text)}
    found["node"] = int(found["node"])
    # One node has no cards: what would leave it goes nowhere.
    for key, value in (("bandwidth", found["node_bandwidth"]), ("latency", found["node_latency"]),
                       ("links", 1.0), ("matmul_fp8", found["matmul"]),
                       ("flops_backward", found["flops"]), ("collective_bandwidth", 0.0),
                       ("block", 0.0), ("block_backward", 0.0), ("call", NCCL_CALL)):
        found.setdefault(key, value)
    return Machine(path=path, **found)  # type: ignore[arg-type]


def machine(name: str) -> Machine:
    return read(ROOT / "machines" / f"{name}.mlir")


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="reach-")


@functools.cache
def variant(base: Machine, **entries: float) -> Machine:
    """A machine with other entries, for what a file does not describe, such as a group of ranks
    that are not neighbours."""
    text = base.path.read_text(encoding="utf-8")
    for key, value in entries.items():
        entry = f'"burst.{key}" = '
        if entry not in text:
            raise KeyError(f"{base.path}: no entry burst.{key} to change")
        text = re.sub(re.escape(entry) + r"[-+.e\d]+", f"{entry}{float(value)!r}", text)
    name = "-".join([base.name, *(f"{key}-{value:g}" for key, value in entries.items())])
    path = pathlib.Path(_folder().name) / f"{name}.mlir"
    path.write_text(text, encoding="utf-8")
    return read(path)


@dataclasses.dataclass(frozen=True)
class Model:
    """A decoder with gated feed-forward layers, maybe of experts."""

    source: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    key_heads: int
    head_dim: int
    vocab: int
    value_dim: int = 0
    experts: int = 0
    experts_active: int = 0
    experts_shared: int = 0
    dense_layers: int = 0
    dense_ffn: int = 0
    query_rank: int = 0
    key_rank: int = 0
    rotated_dim: int = 0

    @property
    def values(self) -> int:
        return self.value_dim or self.head_dim

    @property
    def attention_weights(self) -> int:
        """Of the projections of a layer: queries, keys and values, output."""
        output = self.heads * self.values * self.hidden
        if not self.key_rank:
            width = self.heads * self.head_dim + self.key_heads * (self.head_dim + self.values)
            return self.hidden * width + output
        # Multi-head latent attention (arXiv 2412.19437, section 2.1.1): both go by a lower rank,
        # dims that are rotated beside.
        queries = self.query_rank * (self.hidden + self.heads * self.head_dim)
        keys = self.hidden * (self.key_rank + self.rotated_dim) + self.key_rank * self.heads * (
            self.head_dim - self.rotated_dim + self.values)
        return queries + keys + output

    def feed_forward_weights(self, experts: int) -> int:
        """Of all layers, with so many experts of each of those that have any."""
        if not self.experts:
            return self.layers * 3 * self.hidden * self.ffn
        sparse = self.layers - self.dense_layers
        return (sparse * 3 * self.hidden * self.ffn * (experts + self.experts_shared)
                + sparse * self.hidden * self.experts  # the router
                + self.dense_layers * 3 * self.hidden * self.dense_ffn)

    @property
    def head_weights(self) -> int:
        return self.hidden * self.vocab

    @property
    def weights(self) -> int:
        """All of them: the embedding and the head are two matrices."""
        return (self.layers * self.attention_weights + self.feed_forward_weights(self.experts)
                + 2 * self.head_weights)

    @property
    def active_weights(self) -> int:
        """Those of layers that a position is multiplied by."""
        return (self.layers * self.attention_weights
                + self.feed_forward_weights(self.experts_active))


@functools.cache
def model(name: str) -> Model:
    return Model(**json.loads((ROOT / "models" / f"{name}.json").read_text(encoding="utf-8")))
