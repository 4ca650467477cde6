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

std::optional<uint64_t> burst::flaggedSegments(const Tensor &table,
                                               int64_t owner, int64_t turn) {
  int64_t segments = table.shape[2];
  if (table.shape[0] == 1) // all owners are alike
    owner = 0;
  if (owner >= table.shape[0] || turn < 0 || turn >= table.shape[1] ||
      !table.hasData())
    return std::nullopt;
  int64_t first = (owner * table.shape[1] + turn) * segments;
  uint64_t flagged = 0;
  for (int64_t s = 0; s < segments; ++s)
    if (table.integer(first + s) != 0)
      flagged |= uint64_t{1} << s;
  if (segments == 1 && flagged != 0) // all segments are alike
    return ~uint64_t{0};
  return flagged;
}

bool SimulatedRank::selectSegments(const ExternalCall &call,
                                   const SegmentFlags &flags, int64_t owner,
                                   uint64_t &mask) {
  return !flags.table ||
         selectSegments(call, flags, owner, call.index(*flags.turn), mask);
}

bool SimulatedRank::selectSegments(const ExternalCall &call,
                                   const SegmentFlags &flags, int64_t owner,
                                   int64_t turn, uint64_t &mask) {
  if (!flags.table)
    return true;
  const auto &table = *call.peek<Tensor>(*flags.table);
  if (!table.hasData()) {
    fail(call.op, "reads flags of segments that nobody knows yet");
    return false;
  }
  std::optional<uint64_t> selected = flaggedSegments(table, owner, turn);
  if (!selected) {
    fail(call.op, "reads flags of segments of owner " + Twine(owner) +
                      " for turn " + Twine(turn) + ", of " +
                      Twine(table.shape[0]) + " owners and " +
                      Twine(table.shape[1]) + " turns");
    return false;
  }
  mask &= *selected;
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

/// Puts a shard behind those of a gathered tensor, null as long as it has none.
static void appendShard(TensorRef &gathered, TensorRef shard, int64_t dim) {
  if (gathered) {
    gathered->shape[dim] += shard->shape[dim];
  } else {
    gathered = std::make_shared<Tensor>(shard->shape, shard->element);
    gathered->argument = shard->argument;
  }
  gathered->shards.push_back(std::move(shard));
}

/// Takes the shard of `owner` out of a gathered tensor; whoever has the whole
/// besides keeps it.
static TensorRef takeShard(TensorRef &gathered, int64_t owner) {
  if (gathered->shards.empty())
    return gathered;
  return gathered.use_count() > 1 ? gathered->shards[owner]
                                  : std::move(gathered->shards[owner]);
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

/// A state of these queries; of gathered ones, gathered.
static State newState(RankedTensorType o, SimulatedRank &rank,
                      const Tensor &query) {
  if (query.shards.empty()) {
    State state = rank.semantics().init(o, query);
    labelState(state, query);
    return state;
  }
  State all;
  for (const TensorRef &shard : query.shards) {
    SmallVector<int64_t> any(o.getRank(), ShapedType::kDynamic);
    any.back() = o.getShape().back();
    State state = newState(o.clone(any), rank, *shard);
    appendShard(all.o, std::move(state.o), 1);
    appendShard(all.m, std::move(state.m), 2);
    appendShard(all.l, std::move(state.l), 2);
  }
  return all;
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
  State state = newState(o, rank, query);
  rank.holdFresh(call, {state.o, state.m, state.l});
  return giveState(call, state);
}

/// The attention of a state, as results: in its memory, where it `isHeld` and
/// of their type.
static Step giveResults(Operation *op, SimulatedRank &rank,
                        const ExternalCall &call, State &state, bool isHeld) {
  std::string message;
  Type element = state.o->element;
  int queries = queryOf(*state.o);
  int64_t owner = state.o->owner;
  Finalize finalize{elementOf(op->getResult(0)),
                    op->getNumResults() == 3,
                    std::move(state),
                    nullptr,
                    nullptr,
                    nullptr};
  if (!rank.semantics().finalize(finalize, message))
    return rank.fail(op, message);
  static constexpr Made kinds[] = {Made::Out, Made::Lse, Made::MaxScores};
  TensorRef *made[] = {&finalize.out, &finalize.lse, &finalize.maxScores};
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    TensorRef &result = *made[i];
    result->argument = madeFor(queries, kinds[i]);
    result->owner = owner;
    if (!isHeld || result->element != element)
      rank.hold(*result);
    call.give(i, std::move(result));
  }
  return Step::Done;
}

/// The slice that an attend takes; of gathered keys one of each owner.
static bool takeSlices(ring::AttendOp op, SimulatedRank &rank,
                       const ExternalCall &call, Attend &attend) {
  OpOperand &key = op.getKeyMutable(), &value = op.getValueMutable();
  bool areGathered = op.getKeyLayout().getAll();
  int64_t owner = call.index(op.getKeyOwnerMutable());
  for (OpOperand *operand : {&key, &value})
    if (!rank.isGathered(op, call, operand->getOperandNumber(), areGathered,
                         owner))
      return false;
  auto *ofKeys = call.peek<Tensor>(key), *ofValues = call.peek<Tensor>(value);
  if (ofKeys->shards.empty())
    attend.slices.push_back({ofKeys, ofValues, owner});
  for (auto [r, shard] : llvm::enumerate(ofKeys->shards))
    attend.slices.push_back(
        {shard.get(), ofValues->shards[r].get(), static_cast<int64_t>(r)});
  return true;
}

/// Attends with the queries of one owner, of which it has the state.
static bool attendWith(ring::AttendOp op, SimulatedRank &rank,
                       const ExternalCall &call, const GatheredPart &part,
                       llvm::function_ref<State()> state, State &result) {
  Attend attend;
  if (!rank.onlyCounts() && (!rank.readInputs(op, call, part, attend) ||
                             !takeSlices(op, rank, call, attend)))
    return false;
  attend.queryShard = part.queries;
  attend.numQueryShards = rank.numShards(op.getQueryLayout());
  // Not before: what is taken may be an operand besides.
  attend.state = state();
  if (!rank.onlyCounts() && (!attend.state.o->shards.empty() ||
                             !isStateOf(attend.state, rowsOf(*attend.query)))) {
    rank.fail(op, "takes a state that has not the rows of its queries");
    return false;
  }
  for (auto [index, slice] : llvm::enumerate(attend.slices))
    rank.announce(attend, index, slice.owner);
  std::string message;
  if (rank.semantics().attend(attend, result, message))
    return true;
  rank.fail(op, message);
  return false;
}

/// The state that an attend begins.
static State beginState(ring::AttendOp op, SimulatedRank &rank,
                        const ExternalCall &call) {
  auto made = cast<RankedTensorType>(op.getMade(0).getType());
  State state = newState(made.clone(op.getStateType()), rank,
                         *call.peek<Tensor>(op.getQueryMutable()));
  if (!op.isLast())
    rank.holdFresh(call, {state.o, state.m, state.l});
  return state;
}

/// Attends with the queries of every owner, one after the other.
static Step attendAll(ring::AttendOp op, SimulatedRank &rank,
                      const ExternalCall &call) {
  if (op.isLast())
    return rank.fail(op, "ends states of gathered queries, which are parts of "
                         "what their owners end");
  State before, after;
  if (op.isFirst()) {
    before = beginState(op, rank, call);
  } else {
    unsigned o = op.getState().getBeginOperandIndex();
    before = {call.share<Tensor>(o), call.share<Tensor>(o + 1),
              call.share<Tensor>(o + 2)};
  }
  auto isOfAll = [&](const TensorRef &part) {
    return static_cast<int64_t>(part->shards.size()) == rank.parts;
  };
  if (!isOfAll(before.o) || !isOfAll(before.m) || !isOfAll(before.l))
    return rank.fail(op, "takes the state of one rank for that of gathered "
                         "queries");
  for (int64_t p = 0; p < rank.parts; ++p) {
    State made;
    auto state = [&]() -> State {
      return {takeShard(before.o, p), takeShard(before.m, p),
              takeShard(before.l, p)};
    };
    if (!attendWith(op, rank, call, {.queries = p, .keys = {}}, state, made))
      return Step::Failed;
    appendShard(after.o, std::move(made.o), 1);
    appendShard(after.m, std::move(made.m), 2);
    appendShard(after.l, std::move(made.l), 2);
  }
  return giveState(call, after);
}

static Step run(ring::AttendOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  if (!call.peek<Tensor>(op.getQueryMutable())->shards.empty())
    return attendAll(op, rank, call);
  State after;
  auto state = [&] {
    return op.isFirst() ? beginState(op, rank, call)
                        : takeState(call, op.getState().getBeginOperandIndex());
  };
  if (!attendWith(op, rank, call, {}, state, after))
    return Step::Failed;
  return op.isLast() ? giveResults(op, rank, call, after, !op.isFirst())
                     : giveState(call, after);
}

static Step run(ring::MergeOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  if (rank.onlyCounts()) {
    State into = takeState(call, op.getO1Mutable());
    return giveState(call, into);
  }
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
  const Shard &shard =
      rank.shardOf(merge.layout.getValue(), merge.extent, merge.owner);
  merge.segments = shard.mask;
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
    if (into.o->shape[1] != shard.count)
      return rank.fail(op, "merges states of " + Twine(into.o->shape[1]) +
                               " queries as those of rank " +
                               Twine(merge.owner) + ", which has " +
                               Twine(shard.count));
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
  if (!rank.readInputs(op, call, {}, score))
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

static Step run(ring::ProbabilitiesOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  TensorRef lse = call.share<Tensor>(op.getLseMutable());
  TensorRef scores = call.take<Tensor>(op.getScoresMutable());
  if (ArrayRef<int64_t>(lse->shape) != rowsOfScores(*scores))
    return rank.fail(op, "takes lse that has not the rows of its scores");
  std::string message;
  if (!rank.semantics().probabilities(scores, lse, message))
    return rank.fail(op, message);
  call.give(op.getWeights(), std::move(scores));
  return Step::Done;
}

static Step run(ring::WeighGradOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  WeighGrad weigh{op,
                  rank.index,
                  op.getKeyLayout(),
                  call.share<Tensor>(op.getOutGradMutable()),
                  call.share<Tensor>(op.getDeltaMutable()),
                  call.peek<Tensor>(op.getValueMutable()),
                  call.index(op.getOwnerMutable()),
                  call.index(op.getKeyExtentMutable()),
                  op.getScale().convertToDouble(),
                  {},
                  {}};
  if (!rank.isRank(op, "owner of a slice", weigh.owner))
    return Step::Failed;
  weigh.weights = call.take<Tensor>(op.getWeightsMutable());
  weigh.grad = call.take<Tensor>(op.getValueGradMutable());
  ArrayRef<int64_t> rows = rowsOfScores(*weigh.weights);
  if (ArrayRef<int64_t>(rowsOf(*weigh.outGrad)) != rows ||
      ArrayRef<int64_t>(weigh.delta->shape) != rows ||
      weigh.grad->shape != weigh.value->shape)
    return rank.fail(op, "takes tensors of different rows");
  std::string message;
  if (!rank.semantics().weighGrad(weigh, message))
    return rank.fail(op, message);
  call.give(op.getNewWeights(), std::move(weigh.weights));
  call.give(op.getNewValueGrad(), std::move(weigh.grad));
  return Step::Done;
}

static Step run(ring::ScoreGradOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  ScoreGrad score{op,
                  rank.index,
                  op.getKeyLayout(),
                  call.peek<Tensor>(op.getWeightsMutable()),
                  call.peek<Tensor>(op.getQueryMutable()),
                  call.peek<Tensor>(op.getKeyMutable()),
                  call.index(op.getOwnerMutable()),
                  call.index(op.getKeyExtentMutable()),
                  {},
                  {}};
  if (!rank.isRank(op, "owner of a slice", score.owner))
    return Step::Failed;
  score.queryGrad = call.take<Tensor>(op.getQueryGradMutable());
  score.keyGrad = call.take<Tensor>(op.getKeyGradMutable());
  if (ArrayRef<int64_t>(rowsOf(*score.query)) != rowsOfScores(*score.weights) ||
      score.queryGrad->shape != score.query->shape ||
      score.keyGrad->shape != score.key->shape)
    return rank.fail(op, "takes tensors of different rows");
  std::string message;
  if (!rank.semantics().scoreGrad(score, message))
    return rank.fail(op, message);
  call.give(op.getNewQueryGrad(), std::move(score.queryGrad));
  call.give(op.getNewKeyGrad(), std::move(score.keyGrad));
  return Step::Done;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// A gradient by `like`, to which nothing was added; of what is gathered,
/// gathered.
static TensorRef newGradient(Type element, SimulatedRank &rank,
                             const Tensor &like) {
  if (like.shards.empty()) {
    TensorRef zero = rank.semantics().zero(element, like);
    zero->labelLike(like);
    zero->argument = madeFor(like.argument, Made::Gradient);
    return zero;
  }
  TensorRef all;
  for (const TensorRef &shard : like.shards)
    appendShard(all, newGradient(element, rank, *shard), 1);
  return all;
}

static Step run(ring::ZeroOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  TensorRef zero = newGradient(elementOf(op.getZero()), rank,
                               *call.peek<Tensor>(op.getLikeMutable()));
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

/// Reads all but the gradients. False where owners do not fit.
static bool readOperands(ring::AttendGradOp op, SimulatedRank &rank,
                         const ExternalCall &call, const GatheredPart &part,
                         AttendGrad &attend) {
  auto shardOf = [&](OpOperand &operand, int64_t owner) {
    auto *tensor = call.peek<Tensor>(operand);
    return tensor->shards.empty() ? tensor : tensor->shards[owner].get();
  };
  if (!rank.readInputs(op, call, part, attend))
    return false;
  attend.gradient = &op.getGradient();
  attend.captures = op.getCaptures();
  attend.outGrad = shardOf(op.getOutGradMutable(), part.queries);
  attend.lse = shardOf(op.getLseMutable(), part.queries);
  attend.delta = shardOf(op.getDeltaMutable(), part.queries);
  int64_t owner = part.keys.value_or(call.index(op.getKeyOwnerMutable()));
  attend.slice = {shardOf(op.getKeyMutable(), owner),
                  shardOf(op.getValueMutable(), owner), owner};
  return true;
}

/// Adds to gradients by the queries of one owner and by the keys of one.
static bool attendWith(ring::AttendGradOp op, SimulatedRank &rank,
                       const ExternalCall &call, const GatheredPart &part,
                       MutableArrayRef<TensorRef> grads) {
  AttendGrad attend;
  attend.queryShard = part.queries;
  attend.numQueryShards = rank.numShards(op.getQueryLayout());
  attend.keyShard = part.keys.value_or(0);
  attend.numKeyShards = rank.numShards(op.getKeyLayout());
  if (!rank.onlyCounts() && !readOperands(op, rank, call, part, attend))
    return false;
  // Not before: what is taken may be an operand besides.
  unsigned first = op.getGrads().getBeginOperandIndex();
  for (auto [i, grad] : llvm::enumerate(grads))
    attend.grads.push_back(grad ? std::move(grad)
                                : call.take<Tensor>(first + i));
  if (!rank.onlyCounts() && !isOfOneShape(attend)) {
    rank.fail(op, "takes tensors of different rows");
    return false;
  }
  if (!rank.onlyCounts())
    rank.announce(attend, 0, attend.slice.owner);
  std::string message;
  if (!rank.semantics().attendGrad(attend, message)) {
    rank.fail(op, message);
    return false;
  }
  for (auto [given, made] : llvm::zip_equal(grads, attend.grads))
    given = std::move(made);
  return true;
}

/// Whether what goes with queries, or with keys, is gathered where these are.
static bool areGathered(ring::AttendGradOp op, SimulatedRank &rank,
                        const ExternalCall &call) {
  auto areAll = [&](ArrayRef<unsigned> operands, ring::LayoutAttr layout,
                    int64_t owner) {
    return llvm::all_of(operands, [&](unsigned operand) {
      return rank.isGathered(op, call, operand, layout.getAll(), owner);
    });
  };
  auto number = [](OpOperand &operand) { return operand.getOperandNumber(); };
  unsigned grads = op.getGrads().getBeginOperandIndex();
  return areAll({number(op.getQueryMutable()), number(op.getOutGradMutable()),
                 number(op.getLseMutable()), number(op.getDeltaMutable()),
                 grads},
                op.getQueryLayout(), call.index(op.getQueryOwnerMutable())) &&
         areAll({number(op.getKeyMutable()), number(op.getValueMutable()),
                 grads + 1, grads + 2},
                op.getKeyLayout(), call.index(op.getKeyOwnerMutable()));
}

/// Adds to gradients of which those by queries, or by keys, are gathered: by
/// the shards of every owner, and by the same tables.
static bool attendAll(ring::AttendGradOp op, SimulatedRank &rank,
                      const ExternalCall &call,
                      MutableArrayRef<TensorRef> grads) {
  std::array<SmallVector<TensorRef>, 3> shards;
  for (auto [gradient, ofOwners] : llvm::zip(grads, shards)) {
    if (gradient->shards.empty())
      ofOwners.push_back(std::move(gradient));
    else
      for (size_t owner = 0; owner < gradient->shards.size(); ++owner)
        ofOwners.push_back(takeShard(gradient, owner));
  }
  bool gathersKeys = grads[1] != nullptr;
  const std::array<bool, 3> areGathered = {grads[0] != nullptr, gathersKeys,
                                           gathersKeys};
  MutableArrayRef<TensorRef> tables = grads.drop_front(3);
  for (auto [p, byQuery] : llvm::enumerate(shards[0]))
    for (auto [r, byKey, byValue] : llvm::enumerate(shards[1], shards[2])) {
      SmallVector<TensorRef> some{std::move(byQuery), std::move(byKey),
                                  std::move(byValue)};
      for (TensorRef &table : tables)
        some.push_back(std::move(table));
      GatheredPart part;
      part.queries = static_cast<int64_t>(p);
      if (gathersKeys)
        part.keys = r;
      if (!attendWith(op, rank, call, part, some))
        return false;
      byQuery = std::move(some[0]);
      byKey = std::move(some[1]);
      byValue = std::move(some[2]);
      for (auto [table, made] :
           llvm::zip_equal(tables, MutableArrayRef(some).drop_front(3)))
        table = std::move(made);
    }
  for (auto [gradient, ofOwners, isGathered] :
       llvm::zip(grads, shards, areGathered)) {
    gradient.reset();
    for (TensorRef &shard : ofOwners) {
      if (isGathered)
        appendShard(gradient, std::move(shard), 1);
      else
        gradient = std::move(shard);
    }
  }
  return true;
}

static Step run(ring::AttendGradOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  if (!rank.onlyCounts() && !areGathered(op, rank, call))
    return Step::Failed;
  unsigned first = op.getGrads().getBeginOperandIndex();
  bool anyGathered = !call.peek<Tensor>(first)->shards.empty() ||
                     !call.peek<Tensor>(first + 1)->shards.empty();
  SmallVector<TensorRef> grads;
  // What is taken may be an operand besides: of gathered ones, for all shards.
  for (unsigned i = 0; i < op.getGrads().size(); ++i)
    grads.push_back(anyGathered ? call.share<Tensor>(first + i) : TensorRef());
  if (!(anyGathered ? attendAll(op, rank, call, grads)
                    : attendWith(op, rank, call, {}, grads)))
    return Step::Failed;
  for (auto [i, grad] : llvm::enumerate(grads))
    call.give(i, std::move(grad));
  return Step::Done;
}

static Step run(ring::RoundOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  TensorRef gradient = call.share<Tensor>(op.getGradientMutable()), rounded;
  std::string message;
  auto type = cast<RankedTensorType>(op.getRounded().getType());
  int64_t heads = op.addsHeads() ? type.getDimSize(2) : 0;
  if (!rank.semantics().round(type.getElementType(), heads, gradient, rounded,
                              message))
    return rank.fail(op, message);
  rounded->labelLike(*gradient);
  rounded->inside = gradient->inside;
  rank.hold(*rounded);
  call.give(op.getRounded(), rounded);
  return Step::Done;
}

static Step run(ring::AddOp op, SimulatedRank &rank, const ExternalCall &call) {
  if (rank.onlyCounts()) {
    call.give(op.getSum(), call.take<Tensor>(op.getAMutable()));
    return Step::Done;
  }
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
  const Shard &shard =
      rank.shardOf(sum.layout.getValue(), sum.extent, sum.owner);
  sum.segments = shard.mask;
  if (!rank.selectSegments(call, {op.getSegmentsMutable(), op.getTurnMutable()},
                           sum.owner, sum.segments))
    return Step::Failed;
  // Nothing to add: the second may be of other rows, and not there at all.
  sum.a = call.take<Tensor>(op.getAMutable());
  sum.b = call.peek<Tensor>(op.getBMutable());
  if (sum.segments != 0) {
    if (sum.a->shape[1] != shard.count || sum.b->shape[1] != shard.count)
      return rank.fail(
          op, "adds gradients of " + Twine(sum.a->shape[1]) + " and " +
                  Twine(sum.b->shape[1]) + " positions as shards of rank " +
                  Twine(sum.owner) + ", which has " + Twine(shard.count));
    std::string message;
    if (!rank.semantics().add(sum, message))
      return rank.fail(op, message);
  }
  call.give(op.getSum(), std::move(sum.a));
  return Step::Done;
}

//===----------------------------------------------------------------------===//
// Chunks of heads
//===----------------------------------------------------------------------===//

static Step run(ring::TakeHeadsOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  const Tensor &whole = *call.peek<Tensor>(op.getTensorMutable());
  if (whole.argument < 0 || whole.argument >= maxChunkedArguments)
    return rank.fail(op, "takes heads of what is no argument");
  HeadChunk of{whole.argument, static_cast<int>(op.getChunk()),
               static_cast<int>(op.getNumChunks())};
  TensorRef taken = rank.semantics().takeHeads(whole, of);
  taken->labelLike(whole);
  taken->argument = numberOf(of);
  taken->segments = whole.segments;
  call.give(op.getTaken(), taken);
  return Step::Done;
}

/// Of which argument, and what of it, something was made; none for others.
static std::optional<std::pair<HeadChunk, Made>> madeOf(const Tensor &tensor) {
  if (tensor.argument >= -1)
    return std::nullopt;
  auto [argument, made] = whatIsMade(tensor.argument);
  return std::pair(chunkOf(argument), made);
}

static Step run(ring::JoinHeadsOp op, SimulatedRank &rank,
                const ExternalCall &call) {
  SmallVector<TensorRef> chunks;
  unsigned first = op.getChunksMutable()[0].getOperandNumber();
  for (unsigned i = 0; i < op.getChunks().size(); ++i)
    chunks.push_back(call.share<Tensor>(first + i));
  auto count = static_cast<int>(chunks.size());
  auto known = madeOf(*chunks.front());
  for (auto [number, chunk] : llvm::enumerate(chunks)) {
    auto made = madeOf(*chunk);
    HeadChunk wanted{known ? known->first.argument : 0,
                     static_cast<int>(number), count};
    if (!made || made->second != known->second || made->first != wanted)
      return rank.fail(op, "joins as chunk " + Twine(number) + " of " +
                               Twine(count) +
                               " what was not made of that chunk of the "
                               "argument");
  }
  TensorRef joined = rank.semantics().joinHeads(chunks);
  joined->labelLike(*chunks.front());
  joined->argument = madeFor(known->first.argument, known->second);
  joined->chunks.assign(chunks.begin(), chunks.end());
  call.give(op.getJoined(), joined);
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
  bool takesGathered(Operation *) const {
    return llvm::is_one_of<OpT, ring::AttendOp, ring::AttendGradOp,
                           ring::InitOp, ring::ZeroOp>::value;
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
           ring::WeighOp, ring::ProbabilitiesOp, ring::WeighGradOp,
           ring::ScoreGradOp, ring::TakeHeadsOp, ring::JoinHeadsOp>(context);
  });
}
