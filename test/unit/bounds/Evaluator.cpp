//===- Evaluator.cpp ------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/unit/bounds/Evaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace burst::test {

namespace {

using Wide = __int128;

/// The result of an integer op on values of some width; the signed and unsigned
/// numbers of both operands are at hand.
struct Operands {
  int64_t x, y;  // signed
  uint64_t u, v; // unsigned
  unsigned width;
  int64_t least;
};

enum class Outcome : uint8_t { Value, Poison, Undefined };

Outcome divide(Operation *op, const Operands &o, Wide &result) {
  bool isUnsigned = isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp>(op);
  Wide x = isUnsigned ? Wide(o.u) : Wide(o.x),
       y = isUnsigned ? Wide(o.v) : Wide(o.y);
  if (y == 0)
    return Outcome::Undefined;
  Wide quotient = x / y, rest = x % y;
  if (isa<arith::RemSIOp, arith::RemUIOp>(op)) {
    result = rest;
    return Outcome::Value;
  }
  if (!isUnsigned && o.x == o.least && o.y == -1)
    return Outcome::Undefined;
  bool sameSign = (x < 0) == (y < 0);
  if (isa<arith::FloorDivSIOp>(op) && rest != 0 && !sameSign)
    --quotient;
  if (isa<arith::CeilDivSIOp, arith::CeilDivUIOp>(op) && rest != 0 && sameSign)
    ++quotient;
  result = quotient;
  return Outcome::Value;
}

Outcome shift(Operation *op, const Operands &o, Wide &result) {
  if (o.v >= o.width)
    return Outcome::Poison;
  if (isa<arith::ShLIOp>(op))
    result = o.u << o.v;
  else if (isa<arith::ShRSIOp>(op))
    result = o.x >> o.v;
  else
    result = o.u >> o.v;
  return Outcome::Value;
}

Outcome compute(Operation *op, const Operands &o, Wide &result) {
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
          arith::CeilDivSIOp, arith::CeilDivUIOp, arith::RemSIOp,
          arith::RemUIOp>(op))
    return divide(op, o, result);
  if (isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op))
    return shift(op, o, result);
  result = TypeSwitch<Operation *, Wide>(op)
               .Case([&](arith::AddIOp) -> Wide { return o.u + o.v; })
               .Case([&](arith::SubIOp) -> Wide { return o.u - o.v; })
               .Case([&](arith::MulIOp) {
                 uint64_t product = o.u * o.v; // of which only low bits count
                 return Wide(product);
               })
               .Case([&](arith::MinSIOp) -> Wide { return std::min(o.x, o.y); })
               .Case([&](arith::MaxSIOp) -> Wide { return std::max(o.x, o.y); })
               .Case([&](arith::MinUIOp) -> Wide { return std::min(o.u, o.v); })
               .Case([&](arith::MaxUIOp) -> Wide { return std::max(o.u, o.v); })
               .Case([&](arith::AndIOp) -> Wide { return o.u & o.v; })
               .Case([&](arith::OrIOp) -> Wide { return o.u | o.v; })
               .Case([&](arith::XOrIOp) -> Wide { return o.u ^ o.v; })
               .Default([](Operation *op) -> Wide {
                 llvm::report_fatal_error(op->getName().getStringRef());
               });
  return Outcome::Value;
}

/// What regions of burst.attention compute where arith says nothing.
Wide totalResult(Operation *op, const Operands &o) {
  bool isRemainder = isa<arith::RemSIOp, arith::RemUIOp>(op);
  if (isa<arith::ShRSIOp>(op))
    return o.x < 0 ? -1 : 0;
  if (isa<arith::ShLIOp, arith::ShRUIOp>(op))
    return 0;
  if (o.y == 0)
    return isRemainder ? o.x : 0;
  return isRemainder ? 0 : o.least;
}

