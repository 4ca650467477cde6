//===- RingOps.td - operations of the ring dialect ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_RING_RINGOPS_TD
#define BURST_DIALECT_RING_RINGOPS_TD

include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/LoopLikeInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialect/Burst/BurstInterfaces.td"
include "dialect/Ring/RingAttrs.td"
include "dialect/Ring/RingDialect.td"
include "dialect/Ring/RingInterfaces.td"

class Ring_Op<string mnemonic, list<Trait> traits = []>
    : Op<Ring_Dialect, mnemonic, traits>;

class Ring_Shaped<list<Type> elements, list<int> ranks>
    : AnyTypeOf<[TensorRankOf<elements, ranks>, MemRefRankOf<elements, ranks>]>;
def Ring_ShardTensor : Ring_Shaped<[F64, F32, BF16, F16], [4]>;
def Ring_OutTensor : Ring_Shaped<[F64, F32], [4]>;
def Ring_RowTensor : Ring_Shaped<[F64, F32], [3]>;
def Ring_Gradient : Ring_Shaped<[F64, F32], [1, 2, 3, 4]>;
/// Flags of segments by owner, turn and segment, and of pairs of segments by
/// owner of the queries, owner of the keys, and segment of either.
def Ring_SegmentTable : Ring_Shaped<[I1], [3]>;
def Ring_PairTable : Ring_Shaped<[I1], [4]>;
def Ring_Tensor : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef]>;

/// What a step reads and writes where its operands are buffers.
defvar Ring_StepEffects = [{
  void $cppClass::getEffects(
      ::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance> &effects) {
    addStepEffects(*this, effects);
  }
}];

/// A step of which every result is tied to an operand; see StepOpInterface.
class Ring_UpdatingOp<string mnemonic, list<Trait> traits = []>
    : Ring_Op<mnemonic, traits # [
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<Ring_StepOpInterface, ["getContent"]>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let extraClassDefinition = Ring_StepEffects;
}

/// A step whose results have memory of their own.
class Ring_MakingOp<string mnemonic, list<string> methods = [],
                    list<Trait> traits = []>
    : Ring_Op<mnemonic, traits # [
        DeclareOpInterfaceMethods<Ring_StepOpInterface, methods>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let extraClassDefinition = Ring_StepEffects;
}

/// What is a step in which queries and keys meet; see AttendLikeOpInterface.
defvar Ring_AttendLikeTraits = [
    AttrSizedOperandSegments, Burst_FixedSegments, IsolatedFromAbove,
    Ring_AttendLikeOpInterface,
    DeclareOpInterfaceMethods<OpAsmOpInterface,
        ["getAsmBlockArgumentNames", "getAsmResultNames"]>];
class Ring_AttendLikeOp<string mnemonic, list<Trait> traits = []>
    : Ring_UpdatingOp<mnemonic, traits # Ring_AttendLikeTraits>;

/// What transfers touch: no pass moves one over another, or into control flow
/// in which ranks differ.
def Ring_Channel : Resource<"::burst::ring::ChannelResource">;

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

