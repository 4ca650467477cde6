//===- Simulation.cpp - all ranks of a ring program -----------------------===//
#include "passes/Machine/Simulation.h"
#include "passes/Machine/Slots.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;

int64_t Traffic::totalBytes() const {
  int64_t sum = 0;
  for (auto [argument, bytes] : sentBytes)
    sum += bytes;
  return sum;
}

std::optional<Made> Transfer::share() const {
  int number = tensors.front()->argument;
  if (number >= -1)
    return std::nullopt;
  Made made = whatIsMade(number).second;
  switch (made) {
  case Made::Delta:
  case Made::Out:
  case Made::Lse:
    return std::nullopt;
  case Made::Gradient:
  case Made::O:
  case Made::M:
  case Made::L:
    return made;
  }
  llvm_unreachable("unknown kind");
}

TransferKind Transfer::kind() const {
  if (!share())
    return TransferKind::Slice;
  return receivedOwner == rank ? TransferKind::Home : TransferKind::Onward;
}

namespace {

/// A function the program calls, and what it gave for which arguments: it
/// cannot depend on the rank, so all ranks share its results.
struct Callee {
  Program program;
  struct Memory {
    std::vector<Scalar> scalars;
    std::vector<Object> objects;
    Frame frame;
  };
  std::vector<Memory> calls;
};

} // namespace

//===----------------------------------------------------------------------===//
// Simulation::Impl
//===----------------------------------------------------------------------===//

class Simulation::Impl {
public:
  explicit Impl(func::FuncOp function, Program program)
      : function(function), program(std::move(program)),
        parts(ring::numRanks(function)) {}

  bool run(std::vector<std::vector<Argument>> arguments);
  void reset();
  LogicalResult compileCallees();

  GaugeRef &gaugeOf(const Transfer &transfer) {
    return slices[transfer.rank][static_cast<size_t>(transfer.kind())];
  }

  /// Counts what a transfer brings until the last of its tensors is gone.
  std::shared_ptr<void> holdSlice(const Transfer &transfer) {
    GaugeRef gauge = gaugeOf(transfer);
    gauge->add(1);
    return {gauge.get(), [gauge](void *) { gauge->add(-1); }};
  }

  /// What `ring.init`, `zero` and `scores` make in memory.
  struct Memory {
    bool isCarried = false; ///< by what a loop carries, in so many slots
    int64_t slots = 0;
    size_t copies = 1; ///< several that begin alike are several in memory
  };
  Memory &memoryOf(Operation *op);
  int64_t slotsOf(ring::StartOp start);
  int64_t largestShard(const Deal &deal, int64_t extent);

  func::FuncOp function;
  Program program;
  int64_t parts;
  std::map<Operation *, Callee> callees; ///< by func.call
  Semantics *semantics = nullptr;
  Counterexample failure;
  std::vector<Traffic> traffic;
  std::vector<std::vector<TensorRef>> results;
  /// What was received and is held, by rank and kind.
  std::vector<std::array<GaugeRef, numTransferKinds>> slices;

private:
  struct Rank;
  using Queue = std::deque<std::shared_ptr<Transfer>>;

  bool refuse(const Transfer &transfer, const Twine &message);
  bool advance(int64_t rank, int64_t channel);
  bool match(Transfer &from, Transfer &to);
  bool advanceExchange(int64_t channel);
  void settle(int64_t rank, int64_t channel);
  bool checkEnd();
  std::string describeRank(int64_t rank, int64_t channel);
  bool reportDeadlock();

  /// What only the code says, and is asked in each turn.
  llvm::DenseMap<Operation *, Memory> memories;
  llvm::DenseMap<Operation *, int64_t> slots;
  struct Largest {
    Deal deal;
    int64_t extent = -1, count = 0;
  };
  Largest largest; ///< of the shards of what was asked last
  std::vector<std::unique_ptr<Rank>> ranks;
  /// Transfers that are not done, per channel and rank, in issue order.
  std::map<int64_t, std::vector<Queue>> queues;
};

/// One rank: its frame, and the ops that leave it.
struct Simulation::Impl::Rank : Environment {
  Rank(Impl &impl, int64_t index) : impl(impl), index(index) {
    frame = impl.program.makeFrame();
    numRanks = impl.parts;
  }

  Step execute(const ExternalCall &call) override;
  Step call(const ExternalCall &call) override;
  void fault(Location loc, const Twine &message) override;

  Step fail(Operation *op, const Twine &message);
  /// A buffer of such a size is allocated; none is freed before the end.
  void hold(const Tensor &tensor) { hold(tensor.shape, tensor.element); }
  void hold(ArrayRef<int64_t> shape, Type element) {
    impl.traffic[index].peakBytes += bytesOf(shape, element);
  }
  void holdFresh(Operation *op, ArrayRef<TensorRef> tensors);
  Step runInit(ring::InitOp op, const ExternalCall &call);
  Step runSegment(ring::SegmentOp op, const ExternalCall &call);
  Step runAttend(ring::AttendOp op, const ExternalCall &call);
  Step runMerge(ring::MergeOp op, const ExternalCall &call);
  Step runFinalize(ring::FinalizeOp op, const ExternalCall &call);
  Step runScores(ring::ScoresOp op, const ExternalCall &call);
  Step runScore(ring::ScoreOp op, const ExternalCall &call);
  Step runSoftmax(ring::SoftmaxOp op, const ExternalCall &call);
  Step runWeigh(ring::WeighOp op, const ExternalCall &call);
  Step runZero(ring::ZeroOp op, const ExternalCall &call);
  Step runDelta(ring::DeltaOp op, const ExternalCall &call);
  Step runAttendGrad(ring::AttendGradOp op, const ExternalCall &call);
  Step runAdd(ring::AddOp op, const ExternalCall &call);
  Step runRound(ring::RoundOp op, const ExternalCall &call);
  template <typename OpT>
  void meet(OpT op, Meeting &meeting);
  Step runStart(ring::StartOp op, const ExternalCall &call);
  Step runWait(ring::WaitOp op, const ExternalCall &call);
  Step runExchange(ring::ExchangeOp op, const ExternalCall &call);
  bool startExchange(ring::ExchangeOp op, const ExternalCall &call);
  Step runRequire(ring::RequireOp op, const ExternalCall &call);
  bool post(std::shared_ptr<Transfer> transfer, int64_t channel);
  bool isRank(Operation *op, StringRef what, int64_t value);
  bool isOnGrid(Operation *op, StringRef grid);

