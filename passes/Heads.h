//===- Heads.h - the heads that regions see ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_HEADS_H
#define BURST_PASSES_HEADS_H

#include "dialect/Burst/Burst.h"
#include "dialect/Burst/Emit.h"

namespace burst {

/// What a region is given: a head, or bounds of heads from `First` up to but
/// without `End`.
enum class HeadRole : uint8_t { One, First, End };

/// The regions of an attention see the number that `number` makes of that which
/// they are given.
void renumberHeads(
    AttentionInterface attention,
    llvm::function_ref<mlir::Value(Emit, mlir::Value, HeadRole)> number);

} // namespace burst

#endif // BURST_PASSES_HEADS_H
