//===- Bounds.cpp ---------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Bounds/Bounds.h"

#include "passes/Bounds/Domain.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace burst::bounds {

namespace {

/// What is known of a value of the region. A table is a tensor at the place of
/// emission.
using Known = std::variant<std::monostate, Span, Kleene, Value>;

/// The width of an integer that spans can describe.
std::optional<unsigned> widthOf(Type type) {
  if (type.isIndex())
    return 64;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.getWidth() < 2 || integer.getWidth() > 64)
    return std::nullopt;
  return integer.getWidth();
}

Known unknown(Type type) {
  if (type.isInteger(1))
    return Domain::unknown();
  if (std::optional<unsigned> width = widthOf(type))
    return Domain::full(*width);
  return std::monostate();
}

/// Interprets the ops of one mask in order.
class Interpreter {
public:
  Interpreter(OpBuilder &builder, Location loc, TableRange tableRange)
      : emitter(builder, loc), domain(emitter), tableRange(tableRange) {}

  Kleene run(Region &mask, ArrayRef<Argument> arguments);
  Truth materialize(Kleene truth) {
    return {emitter.materialize(truth.may), emitter.materialize(truth.must)};
  }

private:
  void bind(BlockArgument parameter, const Argument &argument);
  Known constantOutside(Value value);
  void interpret(Operation &op);

  Known evaluate(Operation &op);
  std::optional<Known> evaluateEqualOperands(Operation &op);
  Known evaluateInteger(Operation &op, unsigned width);
  Known evaluateLogic(Operation &op);
  Known evaluateCast(Operation &op);
  Known evaluateCompare(arith::CmpIOp op);
  Known evaluateCompare(arith::CmpFOp op);
  Known evaluateSelect(arith::SelectOp op);
  Known evaluateExtract(tensor::ExtractOp op);
  std::pair<Scalar, Scalar> clampIndex(Value table, unsigned dim, Span index);

  /// An op before this one that yields the same results.
  Operation *earlierEqual(Operation &op);
  Value representative(Value value) const {
    Value other = representatives.lookup(value);
    return other ? other : value;
  }

  /// What is known of an operand.
  Known get(Value value);
  template <typename T>
  std::optional<T> get(Value value) {
    Known known = get(value);
    T *result = std::get_if<T>(&known);
    return result ? std::optional<T>(*result) : std::nullopt;
  }

  Emitter emitter;
  Domain domain;
  TableRange tableRange;
  DenseMap<Value, Known> knowledge;
  DenseMap<Value, Value> representatives;
  DenseMap<size_t, SmallVector<Operation *, 1>> opsByHash;
};

//===----------------------------------------------------------------------===//
// The region
//===----------------------------------------------------------------------===//

Kleene Interpreter::run(Region &mask, ArrayRef<Argument> arguments) {
  if (!mask.hasOneBlock() || mask.front().empty())
    return Domain::unknown();
  Block &block = mask.front();
  for (auto [index, parameter] : llvm::enumerate(block.getArguments()))
    bind(parameter, index < arguments.size() ? arguments[index] : Argument());
  for (Operation &op : llvm::drop_end(block))
    interpret(op);
  Operation &terminator = block.back();
  if (terminator.getNumOperands() != 1)
    return Domain::unknown();
  return get<Kleene>(terminator.getOperand(0)).value_or(Domain::unknown());
}

void Interpreter::bind(BlockArgument parameter, const Argument &argument) {
  Type type = parameter.getType();
  std::optional<unsigned> width = widthOf(type);
  Known known = unknown(type);
  auto scalar = [&](Value value, int64_t lo, int64_t hi) {
    if (lo > hi) // as callers may say of an empty rectangle
      return emitter.scalar(value);
    return emitter.scalar(value, std::max(lo, llvm::minIntN(*width)),
                          std::min(hi, llvm::maxIntN(*width)));
  };
  if (auto *interval = std::get_if<Interval>(&argument)) {
    if (width)
      known =
          Span{scalar(interval->lo, interval->staticLo, interval->staticHi),
               scalar(interval->hi, interval->staticLo, interval->staticHi)};
  } else if (auto *truth = std::get_if<Truth>(&argument)) {
    if (type.isInteger(1))
      known = Kleene{emitter.truth(truth->may), emitter.truth(truth->must)};
  } else if (auto *captured = std::get_if<Captured>(&argument)) {
    if (width) {
      Scalar number =
          scalar(captured->value, captured->staticLo, captured->staticHi);
      known = Span{number, number};
    } else if (type.isInteger(1)) {
      Bool truth = emitter.truth(captured->value);
      known = Kleene{truth, truth};
    } else if (isa<RankedTensorType>(captured->value.getType())) {
      known = captured->value;
    }
  }
  knowledge[parameter] = known;
}

