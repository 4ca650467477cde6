//===- NarrowPositions.cpp - what fits in 32 bits is computed in them -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Passes.h"
#include "dialect/Cuda/Cuda.h"

#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace burst::cuda {
#define GEN_PASS_DEF_NARROWPOSITIONSPASS
#include "codegen/cuda/Passes.h.inc"
} // namespace burst::cuda

using namespace mlir;
using namespace burst;

namespace {

/// Ranges of integers, where positions are those that a GPU's program has.
class Ranges : public dataflow::IntegerRangeAnalysis {
  using Lattice = dataflow::IntegerValueRangeLattice;

public:
  using IntegerRangeAnalysis::IntegerRangeAnalysis;

  void visitNonControlFlowArguments(Operation *op,
                                    const RegionSuccessor &successor,
                                    ArrayRef<Lattice *> arguments,
                                    unsigned first) override;
};

/// Forgets what is known of values that are gone.
class Forget : public RewriterBase::Listener {
public:
  explicit Forget(DataFlowSolver &solver) : solver(solver) {}

  void notifyOperationErased(Operation *op) override {
    solver.eraseState(solver.getProgramPointAfter(op));
    for (Value result : op->getResults())
      solver.eraseState(result);
  }

private:
  DataFlowSolver &solver;
};

struct NarrowPositions : cuda::impl::NarrowPositionsPassBase<NarrowPositions> {
  void runOnOperation() override;
};

} // namespace

/// Whether an op has regions that are evaluated at positions.
static bool hasPositions(Operation *op) {
  return isa<tile::MapOp, tile::MapGradientOp, cuda::MaskBitsOp>(op);
}

void Ranges::visitNonControlFlowArguments(Operation *op,
                                          const RegionSuccessor &successor,
                                          ArrayRef<Lattice *> arguments,
                                          unsigned first) {
  if (!hasPositions(op))
    return IntegerRangeAnalysis::visitNonControlFlowArguments(op, successor,
                                                              arguments, first);
  // Positions b, h, i and j, then sizes sq and sk; behind the score.
  constexpr unsigned numPositions = 4, numPlaces = 6;
  auto map = dyn_cast<tile::MapOp>(op);
  bool isMask = isa<cuda::MaskBitsOp>(op) ||
                (map && successor.getSuccessor() == &map.getMask());
  unsigned begin = isMask ? 0 : 1;
  for (auto [n, argument] : llvm::enumerate(arguments)) {
    if (!argument->getAnchor().getType().isIndex()) {
      setToEntryState(argument);
      continue;
    }
    // What is captured comes as an int.
    int64_t least = std::numeric_limits<int32_t>::min(),
            most = std::numeric_limits<int32_t>::max();
    if (n >= begin && n < begin + numPlaces) {
      least = 0;
      most = tile::largestExtent - (n < begin + numPositions ? 1 : 0);
    }
    auto range = ConstantIntRanges::fromSigned(
        APInt(64, least, /*isSigned=*/true), APInt(64, most));
    propagateIfChanged(argument, argument->join(IntegerValueRange(range)));
  }
}

void NarrowPositions::runOnOperation() {
  func::FuncOp kernel = getOperation();
  if (!kernel->hasAttr(tile::warpsAttr))
    return;
  SmallVector<Operation *> scalars;
  kernel.walk([&](Operation *op) {
    if (!hasPositions(op))
      return;
    for (Region &region : op->getRegions())
      region.walk([&](Operation *inner) { scalars.push_back(inner); });
  });
  if (scalars.empty())
    return;
  DataFlowSolver solver;
  dataflow::loadBaselineAnalyses(solver);
  solver.load<Ranges>();
  if (failed(solver.initializeAndRun(kernel)))
    return signalPassFailure();
  RewritePatternSet patterns(&getContext());
  arith::populateIntRangeNarrowingPatterns(patterns, solver, {32});
  Forget forget(solver);
  GreedyRewriteConfig config;
  config.setListener(&forget)
      .setStrictness(GreedyRewriteStrictness::ExistingAndNewOps)
      .enableFolding(false);
  if (failed(applyOpPatternsGreedily(scalars, std::move(patterns), config)))
    signalPassFailure();
}
