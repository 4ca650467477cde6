//===- Arithmetic.h - what ops make of numbers ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_SIMULATION_SCALARS_ARITHMETIC_H
#define BURST_PASSES_SIMULATION_SCALARS_ARITHMETIC_H

#include "passes/Simulation/Scalars/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

namespace burst {

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// The low `width` bits, sign-extended.
inline int64_t wrap(uint64_t value, unsigned width) {
  unsigned shift = 64 - width;
  return static_cast<int64_t>(value << shift) >> shift;
}

/// The low `width` bits, zero-extended.
inline uint64_t low(int64_t value, unsigned width) {
  return static_cast<uint64_t>(value) << (64 - width) >> (64 - width);
}

inline int64_t truth(bool value) { return value ? -1 : 0; }

inline int64_t floorDiv(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

inline int64_t ceilDiv(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
}

/// A division that has no result: by zero, or the least integer by -1.
inline bool isUndefined(Opcode opcode, int64_t a, int64_t b, unsigned width) {
  bool isSigned = opcode == Opcode::DivS || opcode == Opcode::CeilDivS ||
                  opcode == Opcode::FloorDivS || opcode == Opcode::RemS;
  return b == 0 ||
         (isSigned && b == -1 && a == wrap(1ULL << (width - 1), width));
}

/// What a division gives that is undefined in arith.
inline int64_t undefinedQuotient(Opcode opcode, int64_t a, int64_t b) {
  bool isRemainder = opcode == Opcode::RemS || opcode == Opcode::RemU;
  if (b == 0)
    return isRemainder ? a : 0;
  return isRemainder ? 0 : a; // the least integer, by -1
}

inline int64_t divide(Opcode opcode, int64_t a, int64_t b, unsigned width) {
  uint64_t ua = low(a, width), ub = low(b, width);
  switch (opcode) {
  case Opcode::DivS:
    return a / b;
  case Opcode::CeilDivS:
    return ceilDiv(a, b);
  case Opcode::FloorDivS:
    return floorDiv(a, b);
  case Opcode::RemS:
    return a % b;
  case Opcode::DivU:
    return wrap(ua / ub, width);
  case Opcode::CeilDivU:
    return wrap(ua / ub + (ua % ub != 0), width);
  default:
    return wrap(ua % ub, width);
  }
}

/// A shift by the width or more leaves what is left when all bits are shifted
/// out: zeros, or copies of the sign.
inline int64_t shift(Opcode opcode, int64_t a, int64_t b, unsigned width) {
  uint64_t amount = low(b, width);
  if (amount >= width)
    return opcode == Opcode::ShrS && a < 0 ? -1 : 0;
  if (opcode == Opcode::Shl)
    return wrap(static_cast<uint64_t>(a) << amount, width);
  if (opcode == Opcode::ShrS)
    return a >> amount;
  return wrap(low(a, width) >> amount, width);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// The bits of a number of a float type; a NaN has those of the positive quiet
/// one without a payload.
int64_t toBits(double value, mlir::Type type);
double fromBits(int64_t bits, mlir::Type type);

/// Whether an integer of this width is what the value rounds to, toward zero.
bool holds(double value, unsigned width, bool isSigned);

/// Rounds toward zero and saturates; NaN gives 0.
int64_t toInteger(double value, unsigned width, bool isSigned);

/// Rounds once.
double fromInteger(uint64_t magnitude, bool isNegative, mlir::Type type);

inline bool compareFloats(mlir::arith::CmpFPredicate predicate, double a,
                          double b) {
  using Predicate = mlir::arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case Predicate::AlwaysFalse:
    return false;
  case Predicate::OEQ:
    return !unordered && a == b;
  case Predicate::OGT:
    return !unordered && a > b;
  case Predicate::OGE:
    return !unordered && a >= b;
  case Predicate::OLT:
    return !unordered && a < b;
  case Predicate::OLE:
    return !unordered && a <= b;
  case Predicate::ONE:
    return !unordered && a != b;
  case Predicate::ORD:
    return !unordered;
  case Predicate::UEQ:
    return unordered || a == b;
  case Predicate::UGT:
    return unordered || a > b;
  case Predicate::UGE:
    return unordered || a >= b;
  case Predicate::ULT:
    return unordered || a < b;
  case Predicate::ULE:
    return unordered || a <= b;
  case Predicate::UNE:
    return unordered || a != b;
  case Predicate::UNO:
    return unordered;
  case Predicate::AlwaysTrue:
    return true;
  }
  return false;
}

inline double minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  if (a == 0 && b == 0)
    return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

/// The other one, where one is NaN.
inline double minimumNumber(double a, double b) {
  if (std::isnan(a))
    return b;
  return std::isnan(b) ? a : minimum(a, b);
}

} // namespace burst

#endif // BURST_PASSES_SIMULATION_SCALARS_ARITHMETIC_H
