//===- Scalars.cpp - scalar ops as expressions of C++ ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Scalars.h"

#include "dialect/Burst/Burst.h"

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

/// Floats of 16 bits, which are computed with as f32: only truncf rounds to
/// them.
static bool isShort(Type type) { return type.isBF16() || type.isF16(); }

/// The bits of the integer of C++ that holds one, which is sign-extended.
static unsigned holderWidth(Type type) {
  return std::max(8U,
                  unsigned(llvm::PowerOf2Ceil(type.getIntOrFloatBitWidth())));
}

static bool isHeldExactly(Type type) {
  return type.isIndex() || holderWidth(type) == type.getIntOrFloatBitWidth();
}

std::string Scalars::holderName(Type type) const {
  if (type.isIndex())
    return wide ? "i64" : "int";
  return formatv("i{0}", holderWidth(type));
}

std::string Scalars::typeName(Type type) const {
  if (type.isInteger(1))
    return "bool";
  if (type.isIntOrIndex())
    return holderName(type);
  if (type.isF32() || (wide && isShort(type)))
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
  return formatv("u{0}", holderWidth(type));
}

/// In which integers wrap around; narrower ones would become ints of C++.
std::string Scalars::wrappingName(Type type) const {
  if (type.isIndex())
    return wide ? "u64" : "u32";
  return holderWidth(type) == 64 ? "u64" : "u32";
}

std::string Scalars::resultName(Type type) const {
  if (!type.isIntOrIndex() || isHeldExactly(type))
    return typeName(type);
  if (type.isInteger(1))
    return "lowBit";
  return formatv("wrap<{0}, {1}>", holderName(type),
                 type.getIntOrFloatBitWidth());
}

std::string Scalars::operand(Value value) const {
  std::string name = names.of(value).str();
  Type type = value.getType();
  if (type.isInteger(1))
    return "-i8(" + name + ")"; // true is -1
  // Those of the kernel are as memory holds them.
  if (wide && isShort(type) && isa<BlockArgument>(value))
    return "convert<float>(" + name + ")";
  return name;
}

std::string Scalars::unsignedOperand(Value value) const {
  std::string name = names.of(value).str();
  Type type = value.getType();
  if (type.isInteger(1) || isHeldExactly(type))
    return unsignedName(type) + "(" + name + ")";
  return formatv("low<{0}, {1}>({2})", unsignedName(type),
                 type.getIntOrFloatBitWidth(), name);
}

std::string Scalars::literal(const APFloat &number, bool isDouble) const {
  if (number.isNaN())
    return isDouble ? "double(notANumber())" : "notANumber()";
  if (number.isInfinity())
    return std::string(number.isNegative() ? "-" : "") +
           (isDouble ? "double(infinity())" : "infinity()");
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
/// operands, {3} makes the result of an integer of any width, or is its type,
/// {4} is the type that holds it, {5} and {6} are the first two operands
/// without a sign, {7} is the type that integers wrap around in. Operands that
/// are constants are literals, whose type may be another one.
static const char *formOf(Operation *op) {
  return llvm::StringSwitch<const char *>(op->getName().getStringRef())
      // Integers wrap around where C++ says nothing.
      .Case("arith.addi", "{3}({7}({0}) + {7}({1}))")
      .Case("arith.subi", "{3}({7}({0}) - {7}({1}))")
      .Case("arith.muli", "{3}({7}({0}) * {7}({1}))")
      .Case("arith.divui", "{3}({5} / {6})")
      .Case("arith.remui", "{3}({5} % {6})")
      .Case("arith.divsi", "{3}({0} / {1})")
      .Case("arith.remsi", "{3}({0} % {1})")
      .Case("arith.ceildivui", "{3}(ceilDivide({5}, {6}))")
      .Case("arith.floordivsi", "{3}(floorDivide<{4}>({0}, {1}))")
      .Case("arith.ceildivsi", "{3}(ceilDivide<{4}>({0}, {1}))")
      .Case("arith.minsi", "{3}(min({4}({0}), {4}({1})))")
      .Case("arith.maxsi", "{3}(max({4}({0}), {4}({1})))")
      .Case("arith.minui", "{3}(min({5}, {6}))")
      .Case("arith.maxui", "{3}(max({5}, {6}))")
      .Case("arith.andi", "{3}({0} & {1})")
      .Case("arith.ori", "{3}({0} | {1})")
      .Case("arith.xori", "{3}({0} ^ {1})")
      .Case("arith.shli", "{3}({7}({0}) << {6})")
      .Case("arith.shrui", "{3}({5} >> {6})")
      .Case("arith.shrsi", "{3}({4}({0}) >> {6})")
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
      .Cases({"arith.sitofp", "arith.extsi", "arith.trunci", "arith.index_cast",
              "arith.extf"},
             "{3}({0})")
      // What is read without a sign is so as wide as it was.
      .Cases({"arith.uitofp", "arith.extui", "arith.index_castui"}, "{3}({5})")
      .Case("arith.fptosi", "{3}({4}({0}))")
      .Case("arith.fptoui", "{3}({8}({0}))")
      .Case("math.absf", "fabs({0})")
      .Case("math.absi", "{3}({0} < 0 ? -{7}({0}) : {7}({0}))")
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
  std::string a = operand(op->getOperand(0)), b = operand(op->getOperand(1));
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
    // Sign extension keeps the order.
    a = formatv("{0}({1})", unsignedName(type), a);
    b = formatv("{0}({1})", unsignedName(type), b);
    break;
  default:
    break;
  }
  expression = formatv(false, formOf(compare.getPredicate()), a, b);
  return success();
}

