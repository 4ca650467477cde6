//===- CheckLowered.cpp - programs are kernels over tiles -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/host/Passes.h"
#include "dialect/Burst/Burst.h"
#include "dialect/Ring/Ring.h"

namespace burst::host {
#define GEN_PASS_DEF_CHECKLOWEREDPASS
#include "codegen/host/Passes.h.inc"
} // namespace burst::host

using namespace mlir;
using namespace burst;

/// The pipelines that an op still has to go through; empty for ops that kernels
/// and their hosts are made of, on buffers and scalars.
static StringRef missingPipelines(Operation *op) {
  auto isTensor = llvm::IsaPred<TensorType>;
  if (llvm::none_of(op->getOperandTypes(), isTensor) &&
      llvm::none_of(op->getResultTypes(), isTensor))
    return "";
  if (isa<AttentionOp, AttentionBackwardOp>(op))
    return "burst-to-ring and burst-to-tile";
  if (isa_and_present<BurstDialect, ring::RingDialect>(op->getDialect()))
    return "burst-to-tile";
  return "";
}

namespace {
struct CheckLowered : burst::host::impl::CheckLoweredPassBase<CheckLowered> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk<WalkOrder::PreOrder>(
        [](Operation *op) -> WalkResult {
          // Their regions are lowered with them.
          if (isa_and_present<tile::TileDialect>(op->getDialect()))
            return WalkResult::skip();
          StringRef missing = missingPipelines(op);
          if (missing.empty())
            return WalkResult::advance();
          return op->emitOpError("is not lowered to kernels over tiles: run ")
                 << missing << " first";
        });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
