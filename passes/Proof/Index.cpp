//===- Index.cpp - arithmetic of ranks and turns --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Index.h"

#include "passes/Proof/Decide.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace burst::proof;

constexpr Atom numRanksAtom = 0;

/// Of a coefficient, so that a sum of some thousand terms is a machine word.
constexpr int64_t largest = int64_t(1) << 31;

/// Multiples of P that a remainder may be off by.
constexpr int64_t mostCases = 64;

//===----------------------------------------------------------------------===//
// Polynomials
//===----------------------------------------------------------------------===//

Polynomial::Polynomial(int64_t constant) : coefficients({constant}) {
  normalize();
}

Polynomial Polynomial::numRanks() {
  Polynomial result;
  result.coefficients = {0, 1};
  return result;
}

void Polynomial::normalize() {
  while (!coefficients.empty() && coefficients.back() == 0)
    coefficients.pop_back();
}

Polynomial &Polynomial::operator+=(const Polynomial &other) {
  coefficients.resize(std::max(size(), other.size()));
  for (size_t i = 0; i < other.size(); ++i)
    coefficients[i] += other[i];
  normalize();
  return *this;
}

namespace burst::proof {

Polynomial operator*(const Polynomial &a, const Polynomial &b) {
  Polynomial result;
  if (a.isZero() || b.isZero())
    return result;
  result.coefficients.resize(a.size() + b.size() - 1);
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j)
      result.coefficients[i + j] += a[i] * b[j];
  result.normalize();
  return result;
}

//===----------------------------------------------------------------------===//
// Linear forms
//===----------------------------------------------------------------------===//

Index operator-(const Index &a, const Index &b) { return a + b * -1; }

Index operator*(const Index &a, const Polynomial &b) {
  Index result(a.constant * b);
  if (!b.isZero())
    for (const auto &[atom, coefficient] : a.terms)
      result.terms.emplace(atom, coefficient * b);
  return result;
}

} // namespace burst::proof

Index Index::of(Atom atom) {
  Index result;
  result.terms.emplace(atom, 1);
  return result;
}

std::optional<int64_t> Index::getNumber() const {
  if (!terms.empty() || !constant.isConstant())
    return std::nullopt;
  return constant[0];
}

std::optional<Atom> Index::getAtom() const {
  if (!constant.isZero() || terms.size() != 1 ||
      !(terms.begin()->second == Polynomial(1)))
    return std::nullopt;
  return terms.begin()->first;
}

Index &Index::operator+=(const Index &other) {
  constant += other.constant;
  for (const auto &[atom, coefficient] : other.terms) {
    Polynomial &sum = terms[atom];
    sum += coefficient;
    if (sum.isZero())
      terms.erase(atom);
  }
  return *this;
}

//===----------------------------------------------------------------------===//
// Atoms
//===----------------------------------------------------------------------===//

Arithmetic::Arithmetic() {
  makeAtom("P", 0);
  // P = 1 is another program: it sends nothing.
  addFact(numRanksAtom, atLeast(Linear::unknown(numRanksAtom), 2));
}

Atom Arithmetic::makeAtom(std::string name, int64_t turns) {
  Known known;
  known.name = std::move(name);
  known.turns = turns;
  atoms.push_back(std::move(known));
  return atoms.size() - 1;
}

Atom Arithmetic::addAtom(std::string name, int64_t turns) {
  Atom atom = makeAtom(std::move(name), turns);
  Linear own = Linear::unknown(atom);
  addFact(atom,
          atLeast(own, 0) && below(own, Linear::unknown(numRanksAtom) * turns));
  return atom;
}

void Arithmetic::addFact(Atom atom, Formula fact) {
  atoms[atom].facts = std::move(atoms[atom].facts) && std::move(fact);
}

std::optional<Linear> Arithmetic::linear(const Index &x) {
  auto isLarge = [](int64_t number) {
    return number >= largest || number <= -largest;
  };
  if (x.getConstant().size() > 2 || isLarge(x.getConstant()[0]) ||
      isLarge(x.getConstant()[1]))
    return std::nullopt;
  Linear result(x.getConstant()[0]);
  result += Linear::unknown(numRanksAtom) * x.getConstant()[1];
  for (const auto &[atom, coefficient] : x.getTerms()) {
    if (!coefficient.isConstant() || isLarge(coefficient[0]))
      return std::nullopt;
    result += Linear::unknown(atom) * coefficient[0];
  }
  return result;
}

static void collectAtoms(const Formula &formula, std::set<Atom> &atoms) {
  for (auto [atom, coefficient] : formula.getLinear().getTerms())
    atoms.insert(atom);
  for (const Formula &member : formula.getMembers())
    collectAtoms(member, atoms);
}

