//===- AllGather.cpp - keys and values of all ranks at once ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/BackwardProgram.h"
#include "passes/Strategies/ForwardProgram.h"
#include "passes/Strategies/Strategy.h"

using namespace mlir;
using namespace burst;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {
class ForwardGather final : public ForwardProgram {
public:
  using ForwardProgram::ForwardProgram;

  void build() {
    beginProgram();
    Tensors state = init();
    finish(gather({ownKeys().tensors, {1, 1}, key.getExtent(), stateTypes()},
                  [&](ValueRange all, ValueRange) {
                    return attend(ownQueries(), gatheredShards(all), state);
                  }));
  }
};

/// The gradients by the keys and values of all return to their owners.
class BackwardGather final : public BackwardProgram {
public:
  using BackwardProgram::BackwardProgram;

  void build() {
    beginBackward();
    Shards queries = ownQueries(), keys = ownKeys();
    Tensors kept{zero(queries.tensors[0])};
    llvm::append_range(kept, zeroTables());
    Tensors made =
        gather({keys.tensors,
                {1, 1},
                keyExtent(),
                SmallVector<Type>(ValueRange(kept).getTypes()),
                ring::Join::Add,
                {gradientType(keys.tensors[0].getType()),
                 gradientType(keys.tensors[1].getType())},
                {1, 1}},
               [&](ValueRange all, ValueRange partials) {
                 Tensors grads{kept[0], partials[0], partials[1]};
                 grads.append(kept.begin() + 1, kept.end());
                 grads = attend(queries, gatheredShards(all), grads);
                 std::rotate(grads.begin() + 1, grads.begin() + 3, grads.end());
                 return grads;
               });
    // Partial results stand behind the others.
    std::rotate(made.begin() + 1, made.end() - 2, made.end());
    finish(made);
  }
};
} // namespace

namespace {
struct AllGather final : Strategy {
  StringRef getName() const override { return "all_gather"; }

  Estimate estimate(const Workload &workload,
                    const Hardware &hardware) const override {
    Estimate cost = estimateGathering(
        workload, cargoOf(workload, /*movesKeys=*/true), hardware);
    if (workload.isBackward || workload.givesMaxScores)
      cost.buffers += ownBuffers(workload);
    return cost;
  }

  void build(AttentionInterface op, const Layout &layout) const override {
    if (auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation()))
      return BackwardGather(backward, layout).build();
    ForwardGather(cast<AttentionOp>(op.getOperation()), layout).build();
  }
};
} // namespace

const Strategy *burst::getAllGather() {
  static const AllGather strategy;
  return &strategy;
}
