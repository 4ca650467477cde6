//===- BurstOps.td - operations of the burst dialect --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_BURST_BURSTOPS_TD
#define BURST_DIALECT_BURST_BURSTOPS_TD

include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialect/Burst/BurstAttrs.td"
include "dialect/Burst/BurstDialect.td"

class Burst_Op<string mnemonic, list<Trait> traits = []>
    : Op<Burst_Dialect, mnemonic, traits>;

def Burst_QueryTensor : TensorRankOf<[F64, F32, BF16, F16], [4]>;
def Burst_StateTensor : TensorRankOf<[F64, F32], [3]>;

def Burst_AttentionOp : Burst_Op<"attention", [
    Pure, AttrSizedOperandSegments, Burst_FixedSegments, IsolatedFromAbove,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames",
                                                "getAsmResultNames"]>,
    DeclareOpInterfaceMethods<Burst_AttentionInterface, ["getSharded"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "attention over global tensors, and how it is sharded";
  let description = [{
    With i, j, h, b global indices of query, key, query head and batch, and g =
    Hq / Hkv:

    ```
    s[b,h,i,j] = score(scale * sum_d query[b,i,h,d] * key[b,j,h/g,d], b, h, i, j)
    lse[b,h,i] = log sum_j exp(s[b,h,i,j])              over j where mask(b, h, i, j)
    out[b,i,h] = sum_j exp(s[b,h,i,j] - lse[b,h,i]) * value[b,j,h/g]
    max_scores[b,h,i] = max_j s[b,h,i,j]                over the same j
    ```

    A row that sees no key has `out` = 0, `lse` = -inf and `max_scores` = -inf.
    `max_scores` is given where there is a third result: it is read off the state of
    the online softmax and costs no pass over the scores. It is NaN where a score is
    and none is +inf. The largest score of a head
    (QK-clip, of Kimi Team, arXiv 2507.20534, asks for it) is the largest of its rows.

    `mask` and `score` are regions over scalars, or names that stand for such
    regions (`burst-expand-names` expands them). A region gets its arguments by
    position and then what it captures:

    | region | arguments | yields |
    |---|---|---|
    | `mask` | b, h, i, j, Sq, Sk : index | i1: keep the pair |
    | `score` | s : state type; b, h, i, j, Sq, Sk : index | the new s |
    | `bounds` | b0, b1, h0, h1, i0, i1, j0, j1, Sq, Sk : index; the captures of `mask` | i1, i1: in this (half-open, not empty) box, *may* any pair be kept, *must* every pair be kept |

    The state type is f64 for f64 operands and f32 for all others. Captured
    values are scalars or tables (ranked tensors up to rank 4) and are the same
    on every rank. `bounds` is derived from `mask` by `burst-derive-bounds`;
    without it every pair may be kept.

    `scale` is 1 / sqrt(Dqk) when left out. The score region sees the scaled
    score. Kernels compute exp(x) as 2^(x log2 e), so that a score beyond the
    largest number of the state type / log2 e, 2.36e38 for f32, is infinite: a
    bias of `torch.finfo(torch.float32).min` rules a pair out as -inf does.

    Regions have a value for every pair, also where `arith` leaves an op
    undefined:

    | op | meaning in a region |
    |---|---|
    | integers | wrap at their width; `index` has 64 bits |
    | x / 0, x rem 0 of integers | 0, x (also `floordivsi`, `ceildivsi`, `ceildivui`) |
    | least / -1, least rem -1 | the least integer, 0 |
    | shifts by the width or more | zeros, or copies of the sign (`shrsi`) |
    | `fptosi`, `fptoui` | round toward zero and saturate; NaN gives 0 |
    | `tensor.extract` | indices are clamped into the table |
    | `overflow`, `exact`, `fastmath` | are dropped, with a remark |
    | `sitofp`, `uitofp` to 16 bits | round to f32 first |
    | arithmetic in 16-bit floats | is done in f32 and rounded |
    | arithmetic in f32 | is rounded to f32 in masks |
    | `minimumf`, `maximumf` | NaN stays, and -0 is less than +0 |
    | `minnumf`, `maxnumf` | never give -0 |
    | `bitcast` and the sign of a NaN | the quiet NaN, positive |

    An op that is undefined for every pair, as far as the ranges of its operands
    show, is refused; so is a table that is too small for what indexes it
    (`burst-check-tables`).

    **Constraints:**
    - (C1) query is (B, Sq, Hq, Dqk), key (B, Sk, Hkv, Dqk), value (B, Sk, Hkv, Dv),
      out (B, Sq, Hq, Dv), lse and max_scores (B, Hq, Sq); B, Sq, Sk may be
      dynamic, in the results where no operand says them.
    - (C2) Hq is a multiple of Hkv; heads and head dims are static; head dims
      are in [1, 256].
    - (C3) query, key, value and out have one element type, lse and max_scores the
      state type.
    - (C4) names and a region exclude each other, per mask and per score; names
      get the tables they take.
    - (C5) regions have one block of side-effect free ops of `arith`, `math` and
      `tensor.extract` on scalars, with the arguments and results of the table.
      They make integers of 1 to 64 bits, indices, f16, bf16, f32 and f64. Of
      `arith` and `math` all ops are admitted but those of more than one result,
      `math.isnan` and its like, `math.clampf`, `math.ipowi` and counts of bits,
      in whose place the error names another op. Floats of 16 bits are computed
      with as f32: only `arith.truncf` rounds to them.
    - (C6) captures are scalars, or tables of scalars of rank 1 to 4. A scalar
      is an index, an integer of 1 to 64 bits or a float of at most 64 bits.
    - (C7) the grid of `sequence` exists, is static and has the named axes; those
      of `heads` and `batch`, which need a `sequence`, are others of the same grid,
      and every axis with more than one rank belongs to one of the three.
    - (C8) `scale` is finite, and in magnitude no larger than the largest score.

    Example:

    ```mlir
    %o, %lse = burst.attention %q, %k, %v
        mask(%b, %h, %i, %j, %sq, %sk, %id = %ids : tensor<512xi32>) {
          %x = tensor.extract %id[%i] : tensor<512xi32>
          %y = tensor.extract %id[%j] : tensor<512xi32>
          %same = arith.cmpi eq, %x, %y : i32
          burst.yield %same : i1
        }
        score softcap<30.0>
        scale 0.125
        sequence <@cp, striped 64>
        : (tensor<1x512x4x64xf32>, tensor<1x512x2x64xf32>, tensor<1x512x2x64xf32>)
        -> (tensor<1x512x4x64xf32>, tensor<1x4x512xf32>)
    ```

    Lifespan: written by users; `burst-lower-to-ring` removes it.
  }];
  let arguments = (ins Burst_QueryTensor:$query, Burst_QueryTensor:$key,
      Burst_QueryTensor:$value, Variadic<AnyType>:$maskCaptures,
      Variadic<AnyType>:$scoreCaptures, OptionalAttr<ArrayAttr>:$maskNames,
      OptionalAttr<ArrayAttr>:$scoreNames, OptionalAttr<F64Attr>:$scale,
      OptionalAttr<Burst_SequenceAttr>:$sequence,
      OptionalAttr<Burst_AxesAttr>:$heads, OptionalAttr<Burst_AxesAttr>:$batch,
      OptionalAttr<Burst_StrategyAttr>:$strategy);
  let results = (outs Burst_QueryTensor:$out, Burst_StateTensor:$lse,
                      Optional<Burst_StateTensor>:$maxScores);
  let regions = (region AnyRegion:$mask, AnyRegion:$score, AnyRegion:$bounds);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {3, 4};
    /// Whether `max_scores` is a result that is used.
    bool givesMaxScores() {
      return getMaxScores() && !getMaxScores().use_empty();
    }
  }];
}

