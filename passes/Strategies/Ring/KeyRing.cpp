//===- KeyRing.cpp - keys and values travel past queries ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Ring/Builders.h"
#include "passes/Strategies/Ring/ForwardSteps.h"

using namespace mlir;
using namespace burst;

namespace {

class KeyRing final : public ProgramBuilder {
public:
  KeyRing(AttentionOp op, const Deal &deal)
      : ProgramBuilder(op, deal), op(op), steps(op, deal) {}

  void build();

private:
  AttentionOp op;
  ForwardSteps steps;
};

} // namespace

void KeyRing::build() {
  beginProgram();
  Value query = steps.query.getShard();
  Tensors state = rotate(
      {{steps.key.getShard(), steps.value.getShard()},
       {1, 1},
       steps.key.getExtent(),
       steps.init(builder, query)},
      [&](Value owner, ValueRange shards, ValueRange carried, ValueRange) {
        return steps.attend(builder, query, rank, shards[0], shards[1], owner,
                            carried);
      });
  ring::FinalizeOp finalize = steps.finalize(builder, state);
  replace(op.getOut(), finalize.getOut());
  replace(op.getLse(), finalize.getLse());
  erase();
}

void burst::buildKeyRing(AttentionOp op, const Deal &deal) {
  KeyRing(op, deal).build();
}
