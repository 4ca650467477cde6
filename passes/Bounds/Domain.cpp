//===- Domain.cpp ---------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Bounds/Domain.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace burst::bounds {

namespace {

constexpr auto num = [](int64_t number) { return Emitter::constant(number); };

int sign(Span x) { return x.min() >= 0 ? 1 : x.max() <= 0 ? -1 : 0; }

bool sumFits(int64_t a, int64_t b) {
  int64_t sum;
  return !llvm::AddOverflow(a, b, sum);
}

} // namespace

Span Domain::full(unsigned width) {
  return {num(llvm::minIntN(width)), num(llvm::maxIntN(width))};
}

Span Domain::number(int64_t number) { return {num(number), num(number)}; }

//===----------------------------------------------------------------------===//
// Guards
//===----------------------------------------------------------------------===//

Span Domain::guard(Bool fits, Span x, unsigned width) {
  int64_t min = llvm::minIntN(width), max = llvm::maxIntN(width);
  fits = e.both(fits, e.both(e.compare(Predicate::sge, x.lo, num(min)),
                             e.compare(Predicate::sle, x.hi, num(max))));
  return {Emitter::assume(e.select(fits, x.lo, num(min)), min, max),
          Emitter::assume(e.select(fits, x.hi, num(max)), min, max)};
}

Bool Domain::didNotWrap(bool isSum, Scalar a, Scalar b, Scalar result) {
  Wide least = isSum ? Wide(a.min) + b.min : Wide(a.min) - b.max;
  Wide most = isSum ? Wide(a.max) + b.max : Wide(a.max) - b.min;
  if (least >= kMin && most <= kMax)
    return Emitter::known(true);
  // A sum wraps if its sign is that of neither operand; a difference if the
  // signs of its operands differ and its sign is not that of the first one.
  Scalar other = isSum ? e.bitXor(b, result) : e.bitXor(a, b);
  return e.negate(e.isNegative(e.bitAnd(e.bitXor(a, result), other)));
}

Bool Domain::productFits(Span x, Span y) {
  auto magnitude = [](Span s) {
    return std::max(-Wide(s.min()), Wide(s.max()));
  };
  Wide a = std::max(magnitude(x), Wide(1)), b = std::max(magnitude(y), Wide(1));
  if (a * b <= kMax)
    return Emitter::known(true);
  auto within = [&](Span s, Wide limit) {
    int64_t most = static_cast<int64_t>(limit);
    return e.both(e.compare(Predicate::sge, s.lo, num(-most)),
                  e.compare(Predicate::sle, s.hi, num(most)));
  };
  constexpr int64_t kRoot = 3037000499; // its square is just below 2^63
  if (b <= kRoot)
    return within(x, kMax / b);
  if (a <= kRoot)
    return within(y, kMax / a);
  return e.both(within(x, kRoot), within(y, kRoot));
}

Span Domain::corners(Step step, Span x, int inX, Span y, int inY) {
  // The least value is at the low end of an operand in which the step rises, at
  // the high end of one in which it falls, at either if that varies.
  auto ends = [](Span s, int direction) -> SmallVector<Scalar, 2> {
    if (direction == 0)
      return {s.lo, s.hi};
    return {direction < 0 ? s.lo : s.hi};
  };
  auto extreme = [&](Step pick, int towards) {
    SmallVector<Scalar, 2> xs = ends(x, inX * towards),
                           ys = ends(y, inY * towards);
    Scalar result = (e.*step)(xs.front(), ys.front());
    for (Scalar atX : xs)
      for (Scalar atY : ys)
        result = (e.*pick)(result, (e.*step)(atX, atY));
    return result;
  };
  return {extreme(&Emitter::min, -1), extreme(&Emitter::max, 1)};
}

