//===- RunScalar.h - instructions on scalars --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each of these functions knows some instructions and is false for others.
// Inlined, their switches become one, as long as nothing is computed in front
// of them; and none where the instruction's opcode is known.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_SIMULATION_SCALARS_RUNSCALAR_H
#define BURST_PASSES_SIMULATION_SCALARS_RUNSCALAR_H

#include "passes/Simulation/Scalars/Arithmetic.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Compiler.h"

namespace burst {

LLVM_ATTRIBUTE_ALWAYS_INLINE
bool runMove(const Instruction &in, Scalar a, Scalar b, const Scalar *s,
             Scalar &result) {
  switch (in.opcode) {
  case Opcode::Constant:
    result = in.imm.value;
    return true;
  case Opcode::Copy:
    result = a;
    return true;
  case Opcode::Select:
    result = a.i != 0 ? b : s[in.c];
    return true;
  default:
    return false;
  }
}

LLVM_ATTRIBUTE_ALWAYS_INLINE
bool runInteger(const Instruction &in, int64_t a, int64_t b, int64_t &result) {
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (in.opcode) {
  case Opcode::Add:
    result = wrap(ua + ub, in.width);
    return true;
  case Opcode::Sub:
    result = wrap(ua - ub, in.width);
    return true;
  case Opcode::Mul:
    result = wrap(ua * ub, in.width);
    return true;
  case Opcode::RemU: // The others are left to runPartial.
    if (in.width != 64 || b == 0)
      return false;
    result = static_cast<int64_t>(ua % ub);
    return true;
  case Opcode::And:
    result = a & b;
    return true;
  case Opcode::Or:
    result = a | b;
    return true;
  case Opcode::Xor:
    result = a ^ b;
    return true;
  case Opcode::MinS:
    result = std::min(a, b);
    return true;
  case Opcode::MaxS:
    result = std::max(a, b);
    return true;
  case Opcode::MinU: // Sign extension keeps the unsigned order.
    result = ua < ub ? a : b;
    return true;
  case Opcode::MaxU:
    result = ua < ub ? b : a;
    return true;
  case Opcode::ExtendU:
    result = static_cast<int64_t>(low(a, in.width));
    return true;
  case Opcode::Wrap:
    result = wrap(ua, in.width);
    return true;
  case Opcode::AbsI:
    result = a < 0 ? wrap(-ua, in.width) : a;
    return true;
  default:
    return false;
  }
}

LLVM_ATTRIBUTE_ALWAYS_INLINE
bool runCompare(const Instruction &in, Scalar a, Scalar b, int64_t &result) {
  auto ua = static_cast<uint64_t>(a.i), ub = static_cast<uint64_t>(b.i);
  switch (in.opcode) {
  case Opcode::Equal:
    result = truth(a.i == b.i);
    return true;
  case Opcode::NotEqual:
    result = truth(a.i != b.i);
    return true;
  case Opcode::LessS:
    result = truth(a.i < b.i);
    return true;
  case Opcode::LessEqualS:
    result = truth(a.i <= b.i);
    return true;
  case Opcode::LessU:
    result = truth(ua < ub);
    return true;
  case Opcode::LessEqualU:
    result = truth(ua <= ub);
    return true;
  case Opcode::CompareF:
    result = truth(compareFloats(
        static_cast<mlir::arith::CmpFPredicate>(in.width), a.f, b.f));
    return true;
  default:
    return false;
  }
}

LLVM_ATTRIBUTE_ALWAYS_INLINE
bool runFloat(const Instruction &in, Scalar a, Scalar b, const Scalar *s,
              const ProgramOptions &options, double &result) {
  // Added to what may be -0, which it makes 0, or changes nothing.
  auto noZero = [&] { return options.isTotal ? 0.0 : -0.0; };
  switch (in.opcode) {
  case Opcode::AddF:
    result = a.f + b.f;
    return true;
  case Opcode::SubF:
    result = a.f - b.f;
    return true;
  case Opcode::MulF:
    result = a.f * b.f;
    return true;
  case Opcode::DivF:
    result = a.f / b.f;
    return true;
  case Opcode::RemF:
    result = std::fmod(a.f, b.f);
    return true;
  case Opcode::NegF:
    result = -a.f;
    return true;
  case Opcode::MinimumF:
    result = minimum(a.f, b.f);
    return true;
  case Opcode::MaximumF:
    result = -minimum(-a.f, -b.f);
    return true;
  case Opcode::MinNumF:
    result = minimumNumber(a.f, b.f) + noZero();
    return true;
  case Opcode::MaxNumF:
    result = -minimumNumber(-a.f, -b.f) + noZero();
    return true;
  case Opcode::FmaF:
    result = std::fma(a.f, b.f, s[in.c].f);
    return true;
  case Opcode::UnaryF:
    result = in.imm.unary(a.f);
    return true;
  case Opcode::BinaryF:
    result = in.imm.binary(a.f, b.f);
    return true;
  case Opcode::PowerI:
    result = std::pow(a.f, static_cast<double>(b.i));
    return true;
  default:
    return false;
  }
}

LLVM_ATTRIBUTE_ALWAYS_INLINE
bool runConversion(const Instruction &in, Scalar a, Scalar &result) {
  auto type = [&] { return in.op->getResult(0).getType(); };
  switch (in.opcode) {
  case Opcode::SignedToF:
    result.f = fromInteger(a.i < 0 ? -static_cast<uint64_t>(a.i) : a.i, a.i < 0,
                           type());
    return true;
  case Opcode::UnsignedToF:
    result.f = fromInteger(low(a.i, in.width), /*isNegative=*/false, type());
    return true;
  case Opcode::RoundF:
    result.f = roundTo(a.f, type());
    return true;
  case Opcode::BitsToF:
    result.f = fromBits(a.i, type());
    return true;
  case Opcode::FToBits:
    result.i = toBits(a.f, in.op->getOperand(0).getType());
    return true;
  default:
    return false;
  }
}

/// Instructions that are undefined for some operands, which give a fault unless
/// all `isTotal`; false on one.
LLVM_ATTRIBUTE_ALWAYS_INLINE
bool runPartial(const Instruction &in, Scalar a, Scalar b,
                const ProgramOptions &options, Environment &environment,
                int64_t &result) {
  auto fault = [&](const llvm::Twine &message) {
    environment.fault(in.op->getLoc(), message);
    return false;
  };
  switch (in.opcode) {
  case Opcode::DivS:
  case Opcode::DivU:
  case Opcode::CeilDivS:
  case Opcode::CeilDivU:
  case Opcode::FloorDivS:
  case Opcode::RemS:
  case Opcode::RemU: {
    bool isDefined = !isUndefined(in.opcode, a.i, b.i, in.width);
    if (!isDefined && !options.isTotal)
      return fault("divides " + llvm::Twine(a.i) + " by " + llvm::Twine(b.i));
    result = isDefined ? divide(in.opcode, a.i, b.i, in.width)
                       : undefinedQuotient(in.opcode, a.i, b.i);
    return true;
  }
  case Opcode::Shl:
  case Opcode::ShrS:
  case Opcode::ShrU:
    if (!options.isTotal && low(b.i, in.width) >= in.width)
      return fault("shifts " + llvm::Twine(in.width) + " bits by " +
                   llvm::Twine(low(b.i, in.width)));
    result = shift(in.opcode, a.i, b.i, in.width);
    return true;
  case Opcode::FToSigned:
  case Opcode::FToUnsigned: {
    bool isSigned = in.opcode == Opcode::FToSigned;
    if (!options.isTotal && !holds(a.f, in.width, isSigned))
      return fault("converts what an i" + llvm::Twine(in.width) +
                   " cannot hold");
    result = toInteger(a.f, in.width, isSigned);
    return true;
  }
  default:
    llvm_unreachable("an instruction of no kind");
  }
}

/// Instructions that give a scalar; false on a fault.
LLVM_ATTRIBUTE_ALWAYS_INLINE
bool runScalar(const Instruction &in, const Scalar *s,
               const ProgramOptions &options, Environment &environment,
               Scalar &result) {
  Scalar a = s[in.a], b = s[in.b];
  return runMove(in, a, b, s, result) || runInteger(in, a.i, b.i, result.i) ||
         runCompare(in, a, b, result.i) ||
         runFloat(in, a, b, s, options, result.f) ||
         runConversion(in, a, result) ||
         runPartial(in, a, b, options, environment, result.i);
}

/// Moves of objects; false for other instructions.
LLVM_ATTRIBUTE_ALWAYS_INLINE
bool runObject(const Instruction &in, std::vector<Object> &objects,
               const std::vector<Object> &constants) {
  switch (in.opcode) {
  case Opcode::ConstantObject:
    objects[in.dst] = constants[in.imm.i];
    return true;
  case Opcode::CopyObject:
    objects[in.dst] = objects[in.a];
    return true;
  case Opcode::MoveObject:
    objects[in.dst] = std::move(objects[in.a]);
    return true;
  case Opcode::ReleaseObject:
    objects[in.dst].reset();
    return true;
  default:
    return false;
  }
}

} // namespace burst

#endif // BURST_PASSES_SIMULATION_SCALARS_RUNSCALAR_H
