//===- RunLanes.cpp - many turns of a loop at once ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The turns of the longest loop of a table know nothing of each other: as many
// as there are lanes are run side by side, each instruction for all of them.
// All lanes take the same jumps. Where they would not, or where one has a
// fault, the loop is run again from its beginning turn by turn, which says what
// is wrong. In the same way programs are run that differ in scalars only.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulation/Scalars/RunScalar.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace burst;

bool Program::canRunInLanes(Opcode opcode) {
  switch (opcode) {
  case Opcode::Extract:
  case Opcode::Segment:
  case Opcode::StoreTable:
    return true;
  default:
    return opcode < Opcode::ConstantObject ||
           (opcode >= Opcode::Jump && opcode <= Opcode::NextTurnU);
  }
}

static bool mayJump(Opcode opcode) {
  return opcode >= Opcode::Jump && opcode <= Opcode::NextTurnU &&
         opcode != Opcode::CheckStep;
}

/// Whether `dst` is a scalar that the instruction makes.
static bool givesScalar(Opcode opcode) {
  return opcode < Opcode::ConstantObject || opcode == Opcode::NextTurn ||
         opcode == Opcode::NextTurnU || opcode == Opcode::Extract;
}

std::optional<Program::LaneCode>
Program::laneCode(uint32_t begin, uint32_t end, std::optional<uint32_t> varying,
                  llvm::function_ref<bool(Opcode)> canRun) const {
  llvm::DenseSet<uint32_t> read, made;
  if (varying)
    made.insert(*varying);
  for (uint32_t at = begin; at < end; ++at) {
    const Instruction &in = code[at];
    if (!canRun(in.opcode))
      return std::nullopt;
    // Slots that are not used are number 0: to read one more does no harm.
    read.insert_range(ArrayRef({in.a, in.b, in.c}));
    if (givesScalar(in.opcode))
      made.insert(in.dst);
    if (in.opcode < Opcode::Extract || in.opcode == Opcode::AllocateTable)
      continue;
    const OperandList &list = operandLists[in.operands];
    for (Slot slot : list.operands)
      if (slot.isScalar)
        read.insert(slot.number);
    for (Slot slot : list.results)
      if (slot.isScalar)
        made.insert(slot.number);
  }
  LaneCode result{begin, end, {}};
  for (uint32_t number : read)
    if (!made.contains(number) && number < numScalars)
      result.given.push_back(number);
  llvm::sort(result.given);
  return result;
}

namespace {

/// In a trial nothing is wrong yet.
class Unheard : public Environment {
public:
  Step execute(const ExternalCall &) override { return Step::Failed; }
  bool executeTogether(const ExternalCall &, const LaneValues &) override {
    return false;
  }
  Step call(const ExternalCall &) override { return Step::Failed; }
  void fault(Location, const Twine &) override {}
  int64_t numOwners() const override { return 0; }
};

} // namespace

/// Frames that are run together, or turns of a loop.
class Program::Lanes {
public:
  static constexpr int64_t width = LaneValues::width;

  /// Of frames that `shareTables` each writes the same to one table.
  Lanes(const Program &program, Frame &frame, Environment &environment,
        bool shareTables = false)
      : program(program), frame(frame), environment(environment),
        shareTables(shareTables) {
    frame.lanes.scalars.resize(frame.scalars.size() * width);
    frame.lanes.segments.resize(program.layouts.size());
  }

  void broadcast(uint32_t slot) {
    std::fill_n(lanes(slot), width, frame.scalars[slot]);
  }
  void broadcast(const LaneCode &code) {
    for (uint32_t slot : code.given)
      broadcast(slot);
  }
  /// Whether all of `count` lanes came to their end.
  bool run(const LaneCode &code, int64_t count);
  Scalar *lanes(uint32_t slot) { return &frame.lanes.scalars[slot * width]; }

private:
  /// What all lanes decide in the same way; none where they do not.
  template <typename Test>
  std::optional<bool> together(Test test) const;
  template <Opcode Known>
  bool runInteger(const Instruction &in);
  template <Opcode Known>
  bool runCompare(const Instruction &in);
  bool runOther(const Instruction &in);
  bool runScalar(const Instruction &in);
  bool extract(const Instruction &in);
  bool runSegment(const Instruction &in);
  bool isSame(uint32_t slot);
  bool store(const Instruction &in);
  bool runOne(const Instruction &in);
  bool runOnce(const Instruction &in);
  bool runExternal(const Instruction &in);
  std::optional<bool> jumps(const Instruction &in);

