//===- Snippet.cpp - scalar code, evaluated and folded --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Snippet.h"

#include "test/unit/simulation/Programs.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace burst::test {

Snippet::Snippet(MLIRContext &context, StringRef arguments, StringRef results,
                 StringRef text, ArrayRef<Capture> captures)
    : module(parseModule(context,
                         llvm::formatv("func.func @f({0}) -> ({1}) {{\n{2}\n}",
                                       arguments, results, text)
                             .str())),
      captures(captures.begin(), captures.end()) {
  Region &region = (*module->getOps<func::FuncOp>().begin()).getBody();
  body = &region.front();
  evaluator = RegionEvaluator::create(region, captures, /*isTotal=*/false);
}

void Snippet::giveMeaning() {
  evaluator = RegionEvaluator::create(*body->getParent(), captures);
}

Snippet Snippet::ofOp(MLIRContext &context, StringRef arguments,
                      StringRef result, StringRef op) {
  return {context, arguments, result,
          llvm::formatv("%r = {0}\nreturn %r : {1}", op, result).str()};
}

static Attribute toAttribute(Scalar value, Type type) {
  if (isa<FloatType>(type))
    return FloatAttr::get(type, value.f);
  return IntegerAttr::get(type, value.i);
}

static std::optional<Scalar> toScalar(Attribute attribute) {
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return integer(number.getValue().getSExtValue());
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return real(number.getValueAsDouble());
  return std::nullopt; // poison
}

std::optional<Scalar> Snippet::fold(ArrayRef<Scalar> arguments) {
  // A clone: folding may change an op in place.
  Operation *op = body->front().clone();
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    unsigned number = cast<BlockArgument>(operand).getArgNumber();
    operands.push_back(toAttribute(arguments[number], operand.getType()));
  }
  SmallVector<OpFoldResult> results;
  std::optional<Scalar> scalar;
  if (succeeded(op->fold(operands, results)) && results.size() == 1) {
    if (auto attribute = dyn_cast<Attribute>(results.front()))
      scalar = toScalar(attribute);
    else
      scalar = arguments[cast<BlockArgument>(cast<Value>(results.front()))
                             .getArgNumber()];
  }
  op->destroy();
  return scalar;
}

Snippet::Capture tableOf(Type element, ArrayRef<int64_t> shape,
                         std::vector<int64_t> ints,
                         std::vector<double> floats) {
  auto table = std::make_shared<Tensor>(shape, element);
  table->ints = std::move(ints);
  table->floats = std::move(floats);
  return {Scalar{0}, table};
}

int64_t signExtend(int64_t value, unsigned width) {
  unsigned shift = 64 - width;
  return static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift;
}

} // namespace burst::test
