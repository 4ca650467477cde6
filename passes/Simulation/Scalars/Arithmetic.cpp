//===- Arithmetic.cpp - conversions of floats -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Scalars/Arithmetic.h"

using namespace mlir;
using namespace burst;

static double largestOf(const llvm::fltSemantics &semantics) {
  APFloat largest = APFloat::getLargest(semantics);
  bool losesInfo;
  largest.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
  return largest.convertToDouble();
}

double burst::roundTo(double value, Type type) {
  if (type.isF64() || !std::isfinite(value))
    return value;
  if (type.isF32())
    return static_cast<float>(value);
  const llvm::fltSemantics &semantics =
      cast<FloatType>(type).getFloatSemantics();
  // The spacing of the type's numbers around the value; it stops shrinking
  // where they become subnormal.
  int exponent = value == 0 ? 0 : std::ilogb(value);
  exponent = std::max<int>(exponent, APFloat::semanticsMinExponent(semantics));
  int digits = static_cast<int>(APFloat::semanticsPrecision(semantics)) - 1;
  double rounded = std::ldexp(
      std::nearbyint(std::ldexp(value, digits - exponent)), exponent - digits);
  double largest = largestOf(semantics);
  if (std::abs(rounded) > largest)
    return std::copysign(HUGE_VAL, value);
  return rounded;
}

int64_t burst::toBits(double value, Type type) {
  APFloat number = std::isnan(value) ? APFloat::getQNaN(APFloat::IEEEdouble())
                                     : APFloat(value);
  bool losesInfo;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 APFloat::rmNearestTiesToEven, &losesInfo);
  return number.bitcastToAPInt().getSExtValue();
}

double burst::fromBits(int64_t bits, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  APFloat number(cast<FloatType>(type).getFloatSemantics(),
                 APInt(width, low(bits, width)));
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToDouble();
}

bool burst::holds(double value, unsigned width, bool isSigned) {
  double least = isSigned ? -std::ldexp(1.0, width - 1) : 0.0;
  double limit = std::ldexp(1.0, isSigned ? width - 1 : width);
  double whole = std::trunc(value);
  return whole >= least && whole < limit;
}

int64_t burst::toInteger(double value, unsigned width, bool isSigned) {
  if (std::isnan(value))
    return 0;
  if (!holds(value, width, isSigned)) {
    uint64_t least = isSigned ? uint64_t{1} << (width - 1) : 0;
    return wrap(value < 0 ? least : ~least, width);
  }
  if (isSigned)
    return static_cast<int64_t>(value);
  return wrap(static_cast<uint64_t>(std::trunc(value)), width);
}

/// Of a number of more bits than an f64 has, the last one stands for all that
/// are cut off, so that no new tie arises.
double burst::fromInteger(uint64_t magnitude, bool isNegative, Type type) {
  int excess = 11 - llvm::countl_zero(magnitude);
  if (excess > 0 && !type.isF64()) {
    uint64_t lost = magnitude & ((uint64_t{1} << excess) - 1);
    magnitude -= lost;
    magnitude |= static_cast<uint64_t>(lost != 0) << excess;
  }
  double value = static_cast<double>(magnitude);
  if (type.getIntOrFloatBitWidth() < 32) // by way of f32
    value = static_cast<float>(value);
  return roundTo(isNegative ? -value : value, type);
}
