//===- TileOps.td - operations of the tile dialect ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_TILE_TILEOPS_TD
#define BURST_DIALECT_TILE_TILEOPS_TD

include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialect/Burst/BurstInterfaces.td"
include "dialect/Tile/TileDialect.td"

def Tile_State : AnyTypeOf<[F64, F32]>;
def Tile_Block : StaticShapeMemRefOf<[F64, F32]>;
def Tile_Tile : ConfinedType<Tile_Block, [HasAnyRankOfPred<[2]>], "a tile">;
def Tile_Rows : ConfinedType<Tile_Block, [HasAnyRankOfPred<[1]>], "rows">;
def Tile_TileOrRows : ConfinedType<Tile_Block, [HasAnyRankOfPred<[1, 2]>], "a tile or rows">;
/// What a product takes and makes no more: 16 bits do not hold a sum.
def Tile_Pairs : ConfinedType<StaticShapeMemRefOf<[BF16, F16]>, [HasAnyRankOfPred<[2]>],
                              "a tile of bf16 or f16">;
def Tile_Factors : AnyTypeOf<[Tile_Tile, Tile_Pairs]>;
/// Rows of a tile, and as many of its columns as panels have.
def Tile_Strip : MemRefRankOf<[F64, F32], [2]>;
def Tile_StripOfPairs : AnyTypeOf<[MemRefRankOf<[BF16], [2]>, Tile_Pairs]>;
/// Rows that lie side by side in twos: the pairs of a transposed left operand.
def Tile_PairedRows : ConfinedType<MemRefOf<[BF16]>, [HasAnyRankOfPred<[3]>],
                                   "rows of bf16 in pairs">;
def Tile_Left : AnyTypeOf<[Tile_Strip, Tile_StripOfPairs, Tile_PairedRows]>;
def Tile_Rounded : AnyTypeOf<[MemRefRankOf<[BF16], [2]>, Tile_PairedRows]>;
def Tile_Loaded : AnyTypeOf<[Tile_TileOrRows, Tile_Pairs]>;
/// The right operand of a product, laid out for it; that of bf16 is in pairs.
def Tile_Panels : AnyTypeOf<[
    ConfinedType<MemRefOf<[F64, F32]>, [HasAnyRankOfPred<[3]>], "panels">,
    ConfinedType<MemRefOf<[BF16]>, [HasAnyRankOfPred<[4]>], "panels of pairs of bf16">]>;
/// Rows of a slice, as they lie in memory.
def Tile_Slice : MemRefRankOf<[F64, F32, BF16, F16], [2]>;
def Tile_Right : AnyTypeOf<[Tile_Panels, Tile_Slice]>;
def Tile_Positions : ConfinedType<StaticShapeMemRefOf<[Index]>, [HasAnyRankOfPred<[1]>],
                                  "positions">;
/// Memory of a program, seen as rows.
def Tile_View : MemRefRankOf<[F64, F32, BF16, F16], [1, 2]>;

include "dialect/Tile/HostOps.td"

//===----------------------------------------------------------------------===//
// Between memory and blocks
//===----------------------------------------------------------------------===//

def Tile_LoadOp : Tile_Op<"load", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "loads rows of memory into a block";
  let description = [{
    block[r, c] = factor * view[r, c], converted to the block's type; rows and
    columns that the view does not have become `padding`.

    **Constraints:** (C1) view and block have one rank; the last dimension of the
    view is contiguous. (C2) a block of bf16 takes the view's numbers as they are:
    it is of the view's type, and `factor` is 1.

    Example:

    ```mlir
    tile.load %view, %q factor 0.18 padding 0.0
        : memref<?x128xbf16, strided<[?, 1], offset: ?>>, memref<96x128xf32>
    ```
  }];
  let builders = [OpBuilder<(ins "mlir::Value":$view, "mlir::Value":$block), [{
    build($_builder, $_state, view, block, llvm::APFloat(1.0), llvm::APFloat(0.0));
  }]>];
  let arguments = (ins Tile_View:$view, Tile_Loaded:$block,
                       DefaultValuedAttr<F64Attr, "1.0">:$factor,
                       DefaultValuedAttr<F64Attr, "0.0">:$padding);
  let assemblyFormat = [{
    $view `,` $block (`factor` $factor^)? (`padding` $padding^)? attr-dict
    `:` type($view) `,` type($block)
  }];
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "writes the rows of a block to memory";
  let description = [{
    view[r, c] = block[r, c], rounded to the view's type, for all of the view.

    **Constraints:** (C1) as of `tile.load`; the view is not larger than the
    block.

    Example:

    ```mlir
    tile.store %o, %view
        : memref<96x128xf32>, memref<?x128xf32, strided<[?, 1], offset: ?>>
    ```
  }];
  let arguments = (ins Tile_TileOrRows:$block, Tile_View:$view);
  let assemblyFormat = "$block `,` $view attr-dict `:` type($block) `,` type($view)";
  let hasVerifier = 1;
}

