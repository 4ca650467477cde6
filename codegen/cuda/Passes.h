//===- Passes.h - from tiles to CUDA C++ ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CUDA_PASSES_H
#define BURST_CODEGEN_CUDA_PASSES_H

#include "dialect/Cuda/Cuda.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace burst::cuda {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "codegen/cuda/Passes.h.inc"

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_PASSES_H
