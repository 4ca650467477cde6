//===- TransferOps.td - operations that communicate --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_RING_TRANSFEROPS_TD
#define BURST_DIALECT_RING_TRANSFEROPS_TD

def Ring_StartOp : Ring_Op<"start", [
    AttrSizedOperandSegments, Burst_FixedSegments, Ring_TransferOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "begins to send slices and to receive others";
  let description = [{
    Begins a transfer, of which `ring.wait` of the token gives what is received.
    Returns at once. Tensors under way must not change.

    Ranks are named by their places along the axes of the channel, owners by theirs
    along those of the sequence, which the channel of a shift may have in part.

    Of each tensor, dimension `dims[i]` has `extent` positions in all, laid out as
    `layout` says. By the route:

    - **shift**, between pairs of ranks: the `tensors`, shards of `owner`, go to
      rank `to`; from rank `from` come shards of `receivedOwner`. Where `layout`
      is that of a gathered tensor, `owner` says which shard of it goes.
    - **all_gather**: the `tensors`, shards of this rank, `owner`, go to every
      rank; what comes is gathered, the shards of all ranks, one behind the other
      (`<..., all>` of `layout`). The own shard is copied.
    - **all_to_all heads over n**: the n ranks of the channel are neighbours in
      `layout`, whose owners are the ranks of all axes of the sequence; this rank is
      `owner`. Of the `tensors`, shards of the sequence with all heads, each rank
      gets a part of the heads, by its place p: of h heads, with room for w in what
      comes, heads p w to min((p + 1) w, h) - 1. Where n does not divide h the last
      ranks have fewer heads than w, or none, and what comes holds nothing in their
      place. With `groups g` heads and ranks are in g groups, one behind the other:
      those of a group have its h / g heads, the last of them fewer, or none; what
      ranks are left behind n div g for each group have none. A group's only head
      goes to all of its ranks. What comes has the positions of all n shards, in
      order, of this rank's part of the heads.
    - **all_to_all sequence over n**: the way back. The `tensors` are like what the
      other one gives, and what comes is the shard of `owner`, with the heads of
      all n ranks in order: those that the ranks of a group share as often, with what
      each has made for them, which `ring.round` adds.

    `segments`, where given, is a table of flags by owner, turn and segment:
    segment s of the owner o travels where `segments[o][turn][s]` is true. An
    all-gather takes the distance of the receiver from the owner, (receiver - owner)
    mod P, for the turn; at distance 0 all flags must be true. Where the table has
    one owner, or one segment, its flags are those of all of them. Sender and
    receiver read the row of the shard that the one sends and the other receives,
    so that they agree. Of other segments the received tensor holds nothing that
    may be read. Where no flag is true, and where a segment is empty, no message is
    sent. By convention a row is that of the turn that first reads what travels.

    **Constraints:**
    - (C1) at least one tensor; `dims` has a dimension of each.
    - (C2) the token, or on buffers `into`, has as many types as there are
      tensors, each of the element type of its tensor and of its shape, where both
      are static; what is gathered, or goes out of a gathered tensor, may have
      another size along `dims[i]`; what goes by an all-to-all has another one of
      the heads, too.
    - (C3) no `segments`, which an all-to-all has not, or a `turn`, which an
      all-gather has not, and a table of
      parts x turns x segments of a part of the layout, with 1 in place of parts or
      segments where all are alike.
    - (C4) the channel's grid exists, is static, and has its axes: it connects as
      many ranks as `layout` has parts, but for that of an all-to-all, and that of a
      shift, whose ranks divide the parts.
    - (C5) a shift has `to`, `receivedOwner` and `from`; others have none of them,
      and their tensors are not gathered.
    - (C6) an all-to-all is over as many ranks as its channel has, which divide the
      parts of the layout. Heads are dimension 2 of tensors with 4, 1 of those with
      3: g <= n divides h, and ranks of a group have room for all of its heads, but
      w < h where n > 1; or, on the way to heads, w = 1 where h = g.

    Examples:

    ```mlir
    %token = ring.start %k, %v dims [1, 1] of <zigzag over 8>[%owner]
        extent %sk to %to receive [%next] from %from
        segments(%moves[%turn] : tensor<8x8x2xi1>) channel <@cp, 0>
        : (tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>)
        -> !ring.token<tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>>

    %token = ring.start %k, %v dims [1, 1] of <zigzag over 8>[%rank]
        extent %sk all_gather segments(%moves : tensor<8x8x2xi1>) channel <@cp, 0>
        : (tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>)
        -> !ring.token<tensor<1x2048x2x64xf32>, tensor<1x2048x2x64xf32>>

    %token = ring.start %q dims [1] of <zigzag over 8>[%rank]
        extent %sq all_to_all heads over 4 channel <@mesh[1], 2>
        : (tensor<1x256x32x64xf32>) -> !ring.token<tensor<1x1024x8x64xf32>>

    // 28 heads, of which 7 have one key head: over 8 ranks 4 and 3, 4 and 3, ...
    %token = ring.start %q dims [1] of <zigzag over 8>[%rank]
        extent %sq all_to_all heads over 8 groups 4 channel <@cp, 2>
        : (tensor<1x256x28x64xf32>) -> !ring.token<tensor<1x2048x4x64xf32>>
    ```
  }];
  let arguments = (ins Variadic<Ring_Tensor>:$tensors, Index:$owner, Index:$extent,
      Optional<Index>:$to, Optional<Index>:$receivedOwner, Optional<Index>:$from,
      Optional<Ring_SegmentTable>:$segments, Optional<Index>:$turn,
      Variadic<AnyStridedMemRef>:$into,
      DenseI64ArrayAttr:$dims, Ring_LayoutAttr:$layout, Ring_ChannelAttr:$channel,
      DefaultValuedAttr<Ring_RouteAttr, "::burst::ring::Route::Shift">:$route,
      DefaultValuedAttr<I64Attr, "1">:$members,
      DefaultValuedAttr<I64Attr, "1">:$groups);
  let results = (outs Ring_TokenType:$token);
  let assemblyFormat = [{
    $tensors `dims` custom<Dims>($dims) `of` $layout `` `[` $owner `]` `extent` $extent
    custom<Peers>($route, $members, $groups, $to, $receivedOwner, $from)
    `` custom<Segments>($segments, type($segments), $turn)
    (`into` $into^ `:` type($into))?
    `channel` $channel attr-dict `:` functional-type($tensors, results)
  }];
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {0, 3, 4, 5, 6, 7, 8};
  }];
}

def Ring_WaitOp : Ring_Op<"wait", [
    MemoryEffects<[MemRead<Ring_Channel>, MemWrite<Ring_Channel>]>]> {
  let summary = "waits until a transfer is done";
  let description = [{
    Gives the received tensors; on buffers they are where `ring.start` put them.
    Behind it the sent tensors are free again.

    **Constraints:** (C1) results have the types of the token.

    Example:

    ```mlir
    %k1, %v1 = ring.wait %token
        : !ring.token<tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>>
    ```
  }];
  let arguments = (ins Ring_TokenType:$token);
  let results = (outs Variadic<AnyRankedTensor>:$tensors);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // BURST_DIALECT_RING_TRANSFEROPS_TD
