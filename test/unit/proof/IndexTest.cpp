//===- IndexTest.cpp - arithmetic for any number of ranks -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Index.h"
#include "passes/Proof/Decide.h"

#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace burst::proof;
using Answer = Decision::Answer;

namespace {

const Index numRanks = Index::numRanks();

/// Whether a formula holds for all P and all atoms.
bool isShown(const Arithmetic &arithmetic, const Formula &formula) {
  Formula contrary = !formula;
  return decide(arithmetic.factsOf(contrary) && contrary).answer ==
         Answer::None;
}

Formula same(const Index &a, const Index &b) {
  return equal(*Arithmetic::linear(a), *Arithmetic::linear(b));
}

TEST(Index, Polynomials) {
  Polynomial p = Polynomial::numRanks();
  EXPECT_TRUE((Polynomial(0) * p).isZero());
  EXPECT_EQ((p * p)[2], 1);
  Polynomial difference = p * p;
  difference += Polynomial(-1) * p * p;
  EXPECT_TRUE(difference.isZero());
}

TEST(Index, WhatIsNotLinear) {
  Arithmetic arithmetic;
  Index r = Index::of(arithmetic.addAtom("r"));
  EXPECT_FALSE(Arithmetic::multiply(r, r));
  Index product = *Arithmetic::multiply(r, numRanks);
  EXPECT_FALSE(Arithmetic::linear(product));
  EXPECT_FALSE(Arithmetic::linear(numRanks * Polynomial::numRanks()));
  // A remainder drops it.
  std::optional<Remainder> remainder =
      arithmetic.remainder(product + r + Index(1));
  ASSERT_TRUE(remainder);
  EXPECT_TRUE(remainder->of == r + Index(1));
}

/// (r + P - t) mod P and back again: the slice of turn t is t hops away.
TEST(Index, OwnersOfARing) {
  Arithmetic arithmetic;
  Index r = Index::of(arithmetic.addAtom("r")),
        t = Index::of(arithmetic.addAtom("t"));
  EXPECT_TRUE(arithmetic.remainder(r)->value == r);
  Index owner = arithmetic.remainder(r + numRanks - t)->value;
  EXPECT_FALSE(owner == r - t);
  EXPECT_TRUE(arithmetic.remainder(r - owner)->value == t);
  // The next turn's is the one before it.
  Index next = arithmetic.remainder(owner + numRanks - Index(1))->value;
  Index direct = arithmetic.remainder(r - t - Index(1))->value;
  EXPECT_TRUE(next == direct);
  // That of a step of P - 1 is that of -1.
  Index backward =
      arithmetic.remainder(r + *Arithmetic::multiply(t, numRanks - Index(1)))
          ->value;
  EXPECT_TRUE(backward == owner);
  EXPECT_TRUE(isShown(arithmetic, implies(same(t, 0), same(owner, r))));
  EXPECT_FALSE(isShown(arithmetic, same(owner, r)));
}

/// Rank x of ring g, of N rings of P ranks, is two digits.
TEST(Index, RanksOfRings) {
  Arithmetic arithmetic;
  Index g = Index::of(arithmetic.addAtom("g", 1, Modulus::Rings)),
        x = Index::of(arithmetic.addAtom("x")),
        h = Index::of(arithmetic.addAtom("h", 1, Modulus::Rings)),
        y = Index::of(arithmetic.addAtom("y"));
  Polynomial numInRing = Polynomial::numRanks();
  Index rank = g * numInRing + x, other = h * numInRing + y;
  EXPECT_FALSE(Arithmetic::linear(rank));
  std::optional<Digits> digits = arithmetic.digits(rank);
  ASSERT_TRUE(digits);
  EXPECT_TRUE(digits->high == g && digits->low == x);
  // A digit of the ring before or behind is none.
  EXPECT_FALSE(arithmetic.digits(rank - Index(1)));
  EXPECT_FALSE(arithmetic.digits(rank + Index(1)));
  EXPECT_FALSE(arithmetic.digits(g * numInRing + x + y));
  // Remainders by N and by P.
  Index numRings = arithmetic.numRings();
  EXPECT_TRUE(arithmetic.remainder(g + numRings, Modulus::Rings)->value == g);
  EXPECT_TRUE(arithmetic.remainder(rank)->value == x);
  EXPECT_FALSE(arithmetic.remainder(g + x, Modulus::Rings));
  EXPECT_FALSE(arithmetic.remainder(rank, Modulus::Rings));
  // The same rank is the same of the same ring, and all are below P N.
  EXPECT_TRUE(isShown(arithmetic, implies(*arithmetic.isZero(rank - other),
                                          same(g, h) && same(x, y))));
  EXPECT_TRUE(isShown(arithmetic,
                      !*arithmetic.isAtLeastZero(rank - numRings * numInRing)));
  EXPECT_FALSE(isShown(arithmetic, *arithmetic.isAtLeastZero(rank - other)));
  // Rows of a table with one more than ranks.
  Index row = g * (numInRing += 1) + x + Index(1);
  std::optional<Digits> ofRow = arithmetic.digits(row, 1);
  ASSERT_TRUE(ofRow);
  EXPECT_TRUE(ofRow->high == g && ofRow->low == x + Index(1));
  EXPECT_FALSE(arithmetic.digits(row + Index(1), 1));
}

/// Where a machine word may not hold a sum, nothing is said of it.
TEST(Index, SumsOfManyTermsMayOverflow) {
  Arithmetic arithmetic;
  Index few, many;
  for (int i = 0; i < 64; ++i) {
    Index term =
        Index::of(arithmetic.addAtom("x")) * Polynomial(int64_t(1) << 43);
    many += term;
    few = i == 0 ? term : few;
  }
  EXPECT_TRUE(arithmetic.remainder(few * Polynomial(0)));
  EXPECT_FALSE(arithmetic.remainder(many));
  // Also where all of it is a multiple of P.
  EXPECT_FALSE(arithmetic.remainder(many * Polynomial::numRanks()));
  // Of a coefficient that one term may have: of 2^43 cases nothing is made.
  EXPECT_FALSE(arithmetic.remainder(few));
}

TEST(Index, Selected) {
  Arithmetic arithmetic;
  Index r = Index::of(arithmetic.addAtom("r")),
        q = Index::of(arithmetic.addAtom("q"));
  Linear left = *Arithmetic::linear(r), right = *Arithmetic::linear(q);
  Index larger = *arithmetic.select(atLeast(left, right), r, q);
  Linear found = *Arithmetic::linear(larger);
  EXPECT_TRUE(
      isShown(arithmetic, atLeast(found, left) && atLeast(found, right)));
  EXPECT_FALSE(isShown(arithmetic, equal(found, left)));
  EXPECT_TRUE(arithmetic.remainder(larger)->value == larger);
}

//===----------------------------------------------------------------------===//
// Random expressions
//===----------------------------------------------------------------------===//

using Random = std::mt19937_64;

int64_t draw(Random &random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

/// What an expression is, as an Index and as a number for P and some atoms.
struct Expression {
  Index index;
  std::function<int64_t(int64_t numRanks, llvm::ArrayRef<int64_t>)> number;
};

/// With the remainders that it has, and their numbers.
struct Drawing {
  Arithmetic arithmetic;
  std::vector<
      std::pair<Atom, std::function<int64_t(int64_t, llvm::ArrayRef<int64_t>)>>>
      made;
};

int64_t modulo(int64_t a, int64_t b) { return (a % b + b) % b; }

Expression drawExpression(Random &random, Drawing &drawing, int depth) {
  int64_t what = depth == 0 ? draw(random, 0, 2) : draw(random, 0, 6);
  if (what == 0) {
    int64_t number = draw(random, -3, 3);
    return {number, [=](int64_t, llvm::ArrayRef<int64_t>) { return number; }};
  }
  if (what == 1)
    return {numRanks,
            [](int64_t numRanks, llvm::ArrayRef<int64_t>) { return numRanks; }};
  if (what == 2) {
    auto atom = Atom(draw(random, 1, 3));
    return {Index::of(atom), [=](int64_t, llvm::ArrayRef<int64_t> atoms) {
              return atoms[atom];
            }};
  }
  Expression a = drawExpression(random, drawing, depth - 1);
  if (what == 3) {
    // None of a number that might overflow.
    std::optional<Remainder> remainder = drawing.arithmetic.remainder(a.index);
    if (!remainder)
      return a;
    auto number = [f = a.number](int64_t numRanks,
                                 llvm::ArrayRef<int64_t> atoms) {
      return modulo(f(numRanks, atoms), numRanks);
    };
    if (std::optional<Atom> atom = remainder->value.getAtom();
        atom && *atom > 3)
      drawing.made.emplace_back(*atom, number);
    return {remainder->value, number};
  }
  Expression b = drawExpression(random, drawing, depth - 1);
  auto join = [&](Index index, auto apply) -> Expression {
    return {std::move(index),
            [=, f = a.number, g = b.number](int64_t numRanks,
                                            llvm::ArrayRef<int64_t> atoms) {
              return apply(f(numRanks, atoms), g(numRanks, atoms));
            }};
  };
  if (what == 4)
    return join(a.index + b.index, std::plus<int64_t>());
  if (what == 5)
    return join(a.index - b.index, std::minus<int64_t>());
  if (std::optional<Index> product = Arithmetic::multiply(a.index, b.index))
    return join(*product, std::multiplies<int64_t>());
  return a;
}

bool holds(const Formula &formula, llvm::ArrayRef<int64_t> point) {
  bool isAny = formula.getKind() == Formula::Kind::Any;
  if (formula.getKind() == Formula::Kind::AtLeast) {
    int64_t sum = formula.getLinear().getConstant();
    for (auto [number, coefficient] : formula.getLinear().getTerms())
      sum += coefficient * point[number];
    return sum >= 0;
  }
  for (const Formula &member : formula.getMembers())
    if (holds(member, point) == isAny)
      return isAny;
  return !isAny;
}

int64_t valueOf(const Index &index, int64_t numRanks,
                llvm::ArrayRef<int64_t> atoms) {
  auto of = [&](const Polynomial &polynomial) {
    int64_t sum = 0;
    for (size_t i = polynomial.size(); i-- > 0;)
      sum = sum * numRanks + polynomial[i];
    return sum;
  };
  int64_t sum = of(index.getConstant());
  for (const auto &[atom, coefficient] : index.getTerms())
    sum += of(coefficient) * atoms[atom];
  return sum;
}

/// What two digits say of a number is what it is.
TEST(Index, RandomDigits) {
  Random random(std::random_device{}());
  int64_t compared = 0;
  for (int i = 0; i < 300; ++i) {
    Arithmetic arithmetic;
    arithmetic.numRings();
    for (const char *name : {"g", "h"})
      arithmetic.addAtom(name, 1, Modulus::Rings);
    for (const char *name : {"x", "y"})
      arithmetic.addAtom(name);
    int64_t past = draw(random, 0, 1);
    Polynomial base = Polynomial::numRanks();
    base += past;
    auto factor = [&] { return draw(random, -1, 1); };
    Index index = Index::of(2) * base * factor() +
                  Index::of(3) * base * factor() + Index::of(4) * factor() +
                  Index::of(5) * factor() + Index(draw(random, -2, 2));
    std::optional<Formula> isZero = arithmetic.isZero(index),
                           isPositive = arithmetic.isAtLeastZero(index);
    std::optional<Digits> digits = arithmetic.digits(index, past);
    if (!isZero || !isPositive)
      continue;
    ++compared;
    for (int trial = 0; trial < 50; ++trial) {
      int64_t ranks = draw(random, 2, 6), rings = draw(random, 2, 6);
      std::vector<int64_t> atoms = {ranks, rings};
      for (int64_t end : {rings, rings, ranks, ranks})
        atoms.push_back(draw(random, 0, end - 1));
      int64_t value = valueOf(index, ranks, atoms);
      EXPECT_EQ(holds(*isZero, atoms), value == 0);
      EXPECT_EQ(holds(*isPositive, atoms), value >= 0);
      if (!digits)
        continue;
      int64_t low = valueOf(digits->low, ranks, atoms);
      EXPECT_TRUE(low >= 0 && low < ranks + past);
      EXPECT_EQ(valueOf(digits->high, ranks, atoms) * (ranks + past) + low,
                value);
    }
  }
  EXPECT_GT(compared, 50);
}

/// For numbers of ranks and atoms at random, the form has the value of the
/// expression, and what is known of its atoms is true.
TEST(Index, RandomExpressions) {
  uint64_t seed = std::random_device()();
  int64_t numRemainders = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    Random random(seed + i);
    Drawing drawing;
    Atom first = drawing.arithmetic.addAtom("r");
    drawing.arithmetic.addAtom("t");
    drawing.arithmetic.addAtom("turn of two loops", 2);
    ASSERT_EQ(first, 1u);
    Expression expression = drawExpression(random, drawing, 5);
    numRemainders += int64_t(drawing.made.size());
    for (int trial = 0; trial < 20; ++trial) {
      int64_t ranks = draw(random, 2, 9);
      std::vector<int64_t> atoms(drawing.arithmetic.getNumAtoms());
      atoms[0] = ranks;
      for (Atom atom : {1, 2, 3})
        atoms[atom] = draw(random, 0, (atom == 3 ? 2 : 1) * ranks - 1);
      std::vector<Formula> uses = {Formula(true)};
      for (const auto &[atom, number] : drawing.made) {
        atoms[atom] = number(ranks, atoms);
        uses.push_back(atLeast(Linear::unknown(atom), 0));
      }
      EXPECT_EQ(valueOf(expression.index, ranks, atoms),
                expression.number(ranks, atoms))
          << "seed " << seed + i;
      Formula facts = drawing.arithmetic.factsOf(Formula::all(uses));
      EXPECT_TRUE(holds(facts, atoms)) << "seed " << seed + i;
    }
  }
  EXPECT_GT(numRemainders, 300);
}

} // namespace
