//===- Explain.h - schedules as text, where the caller wants it -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_EXPLAIN_EXPLAIN_H
#define BURST_PASSES_EXPLAIN_EXPLAIN_H

#include "passes/Passes.h"

#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <optional>

namespace burst {

/// `burst-explain`, which prints to `os`, and draws to `drawing` unless it is
/// null. `maxRanks` is the option, where it is given.
std::unique_ptr<mlir::Pass> createExplainPass(std::optional<int64_t> maxRanks,
                                              llvm::raw_ostream &os,
                                              llvm::raw_ostream *drawing);
/// `ring-plan` of static sizes, which prints to `os`.
std::unique_ptr<mlir::Pass> createPlanPass(llvm::raw_ostream &os);

} // namespace burst

#endif // BURST_PASSES_EXPLAIN_EXPLAIN_H
