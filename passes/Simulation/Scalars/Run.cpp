//===- Run.cpp - runs instructions ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Scalars/Arithmetic.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Compiler.h"

using namespace mlir;
using namespace burst;

//===----------------------------------------------------------------------===//
// Instructions on scalars
//===----------------------------------------------------------------------===//
//
// Each of these knows some instructions and is false for others. Inlined, their
// switches become one, as long as nothing is computed in front of them.

LLVM_ATTRIBUTE_ALWAYS_INLINE
static bool runMove(const Instruction &in, Scalar a, Scalar b, const Scalar *s,
                    Scalar &result) {
  switch (in.opcode) {
  case Opcode::Constant:
    result = in.imm.value;
    return true;
  case Opcode::Copy:
    result = a;
    return true;
  case Opcode::Select:
    result = a.i != 0 ? b : s[in.c];
    return true;
  default:
    return false;
  }
}

LLVM_ATTRIBUTE_ALWAYS_INLINE
static bool runInteger(const Instruction &in, int64_t a, int64_t b,
                       int64_t &result) {
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (in.opcode) {
  case Opcode::Add:
    result = wrap(ua + ub, in.width);
    return true;
  case Opcode::Sub:
    result = wrap(ua - ub, in.width);
    return true;
  case Opcode::Mul:
    result = wrap(ua * ub, in.width);
    return true;
  case Opcode::RemU: // The others are left to runPartial.
    if (in.width != 64 || b == 0)
      return false;
    result = static_cast<int64_t>(ua % ub);
    return true;
  case Opcode::And:
    result = a & b;
    return true;
  case Opcode::Or:
    result = a | b;
    return true;
  case Opcode::Xor:
    result = a ^ b;
    return true;
  case Opcode::MinS:
    result = std::min(a, b);
    return true;
  case Opcode::MaxS:
    result = std::max(a, b);
    return true;
  case Opcode::MinU: // Sign extension keeps the unsigned order.
    result = ua < ub ? a : b;
    return true;
  case Opcode::MaxU:
    result = ua < ub ? b : a;
    return true;
  case Opcode::ExtendU:
    result = static_cast<int64_t>(low(a, in.width));
    return true;
  case Opcode::Wrap:
    result = wrap(ua, in.width);
    return true;
  case Opcode::AbsI:
    result = a < 0 ? wrap(-ua, in.width) : a;
    return true;
  default:
    return false;
  }
}

LLVM_ATTRIBUTE_ALWAYS_INLINE
static bool runCompare(const Instruction &in, Scalar a, Scalar b,
                       int64_t &result) {
  auto ua = static_cast<uint64_t>(a.i), ub = static_cast<uint64_t>(b.i);
  switch (in.opcode) {
  case Opcode::Equal:
    result = truth(a.i == b.i);
    return true;
  case Opcode::NotEqual:
    result = truth(a.i != b.i);
    return true;
  case Opcode::LessS:
    result = truth(a.i < b.i);
    return true;
  case Opcode::LessEqualS:
    result = truth(a.i <= b.i);
    return true;
  case Opcode::LessU:
    result = truth(ua < ub);
    return true;
  case Opcode::LessEqualU:
    result = truth(ua <= ub);
    return true;
  case Opcode::CompareF:
    result = truth(
        compareFloats(static_cast<arith::CmpFPredicate>(in.width), a.f, b.f));
    return true;
  default:
    return false;
  }
}

LLVM_ATTRIBUTE_ALWAYS_INLINE
static bool runFloat(const Instruction &in, Scalar a, Scalar b, const Scalar *s,
                     const ProgramOptions &options, double &result) {
  // Added to what may be -0, which it makes 0, or changes nothing.
  auto noZero = [&] { return options.isTotal ? 0.0 : -0.0; };
  switch (in.opcode) {
  case Opcode::AddF:
    result = a.f + b.f;
    return true;
  case Opcode::SubF:
    result = a.f - b.f;
    return true;
  case Opcode::MulF:
    result = a.f * b.f;
    return true;
  case Opcode::DivF:
    result = a.f / b.f;
    return true;
  case Opcode::RemF:
    result = std::fmod(a.f, b.f);
    return true;
  case Opcode::NegF:
    result = -a.f;
    return true;
  case Opcode::MinimumF:
    result = minimum(a.f, b.f);
    return true;
  case Opcode::MaximumF:
    result = -minimum(-a.f, -b.f);
    return true;
  case Opcode::MinNumF:
    result = minimumNumber(a.f, b.f) + noZero();
    return true;
  case Opcode::MaxNumF:
    result = -minimumNumber(-a.f, -b.f) + noZero();
    return true;
  case Opcode::FmaF:
    result = std::fma(a.f, b.f, s[in.c].f);
    return true;
  case Opcode::UnaryF:
    result = in.imm.unary(a.f);
    return true;
  case Opcode::BinaryF:
    result = in.imm.binary(a.f, b.f);
    return true;
  case Opcode::PowerI:
    result = std::pow(a.f, static_cast<double>(b.i));
    return true;
  default:
    return false;
  }
}

LLVM_ATTRIBUTE_ALWAYS_INLINE
static bool runConversion(const Instruction &in, Scalar a, Scalar &result) {
  auto type = [&] { return in.op->getResult(0).getType(); };
  switch (in.opcode) {
  case Opcode::SignedToF:
    result.f = fromInteger(a.i < 0 ? -static_cast<uint64_t>(a.i) : a.i, a.i < 0,
                           type());
    return true;
  case Opcode::UnsignedToF:
    result.f = fromInteger(low(a.i, in.width), /*isNegative=*/false, type());
    return true;
  case Opcode::RoundF:
    result.f = roundTo(a.f, type());
    return true;
  case Opcode::BitsToF:
    result.f = fromBits(a.i, type());
    return true;
  case Opcode::FToBits:
    result.i = toBits(a.f, in.op->getOperand(0).getType());
    return true;
  default:
    return false;
  }
}

