//===- Scalars.cpp - scalar ops as expressions of C++ ---------------------===//
#include "codegen/cuda/Scalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;
using namespace burst::cuda;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// Types and numbers
//===----------------------------------------------------------------------===//

std::string Scalars::typeName(Type type) const {
  if (type.isIndex())
    return wide ? "i64" : "int";
  if (auto integer = dyn_cast<IntegerType>(type)) {
    if (integer.getWidth() == 1)
      return "bool";
    return formatv("i{0}", integer.getWidth());
  }
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  return elementName(type);
}

std::string Scalars::elementName(Type type) const {
  if (type.isIndex())
    return "i64";
  if (type.isBF16())
    return "bf16";
  if (type.isF16())
    return "f16";
  if (type.isInteger(1))
    return "bool";
  return typeName(type);
}

std::string Scalars::unsignedName(Type type) const {
  if (type.isIndex())
    return wide ? "u64" : "u32";
  return formatv("u{0}", std::max(8U, type.getIntOrFloatBitWidth()));
}

std::string Scalars::literal(const APFloat &number, bool isDouble) const {
  if (number.isNaN())
    return "notANumber()";
  if (number.isInfinity())
    return number.isNegative() ? "-infinity()" : "infinity()";
  APFloat value = number;
  bool loses = false;
  value.convert(isDouble ? APFloat::IEEEdouble() : APFloat::IEEEsingle(),
                APFloat::rmNearestTiesToEven, &loses);
  std::string text;
  llvm::raw_string_ostream os(text);
  if (isDouble)
    os << llvm::format("%.17g", value.convertToDouble());
  else
    os << llvm::format("%.9g", static_cast<double>(value.convertToFloat()));
  if (text.find_first_of(".e") == std::string::npos)
    text += ".";
  return isDouble ? text : text + "f";
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Sizes and places of tiles are small and not negative.
static const char *smallFormOf(Operation *op) {
  return llvm::StringSwitch<const char *>(op->getName().getStringRef())
      .Case("arith.addi", "{0} + {1}")
      .Case("arith.subi", "{0} - {1}")
      .Case("arith.muli", "{0} * {1}")
      .Case("arith.divui", "{0} / {1}")
      .Case("arith.remui", "{0} % {1}")
      .Default(nullptr);
}

/// Of ops whose text is their operands in a form: {0}, {1} and {2} are
/// operands, {3} is the type of the result, {4} that type without a sign.
/// Operands that are constants are literals, whose type may be another one.
static const char *formOf(Operation *op) {
  return llvm::StringSwitch<const char *>(op->getName().getStringRef())
      // Integers wrap around where C++ says nothing.
      .Case("arith.addi", "{3}({4}({0}) + {4}({1}))")
      .Case("arith.subi", "{3}({4}({0}) - {4}({1}))")
      .Case("arith.muli", "{3}({4}({0}) * {4}({1}))")
      .Case("arith.divui", "{3}({4}({0}) / {4}({1}))")
      .Case("arith.remui", "{3}({4}({0}) % {4}({1}))")
      .Case("arith.divsi", "{0} / {1}")
      .Case("arith.remsi", "{0} % {1}")
      .Case("arith.ceildivui", "ceilDivide({4}({0}), {4}({1}))")
      .Case("arith.floordivsi", "floorDivide<{3}>({0}, {1})")
      .Case("arith.ceildivsi", "ceilDivide<{3}>({0}, {1})")
      .Case("arith.minsi", "min({3}({0}), {3}({1}))")
      .Case("arith.maxsi", "max({3}({0}), {3}({1}))")
      .Case("arith.minui", "{3}(min({4}({0}), {4}({1})))")
      .Case("arith.maxui", "{3}(max({4}({0}), {4}({1})))")
      .Case("arith.andi", "{3}({0} & {1})")
      .Case("arith.ori", "{3}({0} | {1})")
      .Case("arith.xori", "{3}({0} ^ {1})")
      .Case("arith.shli", "{3}({4}({0}) << {1})")
      .Case("arith.shrui", "{3}({4}({0}) >> {1})")
      .Case("arith.shrsi", "{3}({0}) >> {1}")
      .Case("arith.select", "{0} ? {1} : {2}")
      .Case("arith.addf", "{0} + {1}")
      .Case("arith.subf", "{0} - {1}")
      .Case("arith.mulf", "{0} * {1}")
      .Case("arith.divf", "{0} / {1}")
      .Case("arith.remf", "fmod({0}, {1})")
      .Case("arith.negf", "-{0}")
      .Case("arith.maximumf", "maximum({0}, {1})")
      .Case("arith.minimumf", "minimum({0}, {1})")
      .Case("arith.maxnumf", "fmax({0}, {1})")
      .Case("arith.minnumf", "fmin({0}, {1})")
      .Cases({"arith.sitofp", "arith.fptosi", "arith.extsi", "arith.trunci"},
             "{3}({0})")
      .Case("arith.fptoui", "{3}({4}({0}))")
      .Cases({"arith.extf", "arith.truncf"}, "convert<{3}>({0})")
      .Case("arith.bitcast", "bitcast<{3}>({0})")
      .Case("math.absf", "fabs({0})")
      .Case("math.absi", "{0} < 0 ? {3}(-{4}({0})) : {0}")
      .Case("math.ceil", "ceil({0})")
      .Case("math.floor", "floor({0})")
      .Case("math.round", "round({0})")
      .Case("math.roundeven", "rint({0})")
      .Case("math.trunc", "trunc({0})")
      .Case("math.copysign", "copysign({0}, {1})")
      .Case("math.fma", "fma({0}, {1}, {2})")
      .Case("math.sqrt", "sqrt({0})")
      .Case("math.rsqrt", "rsqrt({0})")
      .Case("math.cbrt", "cbrt({0})")
      .Case("math.exp", "::exp({0})")
      .Case("math.exp2", "::exp2({0})")
      .Case("math.expm1", "expm1({0})")
      .Case("math.log", "::log({0})")
      .Case("math.log2", "::log2({0})")
      .Case("math.log10", "log10({0})")
      .Case("math.log1p", "log1p({0})")
      .Case("math.sin", "sin({0})")
      .Case("math.cos", "cos({0})")
      .Case("math.tan", "tan({0})")
      .Case("math.asin", "asin({0})")
      .Case("math.acos", "acos({0})")
      .Case("math.atan", "atan({0})")
      .Case("math.atan2", "atan2({0}, {1})")
      .Case("math.sinh", "sinh({0})")
      .Case("math.cosh", "cosh({0})")
      .Case("math.tanh", "tanh({0})")
      .Case("math.asinh", "asinh({0})")
      .Case("math.acosh", "acosh({0})")
      .Case("math.atanh", "atanh({0})")
      .Case("math.erf", "erf({0})")
      .Case("math.erfc", "erfc({0})")
      .Case("math.powf", "pow({0}, {1})")
      .Case("math.fpowi", "pow({0}, {3}({1}))")
      .Default(nullptr);
}

static const char *formOf(arith::CmpIPredicate predicate) {
  using Predicate = arith::CmpIPredicate;
  switch (predicate) {
  case Predicate::eq:
    return "{0} == {1}";
  case Predicate::ne:
    return "{0} != {1}";
  case Predicate::slt:
  case Predicate::ult:
    return "{0} < {1}";
  case Predicate::sle:
  case Predicate::ule:
    return "{0} <= {1}";
  case Predicate::sgt:
  case Predicate::ugt:
    return "{0} > {1}";
  case Predicate::sge:
  case Predicate::uge:
    return "{0} >= {1}";
  }
  llvm_unreachable("all predicates are covered");
}

static const char *formOf(arith::CmpFPredicate predicate) {
  using Predicate = arith::CmpFPredicate;
  switch (predicate) {
  case Predicate::AlwaysFalse:
    return "false";
  case Predicate::AlwaysTrue:
    return "true";
  case Predicate::OEQ:
    return "{0} == {1}";
  case Predicate::OGT:
    return "{0} > {1}";
  case Predicate::OGE:
    return "{0} >= {1}";
  case Predicate::OLT:
    return "{0} < {1}";
  case Predicate::OLE:
    return "{0} <= {1}";
  case Predicate::ONE:
    return "{0} < {1} || {0} > {1}";
  case Predicate::ORD:
    return "{0} == {0} && {1} == {1}";
  case Predicate::UEQ:
    return "!({0} < {1} || {0} > {1})";
  case Predicate::UGT:
    return "!({0} <= {1})";
  case Predicate::UGE:
    return "!({0} < {1})";
  case Predicate::ULT:
    return "!({0} >= {1})";
  case Predicate::ULE:
    return "!({0} > {1})";
  case Predicate::UNE:
    return "{0} != {1}";
  case Predicate::UNO:
    return "{0} != {0} || {1} != {1}";
  }
  llvm_unreachable("all predicates are covered");
}

LogicalResult Scalars::compare(Operation *op, std::string &expression) {
  std::string a = names.of(op->getOperand(0)).str(),
              b = names.of(op->getOperand(1)).str();
  if (auto floats = dyn_cast<arith::CmpFOp>(op)) {
    expression = formatv(false, formOf(floats.getPredicate()), a, b);
    return success();
  }
  auto compare = cast<arith::CmpIOp>(op);
  Type type = compare.getLhs().getType();
  using Predicate = arith::CmpIPredicate;
  switch (compare.getPredicate()) {
  case Predicate::ult:
  case Predicate::ule:
  case Predicate::ugt:
  case Predicate::uge:
    if (!type.isInteger(1)) {
      a = formatv("{0}({1})", unsignedName(type), a);
      b = formatv("{0}({1})", unsignedName(type), b);
    }
    break;
  default:
    if (type.isInteger(1)) { // true is -1 to signed compares
      a = "-int(" + a + ")";
      b = "-int(" + b + ")";
    }
  }
  expression = formatv(false, formOf(compare.getPredicate()), a, b);
  return success();
}

LogicalResult Scalars::print(Operation *op, std::string &expression) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    std::string text;
    if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
      text = literal(number.getValue(), constant.getType().isF64());
    else if (constant.getType().isInteger(1))
      text = cast<BoolAttr>(constant.getValue()).getValue() ? "true" : "false";
    else if (auto integer = dyn_cast<IntegerAttr>(constant.getValue()))
      text = llvm::toString(integer.getValue(), 10, /*Signed=*/true);
    else
      return op->emitOpError("has no text for GPUs");
    names.alias(constant, text.front() == '-' ? "(" + text + ")" : text);
    return success();
  }
  if (isa<arith::CmpIOp, arith::CmpFOp>(op))
    return compare(op, expression);
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    std::string indices;
    for (Value index : extract.getIndices())
      indices += (indices.empty() ? "" : ", ") + names.of(index).str();
    expression =
        formatv("{0}.within({1})", names.of(extract.getTensor()), indices);
    return success();
  }
  if (op->getNumResults() != 1)
    return op->emitOpError("has no text for GPUs");
  Type type = op->getResult(0).getType();
  SmallVector<std::string> operands;
  for (Value operand : op->getOperands())
    operands.push_back(names.of(operand).str());
  operands.resize(3);
  // What is read without a sign is so as wide as it was.
  if (isa<arith::ExtUIOp, arith::IndexCastUIOp, arith::UIToFPOp>(op)) {
    Type from = op->getOperand(0).getType();
    expression = formatv("{0}({1}({2}))", typeName(type), unsignedName(from),
                         operands[0]);
    return success();
  }
  if (isa<arith::IndexCastOp>(op)) {
    expression = formatv("{0}({1})", typeName(type), operands[0]);
    return success();
  }
  if (auto extend = dyn_cast<arith::ExtSIOp>(op);
      extend && extend.getIn().getType().isInteger(1)) {
    expression = formatv("-{0}({1})", typeName(type), operands[0]);
    return success();
  }
  const char *form = type.isIndex() && !wide ? smallFormOf(op) : nullptr;
  if (!form)
    form = formOf(op);
  if (!form)
    return op->emitOpError("has no text for GPUs");
  bool isInteger = type.isIntOrIndex();
  if (type.isInteger(1) && StringRef(form).contains("{4}"))
    return op->emitOpError("has no text for GPUs of i1");
  expression = formatv(false, form, operands[0], operands[1], operands[2],
                       typeName(type), isInteger ? unsignedName(type) : "")
                   .str();
  return success();
}
