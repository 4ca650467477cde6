//===- Compile.h - ring programs for GPUs to object files -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CUDA_COMPILE_H
#define BURST_CODEGEN_CUDA_COMPILE_H

#include "codegen/cpu/Compile.h"
#include "codegen/cuda/Compiler.h"

namespace burst::cuda {

/// GPUs, and how much is tried for them.
struct Target {
  /// "sm_80", ...: machine code is made for each of them, and PTX, for all
  /// later ones, of the first.
  std::vector<std::string> architectures;

  /// The architectures of a list "sm_80,sm_90". Fails with a message.
  static mlir::FailureOr<Target> named(llvm::StringRef architectures,
                                       std::string &error);
  /// The portable one, and machine code for the GPUs found here; or that of
  /// sm_90a alone, where all of them are such.
  static Target here();
  /// Whether kernels are warp-specialized (a producer and consumers), as on
  /// sm_90a.
  bool isWarpSpecialized() const;
  std::string str() const;
};

/// Dynamic shared memory that a block of an architecture can have.
int64_t sharedBytesOf(llvm::StringRef architecture);

/// Compiles the ring program `entry` of a module: kernels by NVRTC, all at a
/// time, and what launches them for `processor`, to objects as
/// cpu::compileToObjects makes. For attends, gradients by queries and those by
/// keys, each, the first of the shapes for the head dimension is taken with
/// which no kernel is rejected (CompileLog), and else the last one, with a
/// warning; the program says which (`cuda.shape`) and why not those before
/// (`cuda.refused`). The module is used up. Errors are emitted.
mlir::FailureOr<host::Objects>
compileToObjects(mlir::ModuleOp module, llvm::StringRef entry,
                 const Target &target, const cpu::Target &processor,
                 host::Parts parts, const host::Dump &dump = {});

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_COMPILE_H