bool compare(arith::CmpIPredicate predicate, const Operands &o) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return o.u == o.v;
  case P::ne:
    return o.u != o.v;
  case P::slt:
    return o.x < o.y;
  case P::sle:
    return o.x <= o.y;
  case P::sgt:
    return o.x > o.y;
  case P::sge:
    return o.x >= o.y;
  case P::ult:
    return o.u < o.v;
  case P::ule:
    return o.u <= o.v;
  case P::ugt:
    return o.u > o.v;
  case P::uge:
    return o.u >= o.v;
  }
  return false;
}

bool compare(arith::CmpFPredicate predicate, double x, double y) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::OLT:
    return x < y;
  case P::UGE:
    return !(x < y);
  case P::OEQ:
    return x == y;
  default:
    llvm::report_fatal_error("comparison that no test needs");
  }
}

uint64_t zeroExtend(int64_t number, unsigned width) {
  uint64_t bits = static_cast<uint64_t>(number);
  return width == 64 ? bits : bits & ((uint64_t(1) << width) - 1);
}

/// `extract(table, indices...)`: false outside the table.
bool extract(ArrayRef<Cell> operands, Cell &result) {
  const Table &table = *operands[0].table;
  int64_t offset = 0;
  for (auto [size, index] :
       llvm::zip_equal(table.shape, operands.drop_front())) {
    if (index.number < 0 || index.number >= size)
      return false;
    offset = offset * size + index.number;
  }
  result.number = table.elements[offset];
  result.real = static_cast<double>(result.number);
  return true;
}

/// `test.range(table, lo0, hi0, lo1, ...) -> (min, max)`, of what the tests'
/// table range emits. False if it would read outside the table.
bool range(ArrayRef<Cell> operands, Cell &least, Cell &greatest) {
  const Table &table = *operands[0].table;
  unsigned rank = table.shape.size();
  if (llvm::is_contained(table.shape, 0))
    return true;
  std::vector<Cell> indices(rank + 1);
  indices[0].table = &table;
  for (unsigned dim = 0; dim < rank; ++dim)
    indices[dim + 1] = operands[size_t(2) * dim + 1];
  bool first = true;
  while (true) {
    Cell element;
    if (!extract(indices, element))
      return false;
    least.number =
        first ? element.number : std::min(least.number, element.number);
    greatest.number =
        first ? element.number : std::max(greatest.number, element.number);
    first = false;
    unsigned dim = rank;
    while (dim > 0 && indices[dim].number >= operands[size_t(2) * dim].number) {
      indices[dim] = operands[size_t(2) * dim - 1];
      --dim;
    }
    if (dim == 0)
      return true;
    ++indices[dim].number;
  }
}

} // namespace

