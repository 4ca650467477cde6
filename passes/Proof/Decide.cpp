//===- Decide.cpp - whether integers satisfy a formula --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Decide.h"

#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/ADT/STLExtras.h"

using namespace burst::proof;
using llvm::ArrayRef;
using llvm::DynamicAPInt;
using llvm::SmallVector;
using mlir::presburger::Fraction;
using mlir::presburger::IntegerRelation;
using mlir::presburger::PresburgerSpace;
using mlir::presburger::Simplex;

namespace {

using Disjunctions = SmallVector<const Formula *>;

class Search {
public:
  Search(unsigned numUnknowns, int64_t mostSplits)
      : numUnknowns(numUnknowns), mostSplits(mostSplits), simplex(numUnknowns) {
  }

  void run(const Formula &formula);

  Decision decision;

private:
  using Answer = Decision::Answer;

  bool add(const Linear &linear);
  bool assume(const Formula &formula, Disjunctions &open);
  Answer search(const Disjunctions &open);
  Answer split(const Formula &disjunction, const Disjunctions &open);
  std::optional<SmallVector<DynamicAPInt>> findInteger();

  unsigned numUnknowns;
  int64_t mostSplits;
  Simplex simplex;
  /// What the simplex holds, for the question of integers.
  SmallVector<SmallVector<DynamicAPInt>> rows;
};

/// What holds in a case, which ends with this.
class Case {
public:
  Case(Simplex &simplex, SmallVector<SmallVector<DynamicAPInt>> &rows)
      : simplex(simplex), rows(rows), snapshot(simplex.getSnapshot()),
        numRows(rows.size()) {}
  Case(const Case &) = delete;
  ~Case() {
    simplex.rollback(snapshot);
    rows.truncate(numRows);
  }

private:
  Simplex &simplex;
  SmallVector<SmallVector<DynamicAPInt>> &rows;
  unsigned snapshot;
  size_t numRows;
};

} // namespace

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

/// Whether a point, of fractions or integers, satisfies a formula.
template <typename Point>
static bool holds(const Formula &formula, const Point &point) {
  auto ofMember = [&](const Formula &member) { return holds(member, point); };
  switch (formula.getKind()) {
  case Formula::Kind::All:
    return llvm::all_of(formula.getMembers(), ofMember);
  case Formula::Kind::Any:
    return llvm::any_of(formula.getMembers(), ofMember);
  case Formula::Kind::AtLeast:
    break;
  }
  const Linear &linear = formula.getLinear();
  Fraction sum(linear.getConstant());
  for (auto [number, coefficient] : linear.getTerms())
    sum = sum + Fraction(coefficient) * Fraction(point[number]);
  return sum >= Fraction(0);
}

/// The smallest of the disjunctions that a point violates.
template <typename Point>
static const Formula *findViolated(ArrayRef<const Formula *> open,
                                   const Point &point) {
  const Formula *found = nullptr;
  for (const Formula *formula : open)
    if (!holds(*formula, point) &&
        (!found || formula->getMembers().size() < found->getMembers().size()))
      found = formula;
  return found;
}

std::optional<SmallVector<DynamicAPInt>> Search::findInteger() {
  IntegerRelation set(PresburgerSpace::getSetSpace(numUnknowns));
  for (ArrayRef<DynamicAPInt> row : rows)
    set.addInequality(row);
  return set.findIntegerSample();
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

/// False where no rational point is left.
bool Search::add(const Linear &linear) {
  SmallVector<DynamicAPInt> row(numUnknowns + 1, DynamicAPInt(0));
  for (auto [number, coefficient] : linear.getTerms())
    row[number] = DynamicAPInt(coefficient);
  row[numUnknowns] = DynamicAPInt(linear.getConstant());
  simplex.addInequality(row);
  rows.push_back(std::move(row));
  return !simplex.isEmpty();
}

/// Adds the inequalities of a conjunction, and its disjunctions to `open`.
bool Search::assume(const Formula &formula, Disjunctions &open) {
  switch (formula.getKind()) {
  case Formula::Kind::AtLeast:
    return add(formula.getLinear());
  case Formula::Kind::Any:
    if (formula.isFalse())
      return false;
    open.push_back(&formula);
    return true;
  case Formula::Kind::All:
    break;
  }
  return llvm::all_of(formula.getMembers(), [&](const Formula &member) {
    return assume(member, open);
  });
}

Decision::Answer Search::search(const Disjunctions &open) {
  if (auto sample = simplex.getRationalSample())
    if (const Formula *violated = findViolated(open, *sample))
      return split(*violated, open);
  std::optional<SmallVector<DynamicAPInt>> point = findInteger();
  if (!point) {
    ++decision.withoutInteger;
    return Answer::None;
  }
  if (const Formula *violated = findViolated(open, *point))
    return split(*violated, open);
  decision.model = std::move(*point);
  return Answer::Some;
}

Decision::Answer Search::split(const Formula &disjunction,
                               const Disjunctions &open) {
  if (decision.splits == mostSplits)
    return Answer::Unknown;
  ++decision.splits;
  Disjunctions others = open;
  llvm::erase(others, &disjunction);
  Case outer(simplex, rows);
  for (const Formula &member : disjunction.getMembers()) {
    Answer answer = Answer::None;
    {
      Case inner(simplex, rows);
      Disjunctions left = others;
      if (assume(member, left))
        answer = search(left);
      else
        ++decision.withoutRational;
    }
    if (answer != Answer::None)
      return answer;
    // The members behind it need to cover only what this one does not.
    if (member.getKind() == Formula::Kind::AtLeast &&
        !add((!member).getLinear())) {
      ++decision.withoutRational;
      break;
    }
  }
  return Answer::None;
}

void Search::run(const Formula &formula) {
  Disjunctions open;
  if (assume(formula, open)) {
    decision.answer = search(open);
    return;
  }
  ++decision.withoutRational;
  decision.answer = Answer::None;
}

Decision burst::proof::decide(const Formula &formula, int64_t mostSplits) {
  Search search(formula.getNumUnknowns(), mostSplits);
  search.run(formula);
  return std::move(search.decision);
}
