//===- SimulationTest.cpp - what ring programs mean -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Programs.h"

#include "passes/Simulation/Interpret/Interpreter.h"

#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace burst;
using namespace burst::test;

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

namespace {

/// Two ranks that both hold their own and the other's slice, and a body that
/// makes %o, %m, %l of the queries %q and both slices.
std::string twoSliceProgram(StringRef mask, StringRef body) {
  std::string text = R"(
#zz = #ring.layout<zigzag over 2>
!q = tensor<2x?x4x3xf64>
!k = tensor<2x?x2x3xf64>
!v = tensor<2x?x2x5xf64>
!o = tensor<2x?x4x5xf64>
!m = tensor<2x4x?xf64>
shard.grid @cp(shape = 2)
func.func @f(%q: !q {ring.shard = #ring.shard<#zz, dim 1 extent 13>},
             %k: !k {ring.shard = #ring.shard<#zz, dim 1 extent 22>},
             %v: !v {ring.shard = #ring.shard<#zz, dim 1 extent 22>})
    -> (!o {ring.shard = #ring.shard<#zz, dim 1 extent 13>},
        !m {ring.shard = #ring.shard<#zz, dim 2 extent 13>})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %sq = arith.constant 13 : index
  %sk = arith.constant 22 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %p = arith.subi %c1, %r : index
  %token = ring.start %k, %v dims [1, 1] of <zigzag over 2>[%r] extent %sk
      to %p receive [%p] from %p channel <@cp, 0>
      : (!k, !v) -> !ring.token<!k, !v>
  %k2, %v2 = ring.wait %token : !ring.token<!k, !v>
  %o0, %m0, %l0 = ring.init %q : !q -> !o, !m
)" + body.str() + R"(
  %out, %lse = ring.finalize %o, %m, %l : !o, !m -> !o
  return %out, %lse : !o, !m
})";
  // ATTEND slice STATE state in the body stands for the op's unchanging parts.
  std::string result;
  StringRef rest = text;
  while (true) {
    auto [before, after] = rest.split("ATTEND");
    result += before;
    if (after.empty())
      return result;
    auto [slice, behind] = after.split(" STATE ");
    auto [state, next] = behind.split('\n');
    result += "ring.attend %q at <zigzag over 2>[%r] extent %sq slice" +
              slice.str() + " of <zigzag over 2> extent %sk state " +
              state.str() + " scale 0.7 " + mask.str() +
              " : (!q, !k, !v) -> (!o, !m)\n";
    rest = next;
  }
}

constexpr const char *causal = R"(
    mask(%b, %h, %i, %j, %sq, %sk) {
      %keep = arith.cmpi sle, %j, %i : index
      burst.yield %keep : i1
    })";

/// One slice after the other.
constexpr const char *inTurn = R"(
  %o1, %m1, %l1 = ATTEND (%k, %v at %r) STATE %o0, %m0, %l0
  %o, %m, %l = ATTEND (%k2, %v2 at %p) STATE %o1, %m1, %l1
)";
constexpr const char *inTurnBackwards = R"(
  %o1, %m1, %l1 = ATTEND (%k2, %v2 at %p) STATE %o0, %m0, %l0
  %o, %m, %l = ATTEND (%k, %v at %r) STATE %o1, %m1, %l1
)";
constexpr const char *merged = R"(
  %o1, %m1, %l1 = ATTEND (%k, %v at %r) STATE %o0, %m0, %l0
  %o2, %m2, %l2 = ATTEND (%k2, %v2 at %p) STATE %o0, %m0, %l0
  %o, %m, %l = ring.merge (%o1, %m1, %l1) with (%o2, %m2, %l2)
      of <zigzag over 2>[%r] extent %sq : !o, !m
)";
/// A fresh state is neutral, and the inputs of a merge do not change.
constexpr const char *mergedWithFresh = R"(
  %o1, %m1, %l1 = ATTEND (%k, %v at %r) STATE %o0, %m0, %l0
  %o2, %m2, %l2 = ring.merge (%o0, %m0, %l0) with (%o1, %m1, %l1)
      of <zigzag over 2>[%r] extent %sq : !o, !m
  %o3, %m3, %l3 = ATTEND (%k2, %v2 at %p) STATE %o0, %m0, %l0
  %o4, %m4, %l4 = ring.merge (%o3, %m3, %l3) with (%o0, %m0, %l0)
      of <zigzag over 2>[%r] extent %sq : !o, !m
  %o5, %m5, %l5 = ring.merge (%o2, %m2, %l2) with (%o4, %m4, %l4)
      of <zigzag over 2>[%r] extent %sq : !o, !m
  %o, %m, %l = ring.merge (%o2, %m2, %l2) with (%o4, %m4, %l4)
      of <zigzag over 2>[%r] extent %sq : !o, !m
)";

} // namespace

