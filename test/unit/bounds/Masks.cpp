//===- Masks.cpp ----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/unit/bounds/Masks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace burst::test {

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry
      .insert<arith::ArithDialect, math::MathDialect, tensor::TensorDialect>();
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->allowUnregisteredDialects();
  return context;
}

OwningOpRef<Operation *> parseMask(MLIRContext &context, StringRef body,
                                   StringRef captured) {
  std::string text = "\"test.mask\"() ({\n"
                     "^bb0(%b: index, %h: index, %i: index, %j: index, "
                     "%sq: index, %sk: index";
  if (!captured.empty())
    text += ", " + captured.str();
  text += "):\n" + body.str() +
          "\n\"test.keep\"(%keep) : (i1) -> ()\n}) : () -> ()";
  OwningOpRef<Operation *> mask =
      parseSourceString(text, ParserConfig(&context));
  if (!mask)
    llvm::report_fatal_error(llvm::Twine("not a mask: ") + text);
  return mask;
}

void PrintTo(const Decision &decision, std::ostream *stream) {
  *stream << (decision.must ? "all" : decision.may ? "some" : "none");
}

/// The tests' range of a table: an op that the evaluator knows.
static std::pair<Value, Value>
tableRange(OpBuilder &builder, Location loc, Value table,
           ArrayRef<std::pair<Value, Value>> box) {
  OperationState state(loc, "test.range");
  state.addOperands(table);
  for (auto [lo, hi] : box)
    state.addOperands({lo, hi});
  // Elements of an odd width as they are, others as `index`: both are allowed.
  Type element = cast<RankedTensorType>(table.getType()).getElementType();
  Type type = widthOf(element) % 16 == 0 ? builder.getIndexType() : element;
  state.addTypes({type, type});
  Operation *op = builder.create(state);
  return {op->getResult(0), op->getResult(1)};
}

Emitted::Emitted(Region &mask, Style style, ArrayRef<Extent> within,
                 ArrayRef<bool> captured)
    : style(style) {
  OperationState state(mask.getLoc(), "test.emitted");
  state.addRegion();
  holder = Operation::create(state);
  block = &holder->getRegion(0).emplaceBlock();
  SmallVector<bounds::Argument> arguments;
  for (auto [index, parameter] : llvm::enumerate(mask.getArguments())) {
    unsigned before = block->getNumArguments();
    arguments.push_back(argument(parameter, within[index], captured[index]));
    numValues.push_back(block->getNumArguments() - before);
  }
  OpBuilder builder = OpBuilder::atBlockEnd(block);
  bounds::Truth truth =
      bounds::emit(builder, mask.getLoc(), mask, arguments, tableRange);
  SmallVector<Value> results{truth.may, truth.must};
  program = std::make_unique<Program>(*block, results);
  OperationState yield(mask.getLoc(), "test.yield");
  yield.addOperands(results);
  builder.create(yield);
}

bounds::Argument Emitted::argument(BlockArgument parameter,
                                   const Extent &extent, bool isCaptured) {
  Type type = parameter.getType();
  Location loc = parameter.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(block);
  auto value = [&](Type type, int64_t number) -> Value {
    if (style != Style::Constant || !type.isIntOrIndex())
      return block->addArgument(type, loc);
    if (type.isInteger(1))
      return arith::ConstantOp::create(builder, loc,
                                       builder.getBoolAttr(number));
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(type, number));
  };
  if (isCaptured || !type.isIntOrIndex())
    return bounds::Captured{value(type, extent.lo)};
  // Of an i1, -1..0 is: not known.
  if (type.isInteger(1))
    return bounds::Truth{value(type, extent.lo), value(type, extent.hi)};
  if (style == Style::Open)
    return bounds::Interval{value(type, extent.lo), value(type, extent.hi)};
  Type index = builder.getIndexType();
  return bounds::Interval{value(index, extent.lo), value(index, extent.hi),
                          extent.lo, extent.hi};
}

std::optional<Decision> Emitted::run(ArrayRef<Extent> rectangle) {
  SmallVector<Cell> arguments;
  for (auto [index, extent] : llvm::enumerate(rectangle)) {
    Cell lo, hi;
    lo.number = extent.lo;
    lo.real = static_cast<double>(extent.lo);
    lo.table = extent.table;
    hi.number = extent.hi;
    if (numValues[index] > 0)
      arguments.push_back(lo);
    if (numValues[index] > 1)
      arguments.push_back(hi);
  }
  SmallVector<Cell> results;
  if (!program->run(arguments, results) || results[0].poison ||
      results[1].poison)
    return std::nullopt;
  return Decision{results[0].number != 0, results[1].number != 0};
}

unsigned Emitted::numOps() {
  return llvm::count_if(llvm::drop_end(*block), [](Operation &op) {
    return !isa<arith::ConstantOp>(op);
  });
}

std::string Emitted::text() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << *holder.get() << "\n";
  return text;
}

std::optional<Decision> bruteForce(Program &mask, ArrayRef<Extent> rectangle) {
  std::optional<Decision> decision;
  SmallVector<Cell> point(rectangle.size());
  for (auto [cell, extent] : llvm::zip(point, rectangle)) {
    cell.number = extent.lo;
    cell.real = static_cast<double>(extent.lo);
    cell.table = extent.table;
  }
  SmallVector<Cell> results;
  while (true) {
    if (mask.run(point, results) && !results[0].poison) {
      bool keep = results[0].number != 0;
      Decision sofar = decision.value_or(Decision{false, true});
      decision = Decision{sofar.may || keep, sofar.must && keep};
      if (decision->may && !decision->must)
        return decision; // no point changes that
    }
    size_t dim = 0;
    while (dim < point.size() && point[dim].number == rectangle[dim].hi)
      point[dim].number = rectangle[dim].lo, ++dim;
    if (dim == point.size())
      return decision;
    ++point[dim].number;
  }
}

} // namespace burst::test
