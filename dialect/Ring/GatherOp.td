//===- GatherOp.td - shards of all ranks at once ------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_RING_GATHEROP_TD
#define BURST_DIALECT_RING_GATHEROP_TD

def Ring_GatherOp : Ring_Op<"gather", [
    AttrSizedOperandSegments, Burst_FixedSegments, SingleBlock,
    MemoryEffects<[MemRead<Ring_Channel>, MemWrite<Ring_Channel>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    Ring_CollectiveOpInterface]> {
  let summary = "computes with the shards of all ranks, which are gathered";
  let description = [{
    What strategies write in place of an all-gather and of the way back. The
    `tensors`, shards of `rank`, are gathered from all ranks; on each rank the
    region runs once. Of each tensor, dimension `dims[i]` has `extent` positions in
    all, laid out as `layout` says; what is gathered is laid out as `<..., all>` of
    it.

    The region has as arguments the gathered tensors, and one fresh *partial
    result* per partial. It yields values, and the partial results, of which each
    is this rank's part of what belongs to the shards of all owners. Results are
    the values as they are, and the partial results of the shards of `rank`, joined
    over all ranks as those of `ring.rotate` are: added or merged, in the order of
    the distance of the ranks. `partialDims` are the dimensions of partials that
    are laid out as `layout` says.

    `segments`, where given, says what is needed where, as in `ring.start`: of
    segment s of owner o, rank (o + d) mod P takes part where `segments[o][d][s]`
    is true. It must be the same on all ranks, and true where d = 0.

    Transfers are those of the channel's grid: shards go by channel `index`, partial
    results by the next. It is no op that runs: `ring-lower-gather` writes the
    transfers, of which the proof is made.

    **Constraints:**
    - (C1) at least one tensor, none of them gathered; `dims` has a dimension of
      each.
    - (C2) arguments of the region are the gathered tensors, of the types of
      `tensors` but for the size of `dims[i]`, and the partial results; it yields
      values, then what has the types of the partial results. The op gives the
      values, and partial results of the same types but for the size of
      `partialDims`.
    - (C3) `partialDims` has a dimension of each partial result: at most one per
      tensor with `add`, three with `merge`.
    - (C4) `segments` is a table of parts x parts x segments of the layout.
    - (C5) the channel's grid exists, is static, and has its axes: it connects as
      many ranks as `layout` has parts.

    Example:

    ```mlir
    %out, %lse = ring.gather (%k, %v dims [1, 1]) of <zigzag over 4>[%r]
        extent %sk channel <@cp, 0>
        : (tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>)
        -> (tensor<1x64x4x16xf32>, tensor<1x4x64xf32>) {
    ^bb0(%keys: tensor<1x256x2x16xf32>, %values: tensor<1x256x2x16xf32>):
      %0:2 = ring.attend %q at <zigzag over 4>[%r] extent %sq
          slice (%keys, %values at %c0) of <zigzag over 4, all> extent %sk
          first last scale 0.25
          : (tensor<1x64x4x16xf32>, tensor<1x256x2x16xf32>,
             tensor<1x256x2x16xf32>)
          -> (tensor<1x64x4x16xf32>, tensor<1x4x64xf32>)
      ring.yield %0#0, %0#1 : tensor<1x64x4x16xf32>, tensor<1x4x64xf32>
    }
    ```

    Lifespan: made by `burst-lower-to-ring`, removed by `ring-lower-gather`.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$tensors, Index:$rank, Index:$extent,
      Optional<TensorRankOf<[I1], [3]>>:$segments,
      DenseI64ArrayAttr:$dims, Ring_LayoutAttr:$layout, Ring_ChannelAttr:$channel,
      OptionalAttr<Ring_JoinAttr>:$join,
      OptionalAttr<DenseI64ArrayAttr>:$partialDims);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $tensors `dims` custom<Dims>($dims) `)` `of` $layout `` `[` $rank `]`
    `extent` $extent `channel` $channel
    (`segments` `(` $segments^ `:` type($segments) `)`)?
    (`partial` $join^ `dims` custom<Dims>($partialDims))?
    attr-dict `:` functional-type($tensors, $results) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {0, 3};
    size_t getNumPartials() {
      return getPartialDims() ? getPartialDims()->size() : 0;
    }
    ::mlir::Value getBroughtOwner() { return {}; }
    /// Of all ranks.
    ::mlir::ValueRange getBrought() {
      return getBody().getArguments().take_front(getTensors().size());
    }
    /// Of this rank, for the shards of all owners.
    ::mlir::ValueRange getPartials() {
      return getBody().getArguments().drop_front(getTensors().size());
    }
    ::mlir::ValueRange getPartialResults() {
      return ::mlir::ValueRange(getResults()).take_back(getNumPartials());
    }
  }];
}

#endif // BURST_DIALECT_RING_GATHEROP_TD
