//===- Gradient.cpp - derivatives of score regions ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Gradient/Gradient.h"

#include "dialect/Burst/Burst.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace burst;

namespace {

/// What a function multiplies an adjoint with, or divides it by.
struct Slope {
  Value value;
  bool divides = false;
};

class Differentiator {
public:
  Differentiator(Region &score, Block &gradient, ArrayRef<bool> wanted);
  LogicalResult run();

private:
  // What there is to differentiate.
  bool isWanted(Value capture) const;
  void findActive();
  LogicalResult visit(Operation &op);
  LogicalResult visitInteger(Operation &op);
  void markIntegers(Operation &op);

  // Adjoints of the operands, given that of the result.
  LogicalResult differentiate(Operation &op, Value g);
  LogicalResult differentiateMath(Operation &op, Value g);
  Slope slope(Operation &op, Type type);
  void differentiateChoice(Operation &op, Value g);
  void differentiatePower(math::PowFOp op, Value g);
  void differentiatePower(math::FPowIOp op, Value g);
  void differentiateRead(tensor::ExtractOp op, Value g);
  void give(Value to, Value amount);
  void contribute(Value capture, ValueRange indices, Value amount);

  // Emission.
  template <typename Op, typename... Args>
  Value make(Args &&...args) {
    return b.createOrFold<Op>(loc, std::forward<Args>(args)...);
  }
  Value number(Type type, double value);
  Value add(Value x, Value y) { return make<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return make<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return make<arith::MulFOp>(x, y); }
  Value div(Value x, Value y) { return make<arith::DivFOp>(x, y); }
  Value negate(Value x) { return make<arith::NegFOp>(x); }
  Value select(Value condition, Value x, Value y) {
    return make<arith::SelectOp>(condition, x, y);
  }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return make<arith::CmpFOp>(predicate, x, y);
  }
  Value convert(Value value, Type type);
  Value signOf(Value value);
  Type adjointType(Type type) const;
  Value forward(Value original);
  Value isZero(Value value);
  Value keepZero(Value g, Value product);
  Value scale(Value g, Slope by);
  Value times(Value g, Value by) { return scale(g, {by}); }

  Block &source, &target;
  RegionArguments in, out;
  ArrayRef<bool> wanted;
  Type state;
  OpBuilder b;
  Location loc;
  IRMapping values; ///< of the score, as they are computed anew
  llvm::DenseMap<Attribute, Value> constants;
  llvm::DenseMap<Value, Value> widened, zeros;
  /// What varies with `s` or a wanted capture: floats, and integers made of
  /// their bits.
  llvm::DenseSet<Value> active;
  llvm::DenseMap<Value, Value> adjoints; ///< of active floats
  /// Active integers on which the result depends.
  llvm::DenseSet<Value> needed;
};

} // namespace

Differentiator::Differentiator(Region &score, Block &gradient,
                               ArrayRef<bool> wanted)
    : source(score.front()), target(gradient),
      in(RegionArguments::of(RegionRole::Score, source)),
      out(RegionArguments::of(RegionRole::Gradient, target)), wanted(wanted),
      state(in.score.getType()), b(OpBuilder::atBlockEnd(&target)),
      loc(score.getLoc()) {
  values.map(in.score, out.score);
  values.map(ValueRange{in.b, in.h, in.i, in.j, in.sq, in.sk},
             ValueRange{out.b, out.h, out.i, out.j, out.sq, out.sk});
  values.map(in.captures, out.captures);
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

/// Of adjoints of values of a type.
Type Differentiator::adjointType(Type type) const {
  return type.getIntOrFloatBitWidth() > state.getIntOrFloatBitWidth() ? type
                                                                      : state;
}

Value Differentiator::convert(Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from == to)
    return value;
  return from < to ? make<arith::ExtFOp>(type, value)
                   : make<arith::TruncFOp>(type, value);
}

/// A float of the score, in the type of its adjoint.
Value Differentiator::forward(Value original) {
  auto [entry, isNew] = widened.try_emplace(original);
  if (isNew)
    entry->second =
        convert(values.lookup(original), adjointType(original.getType()));
  return entry->second;
}

Value Differentiator::number(Type type, double value) {
  FloatAttr attribute = b.getFloatAttr(type, value);
  Value &constant = constants[attribute];
  if (!constant)
    constant = arith::ConstantOp::create(b, loc, attribute);
  return constant;
}

/// 1 or -1, of zeros too.
Value Differentiator::signOf(Value value) {
  return make<math::CopySignOp>(number(value.getType(), 1), value);
}

