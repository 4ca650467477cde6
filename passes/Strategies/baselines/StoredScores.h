//===- StoredScores.h - ring_scores -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_STRATEGIES_BASELINES_STOREDSCORES_H
#define BURST_PASSES_STRATEGIES_BASELINES_STOREDSCORES_H

#include "passes/Strategies/Strategy.h"

namespace burst {

/// ring_scores: keys go round, all scores are stored, then values go round. To
/// compare with.
const Strategy *getStoredScores();

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_BASELINES_STOREDSCORES_H
