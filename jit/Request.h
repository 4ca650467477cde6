//===- Request.h - what a caller wants compiled -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_REQUEST_H
#define BURST_JIT_REQUEST_H

#include "burst/burst.h"

#include <string>

namespace burst::jit {

/// A text, and how it is compiled, as it was asked for.
struct Request {
  std::string text, name, entry, dumpDirectory;
  std::string target, architectures, processor, features;
  burst_cache *cache = nullptr;
};

/// Compiles a text, or finds the program in the cache.
burst_error *compile(const Request &request, burst_program **program);

/// Compiles a text and links a shared object.
burst_error *compileToFile(const Request &request, const char *path);

/// What `burst_explain_text` tells of a module.
burst_error *explain(const std::string &text, const std::string &name,
                     int64_t what, int64_t maxRanks, std::string &told);

} // namespace burst::jit

#endif // BURST_JIT_REQUEST_H
