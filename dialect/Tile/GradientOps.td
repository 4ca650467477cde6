//===- GradientOps.td - tile operations of backward passes -*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of operands that TileOps.td defines, which includes this.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_DIALECT_TILE_GRADIENTOPS_TD
#define BURST_DIALECT_TILE_GRADIENTOPS_TD

def Tile_WeightsOp : Tile_Op<"weights", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "weights of a tile whose lse is known";
  let description = [{
    s[r, j] = exp2(s[r, j] - lse[r]), 0 where s = -inf or lse[r] = -inf, for the
    first `rows` rows; those behind them are left as they are. Scores and lse are
    of base 2. A score may exceed its lse by what rounding adds, not by 127.

    With `transposed`, columns of s are queries: lse[j] in place of lse[r].

    **Constraints:** (C1) s is M x N and lse has M rows (`transposed`: N), of one
    type. N may be known when the program runs, as of `tile.row_max`.

    Example:

    ```mlir
    tile.weights %s, %lse rows %n : memref<96x128xf32>, memref<96xf32>
    tile.weights %s, %lse rows %n transposed : memref<96x128xf32>, memref<128xf32>
    ```
  }];
  let arguments = (ins Tile_Strip:$s, Tile_Rows:$lse, Index:$rows, UnitAttr:$transposed);
  let assemblyFormat = [{
    $s `,` $lse `rows` $rows (`transposed` $transposed^)? attr-dict `:` type($s) `,`
    type($lse)
  }];
  let hasVerifier = 1;
}

def Tile_DifferentialsOp : Tile_Op<"differentials", [
    AllTypesMatch<["p", "dp"]>, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "gradients by the scores of a tile";
  let description = [{
    dp[r, j] = factor * p[r, j] * (dp[r, j] - delta[r]), 0 where p[r, j] = 0
    whatever dp and delta are: a pair that is masked shows no infinity and no NaN.
    For the first `rows` rows; those behind them are left as they are.

    With `transposed`, columns are queries: delta[j] in place of delta[r].

    **Constraints:** (C1) p and dp are M x N and delta has M rows (`transposed`: N),
    of one type. N may be known when the program runs, as of `tile.row_max`.

    Example:

    ```mlir
    tile.differentials %p, %dp, %delta rows %n factor 0.125
        : memref<96x128xf32>, memref<96xf32>
    ```
  }];
  let arguments = (ins Tile_Strip:$p, Tile_Strip:$dp, Tile_Rows:$delta, Index:$rows,
                       DefaultValuedAttr<F64Attr, "1.0">:$factor, UnitAttr:$transposed);
  let assemblyFormat = [{
    $p `,` $dp `,` $delta `rows` $rows (`factor` $factor^)?
    (`transposed` $transposed^)? attr-dict `:` type($p) `,` type($delta)
  }];
  let hasVerifier = 1;
}

def Tile_RoundOp : Tile_Op<"round", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "rounds a tile to the left operand of a product of pairs";
  let description = [{
    p[r, c] = s[r, c] for the first `rows` rows, rounded to bf16. Where p has three
    dimensions, two rows lie side by side, which `tile.multiply` takes `transposed`:
    p[r / 2, c, r mod 2]. Of an odd number of rows the last pair ends in 0.

    **Constraints:** (C1) s is M x N of f32, p is M x N or M/2 x N x 2 of bf16, with
    an even M. N may be known when the program runs, as of `tile.row_max`.

    Example:

    ```mlir
    tile.round %s into %p rows %n : memref<96x128xf32>, memref<96x128xbf16>
    tile.round %s into %p2 rows %n : memref<96x128xf32>, memref<48x128x2xbf16>
    ```
  }];
  let arguments = (ins Tile_Strip:$s, Tile_Rounded:$p, Index:$rows);
  let assemblyFormat = "$s `into` $p `rows` $rows attr-dict `:` type($s) `,` type($p)";
  let hasVerifier = 1;
}

def Tile_MapGradientOp : Tile_Op<"map_gradient", [
    AttrSizedOperandSegments, IsolatedFromAbove, AllTypesMatch<["w", "t"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "from gradients by scores to gradients by what was scored";
  let description = [{
    For the first `rows` rows and all columns

    ```
    w[r, c] = gradient(t[r, c], b, h, i[r], j[c], sq, sk, w[r, c])
              where c < columns and w[r, c] is not 0, else 0
    ```

    with `t` what the score region was given, and `i` and `j` the positions of rows
    and columns. A pair that is masked has w = 0 and keeps it, whatever its t. The
    region is that of `burst.attention_backward`; as in `tile.map` it is evaluated
    for all pairs.

    What the region contributes to capture `wanted[n]` is added to `grads[n]`, in
    an order that is always the same: of the pairs for which c < columns and
    w[r, c] is not 0. What lies outside of the table is not added.

    With `transposed`, rows are keys and columns queries: i[c] and j[r] in place of
    i[r] and j[c].

    **Constraints:** (C1) w and t are M x N, i has M and j has N positions
    (`transposed`: N and M). (C2) the region has the arguments that `burst.attention_backward` says. (C3) `wanted`
    numbers captured tables, each has a gradient of its shape and of the type of w.
    (C4) the region contributes to these alone.

    Example:

    ```mlir
    tile.map_gradient %w, %t rows %n columns %c at (%b, %h, %i, %j) of (%sq, %sk)
        grads (%dx of [0] : memref<8xf32>)
        gradient(%t0 : f32, %b0, %h0, %i0, %j0, %sq0, %sk0, %w0 : f32, %x = %slopes : memref<8xf32>) {
          %slope = tensor.extract %x[%h0] : tensor<8xf32>
          %u = arith.mulf %slope, %w0 : f32
          %v = arith.mulf %t0, %w0 : f32
          burst.contribute %v to %x[%h0] : f32, tensor<8xf32>
          burst.yield %u : f32
        } : memref<96x128xf32>, memref<96xindex>, memref<128xindex>
    ```
  }];
  let arguments = (ins Tile_Tile:$w, Tile_Tile:$t, Index:$rows, Index:$columns,
      Index:$batch, Index:$head, Tile_Positions:$i, Tile_Positions:$j,
      Index:$queries, Index:$keys, Variadic<AnyMemRef>:$grads,
      Variadic<AnyType>:$captures,
      DefaultValuedOptionalAttr<DenseI64ArrayAttr, "{}">:$wanted, UnitAttr:$transposed);
  let regions = (region SizedRegion<1>:$gradient);
  let assemblyFormat = [{
    $w `,` $t `rows` $rows `columns` $columns
    `at` `(` $batch `,` $head `,` $i `,` $j `)` `of` `(` $queries `,` $keys `)`
    (`grads` `(` $grads^ `of` $wanted `:` type($grads) `)`)?
    custom<GradientRegion>($gradient, $captures, type($captures))
    (`transposed` $transposed^)? attr-dict `:` type($w) `,` type($i) `,` type($j)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The gradient that `op` of the region adds to; null where none is wanted.
    ::mlir::Value getGradOf(::burst::ContributeOp op);
  }];
}

#endif // BURST_DIALECT_TILE_GRADIENTOPS_TD
