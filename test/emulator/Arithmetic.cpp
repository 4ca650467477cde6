//===- Arithmetic.cpp - Integer, bit, float and predicate opcodes ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Lanewise.h"

#include <fmt/format.h>

namespace burst::emulator {

namespace {

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

bool operandsOf(Decoder &d, Type type, size_t sources, Run run) {
  if (!run || d.operandCount() != sources + 1)
    return false;
  Instruction &i = d.instruction;
  i.run = run;
  i.d = d.destination(0, type);
  i.a = d.source(1, type);
  if (sources > 1)
    i.b = d.source(2, type);
  if (sources > 2)
    i.c = d.source(3, type);
  return true;
}

/// F on floats, with flushed arguments and result where .ftz says so, and on
/// the 16-bit types by way of doubles.
template <auto F>
constexpr auto flushed = [](auto... x) { return flush(F(flush(x)...)); };
template <auto F, class H>
constexpr auto onHalf =
    [](auto... x) { return H::from(F(double(float(x))...)); };
template <auto F, class H>
constexpr auto onTwo = [](auto... x) {
  return Two<H>{H::from(F(double(float(x.low))...)),
                H::from(F(double(float(x.high))...))};
};

/// An instruction of one to three arguments of the same type.
template <size_t Count, auto F, class T>
constexpr Run fixed() {
  if constexpr (Count == 1)
    return &unary<F, T>;
  else if constexpr (Count == 2)
    return &binary<F, T>;
  else
    return &ternary<F, T>;
}

template <size_t Count, auto F>
Run floatRun(Type type, bool ftz) {
  switch (type) {
  case Type::F32:
    return ftz ? fixed<Count, flushed<F>, float>() : fixed<Count, F, float>();
  case Type::F64:
    return fixed<Count, F, double>();
  case Type::F16:
    return fixed<Count, onHalf<F, F16>, F16>();
  case Type::BF16:
    return fixed<Count, onHalf<F, BF16>, BF16>();
  case Type::F16x2:
    return fixed<Count, onTwo<F, F16>, Two<F16>>();
  case Type::BF16x2:
    return fixed<Count, onTwo<F, BF16>, Two<BF16>>();
  default:
    return nullptr;
  }
}

template <size_t Count, auto F, class... Ts>
Run integerRun(Type type) {
  return forType<Ts...>(type, []<class T>() { return fixed<Count, F, T>(); });
}
template <size_t Count, auto F>
Run unsignedRun(Type type) {
  return integerRun<Count, F, uint16_t, uint32_t, uint64_t>(unsignedOf(type));
}
template <size_t Count, auto F>
Run signedRun(Type type) {
  return integerRun<Count, F, uint16_t, uint32_t, uint64_t, int16_t, int32_t,
                    int64_t>(type);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The type to compute an unsigned T in: without promotion to a signed int.
template <class T>
using Room = std::conditional_t<(sizeof(T) < 4), uint32_t, T>;

constexpr auto plus = [](auto a, auto b) { return a + b; };
constexpr auto minus = [](auto a, auto b) { return a - b; };
constexpr auto times = [](auto a, auto b) { return a * b; };
constexpr auto wrapPlus = [](auto a, auto b) {
  return decltype(a)(Room<decltype(a)>(a) + b);
};
constexpr auto wrapMinus = [](auto a, auto b) {
  return decltype(a)(Room<decltype(a)>(a) - b);
};
constexpr auto wrapTimes = [](auto a, auto b) {
  return decltype(a)(Room<decltype(a)>(a) * b);
};
constexpr auto wrapMad = [](auto a, auto b, auto c) {
  return decltype(a)(Room<decltype(a)>(a) * b + c);
};
constexpr auto fused = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto negated = [](auto a) { return -a; };
constexpr auto absolute = [](auto a) { return std::fabs(a); };
/// -0 is less than +0.
constexpr auto isLess = [](auto a, auto b) {
  if constexpr (std::is_floating_point_v<decltype(a)>)
    return a < b || (a == b && std::signbit(a) && !std::signbit(b));
  else
    return a < b;
};
constexpr auto smaller = [](auto a, auto b) {
  return a != a ? b : b != b ? a : isLess(b, a) ? b : a;
};
constexpr auto larger = [](auto a, auto b) {
  return a != a ? b : b != b ? a : isLess(a, b) ? b : a;
};
constexpr auto smallerOrNaN = [](auto a, auto b) {
  return a != a ? a : b != b ? b : isLess(b, a) ? b : a;
};
constexpr auto largerOrNaN = [](auto a, auto b) {
  return a != a ? a : b != b ? b : isLess(a, b) ? b : a;
};

/// The high half of a product.
constexpr auto timesHigh = [](auto a, auto b) {
  using T = decltype(a);
  using Wide = std::conditional_t<
      sizeof(T) == 8,
      std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
      std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  return T((Wide(a) * Wide(b)) >> (8 * sizeof(T)));
};

template <class T>
using Twice = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
constexpr auto timesWide = [](auto a, auto b) {
  using W = Twice<decltype(a)>;
  return W(W(a) * W(b));
};
constexpr auto madWide = [](auto a, auto b, auto c) {
  using W = Twice<decltype(a)>;
  return W(std::make_unsigned_t<W>(W(a) * W(b)) + std::make_unsigned_t<W>(c));
};

//===----------------------------------------------------------------------===//
// Decoders
//===----------------------------------------------------------------------===//

/// .rn is what the host does; another rounding is left over, and so unknown.
bool takeRounding(Decoder &d) {
  bool ftz = d.take("ftz");
  d.take("rn");
  return ftz;
}

template <auto OnFloats, auto OnIntegers>
bool sum(Decoder &d) {
  auto type = d.takeType();
  bool ftz = takeRounding(d);
  if (!type)
    return false;
  return operandsOf(d, *type, 2,
                    isFloat(*type) ? floatRun<2, OnFloats>(*type, ftz)
                                   : unsignedRun<2, OnIntegers>(*type));
}

Type doubled(Type type) {
  switch (type) {
  case Type::U16:
    return Type::U32;
  case Type::S16:
    return Type::S32;
  case Type::U32:
    return Type::U64;
  default:
    return Type::S64;
  }
}

/// mul.wide and mad.wide: results of twice the size.
template <bool Adds>
bool wide(Decoder &d, Type type) {
  if (sizeOf(type) == 8 || d.operandCount() != (Adds ? 4 : 3))
    return false;
  Instruction &i = d.instruction;
  i.d = d.destination(0, doubled(type));
  i.a = d.source(1, type);
  i.b = d.source(2, type);
  if (Adds) {
    i.c = d.source(3, doubled(type));
    i.run = forType<uint16_t, uint32_t, int16_t, int32_t>(
        type,
        []<class T>() -> Run { return &ternary<madWide, T, T, Twice<T>>; });
  } else {
    i.run = forType<uint16_t, uint32_t, int16_t, int32_t>(
        type, []<class T>() -> Run { return &binary<timesWide, T>; });
  }
  return i.run;
}

bool mul(Decoder &d) {
  auto type = d.takeType();
  if (!type)
    return false;
  if (isFloat(*type))
    return operandsOf(d, *type, 2, floatRun<2, times>(*type, takeRounding(d)));
  if (d.take("lo"))
    return operandsOf(d, *type, 2, unsignedRun<2, wrapTimes>(*type));
  if (d.take("hi"))
    return operandsOf(d, *type, 2, signedRun<2, timesHigh>(*type));
  return d.take("wide") && wide<false>(d, *type);
}

bool fma(Decoder &d) {
  auto type = d.takeType();
  if (!type || !isFloat(*type))
    return false;
  return operandsOf(d, *type, 3, floatRun<3, fused>(*type, takeRounding(d)));
}

bool mad(Decoder &d) {
  auto type = d.takeType();
  if (!type)
    return false;
  if (isFloat(*type))
    return operandsOf(d, *type, 3, floatRun<3, fused>(*type, takeRounding(d)));
  if (d.take("lo"))
    return operandsOf(d, *type, 3, unsignedRun<3, wrapMad>(*type));
  return d.take("wide") && wide<true>(d, *type);
}

/// Integer division, which must not divide by zero.
template <bool Remainder, class T>
void divideIntegers(Warp &warp, const Instruction &i, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    T a = get<T>(warp, i.a, lane), b = get<T>(warp, i.b, lane), result;
    if (b == 0) {
      if (!warp.machine.failed)
        warp.machine.fail(FailureKind::Arithmetic, warp, lane,
                          "a division by zero");
      return;
    }
    if (std::is_signed_v<T> &&
        b == T(-1)) // the smallest number has no opposite
      result = Remainder ? T(0) : T(0 - std::make_unsigned_t<T>(a));
    else
      result = T(Remainder ? a % b : a / b);
    warp.at<Slot<T>>(i.d)[lane] = pack<T>(result);
  });
}

template <bool Remainder>
bool divide(Decoder &d) {
  auto type = d.takeType();
  if (!type)
    return false;
  if (isFloat(*type)) {
    constexpr auto quotient = [](auto a, auto b) { return a / b; };
    bool ftz = d.take("ftz");
    if (Remainder || (*type != Type::F32 && *type != Type::F64) ||
        d.takeOneOf({"rn", "approx", "full"}) < 0)
      return false;
    return operandsOf(d, *type, 2, floatRun<2, quotient>(*type, ftz));
  }
  Run run = forType<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t>(
      *type, []<class T>() -> Run { return &divideIntegers<Remainder, T>; });
  return operandsOf(d, *type, 2, run);
}

template <auto F, auto OrNaN>
bool extremum(Decoder &d) {
  auto type = d.takeType();
  if (!type)
    return false;
  if (!isFloat(*type))
    return operandsOf(d, *type, 2, signedRun<2, F>(*type));
  bool ftz = d.take("ftz");
  return operandsOf(d, *type, 2,
                    d.take("NaN") ? floatRun<2, OrNaN>(*type, ftz)
                                  : floatRun<2, F>(*type, ftz));
}

bool copySign(Decoder &d) {
  auto type = d.takeType();
  if (!type || !isFloat(*type))
    return false;
  constexpr auto ofFirst = [](auto a, auto b) { return std::copysign(b, a); };
  return operandsOf(d, *type, 2, floatRun<2, ofFirst>(*type, false));
}

bool neg(Decoder &d) {
  auto type = d.takeType();
  if (!type)
    return false;
  constexpr auto zeroMinus = [](auto a) {
    return decltype(a)(0 - Room<decltype(a)>(a));
  };
  return operandsOf(d, *type, 1,
                    isFloat(*type) ? floatRun<1, negated>(*type, d.take("ftz"))
                                   : unsignedRun<1, zeroMinus>(*type));
}

bool abs(Decoder &d) {
  auto type = d.takeType();
  if (!type)
    return false;
  constexpr auto size = [](auto a) {
    using U = std::make_unsigned_t<decltype(a)>;
    return decltype(a)(a < 0 ? U(0 - Room<U>(U(a))) : U(a));
  };
  return operandsOf(
      d, *type, 1,
      isFloat(*type) ? floatRun<1, absolute>(*type, d.take("ftz"))
                     : integerRun<1, size, int16_t, int32_t, int64_t>(*type));
}

/// rcp, sqrt, ... of F32 and F64; with .approx, or rounded by .rn.
template <auto F, bool CanRound>
bool function(Decoder &d) {
  auto type = d.takeType();
  bool ftz = d.take("ftz");
  if (!type || (*type != Type::F32 && *type != Type::F64) ||
      !(d.take("approx") || (CanRound && d.take("rn"))))
    return false;
  return operandsOf(d, *type, 1, floatRun<1, F>(*type, ftz));
}

constexpr auto reciprocal = [](auto a) { return 1 / a; };
constexpr auto root = [](auto a) { return std::sqrt(a); };
constexpr auto inverseRoot = [](auto a) { return 1 / std::sqrt(a); };
constexpr auto exponential = [](auto a) { return std::exp2(a); };
constexpr auto logarithm = [](auto a) { return std::log2(a); };
constexpr auto sine = [](auto a) { return std::sin(a); };
constexpr auto cosine = [](auto a) { return std::cos(a); };
constexpr auto tangent = [](auto a) { return std::tanh(a); };

/// and, or, xor of integers and predicates.
template <auto F>
void onPredicates(Warp &warp, const Instruction &i, Lanes lanes) {
  Lanes result = F(warp.predicate(i.a), warp.predicate(i.b));
  Lanes &to = warp.predicate(i.d);
  to = (to & ~lanes) | (result & lanes);
}

template <auto F>
bool bitwise(Decoder &d) {
  auto type = d.takeType();
  if (!type || isFloat(*type))
    return false;
  Run run = *type == Type::Pred ? &onPredicates<F> : unsignedRun<2, F>(*type);
  return operandsOf(d, *type, 2, run);
}

constexpr auto bitAnd = [](auto a, auto b) { return decltype(a)(a & b); };
constexpr auto bitOr = [](auto a, auto b) { return decltype(a)(a | b); };
constexpr auto bitXor = [](auto a, auto b) { return decltype(a)(a ^ b); };

void notPredicate(Warp &warp, const Instruction &i, Lanes lanes) {
  Lanes result = ~warp.predicate(i.a);
  Lanes &to = warp.predicate(i.d);
  to = (to & ~lanes) | (result & lanes);
}

bool bitNot(Decoder &d) {
  auto type = d.takeType();
  if (!type || isFloat(*type))
    return false;
  constexpr auto flip = [](auto a) { return decltype(a)(~a); };
  return operandsOf(d, *type, 1,
                    *type == Type::Pred ? &notPredicate
                                        : unsignedRun<1, flip>(*type));
}

/// Shifts by more than the width give 0, or the sign.
constexpr auto shiftLeft = [](auto a, uint32_t by) {
  return decltype(a)(by >= 8 * sizeof(a) ? 0 : Room<decltype(a)>(a) << by);
};
constexpr auto shiftRight = [](auto a, uint32_t by) {
  uint32_t width = 8 * sizeof(a);
  if (by >= width)
    return decltype(a)(a < 0 ? -1 : 0);
  return decltype(a)(a >> by);
};

template <bool Left>
bool shift(Decoder &d) {
  auto type = d.takeType();
  if (!type || isFloat(*type) || d.operandCount() != 3)
    return false;
  Instruction &i = d.instruction;
  i.d = d.destination(0, *type);
  i.a = d.source(1, *type);
  i.b = d.source(2, Type::U32);
  if (Left)
    i.run = forType<uint16_t, uint32_t, uint64_t>(
        unsignedOf(*type),
        []<class T>() -> Run { return &binary<shiftLeft, T, uint32_t>; });
  else
    i.run = forType<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t>(
        *type,
        []<class T>() -> Run { return &binary<shiftRight, T, uint32_t>; });
  return i.run;
}

/// shf: a window of 32 bits on b:a.
template <bool Left, bool Clamp>
constexpr auto funnelShift = [](uint32_t a, uint32_t b, uint32_t c) {
  uint64_t both = uint64_t(b) << 32 | a;
  uint32_t by = Clamp ? std::min(c, 32U) : c & 31;
  return Left ? uint32_t((both << by) >> 32) : uint32_t(both >> by);
};

bool funnel(Decoder &d) {
  auto type = d.takeType();
  bool left = d.take("l"), clamp = d.take("clamp");
  if (type != Type::B32 || (!left && !d.take("r")) ||
      (!clamp && !d.take("wrap")))
    return false;
  using T = uint32_t;
  Run run = left ? (clamp ? &ternary<funnelShift<true, true>, T>
                          : &ternary<funnelShift<true, false>, T>)
                 : (clamp ? &ternary<funnelShift<false, true>, T>
                          : &ternary<funnelShift<false, false>, T>);
  return operandsOf(d, *type, 3, run);
}

/// bfe: of a the bits from b on, c of them; the sign is that of the last.
template <class T>
constexpr auto extracted = [](T a, uint32_t from, uint32_t count) {
  uint32_t width = 8 * sizeof(T);
  from &= 255;
  count &= 255;
  if (count == 0)
    return T(0);
  using U = std::make_unsigned_t<T>;
  bool sign = std::is_signed_v<T> &&
              (U(a) >> std::min(from + count - 1, width - 1) & 1);
  U bits = from < width ? U(a) >> from : 0;
  uint32_t has = from < width ? std::min(count, width - from) : 0;
  U mask = has >= width ? ~U(0) : (U(1) << has) - 1;
  return T((bits & mask) | (sign ? ~mask : U(0)));
};

bool bfe(Decoder &d) {
  auto type = d.takeType();
  if (!type || d.operandCount() != 4)
    return false;
  Instruction &i = d.instruction;
  i.d = d.destination(0, *type);
  i.a = d.source(1, *type);
  i.b = d.source(2, Type::U32);
  i.c = d.source(3, Type::U32);
  i.run = forType<uint32_t, uint64_t, int32_t, int64_t>(
      *type, []<class T>() -> Run {
        return &ternary<extracted<T>, T, uint32_t, uint32_t>;
      });
  return i.run;
}

/// bfi f, a, b, c, d: the bits of a into b, from bit c, d of them.
template <class T>
void insertBits(Warp &warp, const Instruction &i, Lanes lanes) {
  write<T>(warp, i.d, lanes, [&](unsigned lane) {
    T a = get<T>(warp, i.a, lane), b = get<T>(warp, i.b, lane);
    uint32_t width = 8 * sizeof(T), from = get<uint32_t>(warp, i.c, lane) & 255,
             count = get<uint32_t>(warp, i.e, lane) & 255;
    if (from >= width || count == 0)
      return b;
    T mask = (count >= width ? ~T(0) : (T(1) << count) - 1) << from;
    return T((b & ~mask) | (a << from & mask));
  });
}

bool bfi(Decoder &d) {
  auto type = d.takeType();
  if (!type || d.operandCount() != 5)
    return false;
  Instruction &i = d.instruction;
  i.d = d.destination(0, *type);
  i.a = d.source(1, *type);
  i.b = d.source(2, *type);
  i.c = d.source(3, Type::U32);
  i.e = d.source(4, Type::U32);
  i.run = forType<uint32_t, uint64_t>(
      *type, []<class T>() -> Run { return &insertBits<T>; });
  return i.run;
}

/// Functions of a word that give 32 bits.
template <auto F>
bool count(Decoder &d) {
  auto type = d.takeType();
  if (!type || d.operandCount() != 2)
    return false;
  Instruction &i = d.instruction;
  i.d = d.destination(0, Type::U32);
  i.a = d.source(1, *type);
  i.run = forType<uint32_t, uint64_t>(
      *type, []<class T>() -> Run { return &unary<F, T>; });
  return i.run;
}
constexpr auto population = [](auto a) { return uint32_t(std::popcount(a)); };
constexpr auto leadingZeros = [](auto a) {
  return uint32_t(std::countl_zero(a));
};

bool brev(Decoder &d) {
  auto type = d.takeType();
  if (!type)
    return false;
  constexpr auto reversed = [](auto a) {
    decltype(a) result = 0;
    for (unsigned bit = 0; bit < 8 * sizeof(a); ++bit)
      result |= (a >> bit & 1) << (8 * sizeof(a) - 1 - bit);
    return result;
  };
  return operandsOf(d, *type, 1,
                    integerRun<1, reversed, uint32_t, uint64_t>(*type));
}

/// The position of the highest bit that differs from the sign, or all ones.
constexpr auto highest = [](auto a) {
  using U = std::make_unsigned_t<decltype(a)>;
  U bits = a < 0 ? U(~a) : U(a);
  return bits ? uint32_t(8 * sizeof(a) - 1 - unsigned(std::countl_zero(bits)))
              : ~0U;
};

bool bfind(Decoder &d) {
  auto type = d.takeType();
  if (!type || d.operandCount() != 2)
    return false;
  Instruction &i = d.instruction;
  i.d = d.destination(0, Type::U32);
  i.a = d.source(1, *type);
  i.run = forType<uint32_t, uint64_t, int32_t, int64_t>(
      *type, []<class T>() -> Run { return &unary<highest, T>; });
  return i.run;
}

bool prmt(Decoder &d) {
  if (d.takeType() != Type::B32)
    return false;
  constexpr auto permuted = [](uint32_t a, uint32_t b, uint32_t selector) {
    uint64_t bytes = uint64_t(b) << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      uint32_t choice = selector >> (4 * i) & 15;
      auto byte = uint32_t(bytes >> (8 * (choice & 7)) & 255);
      if (choice & 8)
        byte = byte & 128 ? 255 : 0;
      result |= byte << (8 * i);
    }
    return result;
  };
  return operandsOf(d, Type::B32, 3, &ternary<permuted, uint32_t>);
}

