//===- ProofTest.cpp - right schedules pass, broken ones do not -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A proof that accepts everything would pass every other test. Here schedules
// of the pipeline are broken in one place each, in ways that the verifiers of
// ops do not see, and the proof has to refuse every one, for the right reason.
//
//===----------------------------------------------------------------------===//
#include "test/unit/simulation/Mutations.h"

#include "mlir/IR/Diagnostics.h"
#include <chrono>
#include <limits>

using namespace mlir;
using namespace burst;
using namespace burst::test;

/// Shards of even sizes are static and shards of uneven ones dynamic: both, and
/// fewer queries than keys.
static std::vector<Problem> allProblems() {
  std::vector<Problem> problems;
  for (const char *order : {"contiguous", "zigzag", "striped", "striped 2"})
    for (const char *mask : {"", "causal", "window<left = 11, right = 0>"})
      for (int64_t parts : {2, 3, 4, 8})
        for (bool optimised : {false, true}) {
          Problem problem;
          problem.order = order;
          problem.mask = mask;
          problem.parts = parts;
          problem.queries = parts % 3 == 0 ? 5 * parts - 1 : 4 * parts;
          problem.keys = problem.queries + (optimised ? 0 : parts);
          problem.drop = problem.overlap = optimised;
          problems.push_back(problem);
        }
  return problems;
}

class ProofTest : public ::testing::TestWithParam<Problem> {};

INSTANTIATE_TEST_SUITE_P(Problems, ProofTest,
                         ::testing::ValuesIn(allProblems()), nameOfProblem);

TEST_P(ProofTest, AcceptsTheScheduleAndRefusesEveryMutation) {
  auto context = makeContext();
  OwningOpRef<ModuleOp> original = lower(*context, GetParam());
  ProofOptions options;
  options.allowEmpty = !GetParam().drop;
  auto counterexample = proveModule(*original, options);
  ASSERT_FALSE(counterexample) << counterexample->message;

  expectRefusals<Schedule>(*original, GetParam(), allMutations(),
                           GetParam().parts);
}

TEST(ProofListTest, EveryMutationIsMadeSomewhere) {
  auto context = makeContext();
  std::vector<Mutation> left = allMutations();
  EXPECT_GE(left.size(), 50u);
  for (const Problem &problem : allProblems()) {
    if (problem.parts > 4)
      continue;
    OwningOpRef<ModuleOp> original = lower(*context, problem);
    removeMade(*original, problem, left);
    if (left.empty())
      break;
  }
  for (const Mutation &mutation : left)
    ADD_FAILURE() << "never made: " << mutation.name;
}

TEST(ProofControlTest, TransfersThatNobodyNeedsAreErrorsUnlessTheyAreAllowed) {
  // Mutations add some: it must not be for these that they are refused.
  auto context = makeContext();
  for (const char *order : {"contiguous", "zigzag"}) {
    Problem problem;
    problem.order = order;
    OwningOpRef<ModuleOp> module = lower(*context, problem);
    Schedule schedule(*module, problem);
    Emit e = Emit::atTop(schedule);
    for (unsigned argument : {0, 1, 2}) {
      Value shard = schedule.program.getArgument(argument);
      e.receive(e.send(shard, shardOf(schedule, argument), argument));
    }
    auto refused = proveModule(*module);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->message,
              "receives segment 0 of the shard of rank 3, in tensor 0, and "
              "neither reads it nor sends it on; ring-drop-empty flags what is "
              "needed, where none are given all is sent, or the option "
              "allow-needless of ring-verify lets it pass");
    EXPECT_EQ(refused->rank, 0);
    EXPECT_EQ(refused->hop, 0);
    ProofOptions options;
    options.allowNeedless = true;
    auto counterexample = proveModule(*module, options);
    EXPECT_FALSE(counterexample) << counterexample->message;
    EXPECT_FALSE(isProvedForAll(*module));
    EXPECT_TRUE(isProvedForAll(*module, options));
  }
}

