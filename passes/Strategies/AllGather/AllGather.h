//===- AllGather.h - keys and values of all ranks at once -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_STRATEGIES_ALLGATHER_ALLGATHER_H
#define BURST_PASSES_STRATEGIES_ALLGATHER_ALLGATHER_H

#include "passes/Strategies/Strategy.h"

namespace burst {

/// `all_gather`: each rank gathers the keys and values that its queries need,
/// and computes once. One latency in place of P - 1, for the memory of the
/// whole sequence.
const Strategy *getAllGather();

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_ALLGATHER_ALLGATHER_H
