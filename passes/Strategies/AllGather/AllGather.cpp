//===- AllGather.cpp - keys and values of all ranks at once ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/AllGather/AllGather.h"
#include "passes/Strategies/BackwardProgram.h"
#include "passes/Strategies/ForwardProgram.h"

using namespace mlir;
using namespace burst;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {
class ForwardGather final : public ForwardProgram {
public:
  using ForwardProgram::ForwardProgram;

  void build() {
    beginProgram();
    Tensors state = init();
    finish(gather({ownKeys().tensors, {1, 1}, key.getExtent(), stateTypes()},
                  [&](ValueRange all, ValueRange) {
                    return attend(ownQueries(), gatheredShards(all), state);
                  }));
  }
};

/// The gradients by the keys and values of all return to their owners.
class BackwardGather final : public BackwardProgram {
public:
  using BackwardProgram::BackwardProgram;

  void build() {
    beginBackward();
    Shards queries = ownQueries(), keys = ownKeys();
    Tensors kept{zero(queries.tensors[0])};
    llvm::append_range(kept, zeroTables());
    Tensors made =
        gather({keys.tensors,
                {1, 1},
                keyExtent(),
                SmallVector<Type>(ValueRange(kept).getTypes()),
                ring::Join::Add,
                {gradientType(keys.tensors[0].getType()),
                 gradientType(keys.tensors[1].getType())},
                {1, 1}},
               [&](ValueRange all, ValueRange partials) {
                 Tensors grads{kept[0], partials[0], partials[1]};
                 grads.append(kept.begin() + 1, kept.end());
                 grads = attend(queries, gatheredShards(all), grads);
                 std::rotate(grads.begin() + 1, grads.begin() + 3, grads.end());
                 return grads;
               });
    // Partial results stand behind the others.
    std::rotate(made.begin() + 1, made.end() - 2, made.end());
    finish(made);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

namespace {
/// What ranks gather, counted rank by rank.
class Needs {
public:
  explicit Needs(const Workload &workload)
      : workload(workload), parts(workload.layout.parts),
        segments(workload.layout.numSegments()) {}

  /// Positions of the keys of an owner that a rank needs.
  int64_t positions(int64_t owner, int64_t rank) const;
  /// Those that all ranks receive from others.
  double all() const;
  /// The most that a rank sends to others, or receives from them.
  double most() const;
  /// The most that a rank sends to the one so far behind it.
  double mostAt(int64_t distance) const;
  /// The most pairs that a rank computes.
  double pairs() const;

private:
  /// On a large grid, a rank stands for several, which send to each other.
  double betweenRanks(int64_t owner, int64_t rank) const;

  const Workload &workload;
  int64_t parts, segments;
};
} // namespace

int64_t Needs::positions(int64_t owner, int64_t rank) const {
  int64_t sum = 0;
  for (int64_t b = 0; b < segments; ++b) {
    auto isKept = [&](int64_t a) {
      return workload.kept(rank, owner, a, b).any;
    };
    if (llvm::any_of(llvm::seq(segments), isKept))
      sum += workload.layout.segment(owner, b, workload.sizes.keys).count;
  }
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
  auto count = [&](int64_t owner, int64_t segment, int64_t extent) {
    return static_cast<double>(
        workload.layout.segment(owner, segment, extent).count);
  };
  for (int64_t rank = 0; rank < parts; ++rank) {
    double sum = 0;
    for (int64_t owner = 0; owner < parts; ++owner)
      for (int64_t a = 0; a < segments; ++a)
        for (int64_t b = 0; b < segments; ++b)
          sum += count(rank, a, workload.sizes.queries) *
                 count(owner, b, workload.sizes.keys) *
                 workload.kept(rank, owner, a, b).share;
    largest = std::max(largest, sum);
  }
  return largest;
}

/// Of the latency of a transfer, what each of several at once takes to issue:
/// assumed, since no network was at hand to measure it.
static constexpr double issue = 0.1;

namespace {
struct AllGather final : Strategy {
  StringRef getName() const override { return "all_gather"; }

  Estimate estimate(const Workload &workload,
                    const Hardware &hardware) const override;

  void build(AttentionInterface op, const Layout &layout) const override {
    if (auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation()))
      return BackwardGather(backward, layout).build();
    ForwardGather(cast<AttentionOp>(op.getOperation()), layout).build();
  }
};
} // namespace

/// Nothing hides the gather; gradients return one distance after the other.
Estimate AllGather::estimate(const Workload &workload,
                             const Hardware &hardware) const {
  Cargo cargo = cargoOf(workload, /*movesKeys=*/true);
  Needs needs(workload);
  auto batch = static_cast<double>(workload.sizes.batch);
  auto ranks = static_cast<double>(workload.whole.parts);
  double steps = workload.hopsOfStep;
  Estimate result;
  result.compute = needs.pairs() * workload.operationsOfPair() * batch /
                   hardware.flops / steps;
  if (workload.isBackward)
    result.buffers = ownBuffers(workload);
  if (ranks == 1)
    return result;
  result.bytes = batch * needs.all() * (cargo.slice + cargo.behind) /
                 static_cast<double>(workload.layout.parts);
  result.exposed = hardware.latency * (1 + issue * (ranks - 2)) +
                   batch * needs.most() * cargo.slice / hardware.bandwidth;
  for (int64_t distance = 1;
       cargo.behind != 0 && distance < workload.layout.parts; ++distance)
    if (double positions = needs.mostAt(distance); positions != 0)
      result.exposed += steps * hardware.latency +
                        batch * positions * cargo.behind / hardware.bandwidth;
  // Gradients come in turn into two buffers, and the own ones into one.
  double coming = ranks > 2 ? 3 : 2;
  result.buffers +=
      batch *
      (static_cast<double>(workload.sizes.keys) * (cargo.slice + cargo.behind) +
       static_cast<double>(workload.keysOfRank) * coming * cargo.behind);
  return result;
}

const Strategy *burst::getAllGather() {
  static const AllGather strategy;
  return &strategy;
}