Value Differentiator::isZero(Value value) {
  if (auto negation = value.getDefiningOp<arith::NegFOp>())
    return isZero(negation.getOperand());
  auto [entry, isNew] = zeros.try_emplace(value);
  if (isNew)
    entry->second =
        compare(arith::CmpFPredicate::OEQ, value, number(value.getType(), 0));
  return entry->second;
}

/// `product`, a multiple of `g`, but 0 where `g` is, for any other factor.
Value Differentiator::keepZero(Value g, Value product) {
  return select(isZero(g), g, product);
}

/// Whether a number is never infinite and never NaN.
static bool isFinite(Value value) {
  APFloat number(0.0);
  if (matchPattern(value, m_ConstantFloat(&number)))
    return number.isFinite();
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::ExtFOp, arith::NegFOp>(op))
    return isFinite(op->getOperand(0));
  Type type = value.getType(); // An f16 is infinite from 65520 on.
  return isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(op) &&
         (type.isF64() || type.isF32() || type.isBF16());
}

Value Differentiator::scale(Value g, Slope by) {
  if (by.divides) {
    Value quotient = div(g, by.value);
    bool isSafe = matchPattern(by.value, m_Constant()) &&
                  !matchPattern(by.value, m_AnyZeroFloat());
    return isSafe ? quotient : keepZero(g, quotient);
  }
  Value product = mul(g, by.value);
  return isFinite(by.value) ? product : keepZero(g, product);
}

/// Adds to the adjoint of a value of the score.
void Differentiator::give(Value to, Value amount) {
  if (!active.contains(to))
    return;
  Value converted = convert(amount, adjointType(to.getType()));
  Value &adjoint = adjoints[to];
  adjoint = adjoint ? add(adjoint, converted) : converted;
}

void Differentiator::contribute(Value capture, ValueRange indices,
                                Value amount) {
  ContributeOp::create(b, loc, convert(amount, state), values.lookup(capture),
                       indices);
}

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

/// The derivative of a function of one float; no value where it is not known.
Slope Differentiator::slope(Operation &op, Type type) {
  using namespace std::numbers;
  Value x = forward(op.getOperand(0)), y = forward(op.getResult(0));
  auto constant = [&](double value) { return number(type, value); };
  auto over = [](Value value) { return Slope{value, /*divides=*/true}; };
  // Accurate near 1, where it vanishes.
  auto oneMinusSquare = [&](Value v) {
    return mul(sub(constant(1), v), add(v, constant(1)));
  };
  auto onePlusSquare = [&](Value v) { return add(mul(v, v), constant(1)); };
  auto gauss = [&](double factor) {
    return mul(make<math::ExpOp>(negate(mul(x, x))), constant(factor));
  };
  auto root = [&](Value v) { return make<math::SqrtOp>(v); };
  return TypeSwitch<Operation *, Slope>(&op)
      .Case<math::ExpOp>([&](auto) { return Slope{y}; })
      .Case<math::Exp2Op>([&](auto) { return Slope{mul(y, constant(ln2))}; })
      .Case<math::ExpM1Op>([&](auto) { return Slope{add(y, constant(1))}; })
      .Case<math::LogOp>([&](auto) { return over(x); })
      .Case<math::Log2Op>([&](auto) { return over(mul(x, constant(ln2))); })
      .Case<math::Log10Op>([&](auto) { return over(mul(x, constant(ln10))); })
      .Case<math::Log1pOp>([&](auto) { return over(add(x, constant(1))); })
      .Case<math::SqrtOp>([&](auto) { return over(mul(y, constant(2))); })
      .Case<math::RsqrtOp>(
          [&](auto) { return Slope{div(mul(y, constant(-0.5)), x)}; })
      .Case<math::CbrtOp>(
          [&](auto) { return over(mul(mul(y, y), constant(3))); })
      .Case<math::SinOp>([&](auto) { return Slope{make<math::CosOp>(x)}; })
      .Case<math::CosOp>(
          [&](auto) { return Slope{negate(make<math::SinOp>(x))}; })
      .Case<math::TanOp>([&](auto) { return Slope{onePlusSquare(y)}; })
      .Case<math::AsinOp>([&](auto) { return over(root(oneMinusSquare(x))); })
      .Case<math::AcosOp>(
          [&](auto) { return over(negate(root(oneMinusSquare(x)))); })
      .Case<math::AtanOp>([&](auto) { return over(onePlusSquare(x)); })
      .Case<math::SinhOp>([&](auto) { return Slope{make<math::CoshOp>(x)}; })
      .Case<math::CoshOp>([&](auto) { return Slope{make<math::SinhOp>(x)}; })
      .Case<math::TanhOp>([&](auto) { return Slope{oneMinusSquare(y)}; })
      .Case<math::AsinhOp>([&](auto) { return over(root(onePlusSquare(x))); })
      .Case<math::AcoshOp>([&](auto) {
        return over(mul(root(sub(x, constant(1))), root(add(x, constant(1)))));
      })
      .Case<math::AtanhOp>([&](auto) { return over(oneMinusSquare(x)); })
      .Case<math::ErfOp>([&](auto) { return Slope{gauss(2 * inv_sqrtpi)}; })
      .Case<math::ErfcOp>([&](auto) { return Slope{gauss(-2 * inv_sqrtpi)}; })
      .Default([](Operation *) { return Slope{}; });
}

