//===- Library.h - programs compiled into this process ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_LIBRARY_H
#define BURST_JIT_LIBRARY_H

#include "jit/Frontend.h"

#include "burst/burst.h"

namespace burst::jit {

/// Takes a program into this process. What is not proved yet can be proved
/// later, see burst_program_prove.
burst_error *install(Compiled compiled, burst_program **program);

/// See burst_program_proof.
burst_proof proofOf(const burst_program *program);

/// See burst_program_prove.
burst_error *prove(burst_program *program,
                   llvm::ArrayRef<burst_tensor> globals);

} // namespace burst::jit

#endif // BURST_JIT_LIBRARY_H
