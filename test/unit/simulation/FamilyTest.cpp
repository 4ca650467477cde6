//===- FamilyTest.cpp - one program for all numbers of ranks --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is proved for every number of ranks is the text of one program, in which
// P, P - 1, P / 2 and the like are read as such. That texts for other numbers
// of ranks are the same text, up to these constants, is held here: so a proof
// speaks for all of them.
//
//===----------------------------------------------------------------------===//
#include "passes/Proof/Decide.h"
#include "passes/Proof/ProveForAll.h"
#include "test/unit/simulation/Programs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include <gtest/gtest.h>

#include <cctype>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

struct Shape {
  const char *strategy, *mask, *order;
  bool isBackward, drop;
  int64_t members = 1;
  bool isNest = false, isBothWays = false;
};

/// Numbers, and what stands between them.
std::vector<std::string> tokensOf(const std::string &text) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    bool isNumber = isdigit(text[i]);
    while (i < text.size() && (isdigit(text[i]) != 0) == isNumber)
      ++i;
    tokens.push_back(text.substr(begin, i - begin));
  }
  return tokens;
}

/// How many ranks there are; of a nest, how many of them in a ring.
struct Count {
  int64_t ranks, inner = 0;
};

/// The numbers of a text that depend on that of ranks.
std::vector<int64_t> numbersOf(const Shape &shape, Count count) {
  std::vector<int64_t> numbers;
  auto addAbout = [&](int64_t number, int64_t factor = 1) {
    for (int64_t past : {-1, 0, 1})
      numbers.push_back((number + past) * factor);
  };
  addAbout(count.ranks);
  if (shape.isBothWays)
    addAbout(count.ranks / 2);
  if (count.inner == 0)
    return numbers;
  int64_t rings = count.ranks / count.inner;
  addAbout(rings);
  addAbout(count.inner);
  addAbout(rings, count.inner);
  numbers.push_back(rings * (count.inner + 1));
  return numbers;
}

/// Whether two tokens are one for so many ranks: a number that both have, the
/// same of those that depend on that of ranks, or a multiple of it.
bool areOne(const std::string &a, const std::string &b, const Shape &shape,
            Count p, Count q) {
  if (a == b)
    return true;
  if (!isdigit(a[0]) || !isdigit(b[0]) || a.size() > 12 || b.size() > 12)
    return false;
  int64_t x = std::stoll(a), y = std::stoll(b);
  for (auto [own, other] :
       llvm::zip_equal(numbersOf(shape, p), numbersOf(shape, q)))
    if (x == own && y == other)
      return true;
  return x % p.ranks == 0 && y % q.ranks == 0 && x / p.ranks == y / q.ranks;
}

/// Constants stand where they are used: which are one, and in what order they
/// stand, depends on which numbers happen to be the same.
void sinkConstants(ModuleOp module) {
  SmallVector<arith::ConstantOp> constants;
  module.walk([&](arith::ConstantOp op) { constants.push_back(op); });
  for (arith::ConstantOp op : constants) {
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      OpBuilder builder(use.getOwner());
      use.set(builder.clone(*op)->getResult(0));
    }
    op.erase();
  }
}

/// The text of a program, in which values have numbers.
std::string textOf(MLIRContext &context, Problem problem, Count count) {
  problem.parts = count.ranks;
  problem.innerRanks = count.inner;
  problem.queries = problem.keys = 34 * count.ranks;
  std::string text;
  llvm::raw_string_ostream stream(text);
  OwningOpRef<ModuleOp> module = lower(context, problem);
  sinkConstants(*module);
  module->print(stream, OpPrintingFlags().printGenericOpForm());
  return text;
}

std::vector<Shape> allShapes() {
  std::vector<Shape> shapes;
  for (const char *strategy :
       {"ring_kv", "ring_q", "direct_kv", "direct_q", "all_gather"})
    for (const char *mask : {"", "causal", "window<left = 11, right = 0>"})
      for (const char *order : {"contiguous", "zigzag", "striped"})
        for (bool isBackward : {false, true})
          shapes.push_back({strategy, mask, order, isBackward,
                            /*drop=*/order != StringRef("striped")});
  // With heads exchanged around them.
  for (const char *strategy : {"ring_kv", "ring_q", "all_gather"})
    for (bool isBackward : {false, true})
      shapes.push_back({strategy, "causal", "zigzag", isBackward,
                        /*drop=*/true, /*members=*/2});
  for (const char *strategy :
       {"double_ring_kv", "double_ring_q", "bi_ring_kv", "bi_ring_q"})
    for (const char *mask : {"", "causal"})
      for (bool isBackward : {false, true}) {
        bool isNest = StringRef(strategy).starts_with("double");
        shapes.push_back({strategy, mask, "zigzag", isBackward, /*drop=*/true,
                          /*members=*/1, isNest, /*isBothWays=*/!isNest});
      }
  return shapes;
}

