# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What published systems do beside burst's schedules.

Their kernels give partial results, which a kernel of its own merges after each hop;
burst's takes the state in and gives it out. And kernels without local attention
optimisation write scores to memory.
"""

from __future__ import annotations

from reach.collectives import all_to_all
from reach.machines import Machine

# Of an element of a partial result: 16 bits are read, an accumulator in fp32 is read and written
# (flash-attention's rings in Burst, LoongTrain and TransformerEngine alike).
MERGED = 2 + 4 + 4
# Of a score: written and read at 16 bits, made fp32, softmax read and written in fp32, made 16
# bits, read by the product with values.
SCORES_MOVED = 2 + 2 + 4 + 4 + 4 + 4 + 2 + 2
# Of a score while softmax works: 16 bits, fp32, and the weight in 16 bits.
SCORES_HELD = 2 + 4 + 2
# Of an all-to-all: what is sent is put in the order of its receivers, and what comes in that of
# heads; each is read and written (yunchang's and MagiAttention's all-to-alls of four dimensions).
EXCHANGED = 4
# Of an element of keys for all query heads, 16 bits: keys and values are written and twice read,
# their gradients twice written, read to be added and written, and read to be summed over groups.
REPEATED = 2 * (2 + 4 + 4 + 4 + 2 + 2)


def merge_seconds(machine: Machine, positions: float, heads: float, key_heads: float, dim: int,
                  hops: int, backward: bool, causal: bool) -> float:
    """Of a ring's hops. Under a causal mask in zigzag order half of them touch half."""
    width = heads + 2 * key_heads if backward else heads
    share = 0.75 if causal else 1.0
    return hops * share * MERGED * positions * width * dim / machine.memory_bandwidth


def repeated_seconds(machine: Machine, length: float, heads: int, dim: int) -> float:
    """Of an all-gather's backward pass that repeats keys and values for all query heads, as
    MagiAttention's baseline does, in two kernels over halves of the queries."""
    return REPEATED * length * heads * dim / machine.memory_bandwidth


def exchange_seconds(machine: Machine, bytes_: float, ranks: int) -> float:
    """Of Ulysses' all-to-all of a rank's `bytes_`, with its copies."""
    if ranks == 1:
        return 0.0
    return all_to_all(machine, bytes_, ranks) + EXCHANGED * bytes_ / machine.memory_bandwidth


def scores_seconds(machine: Machine, scores: float) -> float:
    return scores * SCORES_MOVED / machine.memory_bandwidth
