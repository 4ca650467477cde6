//===- KeysOnly.cpp - a strategy, as the how-to shows it ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "examples/strategy/KeysOnly.h"
#include "passes/Strategies/ForwardProgram.h"

using namespace mlir;
using namespace burst;

namespace {
/// Keys and values go round; each rank's queries attend those of every owner.
class Program final : public ForwardProgram {
public:
  using ForwardProgram::ForwardProgram;

  void build() {
    beginProgram();
    finish(rotate(
        {ownKeys().tensors, /*dims=*/{1, 1}, key.getExtent(), init()},
        [&](Value owner, ValueRange shards, ValueRange state, ValueRange) {
          return attend(ownQueries(), {Tensors(shards), owner, layout}, state);
        }));
  }
};

struct KeysOnly final : Strategy {
  StringRef getName() const override { return "keys_only"; }

  std::string whyNot(AttentionInterface op,
                     SequenceAttr sequence) const override {
    if (isa<AttentionBackwardOp>(op.getOperation()))
      return "has a forward pass only";
    return {};
  }

  Estimate estimate(const Workload &workload,
                    const Hardware &hardware) const override {
    Estimate cost = estimateRotation(
        workload, cargoOf(workload, /*movesKeys=*/true), hardware);
    if (workload.whole.parts > 1) // the state has memory of its own
      cost.buffers += ownBuffers(workload);
    return cost;
  }

  void build(AttentionInterface op, const Layout &layout) const override {
    Program(cast<AttentionOp>(op.getOperation()), layout).build();
  }
};
} // namespace

const Strategy *burst::getKeysOnly() {
  static const KeysOnly strategy;
  return &strategy;
}
