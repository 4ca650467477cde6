//===- Shares.cpp - what ranks hold of a sequence, as a table -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Shares.h"

#include <algorithm>

using namespace burst;

/// Programs have a sequence or two; one that makes up extents as it runs must
/// not fill the memory.
static constexpr size_t maxSequences = 16;

ShareTable::Sequence &ShareTable::add(const Deal &deal, int64_t extent) {
  if (sequences.size() == maxSequences)
    sequences.clear();
  auto sequence = std::make_unique<Sequence>();
  sequence->deal = deal;
  sequence->extent = extent;
  sequence->shares.resize(ranks);
  for (int64_t owner = 0; Share &share : sequence->shares) {
    for (int64_t s = 0; s < deal.numSegments(); ++s) {
      share.segments[s] = deal.segment(owner, s, extent).count;
      share.count += share.segments[s];
      share.mask |= uint64_t{share.segments[s] != 0} << s;
    }
    ++owner;
  }
  return *sequences.emplace_back(std::move(sequence));
}

int64_t ShareTable::largest(const Deal &deal, int64_t extent) {
  Sequence &sequence = find(deal, extent);
  if (sequence.largest < 0)
    sequence.largest = deal.largest(extent);
  return sequence.largest;
}
