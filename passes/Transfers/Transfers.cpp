//===- Transfers.cpp - transfers and joins as IR --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Transfers/Transfers.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

static Values waitFor(OpBuilder &builder, Location loc, ring::StartOp start) {
  return Values(ring::WaitOp::create(builder, loc,
                                     start.getToken().getType().getTypes(),
                                     start.getToken())
                    .getTensors());
}

Values burst::shift(OpBuilder &builder, Location loc, ValueRange tensors,
                    TypeRange types, ArrayRef<int64_t> dims, const Owned &of,
                    const Peers &peers, ring::ChannelAttr channel,
                    int64_t offset, Flags flags) {
  MLIRContext *context = builder.getContext();
  return waitFor(
      builder, loc,
      ring::StartOp::create(
          builder, loc, ring::TokenType::get(context, SmallVector<Type>(types)),
          tensors, of.owner, of.extent, peers.to, peers.receivedOwner,
          peers.from, flags.table, flags.turn,
          /*into=*/ValueRange(), dims, of.layout,
          ring::ChannelAttr::get(context, channel.getGrid(), channel.getAxes(),
                                 channel.getIndex() + offset),
          ring::Route::Shift));
}

Values burst::allGather(OpBuilder &builder, Location loc, ValueRange tensors,
                        TypeRange types, ArrayRef<int64_t> dims,
                        const Owned &of, ring::ChannelAttr channel,
                        Value segments) {
  return waitFor(
      builder, loc,
      ring::StartOp::create(
          builder, loc,
          ring::TokenType::get(builder.getContext(), SmallVector<Type>(types)),
          tensors, of.owner, of.extent, /*to=*/Value(),
          /*receivedOwner=*/Value(), /*from=*/Value(), segments,
          /*turn=*/Value(), /*into=*/ValueRange(), dims, of.layout, channel,
          ring::Route::AllGather));
}

Values burst::inlineRegion(OpBuilder &builder, Region &region,
                           ValueRange arguments) {
  IRMapping mapping;
  Block &body = region.front();
  mapping.map(body.getArguments(), arguments);
  for (Operation &inner : body.without_terminator())
    builder.clone(inner, mapping);
  return llvm::map_to_vector(
      body.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

SmallVector<size_t> burst::wantedPartials(ValueRange results,
                                          std::optional<ring::Join> join) {
  bool isState = join == ring::Join::Merge;
  SmallVector<size_t> wanted;
  for (auto [number, result] : llvm::enumerate(results))
    if (isState ? llvm::any_of(results,
                               [](Value part) { return !part.use_empty(); })
                : !result.use_empty())
      wanted.push_back(number);
  return wanted;
}

Values burst::freshPartials(OpBuilder &builder, Location loc, ring::Join join,
                            ValueRange shards, TypeRange types) {
  if (join == ring::Join::Merge)
    return Values(ring::InitOp::create(builder, loc, types, shards.front(),
                                       /*into=*/ValueRange())
                      .getResults());
  Values zeros;
  for (auto [shard, type] : llvm::zip(shards, types))
    zeros.push_back(
        ring::ZeroOp::create(builder, loc, type, shard, /*into=*/Value())
            .getZero());
  return zeros;
}

Values burst::joinPartials(OpBuilder &builder, Location loc, ring::Join join,
                           ValueRange a, ValueRange b, const Owned &of,
                           Flags flags) {
  if (join == ring::Join::Merge)
    return Values(ring::MergeOp::create(builder, loc, a.getTypes(), a[0], a[1],
                                        a[2], b[0], b[1], b[2], of.owner,
                                        of.extent, flags.table, flags.turn,
                                        of.layout)
                      .getResults());
  Values sums;
  for (auto [x, y] : llvm::zip_equal(a, b))
    sums.push_back(ring::AddOp::create(builder, loc, x.getType(), x, y,
                                       of.owner, of.extent, flags.table,
                                       flags.turn, of.layout)
                       .getSum());
  return sums;
}
