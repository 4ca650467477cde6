//===- Emit.h - kernels as CUDA C++ -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CUDA_EMIT_H
#define BURST_CODEGEN_CUDA_EMIT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>
#include <string>
#include <vector>

namespace burst::cuda {

/// A tensor map: boxes of a parameter of the kernel's function, for copies of
/// sm_90a. See burst_gpu_map.
struct MapText {
  mlir::Type element;
  std::vector<int64_t> box; ///< sizes, outermost dimension first
  int64_t swizzle = 0;      ///< of rows in shared memory, over so many bytes
};

/// A parameter of a kernel. The arguments of a launch are laid out as a C
/// struct of `order`, then for each argument of the function but its task a
/// Buffer or a scalar; a parameter takes bytes of it, or is a map over its
/// Buffer at `offset`.
struct ParameterText {
  std::string name;
  int64_t offset = 0, bytes = 0;
  std::optional<MapText> map;
};

/// A kernel as text, and what its launch must know.
struct KernelText {
  std::string name;
  std::string text;        ///< without the device library
  int64_t warps = 0;       ///< of a block of threads, which does one task
  int64_t sharedBytes = 0; ///< dynamic shared memory of a block
  std::vector<ParameterText> parameters; ///< in the order of the text
  int64_t argumentBytes = 0;             ///< of a launch
  bool isWarpSpecialized =
      false; ///< compiles for sm_90a only, else for sm_80 and later
};

/// The device library: what the text of every kernel calls.
llvm::StringRef getDeviceLibrary();

/// Prints a kernel (`tile.kernel`, `tile.warps`) without loads to shared
/// memory. Its parameters: `const i32 *order`, the tasks in the order in which
/// blocks take them, or null; then those of the function but for its task: a
/// memref is a Buffer, or a TensorMap where boxes of it are loaded by TMA, and
/// an index an int. An op that has no text is an error at it.
llvm::FailureOr<KernelText> emitKernel(mlir::func::FuncOp kernel);

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_EMIT_H