/// All of each shard travels to all ranks, and only what is needed is computed.
TEST(ProofControlTest, WhatTravelsIsNoMoreThanIsNeeded) {
  auto context = makeContext();
  for (const char *strategy :
       {"ring_kv", "ring_q", "direct_kv", "direct_q", "all_gather", "gather_q"})
    for (bool isBackward : {false, true}) {
      Problem problem;
      problem.mask = "causal";
      problem.order = "zigzag";
      problem.forward = strategy;
      problem.backward = isBackward ? strategy : "";
      SCOPED_TRACE(problem.describe());
      OwningOpRef<ModuleOp> module = lower(*context, problem);
      EXPECT_TRUE(isProvedForAll(*module));
      func::FuncOp needs;
      module->walk([&](func::FuncOp function) {
        if (function.getName().ends_with("_needs"))
          needs = function;
      });
      ASSERT_TRUE(needs);
      // How far segments travel, or to whom.
      Operation *end = needs.getBody().front().getTerminator();
      Value travels = end->getOperand(1);
      auto type = cast<RankedTensorType>(travels.getType());
      OpBuilder builder(end);
      if (type.getElementType().isIndex()) {
        auto all = DenseElementsAttr::get(
            type, Attribute(builder.getIndexAttr(problem.parts - 1)));
        end->setOperand(1,
                        arith::ConstantOp::create(builder, end->getLoc(), all));
      } else {
        auto table = travels.getDefiningOp<tensor::GenerateOp>();
        Operation *yield = table.getBody().front().getTerminator();
        builder.setInsertionPoint(yield);
        yield->setOperand(
            0, arith::ConstantIntOp::create(builder, end->getLoc(), true, 1));
      }
      auto refused = proveModule(*module);
      ASSERT_TRUE(refused);
      EXPECT_TRUE(llvm::Regex("neither reads it nor sends it on|for which "
                              "nothing was computed")
                      .match(refused->message))
          << refused->message;
      EXPECT_FALSE(isProvedForAll(*module));
      ProofOptions options;
      options.allowNeedless = true;
      auto counterexample = proveModule(*module, options);
      EXPECT_FALSE(counterexample) << counterexample->message;
      EXPECT_TRUE(isProvedForAll(*module, options));
    }
}

TEST(ProofControlTest, OneAttendOfManyWithoutATableOfPairs) {
  auto context = makeContext();
  for (const char *forward : {"ring_kv", "ring_q"}) {
    Problem problem;
    problem.mask = "causal";
    problem.forward = forward;
    OwningOpRef<ModuleOp> module = lower(*context, problem);
    SmallVector<ring::AttendOp> attends;
    module->walk([&](ring::AttendOp op) { attends.push_back(op); });
    attends.back().getPairsMutable().clear();
    EXPECT_FALSE(isProvedForAll(*module));
    EXPECT_FALSE(isProvedForAll(*module, {/*allowEmpty=*/true}));
    EXPECT_TRUE(proveModule(*module));
  }
}

TEST(ProofMessageTest, ARefusalIsReportedAtTheOp) {
  auto context = makeContext();
  Problem problem;
  OwningOpRef<ModuleOp> module = lower(*context, problem);
  Schedule schedule(*module, problem);
  schedule.attends.back().setScaleAttr(
      OpBuilder(context.get()).getF64FloatAttr(1));
  auto counterexample = proveModule(*module);
  ASSERT_TRUE(counterexample);
  std::string message;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    for (Diagnostic &note : diagnostic.getNotes())
      message += "\n" + note.str();
  });
  report(schedule.program, *counterexample);
  EXPECT_TRUE(llvm::Regex("'ring.attend' op schedule refused: rank [0-3], hop "
                          "3: has another .*scale.*\n.*@f")
                  .match(message))
      << message;
}

TEST(ProofCountTest, CountsEveryPairOfSegments) {
  auto context = makeContext();
  for (const Problem &problem : allProblems()) {
    if (problem.mask != "causal" || !problem.drop || problem.order != "zigzag")
      continue;
    // Of (2P)^2 pairs of chunks, those on and under the diagonal are needed.
    int64_t chunks = 2 * problem.parts;
    Proof proof;
    auto module = lower(*context, problem);
    ASSERT_FALSE(proveModule(*module, {}, &proof));
    EXPECT_EQ(proof.computed, chunks * (chunks + 1) / 2);
    EXPECT_EQ(proof.dropped, chunks * (chunks - 1) / 2);
  }
}

/// Seconds that the proof of a zigzag causal ring takes.
static double timeOfProof(MLIRContext &context, int64_t parts) {
  Problem problem;
  problem.order = "zigzag";
  problem.mask = "causal";
  problem.parts = parts;
  problem.queries = problem.keys = parts * 4096;
  OwningOpRef<ModuleOp> module = lower(context, problem);
  auto begin = std::chrono::steady_clock::now();
  Proof proof;
  auto counterexample = proveModule(*module, {}, &proof);
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  EXPECT_FALSE(counterexample) << counterexample->message;
  EXPECT_EQ(proof.computed, 2 * parts * (2 * parts + 1) / 2);
  return time.count();
}

// There are (2P)^2 pairs of segments to account for, so 16 times as many: the
// time may not grow much faster, however slow the machine is.
TEST(ProofSpeedTest, TimeGrowsWithTheNumberOfPairs) {
  auto context = makeContext();
  double best = std::numeric_limits<double>::max();
  for (int run = 0; run < 3 && best > 48; ++run) {
    double few = timeOfProof(*context, 64);
    best = std::min(best, timeOfProof(*context, 256) / few);
  }
  EXPECT_LT(best, 48);
}
