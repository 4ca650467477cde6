//===- Processor.h - what code is compiled for ------------------*- C++ -*-===//
#ifndef BURST_JIT_PROCESSOR_H
#define BURST_JIT_PROCESSOR_H

#include "jit/Frontend.h"

namespace burst::jit {

/// A processor by LLVM's name, this machine's where that is empty, with
/// `features` ("+avx2,-fma") on top. Fails with a message that names what LLVM
/// does not know.
mlir::FailureOr<cpu::Target> findProcessor(llvm::StringRef processor,
                                           llvm::StringRef features,
                                           std::string &error);

/// What programs are compiled for: `name` is "cpu" or "cuda"; GPUs of
/// `architectures` ("sm_80,sm_90"), where that is empty the portable one and
/// those found here. Fails with a message where an option is wrong.
mlir::FailureOr<Target> findTarget(llvm::StringRef name,
                                   llvm::StringRef architectures,
                                   llvm::StringRef processor,
                                   llvm::StringRef features,
                                   std::string &error);

/// A feature that code for `target` may use and this machine lacks; empty if
/// there is none.
std::string missingFeature(const cpu::Target &target);

} // namespace burst::jit

#endif // BURST_JIT_PROCESSOR_H
