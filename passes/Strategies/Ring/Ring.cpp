//===- Ring.cpp - ring_kv and ring_q --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Ring/Ring.h"
#include "passes/Strategies/Ring/Builders.h"

using namespace mlir;
using namespace burst;

/// Yao et al., BurstAttention (arXiv 2403.09347), section 3: backward, either
/// k, v, dk and dv travel, or q, dout, lse, delta and dq. Forward, the softmax
/// state (o, m, l) of queries that travel comes behind them.
Cargo burst::ringCargo(const Workload &workload, bool movesKeys) {
  auto element = static_cast<double>(workload.elementBytes);
  auto state = static_cast<double>(workload.stateBytes);
  auto queryHeads = static_cast<double>(workload.sizes.queryHeads);
  auto keyHeads = static_cast<double>(workload.sizes.keyHeads);
  auto queryDim = static_cast<double>(workload.sizes.queryDim);
  auto valueDim = static_cast<double>(workload.sizes.valueDim);
  if (movesKeys) {
    double numbers = keyHeads * (queryDim + valueDim);
    return {true, numbers * element, workload.isBackward ? numbers * state : 0};
  }
  if (!workload.isBackward)
    return {false, queryHeads * queryDim * element,
            queryHeads * (valueDim + 2) * state};
  return {false, queryHeads * ((queryDim + valueDim) * element + 2 * state),
          queryHeads * queryDim * state};
}

namespace {
class RingStrategy final : public Strategy {
public:
  explicit RingStrategy(bool movesKeys) : movesKeys(movesKeys) {}

  StringRef getName() const override {
    return movesKeys ? "ring_kv" : "ring_q";
  }

  Estimate estimate(const Workload &workload,
                    const MachineModel &machine) const override {
    Estimate result =
        estimateRotation(workload, ringCargo(workload, movesKeys), machine);
    // A rank that is alone has no state in memory, see ring-fuse-ends.
    if (workload.isBackward || workload.whole.parts > 1)
      result.buffers += ownBuffers(workload);
    return result;
  }

  void build(AttentionInterface op, const Deal &deal) const override {
    if (auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation()))
      return buildGradientRing(backward, deal, movesKeys);
    buildForwardRing(cast<AttentionOp>(op.getOperation()), deal, movesKeys);
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
