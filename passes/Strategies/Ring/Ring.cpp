//===- Ring.cpp - rings, double rings, and what comes directly ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Ring/Builders.h"
#include "passes/Strategies/Strategy.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;
using namespace burst;

namespace {
class RingStrategy final : public Strategy {
public:
  explicit RingStrategy(RingKind kind) : kind(kind) {}

  StringRef getName() const override {
    if (kind.isDirect)
      return kind.movesKeys ? "direct_kv" : "direct_q";
    if (kind.isDouble)
      return kind.movesKeys ? "double_ring_kv" : "double_ring_q";
    if (kind.isBidirectional)
      return kind.movesKeys ? "bi_ring_kv" : "bi_ring_q";
    return kind.movesKeys ? "ring_kv" : "ring_q";
  }

  std::string whyNot(AttentionInterface op,
                     SequenceAttr sequence) const override {
    SmallVector<int64_t> axes = axesOf(op, sequence);
    shard::GridOp grid = lookupGrid(op, sequence.getGrid());
    int64_t ofSeveral = llvm::count_if(
        axes, [&](int64_t axis) { return groupOf(grid, axis).size > 1; });
    if (!kind.isDouble || (axes.size() >= 2 && ofSeveral <= 2))
      return {};
    return "needs a sequence over two axes, as in `sequence <@grid[0, 1], "
           "zigzag>`, not " +
           std::to_string(axes.size());
  }

  /// Of fewer ranks a bidirectional one is not proved for every number of them,
  /// so that lengths that are open would be simulated as they come.
  bool isOnlyPinned(int64_t ranks) const override {
    return kind.isBidirectional && ranks < 6;
  }

  Estimate estimate(const Workload &workload,
                    const Hardware &hardware) const override {
    Cargo cargo = cargoOf(workload, kind.movesKeys);
    Estimate result = kind.isDouble ? estimateNest(workload, cargo, hardware)
                      : kind.isDirect
                          ? estimateDirect(workload, cargo, hardware)
                      : kind.isBidirectional
                          ? estimateBidirectional(workload, cargo, hardware)
                          : estimateRotation(workload, cargo, hardware);
    // A rank that is alone has no state in memory, see ring-fuse-ends.
    if (workload.isBackward || workload.givesMaxScores ||
        workload.whole.parts > 1)
      result.buffers += ownBuffers(workload);
    return result;
  }

  /// A double buffer of each ring, or direction.
  ArrayRef<int64_t> maxSlices() const override {
    static constexpr int64_t ofEach[ring::exchangeChannel + 3] = {2, 2, 2, 2,
                                                                  2};
    return kind.isDouble || kind.isBidirectional ? ArrayRef(ofEach)
                                                 : ArrayRef<int64_t>();
  }

  void build(AttentionInterface op, const Layout &layout) const override {
    if (auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation()))
      return buildGradientRing(backward, layout, kind);
    buildForwardRing(cast<AttentionOp>(op.getOperation()), layout, kind);
  }

private:
  RingKind kind;
};
} // namespace

const Strategy *burst::getKeyRing() {
  static const RingStrategy strategy({.movesKeys = true});
  return &strategy;
}

const Strategy *burst::getQueryRing() {
  static const RingStrategy strategy({.movesKeys = false});
  return &strategy;
}

const Strategy *burst::getDoubleKeyRing() {
  static const RingStrategy strategy({.movesKeys = true, .isDouble = true});
  return &strategy;
}

const Strategy *burst::getDoubleQueryRing() {
  static const RingStrategy strategy({.movesKeys = false, .isDouble = true});
  return &strategy;
}

const Strategy *burst::getBidirectionalKeyRing() {
  static const RingStrategy strategy(
      {.movesKeys = true, .isBidirectional = true});
  return &strategy;
}

const Strategy *burst::getBidirectionalQueryRing() {
  static const RingStrategy strategy(
      {.movesKeys = false, .isBidirectional = true});
  return &strategy;
}

const Strategy *burst::getDirectKeys() {
  static const RingStrategy strategy({.movesKeys = true, .isDirect = true});
  return &strategy;
}

const Strategy *burst::getDirectQueries() {
  static const RingStrategy strategy({.movesKeys = false, .isDirect = true});
  return &strategy;
}
