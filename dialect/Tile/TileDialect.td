//===- TileDialect.td - how a device computes one step ------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_TILE_TILEDIALECT_TD
#define BURST_DIALECT_TILE_TILEDIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::burst::tile";
  let summary = "How a device computes a step: the recurrence over tiles.";
  let description = [{
    A *kernel* is a function with `tile.kernel` that computes one task of a
    launch, say the queries of one tile and head against all tiles of keys. Its
    first argument is the number of the task; `tile.launch` gives the others.

    A kernel works on *blocks*: memrefs of static shape in memory close to the
    processor, the registers of a warp group or the cache of a core. Blocks are
    storage and not values, because accumulators must be the same storage round a
    loop on every target; a copied one costs a spill on a GPU and a pass through
    the cache on a CPU.

    | block | shape | holds |
    |---|---|---|
    | tile | M x N | queries, scores, weights, sums |
    | rows | M | a number per query: m, l, factors |
    | panels | N/W x K x W | the right operand of a product, W columns together |

    With m in units of base 2, m2 = m log2(e), and s2 = s log2(e), the recurrence
    over tiles of keys is

    ```
    multiply       s2 = q k                 scale log2(e) is in q, or in map
    map            s2 = score, mask         partial tiles, and those with a score
    row_max        m' = max(m2, max_j s2)   a = exp2(m2 - m')
    exponentials   p  = exp2(s2 - m')       l = a l + sum_j p
    rescale        o  = a o
    multiply       o  = o + p v
    ```

    m is a reference for the exponentials; where it is -inf, nothing was seen and
    0 stands in for it, so that no -inf is subtracted from another. A row that
    sees nothing keeps l = 0 and o = 0.

    A kernel of a GPU has `tile.warps`, the number of warps that do a task, and its
    blocks say where they lie, by upstream's memory spaces of `gpu`. Host code then
    makes lists of what there is to do in its own memory, where it also finds the
    tables that masks read, arguments with `tile.host`, and hands kernels a
    `tile.upload` of them.

    How many rows and columns the tiles of a program have says its attribute
    `tile.shape`, two numbers: `array<i64: 96, 128>`. Who lowers a program chooses
    them for the processor and the type and head dim of its attention.

    Which tiles a task has to do is an operand of the kernel: lists in three
    classes. Empty tiles are not in them, partial tiles take the mask, full tiles
    do without.
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let dependentDialects = ["::burst::BurstDialect", "::mlir::memref::MemRefDialect"];
}

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

#endif // BURST_DIALECT_TILE_TILEDIALECT_TD
