//===- Processor.h - what code is compiled for ------------------*- C++ -*-===//
#ifndef BURST_JIT_PROCESSOR_H
#define BURST_JIT_PROCESSOR_H

#include "codegen/cpu/Compile.h"

namespace burst::jit {

/// A processor by LLVM's name, this machine's where that is empty, with
/// `features` ("+avx2,-fma") on top. Fails with a message that names what LLVM
/// does not know.
mlir::FailureOr<cpu::Target> findTarget(llvm::StringRef processor,
                                        llvm::StringRef features,
                                        std::string &error);

/// A feature that code for `target` may use and this machine lacks; empty if
/// there is none.
std::string missingFeature(const cpu::Target &target);

} // namespace burst::jit

#endif // BURST_JIT_PROCESSOR_H
