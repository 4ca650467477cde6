//===- GuardRegions.cpp - a value for every op of a region ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites the ops of user's regions that are undefined for some operands, or
// that a fold of upstream changes, to ops that are defined for all of them.
// What they then compute is said in the documentation of burst.attention.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

namespace burst {
#define GEN_PASS_DEF_GUARDREGIONSPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

static unsigned widthOf(Type type) {
  return ConstantIntRanges::getStorageBitwidth(type);
}

static bool isShort(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32;
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

namespace {

/// Ranges of the integers of a region, by upstream's rules.
class Ranges {
public:
  explicit Ranges(Block &block) {
    // Kernels evaluate whole tiles, so positions may lie beyond the sizes.
    for (BlockArgument argument : block.getArguments())
      if (argument.getType().isIndex() && !isCaptured(argument, block))
        known.try_emplace(argument, ConstantIntRanges::fromUnsigned(
                                        APInt(64, 0), APInt(64, limit)));
  }

  ConstantIntRanges of(Value value) const {
    auto found = known.find(value);
    return found != known.end()
               ? found->second
               : ConstantIntRanges::maxRange(widthOf(value.getType()));
  }

  /// Finds the ranges of the results from those of the operands.
  void infer(Operation &op) {
    auto inferrable = dyn_cast<InferIntRangeInterface>(op);
    if (!inferrable)
      return;
    SmallVector<ConstantIntRanges> operands =
        llvm::map_to_vector(op.getOperands(), [&](Value v) { return of(v); });
    inferrable.inferResultRanges(
        operands, [&](Value result, const ConstantIntRanges &range) {
          known.insert_or_assign(result, range);
        });
  }

private:
  static bool isCaptured(BlockArgument argument, Block &block) {
    auto op = cast<AttentionInterface>(block.getParentOp());
    bool isMask = block.getParent() == &op.getMask();
    OperandRange captures =
        isMask ? op.getMaskCaptures() : op.getScoreCaptures();
    return argument.getArgNumber() + captures.size() >= block.getNumArguments();
  }

  static constexpr uint64_t limit = uint64_t{2} * maxPositions;
  DenseMap<Value, ConstantIntRanges> known;
};

//===----------------------------------------------------------------------===//
// Guards
//===----------------------------------------------------------------------===//

/// Guards the ops of one region, in order.
class Guard {
public:
  explicit Guard(Block &block)
      : block(block), ranges(block),
        b(block.getParentOp()->getLoc(), block.getParentOp()->getContext()) {}

  LogicalResult run();

private:
  LogicalResult guard(Operation &op);
  LogicalResult guardDivision(Operation &op, bool isSigned, bool isRemainder);
  LogicalResult guardShift(Operation &op);
  LogicalResult guardExtract(tensor::ExtractOp op);
  LogicalResult guardToInteger(Operation &op, bool isSigned);
  void guardFromInteger(Operation &op);
  void widen(Operation &op);
  void guardIndexCast(Operation &op);
  void guardBits(arith::BitcastOp op);
  void guardSign(math::CopySignOp op);
  void guardZero(Operation &op);
  void dropFlags(Operation &op);

  template <typename Op, typename... Args>
  Value make(Args &&...args) {
    auto op = Op::create(b, b.getLoc(), std::forward<Args>(args)...);
    ranges.infer(*op);
    return op->getResult(0);
  }
  Value integer(Type type, const APInt &value) {
    return make<arith::ConstantOp>(b.getIntegerAttr(type, value));
  }
  Value integer(Type type, int64_t value) {
    return integer(type, APInt(widthOf(type), value, /*isSigned=*/true,
                               /*implicitTrunc=*/true));
  }
  Value real(Type type, double value) {
    return make<arith::ConstantOp>(b.getFloatAttr(type, value));
  }
  Value equals(Value value, int64_t number) {
    return make<arith::CmpIOp>(arith::CmpIPredicate::eq, value,
                               integer(value.getType(), number));
  }
  Value isNaN(Value value) {
    return make<arith::CmpFOp>(arith::CmpFPredicate::UNO, value, value);
  }
  Value select(Value condition, Value x, Value y) {
    return make<arith::SelectOp>(condition, x, y);
  }
  /// A copy of the op with one operand exchanged.
  Value with(Operation &op, unsigned operand, Value value) {
    Operation *copy = b.clone(op);
    copy->setOperand(operand, value);
    ranges.infer(*copy);
    return copy->getResult(0);
  }
  void replace(Operation &op, Value value) {
    op.getResult(0).replaceAllUsesWith(value);
    op.erase();
  }
  bool mayBe(Value value, int64_t number) const {
    ConstantIntRanges range = ranges.of(value);
    APInt n(widthOf(value.getType()), number, true, true);
    return range.umin().ule(n) && range.umax().uge(n) && range.smin().sle(n) &&
           range.smax().sge(n);
  }
  bool isAlways(Value value, int64_t number) const {
    std::optional<APInt> constant = ranges.of(value).getConstantValue();
    return constant &&
           constant->eq(APInt(constant->getBitWidth(), number, true, true));
  }

  Block &block;
  Ranges ranges;
  ImplicitLocOpBuilder b;
  bool hasRoundings = false; ///< from a float type to a narrower one
};

} // namespace

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// x / 0 = 0, x rem 0 = x; the least integer divided by -1 wraps to itself.
LogicalResult Guard::guardDivision(Operation &op, bool isSigned,
                                   bool isRemainder) {
  Value x = op.getOperand(0), y = op.getOperand(1);
  Type type = y.getType();
  if (isAlways(y, 0))
    return op.emitOpError("divides by 0 for every pair; wanted a divisor that "
                          "is not always 0");
  if (type.isInteger(1)) { // divisors are 0 and the one whose quotient is x
    Value result =
        isRemainder
            ? make<arith::AndIOp>(x, make<arith::XOrIOp>(y, integer(type, 1)))
            : make<arith::AndIOp>(x, y);
    replace(op, result);
    return success();
  }
  bool mayBeZero = mayBe(y, 0), mayBeMinusOne = isSigned && mayBe(y, -1);
  if (!mayBeZero && !mayBeMinusOne)
    return success();
  Value isZero = mayBeZero ? equals(y, 0) : Value();
  Value isMinusOne = mayBeMinusOne ? equals(y, -1) : Value();
  Value isUnsafe = !isZero       ? isMinusOne
                   : !isMinusOne ? isZero
                                 : make<arith::OrIOp>(isZero, isMinusOne);
  Value result = with(op, 1, select(isUnsafe, integer(type, 1), y));
  if (isMinusOne && !isRemainder)
    result =
        select(isMinusOne, make<arith::SubIOp>(integer(type, 0), x), result);
  if (isZero)
    result = select(isZero, isRemainder ? x : integer(type, 0), result);
  replace(op, result);
  return success();
}

/// Amounts are unsigned. One of the width or more shifts all bits out: zeros
/// are left, or copies of the sign.
LogicalResult Guard::guardShift(Operation &op) {
  Value amount = op.getOperand(1);
  Type type = amount.getType();
  unsigned width = widthOf(type);
  if (ranges.of(amount).umin().uge(width))
    return op.emitOpError("shifts all ")
           << width << " bits out for every pair; wanted an amount that is "
           << "not always " << width << " or more";
  if (ranges.of(amount).umax().ult(width))
    return success();
  Value safe = make<arith::MinUIOp>(amount, integer(type, width - 1));
  Value result = with(op, 1, safe);
  if (!isa<arith::ShRSIOp>(op)) {
    Value isInside = make<arith::CmpIOp>(arith::CmpIPredicate::ult, amount,
                                         integer(type, width));
    result = select(isInside, result, integer(type, 0));
  }
  replace(op, result);
  return success();
}

/// Upstream folds a pair of index_casts, also where the first one narrows: an
/// index becomes narrow by way of i64, which no fold undoes.
void Guard::guardIndexCast(Operation &op) {
  Value x = op.getOperand(0);
  Type type = op.getResult(0).getType();
  if (!x.getType().isIndex() || widthOf(type) >= 64)
    return;
  Value wide = make<arith::IndexCastOp>(b.getI64Type(), x);
  replace(op, make<arith::TruncIOp>(type, wide));
}

/// Every level clamps indices into tables; nothing is rewritten. A table
/// without entries is refused later, if there are pairs that read it.
LogicalResult Guard::guardExtract(tensor::ExtractOp op) {
  for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
    ConstantIntRanges range = ranges.of(index);
    int64_t size = op.getTensor().getType().getDimSize(dim);
    bool isAbove = !ShapedType::isDynamic(size) && range.smin().sge(size);
    if (size == 0)
      continue;
    if (!isAbove && !range.smax().isNegative())
      continue;
    auto error = op.emitOpError("reads outside of its table for every pair: "
                                "dimension ")
                 << dim << " has ";
    if (ShapedType::isDynamic(size))
      error << "indices from 0";
    else
      error << size << " entries";
    const APInt &end = isAbove ? range.smin() : range.smax();
    return error << ", read at " << end.getSExtValue()
                 << (isAbove ? " or more" : " or less");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Integers and floats
//===----------------------------------------------------------------------===//

/// Rounds toward zero and saturates; NaN gives 0.
LogicalResult Guard::guardToInteger(Operation &op, bool isSigned) {
  Value x = op.getOperand(0);
  Type type = op.getResult(0).getType();
  unsigned width = widthOf(type);
  APInt most =
      isSigned ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width);
  APFloat number(0.0);
  if (matchPattern(x, m_ConstantFloat(&number))) {
    APSInt rounded(width, !isSigned);
    bool isExact = false;
    if (number.convertToInteger(rounded, APFloat::rmTowardZero, &isExact) ==
        APFloat::opInvalidOp)
      return op.emitOpError("converts a constant that ")
             << type << " cannot hold: " << number.convertToDouble();
    return success();
  }
  if (isShort(x.getType()))
    x = make<arith::ExtFOp>(b.getF32Type(), x); // which has all powers of two
  // Both are exact. The comparisons are false for NaN, which becomes 0.
  double least = isSigned ? -std::ldexp(1.0, width - 1) : 0.0;
  Value limit =
      real(x.getType(), std::ldexp(1.0, isSigned ? width - 1 : width));
  Value isBelow = make<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, limit);
  Value isAbove = make<arith::CmpFOp>(arith::CmpFPredicate::OGE, x, limit);
  Value safe = select(isBelow, x, real(x.getType(), 0.0));
  Value floor = real(x.getType(), least);
  Value isTooSmall =
      make<arith::CmpFOp>(arith::CmpFPredicate::OLT, safe, floor);
  safe = select(isTooSmall, floor, safe);
  replace(op, select(isAbove, integer(type, most), with(op, 0, safe)));
  return success();
}

/// Whether a float may not have all bits of an integer.
static bool isInexact(Value integer, FloatType type) {
  return widthOf(integer.getType()) > type.getFPMantissaWidth();
}

/// What computes with floats of 16 bits computes in f32 and rounds: for +, -,
/// *, / and sqrt that is the number next to the exact result. Processors have
/// no arithmetic for them, and constants fold as this does.
void Guard::widen(Operation &op) {
  if (llvm::none_of(op.getOperandTypes(), isShort) ||
      isa<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, arith::SelectOp,
          arith::FPToSIOp, arith::FPToUIOp>(op))
    return;
  Operation *wide = b.clone(op);
  for (OpOperand &operand : wide->getOpOperands())
    if (isShort(operand.get().getType()))
      operand.set(make<arith::ExtFOp>(b.getF32Type(), operand.get()));
  Value result = wide->getResult(0);
  wide->moveBefore(&op);
  b.setInsertionPoint(&op);
  if (Type type = result.getType(); isShort(type)) {
    result.setType(b.getF32Type());
    result = make<arith::TruncFOp>(type, result);
  }
  replace(op, result);
}

/// To 16 bits by way of f32. Where a region rounds, upstream would make one
/// conversion of this one and the rounding, once folds have brought them
/// together: 0 is added to what f32 may not have all bits of, which changes
/// nothing, and no fold sees through it.
void Guard::guardFromInteger(Operation &op) {
  auto type = cast<FloatType>(op.getResult(0).getType());
  Value x = op.getOperand(0);
  auto single = cast<FloatType>(b.getF32Type());
  bool mayMeetRounding = hasRoundings && isInexact(x, single);
  if (!isShort(type) && !mayMeetRounding)
    return;
  Type wide = isShort(type) ? single : type;
  Value number = isa<arith::SIToFPOp>(op) ? make<arith::SIToFPOp>(wide, x)
                                          : make<arith::UIToFPOp>(wide, x);
  if (isInexact(x, single))
    number = make<arith::AddFOp>(number, real(wide, 0.0));
  replace(op, isShort(type) ? make<arith::TruncFOp>(type, number) : number);
}

/// A NaN has the bits of the positive quiet one without a payload: what sign
/// 0 / 0 has differs from processor to processor.
void Guard::guardBits(arith::BitcastOp op) {
  auto type = dyn_cast<FloatType>(op.getIn().getType());
  if (!type || !op.getType().isInteger())
    return;
  Value nan = make<arith::ConstantOp>(
      b.getFloatAttr(type, APFloat::getQNaN(type.getFloatSemantics())));
  Value x = op.getIn();
  op.getInMutable().assign(select(isNaN(x), nan, x));
}

/// A NaN counts as positive.
void Guard::guardSign(math::CopySignOp op) {
  Value sign = op.getRhs();
  Value positive = real(sign.getType(), 1.0);
  op.getRhsMutable().assign(select(isNaN(sign), positive, sign));
}

/// Which of two zeros minnumf and maxnumf give differs from processor to
/// processor: it is the positive one.
void Guard::guardZero(Operation &op) {
  Operation *copy = b.clone(op);
  Value result = copy->getResult(0);
  replace(op, make<arith::AddFOp>(result, real(result.getType(), 0.0)));
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

/// They promise what need not hold for every pair, and make poison where it
/// does not.
void Guard::dropFlags(Operation &op) {
  SmallVector<StringRef> names;
  auto drop = [&](StringRef name, Attribute none) {
    std::optional<Attribute> flag = op.getInherentAttr(name);
    if (!flag || !*flag || *flag == none)
      return;
    names.push_back(name);
    op.setInherentAttr(b.getStringAttr(name), none);
  };
  MLIRContext *context = b.getContext();
  auto noFastMath =
      arith::FastMathFlagsAttr::get(context, arith::FastMathFlags::none);
  drop("overflowFlags", arith::IntegerOverflowFlagsAttr::get(
                            context, arith::IntegerOverflowFlags::none));
  drop("fastmath",
       isa<arith::ExtFOp, arith::TruncFOp>(op) ? Attribute() : noFastMath);
  drop("isExact", Attribute());
  if (names.empty())
    return;
  auto options = remark::RemarkOpts::name("dropped-flags").category("regions");
  remark::missed(op.getLoc(), options)
      << remark::metric("op", op.getName().getStringRef())
      << remark::metric("flags", llvm::join(names, " "));
}

LogicalResult Guard::guard(Operation &op) {
  dropFlags(op);
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(
          [&](auto) { return guardDivision(op, true, false); })
      .Case<arith::DivUIOp, arith::CeilDivUIOp>(
          [&](auto) { return guardDivision(op, false, false); })
      .Case([&](arith::RemSIOp) { return guardDivision(op, true, true); })
      .Case([&](arith::RemUIOp) { return guardDivision(op, false, true); })
      .Case<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(
          [&](auto) { return guardShift(op); })
      .Case([&](tensor::ExtractOp op) { return guardExtract(op); })
      .Case([&](arith::FPToSIOp) { return guardToInteger(op, true); })
      .Case([&](arith::FPToUIOp) { return guardToInteger(op, false); })
      .Default([&](Operation *) {
        TypeSwitch<Operation *>(&op)
            .Case<arith::SIToFPOp, arith::UIToFPOp>(
                [&](auto) { guardFromInteger(op); })
            .Case<arith::IndexCastOp, arith::IndexCastUIOp>(
                [&](auto) { guardIndexCast(op); })
            .Case<arith::MinNumFOp, arith::MaxNumFOp>(
                [&](auto) { guardZero(op); })
            .Case([&](arith::BitcastOp op) { guardBits(op); })
            .Case([&](math::CopySignOp op) { guardSign(op); });
        return success();
      });
}

LogicalResult Guard::run() {
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    b.setInsertionPoint(&op);
    b.setLoc(op.getLoc());
    widen(op);
  }
  hasRoundings = llvm::any_of(block, llvm::IsaPred<arith::TruncFOp>);
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    b.setInsertionPoint(&op);
    b.setLoc(op.getLoc());
    ranges.infer(op);
    if (failed(guard(op)))
      return failure();
  }
  return success();
}

namespace {
struct GuardRegions : burst::impl::GuardRegionsPassBase<GuardRegions> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](AttentionInterface op) {
      for (Region *region : {&op.getMask(), &op.getScore()})
        if (!region->empty() && failed(Guard(region->front()).run()))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
