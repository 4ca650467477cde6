//===- Nest.cpp - the cost of a ring inside of another --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Cost/Cost.h"

#include "llvm/ADT/STLExtras.h"

using namespace burst;

namespace {
/// An outer ring, and in each of its turns an inner one, counted rank by rank.
class Nest {
public:
  Nest(const Workload &workload, const Cargo &cargo, int64_t innerRanks);

  /// Positions that go from rank to rank along the outer ring, times hops, of
  /// all ranks, and along inner ones.
  int64_t outerTravelled() const { return outerSum; }
  int64_t innerTravelled() const { return innerSum; }

  /// The most positions that a rank sends along the outer ring in a turn of it,
  /// and the most of which what follows was added to, and is sent then.
  int64_t outerSent(int64_t turn) const;
  int64_t outerFollowed(int64_t turn) const;
  /// The same along inner ones, at a hop in a turn of the outer one.
  int64_t innerSent(int64_t turn, int64_t hop) const;
  int64_t innerFollowed(int64_t turn, int64_t hop) const;
  /// The most pairs that a rank computes then.
  double pairs(int64_t turn, int64_t hop) const;

  int64_t outer, inner; ///< ranks of the rings

private:
  /// The ranks so many hops ahead along the outer ring, and along the inner
  /// one.
  int64_t ahead(int64_t rank, int64_t turns, int64_t hops) const {
    int64_t node = (rank / inner + turns * outerStep) % outer;
    return node * inner + (rank % inner + hops * innerStep) % inner;
  }
  int64_t ownerAt(int64_t rank, int64_t turn, int64_t hop) const {
    return ahead(rank, outer - turn, inner - hop);
  }
  void findNeeds();
  void findOuterReach(int64_t step);
  void findInnerReach(int64_t step);
  int64_t
  most(llvm::function_ref<bool(int64_t rank, int64_t &owner, int64_t segment)>
           travels) const;

  const Workload &workload;
  bool movesKeys;
  int64_t parts, segments;
  int64_t outerStep = 1, innerStep = 1;
  int64_t outerSum = 0, innerSum = 0;
  std::vector<int64_t> count;      ///< [owner][segment]
  std::vector<bool> needs;         ///< [owner][rank][segment]
  std::vector<int64_t> outerReach; ///< [owner][segment]
  std::vector<int64_t> innerReach; ///< [owner][ring][segment]
};
} // namespace

Nest::Nest(const Workload &workload, const Cargo &cargo, int64_t innerRanks)
    : outer(workload.layout.parts / innerRanks), inner(innerRanks),
      workload(workload), movesKeys(cargo.movesKeys),
      parts(workload.layout.parts), segments(workload.layout.numSegments()) {
  findNeeds();
  // Of each ring the direction in which less travels, the first of two alike.
  findOuterReach(outer - 1);
  int64_t back = outerSum;
  findOuterReach(1);
  if (back < outerSum)
    findOuterReach(outer - 1);
  findInnerReach(inner - 1);
  back = innerSum;
  findInnerReach(1);
  if (back < innerSum)
    findInnerReach(inner - 1);
}

void Nest::findNeeds() {
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t b = 0; b < segments; ++b)
      count.push_back(workload.positionsOf(owner, b, movesKeys));
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t rank = 0; rank < parts; ++rank)
      for (int64_t b = 0; b < segments; ++b)
        needs.push_back(workload.needs(rank, owner, b, movesKeys));
}

void Nest::findOuterReach(int64_t step) {
  outerStep = step;
  outerSum = 0;
  outerReach.assign(parts * segments, 0);
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t b = 0; b < segments; ++b) {
      int64_t &reach = outerReach[owner * segments + b];
      for (int64_t turn = 1; turn < outer; ++turn)
        for (int64_t hop = 0; hop < inner; ++hop)
          if (needs[(owner * parts + ahead(owner, turn, hop)) * segments + b])
            reach = turn;
      outerSum += reach * count[owner * segments + b];
    }
}

void Nest::findInnerReach(int64_t step) {
  innerStep = step;
  innerSum = 0;
  innerReach.assign(parts * outer * segments, 0);
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t ring = 0; ring < outer; ++ring)
      for (int64_t b = 0; b < segments; ++b) {
        int64_t &reach = innerReach[(owner * outer + ring) * segments + b];
        int64_t first = ring * inner + owner % inner;
        for (int64_t hop = 1; hop < inner; ++hop)
          if (needs[(owner * parts + ahead(first, 0, hop)) * segments + b])
            reach = hop;
        innerSum += reach * count[owner * segments + b];
      }
}