/// Instructions that are undefined for some operands, which give a fault unless
/// all `isTotal`; false on one.
LLVM_ATTRIBUTE_ALWAYS_INLINE
static bool runPartial(const Instruction &in, Scalar a, Scalar b,
                       const ProgramOptions &options, Environment &environment,
                       int64_t &result) {
  auto fault = [&](const Twine &message) {
    environment.fault(in.op->getLoc(), message);
    return false;
  };
  switch (in.opcode) {
  case Opcode::DivS:
  case Opcode::DivU:
  case Opcode::CeilDivS:
  case Opcode::CeilDivU:
  case Opcode::FloorDivS:
  case Opcode::RemS:
  case Opcode::RemU: {
    bool isDefined = !isUndefined(in.opcode, a.i, b.i, in.width);
    if (!isDefined && !options.isTotal)
      return fault("divides " + Twine(a.i) + " by " + Twine(b.i));
    result = isDefined ? divide(in.opcode, a.i, b.i, in.width)
                       : undefinedQuotient(in.opcode, a.i, b.i);
    return true;
  }
  case Opcode::Shl:
  case Opcode::ShrS:
  case Opcode::ShrU:
    if (!options.isTotal && low(b.i, in.width) >= in.width)
      return fault("shifts " + Twine(in.width) + " bits by " +
                   Twine(low(b.i, in.width)));
    result = shift(in.opcode, a.i, b.i, in.width);
    return true;
  case Opcode::FToSigned:
  case Opcode::FToUnsigned: {
    bool isSigned = in.opcode == Opcode::FToSigned;
    if (!options.isTotal && !holds(a.f, in.width, isSigned))
      return fault("converts what an i" + Twine(in.width) + " cannot hold");
    result = toInteger(a.f, in.width, isSigned);
    return true;
  }
  default:
    llvm_unreachable("an instruction of no kind");
  }
}

/// Instructions that give a scalar; false on a fault.
LLVM_ATTRIBUTE_ALWAYS_INLINE
static bool runScalar(const Instruction &in, const Scalar *s,
                      const ProgramOptions &options, Environment &environment,
                      Scalar &result) {
  Scalar a = s[in.a], b = s[in.b];
  return runMove(in, a, b, s, result) || runInteger(in, a.i, b.i, result.i) ||
         runCompare(in, a, b, result.i) ||
         runFloat(in, a, b, s, options, result.f) ||
         runConversion(in, a, result) ||
         runPartial(in, a, b, options, environment, result.i);
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
  const Layout &layout = layouts[in.a];
  if (owner < 0 || owner >= environment.numRanks() ||
      owner >= layout.numOwners() || index < 0 || index >= layout.numSegments())
    return false;
  burst::Segment s = layout.segment(owner, index, extent);
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

LLVM_ATTRIBUTE_ALWAYS_INLINE
static bool runObject(const Instruction &in, std::vector<Object> &objects,
                      const std::vector<Object> &constants) {
  switch (in.opcode) {
  case Opcode::ConstantObject:
    objects[in.dst] = constants[in.imm.i];
    return true;
  case Opcode::CopyObject:
    objects[in.dst] = objects[in.a];
    return true;
  case Opcode::MoveObject:
    objects[in.dst] = std::move(objects[in.a]);
    return true;
  case Opcode::ReleaseObject:
    objects[in.dst].reset();
    return true;
  default:
    return false;
  }
}

/// Gives a loop's induction variable its next value: whether there is a turn
/// for it.
LLVM_ATTRIBUTE_ALWAYS_INLINE
static bool goesRound(const Instruction &in, int64_t &iv, int64_t step,
                      int64_t bound) {
  iv = static_cast<int64_t>(static_cast<uint64_t>(iv) + step);
  return in.opcode == Opcode::NextTurn
             ? iv < bound
             : static_cast<uint64_t>(iv) < static_cast<uint64_t>(bound);
}

Step Program::run(Frame &frame, Environment &environment) const {
  Scalar *s = frame.scalars.data();
  uint32_t next = frame.next;
  while (true) {
    const Instruction &in = code[next];
    Scalar a = s[in.a], b = s[in.b];
    switch (in.opcode) {
    case Opcode::JumpIfNot:
      if (a.i != 0)
        break;
      next = in.imm.i;
      continue;
    case Opcode::JumpUnlessLess:
      if (a.i < b.i)
        break;
      next = in.imm.i;
      continue;
    case Opcode::JumpUnlessLessU:
      if (static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i))
        break;
      next = in.imm.i;
      continue;
    case Opcode::CheckStep: // Undefined upstream; here it must not hang.
      if (a.i > 0)
        break;
      environment.fault(in.op->getLoc(),
                        "runs a loop with the step " + Twine(a.i));
      return Step::Failed;
    case Opcode::NextTurn:
    case Opcode::NextTurnU:
      if (!goesRound(in, s[in.dst].i, s[in.c].i, b.i))
        break;
      [[fallthrough]];
    case Opcode::Jump:
      next = in.imm.i;
      if (++frame.jumps < maxJumps)
        continue;
      return failEndless(in, environment);
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
    default: {
      if (runObject(in, frame.objects, constants))
        break;
      Scalar result;
      if (!runScalar(in, s, options, environment, result))
        return Step::Failed;
      s[in.dst] = result;
    }
    }
    ++next;
  }
}