def Burst_AttentionBackwardOp : Burst_Op<"attention_backward", [
    Pure, AttrSizedOperandSegments, Burst_FixedSegments, IsolatedFromAbove,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames",
                                                "getAsmResultNames"]>,
    DeclareOpInterfaceMethods<Burst_AttentionInterface, ["getSharded"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "gradients of attention";
  let description = [{
    From the operands and results of a `burst.attention` with the same mask, score
    and scale, and from the gradients of a loss by `out` and (where given) by
    `lse`, the gradients by query, key and value:

    ```
    t[b,h,i,j]   = scale * sum_d query[b,i,h,d] * key[b,j,h/g,d]
    p[b,h,i,j]   = exp(score(t[b,h,i,j], b, h, i, j) - lse[b,h,i])
    delta[b,h,i] = sum_d out[b,i,h,d] * out_grad[b,i,h,d] - lse_grad[b,h,i]
    w[b,h,i,j]   = p[b,h,i,j] * (sum_d out_grad[b,i,h,d] * value[b,j,h/g,d] - delta[b,h,i])
    u[b,h,i,j]   = w[b,h,i,j] * (d score / d t)

    query_grad[b,i,h] = scale * sum_j     u[b,h,i,j] * key[b,j,h/g]
    key_grad[b,j,n]   = scale * sum_{h,i} u[b,h,i,j] * query[b,i,h]      over h/g = n
    value_grad[b,j,n] =         sum_{h,i} p[b,h,i,j] * out_grad[b,i,h]   over h/g = n
    ```

    over the pairs that the mask keeps (Dao et al., FlashAttention-2, algorithm
    2, with a score and a gradient of lse added). A row that sees no key has
    gradients 0 and gives none.

    `gradients [n, ...]` names captured tables of the score, counted from 0, whose
    gradients are wanted too: `sum w * (d score / d table[...])` for each element.
    On several ranks each rank gives the sum over its own pairs, in the state
    type: the gradient is the sum of the ranks' results.

    The regions are those of `burst.attention`, and one more, which
    `burst-derive-gradients` makes of the score:

    | region | arguments | yields |
    |---|---|---|
    | `gradient` | s (t) : state type; b, h, i, j, Sq, Sk : index; g (w) : state type; the captures of `score` | u : state type |

    Travelling and accumulated gradients are in the state type, and rounded once.

    **Constraints:**
    - (C1) query, key, value, out, lse are as in `burst.attention`; out_grad is
      like out, lse_grad like lse, and the gradients are like query, key and
      value; those by key and value may be in the state type.
    - (C2) `gradients` names tables of floats among the score's captures, each
      once, and gives tensors of their shapes in the state type.
    - (C3) all else is as in `burst.attention`.

    Example:

    ```mlir
    %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
        mask causal
        sequence <@cp, zigzag>
        strategy <ring_q>
        : (tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>,
           tensor<1x512x4x64xf32>, tensor<1x4x512xf32>, tensor<1x512x4x64xf32>)
        -> (tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>)
    ```

    Lifespan: written by users; `burst-lower-to-ring` removes it.
  }];
  let arguments = (ins Burst_QueryTensor:$query, Burst_QueryTensor:$key,
      Burst_QueryTensor:$value, Burst_QueryTensor:$out, Burst_StateTensor:$lse,
      Burst_QueryTensor:$outGrad, Optional<Burst_StateTensor>:$lseGrad,
      Variadic<AnyType>:$maskCaptures, Variadic<AnyType>:$scoreCaptures,
      OptionalAttr<ArrayAttr>:$maskNames, OptionalAttr<ArrayAttr>:$scoreNames,
      OptionalAttr<F64Attr>:$scale, OptionalAttr<Burst_SequenceAttr>:$sequence,
      OptionalAttr<Burst_AxesAttr>:$heads, OptionalAttr<Burst_AxesAttr>:$batch,
      OptionalAttr<Burst_StrategyAttr>:$strategy,
      OptionalAttr<DenseI64ArrayAttr>:$gradients);
  let results = (outs Burst_QueryTensor:$queryGrad, Burst_QueryTensor:$keyGrad,
      Burst_QueryTensor:$valueGrad, Variadic<AnyRankedTensor>:$captureGrads);
  let regions = (region AnyRegion:$mask, AnyRegion:$score, AnyRegion:$bounds,
                        AnyRegion:$gradient);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {6, 7, 8};
  }];
}

