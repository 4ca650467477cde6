//===- Formula.h - conditions on integers -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Quantifier-free linear integer arithmetic: what a schedule must satisfy, said
// of an arbitrary rank, turn and pair of segments. Unknowns are numbers from 0.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_PROOF_FORMULA_H
#define BURST_PASSES_PROOF_FORMULA_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <map>
#include <vector>

namespace burst::proof {

/// A constant and a sum of unknowns with coefficients. Coefficients are those
/// of programs, a few numbers below 2^31: sums of them do not overflow.
class Linear {
public:
  Linear(int64_t constant = 0) : constant(constant) {}
  static Linear unknown(unsigned number);

  int64_t getConstant() const { return constant; }
  /// By unknown; none is 0.
  const std::map<unsigned, int64_t> &getTerms() const { return terms; }
  bool isConstant() const { return terms.empty(); }

  Linear &operator+=(const Linear &other);
  Linear &operator*=(int64_t factor);
  friend Linear operator+(Linear a, const Linear &b) { return a += b; }
  friend Linear operator-(Linear a, const Linear &b) { return a += b * -1; }
  friend Linear operator*(Linear a, int64_t factor) { return a *= factor; }
  friend Linear operator-(Linear a) { return a *= -1; }
  friend bool operator==(const Linear &a, const Linear &b) {
    return a.constant == b.constant && a.terms == b.terms;
  }

private:
  int64_t constant;
  std::map<unsigned, int64_t> terms;
};

/// `linear >= 0`, or that all or any of other formulas hold. Negation goes
/// inward, since integers have no numbers between -1 and 0.
class Formula {
public:
  enum class Kind : uint8_t { AtLeast, All, Any };

  /// True or false.
  explicit Formula(bool truth) : kind(truth ? Kind::All : Kind::Any) {}
  /// That `linear` is 0 or more.
  static Formula atLeastZero(Linear linear);
  /// Simplified: members that are true or false, and nested ones of their kind,
  /// are gone.
  static Formula all(std::vector<Formula> members);
  static Formula any(std::vector<Formula> members);

  Kind getKind() const { return kind; }
  bool isTrue() const { return kind == Kind::All && members.empty(); }
  bool isFalse() const { return kind == Kind::Any && members.empty(); }
  const Linear &getLinear() const { return linear; }
  llvm::ArrayRef<Formula> getMembers() const { return members; }
  /// One more than the largest unknown.
  unsigned getNumUnknowns() const;

  void print(llvm::raw_ostream &os) const;

  friend Formula operator!(const Formula &formula);
  friend Formula operator&&(Formula a, Formula b) {
    return all({std::move(a), std::move(b)});
  }
  friend Formula operator||(Formula a, Formula b) {
    return any({std::move(a), std::move(b)});
  }

private:
  static Formula join(Kind kind, std::vector<Formula> members);

  Kind kind;
  Linear linear;
  std::vector<Formula> members;
};

/// Of linear forms.
Formula atLeast(const Linear &a, const Linear &b);
Formula below(const Linear &a, const Linear &b);
Formula equal(const Linear &a, const Linear &b);
Formula unequal(const Linear &a, const Linear &b);
/// Of formulas.
Formula implies(const Formula &a, const Formula &b);

llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Linear &linear);
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Formula &formula);

} // namespace burst::proof

#endif // BURST_PASSES_PROOF_FORMULA_H