  const Program &program;
  Frame &frame;
  Environment &environment;
  bool shareTables;
  int64_t count = 0; ///< of lanes in use
};

template <typename Test>
std::optional<bool> Program::Lanes::together(Test test) const {
  int64_t holds = 0;
  for (int64_t lane = 0; lane < count; ++lane)
    holds += test(lane);
  if (holds != 0 && holds != count)
    return std::nullopt;
  return holds != 0;
}

template <Opcode Known>
bool Program::Lanes::runInteger(const Instruction &in) {
  Instruction known = in;
  known.opcode = Known;
  const Scalar *a = lanes(in.a), *b = lanes(in.b);
  Scalar *result = lanes(in.dst);
  bool isRun = true;
  for (int64_t lane = 0; lane < count; ++lane)
    isRun &= burst::runInteger(known, a[lane].i, b[lane].i, result[lane].i);
  return isRun;
}

template <Opcode Known>
bool Program::Lanes::runCompare(const Instruction &in) {
  Instruction known = in;
  known.opcode = Known;
  const Scalar *a = lanes(in.a), *b = lanes(in.b);
  Scalar *result = lanes(in.dst);
  for (int64_t lane = 0; lane < count; ++lane)
    burst::runCompare(known, a[lane], b[lane], result[lane].i);
  return true;
}

/// Any instruction that gives a scalar, lane by lane.
bool Program::Lanes::runOther(const Instruction &in) {
  Instruction alone = in;
  alone.a = 0, alone.b = 1, alone.c = 2;
  Unheard unheard;
  for (int64_t lane = 0; lane < count; ++lane) {
    Scalar operands[] = {lanes(in.a)[lane], lanes(in.b)[lane],
                         lanes(in.c)[lane]};
    if (!burst::runScalar(alone, operands, program.options, unheard,
                          lanes(in.dst)[lane]))
      return false;
  }
  return true;
}

/// Those that tables are made of are loops of their own.
bool Program::Lanes::runScalar(const Instruction &in) {
  switch (in.opcode) {
  case Opcode::Constant:
    std::fill_n(lanes(in.dst), count, in.imm.value);
    return true;
  case Opcode::Copy:
    std::copy_n(lanes(in.a), count, lanes(in.dst));
    return true;
  case Opcode::Add:
    return runInteger<Opcode::Add>(in);
  case Opcode::Sub:
    return runInteger<Opcode::Sub>(in);
  case Opcode::Mul:
    return runInteger<Opcode::Mul>(in);
  case Opcode::RemU:
    return runInteger<Opcode::RemU>(in);
  case Opcode::And:
    return runInteger<Opcode::And>(in);
  case Opcode::Or:
    return runInteger<Opcode::Or>(in);
  case Opcode::Xor:
    return runInteger<Opcode::Xor>(in);
  case Opcode::MinS:
    return runInteger<Opcode::MinS>(in);
  case Opcode::MaxS:
    return runInteger<Opcode::MaxS>(in);
  case Opcode::Equal:
    return runCompare<Opcode::Equal>(in);
  case Opcode::NotEqual:
    return runCompare<Opcode::NotEqual>(in);
  case Opcode::LessS:
    return runCompare<Opcode::LessS>(in);
  case Opcode::LessEqualS:
    return runCompare<Opcode::LessEqualS>(in);
  case Opcode::LessU:
    return runCompare<Opcode::LessU>(in);
  case Opcode::LessEqualU:
    return runCompare<Opcode::LessEqualU>(in);
  case Opcode::Select: {
    const Scalar *a = lanes(in.a), *b = lanes(in.b), *c = lanes(in.c);
    Scalar *result = lanes(in.dst);
    for (int64_t lane = 0; lane < count; ++lane)
      result[lane].i = a[lane].i != 0 ? b[lane].i : c[lane].i;
    return true;
  }
  default:
    return runOther(in);
  }
}

bool Program::Lanes::extract(const Instruction &in) {
  const OperandList &list = program.operandLists[in.operands];
  if (!frame.objects[in.a])
    return false;
  const auto &table = *static_cast<const Tensor *>(frame.objects[in.a].get());
  Scalar *result = lanes(in.dst);
  std::array<int64_t, width> offsets{};
  const Slot *operand = list.operands.data();
  bool isInside = true;
  for (int64_t extent : table.shape) {
    const Scalar *index = lanes((++operand)->number);
    for (int64_t lane = 0; lane < count; ++lane) {
      isInside &=
          static_cast<uint64_t>(index[lane].i) < static_cast<uint64_t>(extent);
      offsets[lane] = offsets[lane] * extent + index[lane].i;
    }
  }
  if (!isInside || !table.hasData())
    return false;
  if (!table.floats.empty())
    for (int64_t lane = 0; lane < count; ++lane)
      result[lane].f = table.floats[offsets[lane]];
  else
    for (int64_t lane = 0; lane < count; ++lane)
      result[lane].i = table.integer(offsets[lane]);
  return true;
}

