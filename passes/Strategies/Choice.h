//===- Choice.h - strategies for an attention, weighed ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_STRATEGIES_CHOICE_H
#define BURST_PASSES_STRATEGIES_CHOICE_H

#include "passes/Strategies/Strategy.h"

namespace burst {

/// A strategy, and what it would cost an attention.
struct Candidate {
  const Strategy *strategy; ///< that computes
  StrategyAttr pin;         ///< what pins it, with the exchange around it
  Estimate cost;
  /// That a rank holds: buffers, operands and results, of tables those whose
  /// sizes are known. Where the estimate is that of the plan, so is this, of a
  /// program of this attention alone that uses its arguments.
  double peakBytes;
  /// Whether a rank has so much, see Hardware::memory.
  bool fits = true;
};

/// Which strategies could compute an attention, and which one does.
struct Choice {
  /// All that can be chosen, in their order, and a baseline that is pinned.
  llvm::SmallVector<Candidate> candidates;
  /// The one that is pinned, else the cheapest; none where what is pinned
  /// cannot compute it.
  std::optional<size_t> chosen;
  bool isPinned;
  /// What was taken for granted, in words; empty where all was known.
  std::string assumptions;
  /// Bytes that a rank may hold; infinite where nothing is said of them.
  double memory;
};

/// Weighs strategies for an attention with a sequence, on the machine that its
/// module describes. Needs bounds, and sizes of the whole problem. Emits errors
/// where grid or machine are none, and where no strategy fits the memory of a
/// rank.
llvm::FailureOr<Choice> weighStrategies(AttentionInterface op);

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_CHOICE_H