Known Interpreter::constantOutside(Value value) {
  APInt number;
  if (!matchPattern(value, m_ConstantInt(&number)) || number.getBitWidth() > 64)
    return unknown(value.getType());
  if (value.getType().isInteger(1))
    return Domain::known(!number.isZero());
  return Domain::number(number.getSExtValue());
}

Known Interpreter::get(Value value) {
  auto it = knowledge.find(representative(value));
  return it != knowledge.end() ? it->second : constantOutside(value);
}

void Interpreter::interpret(Operation &op) {
  if (Operation *earlier = earlierEqual(op)) {
    for (auto [result, other] :
         llvm::zip(op.getResults(), earlier->getResults()))
      representatives[result] = representative(other);
    return;
  }
  if (op.getNumResults() == 1 && op.getNumRegions() == 0) {
    knowledge[op.getResult(0)] = evaluate(op);
    return;
  }
  for (Value result : op.getResults())
    knowledge[result] = unknown(result.getType());
}

Operation *Interpreter::earlierEqual(Operation &op) {
  if (op.getNumRegions() != 0 || !isMemoryEffectFree(&op))
    return nullptr;
  auto flags = OperationEquivalence::IgnoreLocations;
  size_t hash = OperationEquivalence::computeHash(
      &op, [&](Value value) { return hash_value(representative(value)); },
      OperationEquivalence::ignoreHashValue, flags);
  auto same = [&](Value a, Value b) {
    return success(representative(a) == representative(b));
  };
  SmallVector<Operation *, 1> &candidates = opsByHash[hash];
  for (Operation *candidate : candidates)
    if (OperationEquivalence::isEquivalentTo(candidate, &op, same, nullptr,
                                             flags))
      return candidate;
  candidates.push_back(&op);
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Known Interpreter::evaluate(Operation &op) {
  if (std::optional<Known> known = evaluateEqualOperands(op))
    return *known;
  Type type = op.getResult(0).getType();
  return TypeSwitch<Operation *, Known>(&op)
      .Case([&](arith::ConstantOp op) { return constantOutside(op); })
      .Case([&](arith::CmpIOp op) { return evaluateCompare(op); })
      .Case([&](arith::CmpFOp op) { return evaluateCompare(op); })
      .Case([&](arith::SelectOp op) { return evaluateSelect(op); })
      .Case([&](tensor::ExtractOp op) { return evaluateExtract(op); })
      .Case<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp,
            arith::IndexCastUIOp>([&](auto op) { return evaluateCast(*op); })
      .Default([&](Operation *op) -> Known {
        if (type.isInteger(1))
          return evaluateLogic(*op);
        if (std::optional<unsigned> width = widthOf(type))
          return evaluateInteger(*op, *width);
        return std::monostate();
      });
}

/// What ops yield for equal operands, whatever these are.
std::optional<Known> Interpreter::evaluateEqualOperands(Operation &op) {
  Type type = op.getResult(0).getType();
  auto zero = [&]() -> Known {
    return type.isInteger(1) ? Known(Domain::known(false))
                             : Known(Domain::number(0));
  };
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    if (representative(select.getTrueValue()) ==
        representative(select.getFalseValue()))
      return get(select.getTrueValue());
    return std::nullopt;
  }
  if (op.getNumOperands() != 2 || !(type.isInteger(1) || widthOf(type)) ||
      representative(op.getOperand(0)) != representative(op.getOperand(1)))
    return std::nullopt;
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    if (!compare.getLhs().getType().isIntOrIndex())
      return std::nullopt;
    using P = arith::CmpIPredicate;
    return Domain::known(llvm::is_contained(
        {P::eq, P::sle, P::sge, P::ule, P::uge}, compare.getPredicate()));
  }
  if (isa<arith::SubIOp, arith::XOrIOp, arith::RemSIOp, arith::RemUIOp>(op))
    return zero();
  if (isa<arith::AndIOp, arith::OrIOp, arith::MinSIOp, arith::MaxSIOp,
          arith::MinUIOp, arith::MaxUIOp>(op))
    return get(op.getOperand(0));
  return std::nullopt;
}

