//===- Conversions.cpp - cvt ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Lanewise.h"

#include <limits>

namespace burst::emulator {

namespace {

/// What cvt does, beyond its types; Instruction::value holds it.
struct Conversion {
  Type to, from;
  uint8_t toWide, fromWide; // whether the registers have 64 bits
  uint8_t ftz, saturates;
  int8_t rounding; // to an integer: -1 none, 0 rni, 1 rzi, 2 rmi, 3 rpi
};
static_assert(sizeof(Conversion) <= 8);

double roundToInteger(double x, int rounding) {
  switch (rounding) {
  case 0:
    return std::nearbyint(x);
  case 2:
    return std::floor(x);
  case 3:
    return std::ceil(x);
  default:
    return std::trunc(x);
  }
}

/// An integer of a type from the low bits of a slot.
__int128 integerOf(uint64_t bits, Type type) {
  unsigned shift = 64 - 8 * sizeOf(type);
  return isSigned(type) ? __int128(int64_t(bits << shift) >> shift)
                        : __int128(bits << shift >> shift);
}

double doubleOf(uint64_t bits, Type type) {
  switch (type) {
  case Type::F16:
    return double(fromF16(uint16_t(bits)));
  case Type::BF16:
    return double(fromBF16(uint16_t(bits)));
  case Type::F32:
    return double(std::bit_cast<float>(uint32_t(bits)));
  default:
    return std::bit_cast<double>(bits);
  }
}

uint64_t bitsOf(double x, Type type) {
  switch (type) {
  case Type::F16:
    return F16::from(x).bits;
  case Type::BF16:
    return BF16::from(x).bits;
  case Type::F32:
    return std::bit_cast<uint32_t>(float(x));
  default:
    return std::bit_cast<uint64_t>(x);
  }
}

__int128 clamp(__int128 value, Type type) {
  unsigned bits = 8 * sizeOf(type);
  __int128 most = (__int128(1) << (isSigned(type) ? bits - 1 : bits)) - 1,
           least = isSigned(type) ? -most - 1 : 0;
  return std::clamp(value, least, most);
}

uint64_t converted(uint64_t bits, const Conversion &how) {
  auto flushes = [&](double x, Type type) {
    return how.ftz && type == Type::F32 && std::fabs(x) < 0x1p-126
               ? std::copysign(0.0, x)
               : x;
  };
  if (!isFloat(how.from)) {
    __int128 value = integerOf(bits, how.from);
    if (!isFloat(how.to))
      return uint64_t(how.saturates ? clamp(value, how.to) : value);
    if (how.to == Type::F32)
      return std::bit_cast<uint32_t>(float(value));
    return bitsOf(double(value), how.to);
  }
  double x = flushes(doubleOf(bits, how.from), how.from);
  if (!isFloat(how.to)) {
    if (std::isnan(x))
      return 0;
    x = std::clamp(roundToInteger(x, how.rounding), -0x1p100, 0x1p100);
    return uint64_t(clamp(__int128(x), how.to));
  }
  if (how.rounding >= 0)
    x = roundToInteger(x, how.rounding);
  if (how.saturates)
    x = std::isnan(x) ? 0 : std::clamp(x, 0.0, 1.0);
  return bitsOf(flushes(x, how.to), how.to);
}

void convert(Warp &warp, const Instruction &i, Lanes lanes) {
  Conversion how;
  memcpy(&how, &i.value, sizeof(how));
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t bits = how.fromWide ? warp.at<uint64_t>(i.a)[lane]
                                 : warp.at<uint32_t>(i.a)[lane];
    uint64_t result = converted(bits, how);
    if (!isFloat(how.to)) // extended to the register
      result = uint64_t(integerOf(result, how.to));
    if (how.toWide)
      warp.at<uint64_t>(i.d)[lane] = result;
    else
      warp.at<uint32_t>(i.d)[lane] = uint32_t(result);
  });
}

template <class To, class From>
constexpr auto cast = [](From x) { return To(x); };

/// Two floats in one register; the first operand is the high one.
template <class H>
constexpr auto packed = [](float high, float low) {
  return Two<H>{{H::from(double(low))}, {H::from(double(high))}};
};

bool cvt(Decoder &d) {
  Instruction &i = d.instruction;
  int rounding = d.takeOneOf({"rni", "rzi", "rmi", "rpi"});
  bool nearest = d.take("rn"), ftz = d.take("ftz"), saturates = d.take("sat");
  auto to = d.takeType(), from = d.takeType();
  if (!to || !from || *to == Type::Pred || *from == Type::Pred)
    return false;
  if (*to == Type::F16x2 || *to == Type::BF16x2) {
    if (*from != Type::F32 || !nearest || saturates || d.operandCount() != 3)
      return false;
    i.d = d.destination(0, *to);
    i.a = d.source(1, Type::F32);
    i.b = d.source(2, Type::F32);
    i.run = *to == Type::F16x2 ? &binary<packed<F16>, float>
                               : &binary<packed<BF16>, float>;
    return true;
  }
  // What must be rounded says how.
  bool narrows =
      isFloat(*to) && (!isFloat(*from) || sizeOf(*to) < sizeOf(*from));
  if (d.operandCount() != 2 || narrows != nearest ||
      (isFloat(*from) && !isFloat(*to) && rounding < 0) ||
      *from == Type::F16x2 || *from == Type::BF16x2)
    return false;
  Conversion how{*to,
                 *from,
                 uint8_t(d.isWide(d.operand(0))),
                 uint8_t(sizeOf(*from) == 8 || d.isWide(d.operand(1))),
                 uint8_t(ftz),
                 uint8_t(saturates),
                 int8_t(rounding)};
  memcpy(&i.value, &how, sizeof(how));
  i.d = d.destination(d.operand(0), *to, /*wider=*/true);
  i.a = d.source(d.operand(1), *from, /*wider=*/true);
  i.run = &convert;
  // The conversions of addresses.
  bool exact = !saturates && how.toWide == (sizeOf(*to) == 8) &&
               how.fromWide == (sizeOf(*from) == 8) && sizeOf(*to) >= 4 &&
               sizeOf(*from) >= 4;
  if (exact && !isFloat(*to) && !isFloat(*from)) {
    if (sizeOf(*to) == 8 && sizeOf(*from) == 4)
      i.run = isSigned(*from) ? &unary<cast<int64_t, int32_t>, int32_t>
                              : &unary<cast<uint64_t, uint32_t>, uint32_t>;
    else if (sizeOf(*to) == 4 && sizeOf(*from) == 8)
      i.run = &unary<cast<uint32_t, uint64_t>, uint64_t>;
  }
  if (exact && *to == Type::F32 && *from == Type::S32)
    i.run = &unary<cast<float, int32_t>, int32_t>;
  if (exact && *to == Type::F32 && *from == Type::U32)
    i.run = &unary<cast<float, uint32_t>, uint32_t>;
  return true;
}

} // namespace

void addConversions(Table &table) { table["cvt"] = &cvt; }

} // namespace burst::emulator
