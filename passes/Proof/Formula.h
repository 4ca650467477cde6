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
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace burst::proof {

/// A constant and a sum of unknowns with coefficients. Coefficients are those
/// of programs, a few numbers below 2^31: sums of them do not overflow.
class Linear {
public:
  using Term = std::pair<unsigned, int64_t>; ///< unknown, coefficient

  Linear(int64_t constant = 0) : constant(constant) {}
  static Linear unknown(unsigned number);

  int64_t getConstant() const { return constant; }
  /// By unknown, in their order; none has a coefficient of 0.
  llvm::ArrayRef<Term> getTerms() const { return terms; }
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
  size_t getHash() const;

private:
  int64_t constant;
  llvm::SmallVector<Term, 4> terms;
};

/// `linear >= 0`, or that all or any of other formulas hold. Negation goes
/// inward, since integers have no numbers between -1 and 0. Copies share what
/// they are made of.
class Formula {
public:
  enum class Kind : uint8_t { AtLeast, All, Any };

  /// True or false.
  explicit Formula(bool truth);
  /// That `linear` is 0 or more.
  static Formula atLeastZero(Linear linear);
  /// Simplified: members that are true or false, and nested ones of their kind,
  /// are gone.
  static Formula all(std::vector<Formula> members);
  static Formula any(std::vector<Formula> members);

  Kind getKind() const { return node->kind; }
  bool isTrue() const { return getKind() == Kind::All && getMembers().empty(); }
  bool isFalse() const {
    return getKind() == Kind::Any && getMembers().empty();
  }
  const Linear &getLinear() const { return node->linear; }
  llvm::ArrayRef<Formula> getMembers() const { return node->members; }
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
  /// Whether they are written alike.
  friend bool operator==(const Formula &a, const Formula &b);
  size_t getHash() const { return node->hash; }
  /// How many there are in it, written out; at most 2^32.
  uint64_t getSize() const { return node->size; }

private:
  struct Node {
    Kind kind;
    Linear linear;
    std::vector<Formula> members;
    size_t hash = 0;
    uint64_t size = 1;
  };

  Formula(Kind kind, Linear linear, std::vector<Formula> members);
  static Formula join(Kind kind, std::vector<Formula> members);

  std::shared_ptr<const Node> node;
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
