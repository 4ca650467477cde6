//===- KernelCosts.h - how long the steps of a rank take --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_CLOCK_KERNELCOSTS_H
#define BURST_PASSES_CLOCK_KERNELCOSTS_H

#include "passes/Cost/Cost.h"
#include "passes/Simulation/Prove/Audit.h"

#include "llvm/ADT/DenseMap.h"

namespace burst {

/// Tiles of pairs of some queries and keys.
struct Tiles {
  double full = 0, partial = 0; ///< of which the mask keeps all, or some
  double kept = 0;              ///< pairs that it keeps

  double computed() const { return full + partial; }
  Tiles &operator+=(const Tiles &other) {
    full += other.full;
    partial += other.partial;
    kept += other.kept;
    return *this;
  }
};

/// Counts tiles by asking the bounds of a mask about ever smaller boxes.
class TileCounter {
public:
  explicit TileCounter(double tile) : tile(tile) {}

  /// In each of the heads that the rank attends.
  Tiles count(const AttendInputs &inputs, const Segment &queries,
              const Segment &keys);
  HeadRange headsOf(const AttendInputs &inputs) {
    return classifier.attendedHeads(inputs);
  }

private:
  /// Some positions of a segment, by their numbers in it.
  struct Range {
    const Segment &of;
    int64_t begin, end;

    int64_t count() const { return end - begin; }
    /// All positions from the first to the last.
    Segment hull() const {
      int64_t first = of.position(begin);
      return {first, of.position(end - 1) + 1 - first};
    }
    std::pair<Range, Range> halves() const {
      int64_t middle = begin + count() / 2;
      return {{of, begin, middle}, {of, middle, end}};
    }
  };
  Tiles count(const AttendInputs &inputs, Range queries, Range keys,
              int64_t leaf);
  double kept(const AttendInputs &inputs, Range queries, Range keys,
              int64_t leaf);
  PairClass classify(const AttendInputs &inputs, Range queries, Range keys);
  Tiles allOf(Range queries, Range keys) const;

  double tile;
  Classifier classifier;
  int64_t numAsked = 0; ///< boxes
};

/// The attend of a rank: queries of a shard, keys of some slices.
struct AttendWork {
  Tiles tiles;
  double rows = 0; ///< of tiles of queries, in all heads: the tasks
  /// Tiles of the task that has most, and of the one that has least.
  double longest = 0, shortest = 0;
  double operations = 0; ///< for a pair, in one head
  double heads = 0;      ///< of queries, and of all batches
  double bytes = 0;      ///< that are read and written

  double usefulOperations() const { return tiles.kept * heads * operations; }
};

/// Seconds of the steps of a rank, with all processors.
class KernelCosts {
public:
  explicit KernelCosts(const Kernels &kernels)
      : kernels(kernels), counter(kernels.tile) {}

  /// What `attend` computes of the slices that it takes.
  AttendWork workOf(const Attend &attend);
  AttendWork workOf(const AttendGrad &attend);
  /// Pairs that the mask keeps of those that are computed with a slice, in all
  /// heads and batches.
  double keptPairs(const AttendInputs &inputs, int64_t owner);
  /// Products of stored scores: all pairs of queries and keys.
  double seconds(double pairs, double operations, double bytes,
                 mlir::Type element, int64_t headDim) const;

  /// A kernel but for its launch: as long as the slower of what it computes and
  /// what it reads and writes, and what it moves before and behind that; its
  /// tasks keep all processors busy, but for what their numbers and lengths
  /// leave idle. Keys of few tasks are split.
  double seconds(const AttendWork &work, mlir::Type element, int64_t headDim,
                 bool isBackward) const;
  double launch() const { return kernels.launch; }
  /// Of what is received.
  double secondsOfCopy(double bytes) const {
    return bytes / kernels.copyBandwidth;
  }
  /// A kernel that computes next to nothing.
  double seconds(double bytes) const {
    return kernels.launch + bytes / kernels.memoryBandwidth;
  }

private:
  void addPairs(const AttendInputs &inputs, size_t slice, int64_t owner,
                AttendWork &work);
  /// Heads of queries that a rank attends, in all batches.
  double headsOf(const AttendInputs &inputs);
  /// Of the kernels, remembered: it is looked up by names.
  double rate(mlir::Type element, int64_t headDim, Products products) const;

  const Kernels &kernels;
  TileCounter counter;
  /// Forward and backward.
  mutable llvm::SmallDenseMap<std::pair<mlir::Type, int64_t>, double, 2>
      rates[numProducts];
};

} // namespace burst

#endif // BURST_PASSES_CLOCK_KERNELCOSTS_H
