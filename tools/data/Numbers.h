//===- Numbers.h - Element types and their conversions ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element types a safetensors file can hold here, and exact conversions
// between them and double. Elements are addressed by untyped pointers that
// need no alignment.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TOOLS_DATA_NUMBERS_H
#define BURST_TOOLS_DATA_NUMBERS_H

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

namespace burst::data {

static_assert(std::endian::native == std::endian::little,
              "elements are stored little endian");

enum class DType : uint8_t { F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL };

inline constexpr std::array allDTypes = {
    DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64,
    DType::I32, DType::I16, DType::I8,  DType::U8,   DType::BOOL};

/// The size of one element, in bytes.
constexpr size_t sizeOf(DType dtype) {
  constexpr size_t sizes[] = {8, 4, 2, 2, 8, 4, 2, 1, 1, 1};
  return sizes[static_cast<size_t>(dtype)];
}

/// The name as safetensors spells it.
constexpr std::string_view nameOf(DType dtype) {
  constexpr std::string_view names[] = {"F64", "F32", "F16", "BF16", "I64",
                                        "I32", "I16", "I8",  "U8",   "BOOL"};
  return names[static_cast<size_t>(dtype)];
}

constexpr std::optional<DType> dtypeNamed(std::string_view name) {
  for (DType dtype : allDTypes)
    if (nameOf(dtype) == name)
      return dtype;
  return std::nullopt;
}

constexpr bool isFloat(DType dtype) { return dtype <= DType::BF16; }

/// The largest relative error of rounding a real number to the nearest normal
/// number of this type: 2^-p for p bits of significand. Zero for integers.
constexpr double unitRoundoff(DType dtype) {
  constexpr double roundoffs[] = {0x1p-53, 0x1p-24, 0x1p-11, 0x1p-8};
  return isFloat(dtype) ? roundoffs[static_cast<size_t>(dtype)] : 0;
}

namespace detail {

/// A 16-bit binary format: one sign bit, then the exponent, then the fraction.
struct Format16 {
  int fractionBits;
  constexpr int exponentBits() const { return 15 - fractionBits; }
  constexpr int bias() const { return (1 << (exponentBits() - 1)) - 1; }
  constexpr uint64_t infinity() const {
    return ((uint64_t{1} << exponentBits()) - 1) << fractionBits;
  }
};
inline constexpr Format16 f16{10}, bf16{7};

inline double decode(Format16 format, uint16_t pattern) {
  int dropped = 52 - format.fractionBits;
  uint64_t sign = uint64_t{pattern} >> 15 << 63;
  uint64_t magnitude = pattern & 0x7fff;
  uint64_t bits;
  if (magnitude >= format.infinity()) // Infinity or NaN, the payload kept.
    bits = (uint64_t{0x7ff} << 52) | (magnitude - format.infinity()) << dropped;
  else if (magnitude >> format.fractionBits) // Normal: only the bias differs.
    bits = (magnitude << dropped) + (uint64_t(1023 - format.bias()) << 52);
  else // Subnormal: a count of the smallest steps.
    bits = std::bit_cast<uint64_t>(
        std::ldexp(double(magnitude), 1 - format.bias() - format.fractionBits));
  return std::bit_cast<double>(sign | bits);
}

/// Rounds once, from the double itself, to nearest with ties to even. Going
/// through float would round twice and break near-ties the wrong way.
inline uint16_t encode(Format16 format, double value) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint64_t sign = bits >> 63 << 15;
  uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (std::isnan(value)) { // Keeps the top of the payload, and is quiet.
    uint64_t quiet = uint64_t{1} << (format.fractionBits - 1);
    uint64_t payload = fraction >> (52 - format.fractionBits);
    return uint16_t(sign | format.infinity() | quiet | payload);
  }
  // The magnitude is significand * 2^(exponent - 52). The doubles with no
  // implicit one are far too small to reach any 16-bit format's last place.
  int exponent = int(bits >> 52 & 0x7ff) - 1023;
  uint64_t significand = fraction | uint64_t{1} << 52;
  // Below the smallest normal exponent, the last place stops shrinking. From
  // 54 on, all of the significand is less than half of the last place.
  int smallest = 1 - format.bias();
  int shift = 52 - format.fractionBits + std::max(0, smallest - exponent);
  shift = std::min(shift, 54);
  uint64_t kept = significand >> shift;
  uint64_t rest = significand - (kept << shift);
  uint64_t half = uint64_t{1} << (shift - 1);
  kept += rest > half || (rest == half && kept % 2 == 1);
  // `kept` carries the implicit one of a normal number, so adding it to the
  // exponent counted from the smallest makes that exponent field, and a carry
  // out of the fraction steps to the next binade, or on to infinity.
  uint64_t binade = uint64_t(std::max(exponent, smallest) - smallest);
  uint64_t magnitude = (binade << format.fractionBits) + kept;
  return uint16_t(sign | std::min(magnitude, format.infinity()));
}

template <typename T>
T load(const void *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void store(T value, void *to) {
  std::memcpy(to, &value, sizeof(T));
}

template <typename T>
void storeSaturated(double value, void *to) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value))
    return store<T>(0, to);
  value = std::nearbyint(value);
  // double(max) of a 64-bit type is 2^63, the first value that does not fit.
  if (value >= double(Limits::max()))
    return store(Limits::max(), to);
  if (value <= double(Limits::min()))
    return store(Limits::min(), to);
  store(T(value), to);
}

