//===- CompileLog.h - what the compiler of CUDA says of kernels -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CUDA_COMPILELOG_H
#define BURST_CODEGEN_CUDA_COMPILELOG_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace burst::cuda {

/// What a function needs of a multiprocessor. A function that is no kernel
/// exists where a call was not inlined; it uses the registers, barriers and
/// shared memory of those that call it.
struct FunctionUse {
  std::string name;
  bool isKernel = false;
  unsigned registers = 0; ///< per thread, at launch
  unsigned barriers = 0;
  unsigned stackBytes = 0; ///< per thread, and so are spills
  unsigned spillStoreBytes = 0;
  unsigned spillLoadBytes = 0;
  unsigned sharedBytes = 0; ///< static
};

/// What a log with the option --ptxas-options=-v says.
struct CompileLog {
  std::vector<FunctionUse> functions;
  /// The lines with C7510 to C7520: asynchronous matrix products that are
  /// serialised, or wait where the text does not.
  std::vector<std::string> notes;

  static CompileLog read(llvm::StringRef text);

  /// The use of a kernel, or null.
  const FunctionUse *find(llvm::StringRef kernel) const;

  /// Why kernels would be slower than their text says: spills, a stack, notes.
  /// Empty if they would not be. A log that tells of no kernel proves nothing,
  /// and that is said too.
  std::string rejectionReason() const;
};

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_COMPILELOG_H
