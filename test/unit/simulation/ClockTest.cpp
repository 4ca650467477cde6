//===- ClockTest.cpp - what the clock says of random programs -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Clock/Report.h"
#include "passes/Clock/Symmetry.h"
#include "test/unit/simulation/Masks.h"
#include "test/unit/simulation/Programs.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

/// Tiles are pairs, so that what is computed is what the mask keeps.
Machine machineOfPairs() {
  Machine machine;
  machine.axes.resize(3);
  machine.areAxesStated.resize(3);
  machine.kernels.tile = 1;
  machine.kernels.rates["flops"] = 1e9;
  machine.whole.bandwidth = 1e9;
  machine.whole.latency = 1e-6;
  return machine;
}

/// A program, run by the clock.
class ClockRun {
public:
  ClockRun(const Problem &problem, const Machine &machine)
      : module(lower(context(), problem)), program(getProgram(*module)) {
    FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
    EXPECT_TRUE(succeeded(globals));
    std::unique_ptr<Simulation> simulation =
        Simulation::create(program, maxPlannedRanks);
    FailureOr<Recorded> found = record(*simulation, *globals, machine);
    EXPECT_TRUE(succeeded(found));
    recorded = *found;
    clocked = runClock(recorded, machine, program);
  }

  double seconds() const { return clocked.seconds(); }
  /// The same on another machine; ranks that do the same each by itself, or one
  /// for all.
  Clocked again(const Machine &machine, bool findsSymmetry) {
    return runClock(recorded, machine, program, /*shown=*/3, findsSymmetry);
  }
  int64_t symmetries() {
    return Symmetry(ring::gridOf(program), recorded, {}).size();
  }
  double operations() const {
    double sum = 0;
    for (double ofRank : recorded.operations)
      sum += ofRank;
    return sum;
  }

  Recorded recorded;
  Clocked clocked;

private:
  static MLIRContext &context() {
    static std::unique_ptr<MLIRContext> context = makeContext();
    return *context;
  }
  OwningOpRef<ModuleOp> module;
  func::FuncOp program;
};

class ClockTest : public testing::Test {
protected:
  template <size_t n>
  const auto &oneOf(const auto (&values)[n]) {
    return values[std::uniform_int_distribution<size_t>(0, n - 1)(random)];
  }
  int64_t between(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  }
  Problem draw(const NamedMask &mask) {
    constexpr const char *orders[] = {"contiguous", "zigzag", "striped"};
    constexpr const char *strategies[] = {
        "ring_kv",    "ring_q",   "direct_kv",     "direct_q",
        "all_gather", "gather_q", "double_ring_kv"};
    Problem problem;
    problem.mask = mask.text;
    problem.order = oneOf(orders);
    problem.parts = between(1, 8);
    problem.queries = between(1, 60);
    problem.keys = between(1, 60);
    problem.heads = 2;
    problem.keyHeads = between(1, 2);
    problem.overlap = between(0, 3) != 0;
    problem.forward = oneOf(strategies);
    if (problem.forward == "double_ring_kv") {
      problem.parts = between(1, 4) * 2;
      problem.innerRanks = 2;
    }
    if (between(0, 1) != 0)
      problem.backward = problem.forward;
    return problem;
  }
  std::mt19937 random{20};
};

} // namespace

