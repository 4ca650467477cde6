//===- Symmetry.h - ranks that do the same at the same time -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_CLOCK_SYMMETRY_H
#define BURST_PASSES_CLOCK_SYMMETRY_H

#include "passes/Clock/Clock.h"

namespace burst {

/// Translations of a grid, as a torus, that map what ranks do and how they are
/// connected onto itself: along each axis those by a multiple of a period. What
/// a translation maps onto each other happens at the same time. One rank of
/// each orbit, its first, stands for all.
class Symmetry {
public:
  /// Of no translations but that by nothing.
  explicit Symmetry(mlir::shard::GridOp grid);
  /// Of all that map what ranks do onto itself, and the parts of the machine
  /// that several ranks share: `parts` has the number of each by rank.
  Symmetry(mlir::shard::GridOp grid, const Recorded &recorded,
           llvm::ArrayRef<std::vector<size_t>> parts);

  /// The rank that stands for this one.
  int64_t first(int64_t rank) const { return translateBack(rank, rank); }
  /// What the translation from first(by) to `by` maps `rank` to, and what it
  /// maps to `rank`.
  int64_t translate(int64_t rank, int64_t by) const {
    return move(rank, by, 1);
  }
  int64_t translateBack(int64_t rank, int64_t by) const {
    return move(rank, by, -1);
  }
  /// How many translations there are.
  int64_t size() const;
  /// All that translations map `rank` to.
  llvm::SmallVector<int64_t> orbit(int64_t rank) const;

private:
  struct Axis {
    int64_t size, stride, period;
    int64_t placeOf(int64_t rank) const { return rank / stride % size; }
    /// `steps` ahead of `rank`, from -size on.
    int64_t move(int64_t rank, int64_t steps) const {
      int64_t place = placeOf(rank);
      return rank + ((place + steps + size) % size - place) * stride;
    }
  };
  int64_t move(int64_t rank, int64_t by, int64_t times) const;
  bool maps(const Axis &axis, int64_t steps, const Recorded &recorded,
            llvm::ArrayRef<std::vector<size_t>> parts) const;

  llvm::SmallVector<Axis> axes;
  bool isTrivial = true;
};

} // namespace burst

#endif // BURST_PASSES_CLOCK_SYMMETRY_H