def Ring_SegmentOp : Ring_Op<"segment", [
    Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a segment of what an owner holds";
  let description = [{
    Segment `index` of `layout` for `owner`, of `extent` positions in all:
    x in [0, count) has the position `begin + x / block * step + x mod block`.
    `end` is one past the largest position (`begin` where the segment is empty).

    **Constraints:** (C1) `index`, where it is known, is in [0, number of segments
    of the layout). A run ends with an error where it is not.

    Example:

    ```mlir
    %begin, %end, %count, %step, %block =
        ring.segment %i of <zigzag over 8>[%owner] extent %sk
    ```
  }];
  let arguments = (ins Index:$index, Ring_LayoutAttr:$layout, Index:$owner, Index:$extent);
  let results = (outs Index:$begin, Index:$end, Index:$count, Index:$step, Index:$block);
  let assemblyFormat = [{
    $index `of` $layout `` `[` $owner `]` `extent` $extent attr-dict
  }];
  let builders = [
    OpBuilder<(ins "int64_t":$index, "::burst::ring::LayoutAttr":$layout,
                   "::mlir::Value":$owner, "::mlir::Value":$extent)>,
  ];
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Softmax state
//===----------------------------------------------------------------------===//

def Ring_InitOp : Ring_MakingOp<"init", ["getSizeSource", "getContent"],
                                [SameVariadicResultSize]> {
  let summary = "the state of queries that have attended nothing";
  let description = [{
    o = 0, m = -inf, l = 0, of the query's batch, sequence and heads. On buffers
    the state is written `into` three of them.

    **Constraints:** (C1) state shapes are those of the query, see the dialect;
    the state type is f64 for f64 queries, else f32.

    Example:

    ```mlir
    %o, %m, %l = ring.init %q : tensor<1x256x4x64xbf16>
        -> tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
    ring.init %qb into %ob, %mb, %lb : memref<1x256x4x64xbf16>,
        memref<1x256x4x64xf32>, memref<1x4x256xf32>, memref<1x4x256xf32>
    ```
  }];
  let arguments = (ins Ring_ShardTensor:$query, Variadic<AnyMemRef>:$into);
  let results = (outs Optional<Ring_OutTensor>:$o, Optional<Ring_RowTensor>:$m,
                      Optional<Ring_RowTensor>:$l);
  let assemblyFormat = [{
    $query (`into` $into^)? attr-dict `:`
    custom<InitTypes>(type($query), type($into), type($o), type($m), type($l))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// o, m and l: the results, or the buffers that are written.
    ::mlir::ValueRange getState() {
      return getNumResults() ? ::mlir::ValueRange(getResults())
                             : ::mlir::ValueRange(getInto());
    }
    std::optional<::mlir::MutableOperandRange> getResultMemory() {
      return getIntoMutable();
    }
  }];
}

def Ring_AttendOp : Ring_MakingOp<"attend",
    ["getTiedOperand", "getResultMemory", "getSizeSource", "getContent", "isOnlyRead"],
    Ring_AttendLikeTraits> {
  let summary = "queries attend a slice of keys and values";
  let description = [{
    Merges into the state (o, m, l) of the query shard all pairs of its
    positions with the positions of the slice, for which the mask holds:

    ```
    s  = score(scale * q k^T, ...) where mask(...), else -inf
    m' = max(m, max_j s)       p = exp(s - m')       a = exp(m - m')
    l' = a l + sum_j p         o' = a o + p v        (0 where m' = -inf)
    ```

    `first` stands in the place of the state where there is none yet: the op begins
    as `ring.init` does. With `last` it ends as `ring.finalize` does, and gives out
    and lse in place of a state. With both, nobody sees a state.

    The query shard is that of `queryOwner` in `queryLayout`, the slice, a pair (key,
    value), that of `keyOwner` in `keyLayout`. Positions that mask, score and bounds
    see are the global ones. The regions are those of
    `burst.attention`. On buffers the state is updated in place; what begins or ends
    with the op is written `into` buffers: o, m and l, or out and lse, which may be
    o and m. Regions see captured buffers as the tensors that they hold.

    `offsets (%b of %batches, %h of %heads)`, where given, are the global numbers
    of the first batch and of the first query head of these tensors, and how many
    there are of each in all: what the regions see is counted from there. Without
    them batches and heads are all there are.

    `pairs`, where given, is a table of flags by owner of the queries, owner of the
    keys, segment of the query layout and segment of the key layout: a pair whose
    flag is false is not computed, and a segment of the slice that occurs in no
    computed pair is not read.

    **Constraints:**
    - (C1) query, key, value, state and results have shapes and types as in
      `burst.attention`, `ring.init` and `ring.finalize`; both layouts have as many
      parts. The owner of what is gathered is 0.
    - (C2) no `pairs`, or a table of owners x owners x segments of the query layout x
      segments of the key layout.
    - (C3) regions are as in `burst.attention`.
    - (C4) on buffers, `into` are o, m and l with `first` alone, out and lse with
      `last`, else nothing.
    - (C5) `offsets` are four indices, or none.

    Example:

    ```mlir
    %o1, %m1, %l1 = ring.attend %q at <zigzag over 8>[%r] extent %sq
        slice (%k, %v at %owner) of <zigzag over 8> extent %sk
        state %o0, %m0, %l0 scale 0.125
        : (tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>)
        -> (tensor<1x256x4x64xf32>, tensor<1x4x256xf32>)
    %out, %lse = ring.attend %q at <zigzag over 1>[%r] extent %sq
        slice (%k, %v at %r) of <zigzag over 1> extent %sk first last scale 0.125
        : (tensor<1x256x4x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>)
        -> (tensor<1x256x4x64xbf16>, tensor<1x4x256xf32>)
    ```
  }];
  let arguments = (ins Ring_ShardTensor:$query, Index:$queryOwner, Index:$queryExtent,
      Ring_ShardTensor:$key, Ring_ShardTensor:$value, Index:$keyOwner,
      Index:$keyExtent, Optional<Ring_OutTensor>:$o,
      Optional<Ring_RowTensor>:$m, Optional<Ring_RowTensor>:$l,
      Variadic<Index>:$offsets, Optional<Ring_PairTable>:$pairs, Variadic<AnyType>:$maskCaptures,
      Variadic<AnyType>:$scoreCaptures, Variadic<AnyMemRef>:$into,
      Ring_LayoutAttr:$queryLayout, Ring_LayoutAttr:$keyLayout, F64Attr:$scale,
      UnitAttr:$last);
  let results = (outs Variadic<AnyTypeOf<[Ring_ShardTensor, Ring_RowTensor]>>:$made);
  let regions = (region AnyRegion:$mask, AnyRegion:$score, AnyRegion:$bounds);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {7, 8, 9, 10, 11, 12, 13, 14};
    ::mlir::FloatType getStateType();
    bool isFirst() { return !getO(); }
    bool isLast() { return getLast(); }
    /// o, m and l, or none.
    ::mlir::MutableOperandRange getStateMutable() {
      return {*this, getODSOperandIndexAndLength(7).first, isFirst() ? 0u : 3u};
    }
    ::mlir::OperandRange getState() { return getStateMutable(); }
    /// Result `index`, or the buffer that it is written to.
    ::mlir::Value getMade(unsigned index) {
      if (getNumResults())
        return getResult(index);
      return getInto().empty() ? getState()[index] : getInto()[index];
    }
  }];
}