/// Of how many ranks texts are compared with the first.
std::vector<Count> countsOf(const Shape &shape) {
  if (shape.isNest)
    return {{11 * 16, 16}, {5 * 7, 7}, {7 * 23, 23}, {13 * 4, 4}, {4 * 9, 9}};
  if (shape.isBothWays)
    return {{16}, {8}, {10}, {20}, {30}};
  return {{8}, {3}, {4}, {5}, {6}, {7}, {12}, {16}, {31}};
}

Problem problemOf(const Shape &shape) {
  Problem problem;
  problem.forward = shape.strategy;
  problem.backward = shape.isBackward ? shape.strategy : "";
  problem.mask = shape.mask;
  problem.order = shape.order;
  problem.drop = shape.drop;
  problem.members = shape.members;
  problem.heads = 2 * shape.members;
  problem.keyHeads = shape.members;
  return problem;
}

/// From facts that nothing satisfies all would follow.
TEST(FamilyTest, FactsOfEveryConditionHaveAModel) {
  auto context = makeContext();
  for (const Shape &shape : allShapes()) {
    Problem problem = problemOf(shape);
    problem.parts = shape.isNest ? 12 : 8;
    problem.innerRanks = shape.isNest ? 4 : 0;
    problem.queries = problem.keys = 34 * problem.parts;
    SCOPED_TRACE(problem.describe());
    OwningOpRef<ModuleOp> module = lower(*context, problem);
    int64_t conditions = 0;
    auto verdict = proof::proveForAll(
        getProgram(*module), {/*allowEmpty=*/!shape.drop},
        [&](const proof::Condition &condition, const proof::Formula &facts,
            bool isShown) {
          ++conditions;
          EXPECT_TRUE(isShown) << condition.what;
          EXPECT_EQ(proof::decide(facts).answer, proof::Decision::Answer::Some)
              << condition.what;
        });
    EXPECT_TRUE(verdict.isProved());
    EXPECT_GT(conditions, 1);
  }
}

/// Without a table of pairs nothing but its loop says what travels in a pass.
TEST(FamilyTest, PassesMayTurnByDifferentRings) {
  auto context = makeContext();
  for (const char *forward : {"ring_kv", "ring_q", "all_gather"})
    for (const char *backward : {"ring_kv", "ring_q", "all_gather"})
      for (const char *mask : {"", "causal"}) {
        Problem problem;
        problem.forward = forward;
        problem.backward = backward;
        problem.mask = mask;
        problem.order = "zigzag";
        problem.parts = 8;
        problem.queries = problem.keys = 34 * problem.parts;
        SCOPED_TRACE(problem.describe());
        OwningOpRef<ModuleOp> module = lower(*context, problem);
        auto verdict = proof::proveForAll(getProgram(*module), {});
        EXPECT_TRUE(verdict.isProved())
            << (verdict.reason ? verdict.reason->text : "");
      }
}

TEST(FamilyTest, TextsDifferInTheNumberOfRanksOnly) {
  auto context = makeContext();
  for (const Shape &shape : allShapes()) {
    Problem problem = problemOf(shape);
    std::vector<Count> counts = countsOf(shape);
    auto reference = tokensOf(textOf(*context, problem, counts.front()));
    for (Count count : counts) {
      // 2 members are not 2 of 3 ranks.
      if (count.ranks - 1 == shape.members)
        continue;
      SCOPED_TRACE(problem.describe() + " as for " +
                   std::to_string(count.ranks));
      auto tokens = tokensOf(textOf(*context, problem, count));
      ASSERT_EQ(reference.size(), tokens.size());
      for (auto [a, b] : llvm::zip_equal(reference, tokens))
        ASSERT_TRUE(areOne(a, b, shape, counts.front(), count))
            << a << " and " << b;
    }
  }
}

} // namespace