def Burst_YieldOp : Burst_Op<"yield", [Pure, Terminator]> {
  let summary = "what a mask, score or bounds region yields";
  let description = [{
    Example: `burst.yield %keep : i1`
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Burst_TableRangeOp : Burst_Op<"table_range", [
    Pure, AttrSizedOperandSegments, Burst_FixedSegments]> {
  let summary = "smallest and largest element of a box of a table";
  let description = [{
    The minimum and maximum, as signed integers, of the elements with
    `from[d] <= index[d] <= to[d]` for every dimension d. Indices are clamped
    into the table, and `to` to `from`: at least one element is always read. An
    i1 counts as -1 where true and 0 where false. Of an empty table the result
    is the whole range of i64.

    Bounds of masks that read tables are made of it.

    **Constraints:** (C1) the table, a tensor or a buffer, is of index or of
    integers of 1 to 64 bits, and has as many dimensions as there are indices on either side.

    Example:

    ```mlir
    %min, %max = burst.table_range %ids[%i0 to %i1] : tensor<512xi32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[AnyRankedTensor, AnyMemRef]>:$table,
                       Variadic<Index>:$from, Variadic<Index>:$to);
  let results = (outs I64:$min, I64:$max);
  let assemblyFormat = [{
    $table `[` $from `to` $to `]` attr-dict `:` type($table)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {1, 2};
  }];
}

def Burst_ContributeOp : Burst_Op<"contribute"> {
  let summary = "adds to the gradient of a captured table or scalar";
  let description = [{
    Part of a gradient region, which is what the score region is turned into for
    the backward pass: it adds `value`, in the state type, to the gradient of
    what the score region captures as `table`, at the indices at which the score
    reads it. A captured scalar has no indices. The gradient is no value of the
    region, so that the order of contributions is nobody's to rely on.

    **Constraints:**
    - (C1) `table` is an argument of the block in which the op stands.
    - (C2) it is a float, or a table of floats with as many dimensions as there
      are indices.

    Example:

    ```mlir
    burst.contribute %v to %bias[%i, %j] : f32, tensor<512x512xbf16>
    ```
  }];
  let arguments = (ins AnyTypeOf<[F64, F32]>:$value,
      Arg<AnyType, "whose gradient it is", [MemWrite]>:$table,
      Variadic<Index>:$indices);
  let assemblyFormat = [{
    $value `to` $table (`[` $indices^ `]`)? attr-dict
    `:` type($value) `,` type($table)
  }];
  let hasVerifier = 1;
}

def Burst_UnshardOp : Burst_Op<"unshard", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the global tensor whose shards the ranks hold";
  let description = [{
    A view of all ranks' shards as the one tensor they form: dimension `dim` of
    the result has `extent` positions, sharded over the ranks as `sequence` says.
    No data moves here: whoever lowers the attention in between decides what
    travels.

    **Constraints:**
    - (C1) types differ in dimension `dim` only; a constant extent is that of the
      result, and the shard's size is static only if every rank holds that many.
    - (C2) the grid exists, is static and has the named axes.

    Example:

    ```mlir
    %g = burst.unshard %local dim 1 extent %sq by <@cp, zigzag>
        : tensor<1x256x32x128xbf16> -> tensor<1x2048x32x128xbf16>
    ```

    Lifespan: made by `burst-partition`, removed by `burst-lower-to-ring`.
  }];
  let arguments = (ins AnyRankedTensor:$shard, Index:$extent, I64Attr:$dim,
                       Burst_SequenceAttr:$sequence);
  let results = (outs AnyRankedTensor:$global);
  let assemblyFormat = [{
    $shard `dim` $dim `extent` $extent `by` $sequence attr-dict
    `:` type($shard) `->` type($global)
  }];
}

def Burst_ShardOp : Burst_Op<"shard", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "this rank's shard of a global tensor";
  let description = [{
    The inverse of `burst.unshard`: the shard of this rank, as `sequence` says, of
    dimension `dim`. Constraints are those of `burst.unshard`.

    Example:

    ```mlir
    %l = burst.shard %g dim 2 by <@cp, zigzag>
        : tensor<1x32x2048xf32> -> tensor<1x32x256xf32>
    ```

    Lifespan: made by `burst-partition`, removed by `burst-lower-to-ring`.
  }];
  let arguments = (ins AnyRankedTensor:$global, I64Attr:$dim,
                       Burst_SequenceAttr:$sequence);
  let results = (outs AnyRankedTensor:$shard);
  let assemblyFormat = [{
    $global `dim` $dim `by` $sequence attr-dict `:` type($global) `->` type($shard)
  }];
}

#endif // BURST_DIALECT_BURST_BURSTOPS_TD
