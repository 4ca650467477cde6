//===- Rank.cpp - the ops of a rank, but for transfers --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Machine/Ranks.h"
#include "passes/Machine/Slots.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace burst;

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
          {Scalar{0}, call.share<Tensor>(range.getBeginOperandIndex() + i)});
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
static std::unique_ptr<const Meeting> describeMeeting(OpT op) {
  auto meeting = std::make_unique<Meeting>();
  meeting->at = op;
  meeting->queryLayout = op.getQueryLayout();
  meeting->keyLayout = op.getKeyLayout();
  meeting->mask = &op.getMask();
  meeting->score = &op.getScore();
  meeting->bounds = &op.getBounds();
  meeting->scale = op.getScale().convertToDouble();
  return meeting;
}

template <typename OpT>
void Simulation::Impl::Rank::meet(OpT op, const ExternalCall &call,
                                  Meeting &meeting) {
  std::unique_ptr<const Meeting> &known = impl.sites[call.site].meeting;
  if (!known)
    known = describeMeeting(op);
  meeting = *known;
  meeting.rank = index;
  meeting.hop = hop;
}

/// The flags of the pairs; all, where there are none.
static void readPairs(const ExternalCall &call, unsigned begin, unsigned count,
                      size_t slices, Meeting &meeting) {
  for (unsigned i = 0; i < count; ++i)
    meeting.pairs.push_back(call.index(begin + i) != 0);
  if (count == 0)
    meeting.pairs.resize(slices * meeting.queryLayout.getNumSegments() *
                             meeting.keyLayout.getNumSegments(),
                         true);
}

/// Labels a new state of these queries.
static void labelState(State &state, const Tensor &query) {
  for (auto [part, what] : {std::pair(&state.o, Made::O),
                            {&state.m, Made::M},
                            {&state.l, Made::L}}) {
    (*part)->labelLike(query);
    (*part)->argument = madeFor(query.argument, what);
    if (what != Made::O)
      (*part)->sharding.dim = 2;
  }
}

/// The queries of which `tensor` is the state, or -1.
static int queryOf(const Tensor &tensor) {
  return tensor.argument < -1 ? whatIsMade(tensor.argument).first : -1;
}

Step Simulation::Impl::Rank::runAttend(ring::AttendOp op,
                                       const ExternalCall &call) {
  unsigned next = 0;
  Attend attend;
  meet(op, call, attend);
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
  readPairs(call, next, op.getPairs().size(), slices, attend);
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
  if (impl.listener)
    for (auto [slice, found] : llvm::enumerate(attend.slices))
      impl.listener->meets(attend, slice, found.owner);
  if (!impl.semantics->attend(attend, state, message))
    return fail(op, message);
  call.give(0, std::move(state.o));
  call.give(1, std::move(state.m));
  call.give(2, std::move(state.l));
  return Step::Done;
}

/// Those of the segments that are flagged; all, where there are no flags.
uint64_t Simulation::Impl::Rank::flaggedMask(const ExternalCall &call,
                                             StartSite::Flags flags,
                                             uint64_t mask) {
  for (unsigned s = 0; s < flags.size; ++s)
    if (call.index(flags.begin + s) == 0)
      mask &= ~(uint64_t{1} << s);
  return mask;
}

const FreshMemory &Simulation::Impl::memoryOf(const ExternalCall &call) {
  std::optional<FreshMemory> &memory = sites[call.site].memory;
  if (!memory)
    memory = {sentOn(call.op) != nullptr, numSlots(call.op),
              std::max<size_t>(updatingUses(call.op).size(), 1)};
  return *memory;
}

/// By what a loop carries, buffers are made once for all its turns.
void Simulation::Impl::Rank::holdFresh(const ExternalCall &call,
                                       ArrayRef<TensorRef> tensors) {
  const FreshMemory &memory = impl.memoryOf(call);
  if (memory.isCarried && ++turns[call.site] > memory.slots)
    return;
  for (size_t i = 0; i < memory.copies; ++i)
    for (const TensorRef &tensor : tensors) {
      auto shape = tensor->shape;
      if (memory.isCarried) // as large as the largest shard
        shape[tensor->sharding.dim] =
            impl.shares.largest(tensor->sharding.deal, tensor->sharding.extent);
      hold(shape, tensor->element);
    }
}

Step Simulation::Impl::Rank::runInit(ring::InitOp op,
                                     const ExternalCall &call) {
  const Tensor &query = *call.peek<Tensor>(0);
  State state = impl.semantics->init(op, query);
  labelState(state, query);
  holdFresh(call, {state.o, state.m, state.l});
  call.give(0, std::move(state.o));
  call.give(1, std::move(state.m));
  call.give(2, std::move(state.l));
  return Step::Done;
}

Step Simulation::Impl::Rank::runMerge(ring::MergeOp op,
                                      const ExternalCall &call) {
  Merge merge{op, index, hop, {}, {}, call.index(6), call.index(7), 0};
  if (!isRank(op, "owner", merge.owner))
    return Step::Failed;
  const Share &share =
      impl.shares.of(op.getLayout().getDeal(), merge.extent, merge.owner);
  merge.segments = flaggedMask(
      call, {8, static_cast<unsigned>(op.getSegments().size())}, share.mask);
  State &into = merge.into, &from = merge.from;
  into = {call.take<Tensor>(0), call.take<Tensor>(1), call.take<Tensor>(2)};
  // Nothing to merge: the second may be of other rows, and not there at all.
  if (merge.segments != 0) {
    from = {call.take<Tensor>(3), call.take<Tensor>(4), call.take<Tensor>(5)};
    if (!isStateOf(into, into.m->shape) || !isStateOf(from, into.m->shape) ||
        into.o->shape[3] != from.o->shape[3])
      return fail(op, "merges states of different rows");
    if (into.o->shape[1] != share.count)
      return fail(op, "merges states of " + Twine(into.o->shape[1]) +
                          " queries as those of rank " + Twine(merge.owner) +
                          ", which has " + Twine(share.count));
    std::string message;
    if (!impl.semantics->merge(merge, message))
      return fail(op, message);
  }
  call.give(0, std::move(into.o));
  call.give(1, std::move(into.m));
  call.give(2, std::move(into.l));
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
  for (size_t i = 0; i < impl.memoryOf(call).copies; ++i)
    hold(*scores);
  call.give(0, scores);
  return Step::Done;
}

