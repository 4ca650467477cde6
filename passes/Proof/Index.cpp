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
  makeAtom("P", 0, Modulus::Ranks);
  // P = 1 is another program: it sends nothing.
  addFact(numRanksAtom, atLeast(Linear::unknown(numRanksAtom), 2));
}

Index Arithmetic::numRings() {
  if (!ringsAtom) {
    ringsAtom = makeAtom("N", 0, Modulus::Rings);
    addFact(*ringsAtom, atLeast(Linear::unknown(*ringsAtom), 2));
  }
  return Index::of(*ringsAtom);
}

Atom Arithmetic::atomOf(Modulus modulus) const {
  return modulus == Modulus::Ranks ? numRanksAtom : *ringsAtom;
}

Atom Arithmetic::makeAtom(std::string name, int64_t turns, Modulus modulus) {
  Known known;
  known.name = std::move(name);
  known.turns = turns;
  known.modulus = modulus;
  atoms.push_back(std::move(known));
  return atoms.size() - 1;
}

Atom Arithmetic::addAtom(std::string name, int64_t turns, Modulus modulus) {
  if (modulus == Modulus::Rings)
    numRings();
  Atom atom = makeAtom(std::move(name), turns, modulus);
  Linear own = Linear::unknown(atom);
  addFact(atom, atLeast(own, 0) &&
                    below(own, Linear::unknown(atomOf(modulus)) * turns));
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
  auto add = [&](const Formula &fact) {
    facts.push_back(fact);
    collectAtoms(fact, open);
  };
  std::set<std::pair<Atom, Atom>> added;
  while (!open.empty()) {
    while (!open.empty()) {
      Atom atom = *open.begin();
      open.erase(open.begin());
      if (seen.insert(atom).second)
        add(atoms[atom].facts);
    }
    for (Atom atom : seen)
      for (const auto &[other, fact] : atoms[atom].others)
        if (seen.count(other) && added.insert({atom, other}).second)
          add(fact);
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
  if (std::optional<Index> found = selectLinear(condition, a, b))
    return found;
  std::optional<Digits> left = digits(a), right = digits(b);
  if (!left || !right)
    return std::nullopt;
  std::optional<Index> high = selectLinear(condition, left->high, right->high),
                       low = selectLinear(condition, left->low, right->low);
  if (!high || !low)
    return std::nullopt;
  return *high * Polynomial::numRanks() + *low;
}

std::optional<Index> Arithmetic::selectLinear(const Formula &condition,
                                              const Index &a, const Index &b) {
  if (a == b)
    return a;
  std::optional<Linear> left = linear(a), right = linear(b);
  if (!left || !right)
    return std::nullopt;
  Atom atom = makeAtom("select", 0, Modulus::Ranks);
  // Of atoms of one range, it has that range.
  std::optional<Atom> first = a.getAtom(), second = b.getAtom();
  if (first && second && atoms[*first].turns && atoms[*second].turns &&
      atoms[*first].modulus == atoms[*second].modulus) {
    atoms[atom].turns = std::max(atoms[*first].turns, atoms[*second].turns);
    atoms[atom].modulus = atoms[*first].modulus;
  }
  Linear own = Linear::unknown(atom);
  addFact(atom, implies(condition, equal(own, *left)) &&
                    implies(!condition, equal(own, *right)));
  return Index::of(atom);
}

//===----------------------------------------------------------------------===//
// Remainders
//===----------------------------------------------------------------------===//

Index Arithmetic::reduce(const Index &x, Modulus modulus) const {
  // Modulo N powers of P stay.
  bool isByRanks = modulus == Modulus::Ranks;
  auto reduced = [&](const Polynomial &coefficient) {
    return isByRanks ? Polynomial(coefficient[0]) : coefficient;
  };
  Index result(reduced(x.getConstant()));
  for (const auto &[atom, coefficient] : x.getTerms()) {
    Polynomial factor = reduced(coefficient);
    if (factor.isZero() || (atom == numRanksAtom && isByRanks) ||
        (isNumRings(atom) && !isByRanks))
      continue;
    const Known &known = atoms[atom];
    bool isRemainder = known.remainderOf && known.modulus == modulus;
    result += (isRemainder ? *known.remainderOf : Index::of(atom)) * factor;
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

/// Whether above < x < end.
bool Arithmetic::isBetween(const Linear &x, const Linear &above,
                           const Linear &end) {
  Formula outside = atLeast(above, x) || atLeast(x, end);
  return decide(factsOf(outside) && outside).answer == Decision::Answer::None;
}

/// Whether 0 <= low < P, or N.
bool Arithmetic::isOwnRemainder(const Index &low, Modulus modulus) {
  return isBetween(*linear(low), -1, Linear::unknown(atomOf(modulus)));
}

/// An atom m for which low = m + j P, of the few j that there are.
std::optional<Index> Arithmetic::makeRemainder(const Index &low,
                                               Modulus modulus) {
  // An atom below n P is at most n P - 1, so low lies between
  // -below * P + rest and above * P + more.
  int64_t lower = 0, upper = 0, constant = low.getConstant()[0];
  int64_t rest = constant, more = constant;
  for (const auto &[atom, coefficient] : low.getTerms()) {
    int64_t factor = coefficient[0], turns = atoms[atom].turns;
    if (turns == 0 || atoms[atom].modulus != modulus)
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
  Linear value = *linear(low), by = Linear::unknown(atomOf(modulus));
  Atom atom = addAtom("remainder", 1, modulus);
  std::vector<Formula> cases;
  for (int64_t j = first; j < end; ++j)
    cases.push_back(equal(value, Linear::unknown(atom) + by * j));
  addFact(atom, Formula::any(std::move(cases)));
  atoms[atom].remainderOf = low;
  return Index::of(atom);
}

std::optional<Remainder> Arithmetic::remainder(const Index &x,
                                               Modulus modulus) {
  if (mayOverflow(x))
    return std::nullopt;
  Index low = reduce(x, modulus);
  auto found = remainders.find({modulus, low});
  if (found != remainders.end())
    return Remainder{found->second, low};
  // N is not compared with a multiple of P.
  if (!linear(low) ||
      (modulus == Modulus::Rings && !low.getConstant().isConstant()))
    return std::nullopt;
  std::optional<Index> value;
  if (isOwnRemainder(low, modulus))
    value = low;
  else
    value = makeRemainder(low, modulus);
  if (!value)
    return std::nullopt;
  remainders.emplace(std::pair(modulus, low), *value);
  return Remainder{*value, low};
}

//===----------------------------------------------------------------------===//
// Digits
//===----------------------------------------------------------------------===//

/// p / (P + past), where that is a number.
static std::optional<int64_t> quotient(const Polynomial &p, int64_t past) {
  if (p.size() != 2 || p[0] != past * p[1])
    return std::nullopt;
  return p[1];
}

/// x as (P + past) * high + low, where low has no factor P.
static std::optional<Digits> split(const Index &x, int64_t past) {
  Digits found;
  if (auto factor = quotient(x.getConstant(), past))
    found.high = *factor;
  else
    found.low = x.getConstant();
  for (const auto &[atom, coefficient] : x.getTerms())
    if (auto factor = quotient(coefficient, past))
      found.high += Index::of(atom) * Polynomial(*factor);
    else if (coefficient.isConstant())
      found.low += Index::of(atom) * coefficient;
    else
      return std::nullopt;
  return found;
}

static Linear baseOf(int64_t past) {
  return Linear::unknown(numRanksAtom) + past;
}

std::optional<Digits> Arithmetic::digits(const Index &x, int64_t past) {
  if (mayOverflow(x))
    return std::nullopt;
  std::optional<Digits> found = split(x, past);
  if (!found || !isLowDigit(found->low, past, /*isSigned=*/false))
    return std::nullopt;
  return found;
}

bool Arithmetic::isLowDigit(const Index &low, int64_t past, bool isSigned) {
  auto [known, isNew] = lowDigits.try_emplace({low, past, isSigned}, false);
  std::optional<Linear> value = linear(low);
  if (isNew && value)
    known->second =
        isBetween(*value, isSigned ? -baseOf(past) : Linear(-1), baseOf(past));
  return known->second;
}

std::optional<Arithmetic::Signed> Arithmetic::signedDigits(const Index &x) {
  if (mayOverflow(x))
    return std::nullopt;
  for (int64_t past : {0, 1}) {
    std::optional<Digits> found = split(x, past);
    if (!found)
      continue;
    std::optional<Linear> high = linear(found->high), low = linear(found->low);
    if (high && low && isLowDigit(found->low, past, /*isSigned=*/true))
      return Signed{*high, *low};
  }
  return std::nullopt;
}

std::optional<Formula> Arithmetic::isAtLeastZero(const Index &x) {
  if (std::optional<Linear> value = linear(x))
    return atLeast(*value, 0);
  std::optional<Signed> found = signedDigits(x);
  if (!found)
    return std::nullopt;
  return atLeast(found->high, 1) ||
         (equal(found->high, 0) && atLeast(found->low, 0));
}

std::optional<Formula> Arithmetic::isZero(const Index &x) {
  if (std::optional<Linear> value = linear(x))
    return equal(*value, 0);
  std::optional<Signed> found = signedDigits(x);
  if (!found)
    return std::nullopt;
  return equal(found->high, 0) && equal(found->low, 0);
}
