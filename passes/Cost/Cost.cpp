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
  if (movesKeys) {
    double numbers = keyHeads * (queryDim + valueDim);
    return {true, numbers * element, workload.isBackward ? numbers * state : 0};
  }
  if (!workload.isBackward)
    return {false, queryHeads * queryDim * element,
            queryHeads * (valueDim + 2) * state};
  return {false, queryHeads * ((queryDim + valueDim) * element + 2 * state),
          queryHeads * queryDim * state};
}

namespace {
/// A ring that goes in one direction.
class Ring {
public:
  Ring(const Workload &workload, const Cargo &cargo, int64_t step);

  /// Positions that go from rank to rank, times hops, of all ranks.
  int64_t travelled() const;
  /// The same along each axis: of slices, and of what follows them, which in
  /// the end goes to the owner.
  struct Travelled {
    int64_t slices = 0, behind = 0;
  };
  llvm::SmallVector<Travelled> travelledByAxis() const;
  /// The most positions of a slice that a rank sends at `hop`.
  int64_t sent(int64_t hop) const;
  /// The most positions of which what follows the slice was added to at `hop`,
  /// and is sent then.
  int64_t followed(int64_t hop) const;
  /// The most pairs that a rank computes at `hop`.
  double pairs(int64_t hop) const;

private:
  int64_t extent(bool ofKeys) const {
    return ofKeys ? workload.sizes.keys : workload.sizes.queries;
  }
  /// Of the rank that stays and the owner of what moves; a is the staying
  /// one's.
  const Kept &kept(int64_t rank, int64_t owner, int64_t a, int64_t b) const {
    return movesKeys ? workload.kept(rank, owner, a, b)
                     : workload.kept(owner, rank, b, a);
  }
  int64_t rankAt(int64_t owner, int64_t hop) const {
    return (owner + hop * step) % parts;
  }
  int64_t most(llvm::function_ref<bool(int64_t)> travels) const;

  const Workload &workload;
  bool movesKeys;
  int64_t step, parts, segments;
  std::vector<int64_t> count, reach; ///< [owner][segment]
};
} // namespace

Ring::Ring(const Workload &workload, const Cargo &cargo, int64_t step)
    : workload(workload), movesKeys(cargo.movesKeys), step(step),
      parts(workload.layout.parts), segments(workload.layout.numSegments()) {
  count.reserve(parts * segments);
  reach.reserve(parts * segments);
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t b = 0; b < segments; ++b) {
      count.push_back(
          workload.layout.segment(owner, b, extent(movesKeys)).count);
      int64_t far = 0;
      for (int64_t hop = 1; hop < parts; ++hop)
        for (int64_t a = 0; a < segments; ++a)
          if (kept(rankAt(owner, hop), owner, a, b).any)
            far = hop;
      reach.push_back(far);
    }
}

int64_t Ring::travelled() const {
  int64_t sum = 0;
  for (auto [positions, hops] : llvm::zip_equal(count, reach))
    sum += positions * hops;
  return sum;
}

llvm::SmallVector<Ring::Travelled> Ring::travelledByAxis() const {
  llvm::SmallVector<Travelled> result(workload.axes.size());
  auto along = [&](int64_t from, int64_t to) -> Travelled & {
    return result[axisBetween(workload.axes, from, to)];
  };
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t b = 0; b < segments; ++b) {
      int64_t positions = count[owner * segments + b];
      int64_t far = reach[owner * segments + b];
      for (int64_t hop = 0; hop < far; ++hop) {
        int64_t next = rankAt(owner, hop + 1);
        along(rankAt(owner, hop), next).slices += positions;
        int64_t to = hop + 1 == far ? owner : rankAt(owner, hop + 2);
        along(next, to).behind += positions;
      }
    }
  return result;
}

int64_t Ring::most(llvm::function_ref<bool(int64_t)> travels) const {
  int64_t largest = 0;
  for (int64_t owner = 0; owner < parts; ++owner) {
    int64_t sum = 0;
    for (int64_t i = owner * segments; i < (owner + 1) * segments; ++i)
      if (travels(reach[i]))
        sum += count[i];
    largest = std::max(largest, sum);
  }
  return largest;
}

int64_t Ring::sent(int64_t hop) const {
  return most([&](int64_t reach) { return hop < reach; });
}

int64_t Ring::followed(int64_t hop) const {
  return most([&](int64_t reach) { return hop >= 1 && hop <= reach; });
}

double Ring::pairs(int64_t hop) const {
  double largest = 0;
  for (int64_t owner = 0; owner < parts; ++owner)
    largest = std::max(largest,
                       workload.pairsOf(rankAt(owner, hop), owner, movesKeys));
  return largest;
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

/// Slices take turns in two buffers, or fill one where they are sent once. What
/// follows a slice is made in two, comes in a third for the next rank, and in a
/// fourth for the owner.
static double receivedBytes(const Workload &workload, const Cargo &cargo) {
  int64_t parts = workload.whole.parts;
  if (parts == 1)
    return 0;
  bool isTwice = cargo.behind != 0 || parts > 2;
  auto batch = static_cast<double>(workload.sizes.batch);
  auto positions = static_cast<double>(
      cargo.movesKeys ? workload.keysOfRank : workload.queriesOfRank);
  return batch * positions *
         ((isTwice ? 2.0 : 1.0) * cargo.slice + 4 * cargo.behind);
}

Estimate burst::estimateRotation(const Workload &workload, const Cargo &cargo,
                                 const Hardware &hardware) {
  int64_t parts = workload.layout.parts;
  auto batch = static_cast<double>(workload.sizes.batch);
  Ring ahead(workload, cargo, 1), back(workload, cargo, parts - 1);
  const Ring &ring = back.travelled() < ahead.travelled() ? back : ahead;
  Estimate result;
  result.buffers = receivedBytes(workload, cargo);
  result.bytes = batch * static_cast<double>(ring.travelled()) *
                 (cargo.slice + cargo.behind) / static_cast<double>(parts);
  double hops = workload.hopsOfStep;
  if (hops == 1)
    for (auto [axis, sent] :
         llvm::zip_equal(workload.axes, ring.travelledByAxis()))
      result.addAlong(axis.number,
                      batch *
                          (static_cast<double>(sent.slices) * cargo.slice +
                           static_cast<double>(sent.behind) * cargo.behind) /
                          static_cast<double>(parts));
  else
    for (auto [index, axis] : llvm::enumerate(workload.axes))
      result.addAlong(axis.number,
                      result.bytes * shareOfNeighbors(workload.axes, index));
  double secondsOfPair =
      workload.operationsOfPair() * batch / hardware.flops / hops;
  for (int64_t step = 0; step <= parts; ++step) {
    double compute = 0, bytes = 0;
    if (step < parts) {
      compute = ring.pairs(step) * secondsOfPair;
      bytes = static_cast<double>(ring.sent(step)) * cargo.slice;
    }
    if (step > 0)
      bytes += static_cast<double>(ring.followed(step - 1)) * cargo.behind;
    double transfer = 0;
    if (bytes != 0)
      transfer = hops * hardware.latency + batch * bytes / hardware.bandwidth;
    // What was added to in the last hop returns to its owner behind it: that is
    // one hop, also where a step stands for several.
    if (step == parts)
      transfer /= hops;
    result.compute += compute;
    result.hidden += std::min(compute, transfer);
    result.exposed += std::max(transfer - compute, 0.0);
  }
  return result;
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
  double ofQuery = queryHeads, ofKey = 0; // l or delta
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
