//===- Run.cpp - runs instructions ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Scalars/Compiler.h"

#include "llvm/ADT/Twine.h"

#include <cmath>

using namespace mlir;
using namespace burst;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// The low `width` bits, sign-extended.
static int64_t wrap(uint64_t value, unsigned width) {
  unsigned shift = 64 - width;
  return static_cast<int64_t>(value << shift) >> shift;
}

/// The low `width` bits, zero-extended.
static uint64_t low(int64_t value, unsigned width) {
  return static_cast<uint64_t>(value) << (64 - width) >> (64 - width);
}

static int64_t truth(bool value) { return value ? -1 : 0; }

static int64_t floorDiv(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

static int64_t ceilDiv(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
}

/// A division that has no result: by zero, or the least integer by -1.
static bool isUndefined(Opcode opcode, int64_t a, int64_t b, unsigned width) {
  bool isSigned = opcode == Opcode::DivS || opcode == Opcode::CeilDivS ||
                  opcode == Opcode::FloorDivS || opcode == Opcode::RemS;
  return b == 0 ||
         (isSigned && b == -1 && a == wrap(1ULL << (width - 1), width));
}

/// What a division gives that is undefined in arith.
static int64_t undefinedQuotient(Opcode opcode, int64_t a, int64_t b) {
  bool isRemainder = opcode == Opcode::RemS || opcode == Opcode::RemU;
  if (b == 0)
    return isRemainder ? a : 0;
  return isRemainder ? 0 : a; // the least integer, by -1
}

static int64_t divide(Opcode opcode, int64_t a, int64_t b, unsigned width) {
  uint64_t ua = low(a, width), ub = low(b, width);
  switch (opcode) {
  case Opcode::DivS:
    return a / b;
  case Opcode::CeilDivS:
    return ceilDiv(a, b);
  case Opcode::FloorDivS:
    return floorDiv(a, b);
  case Opcode::RemS:
    return a % b;
  case Opcode::DivU:
    return wrap(ua / ub, width);
  case Opcode::CeilDivU:
    return wrap(ua / ub + (ua % ub != 0), width);
  default:
    return wrap(ua % ub, width);
  }
}

/// A shift by the width or more leaves what is left when all bits are shifted
/// out: zeros, or copies of the sign.
static int64_t shift(Opcode opcode, int64_t a, int64_t b, unsigned width) {
  uint64_t amount = low(b, width);
  if (amount >= width)
    return opcode == Opcode::ShrS && a < 0 ? -1 : 0;
  if (opcode == Opcode::Shl)
    return wrap(static_cast<uint64_t>(a) << amount, width);
  if (opcode == Opcode::ShrS)
    return a >> amount;
  return wrap(low(a, width) >> amount, width);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static double largestOf(const llvm::fltSemantics &semantics) {
  APFloat largest = APFloat::getLargest(semantics);
  bool losesInfo;
  largest.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
  return largest.convertToDouble();
}

double burst::roundTo(double value, Type type) {
  if (type.isF64() || !std::isfinite(value))
    return value;
  if (type.isF32())
    return static_cast<float>(value);
  const llvm::fltSemantics &semantics =
      cast<FloatType>(type).getFloatSemantics();
  // The spacing of the type's numbers around the value; it stops shrinking
  // where they become subnormal.
  int exponent = value == 0 ? 0 : std::ilogb(value);
  exponent = std::max<int>(exponent, APFloat::semanticsMinExponent(semantics));
  int digits = static_cast<int>(APFloat::semanticsPrecision(semantics)) - 1;
  double rounded = std::ldexp(
      std::nearbyint(std::ldexp(value, digits - exponent)), exponent - digits);
  double largest = largestOf(semantics);
  if (std::abs(rounded) > largest)
    return std::copysign(HUGE_VAL, value);
  return rounded;
}

/// A NaN has the bits of the positive quiet one without a payload.
static int64_t toBits(double value, Type type) {
  APFloat number = std::isnan(value) ? APFloat::getQNaN(APFloat::IEEEdouble())
                                     : APFloat(value);
  bool losesInfo;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 APFloat::rmNearestTiesToEven, &losesInfo);
  return number.bitcastToAPInt().getSExtValue();
}

static double fromBits(int64_t bits, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  APFloat number(cast<FloatType>(type).getFloatSemantics(),
                 APInt(width, low(bits, width)));
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToDouble();
}

/// Whether an integer of this width is what the value rounds to, toward zero.
static bool holds(double value, unsigned width, bool isSigned) {
  double least = isSigned ? -std::ldexp(1.0, width - 1) : 0.0;
  double limit = std::ldexp(1.0, isSigned ? width - 1 : width);
  double whole = std::trunc(value);
  return whole >= least && whole < limit;
}

/// Rounds toward zero and saturates; NaN gives 0.
static int64_t toInteger(double value, unsigned width, bool isSigned) {
  if (std::isnan(value))
    return 0;
  if (!holds(value, width, isSigned)) {
    uint64_t least = isSigned ? uint64_t{1} << (width - 1) : 0;
    return wrap(value < 0 ? least : ~least, width);
  }
  if (isSigned)
    return static_cast<int64_t>(value);
  return wrap(static_cast<uint64_t>(std::trunc(value)), width);
}

/// Rounds once: of a number of more bits than an f64 has, the last one stands
/// for all that are cut off, so that no new tie arises.
static double fromInteger(uint64_t magnitude, bool isNegative, Type type) {
  int excess = 11 - llvm::countl_zero(magnitude);
  if (excess > 0 && !type.isF64()) {
    uint64_t lost = magnitude & ((uint64_t{1} << excess) - 1);
    magnitude -= lost;
    magnitude |= static_cast<uint64_t>(lost != 0) << excess;
  }
  double value = static_cast<double>(magnitude);
  if (type.getIntOrFloatBitWidth() < 32) // by way of f32
    value = static_cast<float>(value);
  return roundTo(isNegative ? -value : value, type);
}

static bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  using Predicate = arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case Predicate::AlwaysFalse:
    return false;
  case Predicate::OEQ:
    return !unordered && a == b;
  case Predicate::OGT:
    return !unordered && a > b;
  case Predicate::OGE:
    return !unordered && a >= b;
  case Predicate::OLT:
    return !unordered && a < b;
  case Predicate::OLE:
    return !unordered && a <= b;
  case Predicate::ONE:
    return !unordered && a != b;
  case Predicate::ORD:
    return !unordered;
  case Predicate::UEQ:
    return unordered || a == b;
  case Predicate::UGT:
    return unordered || a > b;
  case Predicate::UGE:
    return unordered || a >= b;
  case Predicate::ULT:
    return unordered || a < b;
  case Predicate::ULE:
    return unordered || a <= b;
  case Predicate::UNE:
    return unordered || a != b;
  case Predicate::UNO:
    return unordered;
  case Predicate::AlwaysTrue:
    return true;
  }
  return false;
}