bool Program::Lanes::runSegment(const Instruction &in) {
  const OperandList &list = program.operandLists[in.operands];
  const Layout &layout = program.layouts[in.a];
  std::array<Scalar *, 3> operands{};
  for (auto [operand, slot] : llvm::zip_equal(operands, list.operands))
    operand = lanes(slot.number);
  auto [index, owner, extent] = operands;
  LaneMemory::SegmentsOf &known = frame.lanes.segments[in.a];
  int64_t numSegments = layout.numSegments();
  if (known.all.empty() || known.extent != extent[0].i) {
    known.extent = extent[0].i;
    known.all.clear();
    for (int64_t of = 0; of < layout.numOwners(); ++of)
      llvm::append_range(known.all, layout.segments(of, known.extent));
  }
  for (int64_t lane = 0; lane < count; ++lane) {
    if (!isSegment(layout, owner[lane].i, index[lane].i,
                   environment.numOwners()) ||
        extent[lane].i != known.extent)
      return false;
    const burst::Segment &s =
        known.all[owner[lane].i * numSegments + index[lane].i];
    int64_t values[] = {s.begin, s.end(), s.count, s.step, s.block};
    for (auto [slot, value] : llvm::zip_equal(list.results, values))
      lanes(slot.number)[lane].i = value;
  }
  return true;
}

/// Whether all lanes have the same in a slot.
bool Program::Lanes::isSame(uint32_t slot) {
  const Scalar *values = lanes(slot);
  return together([&](int64_t lane) {
           return values[lane].i == values[0].i;
         }) == true;
}

/// The loops of a table stay inside of it.
bool Program::Lanes::store(const Instruction &in) {
  const OperandList &list = program.operandLists[in.operands];
  auto &table = *static_cast<Tensor *>(frame.objects[in.a].get());
  const Scalar *value = lanes(in.b);
  if (shareTables && !llvm::all_of(list.operands, [&](Slot slot) {
        return isSame(slot.number);
      }))
    return false;
  int64_t writers = shareTables ? 1 : count;
  for (int64_t lane = 0; lane < writers; ++lane) {
    int64_t offset = 0;
    const Slot *operand = list.operands.data();
    for (int64_t extent : table.shape)
      offset = offset * extent + lanes((++operand)->number)[lane].i;
    if (!table.bits.empty())
      table.bits[offset] = value[lane].i != 0;
    else if (table.floats.empty())
      table.ints[offset] = value[lane].i;
    else
      table.floats[offset] = value[lane].f;
  }
  return true;
}

/// What gives the same for all lanes, if it is given the same.
bool Program::Lanes::runOnce(const Instruction &in) {
  const OperandList &list = program.operandLists[in.operands];
  for (Slot slot : list.operands) {
    if (!slot.isScalar)
      continue;
    if (!isSame(slot.number))
      return false;
    frame.scalars[slot.number] = lanes(slot.number)[0];
  }
  if (in.opcode != Opcode::Call && !frame.objects[list.operands[0].number])
    return false;
  Step step = in.opcode == Opcode::Call
                  ? program.runExternal(in, frame, environment)
                  : program.runTable(in, frame, environment);
  for (Slot slot : list.results)
    if (slot.isScalar)
      broadcast(slot.number);
  return step == Step::Done;
}

bool Program::Lanes::runExternal(const Instruction &in) {
  const OperandList &list = program.operandLists[in.operands];
  ExternalCall call{in.op,        in.operands, list.operands,
                    list.results, frame,       list.last};
  if (!environment.executeTogether(call, {frame.lanes.scalars.data(), count}))
    return false;
  for (uint32_t number : list.released)
    frame.objects[number].reset();
  return true;
}

