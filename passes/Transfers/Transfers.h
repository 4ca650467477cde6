//===- Transfers.h - transfers and joins as IR ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the lowerings of ring.rotate and ring.gather write out alike.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_TRANSFERS_TRANSFERS_H
#define BURST_PASSES_TRANSFERS_TRANSFERS_H

#include "dialect/Ring/Ring.h"

namespace burst {

using Values = llvm::SmallVector<mlir::Value>;

/// Which segments travel, or are joined: those of a row of a table, see
/// `ring.start`, or all.
struct Flags {
  mlir::Value table, turn;
};

/// What an owner holds of a sequence.
struct Owned {
  ring::LayoutAttr layout;
  mlir::Value owner, extent;
};

/// Whom a rank sends to; whose shards it receives, and from whom.
struct Peers {
  mlir::Value to, receivedOwner, from;
};

/// Sends tensors, which are, or hold, what is owned, receives tensors of
/// `types`, and waits. The channel is so many behind that of the whole.
Values shift(mlir::OpBuilder &builder, mlir::Location loc,
             mlir::ValueRange tensors, mlir::TypeRange types,
             llvm::ArrayRef<int64_t> dims, const Owned &of, const Peers &peers,
             ring::ChannelAttr channel, int64_t offset, Flags flags);

/// Gathers what all ranks own, as tensors of `types`, and waits.
Values allGather(mlir::OpBuilder &builder, mlir::Location loc,
                 mlir::ValueRange tensors, mlir::TypeRange types,
                 llvm::ArrayRef<int64_t> dims, const Owned &of,
                 ring::ChannelAttr channel, mlir::Value segments);

/// The ops of a region, of which these are the arguments; what it yields.
Values inlineRegion(mlir::OpBuilder &builder, mlir::Region &region,
                    mlir::ValueRange arguments);

/// The partial results of a collective that are used, by their numbers: of a
/// state all of them or none.
llvm::SmallVector<size_t> wantedPartials(mlir::ValueRange results,
                                         std::optional<ring::Join> join);

/// Those of them, of what there is of each partial result.
template <typename Range>
auto pickWanted(const Range &all, llvm::ArrayRef<size_t> wanted) {
  return llvm::map_to_vector(
      wanted, [&](size_t number) { return *std::next(all.begin(), number); });
}

/// Partial results by shards, of which nothing was computed yet.
Values freshPartials(mlir::OpBuilder &builder, mlir::Location loc,
                     ring::Join join, mlir::ValueRange shards,
                     mlir::TypeRange types);

/// Two partial results of an owner as one, where the flags hold; else the
/// first.
Values joinPartials(mlir::OpBuilder &builder, mlir::Location loc,
                    ring::Join join, mlir::ValueRange a, mlir::ValueRange b,
                    const Owned &of, Flags flags);

} // namespace burst

#endif // BURST_PASSES_TRANSFERS_TRANSFERS_H