void lop3(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto *a = warp.at<uint32_t>(i.a), *b = warp.at<uint32_t>(i.b),
             *c = warp.at<uint32_t>(i.c);
  auto truth = uint32_t(i.value);
  write<uint32_t>(warp, i.d, lanes, [&](unsigned l) {
    uint32_t result = 0;
    for (unsigned row = 0; row < 8; ++row)
      if (truth >> row & 1)
        result |= (row & 4 ? a[l] : ~a[l]) & (row & 2 ? b[l] : ~b[l]) &
                  (row & 1 ? c[l] : ~c[l]);
    return result;
  });
}

bool lop3Of(Decoder &d) {
  auto truth = d.constant(4);
  if (d.takeType() != Type::B32 || !truth || d.operandCount() != 5)
    return false;
  Instruction &i = d.instruction;
  i.run = &lop3;
  i.value = *truth;
  i.d = d.destination(0, Type::B32);
  i.a = d.source(1, Type::B32);
  i.b = d.source(2, Type::B32);
  i.c = d.source(3, Type::B32);
  return true;
}

//===----------------------------------------------------------------------===//
// Comparisons and selection
//===----------------------------------------------------------------------===//

enum : uint8_t { combineNone, combineAnd, combineOr, combineXor };

template <auto F, class T>
void compare(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto *a = warp.at<Slot<T>>(i.a);
  const auto *b = warp.at<Slot<T>>(i.b);
  Lanes is = 0;
  for (unsigned l = 0; l < 32; ++l)
    is |= Lanes(F(unpack<T>(a[l]), unpack<T>(b[l]))) << l;
  Lanes isNot = ~is;
  if (i.flags != combineNone) {
    Lanes with = warp.predicate(i.c) ^ Lanes(i.value);
    auto combine = [&](Lanes x) {
      return i.flags == combineAnd  ? x & with
             : i.flags == combineOr ? x | with
                                    : x ^ with;
    };
    is = combine(is);
    isNot = combine(isNot);
  }
  Lanes &to = warp.predicate(i.d);
  to = (to & ~lanes) | (is & lanes);
  if (i.e != none) {
    Lanes &second = warp.predicate(i.e);
    second = (second & ~lanes) | (isNot & lanes);
  }
}

