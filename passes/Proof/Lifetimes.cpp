//===- Lifetimes.cpp - tokens, and tensors that are under way -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Lifetimes.h"

#include "dialect/Ring/Slices.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace burst;
using namespace burst::proof;

namespace {
/// An op of the program, in one of the turns that are looked at; values are
/// numbered anew in each.
struct Event {
  Operation *op;
  SmallVector<unsigned> uses, defs;
};

/// What the transfers of a program bring, from op to op.
class Trace {
public:
  /// Of as many turns as stand for all, or, where `isActual`, of no more than
  /// there are.
  Trace(func::FuncOp program, const Labels &labels, Places &places,
        bool isActual);
  void check();
  /// Whether loops have fewer turns.
  bool isShort() const { return hasFewer; }

private:
  void run(Block &block, DenseMap<Value, unsigned> &numbers);
  void findLastUses();
  void checkWaits();
  void checkUnchanged(size_t at);
  void checkHeld(size_t at);
  std::optional<std::pair<int64_t, int>> kindOf(size_t event) const;
  bool isHeldAt(size_t transfer, size_t event) const;

  func::FuncOp program;
  const Labels &labels;
  Places &places;
  DenseI64ArrayAttr maxSlices;
  Value rank;
  bool isActual, hasFewer = false;
  int64_t turns;
  std::vector<Event> events;
  unsigned numValues = 0;
  std::vector<size_t> lastUse;       ///< by value
  std::map<unsigned, size_t> waitOf; ///< by token
};
} // namespace

Trace::Trace(func::FuncOp program, const Labels &labels, Places &places,
             bool isActual)
    : program(program), labels(labels), places(places),
      maxSlices(ring::getMaxSlices(program)), rank(rankOf(program)),
      isActual(isActual) {
  int64_t most = ring::defaultMaxSlices;
  if (maxSlices)
    for (int64_t bound : maxSlices.asArrayRef())
      most = std::max(most, bound);
  if (most > 16)
    places.refuse(program, "more than 16 buffers for what is received");
  // What is carried may be used as many turns later.
  size_t carried = 0;
  program.walk([&](scf::ForOp loop) {
    carried = std::max<size_t>(carried, loop.getNumRegionIterArgs());
  });
  if (carried > 64)
    places.refuse(program, "a loop that carries more than 64 values");
  turns = std::min<int64_t>(most, 16) + 1 +
          static_cast<int64_t>(std::min<size_t>(carried, 64));
  DenseMap<Value, unsigned> numbers;
  for (BlockArgument argument : program.getArguments())
    numbers[argument] = numValues++;
  run(program.getBody().front(), numbers);
  findLastUses();
}

void Trace::run(Block &block, DenseMap<Value, unsigned> &numbers) {
  for (Operation &op : block) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop) {
      Event event{&op, {}, {}};
      for (Value operand : op.getOperands())
        event.uses.push_back(numbers.lookup(operand));
      for (Value result : op.getResults())
        event.defs.push_back(numbers[result] = numValues++);
      events.push_back(std::move(event));
      continue;
    }
    SmallVector<unsigned> carried;
    for (Value init : loop.getInitArgs())
      carried.push_back(numbers.lookup(init));
    int64_t count = turns;
    IntegerAttr first, end;
    if (matchPattern(loop.getLowerBound(), m_Constant(&first)) &&
        matchPattern(loop.getUpperBound(), m_Constant(&end)))
      count = std::clamp<int64_t>(end.getInt() - first.getInt(), 0, turns);
    hasFewer |= count < turns;
    for (int64_t turn = 0; turn < (isActual ? count : turns); ++turn) {
      numbers[loop.getInductionVar()] = numValues++;
      for (auto [argument, number] :
           llvm::zip_equal(loop.getRegionIterArgs(), carried))
        numbers[argument] = number;
      run(*loop.getBody(), numbers);
      events.pop_back(); // the yield
      for (auto [number, next] :
           llvm::zip_equal(carried, loop.getYieldedValues()))
        number = numbers.lookup(next);
    }
    for (auto [result, number] : llvm::zip_equal(loop.getResults(), carried))
      numbers[result] = number;
  }
}

/// The operands, by number, that a step changes, and the results that take over
/// their memory.
static SmallVector<std::pair<Value, Value>> changes(Operation *op) {
  SmallVector<std::pair<Value, Value>> changed;
  auto step = dyn_cast<ProvedOpInterface>(op);
  if (!step)
    return changed;
  StepMeaning meaning = step.describe();
  auto add = [&](ValueRange before, ValueRange after) {
    for (auto [number, value] : llvm::enumerate(before))
      changed.push_back(
          {value, number < after.size() ? after[number] : Value()});
  };
  if (auto *attended = std::get_if<Attended>(&meaning))
    add(attended->state, attended->made);
  else if (auto *grad = std::get_if<AttendedGrad>(&meaning))
    add(grad->grads, grad->made);
  else if (auto *joined = std::get_if<Joined>(&meaning))
    add(joined->into, joined->made);
  else if (auto *finalized = std::get_if<Finalized>(&meaning))
    add(finalized->state, finalized->results);
  return changed;
}

