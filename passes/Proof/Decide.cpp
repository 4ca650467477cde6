//===- Decide.cpp - whether integers satisfy a formula --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Decide.h"

#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/ADT/STLExtras.h"

#include <set>

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
  Search(ArrayRef<unsigned> unknowns, int64_t mostSplits)
      : unknowns(unknowns), numColumns(unknowns.size()), mostSplits(mostSplits),
        simplex(numColumns) {}

  void run(const Formula &formula);

  Decision decision;

private:
  using Answer = Decision::Answer;

  SmallVector<DynamicAPInt> rowOf(const Linear &linear);
  bool add(const Linear &linear);
  bool addEquality(const Linear &linear);
  bool assume(const Formula &formula, Disjunctions &open);
  Answer search(const Disjunctions &open);
  Answer split(const Formula &disjunction, const Disjunctions &open);
  std::optional<SmallVector<DynamicAPInt>> findInteger();

  template <typename Point>
  bool holds(const Formula &formula, const Point &point) const;
  template <typename Point>
  const Formula *findViolated(ArrayRef<const Formula *> open,
                              const Point &point) const;
  /// Simplex has a column for each unknown that occurs, in their order.
  unsigned columnOf(unsigned unknown) const {
    return llvm::lower_bound(unknowns, unknown) - unknowns.begin();
  }

  ArrayRef<unsigned> unknowns;
  unsigned numColumns;
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
bool Search::holds(const Formula &formula, const Point &point) const {
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
    sum = sum + Fraction(coefficient) * Fraction(point[columnOf(number)]);
  return sum >= Fraction(0);
}

/// The smallest of the disjunctions that a point violates.
template <typename Point>
const Formula *Search::findViolated(ArrayRef<const Formula *> open,
                                    const Point &point) const {
  const Formula *found = nullptr;
  for (const Formula *formula : open)
    if (!holds(*formula, point) &&
        (!found || formula->getMembers().size() < found->getMembers().size()))
      found = formula;
  return found;
}

std::optional<SmallVector<DynamicAPInt>> Search::findInteger() {
  IntegerRelation set(PresburgerSpace::getSetSpace(numColumns));
  for (ArrayRef<DynamicAPInt> row : rows)
    set.addInequality(row);
  return set.findIntegerSample();
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

SmallVector<DynamicAPInt> Search::rowOf(const Linear &linear) {
  SmallVector<DynamicAPInt> row(numColumns + 1, DynamicAPInt(0));
  for (auto [number, coefficient] : linear.getTerms())
    row[columnOf(number)] = DynamicAPInt(coefficient);
  row[numColumns] = DynamicAPInt(linear.getConstant());
  return row;
}

/// False where no rational point is left.
bool Search::add(const Linear &linear) {
  rows.push_back(rowOf(linear));
  simplex.addInequality(rows.back());
  return !simplex.isEmpty();
}

bool Search::addEquality(const Linear &linear) {
  rows.push_back(rowOf(linear));
  simplex.addEquality(rows.back());
  rows.push_back(rowOf(-linear));
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
  ArrayRef<Formula> members = formula.getMembers();
  while (!members.empty()) {
    const Formula &first = members.front();
    // An equality is two inequalities, one behind the other.
    if (members.size() > 1 && first.getKind() == Formula::Kind::AtLeast &&
        members[1].getKind() == Formula::Kind::AtLeast &&
        members[1].getLinear() == -first.getLinear()) {
      if (!addEquality(first.getLinear()))
        return false;
      members = members.drop_front(2);
      continue;
    }
    if (!assume(first, open))
      return false;
    members = members.drop_front();
  }
  return true;
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
  decision.model.assign(unknowns.empty() ? 0 : unknowns.back() + 1,
                        DynamicAPInt(0));
  for (auto [unknown, value] : llvm::zip_equal(unknowns, *point))
    decision.model[unknown] = value;
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

static void collect(const Formula &formula, std::set<unsigned> &unknowns) {
  for (auto [number, coefficient] : formula.getLinear().getTerms())
    unknowns.insert(number);
  for (const Formula &member : formula.getMembers())
    collect(member, unknowns);
}

Decision burst::proof::decide(const Formula &formula, int64_t mostSplits) {
  std::set<unsigned> found;
  collect(formula, found);
  SmallVector<unsigned> unknowns(found.begin(), found.end());
  Search search(unknowns, mostSplits);
  search.run(formula);
  return std::move(search.decision);
}

bool Decider::isImpossible(const Formula &formula, int64_t mostSplits) {
  auto [found, isNew] = known.try_emplace(formula, false);
  if (isNew)
    found->second =
        decide(formula, mostSplits).answer == Decision::Answer::None;
  return found->second;
}
