//===- SimulateSteps.cpp - what the steps of the ring dialect do ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/SimulatedOp.h"

using namespace mlir;
using namespace burst;

#include "passes/Simulation/SimulatedOp.cpp.inc"

SegmentFlags::SegmentFlags(MutableOperandRange tables,
                           MutableOperandRange turns) {
  for (OpOperand &operand : tables)
    table = operand.getOperandNumber();
  for (OpOperand &operand : turns)
    turn = operand.getOperandNumber();
}

bool SimulatedRank::selectSegments(const ExternalCall &call,
                                   const SegmentFlags &flags, int64_t owner,
                                   uint64_t &mask) {
  if (!flags.table)
    return true;
  const auto &table = *call.peek<Tensor>(*flags.table);
  int64_t turn = call.index(*flags.turn), segments = table.shape[2];
  if (table.shape[0] == 1) // all owners are alike
    owner = 0;
  if (!table.hasData()) {
    fail(call.op, "reads flags of segments that nobody knows yet");
    return false;
  }
  if (owner >= table.shape[0] || turn < 0 || turn >= table.shape[1]) {
    fail(call.op, "reads flags of segments of owner " + Twine(owner) +
                      " for turn " + Twine(turn) + ", of " +
                      Twine(table.shape[0]) + " owners and " +
                      Twine(table.shape[1]) + " turns");
    return false;
  }
  int64_t first = (owner * table.shape[1] + turn) * segments;
  uint64_t selected = 0;
  for (int64_t s = 0; s < segments; ++s)
    if (table.integer(first + s) != 0)
      selected |= uint64_t{1} << s;
  if (segments == 1 && selected != 0) // all segments are alike
    selected = ~uint64_t{0};
  mask &= selected;
  return true;
}

//===----------------------------------------------------------------------===//
// Softmax state
//===----------------------------------------------------------------------===//

/// o, m and l have the (batch, heads, sequence) of `rows`. Where sizes are
/// dynamic, no verifier of an op can say so.
static bool isStateOf(const State &state, ArrayRef<int64_t> rows) {
  ArrayRef<int64_t> o(state.o->shape);
  return ArrayRef<int64_t>(state.m->shape) == rows &&
         ArrayRef<int64_t>(state.l->shape) == rows && o[0] == rows[0] &&
         o[2] == rows[1] && o[1] == rows[2];
}

static std::array<int64_t, 3> rowsOf(const Tensor &query) {
  return {query.shape[0], query.shape[2], query.shape[1]};
}

/// The state in three consecutive operands.
static State takeState(const ExternalCall &call, unsigned o) {
  return {call.take<Tensor>(o), call.take<Tensor>(o + 1),
          call.take<Tensor>(o + 2)};
}

static State takeState(const ExternalCall &call, OpOperand &first) {
  return takeState(call, first.getOperandNumber());
}