def Ring_MergeOp : Ring_UpdatingOp<"merge", [
    SameVariadicOperandSize, SameVariadicResultSize]> {
  let summary = "merges the states of disjoint sets of keys";
  let description = [{
    In the segments that are flagged, else the first state:

    ```
    m = max(m1, m2)    a_i = exp(m_i - m), 0 where m_i = -inf
    l = a_1 l1 + a_2 l2              o = a_1 o1 + a_2 o2
    ```

    Both are states of the queries of `owner`. `segments`, where given, is a table
    as in `ring.start`, of which the row of `owner` and `turn` is meant, else all
    segments are merged; of others the second state is not read. On
    buffers the first state becomes the merged one.

    **Constraints:** (C1) both states have one shape and type. (C2) no `segments`,
    or a `turn` and a table as in `ring.start`; the layout is not gathered.

    Example:

    ```mlir
    %o, %m, %l = ring.merge (%o1, %m1, %l1) with (%o2, %m2, %l2)
        of <zigzag over 8>[%owner] extent %sq
        segments(%arrived[%turn] : tensor<8x9x2xi1>)
        : tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
    ```
  }];
  let arguments = (ins Ring_OutTensor:$o1, Ring_RowTensor:$m1, Ring_RowTensor:$l1,
                       Ring_OutTensor:$o2, Ring_RowTensor:$m2, Ring_RowTensor:$l2,
                       Index:$owner, Index:$extent,
                       Optional<Ring_SegmentTable>:$segments, Optional<Index>:$turn,
                       Ring_LayoutAttr:$layout);
  let results = (outs Optional<Ring_OutTensor>:$o, Optional<Ring_RowTensor>:$m,
                      Optional<Ring_RowTensor>:$l);
  let assemblyFormat = [{
    `(` $o1 `,` $m1 `,` $l1 `)` `with` `(` $o2 `,` $m2 `,` $l2 `)`
    `of` $layout `` `[` $owner `]` `extent` $extent
    `` custom<Segments>($segments, type($segments), $turn) attr-dict `:`
    custom<MergeTypes>(type($o1), type($m1), type($l1), type($o2), type($m2),
                       type($l2), type($o), type($m), type($l))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The state that becomes the merged one, and the other.
    ::mlir::OperandRange getInto() { return getOperands().take_front(3); }
    ::mlir::OperandRange getFrom() { return getOperands().slice(3, 3); }
    ::mlir::MutableOperandRange getDpsInitsMutable() { return {*this, 0, 3}; }
  }];
}

