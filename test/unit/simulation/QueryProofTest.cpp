//===- QueryProofTest.cpp - rings of queries, right and broken ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Mutations.h"

using namespace mlir;
using namespace burst;
using namespace burst::test;

/// As for rings of keys.
static std::vector<Problem> queryProblems() {
  std::vector<Problem> problems;
  for (const char *order : {"contiguous", "zigzag", "striped", "striped 2"})
    for (const char *mask : {"", "causal", "window<left = 11, right = 0>"})
      for (int64_t parts : {2, 3, 4, 5})
        for (bool optimised : {false, true}) {
          Problem problem;
          problem.forward = "ring_q";
          problem.order = order;
          problem.mask = mask;
          problem.parts = parts;
          bool isEven = parts % 3 != 0;
          problem.queries = isEven ? 4 * parts : 5 * parts - 1;
          problem.keys = problem.queries + (optimised && !isEven ? 3 : 0);
          problem.drop = problem.overlap = optimised;
          problems.push_back(problem);
        }
  return problems;
}

namespace {
class QueryProofTest : public ::testing::TestWithParam<Problem> {};
} // namespace

INSTANTIATE_TEST_SUITE_P(Problems, QueryProofTest,
                         ::testing::ValuesIn(queryProblems()), nameOfProblem);

TEST_P(QueryProofTest, AcceptsTheScheduleAndRefusesEveryMutation) {
  auto context = makeContext();
  OwningOpRef<ModuleOp> original = lower(*context, GetParam());
  ProofOptions options;
  options.allowEmpty = !GetParam().drop;
  auto counterexample = proveModule(*original, options);
  ASSERT_FALSE(counterexample) << counterexample->message;
  // In each hop queries, a state and returned a state; two in front.
  expectRefusals<Queries>(*original, GetParam(), queryMutations(),
                          3 * GetParam().parts + 8);
}

TEST(QueryProofListTest, EveryMutationIsMadeSomewhere) {
  auto context = makeContext();
  std::vector<QueryMutation> left = queryMutations().vec();
  for (const Problem &problem : queryProblems()) {
    OwningOpRef<ModuleOp> original = lower(*context, problem);
    removeMade(*original, problem, left);
    if (left.empty())
      break;
  }
  for (const QueryMutation &mutation : left)
    ADD_FAILURE() << "never made: " << mutation.name;
}

// Fewer queries than ranks, too: some then return nothing.
TEST(QueryProofTest, AcceptsManyShapes) {
  auto context = makeContext();
  for (const char *order : {"contiguous", "zigzag", "striped 3"})
    for (const char *mask :
         {"", "causal", "window<left = 1, right = 6>", "prefix<7>"})
      for (int64_t parts : {1, 2, 3, 7, 8})
        for (auto [queries, keys] : {std::pair<int64_t, int64_t>{29, 29},
                                     {13, 37},
                                     {37, 13},
                                     {6, 5},
                                     {1, 40},
                                     {0, 8},
                                     {8, 0}}) {
          Problem problem;
          problem.forward = "ring_q";
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

TEST(QueryProofTest, CountsEveryPairOfSegmentsOnce) {
  auto context = makeContext();
  for (int64_t parts : {1, 2, 4, 8}) {
    Problem problem;
    problem.forward = "ring_q";
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
