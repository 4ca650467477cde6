//===- Simulation.cpp - all ranks of a ring program -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Buffers/Slots.h"
#include "passes/Simulation/Binding.h"
#include "passes/Simulation/Ranks.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace burst;

int64_t Traffic::totalBytes() const {
  int64_t sum = 0;
  for (auto [argument, bytes] : sentBytes)
    sum += bytes;
  return sum;
}

SmallVector<int64_t> burst::axesOfSeveral(func::FuncOp program) {
  SmallVector<int64_t> axes;
  for (int64_t axis : llvm::seq(ring::gridOf(program).getRank()))
    if (ring::groupOf(program, axis).size > 1)
      axes.push_back(axis);
  return axes.size() > 1 ? axes : SmallVector<int64_t>();
}

//===----------------------------------------------------------------------===//
// Called functions
//===----------------------------------------------------------------------===//

/// Only ops that give the same on every rank may stand in a called function.
Step Simulation::Impl::Rank::call(const ExternalCall &call) {
  Callee &callee = impl.callees.at(call.op);
  std::vector<Scalar> scalars;
  std::vector<Object> objects;
  for (Slot slot : call.operands) {
    if (slot.isScalar)
      scalars.push_back(call.frame.scalars[slot.number]);
    else
      objects.push_back(call.frame.objects[slot.number]);
  }
  auto same = [&](const Callee::Memory &memory) {
    return memory.objects == objects &&
           llvm::equal(memory.scalars, scalars,
                       [](Scalar a, Scalar b) { return a.i == b.i; });
  };
  auto found = llvm::find_if(callee.calls, same);
  if (found == callee.calls.end()) {
    Frame inner = callee.program.makeFrame();
    for (auto [to, from] :
         llvm::zip_equal(callee.program.arguments(), call.operands)) {
      if (to.isScalar)
        inner.scalars[to.number] = call.frame.scalars[from.number];
      else
        inner.objects[to.number] = call.frame.objects[from.number];
    }
    if (callee.program.run(inner, *this) != Step::Done)
      return Step::Failed;
    callee.calls.push_back({scalars, objects, std::move(inner)});
    found = std::prev(callee.calls.end());
  }
  for (auto [to, from] :
       llvm::zip_equal(call.results, callee.program.results())) {
    if (to.isScalar)
      call.frame.scalars[to.number] = found->frame.scalars[from.number];
    else
      call.frame.objects[to.number] = found->frame.objects[from.number];
  }
  return Step::Done;
}

/// Ops that leave scalar code; of these, a called function has `segment` only.
static bool isExternal(Operation *op) {
  return isa<ring::RingDialect>(op->getDialect()) ||
         isa<SimulatedOpInterface, ring::TransferOpInterface>(op) ||
         isa<shard::ProcessMultiIndexOp, shard::GridShapeOp>(op);
}

LogicalResult Simulation::Impl::compileCallees() {
  WalkResult result = function.walk([&](func::CallOp call) -> WalkResult {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (!callee || callee.isExternal()) {
      call.emitOpError("calls a function without a body: ") << call.getCallee();
      return WalkResult::interrupt();
    }
    WalkResult inner = callee.walk([&](Operation *op) -> WalkResult {
      bool allowed = isa<ring::SegmentOp>(op) ||
                     (!isExternal(op) && !isa<func::CallOp>(op));
      if (allowed)
        return WalkResult::advance();
      op->emitOpError("stands in a function that a rank's program calls, which "
                      "must not depend on the rank nor call further");
      return WalkResult::interrupt();
    });
    if (inner.wasInterrupted())
      return WalkResult::interrupt();
    std::optional<Program> program =
        Program::compile(callee.getBody(), isExternal);
    if (!program)
      return WalkResult::interrupt();
    callees[call] = {std::move(*program), {}};
    return WalkResult::advance();
  });
  return LogicalResult::failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Chunks of heads, without what they are of
//===----------------------------------------------------------------------===//

TensorRef Semantics::takeHeads(const Tensor &whole, const HeadChunk &of) {
  auto shape = whole.shape;
  shape[whole.headsDim()] /= of.count;
  return std::make_shared<Tensor>(shape, whole.element);
}

TensorRef Semantics::joinHeads(ArrayRef<TensorRef> chunks) {
  const Tensor &first = *chunks.front();
  auto shape = first.shape;
  shape[first.headsDim()] *= static_cast<int64_t>(chunks.size());
  return std::make_shared<Tensor>(shape, first.element);
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

void Simulation::Impl::bindFrame(Frame &frame, ArrayRef<Argument> arguments) {
  for (auto [slot, value] : llvm::zip_equal(program.arguments(), arguments)) {
    if (slot.isScalar)
      frame.scalars[slot.number] = value.scalar;
    else
      frame.objects[slot.number] = value.table;
  }
}

void Simulation::Impl::bind(Rank &rank, ArrayRef<Argument> arguments) {
  bindFrame(rank.frame, arguments);
  for (const Argument &value : arguments)
    if (value.table)
      rank.hold(*value.table);
}

/// Takes the results of a rank that has come to its end.
void Simulation::Impl::end(Rank &rank) {
  rank.isDone = true;
  auto resultAt = [&](Slot slot) {
    return std::static_pointer_cast<Tensor>(rank.frame.objects[slot.number]);
  };
  Operation *end = function.getBody().front().getTerminator();
  for (OpOperand &operand : end->getOpOperands())
    if (!isReturnedInPlace(operand)) // but copied
      rank.hold(*resultAt(program.results()[operand.getOperandNumber()]));
  for (Slot slot : program.results())
    results[rank.index].push_back(slot.isScalar ? nullptr : resultAt(slot));
  rank.frame = Frame();
}

/// Runs a rank until it waits; false where it fails. Sets `moved` where it
/// advances.
bool Simulation::Impl::resume(Rank &rank, bool &moved) {
  uint32_t before = rank.frame.next;
  int64_t hop = rank.hop;
  Step step = program.run(rank.frame, rank);
  moved |= step == Step::Done || rank.frame.next != before || rank.hop != hop;
  if (step == Step::Done)
    end(rank);
  return step != Step::Failed;
}

bool Simulation::Impl::run(std::vector<std::vector<Argument>> arguments) {
  for (auto [rank, ofRank] : llvm::zip_equal(ranks, arguments))
    bind(*rank, ofRank);
  arguments.clear();
  // Neighbors exchange most transfers. A block of them advances as far as it
  // can while its tensors are in the cache, which does not hold those of all
  // ranks.
  constexpr size_t neighbors = 8;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t begin = 0; begin < ranks.size(); begin += neighbors)
      for (bool movedHere = true; movedHere; moved |= movedHere) {
        movedHere = false;
        for (auto &rank : ArrayRef(ranks).slice(begin).take_front(neighbors))
          if (!rank->isDone && !resume(*rank, movedHere))
            return false;
      }
  }
  if (!llvm::all_of(ranks, [](const auto &rank) { return rank->isDone; }))
    return reportDeadlock();
  countTraffic();
  return checkEnd();
}