def Tile_PackOp : Tile_Op<"pack", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "lays out memory as the right operand of a product";
  let description = [{
    With W the width of a panel, panels[c / W, k, c mod W] = view[k, c], or with
    `transposed` view[c, k]. What the view does not have becomes 0.

    Panels of bf16 hold two steps of the depth side by side, the pairs that
    `tile.multiply` takes: panels[c / W, k / 2, c mod W, k mod 2]. Where the depth
    is odd, the last pair ends in 0.

    **Constraints:** (C1) the view has two dimensions, the last contiguous. (C2)
    panels are contiguous but for the first dimension; those of bf16 have 2
    numbers in the last one, and a view of bf16.

    Example:

    ```mlir
    tile.pack %keys, %panels transposed
        : memref<?x64xbf16, strided<[?, 1], offset: ?>>, memref<8x64x16xf32, strided<[1024, 16, 1], offset: ?>>
    tile.pack %keys, %pairs transposed
        : memref<?x64xbf16, strided<[?, 1], offset: ?>>, memref<8x32x16x2xbf16>
    ```
  }];
  let arguments = (ins Tile_View:$view, Tile_Panels:$panels, UnitAttr:$transposed);
  let assemblyFormat = [{
    $view `,` $panels (`transposed` $transposed^)? attr-dict `:` type($view) `,` type($panels)
  }];
  let hasVerifier = 1;
}

def Tile_IsFiniteOp : Tile_Op<"is_finite", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "whether panels, or rows of memory, hold finite numbers only";
  let description = [{
    Then 0 times any of them is 0.

    **Constraints:** (C1) the panels are as of `tile.pack`, of static shape; rows are
    contiguous.

    Example:

    ```mlir
    %f = tile.is_finite %v : memref<4x128x16xf32>
    %g = tile.is_finite %rows : memref<?x64xbf16, strided<[512, 1], offset: ?>>
    ```
  }];
  let arguments = (ins Tile_Right:$panels);
  let results = (outs I1:$finite);
  let assemblyFormat = "$panels attr-dict `:` type($panels)";
  let hasVerifier = 1;
}

def Tile_FillOp : Tile_Op<"fill", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "sets a block to a number";
  let description = [{
    Example: `tile.fill %o with 0.0 : memref<96x128xf32>`
  }];
  let arguments = (ins Tile_TileOrRows:$block, F64Attr:$value);
  let assemblyFormat = "$block `with` $value attr-dict `:` type($block)";
}

def Tile_PositionsOp : Tile_Op<"positions", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "the global positions of a tile's rows or columns";
  let description = [{
    positions[x] = begin + y / block * step + y mod block with y = first + x, for
    x below `count`; behind it the last of these (0 where there is none), so that
    whoever reads a table there stays within it.

    Example:

    ```mlir
    tile.positions %p from %first count %n of (%begin, %step, %block) : memref<96xindex>
    ```
  }];
  let arguments = (ins Tile_Positions:$positions, Index:$first, Index:$count,
                       Index:$begin, Index:$step, Index:$block);
  let assemblyFormat = [{
    $positions `from` $first `count` $count `of` `(` $begin `,` $step `,` $block `)`
    attr-dict `:` type($positions)
  }];
}

//===----------------------------------------------------------------------===//
// The recurrence
//===----------------------------------------------------------------------===//

