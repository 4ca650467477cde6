//===- GatherProofTest.cpp - all-gathers, right and broken ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Programs.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

std::vector<Problem> gatherProblems() {
  std::vector<Problem> problems;
  for (const char *order : {"contiguous", "zigzag", "striped", "striped 2"})
    for (const char *mask : {"", "causal", "window<left = 11, right = 0>"})
      for (int64_t parts : {1, 2, 3, 4, 5, 8})
        for (const char *backward : {"", "all_gather"})
          for (bool drop : {false, true}) {
            Problem problem;
            problem.forward = "all_gather";
            problem.backward = backward;
            problem.order = order;
            problem.mask = mask;
            problem.parts = parts;
            bool isEven = parts % 3 != 0;
            problem.queries = isEven ? 4 * parts : 5 * parts - 1;
            problem.keys = problem.queries + (drop && !isEven ? 3 : 0);
            problem.drop = problem.overlap = drop;
            problems.push_back(problem);
          }
  return problems;
}

class GatherProof : public testing::TestWithParam<Problem> {};

INSTANTIATE_TEST_SUITE_P(Problems, GatherProof,
                         testing::ValuesIn(gatherProblems()), nameOfProblem);

/// What it gives is what a ring gives.
TEST_P(GatherProof, IsProvedAndComputes) {
  auto context = makeContext();
  Problem problem = GetParam();
  OwningOpRef<ModuleOp> gather = lower(*context, problem);
  ProofOptions options;
  options.allowEmpty = !problem.drop;
  Proof proof;
  auto refused = proveModule(*gather, options, &proof);
  ASSERT_FALSE(refused) << refused->message;
  for (const Traffic &traffic : proof.traffic)
    EXPECT_EQ(traffic.peakSlices, problem.parts == 1 ? 0 : 1);
  problem.forward = "ring_kv";
  if (!problem.backward.empty())
    problem.backward = "ring_kv";
  OwningOpRef<ModuleOp> ring = lower(*context, problem);
  std::vector<Argument> globals = randomGlobals(getProgram(*ring), 1);
  for (auto [a, b] :
       llvm::zip_equal(interpret(*gather, globals), interpret(*ring, globals)))
    EXPECT_TRUE(isClose(*a, *b, 1e-5));
}

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

/// A backward pass, and what is in it.
struct Schedule {
  explicit Schedule(ModuleOp module) : program(getProgram(module)) {
    program.walk([&](Operation *op) {
      if (auto start = dyn_cast<ring::StartOp>(op)) {
        if (start.isGather())
          gather = start;
        else if (isa<scf::ForOp>(start->getParentOp()))
          back = start;
        else
          own = start;
      }
      if (auto attend = dyn_cast<ring::AttendGradOp>(op))
        this->attend = attend;
      if (auto add = dyn_cast<ring::AddOp>(op))
        adds.push_back(add);
    });
  }

  Value number(Operation *at, int64_t value) {
    OpBuilder builder(at);
    return arith::ConstantIndexOp::create(builder, at->getLoc(), value);
  }
  Value ahead(Operation *at, Value rank) {
    OpBuilder builder(at);
    Location loc = at->getLoc();
    Value next =
        arith::AddIOp::create(builder, loc, rank, number(at, 1)).getResult();
    return arith::RemUIOp::create(builder, loc, next, number(at, parts));
  }
  /// A table of which no flag is true, but those of one distance.
  Value onlyAt(int64_t wanted, Operation *at, Value like) {
    OpBuilder builder(at);
    auto type = cast<RankedTensorType>(like.getType());
    SmallVector<bool> flags;
    for (int64_t owner = 0; owner < type.getDimSize(0); ++owner)
      for (int64_t distance = 0; distance < type.getDimSize(1); ++distance)
        flags.append(type.getDimSize(2), distance == wanted);
    return arith::ConstantOp::create(builder, at->getLoc(),
                                     DenseElementsAttr::get(type, flags));
  }

  static constexpr int64_t parts = 4;
  func::FuncOp program;
  ring::StartOp gather, own, back;
  ring::AttendGradOp attend;
  std::vector<ring::AddOp> adds;
};

struct Mutation {
  const char *name;
  void (*make)(Schedule &);
  const char *refusal;
};

