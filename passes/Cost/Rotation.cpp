//===- Rotation.cpp - the cost of a ring ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Cost/Cost.h"

#include "llvm/ADT/STLExtras.h"

using namespace burst;

namespace {
/// A ring that goes in one direction.
class Ring {
public:
  /// Shards go no farther than so many hops.
  Ring(const Workload &workload, const Cargo &cargo, int64_t step,
       int64_t farthest);

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
  int64_t getFarthest() const { return farthest; }

private:
  int64_t rankAt(int64_t owner, int64_t hop) const {
    return (owner + hop * step) % parts;
  }
  int64_t most(llvm::function_ref<bool(int64_t)> travels) const;

  const Workload &workload;
  bool movesKeys;
  int64_t step, farthest, parts, segments;
  std::vector<int64_t> count, reach; ///< [owner][segment]
};
} // namespace

Ring::Ring(const Workload &workload, const Cargo &cargo, int64_t step,
           int64_t farthest)
    : workload(workload), movesKeys(cargo.movesKeys), step(step),
      farthest(farthest), parts(workload.layout.parts),
      segments(workload.layout.numSegments()) {
  count.reserve(parts * segments);
  reach.reserve(parts * segments);
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t b = 0; b < segments; ++b) {
      count.push_back(workload.positionsOf(owner, b, movesKeys));
      int64_t far = 0;
      for (int64_t hop = 1; hop <= farthest; ++hop)
        if (workload.needs(rankAt(owner, hop), owner, b, movesKeys))
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
  if (hop > farthest)
    return 0;
  double largest = 0;
  for (int64_t owner = 0; owner < parts; ++owner)
    largest = std::max(largest,
                       workload.pairsOf(rankAt(owner, hop), owner, movesKeys));
  return largest;
}

/// What all of the rings send and compute, of which each serves others of the
/// ranks. Their shards are as far from their owners at a time. Over one axis
/// they share the link of a rank. Over several the slow links are those that
/// leave a node, which a rank does in one direction at most.
static Estimate estimateRings(llvm::ArrayRef<Ring> rings,
                              const Workload &workload, const Cargo &cargo,
                              const Hardware &hardware) {
  auto parts = static_cast<double>(workload.layout.parts);
  auto batch = static_cast<double>(workload.sizes.batch);
  double hops = workload.hopsOfStep;
  Estimate result;
  int64_t farthest = 0;
  for (const Ring &ring : rings) {
    farthest = std::max(farthest, ring.getFarthest());
    double bytes = batch * static_cast<double>(ring.travelled()) *
                   (cargo.slice + cargo.behind) / parts;
    result.bytes += bytes;
    if (hops == 1)
      for (auto [axis, sent] :
           llvm::zip_equal(workload.axes, ring.travelledByAxis()))
        result.addAlong(axis.number,
                        batch *
                            (static_cast<double>(sent.slices) * cargo.slice +
                             static_cast<double>(sent.behind) * cargo.behind) /
                            parts);
    else
      for (auto [index, axis] : llvm::enumerate(workload.axes))
        result.addAlong(axis.number,
                        bytes * shareOfNeighbors(workload.axes, index));
  }
  double secondsOfPair =
      workload.operationsOfPair() * batch / hardware.flops / hops;
  for (int64_t step = 0; step <= farthest + 1; ++step) {
    double compute = 0, bytes = 0;
    for (const Ring &ring : rings) {
      if (step > 0 || compute == 0) // the own shards once
        compute += ring.pairs(step) * secondsOfPair;
      double ofRing = static_cast<double>(ring.sent(step)) * cargo.slice;
      if (step > 0)
        ofRing += static_cast<double>(ring.followed(step - 1)) * cargo.behind;
      bytes =
          workload.axes.size() > 1 ? std::max(bytes, ofRing) : bytes + ofRing;
    }
    double transfer = 0;
    if (bytes != 0)
      transfer = hops * hardware.latency + batch * bytes / hardware.bandwidth;
    // What was added to in the last hop returns to its owner behind it: that is
    // one hop, also where a step stands for several.
    if (step == farthest + 1)
      transfer /= hops;
    result.compute += compute;
    result.hidden += std::min(compute, transfer);
    result.exposed += std::max(transfer - compute, 0.0);
  }
  return result;
}

/// Slices take turns in two buffers, or fill one where they are sent once. What
/// follows a slice is made in two, comes in a third for the next rank, and in a
/// fourth for the owner.
static double receivedBytes(const Workload &workload, const Cargo &cargo,
                            bool isBidirectional) {
  int64_t parts = workload.whole.parts;
  if (parts == 1)
    return 0;
  // Of two ranks there is one way. Of three each turn is the only one, in which
  // nothing is there twice, but what comes before it.
  int64_t ways = isBidirectional && parts > 2 ? 2 : 1;
  int64_t slices = std::min(parts - 1, 2 * ways);
  int64_t behind = ways == 2 && parts == 3 ? 10 : 4 * ways;
  if (cargo.made != 0)
    slices = 2 * ways;
  auto batch = static_cast<double>(workload.sizes.batch);
  auto positions = static_cast<double>(
      cargo.movesKeys ? workload.keysOfRank : workload.queriesOfRank);
  return batch * positions *
         (static_cast<double>(slices) * cargo.slice +
          static_cast<double>(behind) * cargo.made);
}

Estimate burst::estimateRotation(const Workload &workload, const Cargo &cargo,
                                 const Hardware &hardware) {
  int64_t last = workload.layout.parts - 1;
  Ring ahead(workload, cargo, 1, last), back(workload, cargo, last, last);
  const Ring &ring = back.travelled() < ahead.travelled() ? back : ahead;
  Estimate result = estimateRings(ring, workload, cargo, hardware);
  result.buffers = receivedBytes(workload, cargo, /*isBidirectional=*/false);
  return result;
}

Estimate burst::estimateBidirectional(const Workload &workload,
                                      const Cargo &cargo,
                                      const Hardware &hardware) {
  int64_t parts = workload.layout.parts;
  Ring rings[] = {Ring(workload, cargo, 1, (parts - 1) / 2),
                  Ring(workload, cargo, parts - 1, parts / 2)};
  Estimate result = estimateRings(rings, workload, cargo, hardware);
  result.buffers = receivedBytes(workload, cargo, /*isBidirectional=*/true);
  return result;
}
