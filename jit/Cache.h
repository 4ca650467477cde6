//===- Cache.h - programs by what decided their code ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_CACHE_H
#define BURST_JIT_CACHE_H

#include "burst/internal/handle.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

struct burst_cache {
  burst_handle handle = {BURST_MAGIC(BURST_KIND_CACHE)};

  burst_cache() = default;
  burst_cache(const burst_cache &) = delete;
  burst_cache &operator=(const burst_cache &) = delete;
  ~burst_cache();

  /// The program of `key`, with a reference for the caller. Where there is none
  /// `make` makes it; other threads that want it wait, and try themselves if
  /// it fails.
  burst_error *get(const std::string &key,
                   llvm::function_ref<burst_error *(burst_program **)> make,
                   burst_program **program);

  int64_t size();
  int64_t hits();

private:
  std::mutex mutex;
  std::condition_variable changed;
  /// Null while it is being made.
  std::map<std::string, burst_program *> programs;
  int64_t answered = 0;
};

#endif // BURST_JIT_CACHE_H