int64_t Nest::most(
    llvm::function_ref<bool(int64_t rank, int64_t &owner, int64_t segment)>
        travels) const {
  int64_t largest = 0;
  for (int64_t rank = 0; rank < parts; ++rank) {
    int64_t sum = 0;
    for (int64_t b = 0; b < segments; ++b) {
      int64_t owner = 0;
      if (travels(rank, owner, b))
        sum += count[owner * segments + b];
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

int64_t Nest::outerSent(int64_t turn) const {
  return most([&](int64_t rank, int64_t &owner, int64_t b) {
    owner = ownerAt(rank, turn, 0);
    return turn < outerReach[owner * segments + b];
  });
}

int64_t Nest::outerFollowed(int64_t turn) const {
  return most([&](int64_t rank, int64_t &owner, int64_t b) {
    owner = ownerAt(rank, turn, 0);
    return turn >= 1 && turn <= outerReach[owner * segments + b];
  });
}

int64_t Nest::innerSent(int64_t turn, int64_t hop) const {
  return most([&](int64_t rank, int64_t &owner, int64_t b) {
    owner = ownerAt(rank, turn, hop);
    return hop < innerReach[(owner * outer + rank / inner) * segments + b];
  });
}

int64_t Nest::innerFollowed(int64_t turn, int64_t hop) const {
  return most([&](int64_t rank, int64_t &owner, int64_t b) {
    owner = ownerAt(rank, turn, hop);
    return hop >= 1 &&
           hop <= innerReach[(owner * outer + rank / inner) * segments + b];
  });
}

double Nest::pairs(int64_t turn, int64_t hop) const {
  double largest = 0;
  for (int64_t rank = 0; rank < parts; ++rank)
    largest = std::max(
        largest, workload.pairsOf(rank, ownerAt(rank, turn, hop), movesKeys));
  return largest;
}

/// The outer ring has two buffers for slices, inner ones as a ring has them;
/// what follows a slice takes four in each.
static double receivedBytes(const Workload &workload, const Cargo &cargo) {
  bool isTwice = cargo.made != 0 || workload.innerRanks() > 2;
  auto batch = static_cast<double>(workload.sizes.batch);
  auto positions = static_cast<double>(
      cargo.movesKeys ? workload.keysOfRank : workload.queriesOfRank);
  return batch * positions *
         ((isTwice ? 4.0 : 3.0) * cargo.slice + 8 * cargo.made);
}

namespace {
/// Seconds of a link that rings share.
struct Turn {
  double compute = 0, hidden = 0, exposed = 0;
  double busy = 0; ///< with what inner rings send

  void add(double computation, double transfer) {
    compute += computation;
    busy += transfer;
    hidden += std::min(computation, transfer);
    exposed += std::max(transfer - computation, 0.0);
  }
};
} // namespace

/// The ranks of an inner ring where those of the whole grid stand for fewer.
static int64_t innerRanksOf(const Workload &workload) {
  if (workload.layout.parts == workload.whole.parts)
    return workload.innerRanks();
  int64_t ranks = 2;
  while (ranks * 2 <=
         std::min(workload.innerRanks(), workload.layout.parts / 2))
    ranks *= 2;
  return ranks;
}

Estimate burst::estimateNest(const Workload &workload, const Cargo &cargo,
                             const Hardware &hardware) {
  if (workload.innerRanks() == 1 ||
      workload.innerRanks() == workload.whole.parts)
    return estimateRotation(workload, cargo, hardware);
  Nest nest(workload, cargo, innerRanksOf(workload));
  auto batch = static_cast<double>(workload.sizes.batch);
  auto parts = static_cast<double>(workload.layout.parts);
  double hops = workload.hopsOfStep;
  double innerHops = static_cast<double>(workload.innerRanks()) /
                     static_cast<double>(nest.inner);
  double outerHops = hops / innerHops;
  Estimate result;
  result.buffers = receivedBytes(workload, cargo);
  result.bytes = batch * (cargo.slice + cargo.behind) / parts *
                 (static_cast<double>(nest.innerTravelled()) +
                  static_cast<double>(nest.outerTravelled()) / innerHops);
  double ofPosition = batch * (cargo.slice + cargo.behind) / parts;
  result.addAlong(workload.axes.back().number,
                  ofPosition * static_cast<double>(nest.innerTravelled()));
  result.addAlong(workload.axes.front().number,
                  ofPosition * static_cast<double>(nest.outerTravelled()) /
                      innerHops);
  double secondsOfPair =
      workload.operationsOfPair() * batch / hardware.flops / hops;
  Link shared{hardware.bandwidth, hardware.latency};
  auto [outerLink, innerLink] =
      hardware.rings.value_or(std::pair(shared, shared));
  auto secondsOf = [&](const Link &link, double latencies, double bytes) {
    if (bytes == 0)
      return 0.0;
    return latencies * link.latency + batch * bytes / link.bandwidth;
  };
  for (int64_t t = 0; t <= nest.outer; ++t) {
    Turn turn;
    for (int64_t hop = 0; t < nest.outer && hop <= nest.inner; ++hop) {
      double bytes = 0, compute = 0;
      if (hop < nest.inner) {
        compute = nest.pairs(t, hop) * secondsOfPair;
        bytes = static_cast<double>(nest.innerSent(t, hop)) * cargo.slice;
      }
      if (hop > 0 && cargo.behind != 0)
        bytes +=
            static_cast<double>(nest.innerFollowed(t, hop - 1)) * cargo.behind;
      // What returns to who has the shard does so in one hop.
      double latencies = hop == nest.inner ? outerHops : hops;
      turn.add(compute, secondsOf(innerLink, latencies, bytes));
    }
    // Meanwhile the outer ring has its link, or what inner ones leave of one.
    double bytes = 0;
    if (t < nest.outer)
      bytes = static_cast<double>(nest.outerSent(t)) * cargo.slice;
    if (t > 0)
      bytes += static_cast<double>(nest.outerFollowed(t - 1)) * cargo.behind;
    double latencies = t == nest.outer ? 1 : outerHops;
    double transfer = secondsOf(outerLink, latencies, bytes / innerHops);
    double left =
        turn.compute + turn.exposed - (hardware.rings ? 0 : turn.busy);
    result.compute += turn.compute;
    result.hidden += turn.hidden + std::min(transfer, left);
    result.exposed += turn.exposed + std::max(transfer - left, 0.0);
  }
  return result;
}
