//===- GatherQueries.cpp - queries of all ranks, partial results back -----===//
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
/// Each rank attends its own keys with all queries; the softmax states return
/// to the owners of these, who merge them.
class ForwardProgramOfQueries final : public ForwardProgram {
public:
  using ForwardProgram::ForwardProgram;

  void build() {
    beginProgram();
    finish(gather({ownQueries().tensors,
                   {1},
                   query.getExtent(),
                   /*values=*/{},
                   ring::Join::Merge,
                   stateTypes(),
                   stateDims()},
                  [&](ValueRange queries, ValueRange state) {
                    return attend(gatheredShards(queries), ownKeys(), state);
                  }));
  }
};

/// Gradients by keys and values stay; those by the queries of all return to
/// their owners.
class BackwardProgramOfQueries final : public BackwardProgram {
public:
  using BackwardProgram::BackwardProgram;

  void build() {
    beginBackward();
    Shards queries = ownQueries(), keys = ownKeys();
    Tensors kept{zero(keys.tensors[0]), zero(keys.tensors[1])};
    llvm::append_range(kept, zeroTables());
    Tensors made =
        gather({queries.tensors,
                {1, 1, 2, 2},
                queryExtent(),
                SmallVector<Type>(ValueRange(kept).getTypes()),
                ring::Join::Add,
                {gradientType(queries.tensors[0].getType())},
                {1}},
               [&](ValueRange all, ValueRange partials) {
                 Tensors grads{partials[0]};
                 llvm::append_range(grads, kept);
                 grads = attend(gatheredShards(all), keys, grads);
                 std::rotate(grads.begin(), grads.begin() + 1, grads.end());
                 return grads;
               });
    // That by the queries stands behind the others.
    std::rotate(made.begin(), made.end() - 1, made.end());
    finish(made);
  }
};
} // namespace

namespace {
struct GatherQueries final : Strategy {
  StringRef getName() const override { return "gather_q"; }

  Estimate estimate(const Workload &workload,
                    const Hardware &hardware) const override {
    Estimate cost = estimateGathering(
        workload, cargoOf(workload, /*movesKeys=*/false), hardware);
    // A rank that is alone has no state in memory, see ring-fuse-ends.
    if (workload.isBackward || workload.givesMaxScores ||
        workload.whole.parts > 1)
      cost.buffers += ownBuffers(workload);
    return cost;
  }

  void build(AttentionInterface op, const Layout &layout) const override {
    if (auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation()))
      return BackwardProgramOfQueries(backward, layout).build();
    ForwardProgramOfQueries(cast<AttentionOp>(op.getOperation()), layout)
        .build();
  }
};
} // namespace

const Strategy *burst::getGatherQueries() {
  static const GatherQueries strategy;
  return &strategy;
}
