//===- GpuKernels.h - kernels of GPUs in programs ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_HOST_GPUKERNELS_H
#define BURST_CODEGEN_HOST_GPUKERNELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace burst::host {

/// The arguments of a launch of a kernel of a GPU, as host code packs them and
/// `Buffer` of the device library has them: a pointer to the order of tasks,
/// then for each argument of the kernel but its task
///     struct { void *data; int64_t steps[rank]; int32_t sizes[rank]; }
/// for a memref, an int32_t for an index, and a scalar as memory holds it.
mlir::LLVM::LLVMStructType gpuArguments(mlir::func::FuncOp kernel);

} // namespace burst::host

#endif // BURST_CODEGEN_HOST_GPUKERNELS_H
