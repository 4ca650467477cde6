//===- Problem.h - the oracle's view of an attention ------------*- C++ -*-===//
#ifndef BURST_TOOLS_HARNESS_PROBLEM_H
#define BURST_TOOLS_HARNESS_PROBLEM_H

#include "dialect/Burst/Burst.h"
#include "passes/Machine/Program.h"
#include "tools/oracle/Oracle.h"

#include "llvm/ADT/DenseMap.h"

namespace burst {

/// The values of a function's arguments, by argument.
using Values = llvm::DenseMap<mlir::Value, RegionEvaluator::Capture>;

/// What the oracle evaluates for an attention over global tensors. Named masks
/// and scores are the oracle's own formulas, regions are evaluated. `values`
/// must outlive it. Emits an error at the op where it cannot be said.
llvm::FailureOr<oracle::Problem> makeProblem(AttentionOp op,
                                             const Values &values);

/// The frozen tolerance for an element type.
const oracle::Tolerance &toleranceOf(mlir::Type element);

} // namespace burst

#endif // BURST_TOOLS_HARNESS_PROBLEM_H