template <auto F>
Run compareIntegers(Type type) {
  return forType<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t>(
      type, []<class T>() -> Run { return &compare<F, T>; });
}
template <auto F>
Run compareFloats(Type type, bool ftz) {
  constexpr auto flushing = [](float a, float b) {
    return F(flush(a), flush(b));
  };
  constexpr auto asFloats = [](auto a, auto b) {
    return F(float(a), float(b));
  };
  switch (type) {
  case Type::F32:
    return ftz ? &compare<flushing, float> : &compare<F, float>;
  case Type::F64:
    return &compare<F, double>;
  case Type::F16:
    return &compare<asFloats, F16>;
  case Type::BF16:
    return &compare<asFloats, BF16>;
  default:
    return nullptr;
  }
}
template <auto F>
Run comparison(Type type, bool ftz) {
  return isFloat(type) ? compareFloats<F>(type, ftz) : compareIntegers<F>(type);
}

constexpr auto eq = [](auto a, auto b) { return a == b; };
constexpr auto ne = [](auto a, auto b) { return a < b || a > b; }; // of numbers
constexpr auto differs = [](auto a, auto b) { return a != b; };
constexpr auto lt = [](auto a, auto b) { return a < b; };
constexpr auto le = [](auto a, auto b) { return a <= b; };
constexpr auto gt = [](auto a, auto b) { return a > b; };
constexpr auto ge = [](auto a, auto b) { return a >= b; };
constexpr auto equ = [](auto a, auto b) { return !(a < b || a > b); };
constexpr auto ltu = [](auto a, auto b) { return !(a >= b); };
constexpr auto leu = [](auto a, auto b) { return !(a > b); };
constexpr auto gtu = [](auto a, auto b) { return !(a <= b); };
constexpr auto geu = [](auto a, auto b) { return !(a < b); };
constexpr auto num = [](auto a, auto b) { return a == a && b == b; };
constexpr auto nan = [](auto a, auto b) { return a != a || b != b; };