/// All to the operand that is the minimum or maximum.
void Differentiator::differentiateChoice(Operation &op, Value g) {
  Value x = op.getOperand(0), y = op.getOperand(1);
  bool isLeast = isa<arith::MinimumFOp, arith::MinNumFOp>(op);
  Value isFirst =
      compare(isLeast ? arith::CmpFPredicate::OLE : arith::CmpFPredicate::OGE,
              forward(x), forward(y));
  if (isa<arith::MinNumFOp, arith::MaxNumFOp>(op)) // The other one is NaN.
    isFirst = make<arith::OrIOp>(
        isFirst, compare(arith::CmpFPredicate::UNO, forward(y), forward(y)));
  Value zero = number(g.getType(), 0);
  give(x, select(isFirst, g, zero));
  give(y, select(isFirst, zero, g));
}

void Differentiator::differentiatePower(math::PowFOp op, Value g) {
  Value x = forward(op.getLhs()), exponent = forward(op.getRhs());
  Value power = forward(op.getResult());
  // x^0 does not vary, at 0 either, where 0 x^-1 is NaN.
  Value one = number(g.getType(), 1);
  Value lower = mul(make<math::PowFOp>(x, sub(exponent, one)), exponent);
  give(op.getLhs(), times(g, keepZero(exponent, lower)));
  // Nor does 0^y, where log 0 is infinite.
  Value log = make<math::LogOp>(x);
  give(op.getRhs(), times(g, keepZero(power, mul(power, log))));
}

void Differentiator::differentiatePower(math::FPowIOp op, Value g) {
  Value power = values.lookup(op.getRhs());
  if (power.getType().getIntOrFloatBitWidth() < 32) // 1 must fit, and less.
    power = make<arith::ExtSIOp>(b.getI32Type(), power);
  Value one = make<arith::ConstantOp>(b.getIntegerAttr(power.getType(), 1));
  Value lower = make<math::FPowIOp>(forward(op.getLhs()),
                                    make<arith::SubIOp>(power, one));
  Value factor = make<arith::SIToFPOp>(g.getType(), power);
  give(op.getLhs(), times(g, keepZero(factor, mul(lower, factor))));
}

void Differentiator::differentiateRead(tensor::ExtractOp op, Value g) {
  SmallVector<Value> indices = llvm::map_to_vector(
      op.getIndices(), [&](Value index) { return values.lookup(index); });
  contribute(op.getTensor(), indices, g);
}

/// Hands the adjoint of the result of an op of math, or of one operand, on to
/// its operands.
LogicalResult Differentiator::differentiateMath(Operation &op, Value g) {
  auto operand = [&](unsigned index) { return op.getOperand(index); };
  auto known = [&](unsigned index) { return forward(op.getOperand(index)); };
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<math::FmaOp>([&](auto) {
        give(operand(0), times(g, known(1)));
        give(operand(1), times(g, known(0)));
        give(operand(2), g);
        return success();
      })
      .Case<math::AbsFOp>([&](auto) {
        give(operand(0),
             mul(g, select(isZero(known(0)), number(known(0).getType(), 0),
                           signOf(known(0)))));
        return success();
      })
      .Case<math::CopySignOp>([&](auto) {
        give(operand(0), mul(g, mul(signOf(known(0)), signOf(known(1)))));
        return success();
      })
      .Case<math::Atan2Op>([&](auto) {
        Value square = add(mul(known(0), known(0)), mul(known(1), known(1)));
        give(operand(0), times(g, div(known(1), square)));
        give(operand(1), times(negate(g), div(known(0), square)));
        return success();
      })
      .Case<math::PowFOp, math::FPowIOp>([&](auto power) {
        differentiatePower(power, g);
        return success();
      })
      .Default([&](Operation *) -> LogicalResult {
        Slope by;
        if (op.getNumOperands() == 1 &&
            operand(0).getType() == op.getResultTypes()[0])
          by = slope(op, g.getType());
        if (!by.value)
          return op.emitOpError("cannot be differentiated: burst knows no "
                                "derivative of it; write it with other ops of "
                                "arith and math");
        give(operand(0), scale(g, by));
        return success();
      });
}

