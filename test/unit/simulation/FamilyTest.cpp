//===- FamilyTest.cpp - one program for all numbers of ranks --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is proved for every number of ranks is the text of one program, in which
// P and P - 1 are read as such. That texts for other numbers of ranks are the
// same text, up to these constants, is held here: so a proof speaks for all of
// them.
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

/// Whether two tokens are one for `p` and for `q` ranks: a number that both
/// have, one that is so many more or fewer than that of ranks, or a multiple.
bool areOne(const std::string &a, const std::string &b, int64_t p, int64_t q) {
  if (a == b)
    return true;
  if (!isdigit(a[0]) || !isdigit(b[0]) || a.size() > 12 || b.size() > 12)
    return false;
  int64_t x = std::stoll(a), y = std::stoll(b);
  return (x - p == y - q && std::abs(x - p) <= 1) ||
         (x % p == 0 && y % q == 0 && x / p == y / q);
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
std::string textOf(MLIRContext &context, Problem problem, int64_t parts) {
  problem.parts = parts;
  problem.queries = problem.keys = 34 * parts;
  std::string text;
  llvm::raw_string_ostream stream(text);
  OwningOpRef<ModuleOp> module = lower(context, problem);
  sinkConstants(*module);
  module->print(stream, OpPrintingFlags().printGenericOpForm());
  return text;
}

struct Shape {
  const char *strategy, *mask, *order;
  bool isBackward, drop;
  int64_t members = 1;
};

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
  return shapes;
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
    problem.parts = 8;
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
    constexpr int64_t first = 8;
    auto reference = tokensOf(textOf(*context, problem, first));
    for (int64_t parts : {3, 4, 5, 6, 7, 12, 16, 31}) {
      // 2 members are not 2 of 3 ranks.
      if (parts - 1 == shape.members)
        continue;
      SCOPED_TRACE(problem.describe() + " as for " + std::to_string(parts));
      auto tokens = tokensOf(textOf(*context, problem, parts));
      ASSERT_EQ(reference.size(), tokens.size());
      for (auto [a, b] : llvm::zip_equal(reference, tokens))
        ASSERT_TRUE(areOne(a, b, first, parts)) << a << " and " << b;
    }
  }
}

} // namespace