/// Whether an instruction that may jump does.
std::optional<bool> Program::Lanes::jumps(const Instruction &in) {
  Scalar *a = lanes(in.a), *b = lanes(in.b), *iv = lanes(in.dst);
  const Scalar *step = lanes(in.c);
  auto isUnsignedLess = [](Scalar x, Scalar y) {
    return static_cast<uint64_t>(x.i) < static_cast<uint64_t>(y.i);
  };
  switch (in.opcode) {
  case Opcode::Jump:
    return true;
  case Opcode::JumpIfNot:
    return together([&](int64_t lane) { return a[lane].i == 0; });
  case Opcode::JumpUnlessLess:
    return together([&](int64_t lane) { return a[lane].i >= b[lane].i; });
  case Opcode::JumpUnlessLessU:
    return together(
        [&](int64_t lane) { return !isUnsignedLess(a[lane], b[lane]); });
  default:
    for (int64_t lane = 0; lane < count; ++lane)
      iv[lane].i = static_cast<int64_t>(static_cast<uint64_t>(iv[lane].i) +
                                        static_cast<uint64_t>(step[lane].i));
    if (in.opcode == Opcode::NextTurn)
      return together([&](int64_t lane) { return iv[lane].i < b[lane].i; });
    return together(
        [&](int64_t lane) { return isUnsignedLess(iv[lane], b[lane]); });
  }
}

/// Runs an instruction that does not jump; false where that cannot be done.
bool Program::Lanes::runOne(const Instruction &in) {
  switch (in.opcode) {
  case Opcode::CheckStep:
    return together([&](int64_t lane) { return lanes(in.a)[lane].i > 0; }) ==
           true;
  case Opcode::Extract:
    return extract(in);
  case Opcode::Segment:
    return runSegment(in);
  case Opcode::StoreTable:
    return store(in);
  case Opcode::RunLanes: // Lanes are taken.
    return true;
  case Opcode::AllocateTable:
    return program.runTable(in, frame, environment) == Step::Done;
  case Opcode::TableRange:
  case Opcode::Dim:
  case Opcode::Call:
    return runOnce(in);
  case Opcode::External:
    return runExternal(in);
  default:
    return runObject(in, frame.objects, program.constants) || runScalar(in);
  }
}

bool Program::Lanes::run(const LaneCode &code, int64_t count) {
  this->count = count;
  for (uint32_t next = code.begin; next != code.end;) {
    const Instruction &in = program.code[next++];
    if (!mayJump(in.opcode)) {
      if (!runOne(in))
        return false;
      continue;
    }
    std::optional<bool> isTaken = jumps(in);
    if (!isTaken)
      return false;
    if (!*isTaken)
      continue;
    next = in.imm.i;
    frame.jumps += count;
    if (frame.jumps >= maxJumps)
      return false;
  }
  return true;
}

bool Program::runLanes(const Instruction &trial, Frame &frame,
                       Environment &environment) const {
  const LaneLoop &loop = laneLoops[trial.operands];
  Lanes lanes(*this, frame, environment);
  lanes.broadcast(loop.code);
  for (int64_t from = 0; from < loop.extent; from += Lanes::width) {
    int64_t count = std::min(Lanes::width, loop.extent - from);
    for (int64_t lane = 0; lane < count; ++lane)
      lanes.lanes(trial.dst)[lane].i = from + lane;
    if (!lanes.run(loop.code, count))
      return false;
  }
  return true;
}

bool Program::runTogether(Frame &frame, Environment &environment,
                          int64_t count) const {
  auto canRun = [](Opcode opcode) { return opcode != Opcode::Contribute; };
  std::optional<LaneCode> all =
      laneCode(0, code.size() - 1, /*varying=*/std::nullopt, canRun);
  if (!all)
    return false;
  Lanes lanes(*this, frame, environment, /*shareTables=*/true);
  lanes.broadcast(*all);
  return lanes.run(*all, count);
}

bool Program::runMany(Frame &frame, Environment &environment, int64_t count,
                      ArrayRef<ArrayRef<Scalar>> arguments,
                      ArrayRef<MutableArrayRef<Scalar>> results) const {
  if (!whole)
    return false;
  for (auto [slot, column] : llvm::zip(argumentSlots, arguments))
    if (column.size() == 1)
      frame.scalars[slot.number] = column.front();
  frame.jumps = 0;
  Lanes lanes(*this, frame, environment);
  lanes.broadcast(*whole);
  for (int64_t from = 0; from < count; from += Lanes::width) {
    int64_t width = std::min(Lanes::width, count - from);
    for (auto [slot, column] : llvm::zip(argumentSlots, arguments))
      if (column.size() != 1)
        llvm::copy(column.slice(from, width), lanes.lanes(slot.number));
    if (!lanes.run(*whole, width))
      return false;
    for (auto [slot, column] : llvm::zip_equal(resultSlots, results))
      std::copy_n(lanes.lanes(slot.number), width, &column[from]);
  }
  return true;
}
