//===- Pipelines.cpp - registration, and the named pipelines --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace burst {
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
} // namespace burst

void burst::registerPasses() { registerBurstPasses(); }

void burst::buildExpandPipeline(OpPassManager &pm) {
  // What is computed: one mechanism for masks and scores.
  pm.addNestedPass<func::FuncOp>(createExpandNamesPass());
  pm.addNestedPass<func::FuncOp>(createGuardRegionsPass());
  pm.addNestedPass<func::FuncOp>(createDeriveBoundsPass());
  pm.addNestedPass<func::FuncOp>(createDeriveGradientsPass());
  pm.addNestedPass<func::FuncOp>(createVerifyExpandedPass());
}

void burst::buildSchedulePipeline(OpPassManager &pm,
                                  const RingPipelineOptions &options) {
  // What travels, asked while sizes are those of the whole problem.
  pm.addPass(createChooseStrategyPass());
  // The program of a rank.
  pm.addPass(createPartitionPass());
  pm.addNestedPass<func::FuncOp>(createVerifyPartitionedPass());
  pm.addNestedPass<func::FuncOp>(createCheckTablesPass());
  pm.addNestedPass<func::FuncOp>(createNumberHeadsPass());
  pm.addNestedPass<func::FuncOp>(createSplitHeadsPass());
  // Who sends what, when.
  pm.addNestedPass<func::FuncOp>(createLowerToRingPass());
  if (options.drop)
    pm.addPass(createDropEmptyPass());
  pm.addPass(createLowerRotatePass());
  pm.addNestedPass<func::FuncOp>(createLowerGatherPass());
  pm.addNestedPass<func::FuncOp>(createAccumulatePass());
  if (options.overlap)
    pm.addNestedPass<func::FuncOp>(createOverlapPass());
  // Reads of a table that is computed once must not turn into the computation.
  pm.addPass(createCanonicalizerPass(
      {}, {"(anonymous namespace)::ExtractFromTensorGenerate"}));
  pm.addPass(createCSEPass());
  if (options.fuse)
    pm.addNestedPass<func::FuncOp>(createFuseEndsPass());
  if (options.verify)
    pm.addPass(createVerifyRingPass({/*allowEmpty=*/!options.drop}));
}

void burst::buildRingPipeline(OpPassManager &pm,
                              const RingPipelineOptions &options) {
  buildExpandPipeline(pm);
  buildSchedulePipeline(pm, options);
}

void burst::registerPipelines() {
  PassPipelineRegistration<RingPipelineOptions>(
      "burst-to-ring",
      "From burst.attention over global tensors to proved ring programs",
      buildRingPipeline);
}
