//===- Passes.td - programs of ranks as host code -----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_HOST_PASSES_TD
#define BURST_CODEGEN_HOST_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckLoweredPass : Pass<"burst-check-lowered", "::mlir::ModuleOp"> {
  let summary = "refuses programs that are not lowered to kernels over tiles";
  let description = [{
    The passes from kernels over tiles to LLVM's dialect know nothing of ops of burst
    and ring on tensors. The first one is an error here, which names the pipelines
    that lower it: `burst-to-ring`, `burst-to-tile`.

    Leaves everything as it is.
  }];
}

def HostToRuntimePass : Pass<"burst-host-to-runtime", "::mlir::ModuleOp"> {
  let summary = "lowers launches, transfers and allocations to calls of the runtime";
  let description = [{
    The program of a rank gets two more arguments in front, the rank and the
    runtime's table of functions (`burst/program.h`), and calls through the table.
    Every kernel gets an entry that unpacks the arguments of a launch.

    Needs `ring-lower-to-tile`. Leaves, outside of kernels, no op of ring but
    `ring.segment`, and none of shard and tile.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

#endif // BURST_CODEGEN_HOST_PASSES_TD