  Impl &impl;
  int64_t index;
  Frame frame;
  int64_t hop = 0;
  bool isDone = false;
  /// How often a transfer was started, or a gradient begun: see numSlots.
  llvm::DenseMap<Operation *, int64_t> turns;
  /// Started and not waited for.
  std::vector<std::shared_ptr<Transfer>> open;
  std::shared_ptr<Transfer> exchange; ///< under way
};

//===----------------------------------------------------------------------===//
// Ops of a rank
//===----------------------------------------------------------------------===//

void Simulation::Impl::Rank::fault(Location loc, const Twine &message) {
  impl.failure = {index, hop, nullptr, message.str(), loc};
}

Step Simulation::Impl::Rank::fail(Operation *op, const Twine &message) {
  impl.failure = {index, hop, op, message.str(), std::nullopt};
  return Step::Failed;
}

Step Simulation::Impl::Rank::execute(const ExternalCall &call) {
  Step step =
      // What is run in every turn stands first.
      TypeSwitch<Operation *, Step>(call.op)
          .Case<ring::StartOp>([&](auto op) { return runStart(op, call); })
          .Case<ring::WaitOp>([&](auto op) { return runWait(op, call); })
          .Case<ring::MergeOp>([&](auto op) { return runMerge(op, call); })
          .Case<ring::AttendOp>([&](auto op) { return runAttend(op, call); })
          .Case<shard::ProcessMultiIndexOp>([&](auto op) {
            call.frame.scalars[call.results[0].number].i = index;
            return isOnGrid(op, op.getGrid()) ? Step::Done : Step::Failed;
          })
          .Case<shard::GridShapeOp>([&](auto op) {
            call.frame.scalars[call.results[0].number].i = impl.parts;
            return isOnGrid(op, op.getGrid()) ? Step::Done : Step::Failed;
          })
          .Case<ring::SegmentOp>([&](auto op) { return runSegment(op, call); })
          .Case<ring::InitOp>([&](auto op) { return runInit(op, call); })
          .Case<ring::FinalizeOp>(
              [&](auto op) { return runFinalize(op, call); })
          .Case<ring::ScoresOp>([&](auto op) { return runScores(op, call); })
          .Case<ring::ScoreOp>([&](auto op) { return runScore(op, call); })
          .Case<ring::SoftmaxOp>([&](auto op) { return runSoftmax(op, call); })
          .Case<ring::WeighOp>([&](auto op) { return runWeigh(op, call); })
          .Case<ring::ZeroOp>([&](auto op) { return runZero(op, call); })
          .Case<ring::DeltaOp>([&](auto op) { return runDelta(op, call); })
          .Case<ring::AttendGradOp>(
              [&](auto op) { return runAttendGrad(op, call); })
          .Case<ring::AddOp>([&](auto op) { return runAdd(op, call); })
          .Case<ring::RoundOp>([&](auto op) { return runRound(op, call); })
          .Case<ring::ExchangeOp>(
              [&](auto op) { return runExchange(op, call); })
          .Case<ring::RequireOp>([&](auto op) { return runRequire(op, call); })
          .Default([&](Operation *op) {
            return fail(op, "cannot be run: it is no op of a rank's program");
          });
  if (step == Step::Failed && !impl.failure.op)
    impl.failure.op = call.op;
  return step;
}

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

bool Simulation::Impl::Rank::isRank(Operation *op, StringRef what,
                                    int64_t value) {
  if (value >= 0 && value < impl.parts)
    return true;
  fail(op, "names rank " + Twine(value) + " as " + what + ", of " +
               Twine(impl.parts) + " ranks");
  return false;
}

/// Ranks, and channels between them, are those of the program's grid.
bool Simulation::Impl::Rank::isOnGrid(Operation *op, StringRef grid) {
  auto own = impl.function->getAttrOfType<FlatSymbolRefAttr>(ring::gridAttr);
  if (grid == own.getValue())
    return true;
  fail(op,
       "names the grid @" + grid + ", the program runs on @" + own.getValue());
  return false;
}

Step Simulation::Impl::Rank::runSegment(ring::SegmentOp op,
                                        const ExternalCall &call) {
  if (!isRank(op, "owner", call.index(0)))
    return Step::Failed;
  Segment s = op.getLayout().getDeal().segment(call.index(0), op.getIndex(),
                                               call.index(1));
  int64_t values[] = {s.begin, s.end(), s.count, s.step, s.block};
  for (auto [slot, value] : llvm::zip_equal(call.results, values))
    call.frame.scalars[slot.number].i = value;
  return Step::Done;
}

Step Simulation::Impl::Rank::runRequire(ring::RequireOp op,
                                        const ExternalCall &call) {
  int64_t found = call.index(0), wanted = call.index(1);
  if (found >= wanted || !impl.semantics->knowsTables())
    return Step::Done;
  return fail(op, op.getWhat() + ": " + Twine(found) + ", wanted at least " +
                      Twine(wanted));
}

static std::vector<Argument> captures(const ExternalCall &call,
                                      OperandRange range) {
  std::vector<Argument> result;
  for (unsigned i = 0; i < range.size(); ++i) {
    Slot slot = call.operands[range.getBeginOperandIndex() + i];
    if (slot.isScalar)
      result.push_back({call.frame.scalars[slot.number], nullptr});
    else
      result.push_back(
          {Scalar{0}, call.peek<Tensor>(range.getBeginOperandIndex() + i)});
  }
  return result;
}

/// o, m and l have the (batch, heads, sequence) of `rows`. Where sizes are
/// dynamic, no verifier of an op can say so.
static bool isStateOf(const State &state, ArrayRef<int64_t> rows) {
  ArrayRef<int64_t> o(state.o->shape);
  return ArrayRef<int64_t>(state.m->shape) == rows &&
         ArrayRef<int64_t>(state.l->shape) == rows && o[0] == rows[0] &&
         o[2] == rows[1] && o[1] == rows[2];
}

