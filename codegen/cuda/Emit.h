//===- Emit.h - kernels as CUDA C++ -----------------------------*- C++ -*-===//
#ifndef BURST_CODEGEN_CUDA_EMIT_H
#define BURST_CODEGEN_CUDA_EMIT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace burst::cuda {

/// A kernel as text, and what its launch must know.
struct KernelText {
  std::string name;
  std::string text;        ///< without the device library
  int64_t warps = 0;       ///< of a block of threads, which does one task
  int64_t sharedBytes = 0; ///< dynamic shared memory of a block
};

/// The device library: what the text of every kernel calls.
llvm::StringRef getDeviceLibrary();

/// Prints a kernel (`tile.kernel`, `cuda.team`) without loads to shared memory.
/// Its parameters: `const i32 *order`, the tasks in the order in which blocks
/// take them, or null; then those of the function but for its task: a memref is
/// a Buffer, an index an int. An op that has no text is an error at it.
llvm::FailureOr<KernelText> emitKernel(mlir::func::FuncOp kernel);

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_EMIT_H