Formula Arithmetic::factsOf(const Formula &formula) const {
  std::set<Atom> seen = {numRanksAtom}, open;
  collectAtoms(formula, open);
  std::vector<Formula> facts = {atoms[numRanksAtom].facts};
  while (!open.empty()) {
    Atom atom = *open.begin();
    open.erase(open.begin());
    if (!seen.insert(atom).second)
      continue;
    facts.push_back(atoms[atom].facts);
    collectAtoms(atoms[atom].facts, open);
  }
  return Formula::all(std::move(facts));
}

std::optional<Index> Arithmetic::multiply(const Index &a, const Index &b) {
  if (b.getTerms().empty())
    return a * b.getConstant();
  if (a.getTerms().empty())
    return b * a.getConstant();
  return std::nullopt;
}

std::optional<Index> Arithmetic::select(const Formula &condition,
                                        const Index &a, const Index &b) {
  if (condition.isTrue() || a == b)
    return a;
  if (condition.isFalse())
    return b;
  std::optional<Linear> left = linear(a), right = linear(b);
  if (!left || !right)
    return std::nullopt;
  Atom atom = makeAtom("select", 0);
  // Of atoms of one range, it has that range.
  std::optional<Atom> first = a.getAtom(), second = b.getAtom();
  if (first && second)
    atoms[atom].turns =
        atoms[*first].turns && atoms[*second].turns
            ? std::max(atoms[*first].turns, atoms[*second].turns)
            : 0;
  Linear own = Linear::unknown(atom);
  addFact(atom, implies(condition, equal(own, *left)) &&
                    implies(!condition, equal(own, *right)));
  return Index::of(atom);
}

//===----------------------------------------------------------------------===//
// Remainders
//===----------------------------------------------------------------------===//

Index Arithmetic::reduce(const Index &x) const {
  Index result = x.getConstant()[0];
  for (const auto &[atom, coefficient] : x.getTerms()) {
    if (atom == numRanksAtom || coefficient[0] == 0)
      continue;
    const std::optional<Index> &of = atoms[atom].remainderOf;
    result += (of ? *of : Index::of(atom)) * Polynomial(coefficient[0]);
  }
  return result;
}

/// Whether a machine word may not hold it: P is below 2^17, atoms are below
/// 2^18.
static bool mayOverflow(const Index &x) {
  double sum = 0;
  auto add = [&](const Polynomial &coefficient, double atom) {
    for (size_t i = 0; i < coefficient.size(); ++i)
      sum +=
          std::abs(double(coefficient[i])) * std::pow(0x1p17, double(i)) * atom;
  };
  add(x.getConstant(), 1);
  for (const auto &[atom, coefficient] : x.getTerms())
    add(coefficient, 0x1p18);
  return sum > 0x1p62;
}

/// Whether 0 <= low < P.
bool Arithmetic::isOwnRemainder(const Index &low) {
  Linear value = *linear(low);
  Formula outside =
      below(value, 0) || atLeast(value, Linear::unknown(numRanksAtom));
  return decide(factsOf(outside) && outside).answer == Decision::Answer::None;
}

/// An atom m for which low = m + j P, of the few j that there are.
std::optional<Index> Arithmetic::makeRemainder(const Index &low) {
  // An atom below n P is at most n P - 1, so low lies between
  // -below * P + rest and above * P + more.
  int64_t lower = 0, upper = 0, constant = low.getConstant()[0];
  int64_t rest = constant, more = constant;
  for (const auto &[atom, coefficient] : low.getTerms()) {
    int64_t factor = coefficient[0], turns = atoms[atom].turns;
    if (turns == 0)
      return std::nullopt;
    if (factor < 0) {
      lower -= factor * turns;
      rest -= factor;
    } else {
      upper += factor * turns;
      more -= factor;
    }
  }
  // P is at least 2: a number n < 0 is at least floor(n / 2) P, and n >= 0
  // below (n / 2 + 1) P.
  int64_t first = -lower + (rest < 0 ? llvm::divideFloorSigned(rest, 2) : 0);
  int64_t end = upper + (more < 0 ? 0 : more / 2 + 1);
  if (end - first > mostCases)
    return std::nullopt;
  Linear value = *linear(low), numRanks = Linear::unknown(numRanksAtom);
  Atom atom = addAtom("remainder");
  std::vector<Formula> cases;
  for (int64_t j = first; j < end; ++j)
    cases.push_back(equal(value, Linear::unknown(atom) + numRanks * j));
  addFact(atom, Formula::any(std::move(cases)));
  atoms[atom].remainderOf = low;
  return Index::of(atom);
}

std::optional<Remainder> Arithmetic::remainder(const Index &x) {
  if (mayOverflow(x))
    return std::nullopt;
  Index low = reduce(x);
  auto found = remainders.find(low);
  if (found != remainders.end())
    return Remainder{found->second, low};
  if (!linear(low))
    return std::nullopt;
  std::optional<Index> value;
  if (isOwnRemainder(low))
    value = low;
  else
    value = makeRemainder(low);
  if (!value)
    return std::nullopt;
  remainders.emplace(low, *value);
  return Remainder{*value, low};
}
