//===- Cost.cpp - what strategies cost ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Cost/Cost.h"

#include "llvm/ADT/STLExtras.h"

using namespace burst;

Workload::Workload(const AttentionSizes &sizes, int64_t elementBytes,
                   int64_t stateBytes, bool isBackward, const Layout &wanted,
                   Mask mask)
    : sizes(sizes), elementBytes(elementBytes), stateBytes(stateBytes),
      isBackward(isBackward), whole(wanted),
      queriesOfRank(wanted.largest(sizes.queries)),
      keysOfRank(wanted.largest(sizes.keys)), layout(wanted),
      axes{{0, wanted.parts}} {
  layout.parts = std::min(wanted.parts, maxExactRanks);
  hopsOfStep =
      static_cast<double>(wanted.parts) / static_cast<double>(layout.parts);
  int64_t segments = layout.numSegments();
  table.reserve(layout.parts * layout.parts * segments * segments);
  for (int64_t p = 0; p < layout.parts; ++p)
    for (int64_t r = 0; r < layout.parts; ++r)
      for (int64_t a = 0; a < segments; ++a)
        for (int64_t b = 0; b < segments; ++b)
          table.push_back(mask(layout.segment(p, a, sizes.queries),
                               layout.segment(r, b, sizes.keys)));
}

/// A product takes two operations: forward q k and p v; backward q k, dout v,
/// u q and u k, and p dout.
double Workload::operationsOfPair() const {
  int64_t byQueryDim = isBackward ? 3 : 1, byValueDim = isBackward ? 2 : 1;
  return 2 * static_cast<double>(sizes.queryHeads) *
         static_cast<double>(byQueryDim * sizes.queryDim +
                             byValueDim * sizes.valueDim);
}

double Workload::pairsOf(int64_t rank, int64_t owner, bool movesKeys) const {
  int64_t queryOwner = movesKeys ? rank : owner;
  int64_t keyOwner = movesKeys ? owner : rank;
  double sum = 0;
  for (int64_t a = 0; a < layout.numSegments(); ++a) {
    auto queries =
        static_cast<double>(layout.segment(queryOwner, a, sizes.queries).count);
    for (int64_t b = 0; b < layout.numSegments(); ++b)
      sum +=
          queries *
          static_cast<double>(layout.segment(keyOwner, b, sizes.keys).count) *
          kept(queryOwner, keyOwner, a, b).share;
  }
  return sum;
}

int64_t Workload::positionsOf(int64_t owner, int64_t segment,
                              bool movesKeys) const {
  return layout.segment(owner, segment, movesKeys ? sizes.keys : sizes.queries)
      .count;
}

bool Workload::needs(int64_t rank, int64_t owner, int64_t segment,
                     bool movesKeys) const {
  return llvm::any_of(llvm::seq(layout.numSegments()), [&](int64_t own) {
    return (movesKeys ? kept(rank, owner, own, segment)
                      : kept(owner, rank, segment, own))
        .any;
  });
}

/// Yao et al., BurstAttention (arXiv 2403.09347), section 3: backward, either
/// k, v, dk and dv travel, or q, dout, lse, delta and dq. Forward, the softmax
/// state (o, m, l) of queries that travel comes behind them.
Cargo burst::cargoOf(const Workload &workload, bool movesKeys) {
  auto element = static_cast<double>(workload.elementBytes);
  auto state = static_cast<double>(workload.stateBytes);
  auto queryHeads = static_cast<double>(workload.sizes.queryHeads);
  auto keyHeads = static_cast<double>(workload.sizes.keyHeads);
  auto queryDim = static_cast<double>(workload.sizes.queryDim);
  auto valueDim = static_cast<double>(workload.sizes.valueDim);
  auto [wantsQuery, wantsKey, wantsValue] = workload.wanted;
  Cargo cargo{.movesKeys = movesKeys};
  if (movesKeys) {
    cargo.slice = keyHeads * (queryDim + valueDim) * element;
    if (!workload.isBackward)
      return cargo;
    double ofKey = keyHeads * queryDim * state,
           ofValue = keyHeads * valueDim * state;
    cargo.made = ofKey + ofValue;
    cargo.behind = (wantsKey ? ofKey : 0) + (wantsValue ? ofValue : 0);
  } else if (workload.isBackward) {
    cargo.slice = queryHeads * ((queryDim + valueDim) * element + 2 * state);
    cargo.made = queryHeads * queryDim * state;
    cargo.behind = wantsQuery ? cargo.made : 0;
  } else {
    cargo.slice = queryHeads * queryDim * element;
    cargo.made = cargo.behind = queryHeads * (valueDim + 2) * state;
  }
  return cargo;
}

