//===- Problem.h - the oracle's view of an attention ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_HARNESS_PROBLEM_H
#define BURST_TOOLS_HARNESS_PROBLEM_H

#include "dialect/Burst/Burst.h"
#include "passes/Simulation/Binding.h"
#include "tools/data/Safetensors.h"
#include "tools/oracle/Gradients.h"

#include "llvm/ADT/DenseMap.h"

namespace burst {

/// What is known of the values of a function: those of its arguments, and of
/// what it returns where it has run.
using Values = llvm::DenseMap<mlir::Value, RegionEvaluator::Capture>;

/// What the oracle evaluates for an attention over global tensors: the forward
/// pass, also for a backward pass. Named masks and scores are the oracle's own
/// formulas, regions are evaluated. `values` must outlive it. Emits an error at
/// the op where it cannot be said.
llvm::FailureOr<oracle::Problem> makeProblem(AttentionInterface op,
                                             const Values &values);

/// The same for gradients. The slopes of a score region are derived here, see
/// Condition.h: they do not rely on the region that the compiler derives.
llvm::FailureOr<oracle::BackwardProblem> makeProblem(AttentionBackwardOp op,
                                                     const Values &values);

/// What regions of an attention capture: arguments of the function, as `values`
/// has them, and constants. Emits an error at the op for anything else.
llvm::FailureOr<std::vector<RegionEvaluator::Capture>>
captureValues(AttentionInterface op, mlir::OperandRange operands,
              const Values &values);

/// The arguments of a function over global tensors, and what it returned.
Values valuesOf(mlir::func::FuncOp function, llvm::ArrayRef<Argument> globals,
                llvm::ArrayRef<TensorRef> results = {});

/// Where a backward pass takes out and lse from arguments, gives these what the
/// oracle's forward pass says of the others, rounded to their types; not to
/// those that are among the tensors that were `given`.
llvm::LogicalResult giveForward(mlir::func::FuncOp function,
                                llvm::ArrayRef<Argument> globals,
                                const data::Tensors *given = nullptr);

/// The frozen tolerance for an element type.
const oracle::Tolerance &toleranceOf(mlir::Type element);

} // namespace burst

#endif // BURST_TOOLS_HARNESS_PROBLEM_H
