//===- Emitter.cpp --------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Bounds/Emitter.h"

#include "mlir/IR/Matchers.h"

#include <algorithm>

using namespace mlir;

namespace burst::bounds {

namespace {

template <typename T>
const void *idOf() {
  return TypeID::get<T>().getAsOpaquePointer();
}

int64_t wrap(Wide number) { return static_cast<int64_t>(number); }

/// The least and greatest two's complement number with as many bits as both
/// scalars need.
std::pair<Wide, Wide> commonWidth(Scalar a, Scalar b) {
  int64_t ones = onesCovering({a.min, a.max, b.min, b.max});
  return {~ones, ones};
}

template <typename Fn>
std::pair<Wide, Wide> corners(Scalar a, Scalar b, Fn fn) {
  return std::minmax(
      {fn(a.min, b.min), fn(a.min, b.max), fn(a.max, b.min), fn(a.max, b.max)});
}

Wide floorOf(Wide a, Wide b) {
  return a / b - ((a % b != 0) & ((a < 0) != (b < 0)));
}
Wide ceilOf(Wide a, Wide b) {
  return a / b + ((a % b != 0) & ((a < 0) == (b < 0)));
}

} // namespace

int64_t onesCovering(ArrayRef<int64_t> numbers) {
  uint64_t bits = 0;
  for (int64_t number : numbers)
    bits |= static_cast<uint64_t>(number < 0 ? ~number : number);
  return static_cast<int64_t>(
      llvm::maskTrailingOnes<uint64_t>(llvm::bit_width(bits)));
}

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

Scalar Emitter::scalar(Value value, int64_t min, int64_t max) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return constant(number.getSExtValue());
  if (min == max)
    return constant(min);
  if (value.getType().isIndex())
    return {value, min, max};
  unsigned width = value.getType().getIntOrFloatBitWidth();
  Value cast = once({idOf<arith::IndexCastOp>(), 0, value, {}, {}}, [&] {
    return builder.createOrFold<arith::IndexCastOp>(loc, builder.getIndexType(),
                                                    value);
  });
  return assume({cast, min, max}, llvm::minIntN(width), llvm::maxIntN(width));
}

Bool Emitter::truth(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return known(!number.isZero());
  return {value, std::nullopt};
}

Value Emitter::materialize(Scalar scalar) {
  if (!scalar.isConstant())
    return scalar.value;
  return once({idOf<IndexType>(), scalar.min, {}, {}, {}}, [&]() -> Value {
    return arith::ConstantIndexOp::create(builder, loc, scalar.min);
  });
}

Value Emitter::materialize(Bool truth) {
  if (!truth.known)
    return truth.value;
  return once({idOf<IntegerType>(), *truth.known, {}, {}, {}}, [&]() -> Value {
    return arith::ConstantIntOp::create(builder, loc, *truth.known, 1);
  });
}

Scalar Emitter::assume(Scalar scalar, int64_t min, int64_t max) {
  int64_t lo = std::max(scalar.min, min), hi = std::min(scalar.max, max);
  if (lo > hi) // where the caller is right, this is never evaluated
    return scalar;
  return lo == hi ? constant(lo) : Scalar{scalar.value, lo, hi};
}

//===----------------------------------------------------------------------===//
// Ops, made once
//===----------------------------------------------------------------------===//

Value Emitter::once(Key key, llvm::function_ref<Value()> make) {
  if (Value value = made.lookup(key))
    return value;
  Value value = make();
  made[key] = value;
  return value;
}

template <typename Op>
Value Emitter::once(Value a, Value b, Value c) {
  return once({idOf<Op>(), 0, a, b, c}, [&] {
    if constexpr (std::is_same_v<Op, arith::SelectOp>)
      return builder.createOrFold<Op>(loc, a, b, c);
    else
      return builder.createOrFold<Op>(loc, a, b);
  });
}

Bool Emitter::once(Predicate predicate, Value a, Value b) {
  return truth(once(
      {idOf<arith::CmpIOp>(), static_cast<int64_t>(predicate), a, b, {}}, [&] {
        return builder.createOrFold<arith::CmpIOp>(loc, predicate, a, b);
      }));
}