static unsigned numberOf(const Event &event, Value value) {
  for (auto [operand, number] :
       llvm::zip_equal(event.op->getOperands(), event.uses))
    if (operand == value)
      return number;
  return event.defs[cast<OpResult>(value).getResultNumber()];
}

static bool isNeverTrue(ring::TransferOpInterface start) {
  DenseElementsAttr flags;
  return start.getSegments() &&
         matchPattern(start.getSegments(), m_Constant(&flags)) &&
         flags.isSplat() && !flags.getSplatValue<APInt>().getBoolValue();
}

/// What is sent is in use until the transfer is waited for, and what takes over
/// the memory of a tensor keeps that of the slice.
void Trace::findLastUses() {
  lastUse.assign(numValues, 0);
  for (auto [at, event] : llvm::enumerate(events)) {
    for (unsigned value : event.uses)
      lastUse[value] = at;
    if (isa<ring::WaitOp>(event.op))
      waitOf.emplace(event.uses[0], at);
  }
  for (const Event &event : llvm::reverse(events)) {
    if (auto start = dyn_cast<ring::TransferOpInterface>(event.op)) {
      auto wait = waitOf.find(event.defs[0]);
      size_t end = wait == waitOf.end() ? events.size() : wait->second;
      for (Value tensor : start.getTensors()) {
        size_t &last = lastUse[numberOf(event, tensor)];
        last = std::max(last, end);
      }
    }
    for (auto [before, after] : changes(event.op))
      if (after) {
        size_t &last = lastUse[numberOf(event, before)];
        last = std::max(last, lastUse[numberOf(event, after)]);
      }
  }
}

void Trace::checkWaits() {
  std::map<unsigned, int> waits;
  for (const Event &event : events)
    if (isa<ring::WaitOp>(event.op))
      ++waits[event.uses[0]];
  for (const Event &event : events)
    if (isa<ring::TransferOpInterface>(event.op) && waits[event.defs[0]] != 1)
      return places.refuse(event.op, "is not waited for once");
}

void Trace::checkUnchanged(size_t at) {
  const Event &event = events[at];
  auto start = cast<ring::TransferOpInterface>(event.op);
  size_t end = waitOf.at(event.defs[0]);
  for (size_t other = at + 1; other < end; ++other)
    for (auto [before, after] : changes(events[other].op))
      for (Value tensor : start.getTensors())
        if (numberOf(events[other], before) == numberOf(event, tensor))
          return places.refuse(events[other].op, "changes what is under way");
}

/// The channel and what kind of tensors a transfer brings, which have buffers
/// of their own: slices, what follows one on its way, what returned to its
/// owner. Conditions say that the second is by no shard of this rank.
std::optional<std::pair<int64_t, int>> Trace::kindOf(size_t event) const {
  auto start = dyn_cast<ring::TransferOpInterface>(events[event].op);
  // What an all-to-all brings is for the program, once.
  if (!start || isNeverTrue(start) || start.isAllToAll())
    return std::nullopt;
  int64_t channel = start.getChannel().getIndex();
  if (!isPartialResult(labels.of(start.getTensors().front())))
    return std::pair(channel, 0);
  return std::pair(channel, start.getReceivedOwner() == rank ? 2 : 1);
}

/// Whether what a transfer brings is still in use when another op comes.
bool Trace::isHeldAt(size_t transfer, size_t event) const {
  size_t wait = waitOf.at(events[transfer].defs[0]);
  return wait >= event ||
         llvm::any_of(events[wait].defs, [&](unsigned received) {
           return lastUse[received] >= event;
         });
}

void Trace::checkHeld(size_t at) {
  auto kind = kindOf(at);
  if (!kind)
    return;
  int64_t held = 1;
  for (size_t other = 0; other < at; ++other) {
    auto before = kindOf(other);
    if (before && before->second == kind->second &&
        (!maxSlices || before->first == kind->first) && isHeldAt(other, at))
      ++held;
  }
  int64_t bound = maxSlices ? ring::maxSlicesOf(maxSlices, kind->first)
                            : ring::defaultMaxSlices;
  if (held > bound)
    places.refuse(events[at].op, "receives while " + Twine(held - 1) +
                                     " are in use, and there are buffers for " +
                                     Twine(bound));
}

void Trace::check() {
  checkWaits();
  for (size_t at = 0; at < events.size() && !places.getReason(); ++at) {
    auto start = dyn_cast<ring::TransferOpInterface>(events[at].op);
    if (!start)
      continue;
    if (!isNeverTrue(start))
      checkUnchanged(at);
    checkHeld(at);
  }
}

void burst::proof::checkLifetimes(func::FuncOp program, const Labels &labels,
                                  Places &places) {
  Trace trace(program, labels, places, /*isActual=*/false);
  trace.check();
  // What is passed on for many turns is still there behind a few.
  if (trace.isShort() && !places.getReason())
    Trace(program, labels, places, /*isActual=*/true).check();
}
