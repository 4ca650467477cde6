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
  std::string target, architectures, processor, features, without;
  burst_cache *cache = nullptr;
};

/// Compiles a text, or finds the program in the cache.
burst_error *compile(const Request &request, burst_program **program);

/// Compiles a text and links a shared object.
burst_error *compileToFile(const Request &request, const char *path);

/// What `burst_explain_text` is asked to tell of a module.
struct ExplainRequest {
  std::string text, name, without, machine, compare;
  int64_t what = BURST_EXPLAIN_TABLE, maxRanks = 0;
};
burst_error *explain(const ExplainRequest &request, std::string &told);

} // namespace burst::jit

#endif // BURST_JIT_REQUEST_H