const Mutation mutations[] = {
    {"gathersTheShardOfAnother",
     [](Schedule &s) {
       s.gather.getOwnerMutable().assign(
           s.ahead(s.gather, s.gather.getOwner()));
     },
     "gathers the shard of 1 as that of this rank"},
    {"gathersTooLittle",
     [](Schedule &s) {
       s.gather.getSegmentsMutable().assign(
           s.onlyAt(0, s.gather, s.gather.getSegments()));
     },
     "which was not received"},
    {"gathersTooMuch",
     [](Schedule &s) {
       OpBuilder builder(s.gather);
       auto type = cast<RankedTensorType>(s.gather.getSegments().getType());
       s.gather.getSegmentsMutable().assign(arith::ConstantOp::create(
           builder, s.gather.getLoc(), DenseElementsAttr::get(type, true)));
     },
     "neither reads it nor sends it on; its flags must leave that out"},
    {"leavesTheOwnShardOut",
     [](Schedule &s) {
       s.gather.getSegmentsMutable().assign(
           s.onlyAt(1, s.gather, s.gather.getSegments()));
     },
     "leaves out segments of the own shard"},
    {"attendsTheShardOfTheWrongOwner",
     [](Schedule &s) {
       s.attend.getKeyOwnerMutable().assign(s.number(s.attend, 1));
     },
     "names owner 1 of a gathered layout, of which 0 has all"},
    {"takesAShardForAll",
     [](Schedule &s) {
       s.attend.getKeyMutable().assign(s.gather.getTensors()[0]);
     },
     "takes for gathered what is the shard of one rank"},
    {"takesAllForAShard",
     [](Schedule &s) {
       s.attend.setKeyLayoutAttr(s.attend.getKeyLayout().ofPart());
       s.attend.getPairsMutable().clear();
     },
     "takes for the shard of one rank what is gathered"},
    {"returnsToAnother",
     [](Schedule &s) {
       s.back.getOwnerMutable().assign(s.ahead(s.back, s.back.getOwner()));
     },
     "from rank 0, which sends"},
    {"returnsFromAnother",
     [](Schedule &s) {
       s.back.getFromMutable().assign(s.ahead(s.back, s.back.getFrom()));
     },
     "deadlock"},
    {"returnsTheWrongShard",
     [](Schedule &s) { s.back.setLayoutAttr(s.back.getLayout().ofPart()); },
     "sends a tensor of"},
    {"returnsTooLittle",
     [](Schedule &s) {
       s.back.getSegmentsMutable().assign(
           s.onlyAt(0, s.gather, s.back.getSegments()));
     },
     "of which it has"},
    {"addsTwice",
     [](Schedule &s) {
       OpBuilder builder(s.adds.back()->getNextNode());
       Operation *again = builder.clone(*s.adds.back());
       s.adds.back().getSum().replaceUsesWithIf(
           again->getResult(0),
           [&](OpOperand &use) { return use.getOwner() != again; });
       again->setOperand(0, s.adds.back().getSum());
     },
     "what was added before"},
    {"addsAllToAShard",
     [](Schedule &s) {
       s.adds.front().getBMutable().assign(s.attend.getNewGrads()[1]);
     },
     "is given a gathered tensor"},
};

/// For gtest.
void PrintTo(const Mutation &mutation, std::ostream *stream) {
  *stream << mutation.name;
}

class GatherMutation : public testing::TestWithParam<Mutation> {};

INSTANTIATE_TEST_SUITE_P(Mutations, GatherMutation,
                         testing::ValuesIn(mutations), [](const auto &info) {
                           return std::string(info.param.name);
                         });

TEST_P(GatherMutation, IsRefused) {
  auto context = makeContext();
  Problem problem;
  problem.forward = problem.backward = "all_gather";
  problem.order = "zigzag";
  problem.mask = "causal";
  OwningOpRef<ModuleOp> module = lower(*context, problem);
  ASSERT_FALSE(proveModule(*module));
  Schedule schedule(*module);
  ASSERT_TRUE(schedule.gather && schedule.own && schedule.back &&
              schedule.attend && schedule.adds.size() == 4);
  GetParam().make(schedule);
  auto refused = proveModule(*module);
  ASSERT_TRUE(refused);
  EXPECT_NE(refused->message.find(GetParam().refusal), std::string::npos)
      << refused->message;
}

} // namespace
