//===- Index.h - arithmetic of ranks and turns ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program computes with ranks, turns and owners, for a number of ranks P
// that is not known: linear forms over atoms, whose coefficients are
// polynomials in P, and remainders by P. A remainder drops multiples of P, so
// products with P never reach a formula, and a remainder inside of another one
// drops too.
//
// Where a ring turns inside of another one, P is the number of ranks of an
// inner ring and N that of the rings: an owner is P g + x, two digits by which
// it is compared, and remainders are by P, by N, and so of P N.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_PROOF_INDEX_H
#define BURST_PASSES_PROOF_INDEX_H

#include "passes/Proof/Formula.h"

#include "llvm/ADT/SmallVector.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace burst::proof {

/// A polynomial in P with integer coefficients.
class Polynomial {
public:
  Polynomial(int64_t constant = 0);
  static Polynomial numRanks(); ///< P

  bool isZero() const { return coefficients.empty(); }
  bool isConstant() const { return coefficients.size() <= 1; }
  /// Of a power of P.
  int64_t operator[](size_t power) const {
    return power < coefficients.size() ? coefficients[power] : 0;
  }
  size_t size() const { return coefficients.size(); }

  Polynomial &operator+=(const Polynomial &other);
  friend Polynomial operator*(const Polynomial &a, const Polynomial &b);
  friend bool operator==(const Polynomial &a, const Polynomial &b) {
    return a.coefficients == b.coefficients;
  }
  friend bool operator<(const Polynomial &a, const Polynomial &b) {
    return a.coefficients < b.coefficients;
  }

private:
  void normalize();

  llvm::SmallVector<int64_t, 2> coefficients; ///< by power, the last one not 0
};

/// An atom is an unknown of formulas; unknown 0 is P itself.
using Atom = unsigned;

/// A linear form over atoms.
class Index {
public:
  Index(int64_t constant = 0) : constant(constant) {}
  Index(Polynomial constant) : constant(std::move(constant)) {}
  static Index of(Atom atom);
  static Index numRanks() { return Polynomial::numRanks(); }

  const Polynomial &getConstant() const { return constant; }
  const std::map<Atom, Polynomial> &getTerms() const { return terms; }
  /// The number, where it is one for all P.
  std::optional<int64_t> getNumber() const;
  /// The atom, where it is one alone.
  std::optional<Atom> getAtom() const;

  Index &operator+=(const Index &other);
  friend Index operator+(Index a, const Index &b) { return a += b; }
  friend Index operator-(const Index &a, const Index &b);
  friend Index operator*(const Index &a, const Polynomial &b);
  friend bool operator==(const Index &a, const Index &b) {
    return a.constant == b.constant && a.terms == b.terms;
  }
  friend bool operator<(const Index &a, const Index &b) {
    return std::tie(a.constant, a.terms) < std::tie(b.constant, b.terms);
  }

private:
  Polynomial constant;
  std::map<Atom, Polynomial> terms;
};

/// What a remainder is by: the ranks of a ring, P, or the rings, N.
enum class Modulus : uint8_t { Ranks, Rings };

/// A remainder by a modulus, and a form without multiples of it and remainders
/// that it is the remainder of.
struct Remainder {
  Index value, of;
};

/// base * high + low, where 0 <= low < base.
struct Digits {
  Index high, low;
};

/// The atoms of a proof, and what is known of them.
class Arithmetic {
public:
  Arithmetic();

  /// N, from 2 on; in its first use it begins to be there.
  Index numRings();
  Index numberOf(Modulus modulus) {
    return modulus == Modulus::Ranks ? Index::numRanks() : numRings();
  }
  /// A number from 0 to below `turns` times P, or N.
  Atom addAtom(std::string name, int64_t turns = 1,
               Modulus modulus = Modulus::Ranks);
  /// A number of any size.
  Atom addOpenAtom(std::string name) {
    return makeAtom(std::move(name), 0, Modulus::Ranks);
  }
  void addFact(Atom atom, Formula fact);
  /// Of two atoms, for formulas that are about both.
  void addFact(Atom atom, Atom other, Formula fact) {
    atoms[atom].others.emplace_back(other, std::move(fact));
  }
  const std::string &nameOf(Atom atom) const { return atoms[atom].name; }
  unsigned getNumAtoms() const { return atoms.size(); }

  /// The product, of which one factor is a polynomial in P.
  static std::optional<Index> multiply(const Index &a, const Index &b);
  /// x mod P or N, with the sign of that; none where an atom of x may have any
  /// size or where x might overflow a machine word.
  std::optional<Remainder> remainder(const Index &x,
                                     Modulus modulus = Modulus::Ranks);
  /// The same modulo P or N, without multiples of it and remainders in it.
  Index reduce(const Index &x, Modulus modulus = Modulus::Ranks) const;
  /// x by P + `past`; none where it does not fall apart so.
  std::optional<Digits> digits(const Index &x, int64_t past = 0);
  /// a where the condition holds, else b; none where one of them is not linear.
  std::optional<Index> select(const Formula &condition, const Index &a,
                              const Index &b);

  /// That x is 0 or more, or is 0; none where x is not linear, nor two digits.
  std::optional<Formula> isAtLeastZero(const Index &x);
  std::optional<Formula> isZero(const Index &x);

  /// Whether an atom is a number from 0 on, below a multiple of its modulus.
  bool isBounded(Atom atom) const { return atoms[atom].turns > 0; }
  /// Of a bounded atom, or of N.
  Modulus modulusOf(Atom atom) const { return atoms[atom].modulus; }
  bool isNumRings(Atom atom) const { return ringsAtom == atom; }
  /// As a form for formulas; none where P is a factor of an atom or of itself,
  /// or where a coefficient is so large that machine words might overflow.
  static std::optional<Linear> linear(const Index &x);
  /// What is known of the atoms of a formula, of the atoms of that, and so on.
  Formula factsOf(const Formula &formula) const;

private:
  struct Known {
    std::string name;
    int64_t turns = 0; ///< below so many times the modulus; 0: of any size
    Modulus modulus = Modulus::Ranks;
    Formula facts{true};
    std::vector<std::pair<Atom, Formula>> others = {}; ///< of it and of others
    std::optional<Index> remainderOf;
  };
  /// base * high + low of linear forms, where -base < low < base.
  struct Signed {
    Linear high, low;
  };

  Atom makeAtom(std::string name, int64_t turns, Modulus modulus);
  Atom atomOf(Modulus modulus) const;
  bool isBetween(const Linear &x, const Linear &above, const Linear &end);
  bool isLowDigit(const Index &low, int64_t past, bool isSigned);
  bool isOwnRemainder(const Index &low, Modulus modulus);
  std::optional<Index> makeRemainder(const Index &low, Modulus modulus);
  std::optional<Signed> signedDigits(const Index &x);
  std::optional<Index> selectLinear(const Formula &condition, const Index &a,
                                    const Index &b);

  std::vector<Known> atoms;
  std::optional<Atom> ringsAtom;
  /// By what they are remainders of.
  std::map<std::pair<Modulus, Index>, Index> remainders;
  /// Of a low digit and its base, whether it is one, with or without a sign.
  std::map<std::tuple<Index, int64_t, bool>, bool> lowDigits;
};

} // namespace burst::proof

#endif // BURST_PASSES_PROOF_INDEX_H