/// Hands the adjoint of the op's result on to its operands.
LogicalResult Differentiator::differentiate(Operation &op, Value g) {
  auto operand = [&](unsigned index) { return op.getOperand(index); };
  auto known = [&](unsigned index) { return forward(op.getOperand(index)); };
  auto result = [&] { return forward(op.getResult(0)); };
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<arith::AddFOp>([&](auto) {
        give(operand(0), g);
        give(operand(1), g);
        return success();
      })
      .Case<arith::SubFOp>([&](auto) {
        give(operand(0), g);
        give(operand(1), negate(g));
        return success();
      })
      .Case<arith::MulFOp>([&](auto) {
        give(operand(0), times(g, known(1)));
        give(operand(1), times(g, known(0)));
        return success();
      })
      .Case<arith::DivFOp>([&](auto) {
        give(operand(0), scale(g, {known(1), /*divides=*/true}));
        give(operand(1), times(negate(g), div(result(), known(1))));
        return success();
      })
      .Case<arith::RemFOp>([&](auto) {
        give(operand(0), g);
        // What was taken off is a multiple of the divisor.
        Value taken = sub(known(0), result());
        give(operand(1), times(negate(g), div(taken, known(1))));
        return success();
      })
      .Case<arith::NegFOp>([&](auto) {
        give(operand(0), negate(g));
        return success();
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) {
        give(operand(0), g);
        return success();
      })
      .Case<arith::SelectOp>([&](auto) {
        Value condition = values.lookup(operand(0));
        Value zero = number(g.getType(), 0);
        give(operand(1), select(condition, g, zero));
        give(operand(2), select(condition, zero, g));
        return success();
      })
      .Case<arith::MinimumFOp, arith::MaximumFOp, arith::MinNumFOp,
            arith::MaxNumFOp>([&](auto) {
        differentiateChoice(op, g);
        return success();
      })
      .Case<tensor::ExtractOp>([&](auto read) {
        differentiateRead(read, g);
        return success();
      })
      // Their operands are integers made of bits, which are refused there.
      .Case<arith::SIToFPOp, arith::UIToFPOp, arith::BitcastOp>(
          [](auto) { return success(); })
      .Default([&](Operation *) { return differentiateMath(op, g); });
}

//===----------------------------------------------------------------------===//
// What there is to differentiate
//===----------------------------------------------------------------------===//

bool Differentiator::isWanted(Value capture) const {
  if (!isa<FloatType>(getElementTypeOrSelf(capture.getType())))
    return false;
  unsigned first = source.getNumArguments() - in.captures.size();
  return wanted[cast<BlockArgument>(capture).getArgNumber() - first];
}

/// Ops whose results are constant but for jumps.
static bool isStep(Operation &op) {
  return isa<arith::CmpFOp, arith::CmpIOp, arith::FPToSIOp, arith::FPToUIOp,
             math::FloorOp, math::CeilOp, math::RoundOp, math::RoundEvenOp,
             math::TruncOp, math::IsFiniteOp, math::IsInfOp, math::IsNaNOp,
             math::IsNormalOp>(op);
}

/// The operands that a derivative could flow through: conditions and indices
/// are steps.
static ValueRange varying(Operation &op) {
  if (isStep(op) || isa<tensor::ExtractOp>(op))
    return {};
  ValueRange operands = op.getOperands();
  return isa<arith::SelectOp>(op) ? operands.drop_front() : operands;
}

void Differentiator::findActive() {
  active.insert(in.score);
  for (Value capture : in.captures)
    if (isWanted(capture))
      active.insert(capture);
  for (Operation &op : source.without_terminator()) {
    auto read = dyn_cast<tensor::ExtractOp>(op);
    bool isActive = read ? active.contains(read.getTensor())
                         : llvm::any_of(varying(op), [&](Value operand) {
                             return active.contains(operand);
                           });
    if (isActive)
      active.insert_range(op.getResults());
  }
}