Estimate &Estimate::operator+=(const Estimate &other) {
  bytes += other.bytes;
  compute += other.compute;
  hidden += other.hidden;
  exposed += other.exposed;
  buffers += other.buffers;
  for (auto [axis, count] : llvm::enumerate(other.bytesByAxis))
    addAlong(static_cast<int64_t>(axis), count);
  return *this;
}

void Estimate::addAlong(int64_t axis, double count) {
  if (axis >= static_cast<int64_t>(bytesByAxis.size()))
    bytesByAxis.resize(axis + 1);
  bytesByAxis[axis] += count;
}

/// How many places have the same coordinates as one in front of axis `index`.
static int64_t placesFrom(llvm::ArrayRef<Axis> axes, size_t index) {
  int64_t places = 1;
  for (const Axis &axis : axes.drop_front(index))
    places *= axis.ranks;
  return places;
}

size_t burst::axisBetween(llvm::ArrayRef<Axis> axes, int64_t from, int64_t to) {
  size_t index = 0;
  while (index + 1 < axes.size() &&
         from / placesFrom(axes, index + 1) == to / placesFrom(axes, index + 1))
    ++index;
  return index;
}

double burst::shareOfPairs(llvm::ArrayRef<Axis> axes, size_t index) {
  return static_cast<double>(placesFrom(axes, index) -
                             placesFrom(axes, index + 1)) /
         static_cast<double>(placesFrom(axes, 0) - 1);
}

double burst::shareOfNeighbors(llvm::ArrayRef<Axis> axes, size_t index) {
  auto shareTo = [&](size_t last) { // along one of the axes up to that
    return 1 / static_cast<double>(placesFrom(axes, last + 1));
  };
  return shareTo(index) - (index == 0 ? 0 : shareTo(index - 1));
}

double burst::ownBuffers(const Workload &workload) {
  auto queryHeads = static_cast<double>(workload.sizes.queryHeads);
  auto keyHeads = static_cast<double>(workload.sizes.keyHeads);
  auto queryDim = static_cast<double>(workload.sizes.queryDim);
  auto valueDim = static_cast<double>(workload.sizes.valueDim);
  double ofQuery = workload.givesMaxScores ? 0 : queryHeads; // l or delta
  double ofKey = 0;
  if (workload.elementBytes != workload.stateBytes) {
    ofQuery += queryHeads * (workload.isBackward ? queryDim : valueDim);
    if (workload.isBackward)
      ofKey = keyHeads * (queryDim + valueDim);
  }
  return static_cast<double>(workload.sizes.batch) *
         static_cast<double>(workload.stateBytes) *
         (static_cast<double>(workload.queriesOfRank) * ofQuery +
          static_cast<double>(workload.keysOfRank) * ofKey);
}

size_t burst::cheapest(llvm::ArrayRef<Estimate> estimates, bool areSizesKnown) {
  constexpr double slack = 1.01, room = 2;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  auto smallestOf = [&](double seconds) {
    double smallest = infinity;
    for (const Estimate &estimate : estimates)
      if (estimate.seconds() <= seconds)
        smallest = std::min(smallest, estimate.buffers);
    return smallest;
  };
  double most = areSizesKnown ? infinity : room * smallestOf(infinity);
  double least = infinity;
  for (const Estimate &estimate : estimates)
    if (estimate.buffers <= most)
      least = std::min(least, estimate.seconds());
  most = std::min(most, room * smallestOf(slack * least));
  std::optional<size_t> best;
  for (auto [index, estimate] : llvm::enumerate(estimates))
    if (estimate.seconds() <= slack * least && estimate.buffers <= most &&
        (!best || estimate.bytes < estimates[*best].bytes))
      best = index;
  return *best;
}
