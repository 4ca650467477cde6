//===- RingBuilder.h - what all rings are built of --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_RING_RINGBUILDER_H
#define BURST_PASSES_RING_RINGBUILDER_H

#include "dialect/Burst/Emit.h"
#include "passes/Passes.h"

namespace burst {

using Tensors = llvm::SmallVector<mlir::Value>;

/// Builds the ring of one attention that stands between burst.unshard and
/// burst.shard, and erases the attention.
class RingBuilder {
public:
  RingBuilder(AttentionInterface op, const Deal &deal);
  virtual ~RingBuilder() = default;
  virtual void build() = 0;

protected:
  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  Emit emit() { return {builder, loc}; }
  /// (rank + offset) mod parts.
  mlir::Value neighbour(mlir::Value rank, int64_t offset);
  /// The shard behind a global tensor.
  static UnshardOp unshardOf(mlir::Value global) {
    return global.getDefiningOp<UnshardOp>();
  }
  /// Flags by turn, for all owners and segments alike.
  mlir::Value
  turnTable(int64_t turns,
            llvm::function_ref<mlir::Value(Emit, mlir::Value turn)> flag);
  /// Makes `rank`.
  void beginProgram();

  /// Which segments are meant: those of a row of a table, or all.
  struct Flags {
    mlir::Value table, turn;
  };
  /// Shards of `owner` go to `to`, those of `receivedOwner` come from `from`;
  /// of each, dimension `dims[i]` has `extent` positions in all.
  struct Transfer {
    mlir::ValueRange tensors;
    llvm::SmallVector<int64_t> dims;
    mlir::Value owner, extent, to, receivedOwner, from;
    int64_t channel;
    Flags flags = {}; ///< of segments
  };
  /// Starts it, waits, and gives what it brings.
  Tensors transfer(const Transfer &transfer);
  /// `tensor`, a shard, becomes what `global` was cut into.
  static void replace(mlir::Value global, mlir::Value tensor);
  /// Erases the attention and what brought its tensors.
  void erase();

  AttentionInterface op;
  Deal deal;
  mlir::OpBuilder builder;
  mlir::Location loc;
  ring::LayoutAttr layout;
  mlir::Value rank;
};

/// Keys and values travel past queries, which keep their softmax state.
std::unique_ptr<RingBuilder> makeKeyRing(AttentionOp op, const Deal &deal);
/// Queries travel past keys and values, and their softmax state behind them.
std::unique_ptr<RingBuilder> makeQueryRing(AttentionOp op, const Deal &deal);
/// Keys travel past queries, all scores are stored, then values travel.
std::unique_ptr<RingBuilder> makeScoreRing(AttentionOp op, const Deal &deal);
/// Keys and values travel with their gradients, or queries with theirs.
std::unique_ptr<RingBuilder> makeGradientRing(AttentionBackwardOp op,
                                              const Deal &deal, bool movesKeys);

} // namespace burst

#endif // BURST_PASSES_RING_RINGBUILDER_H