/// What all meetings take from their op.
template <typename OpT>
void Simulation::Impl::Rank::meet(OpT op, Meeting &meeting) {
  meeting.at = op;
  meeting.rank = index;
  meeting.hop = hop;
  meeting.queryLayout = op.getQueryLayout();
  meeting.keyLayout = op.getKeyLayout();
  meeting.mask = &op.getMask();
  meeting.score = &op.getScore();
  meeting.bounds = &op.getBounds();
  meeting.scale = op.getScale().convertToDouble();
}

namespace {
/// What a tensor is, whatever a Semantics makes of it.
struct Label {
  int argument = -1;
  int64_t owner = 0;
  Sharding sharding;

  Label() = default;
  explicit Label(const Tensor &tensor)
      : argument(tensor.argument), owner(tensor.owner),
        sharding(tensor.sharding) {}

  void put(Tensor &tensor) const {
    tensor.argument = argument;
    tensor.owner = owner;
    tensor.sharding = sharding;
  }
};

/// The labels of o, m and l.
struct StateLabel {
  Label o, m, l;

  explicit StateLabel(const State &state)
      : o(*state.o), m(*state.m), l(*state.l) {}
  /// Of a state of these queries.
  static void putNew(State &state, const Tensor &query) {
    for (auto [part, what] : {std::pair(&state.o, Made::O),
                              {&state.m, Made::M},
                              {&state.l, Made::L}}) {
      Label label(query);
      label.argument = madeFor(query.argument, what);
      if (what != Made::O)
        label.sharding.dim = 2;
      label.put(**part);
    }
  }
  void put(State &state) const {
    o.put(*state.o);
    m.put(*state.m);
    l.put(*state.l);
  }
};
} // namespace

/// The queries of which `tensor` is the state, or -1.
static int queryOf(const Tensor &tensor) {
  return tensor.argument < -1 ? whatIsMade(tensor.argument).first : -1;
}

Step Simulation::Impl::Rank::runAttend(ring::AttendOp op,
                                       const ExternalCall &call) {
  unsigned next = 0;
  Attend attend;
  meet(op, attend);
  attend.query = call.peek<Tensor>(next++);
  attend.queryOwner = call.index(next++);
  attend.queryExtent = call.index(next++);
  unsigned slices = op.getKeys().size();
  for (unsigned i = 0; i < slices; ++i)
    attend.slices.push_back({call.peek<Tensor>(next + i),
                             call.peek<Tensor>(next + slices + i),
                             call.index(next + 2 * slices + i)});
  next += 3 * slices;
  attend.keyExtent = call.index(next++);
  attend.state.o = call.take<Tensor>(next++);
  attend.state.m = call.take<Tensor>(next++);
  attend.state.l = call.take<Tensor>(next++);
  for (unsigned i = 0; i < op.getPairs().size(); ++i)
    attend.pairs.push_back(call.index(next + i) != 0);
  if (attend.pairs.empty())
    attend.pairs.resize(slices * op.getQueryLayout().getNumSegments() *
                            op.getKeyLayout().getNumSegments(),
                        true);
  attend.maskCaptures = captures(call, op.getMaskCaptures());
  attend.scoreCaptures = captures(call, op.getScoreCaptures());
  if (!isRank(op, "owner of the queries", attend.queryOwner))
    return Step::Failed;
  for (const Slice &slice : attend.slices)
    if (!isRank(op, "owner of a slice", slice.owner))
      return Step::Failed;
  const Tensor &query = *attend.query;
  int64_t rows[] = {query.shape[0], query.shape[2], query.shape[1]};
  if (!isStateOf(attend.state, rows))
    return fail(op, "takes a state that has not the rows of its queries");
  State state;
  std::string message;
  StateLabel label(attend.state);
  if (!impl.semantics->attend(attend, state, message))
    return fail(op, message);
  label.put(state);
  call.give(0, state.o);
  call.give(1, state.m);
  call.give(2, state.l);
  return Step::Done;
}

/// The segments that are not empty.
static uint64_t segmentMask(const Deal &deal, int64_t owner, int64_t extent) {
  uint64_t mask = 0;
  for (int64_t s = 0; s < deal.numSegments(); ++s)
    if (deal.segment(owner, s, extent).count != 0)
      mask |= uint64_t{1} << s;
  return mask;
}

/// Those of them that are flagged; all, where there are no flags.
static uint64_t flaggedMask(const ExternalCall &call, OperandRange flags,
                            const Deal &deal, int64_t owner, int64_t extent) {
  uint64_t mask = segmentMask(deal, owner, extent);
  for (unsigned s = 0; s < flags.size(); ++s)
    if (call.index(flags.getBeginOperandIndex() + s) == 0)
      mask &= ~(uint64_t{1} << s);
  return mask;
}

int64_t Simulation::Impl::largestShard(const Deal &deal, int64_t extent) {
  Largest &last = largest;
  if (last.deal == deal && last.extent == extent)
    return last.count;
  last = {deal, extent, 0};
  for (int64_t owner = 0; owner < deal.parts; ++owner)
    last.count = std::max(last.count, deal.count(owner, extent));
  return last.count;
}

Simulation::Impl::Memory &Simulation::Impl::memoryOf(Operation *op) {
  auto [entry, isNew] = memories.try_emplace(op);
  if (isNew)
    entry->second = {sentOn(op) != nullptr, numSlots(op),
                     std::max<size_t>(updatingUses(op).size(), 1)};
  return entry->second;
}

/// By what a loop carries, buffers are made once for all its turns.
void Simulation::Impl::Rank::holdFresh(Operation *op,
                                       ArrayRef<TensorRef> tensors) {
  const Memory &memory = impl.memoryOf(op);
  if (memory.isCarried && ++turns[op] > memory.slots)
    return;
  for (size_t i = 0; i < memory.copies; ++i)
    for (const TensorRef &tensor : tensors) {
      auto shape = tensor->shape;
      if (memory.isCarried) // as large as the largest shard
        shape[tensor->sharding.dim] =
            impl.largestShard(tensor->sharding.deal, tensor->sharding.extent);
      hold(shape, tensor->element);
    }
}