bool Simulation::Impl::runRankAlone(Rank &rank, ArrayRef<Argument> globals) {
  if (listener)
    listener->begins(rank.index);
  bind(rank, shardGlobals(function, globals, rank.index, ShardData::Omit));
  bool moved = false;
  if (!resume(rank, moved))
    return false;
  assert(rank.isDone && "a proved program waits for nobody");
  return true;
}

bool Simulation::Impl::runAlone(ArrayRef<Argument> globals) {
  isAlone = true;
  llvm::scope_exit atEnd([&] {
    isAlone = false;
    trace.reset();
  });
  bool areCounted = !listener && areAlike(globals);
  if (areCounted)
    trace = std::make_shared<Trace>();
  if (!runRankAlone(*ranks.front(), globals))
    return false;
  areCounted = areCounted && countTogether(globals);
  trace.reset();
  if (!areCounted)
    for (auto &rank : llvm::drop_begin(ranks))
      if (!runRankAlone(*rank, globals))
        return false;
  countTraffic();
  return checkEnd();
}

void Simulation::Impl::countTraffic() {
  for (int64_t r = 0; r < ranksInAll; ++r) {
    traffic[r].peakSlices =
        slices[r][static_cast<size_t>(TransferKind::Slice)]->peak;
    traffic[r].sentBytes.insert(sent[r].begin(), sent[r].end());
  }
}

void Simulation::Impl::reset() {
  channels.clear();
  sites.clear();
  sites.resize(program.numSites());
  ranks.clear();
  failure = Counterexample();
  traffic.assign(ranksInAll, Traffic());
  for (Traffic &found : traffic)
    found.sentByAxis.resize(strides.size());
  sent.assign(ranksInAll, {});
  results.assign(ranksInAll, {});
  slices.clear();
  for (int64_t r = 0; r < ranksInAll; ++r) {
    for (GaugeRef &gauge : slices.emplace_back())
      gauge = std::make_shared<Gauge>();
    ranks.push_back(std::make_unique<Rank>(*this, r));
  }
  for (auto &[op, callee] : callees)
    callee.calls.clear();
}

//===----------------------------------------------------------------------===//
// Simulation
//===----------------------------------------------------------------------===//

Simulation::Simulation(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Simulation::~Simulation() = default;

std::unique_ptr<Simulation> Simulation::create(func::FuncOp program,
                                               int64_t mostRanks) {
  if (!program->hasAttr(ring::gridAttr)) {
    emitError(program.getLoc(),
              "function is not the program of a rank: it has no 'ring.grid'");
    return nullptr;
  }
  if (program.isExternal()) {
    emitError(program.getLoc(), "function has no body to run");
    return nullptr;
  }
  if (int64_t ranks = ring::numRanks(program); ranks > mostRanks) {
    emitError(program.getLoc(), "program has ")
        << ranks << " ranks, all of which are simulated; at most " << mostRanks
        << " can be";
    return nullptr;
  }
  std::optional<Program> code = Program::compile(program.getBody(), isExternal);
  if (!code)
    return nullptr;
  auto impl = std::make_unique<Impl>(program, std::move(*code));
  if (failed(impl->compileCallees()))
    return nullptr;
  impl->reset();
  return std::unique_ptr<Simulation>(new Simulation(std::move(impl)));
}

int64_t Simulation::numRanks() const { return impl->ranksInAll; }
func::FuncOp Simulation::getFunction() const { return impl->function; }
void Simulation::reset() { impl->reset(); }
bool Simulation::run(Semantics &semantics,
                     std::vector<std::vector<Argument>> arguments,
                     Listener *listener) {
  impl->semantics = &semantics;
  impl->listener = listener;
  return impl->run(std::move(arguments));
}
bool Simulation::runAlone(Semantics &semantics, ArrayRef<Argument> globals,
                          Listener *listener) {
  impl->semantics = &semantics;
  impl->listener = listener;
  return impl->runAlone(globals);
}
const Counterexample &Simulation::getCounterexample() const {
  return impl->failure;
}
const std::vector<Traffic> &Simulation::getTraffic() const {
  return impl->traffic;
}
const std::vector<std::vector<TensorRef>> &Simulation::getResults() const {
  return impl->results;
}
