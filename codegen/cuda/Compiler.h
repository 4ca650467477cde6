//===- Compiler.h - kernels compiled once, and many at a time ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CUDA_COMPILER_H
#define BURST_CODEGEN_CUDA_COMPILER_H

#include "codegen/cuda/DiskCache.h"
#include "codegen/cuda/Nvrtc.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ThreadPool.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace burst::cuda {

/// Compiles texts with NVRTC, and remembers on disk what they became: the key
/// is the text, the options, the architecture and the library of NVRTC. It is
/// opened when a text has to be compiled. Where there is none, what the last
/// one compiled is still known.
class Compiler {
public:
  /// Fails where there is no NVRTC, nor was one. 0 threads: one for each CPU.
  static llvm::Expected<std::unique_ptr<Compiler>> create(CacheConfig config,
                                                          unsigned threads = 0);

  llvm::Expected<Binary> compile(const Source &source);

  /// Compiles all at a time, as far as there are threads: the longest texts
  /// first, which take longest.
  std::vector<llvm::Expected<Binary>>
  compileAll(llvm::ArrayRef<Source> sources);

  /// How many texts were compiled, and how many were known.
  int64_t compiled() const { return numCompiled; }
  int64_t known() const { return numKnown; }

private:
  Compiler(CacheConfig config, unsigned threads);
  llvm::Expected<std::string>
      identify(llvm::Expected<std::string> (&identifyNvrtc)(FileHashes));
  std::optional<Binary> find(llvm::StringRef key);

  DiskCache cache;
  std::string nvrtc; ///< what identifies it, before it is opened
  std::mutex mutex;
  llvm::StringMap<std::string> hashes; ///< of files; under the mutex
  llvm::DefaultThreadPool pool;
  std::atomic<int64_t> numCompiled = 0, numKnown = 0;
};

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_COMPILER_H
