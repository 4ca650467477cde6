//===- VerifyPhases.cpp - what each phase must leave behind ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"

namespace burst {
#define GEN_PASS_DEF_VERIFYEXPANDEDPASS
#define GEN_PASS_DEF_VERIFYPARTITIONEDPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

static LogicalResult verifyExpanded(AttentionInterface op) {
  if (op.getMaskNamesAttr() || op.getScoreNamesAttr())
    return op->emitOpError("still has named masks or scores behind "
                           "burst-expand-names");
  if (!op.getMask().empty() && op.getBounds().empty())
    return op->emitOpError("has a mask without bounds behind "
                           "burst-derive-bounds");
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  if (backward && !op.getScore().empty() && backward.getGradient().empty())
    return op->emitOpError("has a score without its gradient behind "
                           "burst-derive-gradients");
  return success();
}

static LogicalResult verifyPartitioned(AttentionInterface op) {
  if (!op->getParentOfType<func::FuncOp>()->hasAttr(ring::gridAttr))
    return op->emitOpError("stands in a function without 'ring.grid' behind "
                           "burst-partition");
  for (const Sharded &sharded : op.getSharded())
    if (sharded.tensor.getDefiningOp() != op &&
        !sharded.tensor.getDefiningOp<UnshardOp>())
      return op->emitOpError("takes a tensor that is no burst.unshard");
  // Gradients of captures are not sharded: each rank returns its own.
  for (const Sharded &sharded : op.getSharded())
    if (sharded.tensor.getDefiningOp() == op &&
        !llvm::all_of(sharded.tensor.getUsers(), llvm::IsaPred<ShardOp>))
      return op->emitOpError("has a result that is used by another op than "
                             "burst.shard");
  return success();
}

/// Runs `verify` on every attention of a function.
static bool holds(func::FuncOp function,
                  function_ref<LogicalResult(AttentionInterface)> verify) {
  return !function
              .walk([&](AttentionInterface op) -> WalkResult {
                return verify(op);
              })
              .wasInterrupted();
}

namespace {
struct VerifyExpanded : burst::impl::VerifyExpandedPassBase<VerifyExpanded> {
  void runOnOperation() override {
    if (!holds(getOperation(), verifyExpanded))
      signalPassFailure();
  }
};

struct VerifyPartitioned
    : burst::impl::VerifyPartitionedPassBase<VerifyPartitioned> {
  void runOnOperation() override {
    if (!holds(getOperation(), verifyPartitioned))
      signalPassFailure();
  }
};
} // namespace
