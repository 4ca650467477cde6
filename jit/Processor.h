//===- Processor.h - what code is compiled for ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_PROCESSOR_H
#define BURST_JIT_PROCESSOR_H

#include "jit/Frontend.h"

namespace burst::jit {

/// What users say about a target; all but the kind may be empty.
struct TargetOptions {
  std::string kind = "cpu";      ///< or "cuda"
  std::string architectures;     ///< of GPUs: "sm_80,sm_90"
  std::string triple, processor; ///< of the processor, see cpu::Target::named
  std::string features;          ///< on top of the processor's: "+avx2,-fma"
};

/// What programs are compiled for; GPUs, where no architectures are given, are
/// the portable one and those found here. Fails with a message where an option
/// is wrong.
mlir::FailureOr<Target> findTarget(const TargetOptions &options,
                                   std::string &error);

/// What code for `target` may use and this machine lacks: features, or another
/// architecture; empty if there is nothing.
std::string missingFeature(const cpu::Target &target);

} // namespace burst::jit

#endif // BURST_JIT_PROCESSOR_H
