//===- Schedule.cpp - the schedules that tests break ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Mutations.h"

using namespace mlir;

namespace burst::test {

//===----------------------------------------------------------------------===//
// What a schedule does
//===----------------------------------------------------------------------===//

namespace {

/// Notes what an unbroken schedule sends and needs.
class Observer : public Listener {
public:
  explicit Observer(Schedule &schedule) : schedule(schedule) {}

  void meets(const AttendInputs &inputs, size_t, int64_t owner) override {
    for (int64_t a = 0; a < inputs.queryLayout.getNumSegments(); ++a)
      for (int64_t b = 0; b < inputs.keyLayout.getNumSegments(); ++b) {
        bool isEmpty =
            classifier.classify(inputs, owner, a, b) == PairClass::Empty;
        schedule.hasRuledOut |= isEmpty;
        schedule.needsLast |= !isEmpty && inputs.at == schedule.attends.back();
      }
  }

  void delivers(const Transfer &from, const Transfer &to, size_t) override {
    schedule.messages.push_back({from.rank, to.rank, from.hop});
  }

private:
  Schedule &schedule;
  Classifier classifier;
};

} // namespace

Ring::Ring(ModuleOp module, const Problem &problem)
    : module(module), problem(problem), parts(problem.parts),
      program(getProgram(module)) {
  program.walk(
      [&](shard::ProcessMultiIndexOp op) { rank = op.getResult()[0]; });
  options.allowEmpty = !problem.drop;
}

/// Runs a schedule to see what it does.
static void observe(Ring &ring, Listener &observer) {
  std::unique_ptr<Simulation> simulation = Simulation::create(ring.program);
  simulation->reset();
  Bookkeeper bookkeeper;
  std::ignore = simulation->run(bookkeeper,
                                shardGlobals(*simulation,
                                             *describeGlobals(ring.program, {}),
                                             ShardData::Omit),
                                &observer);
}

Schedule::Schedule(ModuleOp module, const Problem &problem)
    : Ring(module, problem) {
  program.walk([&](Operation *op) {
    if (auto found = dyn_cast<ring::AttendOp>(op))
      attends.push_back(found);
    else if (isa<ring::InitOp>(op))
      init = cast<ring::InitOp>(op);
    else if (isa<ring::StartOp>(op))
      start = cast<ring::StartOp>(op);
    else if (isa<ring::WaitOp>(op))
      wait = cast<ring::WaitOp>(op);
    else if (isa<ring::FinalizeOp>(op))
      finalize = cast<ring::FinalizeOp>(op);
    else if (isa<scf::ForOp>(op))
      loop = cast<scf::ForOp>(op);
  });
  Observer observer(*this);
  observe(*this, observer);
}

namespace {

class ReturningObserver : public Listener {
public:
  explicit ReturningObserver(Returning &schedule) : schedule(schedule) {}

  void meets(const AttendInputs &inputs, size_t, int64_t owner) override {
    for (int64_t a = 0; a < inputs.queryLayout.getNumSegments(); ++a)
      for (int64_t b = 0; b < inputs.keyLayout.getNumSegments(); ++b)
        schedule.hasRuledOut |=
            classifier.classify(inputs, owner, a, b) == PairClass::Empty;
  }

  void starts(const Transfer &transfer) override {
    turns[&transfer] = counts[{transfer.start, transfer.rank}]++;
  }

  void delivers(const Transfer &from, const Transfer &to,
                size_t index) override {
    if (index != 0)
      return;
    Returning::Message message{from.rank, to.rank, turns[&from]};
    if (from.start == schedule.slice)
      schedule.slices.push_back(message);
    else if (from.start == schedule.onward)
      schedule.onwards.push_back(message);
    else if (from.start == schedule.toOwner)
      schedule.returns.push_back(message);
  }

private:
  Returning &schedule;
  Classifier classifier;
  std::map<std::pair<Operation *, int64_t>, int64_t> counts;
  std::map<const Transfer *, int64_t> turns;
};

} // namespace

void Returning::find(Operation *attend, Value moving, Value owner) {
  loop = attend->getParentOfType<scf::ForOp>();
  for (auto found : loop.getBody()->getOps<ring::StartOp>()) {
    if (found.getTensors()[0] == moving)
      slice = found;
    else if (found.getTo() == owner)
      toOwner = found;
    else
      onward = found;
  }
  ReturningObserver observer(*this);
  observe(*this, observer);
}

Backward::Backward(ModuleOp module, const Problem &problem)
    : Returning(module, problem), movesKeys(problem.backward == "ring_kv") {
  program.walk([&](Operation *op) {
    if (auto found = dyn_cast<ring::DeltaOp>(op))
      delta = found;
    else if (auto found = dyn_cast<ring::AttendGradOp>(op))
      attend = found;
  });
  find(attend, movesKeys ? attend.getKey() : attend.getQuery(), movingOwner());
  llvm::append_range(zeros, loop.getBody()->getOps<ring::ZeroOp>());
  for (auto found : loop.getBody()->getOps<ring::AddOp>()) {
    bool isComputed = found.getB().getDefiningOp() == attend;
    (found.getOwner() == movingOwner() ? onwardSums
     : isComputed                      ? ownSums
                                       : returnSums)
        .push_back(found);
  }
  llvm::append_range(lastSums, program.getBody().front().getOps<ring::AddOp>());
}

Queries::Queries(ModuleOp module, const Problem &problem)
    : Returning(module, problem) {
  program.walk([&](Operation *op) {
    if (auto found = dyn_cast<ring::AttendOp>(op))
      attend = found;
    else if (auto found = dyn_cast<ring::FinalizeOp>(op))
      finalize = found;
  });
  find(attend, attend.getQuery(), attend.getQueryOwner());
  Block &top = program.getBody().front();
  own = *top.getOps<ring::InitOp>().begin();
  lastMerge = *top.getOps<ring::MergeOp>().begin();
  init = attend.getO().getDefiningOp<ring::InitOp>();
  for (auto found : loop.getBody()->getOps<ring::MergeOp>())
    (found.getOwner() == attend.getQueryOwner() ? onwardMerge
     : found.getO2().getDefiningOp() == attend  ? ownMerge
                                                : returnMerge) = found;
}

//===----------------------------------------------------------------------===//
// Values for broken operands
//===----------------------------------------------------------------------===//

ring::ShardAttr shardOf(Ring &s, unsigned argument) {
  return s.program.getArgAttrOfType<ring::ShardAttr>(argument, ring::shardAttr);
}

bool hasFlags(Schedule &s) {
  return s.start.getSegments() || s.attends.front().getPairs();
}

std::vector<GradientMutation> gradientMutations() {
  std::vector<GradientMutation> result;
  for (ArrayRef<GradientMutation> some :
       {gradientAttendMutations(), gradientTransferMutations()})
    llvm::append_range(result, some);
  return result;
}

std::vector<Mutation> allMutations() {
  std::vector<Mutation> result;
  for (ArrayRef<Mutation> some :
       {transferMutations(), attendMutations(), layoutMutations()})
    llvm::append_range(result, some);
  return result;
}

} // namespace burst::test