static double minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  if (a == 0 && b == 0)
    return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

/// The other one, where one is NaN.
static double minimumNumber(double a, double b) {
  if (std::isnan(a))
    return b;
  return std::isnan(b) ? a : minimum(a, b);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// False where the environment must say what is wrong.
bool Program::runSegment(const Instruction &in, Frame &frame,
                         const Environment &environment) const {
  const OperandList &list = operandLists[in.operands];
  int64_t index = frame.scalars[list.operands[0].number].i;
  int64_t owner = frame.scalars[list.operands[1].number].i;
  int64_t extent = frame.scalars[list.operands[2].number].i;
  const Deal &deal = deals[in.a];
  if (owner < 0 || owner >= environment.numRanks() || index < 0 ||
      index >= deal.numSegments())
    return false;
  burst::Segment s = deal.segment(owner, index, extent);
  int64_t values[] = {s.begin, s.end(), s.count, s.step, s.block};
  for (auto [slot, value] : llvm::zip_equal(list.results, values))
    frame.scalars[slot.number].i = value;
  return true;
}

Step Program::runExternal(const Instruction &in, Frame &frame,
                          Environment &environment) const {
  const OperandList &list = operandLists[in.operands];
  ExternalCall call{in.op,        in.operands, list.operands,
                    list.results, frame,       list.last};
  Step step = in.opcode == Opcode::Call ? environment.call(call)
                                        : environment.execute(call);
  if (step == Step::Done)
    for (uint32_t number : list.released)
      frame.objects[number].reset();
  return step;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

Frame Program::makeFrame() const {
  Frame frame;
  // Instructions on objects read scalars of the same numbers, and drop them.
  frame.scalars.resize(std::max({numScalars, numObjects, 1U}));
  frame.objects.resize(numObjects);
  return frame;
}

/// More than any schedule of 2048 ranks takes.
static constexpr uint64_t maxJumps = uint64_t{1} << 28;

static Step failEndless(const Instruction &in, Environment &environment) {
  environment.fault(in.op->getLoc(), "does not end: it goes round its loops "
                                     "more than 2^28 times");
  return Step::Failed;
}

Step Program::run(Frame &frame, Environment &environment) const {
  Scalar *s = frame.scalars.data();
  // Added to what may be -0, which it makes 0, or changes nothing.
  const double noZero = options.isTotal ? 0.0 : -0.0;
  uint32_t next = frame.next;
  while (true) {
    const Instruction &in = code[next];
    Scalar a = s[in.a], b = s[in.b];
    auto unsignedLess = [&] {
      return static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i);
    };
    switch (in.opcode) {
    case Opcode::Add:
      s[in.dst].i = wrap(static_cast<uint64_t>(a.i) + b.i, in.width);
      break;
    case Opcode::Sub:
      s[in.dst].i = wrap(static_cast<uint64_t>(a.i) - b.i, in.width);
      break;
    case Opcode::Mul:
      s[in.dst].i = wrap(static_cast<uint64_t>(a.i) * b.i, in.width);
      break;
    case Opcode::RemU:
      if (in.width == 64 && b.i != 0) {
        s[in.dst].i = static_cast<int64_t>(static_cast<uint64_t>(a.i) %
                                           static_cast<uint64_t>(b.i));
        break;
      }
      [[fallthrough]];
    case Opcode::DivS:
    case Opcode::DivU:
    case Opcode::CeilDivS:
    case Opcode::CeilDivU:
    case Opcode::FloorDivS:
    case Opcode::RemS:
      if (isUndefined(in.opcode, a.i, b.i, in.width)) {
        if (options.isTotal) {
          s[in.dst].i = undefinedQuotient(in.opcode, a.i, b.i);
          break;
        }
        environment.fault(in.op->getLoc(),
                          "divides " + Twine(a.i) + " by " + Twine(b.i));
        return Step::Failed;
      }
      s[in.dst].i = divide(in.opcode, a.i, b.i, in.width);
      break;
    case Opcode::And:
      s[in.dst].i = a.i & b.i;
      break;
    case Opcode::Or:
      s[in.dst].i = a.i | b.i;
      break;
    case Opcode::Xor:
      s[in.dst].i = a.i ^ b.i;
      break;
    case Opcode::Shl:
    case Opcode::ShrS:
    case Opcode::ShrU:
      if (!options.isTotal && low(b.i, in.width) >= in.width) {
        environment.fault(in.op->getLoc(), "shifts " + Twine(in.width) +
                                               " bits by " +
                                               Twine(low(b.i, in.width)));
        return Step::Failed;
      }
      s[in.dst].i = shift(in.opcode, a.i, b.i, in.width);
      break;
    case Opcode::MinS:
      s[in.dst].i = std::min(a.i, b.i);
      break;
    case Opcode::MaxS:
      s[in.dst].i = std::max(a.i, b.i);
      break;
    case Opcode::MinU: // Sign extension keeps the unsigned order.
      s[in.dst].i = unsignedLess() ? a.i : b.i;
      break;
    case Opcode::MaxU:
      s[in.dst].i = unsignedLess() ? b.i : a.i;
      break;
    case Opcode::Equal:
      s[in.dst].i = truth(a.i == b.i);
      break;
    case Opcode::NotEqual:
      s[in.dst].i = truth(a.i != b.i);
      break;
    case Opcode::LessS:
      s[in.dst].i = truth(a.i < b.i);
      break;
    case Opcode::LessEqualS:
      s[in.dst].i = truth(a.i <= b.i);
      break;
    case Opcode::LessU:
      s[in.dst].i = truth(unsignedLess());
      break;
    case Opcode::LessEqualU:
      s[in.dst].i = truth(unsignedLess() || a.i == b.i);
      break;
    case Opcode::Select:
      s[in.dst] = a.i != 0 ? b : s[in.c];
      break;
    case Opcode::ExtendU:
      s[in.dst].i = static_cast<int64_t>(low(a.i, in.width));
      break;
    case Opcode::Wrap:
      s[in.dst].i = wrap(a.i, in.width);
      break;
    case Opcode::AbsI:
      s[in.dst].i = a.i < 0 ? wrap(-static_cast<uint64_t>(a.i), in.width) : a.i;
      break;
    case Opcode::AddF:
      s[in.dst].f = a.f + b.f;
      break;
    case Opcode::SubF:
      s[in.dst].f = a.f - b.f;
      break;
    case Opcode::MulF:
      s[in.dst].f = a.f * b.f;
      break;
    case Opcode::DivF:
      s[in.dst].f = a.f / b.f;
      break;
    case Opcode::RemF:
      s[in.dst].f = std::fmod(a.f, b.f);
      break;
    case Opcode::NegF:
      s[in.dst].f = -a.f;
      break;
    case Opcode::MinimumF:
      s[in.dst].f = minimum(a.f, b.f);
      break;
    case Opcode::MaximumF:
      s[in.dst].f = -minimum(-a.f, -b.f);
      break;
    case Opcode::MinNumF:
      s[in.dst].f = minimumNumber(a.f, b.f) + noZero;
      break;
    case Opcode::MaxNumF:
      s[in.dst].f = -minimumNumber(-a.f, -b.f) + noZero;
      break;
    case Opcode::FmaF:
      s[in.dst].f = std::fma(a.f, b.f, s[in.c].f);
      break;
    case Opcode::CompareF:
      s[in.dst].i = truth(
          compareFloats(static_cast<arith::CmpFPredicate>(in.width), a.f, b.f));
      break;
    case Opcode::SignedToF:
      s[in.dst].f = fromInteger(a.i < 0 ? -static_cast<uint64_t>(a.i) : a.i,
                                a.i < 0, in.op->getResult(0).getType());
      break;
    case Opcode::UnsignedToF:
      s[in.dst].f = fromInteger(low(a.i, in.width), /*isNegative=*/false,
                                in.op->getResult(0).getType());
      break;
    case Opcode::FToSigned:
    case Opcode::FToUnsigned: {
      bool isSigned = in.opcode == Opcode::FToSigned;
      if (!options.isTotal && !holds(a.f, in.width, isSigned)) {
        environment.fault(in.op->getLoc(), "converts what an i" +
                                               Twine(in.width) +
                                               " cannot hold");
        return Step::Failed;
      }
      s[in.dst].i = toInteger(a.f, in.width, isSigned);
      break;
    }
    case Opcode::RoundF:
      s[in.dst].f = roundTo(a.f, in.op->getResult(0).getType());
      break;
    case Opcode::BitsToF:
      s[in.dst].f = fromBits(a.i, in.op->getResult(0).getType());
      break;
    case Opcode::FToBits:
      s[in.dst].i = toBits(a.f, in.op->getOperand(0).getType());
      break;
    case Opcode::UnaryF:
      s[in.dst].f = in.imm.unary(a.f);
      break;
    case Opcode::BinaryF:
      s[in.dst].f = in.imm.binary(a.f, b.f);
      break;
    case Opcode::PowerI:
      s[in.dst].f = std::pow(a.f, static_cast<double>(b.i));
      break;
    case Opcode::Constant:
      s[in.dst] = in.imm.value;
      break;
    case Opcode::ConstantObject:
      frame.objects[in.dst] = constants[in.imm.i];
      break;
    case Opcode::Copy:
      s[in.dst] = a;
      break;
    case Opcode::CopyObject:
      frame.objects[in.dst] = frame.objects[in.a];
      break;
    case Opcode::MoveObject:
      frame.objects[in.dst] = std::move(frame.objects[in.a]);
      break;
    case Opcode::ReleaseObject:
      frame.objects[in.dst].reset();
      break;
    case Opcode::Jump:
      next = in.imm.i;
      if (++frame.jumps < maxJumps)
        continue;
      return failEndless(in, environment);
    case Opcode::JumpIfNot:
      if (a.i == 0) {
        next = in.imm.i;
        continue;
      }
      break;
    case Opcode::JumpUnlessLess:
      if (a.i >= b.i) {
        next = in.imm.i;
        continue;
      }
      break;
    case Opcode::JumpUnlessLessU:
      if (!unsignedLess()) {
        next = in.imm.i;
        continue;
      }
      break;
    case Opcode::CheckStep: // Undefined upstream; here it must not hang.
      if (a.i <= 0) {
        environment.fault(in.op->getLoc(),
                          "runs a loop with the step " + Twine(a.i));
        return Step::Failed;
      }
      break;
    case Opcode::NextTurn:
    case Opcode::NextTurnU: {
      Scalar &iv = s[in.dst];
      iv.i = static_cast<int64_t>(static_cast<uint64_t>(iv.i) + s[in.c].i);
      bool isBelow =
          in.opcode == Opcode::NextTurn
              ? iv.i < b.i
              : static_cast<uint64_t>(iv.i) < static_cast<uint64_t>(b.i);
      if (!isBelow)
        break;
      next = in.imm.i;
      if (++frame.jumps < maxJumps)
        continue;
      return failEndless(in, environment);
    }
    case Opcode::Return:
      frame.next = 0;
      return Step::Done;
    case Opcode::Extract:
      if (extract(in, frame))
        break;
      [[fallthrough]];
    case Opcode::Dim:
    case Opcode::TableRange:
    case Opcode::AllocateTable:
    case Opcode::Contribute:
      if (runTable(in, frame, environment) == Step::Failed)
        return Step::Failed;
      break;
    case Opcode::StoreTable:
      store(in, frame);
      break;
    case Opcode::Segment:
      if (runSegment(in, frame, environment))
        break;
      [[fallthrough]];
    case Opcode::Call:
    case Opcode::External:
      frame.next = next;
      if (Step step = runExternal(in, frame, environment); step != Step::Done)
        return step;
      break;
    }
    ++next;
  }
}
