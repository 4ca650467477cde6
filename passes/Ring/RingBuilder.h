//===- RingBuilder.h - what all rings are built of --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_RING_RINGBUILDER_H
#define BURST_PASSES_RING_RINGBUILDER_H

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
  /// The shard behind a global tensor.
  static UnshardOp unshardOf(mlir::Value global) {
    return global.getDefiningOp<UnshardOp>();
  }
  /// Makes `rank`.
  void beginProgram();

  /// What goes round, see ring.rotate.
  struct Rotation {
    Tensors tensors;
    llvm::SmallVector<int64_t> dims;
    mlir::Value extent;
    Tensors carried = {};
    std::optional<ring::Join> join = std::nullopt;
    llvm::SmallVector<mlir::Type> partials = {};
    llvm::SmallVector<int64_t> partialDims = {};
  };
  /// What a turn makes of the carried values and of fresh partial results.
  using Turn = llvm::function_ref<Tensors(
      mlir::Value owner, mlir::ValueRange shards, mlir::ValueRange carried,
      mlir::ValueRange partials)>;
  /// The carried values behind the last turn, then the joined partial results.
  Tensors rotate(const Rotation &rotation, Turn turn);

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