/// Notes the active integers among the operands of an op that the result
/// depends on.
void Differentiator::markIntegers(Operation &op) {
  for (Value operand : varying(op))
    if (active.contains(operand) && !isa<FloatType>(operand.getType()))
      needed.insert(operand);
}

/// An op on the way from the bits of a float to the result.
LogicalResult Differentiator::visitInteger(Operation &op) {
  bool takesBits = llvm::any_of(varying(op), [&](Value operand) {
    return active.contains(operand) && isa<FloatType>(operand.getType());
  });
  if (takesBits)
    return op.emitOpError("cannot be differentiated: the score depends on the "
                          "integer that it makes of a float; compute with "
                          "floats, or use the integer in comparisons only");
  markIntegers(op);
  return success();
}

LogicalResult Differentiator::visit(Operation &op) {
  auto isNeeded = [&](Value value) { return needed.contains(value); };
  if (llvm::any_of(op.getResults(), isNeeded))
    return visitInteger(op);
  for (Value result : op.getResults()) {
    Value g = adjoints.lookup(result);
    if (!g)
      continue;
    markIntegers(op);
    return differentiate(op, g);
  }
  return success();
}

LogicalResult Differentiator::run() {
  findActive();
  for (Operation &op : source.without_terminator())
    b.clone(op, values);
  give(source.getTerminator()->getOperand(0), out.g);
  for (Operation &op : llvm::reverse(source.without_terminator())) {
    loc = op.getLoc();
    if (failed(visit(op)))
      return failure();
  }
  loc = source.getTerminator()->getLoc();
  for (Value capture : in.captures)
    if (Value g = adjoints.lookup(capture))
      contribute(capture, ValueRange(), g);
  Value g = adjoints.lookup(in.score);
  YieldOp::create(b, loc, g ? g : number(state, 0));
  for (Operation &unused : llvm::make_early_inc_range(llvm::reverse(target)))
    if (isOpTriviallyDead(&unused))
      unused.erase();
  return success();
}

LogicalResult burst::differentiate(Region &score, Region &gradient,
                                   ArrayRef<bool> wanted) {
  Block &source = score.front();
  RegionArguments arguments = RegionArguments::of(RegionRole::Score, source);
  assert(gradient.empty() && wanted.size() == arguments.captures.size());
  OpBuilder builder(score.getContext());
  Block &target =
      addRegionBlock(builder, score.getLoc(), gradient, RegionRole::Gradient,
                     cast<FloatType>(arguments.score.getType()),
                     arguments.captures.getTypes());
  if (succeeded(Differentiator(score, target, wanted).run()))
    return success();
  gradient.getBlocks().clear();
  return failure();
}

SmallVector<bool> burst::gradientCaptures(Region &gradient) {
  Block &block = gradient.front();
  size_t count =
      RegionArguments::of(RegionRole::Gradient, block).captures.size();
  unsigned first = block.getNumArguments() - count;
  SmallVector<bool> result(count, false);
  for (auto op : block.getOps<ContributeOp>())
    result[cast<BlockArgument>(op.getTable()).getArgNumber() - first] = true;
  return result;
}

Sharing burst::sharingOf(Region &gradient, size_t capture) {
  Block &block = gradient.front();
  RegionArguments arguments = RegionArguments::of(RegionRole::Gradient, block);
  SmallVector<ContributeOp> all;
  for (auto op : block.getOps<ContributeOp>())
    if (op.getTable() == arguments.captures[capture])
      all.push_back(op);
  // By an argument, or by it and the same captured offset in all places.
  auto offsetOf = [&](Value index, Value by) -> std::optional<Value> {
    if (index == by)
      return Value();
    auto sum = index.getDefiningOp<arith::AddIOp>();
    if (sum && sum.getLhs() == by && isa<BlockArgument>(sum.getRhs()) &&
        llvm::is_contained(arguments.captures, sum.getRhs()))
      return sum.getRhs();
    return std::nullopt;
  };
  auto isShared = [&](Value by) {
    if (all.empty())
      return false;
    auto dims = llvm::seq<size_t>(0, all.front().getIndices().size());
    return llvm::none_of(dims, [&](size_t dim) {
      std::optional<Value> first = offsetOf(all.front().getIndices()[dim], by);
      return first && llvm::all_of(all, [&](ContributeOp op) {
               return offsetOf(op.getIndices()[dim], by) == first;
             });
    });
  };
  return {isShared(arguments.b), isShared(arguments.h)};
}
