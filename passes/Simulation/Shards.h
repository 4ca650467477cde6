//===- Shards.h - what ranks hold of a sequence, as a table -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_SIMULATION_SHARDS_H
#define BURST_PASSES_SIMULATION_SHARDS_H

#include "dialect/Burst/Sequence.h"

#include "llvm/ADT/SmallVector.h"

#include <array>
#include <memory>
#include <vector>

namespace burst {

/// What a rank holds of a sequence.
struct Shard {
  int64_t count = 0;                 ///< of positions
  std::array<int64_t, 2> segments{}; ///< and of each segment
  uint64_t mask = 0;                 ///< the segments that are not empty

  /// The positions of some of the segments.
  int64_t countOf(uint64_t chosen) const {
    return (chosen & 1 ? segments[0] : 0) + (chosen & 2 ? segments[1] : 0);
  }
};

/// Answers of Layout, which divides, for all ranks at once: they are asked for
/// in every hop of every rank, of few sequences.
class ShardTable {
public:
  explicit ShardTable(int64_t ranks) : ranks(ranks) {}

  /// The shard of a rank. Valid until the next call.
  const Shard &of(const Layout &layout, int64_t extent, int64_t owner) {
    return find(layout, extent).shards[owner];
  }
  /// Of the shards, the largest.
  int64_t largest(const Layout &layout, int64_t extent);

private:
  struct Sequence {
    Layout layout;
    int64_t extent = 0, largest = -1; ///< -1 until it is asked for
    std::vector<Shard> shards;        ///< by rank
  };
  Sequence &find(const Layout &layout, int64_t extent) {
    for (const auto &known : sequences)
      if (known->extent == extent && known->layout == layout)
        return *known;
    return add(layout, extent);
  }
  Sequence &add(const Layout &layout, int64_t extent);

  int64_t ranks;
  llvm::SmallVector<std::unique_ptr<Sequence>, 4> sequences;
};

} // namespace burst

#endif // BURST_PASSES_SIMULATION_SHARDS_H
