//===- RingAttrs.td - layouts, channels, tokens -------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_RING_RINGATTRS_TD
#define BURST_DIALECT_RING_RINGATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "dialect/Ring/RingDialect.td"

def Ring_LayoutAttr : AttrDef<Ring_Dialect, "Layout"> {
  let mnemonic = "layout";
  let summary = "which positions an owner holds";
  let description = [{
    An order and a number of ranks: with an owner and an extent it
    gives a list of segments (begin, count, step, block), of which the shard of
    that owner is the concatenation. See `dialect/Burst/Sequence.h`.

    With `all`, the layout is that of a gathered tensor: one owner, 0, holds the
    shards of all parts, one behind the other.

    **Constraints:** (C1) at least one part; a block only for striped.

    Examples: `#ring.layout<zigzag over 8>`, `#ring.layout<striped 64 over 4>`,
    `#ring.layout<zigzag over 8, all>`
  }];
  let parameters = (ins "::burst::Order":$order, "int64_t":$block, "int64_t":$parts,
                        "bool":$all);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    Layout getValue() const { return {getOrder(), getBlock(), getParts(), getAll()}; }
    int64_t getNumOwners() const { return getValue().numOwners(); }
    int64_t getNumSegments() const { return getValue().numSegments(); }
    /// That of the parts of a gathered tensor, and of a gathered tensor of them.
    LayoutAttr ofPart() const { return get(getContext(), getValue().ofPart()); }
    LayoutAttr ofAll() const {
      return get(getContext(), getOrder(), getBlock(), getParts(), true);
    }
    /// That of so many neighbours together, see `Layout`.
    LayoutAttr ofGroups(int64_t members) const {
      return get(getContext(), getValue().ofGroups(members));
    }
    static LayoutAttr get(::mlir::MLIRContext *context, const Layout &layout) {
      return get(context, layout.order, layout.block, layout.parts, layout.all);
    }
  }];
  let builders = [];
}

def Ring_ShardAttr : AttrDef<Ring_Dialect, "Shard"> {
  let mnemonic = "shard";
  let summary = "what a rank holds of a global tensor";
  let description = [{
    Dimension `dim` of the global tensor has `extent` positions (`?` where known
    at run time only), sharded as `layout` says over the ranks that differ in
    `axes` of the grid, over all where none are named. Ranks that differ in other
    axes hold the same.

    **Constraints:** (C1) `dim` and a known `extent` are not negative. (C2) the
    layout is not that of a gathered tensor. (C3) axes are as in
    `#burst.sequence`.

    Examples: `#ring.shard<#ring.layout<zigzag over 8>, dim 1 extent 2048>`,
    `#ring.shard<#ring.layout<contiguous over 2>, dim 2 extent 32 axes [0]>`
  }];
  let parameters = (ins "::burst::ring::LayoutAttr":$layout, "int64_t":$dim,
                        "int64_t":$extent,
                        OptionalArrayRefParameter<"int64_t">:$axes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Ring_ChannelAttr : AttrDef<Ring_Dialect, "Channel"> {
  let mnemonic = "channel";
  let summary = "a communicator, and a stream of messages on it";
  let description = [{
    A grid and axes of it, all where none are named, and a number. Those ranks
    communicate that differ in these axes only, and count themselves by their
    place there. Transfers of one channel are matched and run in the order in
    which they were started, those of different numbers are independent.

    **Constraints:** (C1) the number is not negative. (C2) axes are as in
    `#burst.sequence`.

    Examples: `#ring.channel<@cp, 0>`, `#ring.channel<@mesh[1], 0>`
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$grid,
                        OptionalArrayRefParameter<"int64_t">:$axes,
                        "int64_t":$index);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Ring_Join : I32EnumAttr<"Join", "how partial results become one", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Merge", 1, "merge">]> {
  let cppNamespace = "::burst::ring";
  let genSpecializedAttr = 0;
}
def Ring_JoinAttr : EnumAttr<Ring_Dialect, Ring_Join, "join"> {
  let summary = "how partial results become one";
  let description = [{
    `add`: gradients, which are added; `merge`: softmax states, which are merged.
  }];
}

def Ring_Route : I32EnumAttr<"Route", "from whom a transfer brings what", [
    I32EnumAttrCase<"Shift", 0, "shift">,
    I32EnumAttrCase<"AllGather", 1, "all_gather">,
    I32EnumAttrCase<"ToHeads", 2, "to_heads">,
    I32EnumAttrCase<"ToSequence", 3, "to_sequence">]> {
  let cppNamespace = "::burst::ring";
  let genSpecializedAttr = 0;
}
def Ring_RouteAttr : EnumAttr<Ring_Dialect, Ring_Route, "route"> {
  let summary = "from whom a transfer brings what";
  let description = [{
    `shift`: to one rank, from one rank; `all_gather`: to all ranks, from all, the
    same; `to_heads` and `to_sequence`: to all ranks, from all, to each another part
    (all-to-all), so that heads are sharded in place of the sequence, and back.
  }];
}

def Ring_TokenType : TypeDef<Ring_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "a transfer under way";
  let description = [{
    Made by `ring.start`, used up by exactly one `ring.wait`, which gives the
    tensors named here. A transfer between buffers names none: `!ring.token`.

    Example: `!ring.token<tensor<1x256x8x128xbf16>, tensor<1x256x8x128xbf16>>`
  }];
  let parameters = (ins OptionalArrayRefParameter<"::mlir::Type">:$types);
  let assemblyFormat = "(`<` $types^ `>`)?";
}

#endif // BURST_DIALECT_RING_RINGATTRS_TD
