//===- Candidates.h - strategies side by side -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_EXPLAIN_CANDIDATES_H
#define BURST_PASSES_EXPLAIN_CANDIDATES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace burst {

/// Prints what the strategies would cost each attention of a sequence. Masks
/// have bounds, and sizes are those of the whole problem.
llvm::LogicalResult printCandidates(mlir::ModuleOp module,
                                    llvm::raw_ostream &os);

} // namespace burst

#endif // BURST_PASSES_EXPLAIN_CANDIDATES_H
