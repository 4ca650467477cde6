//===- Rank.cpp - the ops of a rank, but for transfers --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Buffers/Slots.h"
#include "passes/Simulation/Ranks.h"

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
  // Of a called function too, where the site is one of its own.
  if (auto segment = dyn_cast<ring::SegmentOp>(call.op))
    return runSegment(segment, call);
  Site &site = impl.sites[call.site];
  if (!site.isKnown) {
    site.step = dyn_cast<SimulatedOpInterface>(call.op);
    site.reusesBuffers = impl.reused.contains(call.op);
  }
  site.isKnown = true;
  reusesBuffers = site.reusesBuffers;
  SimulatedOpInterface step = site.step;
  if (impl.hasGathers && step && !step.takesGathered() && !isOfShards(call))
    return Step::Failed;
  Step done = step ? step.simulate(*this, call) : runOther(call);
  reusesBuffers = false;
  if (done == Step::Failed && !impl.failure.op)
    impl.failure.op = call.op;
  return done;
}

/// Whether a step takes no gathered tensor.
bool Simulation::Impl::Rank::isOfShards(const ExternalCall &call) {
  for (auto [number, slot] : llvm::enumerate(call.operands))
    if (isa<RankedTensorType>(call.op->getOperand(number).getType()) &&
        !call.peek<Tensor>(number)->shards.empty()) {
      fail(call.op, "works on the shard of one rank, and is given a gathered "
                    "tensor as operand " +
                        Twine(number));
      return false;
    }
  return true;
}

/// Transfers, and what asks where a rank is.
Step Simulation::Impl::Rank::runOther(const ExternalCall &call) {
  if (const auto &start = impl.sites[call.site].start)
    return runStart(start->op, call);
  return TypeSwitch<Operation *, Step>(call.op)
      .Case<ring::WaitOp>([&](auto op) { return runWait(op, call); })
      .Case<ring::TransferOpInterface>(
          [&](auto op) { return runStart(op, call); })
      .Case<shard::ProcessMultiIndexOp, shard::GridShapeOp>([&](auto op) {
        return runPlaces(op, op.getAxes(), op.getGrid(), call);
      })
      .Case<ring::RequireOp>([&](auto op) { return runRequire(op, call); })
      .Case<ring::RotateOp>([&](auto op) {
        return fail(op, "cannot be run: it stands for loops and transfers; "
                        "run ring-lower-rotate first");
      })
      .Case<ring::GatherOp>([&](auto op) {
        return fail(op, "cannot be run: it stands for transfers; run "
                        "ring-lower-gather first");
      })
      .Default([&](Operation *op) {
        return fail(op, "cannot be run: it is no op of a rank's program");
      });
}

/// Where this rank is along axes, or how many there are.
Step Simulation::Impl::Rank::runPlaces(Operation *op, ArrayRef<int16_t> axes,
                                       StringRef grid,
                                       const ExternalCall &call) {
  if (!isOnGrid(op, grid))
    return Step::Failed;
  for (auto [number, slot] : llvm::enumerate(call.results)) {
    int64_t axis = axes.empty() ? static_cast<int64_t>(number) : axes[number];
    RankGroup group = ring::groupOf(impl.function, axis);
    call.frame.scalars[slot.number].i =
        isa<shard::GridShapeOp>(op) ? group.size : group.placeOf(index);
  }
  return Step::Done;
}