TEST_F(ClockTest, RandomPrograms) {
  for (int i = 0; i < 150; ++i) {
    const NamedMask &mask = oneOf(masks);
    Problem problem = draw(mask);
    SCOPED_TRACE(problem.describe());
    Machine machine = machineOfPairs();
    ClockRun run(problem, machine);

    int64_t kept = 0, shift = problem.keys - problem.queries;
    for (int64_t q = 0; q < problem.queries; ++q)
      for (int64_t k = 0; k < problem.keys; ++k)
        kept += !mask.keeps || mask.keeps(q + shift, k) ? 1 : 0;
    double ofPair = 2.0 * (problem.backward.empty()
                               ? problem.dim + problem.valueDim
                               : 3 * problem.dim + 2 * problem.valueDim);
    double operations = static_cast<double>(kept * problem.heads) * ofPair;
    EXPECT_NEAR(run.operations(), operations, 1e-6 * operations);

    // Each second of a rank is one of computation or of a wait.
    double computed = 0, bytes = 0, starts = 0;
    for (auto [rank, events, traffic] : llvm::zip_equal(
             run.clocked.ranks, run.recorded.ranks, run.recorded.traffic)) {
      EXPECT_NEAR(rank.end, rank.compute + rank.waiting().seconds(), 1e-9);
      EXPECT_NEAR(rank.end,
                  rank.path.compute + rank.path.ofBandwidth() +
                      rank.path.ofLatency(),
                  1e-9);
      computed += rank.compute;
      double sent = 0;
      for (const RankEvent &event : events)
        if (event.kind == RankEvent::Kind::Start && event.to >= 0) {
          sent += event.amount;
          ++starts;
        }
      EXPECT_EQ(sent, static_cast<double>(traffic.totalBytes()));
      EXPECT_GE(run.seconds(), sent / machine.whole.bandwidth - 1e-12);
      bytes += sent;
    }
    EXPECT_NEAR(computed, operations / 1e9, 1e-5 * computed);

    // Where ranks copy, they copy all that is sent.
    Machine copying = machine;
    copying.kernels.copyBandwidth = 3e8;
    double withCopies = 0;
    ClockRun copies(problem, copying);
    for (const Clocked::Rank &rank : copies.clocked.ranks)
      withCopies += rank.compute;
    EXPECT_NEAR(withCopies, computed + bytes / 3e8, 1e-5 * withCopies);
    double oneByOne = computed + bytes / machine.whole.bandwidth +
                      starts * machine.whole.latency;
    EXPECT_LE(run.seconds(), oneByOne * (1 + 1e-9));

    // Transfers that hide behind nothing take their time.
    problem.overlap = false;
    EXPECT_GE(ClockRun(problem, machine).seconds(),
              run.seconds() * (1 - 1e-6) - 2e-6);
  }
}

// Ranks that share a device take as long as all of them one after the other
// where nothing else does.
TEST_F(ClockTest, SharedDevices) {
  for (const char *strategy : {"ring_kv", "ring_q", "all_gather"}) {
    Problem problem;
    problem.forward = strategy;
    problem.parts = 4;
    problem.queries = problem.keys = 64;
    Machine machine = machineOfPairs();
    machine.whole.bandwidth = 1e18;
    machine.whole.latency = 0;
    double alone = ClockRun(problem, machine).seconds();
    machine.kernels.devices = 1;
    EXPECT_NEAR(ClockRun(problem, machine).seconds(), 4 * alone, 1e-6 * alone);
    machine.kernels.devices = 2;
    EXPECT_NEAR(ClockRun(problem, machine).seconds(), 2 * alone, 1e-6 * alone);
  }
}

// Products with stored scores have a rate of their own, in both passes.
TEST_F(ClockTest, StoredScores) {
  Machine machine = machineOfPairs();
  machine.whole.bandwidth = 1e18;
  machine.whole.latency = 0;
  Machine slower = machine;
  slower.kernels.rates["flops_stored"] = 2.5e8;
  for (const char *backward : {"", "ring_scores"}) {
    Problem problem;
    problem.forward = "ring_scores";
    problem.backward = backward;
    double seconds = ClockRun(problem, machine).seconds();
    // Two products of 4 ranks of 4 queries, or five, over dimensions of 4.
    double products = *backward ? 5 : 2;
    EXPECT_NEAR(seconds, products * 2 * 4 * (2 * 4 * 16) / 1e9, 1e-6 * seconds);
    EXPECT_NEAR(ClockRun(problem, slower).seconds(), 4 * seconds,
                1e-6 * seconds);
  }
  Problem other;
  EXPECT_EQ(ClockRun(other, slower).seconds(),
            ClockRun(other, machine).seconds());
}

