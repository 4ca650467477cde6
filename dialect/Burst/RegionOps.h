//===- RegionOps.h - the ops that regions are made of -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_BURST_REGIONOPS_H
#define BURST_DIALECT_BURST_REGIONOPS_H

#include "mlir/IR/Operation.h"

namespace burst {

/// Whether every level evaluates, analyses and emits an op of arith or math.
/// Ops are admitted one by one: what a later MLIR adds is refused until it is
/// entered here and known everywhere.
bool isAdmitted(llvm::StringRef opName);

/// What to write in place of an op of arith or math that is not admitted.
llvm::StringRef replacementOf(llvm::StringRef opName);

} // namespace burst

#endif // BURST_DIALECT_BURST_REGIONOPS_H
