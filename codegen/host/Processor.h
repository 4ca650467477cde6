//===- Processor.h - what host code is compiled for -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_HOST_PROCESSOR_H
#define BURST_CODEGEN_HOST_PROCESSOR_H

#include <cstdint>
#include <string>

namespace burst::host {

/// What code generation knows of a processor.
struct Processor {
  std::string triple;
  std::string processor;    ///< LLVM's name of it
  std::string features;     ///< "+avx2,+fma,..."
  int64_t vectorBits = 128; ///< of a vector register
};

} // namespace burst::host

#endif // BURST_CODEGEN_HOST_PROCESSOR_H
