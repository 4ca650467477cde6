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
  result.terms[number] = 1;
  return result;
}

Linear &Linear::operator+=(const Linear &other) {
  constant += other.constant;
  for (auto [number, coefficient] : other.terms) {
    int64_t &sum = terms[number];
    sum += coefficient;
    if (sum == 0)
      terms.erase(number);
  }
  return *this;
}

Linear &Linear::operator*=(int64_t factor) {
  constant *= factor;
  if (factor == 0)
    terms.clear();
  for (auto &[number, coefficient] : terms)
    coefficient *= factor;
  return *this;
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

Formula Formula::atLeastZero(Linear linear) {
  if (linear.isConstant())
    return Formula(linear.getConstant() >= 0);
  Formula result(true);
  result.kind = Kind::AtLeast;
  result.linear = std::move(linear);
  return result;
}

/// `kind` is All or Any, of which true or false is the one that decides
/// nothing, and the other one decides all.
Formula Formula::join(Kind kind, std::vector<Formula> members) {
  Formula result(kind == Kind::All);
  for (Formula &member : members) {
    if (member.kind == kind) {
      llvm::append_range(result.members, member.members);
      continue;
    }
    if (member.kind != Kind::AtLeast && member.members.empty())
      return member;
    result.members.push_back(std::move(member));
  }
  if (result.members.size() == 1) {
    Formula only = std::move(result.members.front());
    return only;
  }
  return result;
}

Formula Formula::all(std::vector<Formula> members) {
  return join(Kind::All, std::move(members));
}

Formula Formula::any(std::vector<Formula> members) {
  return join(Kind::Any, std::move(members));
}

unsigned Formula::getNumUnknowns() const {
  unsigned count = 0;
  if (!linear.isConstant())
    count = linear.getTerms().rbegin()->first + 1;
  for (const Formula &member : members)
    count = std::max(count, member.getNumUnknowns());
  return count;
}

void Formula::print(raw_ostream &os) const {
  if (kind == Kind::AtLeast) {
    os << linear << " >= 0";
    return;
  }
  if (members.empty()) {
    os << (isTrue() ? "true" : "false");
    return;
  }
  os << "(";
  llvm::interleave(
      members, os, [&](const Formula &member) { member.print(os); },
      kind == Kind::All ? " and " : " or ");
  os << ")";
}

raw_ostream &burst::proof::operator<<(raw_ostream &os, const Formula &formula) {
  formula.print(os);
  return os;
}

namespace burst::proof {

Formula operator!(const Formula &formula) {
  if (formula.kind == Formula::Kind::AtLeast)
    return Formula::atLeastZero(-formula.linear - Linear(1));
  std::vector<Formula> members;
  members.reserve(formula.members.size());
  for (const Formula &member : formula.members)
    members.push_back(!member);
  return formula.kind == Formula::Kind::All ? Formula::any(std::move(members))
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