template <typename T>
bool storeIfFits(int64_t value, void *to) {
  if (int64_t(T(value)) != value)
    return false;
  store(T(value), to);
  return true;
}

} // namespace detail

/// Reads an integer or BOOL element; a BOOL is 0 or 1.
inline int64_t toInt(DType dtype, const void *from) {
  using namespace detail;
  switch (dtype) {
  case DType::I64:
    return load<int64_t>(from);
  case DType::I32:
    return load<int32_t>(from);
  case DType::I16:
    return load<int16_t>(from);
  case DType::I8:
    return load<int8_t>(from);
  case DType::U8:
    return load<uint8_t>(from);
  case DType::BOOL:
    return load<uint8_t>(from) != 0;
  case DType::F64:
  case DType::F32:
  case DType::F16:
  case DType::BF16:
    break;
  }
  assert(false && "not an integer type");
  return 0;
}

/// Writes an integer or BOOL element. Returns false, and writes nothing, when
/// the type cannot hold the value.
inline bool fromInt(DType dtype, int64_t value, void *to) {
  using namespace detail;
  switch (dtype) {
  case DType::I64:
    return storeIfFits<int64_t>(value, to);
  case DType::I32:
    return storeIfFits<int32_t>(value, to);
  case DType::I16:
    return storeIfFits<int16_t>(value, to);
  case DType::I8:
    return storeIfFits<int8_t>(value, to);
  case DType::U8:
    return storeIfFits<uint8_t>(value, to);
  case DType::BOOL:
    return (value == 0 || value == 1) && storeIfFits<uint8_t>(value, to);
  case DType::F64:
  case DType::F32:
  case DType::F16:
  case DType::BF16:
    break;
  }
  assert(false && "not an integer type");
  return false;
}

/// Reads any element. Exact, except for I64 values beyond 2^53.
inline double toDouble(DType dtype, const void *from) {
  using namespace detail;
  switch (dtype) {
  case DType::F64:
    return load<double>(from);
  case DType::F32:
    return load<float>(from);
  case DType::F16:
    return decode(f16, load<uint16_t>(from));
  case DType::BF16:
    return decode(bf16, load<uint16_t>(from));
  default:
    return double(toInt(dtype, from));
  }
}

/// Writes any element, rounded once to nearest, ties to even. Floats overflow
/// to infinity and NaN stays NaN; integers saturate and take NaN as 0; BOOL is
/// whether the value differs from 0.
inline void fromDouble(DType dtype, double value, void *to) {
  using namespace detail;
  switch (dtype) {
  case DType::F64:
    return store(value, to);
  case DType::F32:
    return store(float(value), to);
  case DType::F16:
    return store(encode(f16, value), to);
  case DType::BF16:
    return store(encode(bf16, value), to);
  case DType::I64:
    return storeSaturated<int64_t>(value, to);
  case DType::I32:
    return storeSaturated<int32_t>(value, to);
  case DType::I16:
    return storeSaturated<int16_t>(value, to);
  case DType::I8:
    return storeSaturated<int8_t>(value, to);
  case DType::U8:
    return storeSaturated<uint8_t>(value, to);
  case DType::BOOL:
    return store(uint8_t(value != 0), to);
  }
}

} // namespace burst::data

#endif // BURST_TOOLS_DATA_NUMBERS_H