bool setp(Decoder &d) {
  int which =
      d.takeOneOf({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
                   "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  int combination = d.takeOneOf({"and", "or", "xor"});
  auto type = d.takeType();
  bool ftz = d.take("ftz");
  if (!type || *type == Type::Pred ||
      d.operandCount() != (combination < 0 ? 3 : 4))
    return false;
  Instruction &i = d.instruction;
  bool onlyUnsigned = which >= 6 && which <= 9, onlyFloats = which >= 10;
  if ((onlyUnsigned && (isFloat(*type) || isSigned(*type))) ||
      (onlyFloats && !isFloat(*type)))
    return false;
  switch (which) {
  case 0:
    i.run = comparison<eq>(*type, ftz);
    break;
  case 1:
    i.run = comparison<ne>(*type, ftz);
    break;
  case 2:
  case 6:
    i.run = comparison<lt>(*type, ftz);
    break;
  case 3:
  case 7:
    i.run = comparison<le>(*type, ftz);
    break;
  case 4:
  case 8:
    i.run = comparison<gt>(*type, ftz);
    break;
  case 5:
  case 9:
    i.run = comparison<ge>(*type, ftz);
    break;
  case 10:
    i.run = compareFloats<equ>(*type, ftz);
    break;
  case 11:
    i.run = compareFloats<differs>(*type, ftz);
    break;
  case 12:
    i.run = compareFloats<ltu>(*type, ftz);
    break;
  case 13:
    i.run = compareFloats<leu>(*type, ftz);
    break;
  case 14:
    i.run = compareFloats<gtu>(*type, ftz);
    break;
  case 15:
    i.run = compareFloats<geu>(*type, ftz);
    break;
  case 16:
    i.run = compareFloats<num>(*type, ftz);
    break;
  case 17:
    i.run = compareFloats<nan>(*type, ftz);
    break;
  default:
    return false;
  }
  if (!i.run)
    return false;
  i.d = d.destination(0, Type::Pred);
  if (!d.operand(0).second.empty()) {
    ptx::Operand second;
    second.name = d.operand(0).second;
    i.e = d.destination(second, Type::Pred);
  }
  i.a = d.source(1, *type);
  i.b = d.source(2, *type);
  if (combination >= 0) {
    i.flags = uint8_t(combineAnd + combination);
    i.c = d.source(3, Type::Pred);
    i.value = d.operand(3).negated ? -1 : 0;
  }
  return true;
}

template <class T>
void select(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto *a = warp.at<Slot<T>>(i.a);
  const auto *b = warp.at<Slot<T>>(i.b);
  Lanes which = warp.predicate(i.c);
  write<T>(warp, i.d, lanes,
           [&](unsigned l) { return T(which >> l & 1 ? a[l] : b[l]); });
}

bool selp(Decoder &d) {
  auto type = d.takeType();
  if (!type || *type == Type::Pred || d.operandCount() != 4)
    return false;
  Instruction &i = d.instruction;
  i.run = sizeOf(*type) == 8 ? &select<uint64_t> : &select<uint32_t>;
  i.d = d.destination(0, *type);
  i.a = d.source(1, *type);
  i.b = d.source(2, *type);
  i.c = d.source(3, Type::Pred);
  return true;
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

constexpr auto same = [](auto a) { return a; };

void movePredicate(Warp &warp, const Instruction &i, Lanes lanes) {
  Lanes &to = warp.predicate(i.d);
  to = (to & ~lanes) | (warp.predicate(i.a) & lanes);
}

/// {a, b, ...} as one register, and back. The list holds the parts; bytes is
/// the size of one.
template <class Whole>
void joinParts(Warp &warp, const Instruction &i, Lanes lanes) {
  write<Whole>(warp, i.d, lanes, [&](unsigned lane) {
    Whole result = 0;
    for (size_t part = 0; part < i.list.size(); ++part)
      result |= Whole(warp.at<uint32_t>(i.list[part])[lane])
                << (8 * i.bytes * part);
    return result;
  });
}
template <class Whole>
void splitParts(Warp &warp, const Instruction &i, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    Whole value = warp.at<Whole>(i.a)[lane];
    for (size_t part = 0; part < i.list.size(); ++part) {
      auto bits = uint32_t(value >> (8 * i.bytes * part));
      warp.at<uint32_t>(i.list[part])[lane] =
          i.bytes == 2 ? bits & 0xffff : bits;
    }
  });
}

bool mov(Decoder &d) {
  auto type = d.takeType();
  if (!type || d.operandCount() != 2)
    return false;
  Instruction &i = d.instruction;
  unsigned size = sizeOf(*type);
  bool joins = d.operand(1).kind == ptx::Operand::Kind::List,
       splits = d.operand(0).kind == ptx::Operand::Kind::List;
  if (joins || splits) {
    size_t parts = d.operand(joins ? 1 : 0).list.size();
    if (size < 4 || (parts != 2 && parts != 4) || size / parts < 2)
      return false;
    i.bytes = uint8_t(size / parts);
    Type part = i.bytes == 4 ? Type::B32 : Type::B16;
    if (joins) {
      i.d = d.destination(0, *type);
      d.sources(1, part, parts);
      i.run = size == 8 ? &joinParts<uint64_t> : &joinParts<uint32_t>;
    } else {
      i.a = d.source(1, *type);
      d.destinations(0, part, parts);
      i.run = size == 8 ? &splitParts<uint64_t> : &splitParts<uint32_t>;
    }
    return true;
  }
  Run run = *type == Type::Pred ? &movePredicate
            : size == 8         ? &unary<same, uint64_t>
                                : &unary<same, uint32_t>;
  return size != 1 && operandsOf(d, *type, 1, run);
}

/// cvta: a generic address is that of global memory, or of a window.
void addValue(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto *a = warp.at<uint64_t>(i.a);
  write<uint64_t>(warp, i.d, lanes,
                  [&](unsigned l) { return a[l] + uint64_t(i.value); });
}

bool cvta(Decoder &d) {
  bool to = d.take("to");
  auto window = [&]() -> std::optional<uint64_t> {
    if (d.take("global"))
      return 0;
    if (d.take("shared"))
      return sharedWindow;
    if (d.take("local"))
      return localWindow;
    if (d.take("param"))
      return paramWindow;
    return std::nullopt;
  }();
  auto type = d.takeType();
  if (!window || type != Type::U64)
    return false;
  d.instruction.value = int64_t(to ? 0 - *window : *window);
  return operandsOf(d, Type::U64, 1, &addValue);
}

} // namespace

