//===- Choice.h - strategies for an attention, weighed ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_STRATEGIES_CHOICE_H
#define BURST_PASSES_STRATEGIES_CHOICE_H

#include "passes/Strategies/Strategy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace burst {

/// How heads are exchanged for the sequence around an attention.
struct Exchanged {
  llvm::SmallVector<int64_t> axes = {}; ///< none where they are not
  int64_t chunks = 1;

  bool operator==(const Exchanged &) const = default;
};

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
  Exchanged exchanged = {};
};

/// A strategy that cannot compute an attention, and why, to follow "which".
struct Refused {
  StrategyAttr pin; ///< what would pin it
  std::string why;
};

/// Which strategies could compute an attention, and which one does.
struct Choice {
  /// All that can be chosen, in their order, and what is only pinned.
  std::vector<Candidate> candidates;
  /// All others that were considered.
  std::vector<Refused> refused;
  /// The one that is pinned, else the cheapest; none where what is pinned
  /// cannot compute it.
  std::optional<size_t> chosen;
  bool isPinned;
  /// What was taken for granted, in words; empty where all was known.
  std::string assumptions;
  bool areSizesKnown = true;
  /// Bytes that a rank may hold; infinite where nothing is said of them.
  double memory;
  /// The axes of the grid by which bytes are told: those of several ranks; none
  /// where there is only one.
  llvm::SmallVector<int64_t, 2> axes;
};

/// The attentions of a function that have a sequence; burst-partition refuses
/// those without.
llvm::SmallVector<AttentionInterface> attentionsOf(mlir::func::FuncOp function);

/// Weighs strategies for the attentions of a function, each of which has a
/// sequence, on the machine that their module describes. Since they share what
/// is exchanged, all of them get the exchange with which they take the least
/// time together. Where one of them has not the memory to exchange all heads at
/// once, heads go in chunks too. Needs bounds, and sizes of the whole problem.
/// Emits errors where grid or machine are none, and where no strategy fits the
/// memory of a rank.
llvm::FailureOr<llvm::SmallVector<Choice>>
weighStrategies(llvm::ArrayRef<AttentionInterface> ops);

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_CHOICE_H