/// The state as three consecutive results.
static Step giveState(const ExternalCall &call, State &state,
                      unsigned first = 0) {
  call.give(first, std::move(state.o));
  call.give(first + 1, std::move(state.m));
  call.give(first + 2, std::move(state.l));
  return Step::Done;
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

static Type elementOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

static Step run(ring::InitOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  const Tensor &query = *call.peek<Tensor>(op.getQueryMutable());
  auto o = cast<RankedTensorType>(op.getO().getType());
  State state = rank.semantics().init(o, query);
  labelState(state, query);
  rank.holdFresh(call, {state.o, state.m, state.l});
  return giveState(call, state);
}

/// The attention of a state, as results: in its memory, where it `isHeld` and
/// of their type.
static Step giveResults(Operation *op, SimulatedRank &rank,
                        const ExternalCall &call, State &state, bool isHeld) {
  TensorRef out, lse;
  std::string message;
  Type element = state.o->element;
  int queries = queryOf(*state.o);
  int64_t owner = state.o->owner;
  if (!rank.semantics().finalize(elementOf(op->getResult(0)), state, out, lse,
                                 message))
    return rank.fail(op, message);
  out->argument = madeFor(queries, Made::Out);
  lse->argument = madeFor(queries, Made::Lse);
  out->owner = lse->owner = owner;
  if (!isHeld || out->element != element)
    rank.hold(*out);
  if (!isHeld)
    rank.hold(*lse);
  call.give(0, std::move(out));
  call.give(1, std::move(lse));
  return Step::Done;
}

/// The state that an attend begins, whose queries are known.
static State beginState(ring::AttendOp op, SimulatedRank &rank,
                        const ExternalCall &call, const Tensor &query) {
  auto made = cast<RankedTensorType>(op.getMade(0).getType());
  State state = rank.semantics().init(made.clone(op.getStateType()), query);
  labelState(state, query);
  if (!op.isLast())
    rank.holdFresh(call, {state.o, state.m, state.l});
  return state;
}

static Step run(ring::AttendOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  Attend attend;
  if (!rank.meet(op, call, attend))
    return Step::Failed;
  OperandRange keys = op.getKeys(), values = op.getValues(),
               owners = op.getOwners();
  for (unsigned i = 0; i < keys.size(); ++i)
    attend.slices.push_back(
        {call.peek<Tensor>(keys.getBeginOperandIndex() + i),
         call.peek<Tensor>(values.getBeginOperandIndex() + i),
         call.index(owners.getBeginOperandIndex() + i)});
  attend.state = op.isFirst()
                     ? beginState(op, rank, call, *attend.query)
                     : takeState(call, op.getState().getBeginOperandIndex());
  if (!isStateOf(attend.state, rowsOf(*attend.query)))
    return rank.fail(op, "takes a state that has not the rows of its queries");
  for (auto [index, slice] : llvm::enumerate(attend.slices))
    rank.announce(attend, index, slice.owner);
  State state;
  std::string message;
  if (!rank.semantics().attend(attend, state, message))
    return rank.fail(op, message);
  return op.isLast() ? giveResults(op, rank, call, state, !op.isFirst())
                     : giveState(call, state);
}

static Step run(ring::MergeOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  Merge merge{op.getLayout(),
              rank.index,
              rank.hop,
              {},
              {},
              call.index(op.getOwnerMutable()),
              call.index(op.getExtentMutable()),
              0};
  if (!rank.isRank(op, "owner", merge.owner))
    return Step::Failed;
  const Share &share =
      rank.shareOf(merge.layout.getDeal(), merge.extent, merge.owner);
  merge.segments = share.mask;
  if (!rank.selectSegments(call, {op.getSegmentsMutable(), op.getTurnMutable()},
                           merge.owner, merge.segments))
    return Step::Failed;
  State &into = merge.into, &from = merge.from;
  into = takeState(call, op.getO1Mutable());
  // Nothing to merge: the second may be of other rows, and not there at all.
  if (merge.segments != 0) {
    from = takeState(call, op.getO2Mutable());
    if (!isStateOf(into, into.m->shape) || !isStateOf(from, into.m->shape) ||
        into.o->shape[3] != from.o->shape[3])
      return rank.fail(op, "merges states of different rows");
    if (into.o->shape[1] != share.count)
      return rank.fail(op, "merges states of " + Twine(into.o->shape[1]) +
                               " queries as those of rank " +
                               Twine(merge.owner) + ", which has " +
                               Twine(share.count));
    std::string message;
    if (!rank.semantics().merge(merge, message))
      return rank.fail(op, message);
  }
  return giveState(call, into);
}

static Step run(ring::FinalizeOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  State state = takeState(call, op.getOMutable());
  return giveResults(op, rank, call, state, /*isHeld=*/true);
}

//===----------------------------------------------------------------------===//
// Stored scores
//===----------------------------------------------------------------------===//

static Step run(ring::ScoresOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  int64_t keys = call.index(op.getKeyExtentMutable());
  if (keys < 0 || keys >= maxPositions)
    return rank.fail(op, "makes scores of " + Twine(keys) + " keys");
  TensorRef scores =
      rank.semantics().scores(elementOf(op.getScores()),
                              *call.peek<Tensor>(op.getQueryMutable()), keys);
  rank.holdFresh(call, scores);
  call.give(op.getScores(), std::move(scores));
  return Step::Done;
}

static Step run(ring::ScoreOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  Score score;
  if (!rank.meet(op, call, score))
    return Step::Failed;
  score.key = call.peek<Tensor>(op.getKeyMutable());
  score.keyOwner = call.index(op.getKeyOwnerMutable());
  score.scores = call.take<Tensor>(op.getScoresMutable());
  rank.announce(score, 0, score.keyOwner);
  std::string message;
  if (!rank.semantics().score(score, message))
    return rank.fail(op, message);
  call.give(op.getNewScores(), score.scores);
  return Step::Done;
}

/// (batch, heads, sequence) of scores.
static ArrayRef<int64_t> rowsOfScores(const Tensor &scores) {
  return ArrayRef<int64_t>(scores.shape).take_front(3);
}

static Step run(ring::SoftmaxOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  TensorRef scores = call.take<Tensor>(op.getScoresMutable());
  State state = takeState(call, op.getOMutable());
  if (!isStateOf(state, rowsOfScores(*scores)))
    return rank.fail(op, "takes a state that has not the rows of its scores");
  std::string message;
  if (!rank.semantics().softmax(scores, state, message))
    return rank.fail(op, message);
  call.give(op.getWeights(), scores);
  return giveState(call, state, /*first=*/1);
}

static Step run(ring::WeighOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  Weigh weigh{op,
              op.getKeyLayout(),
              call.peek<Tensor>(op.getWeightsMutable()),
              call.peek<Tensor>(op.getValueMutable()),
              call.index(op.getOwnerMutable()),
              call.index(op.getKeyExtentMutable()),
              {}};
  if (!rank.isRank(op, "owner of a slice", weigh.owner))
    return Step::Failed;
  weigh.state = takeState(call, op.getOMutable());
  if (!isStateOf(weigh.state, rowsOfScores(*weigh.weights)))
    return rank.fail(op, "takes a state that has not the rows of its weights");
  std::string message;
  if (!rank.semantics().weigh(weigh, message))
    return rank.fail(op, message);
  return giveState(call, weigh.state);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

static Step run(ring::ZeroOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  const Tensor &like = *call.peek<Tensor>(op.getLikeMutable());
  TensorRef zero = rank.semantics().zero(elementOf(op.getZero()), like);
  zero->labelLike(like);
  zero->argument = madeFor(like.argument, Made::Gradient);
  rank.holdFresh(call, zero);
  call.give(op.getZero(), std::move(zero));
  return Step::Done;
}

static Step run(ring::DeltaOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  TensorRef out = call.share<Tensor>(op.getOutMutable()),
            outGrad = call.share<Tensor>(op.getOutGradMutable()), lseGrad,
            delta;
  if (op.getLseGrad())
    lseGrad = call.share<Tensor>(op.getLseGradMutable()[0].getOperandNumber());
  if (out->shape != outGrad->shape)
    return rank.fail(op, "takes out and its gradient of different rows");
  if (out->owner != outGrad->owner ||
      (lseGrad && lseGrad->owner != outGrad->owner))
    return rank.fail(op, "takes out and gradients of different ranks");
  std::string message;
  if (!rank.semantics().delta(elementOf(op.getDelta()), out, outGrad, lseGrad,
                              delta, message))
    return rank.fail(op, message);
  delta->argument = madeFor(outGrad->argument, Made::Delta);
  delta->owner = outGrad->owner;
  delta->sharding = outGrad->sharding;
  delta->sharding.dim = 2;
  rank.hold(*delta);
  call.give(op.getDelta(), delta);
  return Step::Done;
}

/// Rows are those of the query, and gradients have the shapes of what they are
/// by.
static bool isOfOneShape(const AttendGrad &attend) {
  const Tensor &query = *attend.query;
  std::array<int64_t, 3> rows = rowsOf(query);
  bool fits = ArrayRef<int64_t>(attend.lse->shape) == ArrayRef(rows) &&
              ArrayRef<int64_t>(attend.delta->shape) == ArrayRef(rows) &&
              attend.outGrad->shape[1] == query.shape[1] &&
              attend.slice.key->shape[1] == attend.slice.value->shape[1];
  const Tensor *by[] = {attend.query, attend.slice.key, attend.slice.value};
  for (auto [tensor, grad] : llvm::zip(by, attend.grads))
    fits &= tensor->shape == grad->shape;
  return fits;
}

static Step run(ring::AttendGradOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  AttendGrad attend;
  if (!rank.meet(op, call, attend))
    return Step::Failed;
  attend.gradient = &op.getGradient();
  attend.captures = op.getCaptures();
  attend.outGrad = call.peek<Tensor>(op.getOutGradMutable());
  attend.lse = call.peek<Tensor>(op.getLseMutable());
  attend.delta = call.peek<Tensor>(op.getDeltaMutable());
  attend.slice = {call.peek<Tensor>(op.getKeyMutable()),
                  call.peek<Tensor>(op.getValueMutable()),
                  call.index(op.getKeyOwnerMutable())};
  OperandRange grads = op.getGrads();
  for (unsigned i = 0; i < grads.size(); ++i)
    attend.grads.push_back(call.take<Tensor>(grads.getBeginOperandIndex() + i));
  if (!isOfOneShape(attend))
    return rank.fail(op, "takes tensors of different rows");
  rank.announce(attend, 0, attend.slice.owner);
  std::string message;
  if (!rank.semantics().attendGrad(attend, message))
    return rank.fail(op, message);
  for (auto [i, grad] : llvm::enumerate(attend.grads))
    call.give(i, std::move(grad));
  return Step::Done;
}

static Step run(ring::RoundOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  TensorRef gradient = call.share<Tensor>(op.getGradientMutable()), rounded;
  std::string message;
  if (!rank.semantics().round(elementOf(op.getRounded()), gradient, rounded,
                              message))
    return rank.fail(op, message);
  rounded->labelLike(*gradient);
  rank.hold(*rounded);
  call.give(op.getRounded(), rounded);
  return Step::Done;
}

static Step run(ring::AddOp op, SimulatedRank &rank, const ExternalCall &call) {
  Sum sum{op.getLayout(),
          rank.index,
          rank.hop,
          nullptr,
          nullptr,
          call.index(op.getOwnerMutable()),
          call.index(op.getExtentMutable()),
          0};
  if (!rank.isRank(op, "owner", sum.owner))
    return Step::Failed;
  const Share &share =
      rank.shareOf(sum.layout.getDeal(), sum.extent, sum.owner);
  sum.segments = share.mask;
  if (!rank.selectSegments(call, {op.getSegmentsMutable(), op.getTurnMutable()},
                           sum.owner, sum.segments))
    return Step::Failed;
  // Nothing to add: the second may be of other rows, and not there at all.
  sum.a = call.take<Tensor>(op.getAMutable());
  sum.b = call.peek<Tensor>(op.getBMutable());
  if (sum.segments != 0) {
    if (sum.a->shape[1] != share.count || sum.b->shape[1] != share.count)
      return rank.fail(
          op, "adds gradients of " + Twine(sum.a->shape[1]) + " and " +
                  Twine(sum.b->shape[1]) + " positions as shards of rank " +
                  Twine(sum.owner) + ", which has " + Twine(share.count));
    std::string message;
    if (!rank.semantics().add(sum, message))
      return rank.fail(op, message);
  }
  call.give(op.getSum(), std::move(sum.a));
  return Step::Done;
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

namespace {
template <typename OpT>
struct Simulated : SimulatedOpInterface::ExternalModel<Simulated<OpT>, OpT> {
  Step simulate(Operation *op, SimulatedRank &rank,
                const ExternalCall &call) const {
    return run(cast<OpT>(op), rank, call);
  }
};
} // namespace

template <typename... Ops>
static void attach(MLIRContext *context) {
  (Ops::template attachInterface<Simulated<Ops>>(*context), ...);
}

void burst::registerRingSimulation(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ring::RingDialect *) {
    attach<ring::InitOp, ring::AttendOp, ring::MergeOp, ring::FinalizeOp,
           ring::ZeroOp, ring::DeltaOp, ring::AttendGradOp, ring::AddOp,
           ring::RoundOp, ring::ScoresOp, ring::ScoreOp, ring::SoftmaxOp,
           ring::WeighOp>(context);
  });
}
