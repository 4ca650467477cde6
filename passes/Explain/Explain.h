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
/// null. `maxRanks` is that of the options, where it is given.
std::unique_ptr<mlir::Pass> createExplainPass(const ExplainPassOptions &options,
                                              std::optional<int64_t> maxRanks,
                                              llvm::raw_ostream &os,
                                              llvm::raw_ostream *drawing);
/// `burst-simulate`, which prints to `os`.
std::unique_ptr<mlir::Pass>
createSimulatePass(const SimulatePassOptions &options, llvm::raw_ostream &os);
/// `ring-plan` of static sizes, which prints to `os`.
std::unique_ptr<mlir::Pass> createPlanPass(llvm::raw_ostream &os);

} // namespace burst

#endif // BURST_PASSES_EXPLAIN_EXPLAIN_H