def Tile_MultiplyOp : Tile_Op<"multiply", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a product of a tile and panels";
  let description = [{
    c = factor * a b, or with `accumulate` c = c + factor * a b, for the first
    `rows` rows of c; what becomes of the rows behind them is not said. With
    `transposed` it is a^T in place of a: the gradients by keys and values are sums
    over queries, which are rows of a.

    The sum goes over the first `depth` columns of a (`transposed`: rows) and rows
    of b, over all where it is not given. What lies behind may be anything. With
    `where`, a[r, k] b[k, n] counts only where seen[r, k] is not -inf: a weight of
    0 does not rule out NaN.

    Operands of bf16 are multiplied and added up in f32, in pairs of steps of the
    depth: with a and panels of `tile.pack`,

    ```
    (a b)[r, n] = sum_t (a[r, 2t] b[n / W, t, n mod W, 0]
                         + a[r, 2t + 1] b[n / W, t, n mod W, 1])
    ```

    `transposed`, their pairs are of rows that lie side by side (see `tile.round`):
    a[t, r, 0] and a[t, r, 1] in place of a[r, 2t] and a[r, 2t + 1]. `depth` then
    counts pairs.

    b may also be a tile as it lies in memory: K x N, or with `by_rows` N x K, each
    row of which is a column of the product (scores are of queries and keys). On a
    processor its numbers become those of c's type, which a has as well; and where it
    has fewer rows than a or c has columns, as the last tile of a slice may, those
    columns of a are not read, and what becomes of those of c is not said. Tensor
    cores take a tile of 16 bits, and a is such a tile, or weights in f32, which are
    rounded to b's type.

    Strips of a tile may have a number of columns that is known when the program
    runs: whole panels of c, and as many of the depth.

    In which order two numbers of a pair are added is not said, nor whether
    subnormal numbers count as 0. The factor is there for them: they come as they
    are from memory, and a scale is not lost to rounding them.

    **Constraints:** (C1) a is M x K (`transposed`: K x M), b is N/W x K x W, c is
    M x N, of one type; or a is M x K of bf16 with an even K (`transposed`:
    K/2 x M x 2), b is N/W x K/2 x W x 2 of bf16, c is M x N of f32; or b is a tile
    whose rows are contiguous, a is M x K of its type or of c's, c is M x N, of f32
    where b has 16 bits, else of b's type. (C2) seen is M x K
    (`transposed`: K x M), of c's type. (C3) pairs that are not transposed, and
    tiles, have their whole depth; a left operand of tiles is not transposed;
    `by_rows` is of a tile, without `where`. (C4) sizes that are not static are those of columns of c with the
    number of panels, or of the depth of a and b. They are multiples of W, the
    depth where `depth` is not given.

    Example:

    ```mlir
    tile.multiply %q, %k, %s rows %n
        : memref<96x64xf32>, memref<8x64x16xf32>, memref<96x128xf32>
    tile.multiply %q2, %k2, %s rows %n factor 0.18
        : memref<96x64xbf16>, memref<8x32x16x2xbf16>, memref<96x128xf32>
    tile.multiply %p, %g, %dv rows %c depth %n accumulate transposed
        : memref<96x128xf32>, memref<4x96x16xf32>, memref<128x64xf32>
    tile.multiply %p2, %g2, %dv rows %c depth %m accumulate transposed
        : memref<48x128x2xbf16>, memref<4x48x16x2xbf16>, memref<128x64xf32>
    tile.multiply %q3, %k3, %s3 rows %n factor 0.18 by_rows
        : memref<128x64xf16>, memref<64x64xf16>, memref<128x64xf32>
    tile.multiply %strip, %v, %o rows %n accumulate
        : memref<6x?xf32, strided<[128, 1]>>, memref<4x?x16xf32, strided<[2048, 16, 1]>>,
          memref<6x64xf32>
    ```
  }];
  let arguments = (ins Tile_Left:$a, Tile_Right:$b, Tile_Strip:$c, Index:$rows,
                       DefaultValuedAttr<F64Attr, "1.0">:$factor,
                       Optional<Tile_Strip>:$seen, UnitAttr:$accumulate,
                       Optional<Index>:$depth, UnitAttr:$transposed, UnitAttr:$byRows);
  let builders = [OpBuilder<(ins "mlir::Value":$a, "mlir::Value":$b, "mlir::Value":$c,
                                 "mlir::Value":$rows, "llvm::APFloat":$factor,
                                 "mlir::Value":$seen, "bool":$accumulate,
                                 CArg<"bool", "false">:$byRows), [{
    build($_builder, $_state, a, b, c, rows, factor, seen, accumulate,
          /*depth=*/mlir::Value(), /*transposed=*/false, byRows);
  }]>];
  let assemblyFormat = [{
    $a `,` $b `,` $c `rows` $rows (`depth` $depth^)? (`factor` $factor^)?
    (`where` $seen^ `:` type($seen))? (`accumulate` $accumulate^)?
    (`transposed` $transposed^)? (`by_rows` $byRows^)? attr-dict
    `:` type($a) `,` type($b) `,` type($c)
  }];
  let hasVerifier = 1;
}

