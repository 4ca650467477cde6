//===- GradientProofTest.cpp - backward schedules, right and broken -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Mutations.h"

#include <chrono>
#include <limits>

using namespace mlir;
using namespace burst;
using namespace burst::test;

/// As for forward schedules; where shards are even, all tensors have one type,
/// so that they may be taken for each other.
static std::vector<Problem> gradientProblems() {
  std::vector<Problem> problems;
  for (const char *backward : {"ring_q", "ring_kv"})
    for (const char *order : {"contiguous", "zigzag", "striped", "striped 2"})
      for (const char *mask : {"", "causal", "window<left = 11, right = 0>"})
        for (int64_t parts : {2, 3, 4, 5})
          for (bool optimised : {false, true}) {
            Problem problem;
            problem.backward = backward;
            problem.order = order;
            problem.mask = mask;
            problem.parts = parts;
            bool isEven = parts % 3 != 0;
            problem.queries = isEven ? 4 * parts : 5 * parts - 1;
            problem.keys = problem.queries + (optimised && !isEven ? 3 : 0);
            problem.keyHeads = problem.heads;
            problem.drop = problem.overlap = optimised;
            if (parts == 4)
              problem.element = "f64";
            problems.push_back(problem);
          }
  return problems;
}

namespace {
class GradientProofTest : public ::testing::TestWithParam<Problem> {};
} // namespace

INSTANTIATE_TEST_SUITE_P(Problems, GradientProofTest,
                         ::testing::ValuesIn(gradientProblems()),
                         nameOfProblem);

TEST_P(GradientProofTest, AcceptsTheScheduleAndRefusesEveryMutation) {
  auto context = makeContext();
  OwningOpRef<ModuleOp> original = lower(*context, GetParam());
  ProofOptions options;
  options.allowEmpty = !GetParam().drop;
  auto counterexample = proveModule(*original, options);
  ASSERT_FALSE(counterexample) << counterexample->message;
  // In each hop a slice, gradients and returned gradients; two in front.
  expectRefusals<Backward>(*original, GetParam(), gradientMutations(),
                           3 * GetParam().parts + 8);
}

TEST(GradientProofListTest, EveryMutationIsMadeSomewhere) {
  auto context = makeContext();
  std::vector<GradientMutation> left = gradientMutations();
  EXPECT_GE(left.size(), 60u);
  for (const Problem &problem : gradientProblems()) {
    OwningOpRef<ModuleOp> original = lower(*context, problem);
    removeMade(*original, problem, left);
    if (left.empty())
      break;
  }
  for (const GradientMutation &mutation : left)
    ADD_FAILURE() << "never made: " << mutation.name;
}

TEST(GradientProofTest, AcceptsManyShapes) {
  auto context = makeContext();
  for (const char *backward : {"ring_q", "ring_kv"})
    for (const char *order : {"contiguous", "zigzag", "striped 3"})
      for (const char *mask :
           {"", "causal", "window<left = 1, right = 6>", "prefix<7>"})
        for (int64_t parts : {1, 2, 3, 7, 8})
          for (auto [queries, keys] : {std::pair<int64_t, int64_t>{29, 29},
                                       {13, 37},
                                       {37, 13},
                                       {6, 5}}) {
            Problem problem;
            problem.backward = backward;
            problem.order = order;
            problem.mask = mask;
            problem.parts = parts;
            problem.queries = queries;
            problem.keys = keys;
            problem.element = "bf16";
            SCOPED_TRACE(problem.describe());
            auto counterexample = proveModule(*lower(*context, problem));
            EXPECT_FALSE(counterexample) << counterexample->message;
          }
}

TEST(GradientProofTest, CountsEveryPairOfSegmentsOnce) {
  auto context = makeContext();
  for (const char *backward : {"ring_q", "ring_kv"})
    for (int64_t parts : {1, 2, 4, 8}) {
      Problem problem;
      problem.backward = backward;
      problem.order = "zigzag";
      problem.mask = "causal";
      problem.parts = parts;
      problem.queries = problem.keys = 4 * parts;
      int64_t chunks = 2 * parts;
      Proof proof;
      ASSERT_FALSE(proveModule(*lower(*context, problem), {}, &proof));
      EXPECT_EQ(proof.computed, chunks * (chunks + 1) / 2);
      EXPECT_EQ(proof.dropped, chunks * (chunks - 1) / 2);
      EXPECT_EQ(proof.wasted, 0);
    }
}

/// Seconds that the proof of a zigzag causal backward ring takes.
static double timeOfProof(MLIRContext &context, int64_t parts,
                          const char *backward) {
  Problem problem;
  problem.backward = backward;
  problem.order = "zigzag";
  problem.mask = "causal";
  problem.parts = parts;
  problem.queries = problem.keys = parts * 4096;
  OwningOpRef<ModuleOp> module = lower(context, problem);
  auto begin = std::chrono::steady_clock::now();
  auto counterexample = proveModule(*module);
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  EXPECT_FALSE(counterexample) << counterexample->message;
  return time.count();
}

// 16 times as many pairs, as of forward schedules.
TEST(GradientProofSpeedTest, TimeGrowsWithTheNumberOfPairs) {
  auto context = makeContext();
  for (const char *backward : {"ring_q", "ring_kv"}) {
    double best = std::numeric_limits<double>::max();
    for (int run = 0; run < 3 && best > 48; ++run) {
      double few = timeOfProof(*context, 32, backward);
      best = std::min(best, timeOfProof(*context, 128, backward) / few);
    }
    EXPECT_LT(best, 48) << backward;
  }
}
