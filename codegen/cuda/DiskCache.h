//===- DiskCache.h - results that outlive a process -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CUDA_DISKCACHE_H
#define BURST_CODEGEN_CUDA_DISKCACHE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <atomic>
#include <functional>
#include <optional>
#include <string>

namespace burst::cuda {

/// Where results are kept, and how much of them.
struct CacheConfig {
  std::string directory;
  uint64_t bytes = 0; ///< what is used least goes; 0: nothing is kept
  /// Told of what went wrong: entries that are damaged or cannot be written. A
  /// cache that fails costs time, never a result.
  std::function<void(llvm::StringRef)> warn;

  /// From BURST_CACHE_DIR, else compiled in $XDG_CACHE_HOME/burst or
  /// ~/.cache/burst, and from BURST_CACHE_BYTES, else 512 MiB. Warnings go to
  /// stderr.
  static llvm::Expected<CacheConfig> fromEnvironment();
};

/// Byte strings by key, in files. Several processes and threads may use one
/// directory at a time: an entry is written under a name of its own, then
/// renamed. Upstream's pruning bounds the directory. Its local cache is not
/// used: it would make LLVM handle the signals of a host process.
///
/// What is found there is run. So neither a directory nor an entry is used that
/// another user owns or may write to, which is said once; new ones are this
/// user's alone (0700 and 0600).
class DiskCache {
public:
  explicit DiskCache(CacheConfig config) : config(std::move(config)) {}

  /// What was put under a key, unless it is gone or damaged; what is damaged is
  /// removed. A key is any text.
  std::optional<std::string> find(llvm::StringRef key) const;
  void put(llvm::StringRef key, llvm::StringRef bytes) const;

private:
  void warn(llvm::Error error) const;
  /// Of what cannot be read or written: it is so with all, and said once.
  void warnOnce(llvm::Error error) const;
  /// Whether there is a directory that nobody else can write to.
  bool isUsable() const;
  llvm::Error write(llvm::StringRef key, llvm::StringRef bytes) const;

  CacheConfig config;
  mutable std::atomic<bool> hasWarned = false;
};

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_DISKCACHE_H