def Tile_MapOp : Tile_Op<"map", [
    AttrSizedOperandSegments, IsolatedFromAbove,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "score and mask of a tile, at its positions";
  let description = [{
    For the first `rows` rows and all columns

    ```
    s[r, c] = unit * score(s[r, c], b, h, i[r], j[c], sq, sk)
              where c < columns and mask(b, h, i[r], j[c], sq, sk), else -inf
    ```

    with `i` and `j` the positions of rows and columns. Rows may be of several heads:
    h is then h[r], and the type of these stands behind those of i and j. The regions are those of
    `burst.attention`, and either may be missing. `unit` is log2(e) where a score
    region gives natural units, else 1.

    A region has no effects and is evaluated for all pairs, also for those which
    the mask rules out: an index outside a table reads some element of it, a
    division by zero gives some number.

    With `transposed`, rows of s are keys and columns queries: i[c] and j[r] in
    place of i[r] and j[c].

    **Constraints:** (C1) s is M x N, i has M and j has N positions (`transposed`:
    N and M); heads of rows are M, and s is not transposed. (C2) the regions have the arguments that `burst.attention` says.

    Example:

    ```mlir
    tile.map %s rows %n columns %c at (%b, %h, %i, %j) of (%sq, %sk) unit 1.0
        mask(%b0, %h0, %i0, %j0, %sq0, %sk0) {
          %keep = arith.cmpi sle, %j0, %i0 : index
          burst.yield %keep : i1
        } : memref<96x128xf32>, memref<96xindex>, memref<128xindex>
    ```
  }];
  let arguments = (ins Tile_Tile:$s, Index:$rows, Index:$columns, Index:$batch,
      AnyTypeOf<[Index, Tile_Positions]>:$head,
      Tile_Positions:$i, Tile_Positions:$j, Index:$queries, Index:$keys,
      Variadic<AnyType>:$maskCaptures, Variadic<AnyType>:$scoreCaptures, F64Attr:$unit,
      UnitAttr:$transposed);
  let regions = (region AnyRegion:$mask, AnyRegion:$score);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_RowMaxOp : Tile_Op<"row_max", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "the reference of the exponentials, and what it changes";
  let description = [{
    m' = max(m, max_j s[r, j]), factor = exp2(m - m') (0 where m = -inf), for the
    first `rows` rows.

    **Constraints:** (C1) s is M x N, m and factor have M rows, of one type. N may
    be known when the program runs: it is that of whole panels.

    Example:

    ```mlir
    tile.row_max %s, %m, %a rows %n : memref<96x128xf32>, memref<96xf32>
    ```
  }];
  let arguments = (ins Tile_Strip:$s, Tile_Rows:$m, Tile_Rows:$factor, Index:$rows);
  let assemblyFormat = [{
    $s `,` $m `,` $factor `rows` $rows attr-dict `:` type($s) `,`
    custom<SameType>(type($m), type($factor))
  }];
  let hasVerifier = 1;
}

def Tile_ExponentialsOp : Tile_Op<"exponentials", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "weights of a tile, and their sum";
  let description = [{
    s[r, j] = exp2(s[r, j] - m[r]), 0 where s = -inf;
    l[r] = factor[r] l[r] + sum_j s[r, j]; for the first `rows` rows.

    With `into`, the weights go to p, rounded to bf16, and s stays as it is. The
    sum is of the weights before they are rounded: lse is as accurate as f32 is.

    **Constraints:** (C1) as of `tile.row_max`. (C2) s is of f32 where p is given,
    and p has its shape.

    Example:

    ```mlir
    tile.exponentials %s, %m, %l, %a rows %n : memref<96x128xf32>, memref<96xf32>
    tile.exponentials %s, %m, %l, %a rows %n into %p : memref<96x128xbf16>
        : memref<96x128xf32>, memref<96xf32>
    ```
  }];
  let arguments = (ins Tile_Strip:$s, Tile_Rows:$m, Tile_Rows:$l, Tile_Rows:$factor,
                       Index:$rows, Optional<Tile_StripOfPairs>:$p);
  let assemblyFormat = [{
    $s `,` $m `,` $l `,` $factor `rows` $rows (`into` $p^ `:` type($p))? attr-dict
    `:` type($s) `,`
    custom<SameType3>(type($m), type($l), type($factor))
  }];
  let hasVerifier = 1;
}

