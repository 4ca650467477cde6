//===- DecideTest.cpp - formulas and their integers -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// BURST_SEED and BURST_COUNT set the first seed and the number of random
// formulas: formula n alone is BURST_SEED=seed+n BURST_COUNT=1.
//
//===----------------------------------------------------------------------===//

#include "passes/Proof/Decide.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

using namespace burst::proof;
using Answer = Decision::Answer;

namespace {

const Linear x = Linear::unknown(0), y = Linear::unknown(1),
             z = Linear::unknown(2), w = Linear::unknown(3);

std::string textOf(const Formula &formula) {
  std::string text;
  llvm::raw_string_ostream(text) << formula;
  return text;
}

Answer answerTo(const Formula &formula) { return decide(formula).answer; }

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

TEST(Formula, AreSimplified) {
  EXPECT_EQ(textOf(atLeast(x * 2 - y, 3)), "-3 + 2 x0 - 1 x1 >= 0");
  EXPECT_EQ(textOf(below(x, y)), "-1 - 1 x0 + 1 x1 >= 0");
  EXPECT_EQ(textOf(atLeast(x, x)), "true");
  EXPECT_EQ(textOf(below(x - x, 0)), "false");
  Formula a = atLeast(x, 0), b = atLeast(y, 0), c = atLeast(z, 0);
  EXPECT_EQ(textOf(a && Formula(true)), textOf(a));
  EXPECT_EQ(textOf(a && Formula(false)), "false");
  EXPECT_EQ(textOf(a || Formula(true)), "true");
  EXPECT_EQ(textOf((a && b) && c),
            "(0 + 1 x0 >= 0 and 0 + 1 x1 >= 0 and 0 + 1 x2 >= 0)");
  EXPECT_EQ(textOf(!(a && (b || c))),
            "(-1 - 1 x0 >= 0 or (-1 - 1 x1 >= 0 and -1 - 1 x2 >= 0))");
  EXPECT_EQ(textOf(!!(a && (b || c))), textOf(a && (b || c)));
  EXPECT_EQ((a && atLeast(w, 1)).getNumUnknowns(), 4u);
  EXPECT_EQ(Formula(true).getNumUnknowns(), 0u);
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

TEST(Decide, Trivial) {
  EXPECT_EQ(answerTo(Formula(true)), Answer::Some);
  EXPECT_EQ(answerTo(Formula(false)), Answer::None);
  EXPECT_EQ(answerTo(equal(x, 3) && equal(x, 4)), Answer::None);
}

TEST(Decide, ModelsSatisfyTheFormula) {
  Formula formula = equal(x + y, 7) && unequal(x, 3) && unequal(x, 4) &&
                    atLeast(x, 3) && below(x, 6);
  Decision decision = decide(formula);
  ASSERT_EQ(decision.answer, Answer::Some);
  EXPECT_EQ(int64_t(decision.model[0]), 5);
  EXPECT_EQ(int64_t(decision.model[1]), 2);
}

/// Where only fractions are left.
TEST(Decide, Integers) {
  EXPECT_EQ(answerTo(equal(x * 2, y * 2 + Linear(1))), Answer::None);
  EXPECT_EQ(answerTo(equal(x * 3 + y * 5, 4)), Answer::Some);
  // 3x + 5y = 7 has no natural solutions, and rational ones.
  Formula natural = atLeast(x, 0) && atLeast(y, 0);
  Decision decision = decide(natural && equal(x * 3 + y * 5, 7));
  EXPECT_EQ(decision.answer, Answer::None);
  EXPECT_EQ(decision.withoutInteger, 1);
}

/// The owner that rank r holds in turn t of a ring, (r - t) mod P, for any P:
/// the same one is held by another rank in no turn but its own.
TEST(Decide, OwnersOfARing) {
  Linear ranks = x, r = y, t = z, q = w;
  auto isRank = [&](const Linear &n) {
    return atLeast(n, 0) && below(n, ranks);
  };
  // (n - t) mod P, of n and t below P.
  auto owner = [&](const Linear &n, unsigned quotient) {
    return n - t + (quotient ? ranks : Linear(0));
  };
  Formula facts = atLeast(ranks, 2) && isRank(r) && isRank(t) && isRank(q);
  std::vector<Formula> same;
  for (unsigned a : {0, 1})
    for (unsigned b : {0, 1})
      same.push_back(isRank(owner(r, a)) && isRank(owner(q, b)) &&
                     equal(owner(r, a), owner(q, b)));
  Formula meet = facts && Formula::any(same);
  EXPECT_EQ(answerTo(meet), Answer::Some);
  EXPECT_EQ(answerTo(meet && unequal(r, q)), Answer::None);
}

TEST(Decide, EndsWhereItMay) {
  // Pigeons: 7 different numbers from 0 to 5.
  std::vector<Formula> members;
  for (unsigned i = 0; i < 7; ++i) {
    Linear own = Linear::unknown(i);
    members.push_back(atLeast(own, 0) && below(own, 6));
    for (unsigned j = 0; j < i; ++j)
      members.push_back(unequal(own, Linear::unknown(j)));
  }
  Formula pigeons = Formula::all(members);
  Decision decision = decide(pigeons, /*mostSplits=*/10);
  EXPECT_EQ(decision.answer, Answer::Unknown);
  EXPECT_EQ(decision.splits, 10);
  EXPECT_EQ(answerTo(pigeons), Answer::None);
}

//===----------------------------------------------------------------------===//
// Random formulas
//===----------------------------------------------------------------------===//

constexpr unsigned numUnknowns = 4;
constexpr int64_t bound = 3; // all unknowns lie in [-bound, bound]

using Random = std::mt19937_64;

int64_t draw(Random &random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

Formula drawFormula(Random &random, int depth) {
  if (depth == 0 || draw(random, 0, 3) == 0) {
    Linear linear(draw(random, -6, 6));
    for (unsigned i = 0; i < numUnknowns; ++i)
      if (draw(random, 0, 1))
        linear += Linear::unknown(i) * draw(random, -3, 3);
    Formula atom = Formula::atLeastZero(linear);
    return draw(random, 0, 2) ? atom : atom && Formula::atLeastZero(-linear);
  }
  std::vector<Formula> members;
  for (int64_t i = draw(random, 1, 4); i > 0; --i)
    members.push_back(drawFormula(random, depth - 1));
  Formula joined = draw(random, 0, 1) ? Formula::all(std::move(members))
                                      : Formula::any(std::move(members));
  return draw(random, 0, 3) ? joined : !joined;
}

int64_t valueOf(const Linear &linear, llvm::ArrayRef<int64_t> point) {
  int64_t sum = linear.getConstant();
  for (auto [number, coefficient] : linear.getTerms())
    sum += coefficient * point[number];
  return sum;
}

bool holds(const Formula &formula, llvm::ArrayRef<int64_t> point) {
  bool isAny = formula.getKind() == Formula::Kind::Any;
  if (formula.getKind() == Formula::Kind::AtLeast)
    return valueOf(formula.getLinear(), point) >= 0;
  for (const Formula &member : formula.getMembers())
    if (holds(member, point) == isAny)
      return isAny;
  return !isAny;
}

bool hasPoint(const Formula &formula) {
  int64_t point[numUnknowns];
  constexpr int64_t side = 2 * bound + 1;
  for (int64_t i = 0; i < side * side * side * side; ++i) {
    int64_t rest = i;
    for (int64_t &coordinate : point) {
      coordinate = rest % side - bound;
      rest /= side;
    }
    if (holds(formula, point))
      return true;
  }
  return false;
}

uint64_t fromEnvironment(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, nullptr, 10) : otherwise;
}

/// By trying all points of a box.
TEST(Decide, RandomFormulas) {
  uint64_t seed = fromEnvironment("BURST_SEED", std::random_device()());
  uint64_t count = fromEnvironment("BURST_COUNT", 500), numSome = 0;
  for (uint64_t i = 0; i < count; ++i) {
    Random random(seed + i);
    Formula formula = drawFormula(random, 4);
    for (unsigned n = 0; n < numUnknowns; ++n)
      formula = formula && atLeast(Linear::unknown(n), -bound) &&
                atLeast(bound, Linear::unknown(n));
    Decision decision = decide(formula);
    ASSERT_NE(decision.answer, Answer::Unknown);
    bool isSome = decision.answer == Answer::Some;
    numSome += isSome;
    ASSERT_EQ(isSome, hasPoint(formula))
        << "BURST_SEED=" << seed + i << " BURST_COUNT=1: " << textOf(formula);
    if (!isSome)
      continue;
    std::vector<int64_t> model(decision.model.begin(), decision.model.end());
    EXPECT_TRUE(holds(formula, model))
        << "BURST_SEED=" << seed + i << " BURST_COUNT=1";
  }
  printf("%llu of %llu formulas have a model, seeds from %llu\n",
         (unsigned long long)numSome, (unsigned long long)count,
         (unsigned long long)seed);
}

} // namespace