def Ring_FinalizeOp : Ring_MakingOp<"finalize",
    ["getTiedOperand", "getSizeSource", "getContent", "isOnlyRead"],
    [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the attention of a state";
  let description = [{
    out = o / l rounded to the element type of `out`, lse = m + log l; where
    nothing was attended (l = 0), out = 0 and lse = -inf. A third result, where there
    is one, is m itself: the largest score of each row, -inf where there is none. On
    buffers they are written `into` two or three of them, which may be o, m and l.

    **Constraints:** (C1) out has the shape of o, the others that of m; the state type
    is f64 for f64 results, else f32.

    Example:

    ```mlir
    %out, %lse = ring.finalize %o, %m, %l
        : tensor<1x256x4x64xf32>, tensor<1x4x256xf32> -> tensor<1x256x4x64xbf16>
    %out, %lse, %max = ring.finalize %o, %m, %l
        : tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
        -> tensor<1x256x4x64xbf16>, tensor<1x4x256xf32>, tensor<1x4x256xf32>
    ```
  }];
  let arguments = (ins Ring_OutTensor:$o, Ring_RowTensor:$m, Ring_RowTensor:$l,
                       Variadic<AnyMemRef>:$into);
  let results = (outs Variadic<AnyTypeOf<[Ring_ShardTensor, Ring_RowTensor]>>:$given);
  let assemblyFormat = [{
    $o `,` $m `,` $l (`into` $into^)? attr-dict `:`
    custom<FinalizeTypes>(type($o), type($m), type($l), type($into), type($given))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// out, lse and maybe the largest scores: the results, or the buffers that are
    /// written.
    ::mlir::ValueRange getMade() {
      return getNumResults() ? ::mlir::ValueRange(getResults())
                             : ::mlir::ValueRange(getInto());
    }
    bool hasMaxScores() { return getMade().size() == 3; }
    std::optional<::mlir::MutableOperandRange> getResultMemory() {
      return getIntoMutable();
    }
  }];
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

include "dialect/Ring/GradientOps.td"

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

include "dialect/Ring/HeadsOps.td"
include "dialect/Ring/TransferOps.td"
include "dialect/Ring/RotateOp.td"
include "dialect/Ring/GatherOp.td"

//===----------------------------------------------------------------------===//
// What a run is refused for
//===----------------------------------------------------------------------===//

def Ring_RequireOp : Ring_Op<"require"> {
  let summary = "ends the run where a number is too small";
  let description = [{
    Nothing happens where `found >= wanted`, as signed numbers. Else the run of
    this rank ends with an error that says what was too small, the number found
    and the number wanted. Plan and proof, which may not know the sizes of tables
    that only scores read, take it for granted.

    It is no pure op: where it stands, nothing behind it is run first.

    **Constraints:** (C1) `what` is not empty and has no zero byte.

    Example:

    ```mlir
    ring.require %size at least %sk, "size of dimension 0 of ids"
    ```

    Lifespan: made by `burst-check-tables`.
  }];
  let arguments = (ins Index:$found, Index:$wanted, StrAttr:$what);
  let assemblyFormat = "$found `at` `least` $wanted `,` $what attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Stored scores
//===----------------------------------------------------------------------===//

include "dialect/Ring/baselines/ScoreOps.td"

#endif // BURST_DIALECT_RING_RINGOPS_TD
