//===- Gathering.cpp - the cost of shards of all ranks at once ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Cost/Cost.h"

using namespace burst;

namespace {
/// What ranks gather, counted rank by rank.
class Needs {
public:
  Needs(const Workload &workload, bool movesKeys)
      : workload(workload), movesKeys(movesKeys), parts(workload.layout.parts),
        segments(workload.layout.numSegments()) {}

  /// Positions of what an owner sends that a rank needs.
  int64_t positions(int64_t owner, int64_t rank) const;
  /// Those that all ranks receive from others.
  double all() const;
  /// The share of these along each axis.
  llvm::SmallVector<double> sharesOfAxes() const;
  /// The most that a rank sends to others, or receives from them.
  double most() const;
  /// The most that a rank sends to the one so far behind it.
  double mostAt(int64_t distance) const;
  /// The most pairs that a rank computes, and those with what is of the rank so
  /// far behind.
  double pairs() const;
  double pairsAt(int64_t distance) const;

private:
  /// On a large grid, a rank stands for several, which send to each other.
  double betweenRanks(int64_t owner, int64_t rank) const;

  const Workload &workload;
  bool movesKeys;
  int64_t parts, segments;
};
} // namespace

int64_t Needs::positions(int64_t owner, int64_t rank) const {
  int64_t sum = 0;
  for (int64_t segment = 0; segment < segments; ++segment)
    if (workload.needs(rank, owner, segment, movesKeys))
      sum += workload.positionsOf(owner, segment, movesKeys);
  return sum;
}

double Needs::betweenRanks(int64_t owner, int64_t rank) const {
  double part = owner == rank ? 1 - 1 / workload.hopsOfStep : 1;
  return part * static_cast<double>(positions(owner, rank));
}

double Needs::all() const {
  double sum = 0;
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t rank = 0; rank < parts; ++rank)
      sum += betweenRanks(owner, rank);
  return sum;
}

llvm::SmallVector<double> Needs::sharesOfAxes() const {
  llvm::ArrayRef<Axis> axes = workload.axes;
  llvm::SmallVector<double> shares(axes.size());
  if (axes.size() == 1 || workload.hopsOfStep != 1) {
    for (auto [index, share] : llvm::enumerate(shares))
      share = shareOfPairs(axes, index);
    return shares;
  }
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t rank = 0; rank < parts; ++rank)
      shares[axisBetween(axes, owner, rank)] += betweenRanks(owner, rank);
  double whole = all();
  for (double &share : shares)
    share /= whole;
  return shares;
}

double Needs::most() const {
  double largest = 0;
  for (int64_t rank = 0; rank < parts; ++rank) {
    double sent = 0, received = 0;
    for (int64_t other = 0; other < parts; ++other) {
      sent += betweenRanks(rank, other);
      received += betweenRanks(other, rank);
    }
    largest = std::max({largest, sent, received});
  }
  return largest;
}

double Needs::mostAt(int64_t distance) const {
  int64_t largest = 0;
  for (int64_t owner = 0; owner < parts; ++owner)
    largest = std::max(largest, positions(owner, (owner + distance) % parts));
  return static_cast<double>(largest);
}

double Needs::pairs() const {
  double largest = 0;
  for (int64_t rank = 0; rank < parts; ++rank) {
    double sum = 0;
    for (int64_t owner = 0; owner < parts; ++owner)
      sum += workload.pairsOf(rank, owner, movesKeys);
    largest = std::max(largest, sum);
  }
  return largest;
}

double Needs::pairsAt(int64_t distance) const {
  double largest = 0;
  for (int64_t owner = 0; owner < parts; ++owner)
    largest = std::max(largest, workload.pairsOf((owner + distance) % parts,
                                                 owner, movesKeys));
  return largest;
}

/// What returns goes along the same axis.
static void addByAxis(const Workload &workload, const Needs &needs,
                      Estimate &result) {
  if (result.bytes == 0)
    return;
  for (auto [axis, share] :
       llvm::zip_equal(workload.axes, needs.sharesOfAxes()))
    result.addAlong(axis.number, result.bytes * share);
}

