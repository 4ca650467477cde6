//===- Heads.h - the heads that regions see ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_HEADS_H
#define BURST_PASSES_HEADS_H

#include "dialect/Burst/Burst.h"
#include "dialect/Burst/Emit.h"

namespace burst {

/// The regions of an attention see the number that `number` makes of that which
/// they are given: of a head, or, where `isEnd`, of the one behind the last of
/// those that bounds are asked about.
void renumberHeads(
    AttentionInterface attention,
    llvm::function_ref<mlir::Value(Emit, mlir::Value, bool isEnd)> number);

} // namespace burst

#endif // BURST_PASSES_HEADS_H