Known Interpreter::evaluateInteger(Operation &op, unsigned width) {
  SmallVector<Span, 2> spans;
  for (Value operand : op.getOperands()) {
    std::optional<Span> span = get<Span>(operand);
    if (!span || widthOf(operand.getType()) != width)
      return Domain::full(width);
    spans.push_back(*span);
  }
  if (auto absolute = dyn_cast<math::AbsIOp>(op))
    return domain.abs(spans[0], width);
  if (spans.size() != 2)
    return Domain::full(width);
  Span x = spans[0], y = spans[1];
  using R = Domain::Rounding;
  return TypeSwitch<Operation *, Span>(&op)
      .Case([&](arith::AddIOp) { return domain.add(x, y, width); })
      .Case([&](arith::SubIOp) { return domain.sub(x, y, width); })
      .Case([&](arith::MulIOp) { return domain.mul(x, y, width); })
      .Case([&](arith::DivSIOp) { return domain.div(R::Zero, x, y, width); })
      .Case(
          [&](arith::FloorDivSIOp) { return domain.div(R::Down, x, y, width); })
      .Case([&](arith::CeilDivSIOp) { return domain.div(R::Up, x, y, width); })
      .Case([&](arith::DivUIOp) {
        return domain.divUnsigned(R::Down, x, y, width);
      })
      .Case([&](arith::CeilDivUIOp) {
        return domain.divUnsigned(R::Up, x, y, width);
      })
      .Case([&](arith::RemSIOp) { return domain.rem(x, y, width); })
      .Case([&](arith::RemUIOp) { return domain.remUnsigned(x, y, width); })
      .Case([&](arith::MinSIOp) { return domain.min(x, y); })
      .Case([&](arith::MaxSIOp) { return domain.max(x, y); })
      .Case([&](arith::MinUIOp) { return domain.minUnsigned(x, y, width); })
      .Case([&](arith::MaxUIOp) { return domain.maxUnsigned(x, y, width); })
      .Case([&](arith::AndIOp) { return domain.bitAnd(x, y); })
      .Case([&](arith::OrIOp) { return domain.bitOr(x, y); })
      .Case([&](arith::XOrIOp) { return domain.bitXor(x, y); })
      .Case([&](arith::ShLIOp) { return domain.shiftLeft(x, y, width); })
      .Case(
          [&](arith::ShRSIOp) { return domain.shiftRightSigned(x, y, width); })
      .Case([&](arith::ShRUIOp) {
        return domain.shiftRightUnsigned(x, y, width);
      })
      .Default([&](Operation *) { return Domain::full(width); });
}

/// Integer ops on i1. Signed, true is -1. Where an operand makes the behaviour
/// undefined (a divisor of 0, a shift by 1) only the others count.
Known Interpreter::evaluateLogic(Operation &op) {
  if (op.getNumOperands() != 2)
    return Domain::unknown();
  std::optional<Kleene> x = get<Kleene>(op.getOperand(0));
  std::optional<Kleene> y = get<Kleene>(op.getOperand(1));
  if (!x || !y)
    return Domain::unknown();
  return TypeSwitch<Operation *, Kleene>(&op)
      .Case<arith::AndIOp, arith::MulIOp, arith::MaxSIOp, arith::MinUIOp>(
          [&](auto) { return domain.conjunction(*x, *y); })
      .Case<arith::OrIOp, arith::MinSIOp, arith::MaxUIOp>(
          [&](auto) { return domain.disjunction(*x, *y); })
      .Case<arith::XOrIOp, arith::AddIOp, arith::SubIOp>(
          [&](auto) { return domain.negation(domain.equivalence(*x, *y)); })
      .Case<arith::DivUIOp, arith::CeilDivUIOp, arith::DivSIOp,
            arith::FloorDivSIOp, arith::CeilDivSIOp, arith::ShLIOp,
            arith::ShRSIOp, arith::ShRUIOp>([&](auto) { return *x; })
      .Case<arith::RemSIOp, arith::RemUIOp>(
          [&](auto) { return Domain::known(false); })
      .Default([&](Operation *) { return Domain::unknown(); });
}

Known Interpreter::evaluateCast(Operation &op) {
  Type from = op.getOperand(0).getType(), to = op.getResult(0).getType();
  bool isUnsigned = isa<arith::ExtUIOp, arith::IndexCastUIOp>(op);
  std::optional<unsigned> width = widthOf(from), toWidth = widthOf(to);
  if (std::optional<Kleene> truth = get<Kleene>(op.getOperand(0))) {
    if (!toWidth)
      return to.isInteger(1) ? Known(*truth) : unknown(to);
    return isUnsigned ? domain.zeroExtend(*truth) : domain.signExtend(*truth);
  }
  std::optional<Span> span = get<Span>(op.getOperand(0));
  if (!span || !width)
    return unknown(to);
  if (to.isInteger(1))
    return domain.lowestBit(*span);
  if (!toWidth)
    return unknown(to);
  if (*toWidth < *width)
    return domain.truncate(*span, *toWidth);
  return isUnsigned && *toWidth > *width ? domain.zeroExtend(*span, *width)
                                         : *span;
}

