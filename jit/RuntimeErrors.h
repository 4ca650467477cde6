//===- RuntimeErrors.h - making the runtime's errors ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_RUNTIME_ERRORS_H
#define BURST_JIT_RUNTIME_ERRORS_H

#include "burst/internal/error.h"

#include <string>

namespace burst::jit {

inline burst_error *makeError(burst_code code, const std::string &message,
                              const std::string &location = "") {
  return burst_error_create(code, location.c_str(), "%s", message.c_str());
}

} // namespace burst::jit

#endif // BURST_JIT_RUNTIME_ERRORS_H
