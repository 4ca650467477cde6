//===- RingBuilder.h - what all rings are built of --------------*- C++ -*-===//
#ifndef BURST_PASSES_RING_RINGBUILDER_H
#define BURST_PASSES_RING_RINGBUILDER_H

#include "dialect/Burst/Emit.h"
#include "passes/Passes.h"

namespace burst {

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
  /// Makes `rank`.
  void beginProgram();
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

/// Whether there is a ring for an attention with this strategy.
bool supports(AttentionInterface op, Strategy strategy);

/// Keys and values travel past queries, which keep their softmax state.
std::unique_ptr<RingBuilder> makeKeyRing(AttentionOp op, const Deal &deal);
/// Keys travel past queries, all scores are stored, then values travel.
std::unique_ptr<RingBuilder> makeScoreRing(AttentionOp op, const Deal &deal);
/// Keys and values travel with their gradients, or queries with theirs.
std::unique_ptr<RingBuilder> makeGradientRing(AttentionBackwardOp op,
                                              const Deal &deal, bool movesKeys);

} // namespace burst

#endif // BURST_PASSES_RING_RINGBUILDER_H
