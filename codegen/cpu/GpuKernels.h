//===- GpuKernels.h - kernels of GPUs in programs ---------------*- C++ -*-===//
#ifndef BURST_CODEGEN_CPU_GPUKERNELS_H
#define BURST_CODEGEN_CPU_GPUKERNELS_H

#include "codegen/cpu/Image.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace burst::cpu {

/// The arguments of a launch of a kernel of a GPU, as host code packs them and
/// `Buffer` of the device library has them: a pointer to the order of tasks,
/// then for each argument of the kernel but its task
///     struct { void *data; int64_t steps[rank]; int32_t sizes[rank]; }
/// for a memref, an int32_t for an index, and a scalar as memory holds it.
mlir::LLVM::LLVMStructType gpuArguments(mlir::func::FuncOp kernel);

/// Where each parameter of a kernel lies in these, and how many bytes they are
/// together.
std::vector<GpuParameter> gpuParameters(mlir::func::FuncOp kernel,
                                        int64_t &bytes);

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_GPUKERNELS_H