TEST(StateTest, SlicesMayBeAttendedInTurnOrMerged) {
  auto context = makeContext();
  for (const char *mask : {"", causal}) {
    auto expected = parseModule(*context, twoSliceProgram(mask, inTurn));
    auto globals = randomGlobals(getProgram(*expected), 3);
    auto reference = interpret(*expected, globals);
    ASSERT_EQ(reference.size(), 2u);
    EXPECT_FALSE(std::isnan(reference[0]->floats[0]));
    ProofOptions options;
    options.allowEmpty = true;
    for (const char *body :
         {inTurn, inTurnBackwards, merged, mergedWithFresh}) {
      auto module = parseModule(*context, twoSliceProgram(mask, body));
      auto counterexample = proveModule(*module, options);
      EXPECT_FALSE(counterexample) << counterexample->message << body;
      auto results = interpret(*module, globals);
      ASSERT_EQ(results.size(), 2u);
      EXPECT_TRUE(isClose(*results[0], *reference[0])) << body;
      EXPECT_TRUE(isClose(*results[1], *reference[1])) << body;
    }
  }
}

TEST(StateTest, APoisonedSliceShows) {
  // What was not received is NaN: it must not pass for a masked key, not even
  // where nothing was attended before.
  auto context = makeContext();
  for (const char *body : {inTurn, inTurnBackwards, merged, mergedWithFresh}) {
    auto module = parseModule(*context, twoSliceProgram("", body));
    auto globals = randomGlobals(getProgram(*module), 3);
    for (double &value : globals[1].table->floats)
      value = std::nan("");
    auto results = interpret(*module, globals);
    ASSERT_EQ(results.size(), 2u);
    for (double value : results[0]->floats)
      EXPECT_TRUE(std::isnan(value)) << body;
  }
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

TEST(ScheduleTest, ResultsDoNotDependOnRanksOrOptimisations) {
  auto context = makeContext();
  unsigned seed = 0;
  for (const char *mask :
       {"", "causal", "window<left = 3, right = 1>", "prefix<4>"})
    for (auto [queries, keys] :
         {std::pair<int64_t, int64_t>{24, 24}, {17, 17}, {9, 20}, {20, 9}}) {
      Problem problem;
      problem.mask = mask;
      problem.queries = queries;
      problem.keys = keys;
      problem.batch = 2;
      problem.heads = 4;
      problem.keyHeads = 2;
      problem.element = "f64";
      problem.parts = 1;
      auto alone = lower(*context, problem);
      auto globals = randomGlobals(getProgram(*alone), ++seed);
      auto reference = interpret(*alone, globals);
      ASSERT_EQ(reference.size(), 2u);
      for (const char *order : {"contiguous", "zigzag", "striped 2"})
        for (int64_t parts : {2, 3, 5})
          for (auto [drop, overlap] : {std::pair{false, false},
                                       {false, true},
                                       {true, false},
                                       {true, true}}) {
            problem.order = order;
            problem.parts = parts;
            problem.drop = drop;
            problem.overlap = overlap;
            SCOPED_TRACE(problem.describe());
            auto results = interpret(*lower(*context, problem), globals);
            ASSERT_EQ(results.size(), 2u);
            EXPECT_TRUE(isClose(*results[0], *reference[0]));
            EXPECT_TRUE(isClose(*results[1], *reference[1]));
          }
    }
}

TEST(ScheduleTest, RowsWithoutKeysAreZero) {
  auto context = makeContext();
  Problem problem;
  problem.mask = "causal";
  problem.queries = 12;
  problem.keys = 5; // The first 7 queries see nothing.
  problem.element = "f64";
  auto module = lower(*context, problem);
  auto results = interpret(*module, randomGlobals(getProgram(*module), 1));
  ASSERT_EQ(results.size(), 2u);
  int64_t row = problem.heads * problem.valueDim;
  for (int64_t x = 0; x < 7 * row; ++x)
    EXPECT_EQ(results[0]->floats[x], 0);
  for (int64_t x = 7 * row; x < 12 * row; ++x)
    EXPECT_NE(results[0]->floats[x], 0);
  for (int64_t h = 0; h < problem.heads; ++h)
    for (int64_t i = 0; i < 12; ++i)
      EXPECT_EQ(std::isinf(results[1]->floats[h * 12 + i]), i < 7);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

namespace {

/// Ranks that pass their shard on once, with peers and owners computed by
/// `peers` from %r, and return what came.
std::string passProgram(int64_t parts, StringRef peers,
                        StringRef type = "tensor<?x2xf64>") {
  return llvm::formatv(R"(
#c = #ring.layout<contiguous over {0}>
shard.grid @cp(shape = {0})
func.func @f(%x: {2} {{ring.shard = #ring.shard<#c, dim 0 extent 10>})
    -> ({2} {{ring.shard = #ring.shard<#c, dim 0 extent 10>})
    attributes {{ring.grid = @cp} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant {0} : index
  %s = arith.constant 10 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  {1}
  %t = ring.start %x dims [0] of <contiguous over {0}>[%r] extent %s to %to
      receive [%from] from %from channel <@cp, 0>
      : ({2}) -> !ring.token<{2}>
  %y = ring.wait %t : !ring.token<{2}>
  return %y : {2}
})",
                       parts, peers, type);
}

/// Each rank sends to the next; all but rank 2 expect that.
constexpr const char *onePeerIsWrong = R"(
  %to0 = arith.addi %r, %c1 : index
  %to = arith.remui %to0, %n : index
  %last = arith.subi %n, %c1 : index
  %from0 = arith.addi %r, %last : index
  %right = arith.remui %from0, %n : index
  %is2 = arith.cmpi eq, %r, %c2 : index
  %from = arith.select %is2, %c0, %right : index)";

constexpr const char *toTheMirror = R"(
  %last = arith.subi %n, %c1 : index
  %to = arith.subi %last, %r : index
  %from = arith.subi %last, %r : index)";

} // namespace

TEST(TransferTest, ADeadlockNamesRankAndPeer) {
  auto context = makeContext();
  auto module = parseModule(*context, passProgram(4, onePeerIsWrong));
  auto counterexample = proveModule(*module);
  ASSERT_TRUE(counterexample);
  // Rank 0's send to 1 is done, 1 -> 2 never is.
  EXPECT_EQ(counterexample->message,
            "deadlock: it sends to rank 2; rank 2, at hop 0, receives from "
            "rank 0");
  EXPECT_EQ(counterexample->rank, 1);
  EXPECT_EQ(counterexample->hop, 0);
  EXPECT_TRUE(isa_and_nonnull<ring::StartOp>(counterexample->op));
}

TEST(TransferTest, APeerThatHasEndedIsNamed) {
  // Rank 1 does nothing at all.
  auto context = makeContext();
  auto module = parseModule(*context, R"(
#c = #ring.layout<contiguous over 2>
shard.grid @cp(shape = 2)
func.func @f(%x: tensor<?x2xf64> {ring.shard = #ring.shard<#c, dim 0 extent 5>})
    attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = arith.constant 5 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %is0 = arith.cmpi eq, %r, %c0 : index
  scf.if %is0 {
    %t = ring.start %x dims [0] of <contiguous over 2>[%r] extent %s to %c1
        receive [%c1] from %c1 channel <@cp, 0>
        : (tensor<?x2xf64>) -> !ring.token<tensor<?x2xf64>>
    %y = ring.wait %t : !ring.token<tensor<?x2xf64>>
  }
  return
})");
  auto counterexample = proveModule(*module);
  ASSERT_TRUE(counterexample);
  EXPECT_EQ(counterexample->rank, 0);
  EXPECT_EQ(counterexample->message, "deadlock: it sends to rank 1 and "
                                     "receives from rank 1; rank 1 has ended");
}

TEST(TransferTest, ARankMaySendToItself) {
  // Of an odd number of ranks, the one in the middle is its own mirror.
  auto context = makeContext();
  for (int64_t parts : {1, 3, 5}) {
    auto module = parseModule(*context, passProgram(parts, toTheMirror));
    auto globals = randomGlobals(getProgram(*module), 1);
    auto program = getProgram(*module);
    auto simulation = Simulation::create(program);
    Interpreter interpreter;
    ASSERT_TRUE(simulation->run(
        interpreter, shardGlobals(*simulation, globals, ShardData::Copy)))
        << simulation->getCounterexample().message;
    simulation->reset();
    auto shards = shardGlobals(*simulation, globals, ShardData::Copy);
    ASSERT_TRUE(simulation->run(
        interpreter, shardGlobals(*simulation, globals, ShardData::Copy)));
    for (int64_t rank = 0; rank < parts; ++rank)
      EXPECT_TRUE(isClose(*simulation->getResults()[rank][0],
                          *shards[parts - 1 - rank][0].table, 0));
  }
}

TEST(TransferTest, IntegersTravelToo) {
  auto context = makeContext();
  auto module =
      parseModule(*context, passProgram(2, toTheMirror, "tensor<?x2xi32>"));
  auto program = getProgram(*module);
  auto globals = *describeGlobals(program, {});
  for (int64_t x = 0; x < 20; ++x)
    globals[0].table->ints.push_back(x);
  auto simulation = Simulation::create(program);
  Interpreter interpreter;
  ASSERT_TRUE(simulation->run(
      interpreter, shardGlobals(*simulation, globals, ShardData::Copy)));
  for (int64_t rank : {0, 1}) {
    std::vector<int64_t> expected(10);
    for (int64_t x = 0; x < 10; ++x)
      expected[x] = x + (rank == 0 ? 10 : 0);
    EXPECT_EQ(simulation->getResults()[rank][0]->ints, expected);
  }
}

TEST(TransferTest, AScheduleMayRunAgain) {
  auto context = makeContext();
  Problem problem;
  problem.element = "f64";
  auto module = lower(*context, problem);
  auto program = getProgram(*module);
  auto globals = randomGlobals(program, 1);
  auto simulation = Simulation::create(program);
  std::vector<TensorRef> first;
  for (int repeat = 0; repeat < 3; ++repeat) {
    Proof proof;
    EXPECT_FALSE(prove(*simulation, globals, {}, proof));
    simulation->reset();
    Interpreter interpreter;
    ASSERT_TRUE(simulation->run(
        interpreter, shardGlobals(*simulation, globals, ShardData::Copy)));
    TensorRef out = gatherResult(*simulation, 0);
    if (repeat == 0)
      first.push_back(out);
    EXPECT_TRUE(isClose(*out, *first[0], 0));
  }
}
