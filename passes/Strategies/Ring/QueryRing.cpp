//===- QueryRing.cpp - queries travel past keys and values ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Ring/Builders.h"
#include "passes/Strategies/Ring/ForwardSteps.h"

using namespace mlir;
using namespace burst;

namespace {

/// The partial result of a shard of queries is their softmax state.
class QueryRing final : public ProgramBuilder {
public:
  QueryRing(AttentionOp op, const Deal &deal)
      : ProgramBuilder(op, deal), op(op), steps(op, deal) {}

  void build();

private:
  AttentionOp op;
  ForwardSteps steps;
};

} // namespace

void QueryRing::build() {
  beginProgram();
  Tensors state = rotate(
      {{steps.query.getShard()},
       {1},
       steps.query.getExtent(),
       /*carried=*/{},
       ring::Join::Merge,
       steps.stateTypes(),
       {1, 2, 2}},
      [&](Value owner, ValueRange shards, ValueRange, ValueRange partials) {
        return steps.attend(builder, shards[0], owner, steps.key.getShard(),
                            steps.value.getShard(), rank, partials);
      });
  ring::FinalizeOp finalize = steps.finalize(builder, state);
  replace(op.getOut(), finalize.getOut());
  replace(op.getLse(), finalize.getLse());
  erase();
}

void burst::buildQueryRing(AttentionOp op, const Deal &deal) {
  QueryRing(op, deal).build();
}
