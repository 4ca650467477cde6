//===- Run.cpp - runs instructions ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Scalars/RunScalar.h"

using namespace mlir;
using namespace burst;

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
  if (!isSegment(layout, owner, index, environment.numOwners()))
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

static Step failEndless(const Instruction &in, Environment &environment) {
  environment.fault(in.op->getLoc(), "does not end: it goes round its loops "
                                     "more than 2^28 times");
  return Step::Failed;
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
    case Opcode::RunLanes:
      if (!runLanes(in, frame, environment))
        break;
      next = in.imm.i;
      continue;
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
