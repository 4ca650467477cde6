//===- CompileScalars.cpp - arithmetic to instructions --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Scalars/Compiler.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace burst;

namespace {
struct Simple {
  StringLiteral name;
  Opcode opcode;
};

/// Ops whose operands are a, b, c in order and whose width is the result's.
constexpr Simple simpleOps[] = {
    {"arith.addi", Opcode::Add},
    {"arith.subi", Opcode::Sub},
    {"arith.muli", Opcode::Mul},
    {"arith.divsi", Opcode::DivS},
    {"arith.divui", Opcode::DivU},
    {"arith.ceildivsi", Opcode::CeilDivS},
    {"arith.ceildivui", Opcode::CeilDivU},
    {"arith.floordivsi", Opcode::FloorDivS},
    {"arith.remsi", Opcode::RemS},
    {"arith.remui", Opcode::RemU},
    {"arith.andi", Opcode::And},
    {"arith.ori", Opcode::Or},
    {"arith.xori", Opcode::Xor},
    {"arith.shli", Opcode::Shl},
    {"arith.shrsi", Opcode::ShrS},
    {"arith.shrui", Opcode::ShrU},
    {"arith.minsi", Opcode::MinS},
    {"arith.maxsi", Opcode::MaxS},
    {"arith.minui", Opcode::MinU},
    {"arith.maxui", Opcode::MaxU},
    {"arith.select", Opcode::Select},
    {"math.absi", Opcode::AbsI},
    {"arith.addf", Opcode::AddF},
    {"arith.subf", Opcode::SubF},
    {"arith.mulf", Opcode::MulF},
    {"arith.divf", Opcode::DivF},
    {"arith.remf", Opcode::RemF},
    {"arith.negf", Opcode::NegF},
    {"arith.minimumf", Opcode::MinimumF},
    {"arith.maximumf", Opcode::MaximumF},
    {"arith.minnumf", Opcode::MinNumF},
    {"arith.maxnumf", Opcode::MaxNumF},
    {"math.fma", Opcode::FmaF},
    {"math.fpowi", Opcode::PowerI},
    {"arith.extf", Opcode::Copy},
    {"arith.extsi", Opcode::Copy},
};

double rsqrt(double x) { return 1.0 / std::sqrt(x); }
/// A NaN counts as positive.
double copySign(double x, double y) {
  return std::copysign(x, std::isnan(y) ? 1.0 : y);
}
double roundHalfEven(double x) { return std::nearbyint(x); }

struct Unary {
  StringLiteral name;
  double (*function)(double);
};
constexpr Unary unaryOps[] = {
    {"math.absf", std::fabs},
    {"math.acos", std::acos},
    {"math.acosh", std::acosh},
    {"math.asin", std::asin},
    {"math.asinh", std::asinh},
    {"math.atan", std::atan},
    {"math.atanh", std::atanh},
    {"math.cbrt", std::cbrt},
    {"math.ceil", std::ceil},
    {"math.cos", std::cos},
    {"math.cosh", std::cosh},
    {"math.erf", std::erf},
    {"math.erfc", std::erfc},
    {"math.exp", std::exp},
    {"math.exp2", std::exp2},
    {"math.expm1", std::expm1},
    {"math.floor", std::floor},
    {"math.log", std::log},
    {"math.log10", std::log10},
    {"math.log1p", std::log1p},
    {"math.log2", std::log2},
    {"math.round", std::round},
    {"math.roundeven", roundHalfEven},
    {"math.rsqrt", rsqrt},
    {"math.sin", std::sin},
    {"math.sinh", std::sinh},
    {"math.sqrt", std::sqrt},
    {"math.tan", std::tan},
    {"math.tanh", std::tanh},
    {"math.trunc", std::trunc},
};

struct Binary {
  StringLiteral name;
  double (*function)(double, double);
};
constexpr Binary binaryOps[] = {
    {"math.atan2", std::atan2},
    {"math.copysign", copySign},
    {"math.powf", std::pow},
};
} // namespace

/// `opcode` with the op's operands as a, b, c.
Instruction &Compiler::emitSimple(Opcode opcode, Operation &op) {
  Slot result = slot(op.getResult(0));
  SmallVector<Slot, 3> operands;
  for (Value operand : op.getOperands())
    operands.push_back(slot(operand));
  Instruction &instruction = emit(opcode, &op);
  instruction.dst = result.number;
  instruction.width = widthOf(op.getResult(0).getType());
  uint32_t *fields[] = {&instruction.a, &instruction.b, &instruction.c};
  for (auto [field, operand] : llvm::zip(fields, operands))
    *field = operand.number;
  return instruction;
}

/// Numbers of 16 bits are rounded to by every op. Those of f32 only in masks,
/// where a bit decides: scores have errors of this size, and what is compared
/// with them should not.
void Compiler::emitRounding(Operation &op) {
  auto type = dyn_cast<FloatType>(op.getResult(0).getType());
  if (!type || type.isF64() || (type.isF32() && !isMask))
    return;
  uint32_t number = slot(op.getResult(0)).number;
  Instruction &round = emit(Opcode::RoundF, &op);
  round.dst = round.a = number;
}