template <typename Op>
Scalar Emitter::apply(Scalar a, Scalar b, Wide lo, Wide hi) {
  if (lo == hi)
    return constant(wrap(lo));
  if (lo < kMin || hi > kMax)
    lo = kMin, hi = kMax;
  return scalar(once<Op>(materialize(a), materialize(b)), wrap(lo), wrap(hi));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Scalar Emitter::add(Scalar a, Scalar b) {
  if (a.isConstant()) // constants to the right, where folds look for them
    std::swap(a, b);
  if (b == constant(0))
    return a;
  return apply<arith::AddIOp>(a, b, Wide(a.min) + b.min, Wide(a.max) + b.max);
}

Scalar Emitter::sub(Scalar a, Scalar b) {
  if (b == constant(0))
    return a;
  if (a == b)
    return constant(0);
  return apply<arith::SubIOp>(a, b, Wide(a.min) - b.max, Wide(a.max) - b.min);
}

Scalar Emitter::mul(Scalar a, Scalar b) {
  if (a.isConstant())
    std::swap(a, b);
  if (b == constant(1))
    return a;
  auto [lo, hi] = corners(a, b, [](Wide x, Wide y) { return x * y; });
  return apply<arith::MulIOp>(a, b, lo, hi);
}

template <typename Op>
Scalar Emitter::quotient(Scalar a, Scalar b) {
  if (b == constant(1))
    return a;
  if (b.min <= 0 && b.max >= 0) { // the sign of b is not known
    Wide magnitude = std::max(-Wide(a.min), Wide(a.max));
    return apply<Op>(a, b, -std::max(magnitude, Wide(1)),
                     std::max(magnitude, Wide(1)));
  }
  auto [lo, hi] = corners(a, b, [](Wide x, Wide y) {
    if constexpr (std::is_same_v<Op, arith::FloorDivSIOp>)
      return floorOf(x, y);
    else if constexpr (std::is_same_v<Op, arith::CeilDivSIOp>)
      return ceilOf(x, y);
    else
      return x / y;
  });
  return apply<Op>(a, b, lo, hi);
}

Scalar Emitter::div(Scalar a, Scalar b) {
  return quotient<arith::DivSIOp>(a, b);
}

Scalar Emitter::floorDiv(Scalar a, Scalar b) {
  // The plain division is cheaper.
  if (a.min >= 0 && b.min > 0)
    return div(a, b);
  return quotient<arith::FloorDivSIOp>(a, b);
}

Scalar Emitter::ceilDiv(Scalar a, Scalar b) {
  return quotient<arith::CeilDivSIOp>(a, b);
}

Scalar Emitter::rem(Scalar a, Scalar b) {
  if (a.isConstant() && b.isConstant() && b.min != 0)
    return constant(wrap(Wide(a.min) % b.min));
  if (b.min > a.max && b.min > -Wide(a.min)) // smaller than the divisor
    return a;
  Wide magnitude = std::max({Wide(b.max), -Wide(b.min), Wide(1)}) - 1;
  return apply<arith::RemSIOp>(
      a, b, std::max(std::min(a.min, int64_t(0)), wrap(-magnitude)),
      std::min(std::max(a.max, int64_t(0)), wrap(magnitude)));
}

Scalar Emitter::min(Scalar a, Scalar b) {
  if (a.max <= b.min)
    return a;
  if (b.max <= a.min || a == b)
    return b;
  return apply<arith::MinSIOp>(a, b, std::min(a.min, b.min),
                               std::min(a.max, b.max));
}

Scalar Emitter::max(Scalar a, Scalar b) {
  if (a.min >= b.max)
    return a;
  if (b.min >= a.max || a == b)
    return b;
  return apply<arith::MaxSIOp>(a, b, std::max(a.min, b.min),
                               std::max(a.max, b.max));
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

Scalar Emitter::bitAnd(Scalar a, Scalar b) {
  if (a.isConstant() && b.isConstant())
    return constant(a.min & b.min);
  auto [lo, hi] = commonWidth(a, b);
  if (a.min >= 0)
    lo = 0, hi = std::min(hi, Wide(a.max));
  if (b.min >= 0)
    lo = 0, hi = std::min(hi, Wide(b.max));
  return apply<arith::AndIOp>(a, b, lo, hi);
}

Scalar Emitter::bitOr(Scalar a, Scalar b) {
  if (a.isConstant() && b.isConstant())
    return constant(a.min | b.min);
  auto [lo, hi] = commonWidth(a, b);
  if (a.min >= 0 && b.min >= 0)
    lo = std::max(a.min, b.min);
  if (a.max < 0 || b.max < 0)
    hi = -1;
  return apply<arith::OrIOp>(a, b, lo, hi);
}

Scalar Emitter::bitXor(Scalar a, Scalar b) {
  if (a.isConstant() && b.isConstant())
    return constant(a.min ^ b.min);
  if (a.isConstant())
    std::swap(a, b);
  if (b == constant(-1))
    return apply<arith::XOrIOp>(a, b, ~a.max, ~a.min);
  auto [lo, hi] = commonWidth(a, b);
  if ((a.min >= 0 && b.min >= 0) || (a.max < 0 && b.max < 0))
    lo = 0;
  if ((a.min >= 0 && b.max < 0) || (a.max < 0 && b.min >= 0))
    hi = -1;
  return apply<arith::XOrIOp>(a, b, lo, hi);
}

Scalar Emitter::shiftLeft(Scalar a, Scalar b) {
  if (b == constant(0))
    return a;
  auto [lo, hi] = corners(a, b, [](Wide x, Wide y) {
    // Without shifting past what Wide holds.
    return y >= 0 && y < 64 ? x * (Wide(1) << y) : x * (Wide(1) << 63);
  });
  return apply<arith::ShLIOp>(a, b, lo, hi);
}

Scalar Emitter::shiftRightSigned(Scalar a, Scalar b) {
  if (b == constant(0))
    return a;
  auto [lo, hi] = corners(a, b, [](Wide x, Wide y) {
    return x >> std::clamp(y, Wide(0), Wide(63));
  });
  return apply<arith::ShRSIOp>(a, b, lo, hi);
}

Scalar Emitter::shiftRightUnsigned(Scalar a, Scalar b) {
  if (a.min >= 0)
    return shiftRightSigned(a, b);
  Wide most = std::numeric_limits<uint64_t>::max();
  if (a.isConstant() && b.isConstant())
    return constant(wrap((Wide(a.min) & most) >> b.min));
  return apply<arith::ShRUIOp>(a, b, b.min > 0 ? Wide(0) : Wide(kMin),
                               b.min > 0 ? most >> b.min : Wide(kMax));
}

//===----------------------------------------------------------------------===//
// Truth
//===----------------------------------------------------------------------===//

Scalar Emitter::select(Bool condition, Scalar a, Scalar b) {
  if (condition.known)
    return *condition.known ? a : b;
  if (a == b)
    return a;
  Value value =
      once<arith::SelectOp>(condition.value, materialize(a), materialize(b));
  return scalar(value, std::min(a.min, b.min), std::max(a.max, b.max));
}

/// What the static bounds decide.
static std::optional<bool> decide(arith::CmpIPredicate predicate, Scalar a,
                                  Scalar b) {
  using P = arith::CmpIPredicate;
  auto opposite = [](std::optional<bool> truth) {
    return truth ? std::optional<bool>(!*truth) : std::nullopt;
  };
  switch (predicate) {
  case P::slt:
    if (a.max < b.min)
      return true;
    return a.min >= b.max || a == b ? std::optional<bool>(false) : std::nullopt;
  case P::eq:
    if (a == b)
      return true;
    return a.max < b.min || b.max < a.min ? std::optional<bool>(false)
                                          : std::nullopt;
  case P::ne:
    return opposite(decide(P::eq, a, b));
  case P::sge:
    return opposite(decide(P::slt, a, b));
  case P::sgt:
    return decide(P::slt, b, a);
  case P::sle:
    return opposite(decide(P::slt, b, a));
  default:
    return std::nullopt;
  }
}

Bool Emitter::compare(Predicate predicate, Scalar a, Scalar b) {
  if (std::optional<bool> truth = decide(predicate, a, b))
    return known(*truth);
  return once(predicate, materialize(a), materialize(b));
}

Bool Emitter::both(Bool a, Bool b) {
  if (a.known)
    return *a.known ? b : a;
  if (b.known)
    return *b.known ? a : b;
  return a == b ? a : truth(once<arith::AndIOp>(a.value, b.value));
}

Bool Emitter::either(Bool a, Bool b) {
  if (a.known)
    return *a.known ? a : b;
  if (b.known)
    return *b.known ? b : a;
  return a == b ? a : truth(once<arith::OrIOp>(a.value, b.value));
}

Bool Emitter::negate(Bool a) {
  if (a.known)
    return known(!*a.known);
  // The opposite comparison, rather than one more op. The first one is dropped
  // if nothing else reads it.
  auto compare = a.value.getDefiningOp<arith::CmpIOp>();
  if (compare && compare->getBlock() == builder.getBlock())
    return once(arith::invertPredicate(compare.getPredicate()),
                compare.getLhs(), compare.getRhs());
  return truth(once<arith::XOrIOp>(a.value, materialize(known(true))));
}

} // namespace burst::bounds
