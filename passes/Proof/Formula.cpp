//===- Formula.cpp - conditions on integers -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Formula.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace burst::proof;
using llvm::raw_ostream;

//===----------------------------------------------------------------------===//
// Linear forms
//===----------------------------------------------------------------------===//

Linear Linear::unknown(unsigned number) {
  Linear result;
  result.terms.push_back({number, 1});
  return result;
}

Linear &Linear::operator+=(const Linear &other) {
  constant += other.constant;
  llvm::SmallVector<Term, 4> sum;
  auto mine = terms.begin(), end = terms.end();
  for (const Term &term : other.terms) {
    while (mine != end && mine->first < term.first)
      sum.push_back(*mine++);
    int64_t coefficient = term.second;
    if (mine != end && mine->first == term.first)
      coefficient += (mine++)->second;
    if (coefficient != 0)
      sum.push_back({term.first, coefficient});
  }
  sum.append(mine, end);
  terms = std::move(sum);
  return *this;
}

Linear &Linear::operator*=(int64_t factor) {
  constant *= factor;
  if (factor == 0)
    terms.clear();
  for (Term &term : terms)
    term.second *= factor;
  return *this;
}

size_t Linear::getHash() const {
  size_t hash = llvm::hash_value(constant);
  for (auto [number, coefficient] : terms)
    hash = llvm::hash_combine(hash, number, coefficient);
  return hash;
}

raw_ostream &burst::proof::operator<<(raw_ostream &os, const Linear &linear) {
  os << linear.getConstant();
  for (auto [number, coefficient] : linear.getTerms())
    os << (coefficient < 0 ? " - " : " + ")
       << (coefficient < 0 ? -coefficient : coefficient) << " x" << number;
  return os;
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

Formula::Formula(Kind kind, Linear linear, std::vector<Formula> members) {
  size_t hash = llvm::hash_combine(kind, linear.getHash());
  uint64_t size = 1;
  for (const Formula &member : members) {
    hash = llvm::hash_combine(hash, member.getHash());
    size = std::min(size + member.getSize(), uint64_t(1) << 32);
  }
  node = std::make_shared<const Node>(
      Node{kind, std::move(linear), std::move(members), hash, size});
}

Formula::Formula(bool truth) {
  static const Formula yes(Kind::All, {}, {}), no(Kind::Any, {}, {});
  node = (truth ? yes : no).node;
}

Formula Formula::atLeastZero(Linear linear) {
  if (linear.isConstant())
    return Formula(linear.getConstant() >= 0);
  return {Kind::AtLeast, std::move(linear), {}};
}

/// `kind` is All or Any, of which true or false is the one that decides
/// nothing, and the other one decides all.
Formula Formula::join(Kind kind, std::vector<Formula> members) {
  std::vector<Formula> joined;
  for (Formula &member : members) {
    if (member.getKind() == kind) {
      llvm::append_range(joined, member.getMembers());
      continue;
    }
    if (member.getKind() != Kind::AtLeast && member.getMembers().empty())
      return member;
    joined.push_back(std::move(member));
  }
  if (joined.empty())
    return Formula(kind == Kind::All);
  if (joined.size() == 1)
    return joined.front();
  return {kind, {}, std::move(joined)};
}

Formula Formula::all(std::vector<Formula> members) {
  return join(Kind::All, std::move(members));
}

Formula Formula::any(std::vector<Formula> members) {
  return join(Kind::Any, std::move(members));
}

unsigned Formula::getNumUnknowns() const {
  unsigned count = 0;
  if (!getLinear().isConstant())
    count = getLinear().getTerms().back().first + 1;
  for (const Formula &member : getMembers())
    count = std::max(count, member.getNumUnknowns());
  return count;
}

void Formula::print(raw_ostream &os) const {
  if (getKind() == Kind::AtLeast) {
    os << getLinear() << " >= 0";
    return;
  }
  if (getMembers().empty()) {
    os << (isTrue() ? "true" : "false");
    return;
  }
  os << "(";
  llvm::interleave(
      getMembers(), os, [&](const Formula &member) { member.print(os); },
      getKind() == Kind::All ? " and " : " or ");
  os << ")";
}

raw_ostream &burst::proof::operator<<(raw_ostream &os, const Formula &formula) {
  formula.print(os);
  return os;
}

namespace burst::proof {

bool operator==(const Formula &a, const Formula &b) {
  return a.node == b.node ||
         (a.getHash() == b.getHash() && a.getKind() == b.getKind() &&
          a.getLinear() == b.getLinear() && a.getMembers() == b.getMembers());
}

Formula operator!(const Formula &formula) {
  if (formula.getKind() == Formula::Kind::AtLeast)
    return Formula::atLeastZero(-formula.getLinear() - Linear(1));
  std::vector<Formula> members;
  members.reserve(formula.getMembers().size());
  for (const Formula &member : formula.getMembers())
    members.push_back(!member);
  return formula.getKind() == Formula::Kind::All
             ? Formula::any(std::move(members))
             : Formula::all(std::move(members));
}

} // namespace burst::proof

Formula burst::proof::atLeast(const Linear &a, const Linear &b) {
  return Formula::atLeastZero(a - b);
}

Formula burst::proof::below(const Linear &a, const Linear &b) {
  return Formula::atLeastZero(b - a - Linear(1));
}

Formula burst::proof::equal(const Linear &a, const Linear &b) {
  return atLeast(a, b) && atLeast(b, a);
}

Formula burst::proof::unequal(const Linear &a, const Linear &b) {
  return below(a, b) || below(b, a);
}

Formula burst::proof::implies(const Formula &a, const Formula &b) {
  return !a || b;
}