bool SimulatedRank::isRank(Operation *op, StringRef what, int64_t value) {
  if (value >= 0 && value < parts)
    return true;
  fail(op, "names rank " + Twine(value) + " as " + what + ", of " +
               Twine(parts) + " ranks");
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
  int64_t segment = call.index(op.getIndexMutable());
  int64_t owner = call.index(op.getOwnerMutable());
  int64_t count = op.getLayout().getNumSegments();
  if (!isRank(op, "owner", owner))
    return Step::Failed;
  if (owner >= op.getLayout().getNumOwners())
    return fail(op, "names owner " + Twine(owner) +
                        " of a gathered layout, of which 0 has all");
  if (segment < 0 || segment >= count)
    return fail(op, "names segment " + Twine(segment) + " of " + Twine(count));
  Segment s = op.getLayout().getValue().segment(
      owner, segment, call.index(op.getExtentMutable()));
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

//===----------------------------------------------------------------------===//
// Attends
//===----------------------------------------------------------------------===//

/// What all attends take from their op.
static std::unique_ptr<const AttendSite>
describeInputs(ring::AttendLikeOpInterface op) {
  std::optional<unsigned> pairs, offsets;
  for (OpOperand &table : op.getPairsMutable())
    pairs = table.getOperandNumber();
  if (MutableOperandRange range = op.getOffsetsMutable(); !range.empty())
    offsets = range[0].getOperandNumber();
  AttendInputs inputs;
  inputs.at = op;
  inputs.queryLayout = op.getQueryLayout().ofPart();
  inputs.keyLayout = op.getKeyLayout().ofPart();
  inputs.mask = &op.getMask();
  inputs.score = &op.getScore();
  inputs.bounds = &op.getBounds();
  inputs.scale = op.getScale().convertToDouble();
  return std::make_unique<const AttendSite>(AttendSite{
      std::move(inputs), op.getQueryLayout().getAll(),
      op.getKeyLayout().getAll(), op.getQueryMutable().getOperandNumber(),
      op.getQueryOwnerMutable().getOperandNumber(),
      op.getQueryExtentMutable().getOperandNumber(),
      op.getKeyOwnerMutable().getOperandNumber(),
      op.getKeyExtentMutable().getOperandNumber(), offsets, pairs,
      op.getMaskCaptures(), op.getScoreCaptures()});
}

/// Which pairs of segments are computed: of gathered keys, with those of each
/// owner.
bool Simulation::Impl::Rank::selectPairs(const AttendSite &site,
                                         const ExternalCall &call,
                                         const GatheredPart &part,
                                         AttendInputs &inputs) {
  int64_t numA = inputs.queryLayout.getNumSegments();
  int64_t numB = inputs.keyLayout.getNumSegments();
  int64_t numSlices = site.gathersKeys && !part.keys ? parts : 1;
  if (!site.pairs) {
    inputs.pairs.resize(numSlices * numA * numB, true);
    return true;
  }
  const auto &table = *call.peek<Tensor>(*site.pairs);
  if (!table.hasData()) {
    fail(call.op, "reads flags of pairs that nobody knows yet");
    return false;
  }
  int64_t row = site.gathersQueries ? 0 : inputs.queryOwner;
  int64_t owner = site.gathersKeys ? 0 : call.index(site.keyOwner);
  if (row >= table.shape[0] || owner >= table.shape[1]) {
    fail(call.op, "reads flags of pairs of owner " +
                      Twine(std::max(owner, row)) + ", of " +
                      Twine(table.shape[row >= table.shape[0] ? 0 : 1]));
    return false;
  }
  for (int64_t slice = 0; slice < numSlices; ++slice) {
    // Where all are gathered, the segments of one follow those of another.
    int64_t firstA = site.gathersQueries ? part.queries * numA : 0;
    int64_t firstB = site.gathersKeys ? part.keys.value_or(slice) * numB : 0;
    for (int64_t a = firstA; a < firstA + numA; ++a)
      for (int64_t b = firstB; b < firstB + numB; ++b)
        inputs.pairs.push_back(
            table.integer(
                ((row * table.shape[1] + owner) * table.shape[2] + a) *
                    table.shape[3] +
                b) != 0);
  }
  return true;
}

/// The shard of `owner` of queries or keys: they are it, or were gathered.
static Tensor *shardOfOwner(Tensor *tensor, bool isGathered, int64_t owner) {
  bool isOne = !isGathered || tensor->shards.empty(); // of one rank
  return isOne ? tensor : tensor->shards[owner].get();
}

bool Simulation::Impl::Rank::readInputs(ring::AttendLikeOpInterface op,
                                        const ExternalCall &call,
                                        const GatheredPart &part,
                                        AttendInputs &inputs) {
  std::unique_ptr<const AttendSite> &known = impl.sites[call.site].attend;
  if (!known)
    known = describeInputs(op);
  const AttendSite &site = *known;
  inputs = site.inputs;
  inputs.rank = index;
  inputs.hop = hop;
  inputs.queryOwner = call.index(site.queryOwner);
  inputs.queryExtent = call.index(site.queryExtent);
  inputs.keyExtent = call.index(site.keyExtent);
  Tensor *query = call.peek<Tensor>(site.query);
  inputs.numBatches = query->shape[0];
  inputs.numHeads = query->shape[2];
  if (site.offsets) {
    inputs.firstBatch = call.index(*site.offsets);
    inputs.numBatches = call.index(*site.offsets + 1);
    inputs.firstHead = call.index(*site.offsets + 2);
    inputs.numHeads = call.index(*site.offsets + 3);
  }
  inputs.maskCaptures = captures(call, site.maskCaptures);
  inputs.scoreCaptures = captures(call, site.scoreCaptures);
  if (!isRank(op, "owner of the queries", inputs.queryOwner) ||
      !isGathered(op, call, site.query, site.gathersQueries, inputs.queryOwner))
    return false;
  if (site.gathersQueries)
    inputs.queryOwner = part.queries;
  inputs.query = shardOfOwner(call.peek<Tensor>(site.query),
                              site.gathersQueries, part.queries);
  if (!isRank(op, "owner of the keys", call.index(site.keyOwner)))
    return false;
  return selectPairs(site, call, part, inputs);
}

/// Whether an operand is gathered where its layout says so, and only there, and
/// its owner is then 0.
bool SimulatedRank::isGathered(Operation *op, const ExternalCall &call,
                               unsigned operand, bool wanted, int64_t owner) {
  const auto &tensor = *call.peek<Tensor>(operand);
  bool isGathered = !tensor.shards.empty() || (wanted && parts == 1);
  if (isGathered != wanted)
    fail(op, wanted ? "takes for gathered what is the shard of one rank"
                    : "takes for the shard of one rank what is gathered");
  else if (wanted && owner != 0)
    fail(op, "names owner " + Twine(owner) +
                 " of a gathered layout, of which 0 has all");
  return isGathered == wanted && (!wanted || owner == 0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

const FreshMemory &Simulation::Impl::memoryOf(const ExternalCall &call) {
  std::optional<FreshMemory> &memory = sites[call.site].memory;
  if (!memory)
    memory = {sliceOf(call.op).has_value(), numSlots(call.op),
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
        shape[tensor->sharding.dim] = impl.shards.largest(
            tensor->sharding.layout, tensor->sharding.extent);
      hold(shape, tensor->element);
    }
}
