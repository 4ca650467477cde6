//===- Ring.h - ring_kv and ring_q ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_STRATEGIES_RING_RING_H
#define BURST_PASSES_STRATEGIES_RING_RING_H

#include "passes/Strategies/Strategy.h"

namespace burst {

/// ring_kv: keys and values go round, and gradients by them.
const Strategy *getKeyRing();
/// ring_q: queries go round, and their softmax state or gradient.
const Strategy *getQueryRing();

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_RING_RING_H
