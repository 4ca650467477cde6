//===- RotateOp.td - shards that go round the ranks --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_RING_ROTATEOP_TD
#define BURST_DIALECT_RING_ROTATEOP_TD

def Ring_RotateOp : Ring_Op<"rotate", [
    AttrSizedOperandSegments, Burst_FixedSegments, SingleBlock,
    MemoryEffects<[MemRead<Ring_Channel>, MemWrite<Ring_Channel>]>,
    DeclareOpInterfaceMethods<LoopLikeOpInterface, [
        "getRegionIterArgs", "getYieldedValuesMutable", "getLoopResults"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    Ring_CollectiveOpInterface]> {
  let summary = "computes with the shards of all ranks, which travel past";
  let description = [{
    What strategies write in place of loops and transfers. The `tensors`, shards of
    `rank`, go round the ring; on each rank the region runs once per owner, from
    `rank` itself on, with the shards of that owner. Of each tensor, dimension
    `dims[i]` has `extent` positions in all, laid out as `layout` says.

    Owners of the shards of neighbours in the ring are `stride` apart, 1 unless it is
    given. A ring of fewer ranks than the layout has parts is one of a *nest*, in
    which a rotate stands in the region of another: of 4 x 8 ranks, a ring of 4 with
    stride 8 takes shards from node to node, and for each of them a ring of 8 with
    stride 1 takes those of the node round it. `rank` of the inner one is the owner
    that the outer one brings.

    The region has as arguments the owner, its shards, the values that are
    *carried* from turn to turn on this rank, and one fresh *partial result* per
    partial. It yields the carried values and the partial results, of which each
    is this rank's part of what belongs to the owner's shards. Results are the
    carried values behind the last turn, and the partial results of the shards of
    `rank`, joined over all ranks:

    - with `add`, partial i is a gradient by tensor i, begun as `ring.zero` of it,
      and partials are added (`ring.add`);
    - with `merge`, the partials are the softmax state of tensor 0, begun as
      `ring.init` of it, and are merged (`ring.merge`).

    `partialDims` are the dimensions of partials that are laid out as `layout` says.
    They are joined in the order of the ring, so that results do not depend on
    timing.

    `reach` and `step`, where given, say how far segments travel: segment s of owner
    o goes `reach[o][s]` hops, from each rank r to (r + step) mod P; `step` is 1 or
    P - 1. Else all segments go round in steps of 1. They must be the same on all
    ranks. In a nest P is that of the ring, and rings may differ: `reach[o][ring][s]`
    is what holds in one of them, which `ring` numbers in the order of their ranks.

    Where it is `direct`, shards do not pass through ranks: each comes from its owner,
    those of the rank so many places behind in the turn of that number, and partial
    results return straight to the owner. `segments`, where given, is a table of flags
    by owner, turn and segment: segment s of owner o goes to the rank that is d places
    ahead where `segments[o][d][s]` is true, else all do. It is the same on all ranks.

    Where it is `bidirectional`, shards go round in both directions at once, and each
    turn computes with one from either side: in ceil((P - 1) / 2) turns all have come,
    where P - 1 of one direction would do. From its owner a shard goes
    floor((P - 1) / 2) ranks ahead, at most, and floor(P / 2) ranks back. A reach is
    then `reach[o][way][s]`, way 0 ahead and way 1 back, and there is no step.

    Transfers are those of the channel's grid: shards go by channel `index`, partial
    results by the next; those that go back in a bidirectional one by `index` + 3 and
    the next. Rings of a nest have channels of different numbers. It is no
    op that runs: `ring-lower-rotate` writes the loop
    and its transfers, of which the proof is made.

    **Constraints:**
    - (C1) at least one tensor, none of them gathered; `dims` has a dimension of
      each.
    - (C2) arguments of the region are the owner, and have the types of tensors,
      `inits` and partial results; it yields, and the op gives, what has the types
      of `inits` and partial results.
    - (C3) `partialDims` has a dimension of each partial result: at most one per
      tensor with `add`, three with `merge`.
    - (C4) `reach` and `step` are given both or neither; `reach` is a table of parts x
      segments of the layout, or, where `ring` is given, of parts x rings x segments.
      Of a bidirectional one it is of parts x 2 x segments, without a step.
    - (C5) the channel's grid exists, is static, and has its axes: `stride` times the
      ranks that it connects divides the parts of `layout`; they are as many as the
      parts but in a nest.
    - (C6) with `direct` there is no reach, and the ring is all of the layout; only then
      there are `segments`, parts x parts x segments of the layout.
    - (C7) a bidirectional one is neither direct nor of a nest.

    Example, a backward pass in which keys and values travel:

    ```mlir
    %dq, %dk, %dv = ring.rotate (%k, %v dims [1, 1]) of <zigzag over 8>[%r]
        extent %sk channel <@cp, 0> carry(%dq0 : tensor<1x32x2x16xf32>)
        partial add dims [1, 1]
        : (tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>)
        -> (tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>) {
    ^bb0(%owner: index, %kt: tensor<1x32x2x16xf32>, %vt: tensor<1x32x2x16xf32>,
         %dqt: tensor<1x32x2x16xf32>, %dkt: tensor<1x32x2x16xf32>,
         %dvt: tensor<1x32x2x16xf32>):
      %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %r) of <zigzag over 8>
          extent %sq slice (%kt, %vt at %owner) of <zigzag over 8> extent %sk
          into %dqt, %dkt, %dvt scale 0.25
          : (tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>, tensor<1x2x32xf32>,
             tensor<1x2x32xf32>, tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>)
          -> (tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>)
      ring.yield %0#0, %0#1, %0#2 : tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>,
          tensor<1x32x2x16xf32>
    }
    ```

    Lifespan: made by `burst-lower-to-ring`, removed by `ring-lower-rotate`.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$tensors, Index:$rank, Index:$extent,
      Optional<TensorRankOf<[Index], [2, 3]>>:$reach, Optional<Index>:$ring,
      Optional<Index>:$step, Optional<Ring_SegmentTable>:$segments,
      Variadic<AnyType>:$inits, DenseI64ArrayAttr:$dims, UnitAttr:$direct,
      UnitAttr:$bidirectional,
      Ring_LayoutAttr:$layout, Ring_ChannelAttr:$channel,
      DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$stride,
      OptionalAttr<Ring_JoinAttr>:$join,
      OptionalAttr<DenseI64ArrayAttr>:$partialDims);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $tensors `dims` custom<Dims>($dims) `)` `of` $layout `` `[` $rank `]`
    `extent` $extent `channel` $channel (`stride` $stride^)?
    (`direct` $direct^)? (`bidirectional` $bidirectional^)? (`segments` `(` $segments^ `:` type($segments) `)`)?
    `` custom<Reach>($reach, type($reach), $ring, $step)
    (`carry` `(` $inits^ `:` type($inits) `)`)?
    (`partial` $join^ `dims` custom<Dims>($partialDims))?
    attr-dict `:` functional-type($tensors, $results) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {0, 3, 4, 5, 6, 7};
    /// Shape of the reach, where there is one.
    ::llvm::LogicalResult verifyReach();
    /// How many ranks its ring has.
    int64_t getNumRanks();
    /// How far shards of a bidirectional one go ahead, and back.
    std::pair<int64_t, int64_t> getFarthest() {
      return {(getNumRanks() - 1) / 2, getNumRanks() / 2};
    }
    /// How many owners it takes until those of the next ring with the same place
    /// in theirs come.
    int64_t getBlock() { return static_cast<int64_t>(getStride()) * getNumRanks(); }
    /// Whether a rotate stands in its region.
    bool isOuter() { return !getBody().getOps<RotateOp>().empty(); }
    ::mlir::Value getOwner() { return getBody().getArgument(0); }
    ::mlir::Value getBroughtOwner() { return getOwner(); }
    ::mlir::ValueRange getBrought() {
      return getBody().getArguments().slice(1, getTensors().size());
    }
    ::mlir::ValueRange getCarried() { return getRegionIterArgs(); }
    /// Of this rank, for the shards of an owner.
    ::mlir::ValueRange getPartials() {
      return getBody().getArguments().drop_front(1 + getTensors().size() +
                                                 getInits().size());
    }
    ::mlir::ValueRange getPartialResults() {
      return ::mlir::ValueRange(getResults()).drop_front(getInits().size());
    }
  }];
}

def Ring_YieldOp : Ring_Op<"yield", [
    Pure, Terminator, ParentOneOf<["RotateOp", "GatherOp"]>]> {
  let summary = "what a turn of ring.rotate, or ring.gather, gives";
  let description = [{
    Gives the carried values to the next turn, and the partial results of the
    owner's shards. See `ring.rotate` and `ring.gather`.

    Example: `ring.yield %state, %dk, %dv : tensor<1x32x2x16xf32>,
    tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>`
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif // BURST_DIALECT_RING_ROTATEOP_TD
