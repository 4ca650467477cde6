//===- Ring.cpp - ring_kv and ring_q --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Ring/Builders.h"
#include "passes/Strategies/Strategy.h"

using namespace mlir;
using namespace burst;

namespace {
class RingStrategy final : public Strategy {
public:
  explicit RingStrategy(bool movesKeys) : movesKeys(movesKeys) {}

  StringRef getName() const override {
    return movesKeys ? "ring_kv" : "ring_q";
  }

  Estimate estimate(const Workload &workload,
                    const Hardware &hardware) const override {
    Estimate result =
        estimateRotation(workload, cargoOf(workload, movesKeys), hardware);
    // A rank that is alone has no state in memory, see ring-fuse-ends.
    if (workload.isBackward || workload.whole.parts > 1)
      result.buffers += ownBuffers(workload);
    return result;
  }

  void build(AttentionInterface op, const Layout &layout) const override {
    if (auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation()))
      return buildGradientRing(backward, layout, movesKeys);
    buildForwardRing(cast<AttentionOp>(op.getOperation()), layout, movesKeys);
  }

private:
  bool movesKeys;
};
} // namespace

const Strategy *burst::getKeyRing() {
  static const RingStrategy strategy(/*movesKeys=*/true);
  return &strategy;
}

const Strategy *burst::getQueryRing() {
  static const RingStrategy strategy(/*movesKeys=*/false);
  return &strategy;
}
