//===- Shards.cpp - what ranks hold of a sequence, as a table -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Shards.h"

#include <algorithm>

using namespace burst;

/// Programs have a sequence or two; one that makes up extents as it runs must
/// not fill the memory.
static constexpr size_t maxSequences = 16;

ShardTable::Sequence &ShardTable::add(const Layout &layout, int64_t extent) {
  if (sequences.size() == maxSequences)
    sequences.clear();
  auto sequence = std::make_unique<Sequence>();
  sequence->layout = layout;
  sequence->extent = extent;
  sequence->shards.resize(ranks);
  for (int64_t owner = 0; Shard &shard : sequence->shards) {
    for (int64_t s = 0; s < layout.numSegments(); ++s) {
      shard.segments[s] = layout.segment(owner, s, extent).count;
      shard.count += shard.segments[s];
      shard.mask |= uint64_t{shard.segments[s] != 0} << s;
    }
    ++owner;
  }
  return *sequences.emplace_back(std::move(sequence));
}

int64_t ShardTable::largest(const Layout &layout, int64_t extent) {
  Sequence &sequence = find(layout, extent);
  if (sequence.largest < 0)
    sequence.largest = layout.largest(extent);
  return sequence.largest;
}
