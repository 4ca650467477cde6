//===- Overlap.cpp - transfers before computation -------------------------===//
#include "passes/Passes.h"

namespace burst {
#define GEN_PASS_DEF_OVERLAPPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

static bool isIndexComputation(Operation *op) {
  return isMemoryEffectFree(op) &&
         llvm::all_of(op->getResultTypes(),
                      [](Type type) { return type.isIntOrIndexOrFloat(); });
}

/// Moves `start` up as far as it may go, and with it the index computations
/// that it needs: up to what makes its tensors, or to another transfer.
static void hoist(ring::StartOp start) {
  SmallVector<Operation *> needed{start};
  Operation *target = start;
  for (Operation *above = start->getPrevNode(); above;
       above = above->getPrevNode()) {
    // Also by what stands in the regions of a needed op.
    bool isNeeded = llvm::any_of(needed, [&](Operation *op) {
      return llvm::any_of(above->getUsers(), [&](Operation *user) {
        return op->isAncestor(user);
      });
    });
    if (isNeeded && isIndexComputation(above))
      needed.push_back(above);
    else if (isNeeded || !isMemoryEffectFree(above))
      break;
    else
      target = above;
  }
  for (Operation *op : llvm::reverse(needed))
    if (target->isBeforeInBlock(op))
      op->moveBefore(target);
}

namespace {
struct Overlap : burst::impl::OverlapPassBase<Overlap> {
  void runOnOperation() override {
    SmallVector<ring::StartOp> starts;
    getOperation().walk([&](ring::StartOp start) { starts.push_back(start); });
    for (ring::StartOp start : starts)
      hoist(start);
  }
};
} // namespace
