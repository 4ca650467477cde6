//===- Domain.h - Intervals and three-valued truth --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What each op does to what is known of its operands. Everything here is sound:
// a result covers what the op yields for every choice of values that the
// operands cover, wrapping at the width of the type included.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_PASSES_BOUNDS_DOMAIN_H
#define BURST_PASSES_BOUNDS_DOMAIN_H

#include "passes/Bounds/Emitter.h"

namespace burst::bounds {

/// The numbers lo..hi of an integer of some width, sign extended to 64 bits;
/// lo <= hi.
struct Span {
  Scalar lo, hi;

  bool isPoint() const { return lo == hi; }
  bool isConstant() const { return lo.isConstant() && isPoint(); }
  /// Bounds of all its numbers that hold whatever the scalars are.
  int64_t min() const { return std::min(lo.min, hi.min); }
  int64_t max() const { return std::max(lo.max, hi.max); }
};

/// May it be true, must it be true; `must` implies `may`.
struct Kleene {
  Bool may, must;
};

class Domain {
public:
  explicit Domain(Emitter &emitter) : e(emitter) {}

  static Span full(unsigned width);
  static Span number(int64_t number);
  static Kleene unknown() {
    return {Emitter::known(true), Emitter::known(false)};
  }
  static Kleene known(bool truth) {
    return {Emitter::known(truth), Emitter::known(truth)};
  }

  // Integers of a width of 2..64 bits, numbers and results.
  Span add(Span x, Span y, unsigned width);
  Span sub(Span x, Span y, unsigned width);
  Span mul(Span x, Span y, unsigned width);
  enum class Rounding : uint8_t { Zero, Down, Up };
  Span div(Rounding rounding, Span x, Span y, unsigned width);
  Span divUnsigned(Rounding rounding, Span x, Span y, unsigned width);
  Span rem(Span x, Span y, unsigned width);
  Span remUnsigned(Span x, Span y, unsigned width);
  Span min(Span x, Span y);
  Span max(Span x, Span y);
  Span minUnsigned(Span x, Span y, unsigned width);
  Span maxUnsigned(Span x, Span y, unsigned width);
  Span abs(Span x, unsigned width);
  Span bitAnd(Span x, Span y);
  Span bitOr(Span x, Span y);
  Span bitXor(Span x, Span y);
  Span shiftLeft(Span x, Span amount, unsigned width);
  Span shiftRightSigned(Span x, Span amount, unsigned width);
  Span shiftRightUnsigned(Span x, Span amount, unsigned width);
  Span select(Kleene condition, Span x, Span y);

  // Between widths. An i1 is 0 or -1.
  Span signExtend(Kleene x);
  Span zeroExtend(Kleene x);
  Span zeroExtend(Span x, unsigned width);
  /// Of a number that may have 64 bits: the low `width` ones, sign extended.
  Span truncate(Span x, unsigned width);
  /// The lowest bit.
  Kleene lowestBit(Span x);

  Kleene compare(mlir::arith::CmpIPredicate predicate, Span x, Span y);
  Kleene compare(mlir::arith::CmpIPredicate predicate, Kleene x, Kleene y);
  Kleene conjunction(Kleene x, Kleene y);
  Kleene disjunction(Kleene x, Kleene y);
  Kleene equivalence(Kleene x, Kleene y);
  Kleene negation(Kleene x);
  Kleene select(Kleene condition, Kleene x, Kleene y);

private:
  using Predicate = mlir::arith::CmpIPredicate;
  using Step = Scalar (Emitter::*)(Scalar, Scalar);
  using Binary = llvm::function_ref<Span(Span, Span, unsigned)>;

  /// `x` where `fits` and the type holds both ends, else all numbers of the
  /// type.
  Span guard(Bool fits, Span x, unsigned width);
  /// The span of `step` over two spans, where it is monotone in each operand.
  /// It rises with x where `inX` > 0, falls where `inX` < 0; 0: that varies.
  Span corners(Step step, Span x, int inX, Span y, int inY);
  /// That the sum (difference) `result` of `a` and `b` did not wrap at 64 bits.
  Bool didNotWrap(bool isSum, Scalar a, Scalar b, Scalar result);
  /// That no product of numbers of the spans needs more than 64 bits.
  Bool productFits(Span x, Span y);
  /// `op`, which is right for operands that are not negative, for unsigned
  /// ones.
  Span onUnsigned(Span x, Span y, unsigned width, Binary op);
  /// `x mod 2^k`, in 0..2^k-1, where `ones` = 2^k - 1.
  Span lowBits(Span x, int64_t ones);
  Span complement(Span x);
  /// A shift amount, without the ones that yield poison.
  Span clampAmount(Span amount, unsigned width);

  /// That the span has numbers on both sides of zero.
  Bool crossesZero(Span x);
  /// A map of numbers that turns the unsigned order into the signed one, and
  /// its inverse. Both are coarse where the span crosses zero.
  Span toSignedOrder(Span x);
  Span fromSignedOrder(Span x, unsigned width);

  Kleene lessSigned(Span x, Span y, bool orEqual);
  Kleene lessUnsigned(Span x, Span y, bool orEqual);
  Kleene equal(Span x, Span y);

  Emitter &e;
};

} // namespace burst::bounds

#endif // BURST_PASSES_BOUNDS_DOMAIN_H
