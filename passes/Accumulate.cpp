//===- Accumulate.cpp - chunks of heads add to one gradient ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"

namespace burst {
#define GEN_PASS_DEF_ACCUMULATEPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

/// What the attend that gives a gradient adds to; null where none gives it, or
/// it adds to something that is there.
static OpOperand *beginningOf(Value gradient) {
  auto attend = gradient.getDefiningOp<ring::AttendGradOp>();
  if (!attend)
    return nullptr;
  auto step = cast<ring::StepOpInterface>(attend.getOperation());
  OpOperand *begin = step.getTiedOperand(cast<OpResult>(gradient));
  return begin && begin->get().getDefiningOp<ring::ZeroOp>() ? begin : nullptr;
}

static LogicalResult accumulate(ring::SumChunksOp sum) {
  ValueRange chunks = sum.getChunks();
  for (auto [before, chunk] : llvm::zip(chunks, chunks.drop_front())) {
    OpOperand *begin = beginningOf(chunk);
    Operation *attend = chunk.getDefiningOp();
    if (!begin || !before.getDefiningOp() ||
        before.getDefiningOp()->getBlock() != attend->getBlock() ||
        !before.getDefiningOp()->isBeforeInBlock(attend))
      return sum.emitOpError("adds what no ring.attend_grad gives that begins "
                             "with zeros behind the chunk before");
    begin->set(before);
  }
  sum.getSum().replaceAllUsesWith(chunks.back());
  sum.erase();
  return success();
}

namespace {
struct Accumulate : burst::impl::AccumulatePassBase<Accumulate> {
  void runOnOperation() override {
    SmallVector<ring::SumChunksOp> sums;
    getOperation().walk([&](ring::SumChunksOp op) { sums.push_back(op); });
    for (ring::SumChunksOp sum : sums)
      if (failed(accumulate(sum)))
        return signalPassFailure();
  }
};
} // namespace