/// Whether an op is of a mask, where a bit of a float decides. Elsewhere NVRTC
/// may contract products and sums.
static bool isInMask(Operation *op) {
  auto yield = dyn_cast<YieldOp>(op->getBlock()->getTerminator());
  return yield && yield->getOperandTypes().front().isInteger(1);
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
    if (wide && isShort(extract.getType()))
      expression = "convert<float>(" + expression + ")";
    return success();
  }
  if (op->getNumResults() != 1)
    return op->emitOpError("has no text for GPUs");
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    expression = convert(op);
    return success();
  }
  if (isa<arith::BitcastOp>(op)) {
    expression = bitcast(op);
    return success();
  }
  Type type = op->getResult(0).getType();
  const char *form = type.isIndex() && !wide ? smallFormOf(op) : nullptr;
  if (!form)
    form = isa<arith::MulFOp>(op) && isInMask(op) ? "product({0}, {1})"
                                                  : formOf(op);
  if (!form)
    return op->emitOpError("has no text for GPUs");
  expression = apply(form, op);
  return success();
}

std::string Scalars::apply(const char *form, Operation *op) const {
  // Of single bits, logic and choices need no numbers.
  bool isLogic =
      isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::SelectOp>(op);
  Type type = op->getResult(0).getType();
  SmallVector<std::string, 3> operands(3), unsignedOperands(2);
  for (auto [index, value] : llvm::enumerate(op->getOperands())) {
    bool isPlain = isLogic && value.getType().isInteger(1);
    operands[index] = isPlain ? names.of(value).str() : operand(value);
    if (index < 2 && value.getType().isIntOrIndex())
      unsignedOperands[index] = unsignedOperand(value);
  }
  bool isInteger = type.isIntOrIndex();
  std::string result = isLogic && type.isInteger(1) ? "bool" : resultName(type);
  return formatv(false, form, operands[0], operands[1], operands[2], result,
                 isInteger ? holderName(type) : "", unsignedOperands[0],
                 unsignedOperands[1], isInteger ? wrappingName(type) : "",
                 isInteger ? unsignedName(type) : "")
      .str();
}

/// A float of other bits; in regions one of 16 is then held as f32.
std::string Scalars::convert(Operation *op) const {
  Type type = op->getResult(0).getType();
  std::string result = formatv("convert<{0}>({1})", elementName(type),
                               operand(op->getOperand(0)));
  return wide && isShort(type) ? "convert<float>(" + result + ")" : result;
}

std::string Scalars::bitcast(Operation *op) const {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  std::string bits = operand(op->getOperand(0));
  if (isShort(from))
    bits = formatv("convert<{0}>({1})", elementName(from), bits);
  std::string cast = formatv("bitcast<{0}>({1})", elementName(to), bits);
  return isShort(to) ? "convert<float>(" + cast + ")" : cast;
}