unsigned widthOf(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

int64_t signExtend(uint64_t number, unsigned width) {
  return static_cast<int64_t>(number << (64 - width)) >> (64 - width);
}

Program::Program(Block &block, ValueRange results) {
  auto slot = [&](Value value) {
    return slots.try_emplace(value, slots.size()).first->second;
  };
  for (BlockArgument argument : block.getArguments())
    slot(argument);
  for (Operation &op : block) {
    Step step{&op, {}, {}};
    for (Value operand : op.getOperands())
      step.operands.push_back(slot(operand));
    for (Value result : op.getResults())
      step.results.push_back(slot(result));
    if (&op == &block.back() && results.empty())
      resultSlots = step.operands;
    else
      steps.push_back(step);
  }
  for (Value result : results)
    resultSlots.push_back(slot(result));
  cells.resize(slots.size());
}

bool Program::run(ArrayRef<Cell> arguments, SmallVectorImpl<Cell> &results) {
  std::copy(arguments.begin(), arguments.end(), cells.begin());
  for (const Step &step : steps)
    if (!execute(step))
      return false;
  results.clear();
  for (unsigned slot : resultSlots)
    results.push_back(cells[slot]);
  return true;
}

bool Program::integerBinary(const Step &step, unsigned width) {
  int64_t x = cells[step.operands[0]].number,
          y = cells[step.operands[1]].number;
  Operands operands{x,
                    y,
                    zeroExtend(x, width),
                    zeroExtend(y, width),
                    width,
                    static_cast<int64_t>(~uint64_t(0) << (width - 1))};
  Cell &result = cells[step.results[0]];
  if (auto cmp = dyn_cast<arith::CmpIOp>(step.op)) {
    result.number = compare(cmp.getPredicate(), operands) ? -1 : 0;
    return true;
  }
  Wide number = 0;
  Outcome outcome = compute(step.op, operands, number);
  if (isTotal && outcome != Outcome::Value) {
    number = totalResult(step.op, operands);
    outcome = Outcome::Value;
  }
  result.number = signExtend(static_cast<uint64_t>(number), width);
  result.poison |= outcome == Outcome::Poison;
  return outcome != Outcome::Undefined;
}

bool Program::execute(const Step &step) {
  SmallVector<Cell, 4> operands;
  for (unsigned slot : step.operands)
    operands.push_back(cells[slot]);
  for (unsigned slot : step.results)
    cells[slot] = Cell();
  Cell none, &result = step.results.empty() ? none : cells[step.results[0]];
  Operation *op = step.op;

  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    result = operands[operands[0].number ? 1 : 2];
    result.poison |= operands[0].poison;
    return true;
  }
  for (const Cell &operand : operands)
    result.poison |= operand.poison;
  if (result.poison) // a division by poison is undefined, as is such an index
    return !isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
                arith::CeilDivSIOp, arith::CeilDivUIOp, arith::RemSIOp,
                arith::RemUIOp, tensor::ExtractOp>(op);

  StringRef name = op->getName().getStringRef();
  if (name == "test.range")
    return range(operands, result, cells[step.results[1]]);
  if (name == "test.opaque") { // something that depends on its operand
    result.number = signExtend(
        static_cast<uint64_t>(operands[0].number) * 0x9e3779b97f4a7c15 >> 17,
        widthOf(op->getResult(0).getType()));
    return true;
  }
  return applyOp(step, operands, result);
}

bool Program::applyOp(const Step &step, ArrayRef<Cell> operands, Cell &result) {
  return TypeSwitch<Operation *, bool>(step.op)
      .Case([&](arith::ConstantOp constant) {
        if (auto attribute = dyn_cast<IntegerAttr>(constant.getValue()))
          result.number = attribute.getType().isInteger(1)
                              ? -int64_t(!attribute.getValue().isZero())
                              : attribute.getValue().getSExtValue();
        else
          result.real = cast<FloatAttr>(constant.getValue()).getValueAsDouble();
        return true;
      })
      .Case([&](arith::CmpIOp cmp) {
        return integerBinary(step, widthOf(cmp.getLhs().getType()));
      })
      .Case([&](arith::CmpFOp cmp) {
        result.number =
            compare(cmp.getPredicate(), operands[0].real, operands[1].real) ? -1
                                                                            : 0;
        return true;
      })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(
          [&](auto cast) {
            result.number =
                signExtend(operands[0].number, widthOf(cast.getType()));
            return true;
          })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto cast) {
        uint64_t bits =
            zeroExtend(operands[0].number, widthOf(cast.getIn().getType()));
        result.number = signExtend(bits, widthOf(cast.getType()));
        return true;
      })
      .Case([&](arith::SIToFPOp) {
        result.real = static_cast<double>(operands[0].number);
        return true;
      })
      .Case([&](arith::AddFOp) {
        result.real = operands[0].real + operands[1].real;
        return true;
      })
      .Case([&](math::AbsIOp abs) {
        uint64_t bits = operands[0].number;
        result.number = signExtend(operands[0].number < 0 ? -bits : bits,
                                   widthOf(abs.getType()));
        return true;
      })
      .Case([&](tensor::ExtractOp) {
        SmallVector<Cell, 4> within(operands);
        for (size_t dim = 1; isTotal && dim < within.size(); ++dim)
          within[dim].number = std::clamp<int64_t>(
              within[dim].number, 0, operands[0].table->shape[dim - 1] - 1);
        return extract(within, result);
      })
      .Case([&](tensor::DimOp) {
        result.number = operands[0].table->shape[operands[1].number];
        return true;
      })
      .Default([&](Operation *op) {
        return integerBinary(step, widthOf(op->getResult(0).getType()));
      });
}

} // namespace burst::test
