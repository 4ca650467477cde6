//===- Nvrtc.h - texts of CUDA C++ to machine code --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CUDA_NVRTC_H
#define BURST_CODEGEN_CUDA_NVRTC_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace burst::cuda {

/// A text of CUDA C++, and for what it is compiled.
struct Source {
  std::string name; ///< of a file: it stands in the messages of the compiler
  std::string text;
  std::string architecture; ///< "sm_90a"; "compute_90a" makes PTX alone
  bool lineInfo = false;    ///< tell profilers which line code comes from
  std::vector<std::string> options; ///< further ones, as NVRTC spells them

  /// All that NVRTC is told.
  std::vector<std::string> allOptions() const;
};

/// The architecture of a compute capability: (8, 6) is "sm_86", (9, 0) is
/// "sm_90a", whose code runs on no other but may use all it has.
std::string architectureOf(int major, int minor);

/// What a text was compiled to.
struct Binary {
  std::string cubin; ///< empty for "compute_90a"
  std::string ptx;
  std::string log; ///< see CompileLog
  /// The oldest driver that takes it, as 1000 times its major version of CUDA.
  int32_t minimumDriver = 0;
};

/// Compiles with the NVRTC that the runtime finds. Several threads may compile
/// at a time. An error has the compiler's log, and says where the text was
/// written to.
llvm::Expected<Binary> compile(const Source &source);

/// What remembers a hash for a file of a given path, size and time: hashing
/// takes longer than to find what was compiled.
struct FileHashes {
  llvm::function_ref<std::optional<std::string>(llvm::StringRef file)> find;
  llvm::function_ref<void(llvm::StringRef file, llvm::StringRef hash)> put;
};

/// What tells the NVRTC that compiles from others: a hash of its library, which
/// is opened.
llvm::Expected<std::string> identifyNvrtc(FileHashes hashes);

/// The same of the library that would be opened, as far as that can be told
/// without it: opening takes longer than to find what was compiled, too. Where
/// it cannot, the library is opened.
llvm::Expected<std::string> identifyNvrtcUnopened(FileHashes hashes);

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_NVRTC_H