Step Simulation::Impl::Rank::runScore(ring::ScoreOp op,
                                      const ExternalCall &call) {
  Score score;
  meet(op, call, score);
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
  readPairs(call, 7, op.getPairs().size(), 1, score);
  score.maskCaptures = captures(call, op.getMaskCaptures());
  score.scoreCaptures = captures(call, op.getScoreCaptures());
  if (impl.listener)
    impl.listener->meets(score, 0, score.keyOwner);
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
  if (!impl.semantics->softmax(op, scores, state, message))
    return fail(op, message);
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
  if (!impl.semantics->weigh(weigh, message))
    return fail(op, message);
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
  const Tensor &like = *call.peek<Tensor>(0);
  TensorRef zero = impl.semantics->zero(op, like);
  zero->labelLike(like);
  zero->argument = madeFor(like.argument, Made::Gradient);
  holdFresh(call, zero);
  call.give(0, std::move(zero));
  return Step::Done;
}

Step Simulation::Impl::Rank::runDelta(ring::DeltaOp op,
                                      const ExternalCall &call) {
  TensorRef out = call.share<Tensor>(0), outGrad = call.share<Tensor>(1);
  TensorRef lseGrad = op.getLseGrad() ? call.share<Tensor>(2) : nullptr, delta;
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

/// Rows are those of the query, and gradients have the shapes of what they are
/// by.
static bool isOfOneShape(const AttendGrad &attend) {
  const Tensor &query = *attend.query;
  int64_t rows[] = {query.shape[0], query.shape[2], query.shape[1]};
  bool fits = ArrayRef(attend.lse->shape) == ArrayRef(rows) &&
              ArrayRef(attend.delta->shape) == ArrayRef(rows) &&
              attend.outGrad->shape[1] == query.shape[1] &&
              attend.slice.key->shape[1] == attend.slice.value->shape[1];
  const Tensor *by[] = {attend.query, attend.slice.key, attend.slice.value};
  for (auto [tensor, grad] : llvm::zip(by, attend.grads))
    fits &= tensor->shape == grad->shape;
  return fits;
}

Step Simulation::Impl::Rank::runAttendGrad(ring::AttendGradOp op,
                                           const ExternalCall &call) {
  AttendGrad attend;
  meet(op, call, attend);
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
  unsigned numGrads = op.getGrads().size();
  for (unsigned i = 0; i < numGrads; ++i)
    attend.grads.push_back(call.take<Tensor>(next++));
  readPairs(call, next, op.getPairs().size(), 1, attend);
  attend.maskCaptures = captures(call, op.getMaskCaptures());
  attend.scoreCaptures = captures(call, op.getScoreCaptures());
  if (!isRank(op, "owner of the queries", attend.queryOwner) ||
      !isRank(op, "owner of the slice", attend.slice.owner))
    return Step::Failed;
  if (!isOfOneShape(attend))
    return fail(op, "takes tensors of different rows");
  if (impl.listener)
    impl.listener->meets(attend, 0, attend.slice.owner);
  std::string message;
  if (!impl.semantics->attendGrad(attend, message))
    return fail(op, message);
  for (auto [i, grad] : llvm::enumerate(attend.grads))
    call.give(i, std::move(grad));
  return Step::Done;
}

Step Simulation::Impl::Rank::runRound(ring::RoundOp op,
                                      const ExternalCall &call) {
  TensorRef gradient = call.share<Tensor>(0), rounded;
  std::string message;
  if (!impl.semantics->round(op, gradient, rounded, message))
    return fail(op, message);
  rounded->labelLike(*gradient);
  hold(*rounded);
  call.give(0, rounded);
  return Step::Done;
}

Step Simulation::Impl::Rank::runAdd(ring::AddOp op, const ExternalCall &call) {
  Sum sum{op, index, hop, nullptr, nullptr, call.index(2), call.index(3), 0};
  if (!isRank(op, "owner", sum.owner))
    return Step::Failed;
  Deal deal = op.getLayout().getDeal();
  const Share &share = impl.shares.of(deal, sum.extent, sum.owner);
  sum.segments = flaggedMask(
      call, {4, static_cast<unsigned>(op.getSegments().size())}, share.mask);
  // Nothing to add: the second may be of other rows, and not there at all.
  sum.a = call.take<Tensor>(0);
  sum.b = call.peek<Tensor>(1);
  if (sum.segments != 0) {
    if (sum.a->shape[1] != share.count || sum.b->shape[1] != share.count)
      return fail(op, "adds gradients of " + Twine(sum.a->shape[1]) + " and " +
                          Twine(sum.b->shape[1]) +
                          " positions as shards of rank " + Twine(sum.owner) +
                          ", which has " + Twine(share.count));
    std::string message;
    if (!impl.semantics->add(sum, message))
      return fail(op, message);
  }
  call.give(0, std::move(sum.a));
  return Step::Done;
}
