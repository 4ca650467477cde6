//===- Calls.cpp - what a program's functions give ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Calls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace burst;

Calls::Calls(func::FuncOp program, ArrayRef<Argument> globals)
    : program(program), parts(ring::shardingOf(program).sequence.size),
      arguments(shardGlobals(program, globals, /*rank=*/0, ShardData::Omit)) {}

std::optional<Argument> Calls::valueOf(Value value) {
  if (auto found = values.find(value); found != values.end())
    return found->second;
  std::optional<Argument> found = find(value);
  return values[value] = found;
}

std::optional<Argument> Calls::find(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getOwner() == &program.getBody().front())
    return arguments[argument.getArgNumber()];
  Operation *op = value.getDefiningOp();
  Attribute constant;
  if (op && matchPattern(op, m_Constant(&constant))) {
    if (auto number = dyn_cast<IntegerAttr>(constant))
      return Argument{{.i = number.getValue().getSExtValue()}, nullptr};
    if (auto number = dyn_cast<FloatAttr>(constant))
      return Argument{{.f = number.getValueAsDouble()}, nullptr};
    auto dense = dyn_cast<DenseIntOrFPElementsAttr>(constant);
    if (dense && dense.getNumElements() <= maxTableElements)
      return Argument{{0}, makeTable(dense)};
  }
  if (auto dim = dyn_cast_or_null<tensor::DimOp>(op)) {
    std::optional<Argument> source = valueOf(dim.getSource());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (source && source->table && index)
      return Argument{{.i = source->table->shape[*index]}, nullptr};
  }
  if (auto call = dyn_cast_or_null<func::CallOp>(op))
    return this->call(call, cast<OpResult>(value).getResultNumber());
  if (op && op->getNumOperands() == 2) {
    std::optional<Argument> a = valueOf(op->getOperand(0)),
                            b = valueOf(op->getOperand(1));
    auto give = [&](int64_t number) {
      return Argument{{.i = number}, nullptr};
    };
    if (a && b && isa<arith::AddIOp>(op))
      return give(a->scalar.i + b->scalar.i);
    if (a && b && isa<arith::SubIOp>(op))
      return give(a->scalar.i - b->scalar.i);
    if (a && b && isa<arith::MulIOp>(op))
      return give(a->scalar.i * b->scalar.i);
    if (a && b && isa<arith::MaxSIOp>(op))
      return give(std::max(a->scalar.i, b->scalar.i));
    if (a && b && isa<arith::MinSIOp>(op))
      return give(std::min(a->scalar.i, b->scalar.i));
  }
  if (message.empty())
    message = "is given what ranks may not have in common";
  return std::nullopt;
}

std::optional<Argument> Calls::call(func::CallOp op, unsigned result) {
  auto [known, isNew] = results.try_emplace(op);
  if (!isNew)
    return known->second.empty() ? std::nullopt
                                 : std::optional(known->second[result]);
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      op, op.getCalleeAttr());
  std::optional<Program> code = Program::compile(
      callee.getBody(), llvm::IsaPred<ring::SegmentOp, func::CallOp>);
  if (!code) {
    message = "calls a function that cannot be evaluated";
    return std::nullopt;
  }
  Frame frame = code->makeFrame();
  for (auto [slot, operand] :
       llvm::zip_equal(code->arguments(), op.getOperands())) {
    std::optional<Argument> given = valueOf(operand);
    if (!given)
      return std::nullopt;
    if (slot.isScalar)
      frame.scalars[slot.number] = given->scalar;
    else
      frame.objects[slot.number] = given->table;
  }
  if (code->run(frame, *this) != Step::Done)
    return std::nullopt;
  std::vector<Argument> given;
  for (Slot slot : code->results()) {
    Argument &argument = given.emplace_back();
    if (slot.isScalar)
      argument.scalar = frame.scalars[slot.number];
    else
      argument.table =
          std::static_pointer_cast<Tensor>(frame.objects[slot.number]);
  }
  // There may be other calls since.
  return (results[op] = std::move(given))[result];
}

/// A segment that a layout has not, or a call of another function.
Step Calls::execute(const ExternalCall &call) {
  fault(call.op->getLoc(), "names a segment that the layout has not");
  return Step::Failed;
}

Step Calls::call(const ExternalCall &call) {
  fault(call.op->getLoc(), "calls another function");
  return Step::Failed;
}

void Calls::fault(Location, const Twine &text) {
  if (message.empty())
    message = text.str();
}