Known Interpreter::evaluateCompare(arith::CmpIOp op) {
  auto x = get(op.getLhs()), y = get(op.getRhs());
  if (std::holds_alternative<Span>(x) && std::holds_alternative<Span>(y))
    return domain.compare(op.getPredicate(), std::get<Span>(x),
                          std::get<Span>(y));
  if (std::holds_alternative<Kleene>(x) && std::holds_alternative<Kleene>(y))
    return domain.compare(op.getPredicate(), std::get<Kleene>(x),
                          std::get<Kleene>(y));
  return unknown(op.getType());
}

Known Interpreter::evaluateCompare(arith::CmpFOp op) {
  if (op.getType().isInteger(1)) {
    if (op.getPredicate() == arith::CmpFPredicate::AlwaysTrue)
      return Domain::known(true);
    if (op.getPredicate() == arith::CmpFPredicate::AlwaysFalse)
      return Domain::known(false);
  }
  return unknown(op.getType());
}

Known Interpreter::evaluateSelect(arith::SelectOp op) {
  std::optional<Kleene> condition = get<Kleene>(op.getCondition());
  if (!condition)
    return unknown(op.getType());
  auto x = get(op.getTrueValue()), y = get(op.getFalseValue());
  if (std::holds_alternative<Span>(x) && std::holds_alternative<Span>(y))
    return domain.select(*condition, std::get<Span>(x), std::get<Span>(y));
  if (std::holds_alternative<Kleene>(x) && std::holds_alternative<Kleene>(y))
    return domain.select(*condition, std::get<Kleene>(x), std::get<Kleene>(y));
  return unknown(op.getType());
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

Known Interpreter::evaluateExtract(tensor::ExtractOp op) {
  std::optional<Value> table = get<Value>(op.getTensor());
  std::optional<unsigned> width = widthOf(op.getType());
  if (!table || !tableRange || (!width && !op.getType().isInteger(1)))
    return unknown(op.getType());
  SmallVector<std::pair<Value, Value>> box;
  for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
    std::optional<Span> span = get<Span>(index);
    auto [lo, hi] = clampIndex(*table, dim, span.value_or(Domain::full(64)));
    box.push_back({emitter.materialize(lo), emitter.materialize(hi)});
  }
  auto [lo, hi] =
      tableRange(emitter.getBuilder(), emitter.getLoc(), *table, box);
  if (width) {
    int64_t min = llvm::minIntN(*width), max = llvm::maxIntN(*width);
    return Span{emitter.scalar(lo, min, max), emitter.scalar(hi, min, max)};
  }
  // Signed, true is the least: -1.
  auto truth = [&](Value value) {
    if (value.getType().isInteger(1))
      return emitter.truth(value);
    return emitter.isNegative(emitter.scalar(value, -1, 0));
  };
  return Kleene{truth(lo), truth(hi)};
}

/// The ends of an index range within a table, into which indices are clamped.
std::pair<Scalar, Scalar> Interpreter::clampIndex(Value table, unsigned dim,
                                                  Span index) {
  OpBuilder &builder = emitter.getBuilder();
  auto type = cast<RankedTensorType>(table.getType());
  Scalar last;
  if (type.isDynamicDim(dim)) {
    Value size =
        builder.createOrFold<tensor::DimOp>(emitter.getLoc(), table, dim);
    last = emitter.sub(emitter.scalar(size, 0, kMax), Emitter::constant(1));
  } else {
    last = Emitter::constant(type.getDimSize(dim) - 1);
  }
  auto clamp = [&](Scalar end) {
    return emitter.max(emitter.min(end, last), Emitter::constant(0));
  };
  return {clamp(index.lo), clamp(index.hi)};
}

} // namespace

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

Truth emit(OpBuilder &builder, Location loc, Region &mask,
           ArrayRef<Argument> arguments, TableRange tableRange) {
  // Ops are collected in a block of their own, so that the dead ones are gone
  // before the builder's listener sees any.
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(loc);
  Block &block = *scratch->getBody();
  OpBuilder inside = OpBuilder::atBlockEnd(&block);
  Interpreter interpreter(inside, loc, tableRange);
  Truth truth = interpreter.materialize(interpreter.run(mask, arguments));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    bool yields = llvm::is_contained(op.getResults(), truth.may) ||
                  llvm::is_contained(op.getResults(), truth.must);
    if (!yields && isOpTriviallyDead(&op))
      op.erase();
  }
  for (Operation &op : llvm::make_early_inc_range(block)) {
    op.remove();
    builder.insert(&op);
  }
  return truth;
}

} // namespace burst::bounds
