//===- Float.h - The 16-bit floats ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_EMULATOR_FLOAT_H
#define BURST_TEST_EMULATOR_FLOAT_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace burst::emulator {

inline float flush(float x) {
  return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x;
}

inline float fromBF16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

inline uint16_t toBF16(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float fromF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
           fraction = bits & 1023;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0)
    return std::bit_cast<float>(
        sign | std::bit_cast<uint32_t>(float(fraction) * 0x1p-24F));
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

inline uint16_t toF16(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  auto sign = uint16_t(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return 0x7fff;
  if (bits >= 0x47800000) // 65536 and more; what rounds up to it follows below
    return uint16_t(sign | 0x7c00);
  if (bits <
      0x38800000) // subnormal: the addition rounds as the unit of 2^-24 wants
    return uint16_t(
        sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + 0.5F) -
                0x3f000000));
  return uint16_t(sign | (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13);
}

/// A double as a float that rounds further as the double would: where bits are
/// lost, the last bit is one.
inline float roundToOdd(double x) {
  auto single = float(x);
  if (double(single) == x || std::isnan(x) || std::isinf(single))
    return single;
  auto bits = std::bit_cast<uint32_t>(single);
  if (bits & 1)
    return single;
  bool above = std::fabs(double(single)) > std::fabs(x);
  return std::bit_cast<float>(above ? bits - 1 : bits + 1);
}

struct F16 {
  uint16_t bits;
  explicit operator float() const { return fromF16(bits); }
  static F16 from(double x) { return {toF16(roundToOdd(x))}; }
};

struct BF16 {
  uint16_t bits;
  explicit operator float() const { return fromBF16(bits); }
  static BF16 from(double x) { return {toBF16(roundToOdd(x))}; }
};

template <class H>
struct Two {
  H low, high;
};

} // namespace burst::emulator

#endif // BURST_TEST_EMULATOR_FLOAT_H
