//===- Plan.h - plans for people and programs -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_PLAN_H
#define BURST_PASSES_PLAN_H

#include "passes/Simulation/Simulation.h"

#include "llvm/Support/JSON.h"

namespace burst {

/// The `burst.name` of an argument, else `arg0`, `arg1`, ...
std::string argumentName(mlir::func::FuncOp program, unsigned index);

/// The name of an argument, or of what is made for it, by the number that
/// `Tensor::argument` holds.
std::string tensorName(mlir::func::FuncOp program, int number);

/// A program's traffic as `ring-plan` prints it.
llvm::json::Object toJson(mlir::func::FuncOp program,
                          const std::vector<Traffic> &traffic);

} // namespace burst

#endif // BURST_PASSES_PLAN_H