void addArithmetic(Table &table) {
  table["add"] = &sum<plus, wrapPlus>;
  table["sub"] = &sum<minus, wrapMinus>;
  table["mul"] = &mul;
  table["fma"] = &fma;
  table["mad"] = &mad;
  table["div"] = &divide<false>;
  table["rem"] = &divide<true>;
  table["min"] = &extremum<smaller, smallerOrNaN>;
  table["max"] = &extremum<larger, largerOrNaN>;
  table["copysign"] = &copySign;
  table["neg"] = &neg;
  table["abs"] = &abs;
  table["rcp"] = &function<reciprocal, true>;
  table["sqrt"] = &function<root, true>;
  table["rsqrt"] = &function<inverseRoot, false>;
  table["ex2"] = &function<exponential, false>;
  table["lg2"] = &function<logarithm, false>;
  table["sin"] = &function<sine, false>;
  table["cos"] = &function<cosine, false>;
  table["tanh"] = &function<tangent, false>;
  table["and"] = &bitwise<bitAnd>;
  table["or"] = &bitwise<bitOr>;
  table["xor"] = &bitwise<bitXor>;
  table["not"] = &bitNot;
  table["shl"] = &shift<true>;
  table["shr"] = &shift<false>;
  table["shf"] = &funnel;
  table["bfe"] = &bfe;
  table["bfi"] = &bfi;
  table["popc"] = &count<population>;
  table["clz"] = &count<leadingZeros>;
  table["brev"] = &brev;
  table["bfind"] = &bfind;
  table["prmt"] = &prmt;
  table["lop3"] = &lop3Of;
  table["setp"] = &setp;
  table["selp"] = &selp;
  table["mov"] = &mov;
  table["cvta"] = &cvta;
}

} // namespace burst::emulator