/// Of the latency of a transfer, what each of several at once takes to issue:
/// assumed, since no network was at hand to measure it.
static constexpr double issue = 0.1;

Estimate burst::estimateGathering(const Workload &workload, const Cargo &cargo,
                                  const Hardware &hardware) {
  Needs needs(workload, cargo.movesKeys);
  auto batch = static_cast<double>(workload.sizes.batch);
  auto ranks = static_cast<double>(workload.whole.parts);
  double steps = workload.hopsOfStep;
  Estimate result;
  result.compute = needs.pairs() * workload.operationsOfPair() * batch /
                   hardware.flops / steps;
  if (ranks == 1)
    return result;
  result.bytes = batch * needs.all() * (cargo.slice + cargo.behind) /
                 static_cast<double>(workload.layout.parts);
  addByAxis(workload, needs, result);
  result.exposed = hardware.latency * (1 + issue * (ranks - 2)) +
                   batch * needs.most() * cargo.slice / hardware.bandwidth;
  for (int64_t distance = 1;
       cargo.behind != 0 && distance < workload.layout.parts; ++distance)
    if (double positions = needs.mostAt(distance); positions != 0)
      result.exposed += steps * hardware.latency +
                        batch * positions * cargo.behind / hardware.bandwidth;
  // Partial results come in turn into two buffers, the own ones first.
  constexpr double coming = 2;
  int64_t all = cargo.movesKeys ? workload.sizes.keys : workload.sizes.queries;
  int64_t own = cargo.movesKeys ? workload.keysOfRank : workload.queriesOfRank;
  result.buffers =
      batch * (static_cast<double>(all) * (cargo.slice + cargo.made) +
               static_cast<double>(own) * coming * cargo.made);
  return result;
}

/// Slices take turns in two buffers, or fill one where only one comes. What a
/// turn computes for an owner is made in two, and comes in a third.
static double directBuffers(const Workload &workload, const Cargo &cargo) {
  int64_t parts = workload.whole.parts;
  if (parts == 1)
    return 0;
  bool isTwice = cargo.made != 0 || parts > 2;
  auto positions = static_cast<double>(
      cargo.movesKeys ? workload.keysOfRank : workload.queriesOfRank);
  return static_cast<double>(workload.sizes.batch) * positions *
         ((isTwice ? 2.0 : 1.0) * cargo.slice + 3 * cargo.made);
}

Estimate burst::estimateDirect(const Workload &workload, const Cargo &cargo,
                               const Hardware &hardware) {
  Needs needs(workload, cargo.movesKeys);
  int64_t parts = workload.layout.parts;
  auto batch = static_cast<double>(workload.sizes.batch);
  double hops = workload.hopsOfStep;
  Estimate result;
  result.buffers = directBuffers(workload, cargo);
  if (workload.whole.parts > 1)
    result.bytes = batch * needs.all() * (cargo.slice + cargo.behind) /
                   static_cast<double>(parts);
  addByAxis(workload, needs, result);
  double secondsOfPair =
      workload.operationsOfPair() * batch / hardware.flops / hops;
  for (int64_t turn = 0; turn <= parts; ++turn) {
    double compute = 0, bytes = 0;
    if (turn < parts)
      compute = needs.pairsAt(turn) * secondsOfPair;
    if (turn + 1 < parts)
      bytes = needs.mostAt(turn + 1) * cargo.slice;
    // What was computed in the turn before returns.
    if (turn > 1 && cargo.behind != 0)
      bytes += needs.mostAt(turn - 1) * cargo.behind;
    double transfer = 0;
    if (bytes != 0)
      transfer = hops * hardware.latency + batch * bytes / hardware.bandwidth;
    result.compute += compute;
    result.hidden += std::min(compute, transfer);
    result.exposed += std::max(transfer - compute, 0.0);
  }
  return result;
}
