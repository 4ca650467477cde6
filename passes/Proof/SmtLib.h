//===- SmtLib.h - conditions for solvers of others --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_PROOF_SMTLIB_H
#define BURST_PASSES_PROOF_SMTLIB_H

#include "passes/Proof/Formula.h"

namespace burst::proof {

/// Writes in SMT-LIB, by way of upstream's dialect `smt`, whether integers
/// satisfy a formula; a solver answers with `title`, then sat or unsat.
void writeSmtLib(const Formula &formula, llvm::StringRef title,
                 llvm::raw_ostream &os);

} // namespace burst::proof

#endif // BURST_PASSES_PROOF_SMTLIB_H