Step Simulation::Impl::Rank::runInit(ring::InitOp op,
                                     const ExternalCall &call) {
  TensorRef query = call.peek<Tensor>(0);
  State state = impl.semantics->init(op, *query);
  StateLabel::putNew(state, *query);
  holdFresh(op, {state.o, state.m, state.l});
  call.give(0, state.o);
  call.give(1, state.m);
  call.give(2, state.l);
  return Step::Done;
}

Step Simulation::Impl::Rank::runMerge(ring::MergeOp op,
                                      const ExternalCall &call) {
  Merge merge{op, index, hop, {}, {}, call.index(6), call.index(7), 0};
  if (!isRank(op, "owner", merge.owner))
    return Step::Failed;
  Deal deal = op.getLayout().getDeal();
  merge.segments =
      flaggedMask(call, op.getSegments(), deal, merge.owner, merge.extent);
  State &into = merge.into, &from = merge.from;
  into = {call.take<Tensor>(0), call.take<Tensor>(1), call.take<Tensor>(2)};
  from = {call.take<Tensor>(3), call.take<Tensor>(4), call.take<Tensor>(5)};
  // Nothing to merge: the second may be of other rows, and not there at all.
  if (merge.segments != 0) {
    if (!isStateOf(into, into.m->shape) || !isStateOf(from, into.m->shape) ||
        into.o->shape[3] != from.o->shape[3])
      return fail(op, "merges states of different rows");
    int64_t count = deal.count(merge.owner, merge.extent);
    if (into.o->shape[1] != count)
      return fail(op, "merges states of " + Twine(into.o->shape[1]) +
                          " queries as those of rank " + Twine(merge.owner) +
                          ", which has " + Twine(count));
    std::string message;
    StateLabel label(into);
    if (!impl.semantics->merge(merge, message))
      return fail(op, message);
    label.put(into);
  }
  call.give(0, into.o);
  call.give(1, into.m);
  call.give(2, into.l);
  return Step::Done;
}

Step Simulation::Impl::Rank::runFinalize(ring::FinalizeOp op,
                                         const ExternalCall &call) {
  State state{call.take<Tensor>(0), call.take<Tensor>(1), call.take<Tensor>(2)};
  TensorRef out, lse;
  std::string message;
  Type element = state.o->element;
  int queries = queryOf(*state.o);
  int64_t owner = state.o->owner;
  if (!impl.semantics->finalize(op, state, out, lse, message))
    return fail(op, message);
  out->argument = madeFor(queries, Made::Out);
  lse->argument = madeFor(queries, Made::Lse);
  out->owner = lse->owner = owner;
  if (out->element != element)
    hold(*out);
  call.give(0, out);
  call.give(1, lse);
  return Step::Done;
}

//===----------------------------------------------------------------------===//
// Stored scores
//===----------------------------------------------------------------------===//

Step Simulation::Impl::Rank::runScores(ring::ScoresOp op,
                                       const ExternalCall &call) {
  int64_t keys = call.index(1);
  if (keys < 0 || keys >= maxPositions)
    return fail(op, "makes scores of " + Twine(keys) + " keys");
  TensorRef scores = impl.semantics->scores(op, *call.peek<Tensor>(0), keys);
  for (size_t i = 0; i < impl.memoryOf(op).copies; ++i)
    hold(*scores);
  call.give(0, scores);
  return Step::Done;
}

Step Simulation::Impl::Rank::runScore(ring::ScoreOp op,
                                      const ExternalCall &call) {
  Score score;
  meet(op, score);
  score.query = call.peek<Tensor>(0);
  score.queryOwner = call.index(1);
  score.queryExtent = call.index(2);
  score.key = call.peek<Tensor>(3);
  score.keyOwner = call.index(4);
  score.keyExtent = call.index(5);
  if (!isRank(op, "owner of the queries", score.queryOwner) ||
      !isRank(op, "owner of a slice", score.keyOwner))
    return Step::Failed;
  score.scores = call.take<Tensor>(6);
  for (unsigned i = 0; i < op.getPairs().size(); ++i)
    score.pairs.push_back(call.index(7 + i) != 0);
  if (score.pairs.empty())
    score.pairs.resize(op.getQueryLayout().getNumSegments() *
                           op.getKeyLayout().getNumSegments(),
                       true);
  score.maskCaptures = captures(call, op.getMaskCaptures());
  score.scoreCaptures = captures(call, op.getScoreCaptures());
  std::string message;
  if (!impl.semantics->score(score, message))
    return fail(op, message);
  call.give(0, score.scores);
  return Step::Done;
}

/// (batch, heads, sequence) of scores.
static ArrayRef<int64_t> rowsOf(const Tensor &scores) {
  return ArrayRef<int64_t>(scores.shape).take_front(3);
}

Step Simulation::Impl::Rank::runSoftmax(ring::SoftmaxOp op,
                                        const ExternalCall &call) {
  TensorRef scores = call.take<Tensor>(0);
  State state{call.take<Tensor>(1), call.take<Tensor>(2), call.take<Tensor>(3)};
  if (!isStateOf(state, rowsOf(*scores)))
    return fail(op, "takes a state that has not the rows of its scores");
  std::string message;
  StateLabel label(state);
  if (!impl.semantics->softmax(op, scores, state, message))
    return fail(op, message);
  label.put(state);
  call.give(0, scores);
  call.give(1, state.o);
  call.give(2, state.m);
  call.give(3, state.l);
  return Step::Done;
}

