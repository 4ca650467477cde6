//===- Phases.h - what compilations have in common --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_HOST_PHASES_H
#define BURST_CODEGEN_HOST_PHASES_H

#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <string>

namespace burst::host {

/// Where phases of a compilation are written: IR of each phase, LLVM IR, the
/// object. Empty: nowhere.
struct Dump {
  std::string directory;

  mlir::LogicalResult operator()(mlir::Operation *op, llvm::StringRef name,
                                 llvm::StringRef text) const;
};

/// A module as text, without locations.
std::string print(mlir::ModuleOp module);

/// Leaves of the ring programs of a module `entry`, and what it calls. Emits an
/// error at the module where there is none.
mlir::LogicalResult isolate(mlir::ModuleOp module, llvm::StringRef entry);

/// From ring programs on tensors to kernels over tiles.
void buildTilePipeline(mlir::OpPassManager &pm,
                       const LowerToTilePassOptions &options);

} // namespace burst::host

#endif // BURST_CODEGEN_HOST_PHASES_H
