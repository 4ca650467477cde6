//===- Passes.h - passes of burst -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_PASSES_H
#define BURST_PASSES_PASSES_H

#include "dialect/Ring/Ring.h"
#include "dialect/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace burst {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// Which optimisations the pipeline runs; each can be left out to measure it.
struct RingPipelineOptions
    : public mlir::PassPipelineOptions<RingPipelineOptions> {
  Option<bool> drop{*this, "drop",
                    llvm::cl::desc("Drop transfers and attends that the mask "
                                   "does not need."),
                    llvm::cl::init(true)};
  Option<bool> overlap{*this, "overlap",
                       llvm::cl::desc("Issue transfers before computing."),
                       llvm::cl::init(true)};
  Option<bool> fuse{*this, "fuse",
                    llvm::cl::desc("Fuse the ends of a softmax state with its "
                                   "only attend."),
                    llvm::cl::init(true)};
  Option<bool> verify{*this, "verify", llvm::cl::desc("Prove the schedule."),
                      llvm::cl::init(true)};
};

/// From `burst.attention` over global tensors to proved ring programs:
/// `burst-to-ring` on the command line.
void buildRingPipeline(mlir::OpPassManager &pm,
                       const RingPipelineOptions &options);
/// Its two parts: until masks and scores are regions with bounds and gradients,
/// and from there on.
void buildExpandPipeline(mlir::OpPassManager &pm);
void buildSchedulePipeline(mlir::OpPassManager &pm,
                           const RingPipelineOptions &options);

void registerPasses();
void registerPipelines();

} // namespace burst

#endif // BURST_PASSES_PASSES_H
