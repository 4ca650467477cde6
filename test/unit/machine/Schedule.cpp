//===- Schedule.cpp - the schedules that tests break ----------------------===//
#include "test/unit/machine/Mutations.h"

using namespace mlir;

namespace burst::test {

//===----------------------------------------------------------------------===//
// What a schedule does
//===----------------------------------------------------------------------===//

namespace {

/// Notes what an unbroken schedule sends and needs.
class Observer : public Bookkeeper {
public:
  explicit Observer(Schedule &schedule) : schedule(schedule) {}

  bool attend(Attend &attend, State &result, std::string &message) override {
    for (auto [index, slice] : llvm::enumerate(attend.slices))
      for (int64_t a = 0; a < attend.queryLayout.getNumSegments(); ++a)
        for (int64_t b = 0; b < attend.keyLayout.getNumSegments(); ++b) {
          bool isEmpty = classifier.classify(attend, slice.owner, a, b) ==
                         PairClass::Empty;
          schedule.hasRuledOut |= isEmpty;
          schedule.needsLast |= !isEmpty && attend.at == schedule.attends.back();
        }
    return Bookkeeper::attend(attend, result, message);
  }

  void deliver(const Transfer &from, Transfer &to, size_t index) override {
    schedule.messages.push_back({from.rank, to.rank, from.hop});
  }

private:
  Schedule &schedule;
  Classifier classifier;
};

} // namespace

Schedule::Schedule(ModuleOp module, const Problem &problem)
    : module(module), problem(problem), parts(problem.parts),
      program(getProgram(module)) {
  program.walk([&](Operation *op) {
    if (auto found = dyn_cast<shard::ProcessMultiIndexOp>(op))
      rank = found.getResult()[0];
    else if (auto found = dyn_cast<ring::AttendOp>(op))
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
  options.allowEmpty = !problem.drop;
  std::unique_ptr<Simulation> simulation = Simulation::create(program);
  simulation->reset();
  Observer observer(*this);
  (void)simulation->run(observer,
                        shardGlobals(*simulation, *describeGlobals(program, {}),
                                     ShardData::Omit));
}

//===----------------------------------------------------------------------===//
// Values for broken operands
//===----------------------------------------------------------------------===//

ring::ShardAttr shardOf(Schedule &s, unsigned argument) {
  return s.program.getArgAttrOfType<ring::ShardAttr>(argument, ring::shardAttr);
}

SmallVector<Value> pairsOf(Emit &e, ring::AttendOp attend) {
  SmallVector<Value> result(attend.getPairs());
  size_t size = attend.getKeys().size() *
                attend.getQueryLayout().getNumSegments() *
                attend.getKeyLayout().getNumSegments();
  while (result.size() < size)
    result.push_back(e.truth(true));
  return result;
}

bool hasFlags(Schedule &s) {
  return !s.start.getSendSegments().empty() ||
         !s.attends.front().getPairs().empty();
}

std::vector<Mutation> allMutations() {
  std::vector<Mutation> result;
  for (ArrayRef<Mutation> some :
       {transferMutations(), attendMutations(), layoutMutations()})
    llvm::append_range(result, some);
  return result;
}

} // namespace burst::test