def Tile_RescaleOp : Tile_Op<"rescale", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "scales the rows of a tile";
  let description = [{
    o[r, c] = factor[r] o[r, c] for the first `rows` rows.

    **Constraints:** (C1) o is M x N and factor has M rows, of one type.

    Example: `tile.rescale %o, %a rows %n : memref<96x128xf32>, memref<96xf32>`
  }];
  let arguments = (ins Tile_Tile:$o, Tile_Rows:$factor, Index:$rows);
  let assemblyFormat = "$o `,` $factor `rows` $rows attr-dict `:` type($o) `,` type($factor)";
  let hasVerifier = 1;
}

def Tile_AddOp : Tile_Op<"add", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "adds a tile to a tile";
  let description = [{
    a[r, c] = a[r, c] + b[r, c] for the first `rows` rows.

    **Constraints:** (C1) a and b are M x N, of one type.

    Example: `tile.add %a, %b rows %n : memref<96x128xf32>`
  }];
  let arguments = (ins Tile_Tile:$a, Tile_Tile:$b, Index:$rows);
  let assemblyFormat = [{
    $a `,` $b `rows` $rows attr-dict `:` custom<SameType>(type($a), type($b))
  }];
  let hasVerifier = 1;
}

def Tile_RowDotOp : Tile_Op<"row_dot", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "products of the rows of two tiles";
  let description = [{
    x[r] = sum_c a[r, c] b[r, c] - x[r] for the first `rows` rows.

    **Constraints:** (C1) a and b are M x N, x has M rows, of one type.

    Example: `tile.row_dot %a, %b, %x rows %n : memref<96x128xf32>, memref<96xf32>`
  }];
  let arguments = (ins Tile_Tile:$a, Tile_Tile:$b, Tile_Rows:$x, Index:$rows);
  let assemblyFormat = [{
    $a `,` $b `,` $x `rows` $rows attr-dict `:` custom<SameType>(type($a), type($b))
    `,` type($x)
  }];
  let hasVerifier = 1;
}

def Tile_MergeOp : Tile_Op<"merge", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "merges the state of other keys into a state";
  let description = [{
    ```
    m' = max(m, m2)    a = exp2(m - m')   a2 = exp2(m2 - m')   0 where -inf
    l = a l + a2 l2    o = a o + a2 o2
    ```

    for the first `rows` rows; the second state is left in no defined state.

    **Constraints:** (C1) o and o2 are M x N, the others have M rows.

    Example:

    ```mlir
    tile.merge (%o, %m, %l) with (%o2, %m2, %l2) rows %n
        : memref<96x128xf32>, memref<96xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$o, Tile_Rows:$m, Tile_Rows:$l, Tile_Tile:$o2,
                       Tile_Rows:$m2, Tile_Rows:$l2, Index:$rows);
  let assemblyFormat = [{
    `(` $o `,` $m `,` $l `)` `with` `(` $o2 `,` $m2 `,` $l2 `)` `rows` $rows attr-dict `:`
    custom<SameType>(type($o), type($o2)) `,`
    custom<SameType4>(type($m), type($l), type($m2), type($l2))
  }];
  let hasVerifier = 1;
}

def Tile_NormalizeOp : Tile_Op<"normalize", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "the attention of a state";
  let description = [{
    o = o / l, m = (m + log2 l) ln 2, the natural lse; where l = 0, o = 0 and
    m = -inf. For the first `rows` rows.

    **Constraints:** (C1) o is M x N, m and l have M rows, of one type.

    Example: `tile.normalize %o, %m, %l rows %n : memref<96x128xf32>, memref<96xf32>`
  }];
  let arguments = (ins Tile_Tile:$o, Tile_Rows:$m, Tile_Rows:$l, Index:$rows);
  let assemblyFormat = [{
    $o `,` $m `,` $l `rows` $rows attr-dict `:` type($o) `,`
    custom<SameType>(type($m), type($l))
  }];
  let hasVerifier = 1;
}

def Tile_MaxScoreOp : Tile_Op<"max_score", [
    AllTypesMatch<["m", "l"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "the largest scores of a state";
  let description = [{
    m = m ln 2, for the first `rows` rows; NaN where l is and m is not +inf, since
    the reference of the exponentials leaves out scores that are NaN.

    Example: `tile.max_score %m, %l rows %n : memref<96xf32>`
  }];
  let arguments = (ins Tile_Rows:$m, Tile_Rows:$l, Index:$rows);
  let assemblyFormat = "$m `,` $l `rows` $rows attr-dict `:` type($m)";
}

include "dialect/Tile/GradientOps.td"

#endif // BURST_DIALECT_TILE_TILEOPS_TD
