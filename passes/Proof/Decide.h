//===- Decide.h - whether integers satisfy a formula ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_PROOF_DECIDE_H
#define BURST_PASSES_PROOF_DECIDE_H

#include "passes/Proof/Formula.h"

#include "llvm/ADT/DynamicAPInt.h"
#include "llvm/ADT/SmallVector.h"

#include <unordered_map>

namespace burst::proof {

/// What was found of a formula.
struct Decision {
  enum class Answer : uint8_t {
    None,   ///< no integers satisfy it
    Some,   ///< `model` does
    Unknown ///< it has more cases than were allowed
  };

  Answer answer = Answer::Unknown;
  llvm::SmallVector<llvm::DynamicAPInt> model; ///< by unknown
  /// Disjunctions that were split, and cases that had no rational point or,
  /// where they had one, no integer point.
  int64_t splits = 0, withoutRational = 0, withoutInteger = 0;
};

/// Looks for integers that satisfy a formula: splits its disjunctions one after
/// the other, as DPLL(T) does, with the simplex of MLIR's Presburger library to
/// close cases. Of the disjunctions left it splits one that the rational point
/// at hand violates, and none where that point satisfies all: most stay whole,
/// where sets of Presburger would expand each. Ends after `mostSplits`.
Decision decide(const Formula &formula, int64_t mostSplits = 1 << 20);

/// Remembers which formulas nothing satisfies: conditions of keys are often
/// those of values, and those of one direction of a ring those of the other.
class Decider {
public:
  /// Whether that was found within `mostSplits`.
  bool isImpossible(const Formula &formula, int64_t mostSplits);

private:
  struct Hash {
    size_t operator()(const Formula &formula) const {
      return formula.getHash();
    }
  };
  std::unordered_map<Formula, bool, Hash> known;
};

} // namespace burst::proof

#endif // BURST_PASSES_PROOF_DECIDE_H