Span Domain::onUnsigned(Span x, Span y, unsigned width, Binary op) {
  if (x.min() >= 0 && y.min() >= 0)
    return op(x, y, width);
  if (width < 64)
    return truncate(op(zeroExtend(x, width), zeroExtend(y, width), 64), width);
  // What has the highest bit set does not fit: give up if there may be any.
  Bool fits = e.negate(e.either(e.isNegative(x.lo), e.isNegative(y.lo)));
  auto raised = [&](Span s) {
    return Span{e.max(s.lo, num(0)), e.max(s.hi, num(0))};
  };
  return guard(fits, op(raised(x), raised(y), width), width);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Span Domain::add(Span x, Span y, unsigned width) {
  Span sum{e.add(x.lo, y.lo), e.add(x.hi, y.hi)};
  Bool fits = e.both(didNotWrap(true, x.lo, y.lo, sum.lo),
                     didNotWrap(true, x.hi, y.hi, sum.hi));
  return guard(fits, sum, width);
}

Span Domain::sub(Span x, Span y, unsigned width) {
  Span difference{e.sub(x.lo, y.hi), e.sub(x.hi, y.lo)};
  Bool fits = e.both(didNotWrap(false, x.lo, y.hi, difference.lo),
                     didNotWrap(false, x.hi, y.lo, difference.hi));
  return guard(fits, difference, width);
}

Span Domain::mul(Span x, Span y, unsigned width) {
  Bool fits = productFits(x, y);
  return guard(fits, corners(&Emitter::mul, x, sign(y), y, sign(x)), width);
}

Span Domain::div(Rounding rounding, Span x, Span y, unsigned width) {
  int64_t min = llvm::minIntN(width), max = llvm::maxIntN(width);
  Bool positive = e.compare(Predicate::sgt, y.lo, num(0));
  Bool fits = y.isPoint() ? e.compare(Predicate::ne, y.lo, num(0))
                          : e.either(positive, e.isNegative(y.hi));
  if (x.min() <= min && y.min() <= -1 && y.max() >= -1)
    fits = e.both(
        fits, e.either(e.compare(Predicate::sgt, x.lo, num(min)), positive));
  // The division is executed even if its result is not used, or the rectangle
  // is empty and the ends of spans are in the wrong order: it must not trap.
  auto inOrder = [&](Span s) { return e.compare(Predicate::sle, s.lo, s.hi); };
  if (y.min() < 0)
    fits = e.both(fits, e.both(inOrder(x), inOrder(y)));
  auto safe = [&](Scalar divisor) {
    return y.min() >= 0 ? e.max(divisor, num(1))
                        : e.select(fits, divisor, num(1));
  };
  Step step = rounding == Rounding::Zero   ? &Emitter::div
              : rounding == Rounding::Down ? &Emitter::floorDiv
                                           : &Emitter::ceilDiv;
  // Rounded or not, a quotient rises in the dividend if the divisor is
  // positive, and falls in the divisor if the dividend is.
  Span quotient = corners(step, x, sign(y), {safe(y.lo), safe(y.hi)}, -sign(x));
  quotient.lo = Emitter::assume(quotient.lo, min, max);
  quotient.hi = Emitter::assume(quotient.hi, min, max);
  return guard(fits, quotient, width);
}

Span Domain::divUnsigned(Rounding rounding, Span x, Span y, unsigned width) {
  return onUnsigned(x, y, width, [&](Span x, Span y, unsigned width) {
    return div(rounding, x, y, width);
  });
}

Span Domain::rem(Span x, Span y, unsigned width) {
  // Smaller than the divisor, not larger than the dividend, with the sign of
  // it.
  Scalar most = e.max(e.sub(y.hi, num(1)), e.bitXor(y.lo, num(-1)));
  most = e.max(most, num(0));
  Span result{e.max(e.min(x.lo, num(0)), e.sub(num(0), most)),
              e.min(e.max(x.hi, num(0)), most)};
  if (!y.isPoint())
    return result;
  // Within one quotient the remainder rises with the dividend.
  Bool positive = e.compare(Predicate::sgt, y.lo, num(0));
  Scalar divisor = Emitter::assume(e.select(positive, y.lo, num(1)), 1, kMax);
  Bool same = e.both(positive, e.compare(Predicate::eq, e.div(x.lo, divisor),
                                         e.div(x.hi, divisor)));
  return {e.select(same, e.rem(x.lo, divisor), result.lo),
          e.select(same, e.rem(x.hi, divisor), result.hi)};
}

Span Domain::remUnsigned(Span x, Span y, unsigned width) {
  return onUnsigned(x, y, width, [&](Span x, Span y, unsigned width) {
    return rem(x, y, width);
  });
}

Span Domain::min(Span x, Span y) {
  return {e.min(x.lo, y.lo), e.min(x.hi, y.hi)};
}

Span Domain::max(Span x, Span y) {
  return {e.max(x.lo, y.lo), e.max(x.hi, y.hi)};
}

Span Domain::minUnsigned(Span x, Span y, unsigned width) {
  if (x.min() >= 0 && y.min() >= 0)
    return min(x, y);
  return fromSignedOrder(min(toSignedOrder(x), toSignedOrder(y)), width);
}

Span Domain::maxUnsigned(Span x, Span y, unsigned width) {
  if (x.min() >= 0 && y.min() >= 0)
    return max(x, y);
  return fromSignedOrder(max(toSignedOrder(x), toSignedOrder(y)), width);
}

Span Domain::abs(Span x, unsigned width) {
  if (x.min() >= 0)
    return x;
  // The least number has no opposite.
  Bool fits = e.compare(Predicate::sgt, x.lo, num(llvm::minIntN(width)));
  Scalar low = e.sub(num(0), x.hi), high = e.sub(num(0), x.lo);
  return guard(fits, {e.max(e.max(x.lo, low), num(0)), e.max(x.hi, high)},
               width);
}

Span Domain::select(Kleene condition, Span x, Span y) {
  auto choose = [&](Scalar x, Scalar y, Scalar joined) {
    if (condition.may == condition.must)
      return e.select(condition.may, x, y);
    return e.select(condition.must, x, e.select(condition.may, joined, y));
  };
  return {choose(x.lo, y.lo, e.min(x.lo, y.lo)),
          choose(x.hi, y.hi, e.max(x.hi, y.hi))};
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

Span Domain::complement(Span x) {
  return {e.bitXor(x.hi, num(-1)), e.bitXor(x.lo, num(-1))};
}

Span Domain::lowBits(Span x, int64_t ones) {
  if (x.min() >= 0 && x.max() <= ones)
    return x;
  Scalar bits = num(llvm::popcount(static_cast<uint64_t>(ones)));
  Bool same = e.compare(Predicate::eq, e.shiftRightSigned(x.lo, bits),
                        e.shiftRightSigned(x.hi, bits));
  return {e.select(same, e.bitAnd(x.lo, num(ones)), num(0)),
          e.select(same, e.bitAnd(x.hi, num(ones)), num(ones))};
}

Span Domain::bitAnd(Span x, Span y) {
  if (x.isPoint() && y.isPoint()) {
    Scalar bits = e.bitAnd(x.lo, y.lo);
    return {bits, bits};
  }
  if (x.isConstant())
    std::swap(x, y);
  if (y.isConstant()) {
    int64_t mask = y.lo.min;
    if (mask > 0 && llvm::isMask_64(mask))
      return lowBits(x, mask);
    if (mask < 0 &&
        llvm::isPowerOf2_64(-static_cast<uint64_t>(mask))) // rounds down
      return {e.bitAnd(x.lo, num(mask)), e.bitAnd(x.hi, num(mask))};
  }
  if (x.min() >= 0 && y.min() >= 0)
    return {num(0), e.min(x.hi, y.hi)};
  if (x.min() >= 0 || y.min() >= 0)
    return {num(0), x.min() >= 0 ? x.hi : y.hi};
  Scalar lo = num(~onesCovering({x.min(), x.max(), y.min(), y.max()}));
  if (x.max() >= 0 || y.max() >= 0)
    return {lo, e.max(x.hi, y.hi)};
  // Both negative: x & y = x + y - (x | y), and x | y <= -1.
  if (sumFits(x.min(), y.min()))
    lo = e.max(lo, e.add(e.add(x.lo, y.lo), num(1)));
  return {lo, e.min(x.hi, y.hi)};
}

Span Domain::bitOr(Span x, Span y) {
  return complement(bitAnd(complement(x), complement(y)));
}

Span Domain::bitXor(Span x, Span y) {
  if (x.isPoint() && y.isPoint()) {
    Scalar bits = e.bitXor(x.lo, y.lo);
    return {bits, bits};
  }
  int64_t ones = onesCovering({x.min(), x.max(), y.min(), y.max()});
  bool xNegative = x.max() < 0, yNegative = y.max() < 0;
  if ((x.min() < 0 && !xNegative) || (y.min() < 0 && !yNegative))
    return {num(~ones), num(ones)};
  // Complements come out; what is left is not negative and x ^ y <= x + y.
  x = xNegative ? complement(x) : x;
  y = yNegative ? complement(y) : y;
  Scalar hi = num(ones);
  if (sumFits(x.max(), y.max()))
    hi = e.min(hi, e.add(x.hi, y.hi));
  Span result = y.lo == num(0) && y.isPoint()   ? x
                : x.lo == num(0) && x.isPoint() ? y
                                                : Span{num(0), hi};
  return xNegative != yNegative ? complement(result) : result;
}

Span Domain::clampAmount(Span amount, unsigned width) {
  auto clamp = [&](Scalar s) {
    return e.max(e.min(s, num(width - 1)), num(0));
  };
  return {clamp(amount.lo), clamp(amount.hi)};
}

Span Domain::shiftLeft(Span x, Span amount, unsigned width) {
  amount = clampAmount(amount, width);
  // 2^63 is not a number of 64 bits: no span for what a shift by 63 yields.
  Bool fits = e.compare(Predicate::sle, amount.hi, num(62));
  auto power = [&](Scalar s) { return e.shiftLeft(num(1), e.min(s, num(62))); };
  return guard(fits, mul(x, {power(amount.lo), power(amount.hi)}, width),
               width);
}

Span Domain::shiftRightSigned(Span x, Span amount, unsigned width) {
  return corners(&Emitter::shiftRightSigned, x, 1, clampAmount(amount, width),
                 -sign(x));
}

Span Domain::shiftRightUnsigned(Span x, Span amount, unsigned width) {
  amount = clampAmount(amount, width);
  if (width < 64 || x.min() >= 0 || amount.min() == 0)
    return onUnsigned(x, amount, width,
                      [&](Span x, Span amount, unsigned width) {
                        return shiftRightSigned(x, amount, width);
                      });
  Bool crosses = crossesZero(x);
  return {e.select(crosses, num(0), e.shiftRightUnsigned(x.lo, amount.hi)),
          e.select(crosses, e.shiftRightUnsigned(num(-1), amount.lo),
                   e.shiftRightUnsigned(x.hi, amount.lo))};
}

//===----------------------------------------------------------------------===//
// Widths
//===----------------------------------------------------------------------===//

Span Domain::signExtend(Kleene x) {
  return {e.select(x.may, num(-1), num(0)), e.select(x.must, num(-1), num(0))};
}

Span Domain::zeroExtend(Kleene x) {
  return {e.select(x.must, num(1), num(0)), e.select(x.may, num(1), num(0))};
}

Span Domain::zeroExtend(Span x, unsigned width) {
  if (x.min() >= 0)
    return x;
  auto ones = static_cast<int64_t>(llvm::maskTrailingOnes<uint64_t>(width));
  if (x.max() < 0)
    return {e.sub(x.lo, num(~ones)), e.sub(x.hi, num(~ones))};
  Bool crosses = crossesZero(x);
  return {e.select(crosses, num(0), e.bitAnd(x.lo, num(ones))),
          e.select(crosses, num(ones), e.bitAnd(x.hi, num(ones)))};
}

Span Domain::truncate(Span x, unsigned width) {
  int64_t min = llvm::minIntN(width), max = llvm::maxIntN(width);
  if (x.min() >= min && x.max() <= max)
    return x;
  // The result rises with x as long as x stays in one period of 2^width.
  // Periods begin at half a period: round to the nearest, without overflow.
  auto period = [&](Scalar s) {
    Scalar halves = e.shiftRightSigned(s, num(width - 1));
    return e.shiftRightSigned(e.add(halves, num(1)), num(1));
  };
  auto low = [&](Scalar s) {
    Scalar left = e.shiftLeft(s, num(64 - width));
    return e.shiftRightSigned(left, num(64 - width));
  };
  Bool same = e.compare(Predicate::eq, period(x.lo), period(x.hi));
  return {e.select(same, low(x.lo), num(min)),
          e.select(same, low(x.hi), num(max))};
}

Kleene Domain::lowestBit(Span x) {
  Bool bit = e.compare(Predicate::ne, e.bitAnd(x.lo, num(1)), num(0));
  return {e.either(e.compare(Predicate::ne, x.lo, x.hi), bit),
          e.both(e.compare(Predicate::eq, x.lo, x.hi), bit)};
}

//===----------------------------------------------------------------------===//
// The unsigned order
//===----------------------------------------------------------------------===//

Bool Domain::crossesZero(Span x) {
  return e.both(e.isNegative(x.lo), e.negate(e.isNegative(x.hi)));
}

Span Domain::toSignedOrder(Span x) {
  // Sign extension keeps the unsigned order, so the highest of 64 bits will do,
  // whatever the width.
  if (x.min() >= 0)
    return {e.add(x.lo, num(kMin)), e.add(x.hi, num(kMin))};
  if (x.max() < 0)
    return {e.sub(x.lo, num(kMin)), e.sub(x.hi, num(kMin))};
  Bool crosses = crossesZero(x);
  return {e.select(crosses, num(kMin), e.bitXor(x.lo, num(kMin))),
          e.select(crosses, num(kMax), e.bitXor(x.hi, num(kMin)))};
}

Span Domain::fromSignedOrder(Span x, unsigned width) {
  Span all = full(width);
  Bool crosses = crossesZero(x);
  auto restore = [&](Scalar end, Scalar otherwise) {
    Scalar s = e.select(crosses, otherwise, e.bitXor(end, num(kMin)));
    return Emitter::assume(s, all.lo.min, all.hi.min);
  };
  return {restore(x.lo, all.lo), restore(x.hi, all.hi)};
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

Kleene Domain::lessSigned(Span x, Span y, bool orEqual) {
  Predicate predicate = orEqual ? Predicate::sle : Predicate::slt;
  return {e.compare(predicate, x.lo, y.hi), e.compare(predicate, x.hi, y.lo)};
}

Kleene Domain::lessUnsigned(Span x, Span y, bool orEqual) {
  if (x.min() >= 0 && y.min() >= 0)
    return lessSigned(x, y, orEqual);
  // The usual `i - j <u window`: between 0 and the window, window not 0.
  if (y.min() >= 0) {
    Kleene notNegative = lessSigned(number(0), x, true);
    Kleene notNone = lessSigned(number(0), y, orEqual);
    return conjunction(notNone,
                       conjunction(notNegative, lessSigned(x, y, orEqual)));
  }
  // A negative number is above all others.
  if (x.min() >= 0)
    return disjunction(lessSigned(y, number(0), false),
                       lessSigned(x, y, orEqual));
  return lessSigned(toSignedOrder(x), toSignedOrder(y), orEqual);
}

Kleene Domain::equal(Span x, Span y) {
  if (x.isPoint() && y.isPoint()) {
    Bool same = e.compare(Predicate::eq, x.lo, y.lo);
    return {same, same};
  }
  // All are equal if each of one side is at most each of the other and vice
  // versa.
  return {e.both(e.compare(Predicate::sle, x.lo, y.hi),
                 e.compare(Predicate::sle, y.lo, x.hi)),
          e.both(e.compare(Predicate::sle, x.hi, y.lo),
                 e.compare(Predicate::sle, y.hi, x.lo))};
}

Kleene Domain::compare(Predicate predicate, Span x, Span y) {
  switch (predicate) {
  case Predicate::eq:
    return equal(x, y);
  case Predicate::ne:
    return negation(equal(x, y));
  case Predicate::slt:
    return lessSigned(x, y, false);
  case Predicate::sle:
    return lessSigned(x, y, true);
  case Predicate::sgt:
    return lessSigned(y, x, false);
  case Predicate::sge:
    return lessSigned(y, x, true);
  case Predicate::ult:
    return lessUnsigned(x, y, false);
  case Predicate::ule:
    return lessUnsigned(x, y, true);
  case Predicate::ugt:
    return lessUnsigned(y, x, false);
  case Predicate::uge:
    return lessUnsigned(y, x, true);
  }
  return unknown();
}

Kleene Domain::compare(Predicate predicate, Kleene x, Kleene y) {
  switch (predicate) {
  case Predicate::eq:
    return equivalence(x, y);
  case Predicate::ne:
    return negation(equivalence(x, y));
  // Signed, true is -1 and below false; unsigned it is 1 and above.
  case Predicate::slt:
  case Predicate::ugt:
    return conjunction(x, negation(y));
  case Predicate::sle:
  case Predicate::uge:
    return disjunction(x, negation(y));
  case Predicate::sgt:
  case Predicate::ult:
    return conjunction(negation(x), y);
  case Predicate::sge:
  case Predicate::ule:
    return disjunction(negation(x), y);
  }
  return unknown();
}

//===----------------------------------------------------------------------===//
// Logic
//===----------------------------------------------------------------------===//

Kleene Domain::conjunction(Kleene x, Kleene y) {
  return {e.both(x.may, y.may), e.both(x.must, y.must)};
}

Kleene Domain::disjunction(Kleene x, Kleene y) {
  return {e.either(x.may, y.may), e.either(x.must, y.must)};
}

Kleene Domain::negation(Kleene x) {
  return {e.negate(x.must), e.negate(x.may)};
}

Kleene Domain::equivalence(Kleene x, Kleene y) {
  return select(x, y, negation(y));
}

Kleene Domain::select(Kleene condition, Kleene x, Kleene y) {
  // As a disjunction of conjunctions for `may`, the other way round for `must`:
  // exact also where both arms agree.
  Kleene opposite = negation(condition);
  return {e.either(e.both(condition.may, x.may), e.both(opposite.may, y.may)),
          e.both(e.either(opposite.must, x.must),
                 e.either(condition.must, y.must))};
}

} // namespace burst::bounds