// Ranks that do the same at the same time have the times that they have where
// each is run by itself.
TEST_F(ClockTest, Symmetry) {
  int64_t most = 0, symmetric = 0;
  for (int i = 0; i < 150; ++i) {
    Problem problem = draw(masks[between(0, 3) / 3]); // mostly without a mask
    problem.queries = problem.keys = problem.parts * 2 * between(1, 4);
    SCOPED_TRACE(problem.describe());
    Machine machine = machineOfPairs();
    ClockRun run(problem, machine);
    most = std::max(most, run.symmetries());
    symmetric += run.symmetries() > 1 ? 1 : 0;
    constexpr double counts[] = {0, 1, 2, 4};
    machine.nodes.size = oneOf(counts);
    machine.nodes.cards = oneOf(counts);
    machine.nodes.inside = {1e10, 1e-7};
    if (between(0, 1) != 0)
      machine.kernels.devices = static_cast<double>(between(1, 3));
    machine.kernels.busy = 0.25 * static_cast<double>(between(0, 2));
    if (between(0, 3) == 0) {
      machine.axes[0] = Link{2e9, 3e-6};
      machine.areAxesStated[0] = true;
    }
    Clocked one = run.again(machine, /*findsSymmetry=*/true);
    Clocked all = run.again(machine, /*findsSymmetry=*/false);
    double close = 1e-9 * all.seconds();
    for (auto [a, b] : llvm::zip_equal(one.ranks, all.ranks)) {
      EXPECT_NEAR(a.end, b.end, close);
      EXPECT_NEAR(a.compute, b.compute, close);
      EXPECT_NEAR(a.waiting().seconds(), b.waiting().seconds(), close);
    }
    ASSERT_EQ(one.spans.size(), all.spans.size());
    auto inOrder = [](const Span &a, const Span &b) {
      return std::tie(a.rank, a.channel, a.to, a.begin, a.step) <
             std::tie(b.rank, b.channel, b.to, b.begin, b.step);
    };
    llvm::sort(one.spans, inOrder);
    llvm::sort(all.spans, inOrder);
    for (auto [a, b] : llvm::zip_equal(one.spans, all.spans)) {
      EXPECT_EQ(a.rank, b.rank);
      EXPECT_EQ(a.to, b.to);
      EXPECT_EQ(a.step, b.step);
      EXPECT_NEAR(a.begin, b.begin, close);
      EXPECT_NEAR(a.end, b.end, close);
      EXPECT_EQ(a.bytes, b.bytes);
    }
  }
  EXPECT_EQ(most, 8);
  EXPECT_GE(symmetric, 50);
}

// A flat ring over two nodes has one flow out of each at a time; on two axes
// all ranks of a node send at once, over the cards that they share.
TEST_F(ClockTest, CardsOfNodes) {
  Problem problem;
  problem.parts = 8;
  problem.queries = problem.keys = 64;
  Machine machine = machineOfPairs();
  machine.kernels.rates["flops"] = 1e18;
  machine.whole.latency = machine.nodes.inside.latency = 0;
  machine.nodes.inside.bandwidth = 1e18;
  machine.nodes.size = 4;
  machine.nodes.cards = 1;
  // 7 hops of 8 positions of keys and values, in one head of 4 each, of f32.
  double hop = 8.0 * 2 * 4 * 4 / machine.whole.bandwidth;
  EXPECT_NEAR(ClockRun(problem, machine).seconds(), 7 * hop, 1e-6 * hop);
  problem.forward = "double_ring_kv";
  problem.innerRanks = 4;
  EXPECT_NEAR(ClockRun(problem, machine).seconds(), 4 * hop, 1e-6 * hop);
  machine.nodes.cards = 2;
  EXPECT_NEAR(ClockRun(problem, machine).seconds(), 2 * hop, 1e-6 * hop);
  machine.nodes.cards = 4;
  EXPECT_NEAR(ClockRun(problem, machine).seconds(), hop, 1e-6 * hop);
}