Step Simulation::Impl::Rank::runWeigh(ring::WeighOp op,
                                      const ExternalCall &call) {
  Weigh weigh{op,
              call.peek<Tensor>(0),
              call.peek<Tensor>(1),
              call.index(2),
              call.index(3),
              {}};
  if (!isRank(op, "owner of a slice", weigh.owner))
    return Step::Failed;
  weigh.state = {call.take<Tensor>(4), call.take<Tensor>(5),
                 call.take<Tensor>(6)};
  if (!isStateOf(weigh.state, rowsOf(*weigh.weights)))
    return fail(op, "takes a state that has not the rows of its weights");
  std::string message;
  StateLabel label(weigh.state);
  if (!impl.semantics->weigh(weigh, message))
    return fail(op, message);
  label.put(weigh.state);
  call.give(0, weigh.state.o);
  call.give(1, weigh.state.m);
  call.give(2, weigh.state.l);
  return Step::Done;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

Step Simulation::Impl::Rank::runZero(ring::ZeroOp op,
                                     const ExternalCall &call) {
  TensorRef like = call.peek<Tensor>(0);
  TensorRef zero = impl.semantics->zero(op, *like);
  Label label(*like);
  label.argument = madeFor(like->argument, Made::Gradient);
  label.put(*zero);
  holdFresh(op, zero);
  call.give(0, zero);
  return Step::Done;
}

Step Simulation::Impl::Rank::runDelta(ring::DeltaOp op,
                                      const ExternalCall &call) {
  TensorRef out = call.peek<Tensor>(0), outGrad = call.peek<Tensor>(1);
  TensorRef lseGrad = op.getLseGrad() ? call.peek<Tensor>(2) : nullptr, delta;
  std::string message;
  if (out->shape != outGrad->shape)
    return fail(op, "takes out and its gradient of different rows");
  if (out->owner != outGrad->owner ||
      (lseGrad && lseGrad->owner != outGrad->owner))
    return fail(op, "takes out and gradients of different ranks");
  if (!impl.semantics->delta(op, out, outGrad, lseGrad, delta, message))
    return fail(op, message);
  delta->argument = madeFor(outGrad->argument, Made::Delta);
  delta->owner = outGrad->owner;
  delta->sharding = outGrad->sharding;
  delta->sharding.dim = 2;
  hold(*delta);
  call.give(0, delta);
  return Step::Done;
}

Step Simulation::Impl::Rank::runAttendGrad(ring::AttendGradOp op,
                                           const ExternalCall &call) {
  AttendGrad attend;
  meet(op, attend);
  attend.op = op;
  attend.query = call.peek<Tensor>(0);
  attend.outGrad = call.peek<Tensor>(1);
  attend.lse = call.peek<Tensor>(2);
  attend.delta = call.peek<Tensor>(3);
  attend.queryOwner = call.index(4);
  attend.queryExtent = call.index(5);
  attend.slice = {call.peek<Tensor>(6), call.peek<Tensor>(7), call.index(8)};
  attend.keyExtent = call.index(9);
  unsigned next = 10;
  for (unsigned i = 0; i < op.getGrads().size(); ++i)
    attend.grads.push_back(call.take<Tensor>(next + i));
  next += op.getGrads().size();
  for (unsigned i = 0; i < op.getPairs().size(); ++i)
    attend.pairs.push_back(call.index(next + i) != 0);
  if (attend.pairs.empty())
    attend.pairs.resize(op.getQueryLayout().getNumSegments() *
                            op.getKeyLayout().getNumSegments(),
                        true);
  attend.maskCaptures = captures(call, op.getMaskCaptures());
  attend.scoreCaptures = captures(call, op.getScoreCaptures());
  if (!isRank(op, "owner of the queries", attend.queryOwner) ||
      !isRank(op, "owner of the slice", attend.slice.owner))
    return Step::Failed;
  const Tensor &query = *attend.query;
  SmallVector<int64_t, 4> rows{query.shape[0], query.shape[2], query.shape[1]};
  bool fits = attend.lse->shape == rows && attend.delta->shape == rows &&
              attend.outGrad->shape[1] == query.shape[1] &&
              attend.slice.key->shape[1] == attend.slice.value->shape[1];
  const TensorRef by[] = {attend.query, attend.slice.key, attend.slice.value};
  for (auto [tensor, grad] : llvm::zip(by, attend.grads))
    fits &= tensor->shape == grad->shape;
  if (!fits)
    return fail(op, "takes tensors of different rows");
  std::vector<Label> labels;
  labels.reserve(attend.grads.size());
  for (const TensorRef &grad : attend.grads)
    labels.emplace_back(*grad);
  std::string message;
  if (!impl.semantics->attendGrad(attend, message))
    return fail(op, message);
  for (auto [i, grad] : llvm::enumerate(attend.grads)) {
    labels[i].put(*grad);
    call.give(i, grad);
  }
  return Step::Done;
}

Step Simulation::Impl::Rank::runRound(ring::RoundOp op,
                                      const ExternalCall &call) {
  TensorRef gradient = call.peek<Tensor>(0), rounded;
  std::string message;
  if (!impl.semantics->round(op, gradient, rounded, message))
    return fail(op, message);
  Label(*gradient).put(*rounded);
  hold(*rounded);
  call.give(0, rounded);
  return Step::Done;
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

Step Simulation::Impl::Rank::runAdd(ring::AddOp op, const ExternalCall &call) {
  Sum sum{op, index, hop, nullptr, nullptr, call.index(2), call.index(3), 0};
  if (!isRank(op, "owner", sum.owner))
    return Step::Failed;
  Deal deal = op.getLayout().getDeal();
  sum.segments =
      flaggedMask(call, op.getSegments(), deal, sum.owner, sum.extent);
  // Nothing to add: the second may be of other rows, and not there at all.
  sum.a = call.take<Tensor>(0);
  sum.b = call.peek<Tensor>(1);
  if (sum.segments != 0) {
    int64_t count = deal.count(sum.owner, sum.extent);
    if (sum.a->shape[1] != count || sum.b->shape[1] != count)
      return fail(op, "adds gradients of " + Twine(sum.a->shape[1]) + " and " +
                          Twine(sum.b->shape[1]) +
                          " positions as shards of rank " + Twine(sum.owner) +
                          ", which has " + Twine(count));
    Label label(*sum.a);
    std::string message;
    if (!impl.semantics->add(sum, message))
      return fail(op, message);
    label.put(*sum.a);
  }
  call.give(0, sum.a);
  return Step::Done;
}

/// A transfer that a loop carries into its first turn has the buffer of that of
/// the loop.
int64_t Simulation::Impl::slotsOf(ring::StartOp start) {
  auto [entry, isNew] = slots.try_emplace(start, 0);
  if (isNew &&
      llvm::none_of(start.getToken().getUsers(), llvm::IsaPred<scf::ForOp>))
    entry->second = numSlots(start);
  return entry->second;
}

Step Simulation::Impl::Rank::runStart(ring::StartOp op,
                                      const ExternalCall &call) {
  auto operand = [&](Value value) {
    return call.index(llvm::find(op->getOperands(), value).getIndex());
  };
  auto transfer = std::make_shared<Transfer>();
  bool isNewSlot = ++turns[op] <= impl.slotsOf(op);
  transfer->op = op;
  transfer->start = op;
  transfer->rank = index;
  transfer->hop = hop;
  transfer->owner = operand(op.getOwner());
  transfer->extent = operand(op.getExtent());
  transfer->to = operand(op.getTo());
  transfer->from = operand(op.getFrom());
  transfer->receivedOwner = operand(op.getReceivedOwner());
  if (!isRank(op, "owner", transfer->owner) ||
      !isRank(op, "target", transfer->to) ||
      !isRank(op, "source", transfer->from) ||
      !isRank(op, "owner of what is received", transfer->receivedOwner))
    return Step::Failed;
  if (!isOnGrid(op, op.getChannel().getGrid().getValue()))
    return Step::Failed;
  Deal deal = op.getLayout().getDeal();
  transfer->sendMask = flaggedMask(call, op.getSendSegments(), deal,
                                   transfer->owner, transfer->extent);
  transfer->receiveMask =
      flaggedMask(call, op.getReceiveSegments(), deal, transfer->receivedOwner,
                  transfer->extent);
  for (unsigned i = 0; i < op.getTensors().size(); ++i) {
    TensorRef tensor = call.peek<Tensor>(i);
    if (tensor->shape[op.getDims()[i]] !=
        deal.count(transfer->owner, transfer->extent))
      return fail(op, "sends a tensor of " +
                          Twine(tensor->shape[op.getDims()[i]]) +
                          " positions as the shard of " +
                          Twine(transfer->owner) + ", which has " +
                          Twine(deal.count(transfer->owner, transfer->extent)));
    auto shape = tensor->shape;
    if (isNewSlot) { // as large as the largest shard
      shape[op.getDims()[i]] = impl.largestShard(deal, transfer->extent);
      hold(shape, tensor->element);
    }
    shape[op.getDims()[i]] =
        deal.count(transfer->receivedOwner, transfer->extent);
    auto received = std::make_shared<Tensor>(shape, tensor->element);
    received->argument = tensor->argument;
    received->owner = transfer->receivedOwner;
    received->sharding = {deal, op.getDims()[i], transfer->extent};
    received->segments = transfer->receiveMask;
    transfer->received.push_back(std::move(received));
    transfer->tensors.push_back(call.take<Tensor>(i));
  }
  if (transfer->receiveMask != 0) {
    std::shared_ptr<void> slice = impl.holdSlice(*transfer);
    for (const TensorRef &received : transfer->received)
      received->slice = slice;
  }
  ++impl.traffic[index].hops;
  open.push_back(transfer);
  call.give(0, transfer);
  std::string message;
  if (!impl.semantics->start(*transfer, impl.gaugeOf(*transfer)->held, message))
    return fail(op, message);
  transfer->sent = transfer->sendMask == 0;
  transfer->arrived = transfer->receiveMask == 0;
  return post(transfer, op.getChannel().getIndex()) ? Step::Done : Step::Failed;
}

/// Puts a transfer behind those that were started before it.
bool Simulation::Impl::Rank::post(std::shared_ptr<Transfer> transfer,
                                  int64_t channel) {
  auto &channelQueues = impl.queues[channel];
  channelQueues.resize(impl.parts);
  channelQueues[index].push_back(std::move(transfer));
  return impl.advance(index, channel);
}

Step Simulation::Impl::Rank::runWait(ring::WaitOp op,
                                     const ExternalCall &call) {
  auto transfer = call.peek<Transfer>(0);
  if (!transfer || transfer->waited)
    return fail(op, "waits again for a transfer that it has waited for");
  if (transfer->rank != index)
    return fail(op, "waits for a transfer of another rank");
  if (!transfer->isDone())
    return Step::Blocked;
  transfer->waited = true;
  impl.semantics->wait(*transfer);
  for (auto [i, received] : llvm::enumerate(transfer->received))
    call.give(i, received);
  // What was sent may be reused, what was received is the program's now.
  transfer->tensors.clear();
  transfer->received.clear();
  llvm::erase(open, transfer);
  ++hop;
  return Step::Done;
}

Step Simulation::Impl::Rank::runExchange(ring::ExchangeOp op,
                                         const ExternalCall &call) {
  if (!exchange && !startExchange(op, call))
    return Step::Failed;
  if (!exchange->isDone())
    return Step::Blocked;
  call.give(0, exchange->received.front());
  exchange.reset();
  ++hop;
  return Step::Done;
}

bool Simulation::Impl::Rank::startExchange(ring::ExchangeOp op,
                                           const ExternalCall &call) {
  auto refuse = [&](const Twine &message) {
    fail(op, message);
    return false;
  };
  if (!isOnGrid(op, op.getChannel().getGrid().getValue()))
    return false;
  if (call.index(1) != index)
    return refuse("takes part as rank " + Twine(call.index(1)));
  TensorRef input = call.peek<Tensor>(0);
  ring::ShardAttr source = op.getSource(), target = op.getTarget();
  Deal from = source.getLayout().getDeal(), to = target.getLayout().getDeal();
  int64_t held = from.count(index, source.getExtent());
  if (input->shape[source.getDim()] != held)
    return refuse("gives a shard of " + Twine(input->shape[source.getDim()]) +
                  " positions, its layout says " + Twine(held));
  auto shape = input->shape;
  shape[source.getDim()] = source.getExtent();
  if (shape[target.getDim()] != target.getExtent())
    return refuse("deals " + Twine(target.getExtent()) +
                  " positions anew, there are " +
                  Twine(shape[target.getDim()]));
  shape[target.getDim()] = to.count(index, target.getExtent());
  auto output = std::make_shared<Tensor>(shape, input->element);
  hold(*output);
  output->argument = input->argument;
  output->owner = index;
  output->sharding = {to, target.getDim(), target.getExtent()};
  exchange = std::make_shared<Transfer>();
  exchange->op = op;
  exchange->rank = exchange->owner = index;
  exchange->hop = hop;
  exchange->extent = source.getExtent();
  exchange->sendMask = segmentMask(from, index, source.getExtent());
  exchange->received.push_back(std::move(output));
  exchange->tensors.push_back(std::move(input));
  ++impl.traffic[index].hops;
  std::string message;
  if (!impl.semantics->start(*exchange, impl.gaugeOf(*exchange)->held, message))
    return refuse(message);
  return post(exchange, op.getChannel().getIndex());
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

bool Simulation::Impl::refuse(const Transfer &transfer, const Twine &message) {
  failure = {transfer.rank, transfer.hop, transfer.op, message.str(),
             std::nullopt};
  return false;
}

/// Bytes of the masked segments of a tensor.
static int64_t maskedBytes(const Tensor &tensor, int64_t dim, const Deal &deal,
                           int64_t owner, int64_t extent, uint64_t mask) {
  int64_t count = 0;
  for (int64_t s = 0; s < deal.numSegments(); ++s)
    if (mask >> s & 1)
      count += deal.segment(owner, s, extent).count;
  int64_t positions = tensor.shape[dim];
  return positions == 0 ? 0 : tensor.bytes() / positions * count;
}

static int64_t sendBytes(const Transfer &t, size_t i) {
  ring::StartOp op = t.start;
  return maskedBytes(*t.tensors[i], op.getDims()[i], op.getLayout().getDeal(),
                     t.owner, t.extent, t.sendMask);
}

static int64_t receiveBytes(const Transfer &t, size_t i) {
  ring::StartOp op = t.start;
  return maskedBytes(*t.received[i], op.getDims()[i], op.getLayout().getDeal(),
                     t.receivedOwner, t.extent, t.receiveMask);
}

/// Hands the message of `from` to `to`, both at the head of their queues.
bool Simulation::Impl::match(Transfer &from, Transfer &to) {
  if (from.tensors.size() != to.received.size())
    return refuse(to, llvm::formatv("receives {0} tensors from rank {1}, which "
                                    "sends {2}",
                                    to.received.size(), from.rank,
                                    from.tensors.size()));
  for (size_t i = 0; i < from.tensors.size(); ++i) {
    int64_t sent = sendBytes(from, i), wanted = receiveBytes(to, i);
    if (sent != wanted || from.tensors[i]->element != to.received[i]->element)
      return refuse(to, llvm::formatv("receives {0} bytes of tensor {1} from "
                                      "rank {2}, which sends {3}",
                                      wanted, i, from.rank, sent));
    if (from.owner != to.receivedOwner || from.sendMask != to.receiveMask)
      return refuse(
          to, llvm::formatv("receives segments {0:x} of the shard of {1} from "
                            "rank {2}, which sends {3:x} of {4}",
                            to.receiveMask, to.receivedOwner, from.rank,
                            from.sendMask, from.owner));
    to.received[i]->argument = from.tensors[i]->argument;
    to.received[i]->sharding = from.tensors[i]->sharding;
    from.sentBytes += sent;
    semantics->deliver(from, to, i);
    traffic[from.rank].sentBytes[from.tensors[i]->argument] += sent;
  }
  ++traffic[from.rank].messages;
  from.sent = true;
  to.arrived = true;
  return true;
}

/// Matches what can be matched now that `rank` has a new head.
bool Simulation::Impl::advance(int64_t rank, int64_t channel) {
  std::vector<Queue> &queue = queues[channel];
  SmallVector<int64_t> work{rank};
  while (!work.empty()) {
    int64_t r = work.pop_back_val();
    if (queue[r].empty())
      continue;
    Transfer &head = *queue[r].front();
    if (!head.start) {
      if (!advanceExchange(channel))
        return false;
      if (head.isDone()) {
        for (int64_t p = 0; p < parts; ++p) {
          queue[p].pop_front();
          work.push_back(p);
        }
      }
      continue;
    }
    auto headOf = [&](int64_t p) -> Transfer * {
      if (queue[p].empty() || !queue[p].front()->start)
        return nullptr;
      return queue[p].front().get();
    };
    Transfer *target = headOf(head.to);
    if (!head.sent && target && !target->arrived && target->from == r) {
      if (!match(head, *target))
        return false;
      work.push_back(head.to);
    }
    Transfer *source = headOf(head.from);
    if (!head.arrived && source && !source->sent && source->to == r) {
      if (!match(*source, head))
        return false;
      work.push_back(head.from);
    }
    if (!head.isDone())
      continue;
    int64_t to = head.to, from = head.from;
    queue[r].pop_front();
    work.append({r, to, from});
  }
  return true;
}

/// An exchange happens when all ranks have come to it.
bool Simulation::Impl::advanceExchange(int64_t channel) {
  std::vector<Queue> &queue = queues[channel];
  for (const Queue &q : queue)
    if (q.empty() || q.front()->start)
      return true;
  for (const Queue &q : queue)
    if (q.front()->op != queue[0].front()->op)
      return refuse(*q.front(), "exchanges with ranks that are at another "
                                "exchange");
  for (const Queue &q : queue)
    if (q.front()->tensors[0]->argument !=
        queue[0].front()->tensors[0]->argument)
      return refuse(*q.front(), "exchanges another tensor than rank 0");
  for (const Queue &source : queue)
    for (const Queue &target : queue)
      semantics->exchange(*source.front(), *target.front());
  for (Queue &q : queue) {
    Transfer &transfer = *q.front();
    auto op = cast<ring::ExchangeOp>(transfer.op);
    Deal target = op.getTarget().getLayout().getDeal();
    const Tensor &input = *transfer.tensors[0];
    // What this rank keeps of its own shard does not travel.
    int64_t kept = 0;
    if (op.getSource().getDim() != op.getTarget().getDim()) {
      int64_t extent = op.getTarget().getExtent();
      kept = extent == 0
                 ? 0
                 : input.bytes() / extent * target.count(transfer.rank, extent);
    } else {
      Deal source = op.getSource().getLayout().getDeal();
      auto a = source.positions(transfer.rank, op.getSource().getExtent());
      auto b = target.positions(transfer.rank, op.getTarget().getExtent());
      llvm::sort(a);
      llvm::sort(b);
      std::vector<int64_t> both;
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                            std::back_inserter(both));
      kept = a.empty() ? 0 : input.bytes() / a.size() * both.size();
    }
    traffic[transfer.rank].sentBytes[input.argument] += input.bytes() - kept;
    ++traffic[transfer.rank].messages;
    transfer.sent = transfer.arrived = true;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

/// What a transfer is waiting for, in words.
static std::string describe(const Transfer &transfer) {
  if (!transfer.start)
    return "takes part in an exchange";
  std::string text;
  if (!transfer.sent)
    text += llvm::formatv("sends to rank {0}", transfer.to).str();
  if (!transfer.arrived)
    text += llvm::formatv("{0}receives from rank {1}",
                          text.empty() ? "" : " and ", transfer.from)
                .str();
  return text;
}

/// What a rank is doing while others wait for it on `channel`, in words.
std::string Simulation::Impl::describeRank(int64_t rank, int64_t channel) {
  auto onChannel = [&](int64_t number) -> const Transfer * {
    auto &queue = queues[number];
    return queue[rank].empty() ? nullptr : queue[rank].front().get();
  };
  std::string where;
  const Transfer *stuck = onChannel(channel);
  for (auto &[number, queue] : queues) {
    if (stuck)
      break;
    stuck = onChannel(number);
    where = " on channel " + std::to_string(number);
  }
  if (stuck)
    return llvm::formatv("rank {0}, at hop {1}, {2}{3}", rank, stuck->hop,
                         describe(*stuck), where);
  return llvm::formatv("rank {0} {1}", rank,
                       ranks[rank]->isDone ? "has ended"
                                           : "has started nothing more");
}

bool Simulation::Impl::reportDeadlock() {
  for (auto &[channel, queue] : queues)
    for (const Queue &q : queue) {
      if (q.empty())
        continue;
      const Transfer &head = *q.front();
      std::string message = "deadlock: it " + describe(head);
      auto addPeer = [&](int64_t peer) {
        message += "; " + describeRank(peer, channel);
      };
      if (head.start && !head.sent)
        addPeer(head.to);
      if (head.start && !head.arrived && (head.sent || head.from != head.to))
        addPeer(head.from);
      // Of the ranks that have not come to an exchange, the first.
      auto isElsewhere = [](const Queue &other) {
        return other.empty() || other.front()->start;
      };
      if (!head.start)
        addPeer(llvm::find_if(queue, isElsewhere) - queue.begin());
      return refuse(head, message);
    }
  failure = {0, 0, function, "deadlock: no rank can go on"};
  return false;
}

/// Nothing may be under way when a rank has ended.
bool Simulation::Impl::checkEnd() {
  for (auto &rank : ranks)
    if (!rank->open.empty())
      return refuse(*rank->open.front(), "is never waited for");
  return true;
}

bool Simulation::Impl::run(std::vector<std::vector<Argument>> arguments) {
  for (int64_t r = 0; r < parts; ++r) {
    Frame &frame = ranks[r]->frame;
    for (auto [slot, value] :
         llvm::zip_equal(program.arguments(), arguments[r])) {
      if (slot.isScalar)
        frame.scalars[slot.number] = value.scalar;
      else
        frame.objects[slot.number] = value.table;
      if (value.table)
        ranks[r]->hold(*value.table);
    }
  }
  arguments.clear();
  for (int64_t done = 0; done < parts;) {
    bool moved = false;
    for (auto &rank : ranks) {
      if (rank->isDone)
        continue;
      uint32_t before = rank->frame.next;
      int64_t hop = rank->hop;
      Step step = program.run(rank->frame, *rank);
      if (step == Step::Failed)
        return false;
      moved |=
          step == Step::Done || rank->frame.next != before || rank->hop != hop;
      if (step == Step::Blocked)
        continue;
      rank->isDone = true;
      ++done;
      auto *end = function.getBody().front().getTerminator();
      for (OpOperand &operand : end->getOpOperands())
        if (!isReturnedInPlace(operand)) // but copied
          rank->hold(*std::static_pointer_cast<Tensor>(
              rank->frame.objects[program.results()[operand.getOperandNumber()]
                                      .number]));
      for (Slot slot : program.results())
        results[rank->index].push_back(
            slot.isScalar ? nullptr
                          : std::static_pointer_cast<Tensor>(
                                rank->frame.objects[slot.number]));
      rank->frame = Frame();
    }
    if (!moved)
      return reportDeadlock();
  }
  for (int64_t r = 0; r < parts; ++r) {
    traffic[r].peakSlices =
        slices[r][static_cast<size_t>(TransferKind::Slice)]->peak;
  }
  return checkEnd();
}

void Simulation::Impl::reset() {
  queues.clear();
  ranks.clear();
  failure = Counterexample();
  traffic.assign(parts, Traffic());
  results.assign(parts, {});
  slices.clear();
  for (int64_t r = 0; r < parts; ++r) {
    for (GaugeRef &gauge : slices.emplace_back())
      gauge = std::make_shared<Gauge>();
    ranks.push_back(std::make_unique<Rank>(*this, r));
  }
  for (auto &[op, callee] : callees)
    callee.calls.clear();
}

/// Ops that leave scalar code; of these, a called function has `segment` only.
static bool isExternal(Operation *op) {
  return isa<ring::RingDialect>(op->getDialect()) ||
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
// Simulation
//===----------------------------------------------------------------------===//

Simulation::Simulation(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Simulation::~Simulation() = default;

std::unique_ptr<Simulation> Simulation::create(func::FuncOp program) {
  if (!program->hasAttr(ring::gridAttr)) {
    emitError(program.getLoc(),
              "function is not the program of a rank: it has no 'ring.grid'");
    return nullptr;
  }
  if (program.isExternal()) {
    emitError(program.getLoc(), "function has no body to run");
    return nullptr;
  }
  if (int64_t ranks = ring::numRanks(program); ranks > maxSimulatedRanks) {
    emitError(program.getLoc(), "program has ")
        << ranks << " ranks, all of which are simulated; at most "
        << maxSimulatedRanks << " can be";
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

int64_t Simulation::numRanks() const { return impl->parts; }
func::FuncOp Simulation::getFunction() const { return impl->function; }
void Simulation::reset() { impl->reset(); }
bool Simulation::run(Semantics &semantics,
                     std::vector<std::vector<Argument>> arguments) {
  impl->semantics = &semantics;
  return impl->run(std::move(arguments));
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
