//===- FuseEnds.cpp - states that begin and end with one attend -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"

namespace burst {
#define GEN_PASS_DEF_FUSEENDSPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

/// The `ring.init` of the attend's queries that begins its state.
static ring::InitOp initOf(ring::AttendOp attend) {
  // Of queries that were received, segments may be missing: an attend that
  // begins from nothing reads them whatever its pairs are.
  auto query = dyn_cast<BlockArgument>(ring::behindAllToAll(attend.getQuery()));
  if (attend.isFirst() || !query ||
      !isa<FunctionOpInterface>(query.getOwner()->getParentOp()))
    return {};
  auto init = attend.getO().getDefiningOp<ring::InitOp>();
  bool isState = init && init->getBlock() == attend->getBlock() &&
                 init.getQuery() == attend.getQuery() &&
                 llvm::equal(init->getResults(), attend.getState());
  return isState ? init : ring::InitOp();
}

/// The `ring.finalize` that alone uses the attend's state; none on buffers. An
/// attend that is last gives no largest scores.
static ring::FinalizeOp finalizeOf(ring::AttendOp attend) {
  if (attend.isLast() || attend->getNumResults() == 0)
    return {};
  for (Value part : attend->getResults())
    if (!part.hasOneUse())
      return {};
  auto finalize = dyn_cast<ring::FinalizeOp>(*attend->user_begin());
  Value state[] = {attend.getMade(0), attend.getMade(1), attend.getMade(2)};
  bool isEnd = finalize && !finalize.hasMaxScores() &&
               finalize->getBlock() == attend->getBlock() &&
               llvm::equal(state, finalize->getOperands());
  return isEnd ? finalize : ring::FinalizeOp();
}

/// Either may be null.
static void fuse(ring::AttendOp attend, ring::InitOp init,
                 ring::FinalizeOp finalize) {
  OpBuilder builder(attend);
  ValueRange results = finalize ? finalize->getResults() : attend->getResults();
  auto part = [&](Value of) { return init ? Value() : of; };
  auto fused = ring::AttendOp::create(
      builder, attend.getLoc(), TypeRange(results), attend.getQuery(),
      attend.getQueryOwner(), attend.getQueryExtent(), attend.getKey(),
      attend.getValue(), attend.getKeyOwner(), attend.getKeyExtent(),
      part(attend.getO()), part(attend.getM()), part(attend.getL()),
      attend.getOffsets(), attend.getPairs(), attend.getMaskCaptures(),
      attend.getScoreCaptures(),
      /*into=*/ValueRange(), attend.getQueryLayout(), attend.getKeyLayout(),
      attend.getScaleAttr(),
      attend.isLast() || finalize ? builder.getUnitAttr() : UnitAttr());
  fused->setDiscardableAttrs(attend->getDiscardableAttrDictionary());
  for (auto [from, to] :
       llvm::zip_equal(attend->getRegions(), fused->getRegions()))
    to.takeBody(from);
  Operation *end = finalize ? finalize.getOperation() : attend;
  end->replaceAllUsesWith(fused);
  if (finalize)
    finalize.erase();
  attend.erase();
  if (init && init.use_empty())
    init.erase();
}

namespace {
struct FuseEnds : burst::impl::FuseEndsPassBase<FuseEnds> {
  using FuseEndsPassBase::FuseEndsPassBase;

  void runOnOperation() override {
    SmallVector<ring::AttendOp> attends;
    getOperation().walk([&](ring::AttendOp op) { attends.push_back(op); });
    for (ring::AttendOp attend : attends) {
      ring::InitOp init = initOf(attend);
      ring::FinalizeOp finalize = finalizeOf(attend);
      if ((init && finalize) || (separately && (init || finalize)))
        fuse(attend, init, finalize);
    }
  }
};
} // namespace
