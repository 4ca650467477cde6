//===- PairSet.h - pairs of segments, by rank -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_SIMULATION_PROVE_PAIRSET_H
#define BURST_PASSES_SIMULATION_PROVE_PAIRSET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace burst {

/// Pairs of query and key segments, as the bits a * numB + b of a mask: a rank
/// has at most two segments of either.
using PairMask = uint64_t;

inline PairMask pairBit(int64_t a, int64_t b, int64_t numB) {
  return PairMask{1} << (a * numB + b);
}

/// Those with one of the query segments, or one of the key segments.
PairMask pairsOfQueries(uint64_t segments, int64_t numA, int64_t numB);
PairMask pairsOfKeys(uint64_t segments, int64_t numA, int64_t numB);

/// Pairs of what stays on a rank with what the ranks of a grid own. Slices come
/// by in order and masks drop stretches of it, so ranks next to each other have
/// the same pairs: the set is kept as runs of ranks, and is small and quick to
/// copy whatever the number of ranks.
class PairSet {
public:
  /// Ranks [begin, end), all with the same pairs, which are not none.
  struct Run {
    int64_t begin, end;
    PairMask pairs;
    bool operator==(const Run &) const = default;
  };

  /// The pairs with what `owner` owns.
  PairMask at(int64_t owner) const;
  /// Adds pairs with `owner`; those that were there already.
  PairMask add(int64_t owner, PairMask pairs);
  /// Adds those of `mask` that `other` has; those that were there already, of
  /// any rank.
  PairMask unite(const PairSet &other, PairMask mask = ~PairMask{0});
  /// Those of them that `mask` has.
  PairSet restricted(PairMask mask) const;

  /// Sorted, apart, none like the one that it touches.
  llvm::ArrayRef<Run> getRuns() const { return runs; }
  bool operator==(const PairSet &) const = default;

private:
  void append(int64_t begin, int64_t end, PairMask pairs);
  PairMask unite(llvm::ArrayRef<Run> others, PairMask mask);

  llvm::SmallVector<Run, 4> runs;
};

} // namespace burst

#endif // BURST_PASSES_SIMULATION_PROVE_PAIRSET_H
