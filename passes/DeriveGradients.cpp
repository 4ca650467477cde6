//===- DeriveGradients.cpp - the derivatives of scores --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Gradient/Gradient.h"
#include "passes/Passes.h"

namespace burst {
#define GEN_PASS_DEF_DERIVEGRADIENTSPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {
struct DeriveGradients : burst::impl::DeriveGradientsPassBase<DeriveGradients> {
  void runOnOperation() override {
    WalkResult result =
        getOperation().walk([](AttentionBackwardOp op) -> WalkResult {
          // As with bounds: what stands there is not trusted.
          op.getGradient().getBlocks().clear();
          if (op.getScore().empty())
            return WalkResult::advance();
          SmallVector<bool> wanted(op.getScoreCaptures().size());
          for (int64_t n : op.getGradients().value_or(ArrayRef<int64_t>()))
            wanted[n] = true;
          return differentiate(op.getScore(), op.getGradient(), wanted);
        });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
