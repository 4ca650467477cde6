//===- Pipeline.cpp - from ring programs to LLVM's dialect ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Compile.h"
#include "codegen/cpu/Passes.h"
#include "codegen/host/Passes.h"
#include "codegen/host/Phases.h"
#include "passes/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/MathToFuncs/MathToFuncs.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace burst;
using namespace burst::cpu;
using namespace burst::host;

void burst::cpu::buildBufferPipeline(OpPassManager &pm, const Target &target) {
  pm.addNestedPass<func::FuncOp>(
      createChooseTilesPass({target.triple, target.processor, target.features,
                             target.rows, target.columns}));
  LowerToTilePassOptions options;
  options.panelBytes = target.panelBytes();
  options.keyPanelBytes = target.keyPanelBytes();
  options.strip = target.microRows;
  options.pairs = target.pairs;
  options.localTiling = target.localTiling;
  buildTilePipeline(pm, options);
}

void burst::cpu::buildLLVMPipeline(OpPassManager &pm, const Target &target) {
  pm.addPass(createCheckLoweredPass());
  // A strip asks the bounds about itself and many panels: what is about itself,
  // such as the range of a table over its rows, once.
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createOutlinePass());
  pm.addNestedPass<func::FuncOp>(createCheckBlocksPass());
  pm.addNestedPass<func::FuncOp>(createTileToVectorPass(
      {target.vectorBits, target.microRows, target.microVectors,
       target.keyPanelBytes(), target.steps, target.maxima, target.exponentials,
       target.weights, target.fma, target.dot}));
  if (target.poison)
    pm.addNestedPass<func::FuncOp>(createPoisonBlocksPass());
  pm.addPass(createHostToRuntimePass());
  pm.addPass(createLowerScalarsPass({target.vectorBits}));
  pm.addPass(createExpandFloatsPass());
  // Integer powers as loops of products; libm has none.
  pm.addPass(createConvertMathToFuncs());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  // Functions that are no intrinsics are called lane by lane: before vectors
  // go.
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  ConvertVectorToLLVMPassOptions vectorOptions;
  vectorOptions.x86Vector = target.dot;
  pm.addPass(createConvertVectorToLLVMPass(vectorOptions));
  // All at once: what one dialect makes the next one need not cast.
  ConvertToLLVMPassOptions rest;
  rest.filterDialects = {"arith", "cf", "func", "memref"};
  rest.allowPatternRollback = false;
  pm.addPass(createConvertToLLVMPass(rest));
  pm.addPass(createReconcileUnrealizedCastsPass());
}