/// cmpi: four of the ten predicates are others with operands swapped.
void Compiler::compileCompare(arith::CmpIOp op) {
  using Predicate = arith::CmpIPredicate;
  struct Form {
    Opcode opcode;
    bool swapped;
  };
  auto form = [&]() -> Form {
    switch (op.getPredicate()) {
    case Predicate::eq:
      return {Opcode::Equal, false};
    case Predicate::ne:
      return {Opcode::NotEqual, false};
    case Predicate::slt:
      return {Opcode::LessS, false};
    case Predicate::sle:
      return {Opcode::LessEqualS, false};
    case Predicate::sgt:
      return {Opcode::LessS, true};
    case Predicate::sge:
      return {Opcode::LessEqualS, true};
    case Predicate::ult:
      return {Opcode::LessU, false};
    case Predicate::ule:
      return {Opcode::LessEqualU, false};
    case Predicate::ugt:
      return {Opcode::LessU, true};
    case Predicate::uge:
      return {Opcode::LessEqualU, true};
    }
    return {Opcode::Equal, false};
  }();
  Instruction &compare = emitSimple(form.opcode, *op);
  if (form.swapped)
    std::swap(compare.a, compare.b);
}

/// Conversions; the width is that of the side where bits matter.
LogicalResult Compiler::compileConversion(Operation &op) {
  Type from = op.getOperand(0).getType(), to = op.getResult(0).getType();
  auto emitWidth = [&](Opcode opcode, unsigned width) {
    emitSimple(opcode, op).width = width;
    return success();
  };
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<arith::ExtUIOp>(
          [&](auto) { return emitWidth(Opcode::ExtendU, widthOf(from)); })
      .Case<arith::TruncIOp, arith::IndexCastOp>(
          [&](auto) { return emitWidth(Opcode::Wrap, widthOf(to)); })
      .Case<arith::IndexCastUIOp>([&](auto) {
        return widthOf(from) < widthOf(to)
                   ? emitWidth(Opcode::ExtendU, widthOf(from))
                   : emitWidth(Opcode::Wrap, widthOf(to));
      })
      .Case<arith::SIToFPOp>(
          [&](auto) { return emitWidth(Opcode::SignedToF, widthOf(from)); })
      .Case<arith::UIToFPOp>(
          [&](auto) { return emitWidth(Opcode::UnsignedToF, widthOf(from)); })
      .Case<arith::FPToSIOp>(
          [&](auto) { return emitWidth(Opcode::FToSigned, widthOf(to)); })
      .Case<arith::FPToUIOp>(
          [&](auto) { return emitWidth(Opcode::FToUnsigned, widthOf(to)); })
      .Case<arith::TruncFOp>(
          [&](auto) { return emitWidth(Opcode::RoundF, widthOf(to)); })
      .Case<arith::BitcastOp>([&](auto) {
        bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
        if (fromFloat && !toFloat)
          return emitWidth(Opcode::FToBits, widthOf(to));
        if (!fromFloat && toFloat)
          return emitWidth(Opcode::BitsToF, widthOf(to));
        return LogicalResult(
            op.emitOpError("cannot be evaluated between types of one kind"));
      })
      .Default([&](Operation *) {
        return op.emitOpError("cannot be evaluated: burst does not know it; "
                              "write it with other ops of arith and math");
      });
}

LogicalResult Compiler::compileScalar(Operation &op) {
  for (Type type :
       llvm::concat<const Type>(op.getOperandTypes(), op.getResultTypes()))
    if (!isScalar(type) || (type.isInteger() && widthOf(type) > 64))
      return op.emitOpError("cannot be evaluated on ") << type;
  if (op.getNumResults() != 1 || op.getNumOperands() == 0 ||
      op.getNumOperands() > 3 || op.getNumRegions() != 0)
    return op.emitOpError("cannot be evaluated: it is no op on scalars");
  StringRef name = op.getName().getStringRef();
  for (const Simple &simple : simpleOps)
    if (simple.name == name) {
      emitSimple(simple.opcode, op);
      emitRounding(op);
      return success();
    }
  for (const Unary &unary : unaryOps)
    if (unary.name == name) {
      emitSimple(Opcode::UnaryF, op).imm.unary = unary.function;
      emitRounding(op);
      return success();
    }
  for (const Binary &binary : binaryOps)
    if (binary.name == name) {
      emitSimple(Opcode::BinaryF, op).imm.binary = binary.function;
      emitRounding(op);
      return success();
    }
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    compileCompare(compare);
    return success();
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    emitSimple(Opcode::CompareF, op).width =
        static_cast<uint8_t>(compare.getPredicate());
    return success();
  }
  return compileConversion(op);
}
