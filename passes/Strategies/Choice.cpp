//===- Choice.cpp - strategies for an attention, weighed ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Choice.h"

#include "dialect/Ring/Ring.h"
#include "passes/Simulation/Scalars/Program.h"
#include "passes/Strategies/Exchange.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;

/// Of a sequence of which nothing is known, per rank.
static constexpr int64_t assumedPositions = 4096;

namespace {
/// Asks the bounds of a mask, for sizes that are known.
class BoundsAsker {
public:
  BoundsAsker(AttentionInterface op, const AttentionSizes &sizes);

  /// Whether the mask is known, or there is none.
  bool isKnown() const { return bounds || !hasMask; }
  Kept ask(const Segment &queries, const Segment &keys);

private:
  struct Answer {
    bool may, must;
  };
  Answer askBox(int64_t i0, int64_t i1, int64_t j0, int64_t j1);

  AttentionSizes sizes;
  bool hasMask;
  std::optional<RegionEvaluator> bounds;
};
} // namespace

BoundsAsker::BoundsAsker(AttentionInterface op, const AttentionSizes &sizes)
    : sizes(sizes), hasMask(!op.getMask().empty()) {
  Region &region = op.getBounds();
  if (region.empty())
    return;
  // Captures are values of the run.
  size_t numCaptures = op.getMaskCaptures().size();
  for (BlockArgument capture :
       region.getArguments().take_back(static_cast<int64_t>(numCaptures)))
    if (!capture.use_empty())
      return;
  bounds = RegionEvaluator::create(
      region, SmallVector<RegionEvaluator::Capture>(numCaptures));
}

BoundsAsker::Answer BoundsAsker::askBox(int64_t i0, int64_t i1, int64_t j0,
                                        int64_t j1) {
  // Bounds mean nothing for an empty box.
  int64_t batch = std::max<int64_t>(sizes.batch, 1);
  int64_t box[] = {0,  batch, 0,  sizes.queryHeads, i0,
                   i1, j0,    j1, sizes.queries,    sizes.keys};
  Scalar arguments[std::size(box)];
  for (auto [argument, value] : llvm::zip_equal(arguments, box))
    argument.i = value;
  if (!bounds->evaluate(arguments))
    return {true, false};
  return {bounds->result(0).i != 0, bounds->result(1).i != 0};
}

/// Where the mask keeps some of a box, it is asked about the box's parts; of a
/// part that is cut, half counts.
Kept BoundsAsker::ask(const Segment &queries, const Segment &keys) {
  constexpr int64_t cuts = 4;
  if (!bounds)
    return {};
  if (queries.count == 0 || keys.count == 0)
    return {false, 0};
  Answer whole = askBox(queries.begin, queries.end(), keys.begin, keys.end());
  if (!whole.may)
    return {false, 0};
  if (whole.must)
    return {};
  auto cut = [](const Segment &segment, int64_t n) {
    return segment.begin + (segment.end() - segment.begin) * n / cuts;
  };
  double share = 0;
  for (int64_t a = 0; a < cuts; ++a)
    for (int64_t b = 0; b < cuts; ++b) {
      int64_t i0 = cut(queries, a), i1 = cut(queries, a + 1);
      int64_t j0 = cut(keys, b), j1 = cut(keys, b + 1);
      if (i0 == i1 || j0 == j1)
        continue;
      Answer part = askBox(i0, i1, j0, j1);
      share += part.must ? 1 : part.may ? 0.5 : 0;
    }
  return {true, share / (cuts * cuts)};
}

/// Fills in sizes that are not static; the assumption in words.
static std::string assumeSizes(AttentionSizes &sizes, int64_t parts) {
  bool queries = ShapedType::isDynamic(sizes.queries);
  bool keys = ShapedType::isDynamic(sizes.keys);
  bool batch = ShapedType::isDynamic(sizes.batch);
  // A cache of keys is longer than the queries that look for something in it.
  if (keys)
    sizes.keys = std::max(parts * assumedPositions, sizes.queries);
  if (queries)
    sizes.queries = sizes.keys;
  if (batch)
    sizes.batch = 1;
  std::string text;
  if (queries || keys)
    text = llvm::formatv("{0}Sk = {1}", queries ? "Sq = " : "", sizes.keys);
  if (batch)
    text += (text.empty() ? "" : ", ") + std::string("B = 1");
  return text;
}

/// Bytes of operands and results on a rank, whatever the strategy: each tensor
/// counts once.
static double tensorBytes(AttentionInterface op, const AttentionSizes &sizes,
                          const Layout &layout) {
  llvm::SmallSetVector<Value, 8> tensors(op->operand_begin(),
                                         op->operand_end());
  tensors.insert_range(op->getResults());
  SmallVector<Sharded> sharded = op.getSharded();
  int64_t headParts = numParts(op, op.getHeadsAttr());
  double sum = 0;
  for (Value tensor : tensors) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (!type)
      continue;
    SmallVector<int64_t> shape(type.getShape());
    const auto *found = llvm::find_if(
        sharded, [&](const Sharded &other) { return other.tensor == tensor; });
    if (found != sharded.end()) {
      shape[ring::headsDimOf(type)] /= headParts;
      shape[0] = sizes.batch;
      shape[found->dim] =
          layout.largest(found->isOfKeys ? sizes.keys : sizes.queries);
    }
    if (llvm::any_of(shape, ShapedType::isDynamic)) // a table
      continue;
    Type element = type.getElementType();
    double bytes =
        element.isIndex()
            ? sizeof(int64_t)
            : llvm::divideCeil(element.getIntOrFloatBitWidth(), CHAR_BIT);
    for (int64_t size : shape)
      bytes *= static_cast<double>(size);
    sum += bytes;
  }
  return sum;
}

/// What pins a strategy with the exchange around it; with nothing left to
/// share, the exchange alone.
static StrategyAttr pinOf(const Exchange &exchange, const Strategy *strategy,
                          bool isAlone, MLIRContext *context) {
  SmallVector<StrategyPart> parts;
  if (exchange.isDone())
    parts.push_back({exchangeName,
                     isAlone ? SmallVector<int64_t>() : exchange.axes,
                     exchange.chunks});
  if (!exchange.isDone() || !isAlone) {
    parts.push_back({strategy->getName(), {}});
    if (exchange.isDone())
      parts.back().axes.assign(exchange.sequence.getAxes().begin(),
                               exchange.sequence.getAxes().end());
  }
  return StrategyAttr::get(context, parts);
}

/// Those of `axes` along which there are several ranks.
static SmallVector<Axis> axesOfSeveral(shard::GridOp grid,
                                       ArrayRef<int64_t> axes) {
  SmallVector<Axis> result;
  for (int64_t axis : axes)
    if (int64_t ranks = groupOf(grid, axis).size; ranks != 1)
      result.push_back({axis, ranks});
  return result;
}

/// What `exchange`, and strategies between its ways, cost an attention; to
/// `choice`, and the costs. Where it is pinned, so is what is pinned of these.
static void weigh(AttentionInterface op, const Exchange &exchange,
                  bool isPinned, const AttentionSizes &ofRank,
                  BoundsAsker &mask, const Machine &machine, Choice &choice,
                  SmallVectorImpl<Estimate> &costs) {
  AttentionSizes sizes = ofRank;
  DividedHeads heads = divideHeads(op, membersAlong(op, exchange.axes));
  sizes.queryHeads = heads.query;
  sizes.keyHeads = heads.key;
  Layout whole = *resolveLayout(op, *op.getSequence());
  Layout layout = *resolveLayout(op, exchange.sequence);
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  Workload workload(sizes, op.getQuery().getType().getElementTypeBitWidth() / 8,
                    op.getStateType().getWidth() / 8, backward != nullptr,
                    layout, [&](const Segment &queries, const Segment &keys) {
                      return mask.ask(queries, keys);
                    });
  workload.axes = axesOfSeveral(gridOf(op), axesOf(op, exchange.sequence));
  workload.givesMaxScores =
      !backward && cast<AttentionOp>(op.getOperation()).givesMaxScores();
  if (backward)
    workload.wanted = {!backward.getQueryGrad().use_empty(),
                       !backward.getKeyGrad().use_empty(),
                       !backward.getValueGrad().use_empty()};
  Hardware hardware = machine.along(llvm::map_to_vector(
      workload.axes, [](const Axis &axis) { return axis.number; }));
  hardware.flops = machine.kernels.rate(
      op.getQuery().getType().getElementType(), sizes.queryDim,
      workload.isBackward ? Products::Backward : Products::Forward);
  double tensors = tensorBytes(op, ofRank, whole);
  for (const Strategy *strategy : getStrategies()) {
    bool isThis = exchange.rest &&
                  exchange.rest.getParts().front().name == strategy->getName();
    if (strategy->isOnlyPinned(layout.parts) && !isThis)
      continue;
    // With the whole sequence on each rank all of them are the same.
    bool isAlone = layout.parts == 1;
    if (exchange.isDone() && isAlone && strategy != getStrategies().front())
      continue;
    StrategyAttr pin = pinOf(exchange, strategy, isAlone, op.getContext());
    if (std::string why = strategy->whyNot(op, exchange.sequence);
        !why.empty()) {
      choice.refused.push_back({pin, why});
      continue;
    }
    if (isPinned && (isThis || (exchange.isDone() && isAlone)))
      choice.chosen = choice.candidates.size();
    Estimate cost = strategy->estimate(workload, hardware);
    HeadChunks chunks{exchange.chunks, haveChunksOwnKeys(op), cost.compute};
    cost.buffers = buffersInChunks(
        strategy->estimate(chunkOf(workload, chunks), hardware).buffers,
        workload, chunks);
    if (exchange.isDone())
      cost += estimateExchange(workload, heads,
                               axesOfSeveral(gridOf(op), exchange.axes),
                               backward && backward.getLseGrad(),
                               machine.along(exchange.axes), chunks);
    double peak = tensors + cost.buffers;
    choice.candidates.push_back({strategy,
                                 pin,
                                 cost,
                                 peak,
                                 peak <= machine.whole.memory,
                                 {exchange.axes, exchange.chunks}});
    costs.push_back(cost);
  }
}

/// All that could be had of an attention, maybe with heads in chunks; chosen is
/// what is pinned.
static FailureOr<Choice> weighAlone(AttentionInterface op, bool withChunks,
                                    SmallVectorImpl<Estimate> &costs) {
  FailureOr<Layout> layout = resolveLayout(op, *op.getSequence());
  if (failed(layout))
    return failure();
  FailureOr<Exchange> pinned = exchangeOf(op);
  if (failed(pinned))
    return failure();
  FailureOr<Machine> machine =
      readMachine(op->getParentOfType<ModuleOp>(), gridOf(op));
  if (failed(machine))
    return failure();
  AttentionSizes sizes = op.getSizes();
  Choice choice;
  std::string assumed = assumeSizes(sizes, layout->parts);
  choice.areSizesKnown = assumed.empty();
  BoundsAsker mask(op, sizes);
  if (!mask.isKnown())
    assumed += (assumed.empty() ? "" : ", ") +
               std::string("the mask keeps everything");
  choice.assumptions = assumed.empty() ? "" : "assuming " + assumed;
  if (layout->parts > maxExactRanks)
    choice.assumptions +=
        (choice.assumptions.empty() ? "" : ", ") +
        llvm::formatv("costed as {0} ranks", maxExactRanks).str();
  // A rank computes with its own batches and heads, of all that the mask knows.
  sizes.batch = llvm::divideCeil(sizes.batch, numParts(op, op.getBatchAttr()));

  bool hasOneRank = resolveLayout(op, pinned->sequence)->parts == 1;
  choice.isPinned = pinned->rest || (pinned->isDone() && hasOneRank);
  choice.memory = machine->whole.memory;
  shard::GridOp grid = gridOf(op);
  SmallVector<Axis> axes =
      axesOfSeveral(grid, llvm::to_vector(llvm::seq<int64_t>(grid.getRank())));
  if (axes.size() > 1)
    for (const Axis &axis : axes)
      choice.axes.push_back(axis.number);
  // What is pinned without an exchange has none; else all are weighed, but
  // where one is pinned around what is chosen.
  SmallVector<Exchange> exchanges{*pinned};
  SmallVector<RefusedExchange> refused;
  if (pinned->isDone() == choice.isPinned) {
    exchanges = allExchanges(op, refused);
    for (Exchange &exchange : exchanges)
      if (exchange.axes == pinned->axes)
        exchange = *pinned;
    if (withChunks)
      llvm::append_range(exchanges, inChunks(op, exchanges.back()));
  }
  for (const Exchange &exchange : exchanges)
    weigh(op, exchange,
          choice.isPinned && exchange.axes == pinned->axes &&
              exchange.chunks == pinned->chunks,
          sizes, mask, *machine, choice, costs);
  for (const RefusedExchange &exchange : refused)
    choice.refused.push_back(
        {StrategyAttr::get(op.getContext(),
                           ArrayRef(StrategyPart{exchangeName, exchange.axes})),
         exchange.why});
  return choice;
}

/// The cheapest of those that fit, of one exchange; none where nothing does.
static std::optional<size_t> cheapestWith(const Exchanged &exchanged,
                                          const Choice &choice,
                                          ArrayRef<Estimate> costs) {
  SmallVector<size_t> fitting;
  SmallVector<Estimate> costsOfFitting;
  for (auto [index, candidate] : llvm::enumerate(choice.candidates))
    if (candidate.fits && candidate.exchanged == exchanged) {
      fitting.push_back(index);
      costsOfFitting.push_back(costs[index]);
    }
  if (fitting.empty())
    return std::nullopt;
  return fitting[cheapest(costsOfFitting, choice.areSizesKnown)];
}

/// Something with the only exchange that an attention may have; null where it
/// has several.
static const Candidate *onlyExchangeOf(const Choice &choice) {
  if (choice.isPinned)
    return choice.chosen ? &choice.candidates[*choice.chosen] : nullptr;
  const Candidate &first = choice.candidates.front();
  bool isOne = llvm::all_of(choice.candidates, [&](const Candidate &candidate) {
    return candidate.exchanged == first.exchanged;
  });
  return isOne ? &first : nullptr;
}

/// Refuses an attention of which nothing fits; of one exchange, where another
/// attention of the function has only that.
static LogicalResult checkFits(AttentionInterface op, const Choice &choice,
                               const Candidate *only) {
  SmallVector<const Candidate *> allowed;
  for (const Candidate &candidate : choice.candidates)
    if (!only || candidate.exchanged == only->exchanged)
      allowed.push_back(&candidate);
  auto fits = [](const Candidate *candidate) { return candidate->fits; };
  if (choice.isPinned || allowed.empty() || llvm::any_of(allowed, fits))
    return success();
  const Candidate *smallest =
      *llvm::min_element(allowed, [](const Candidate *a, const Candidate *b) {
        return a->peakBytes < b->peakBytes;
      });
  return op->emitOpError(llvm::formatv(
      "needs {0:f0} bytes on a rank with the strategy {1}, more with others, "
      "and 'burst.memory' is {2:f0}; shard it over more ranks, or pin one",
      smallest->peakBytes, smallest->pin.getText(), choice.memory));
}

namespace {
/// An exchange, what each attention does in it, and what all cost.
struct Together {
  SmallVector<size_t> chosen;
  Estimate cost;
};
} // namespace

/// What attentions do with an exchange; none where one of them has it not, or
/// all together.
static std::optional<Together>
chooseWith(const Exchanged &exchanged, ArrayRef<AttentionInterface> ops,
           ArrayRef<Choice> choices, ArrayRef<SmallVector<Estimate>> costs) {
  int64_t members = membersAlong(ops.front(), exchanged.axes);
  if (!whyNoHeadsTogether(ops, members).empty())
    return std::nullopt;
  Together together;
  for (auto [choice, own] : llvm::zip_equal(choices, costs)) {
    std::optional<size_t> index =
        choice.isPinned ? choice.chosen : cheapestWith(exchanged, choice, own);
    if (!index || choice.candidates[*index].exchanged != exchanged)
      return std::nullopt;
    together.chosen.push_back(*index);
    together.cost += own[*index];
  }
  return together;
}

SmallVector<AttentionInterface> burst::attentionsOf(func::FuncOp function) {
  SmallVector<AttentionInterface> attentions;
  function.walk([&](AttentionInterface op) {
    if (op.getSequence())
      attentions.push_back(op);
  });
  return attentions;
}

/// All attentions, each for itself.
static LogicalResult weighEach(ArrayRef<AttentionInterface> ops,
                               bool withChunks, SmallVector<Choice> &choices,
                               SmallVector<SmallVector<Estimate>> &costs) {
  choices.clear();
  costs.assign(ops.size(), {});
  for (auto [op, own] : llvm::zip_equal(ops, costs)) {
    FailureOr<Choice> choice = weighAlone(op, withChunks, own);
    if (failed(choice))
      return failure();
    choices.push_back(*choice);
  }
  return success();
}

/// Whether heads of the whole sequence, all at once, are too much for a rank.
static bool needsChunks(const Choice &choice) {
  return llvm::any_of(choice.candidates, [](const Candidate &candidate) {
    return !candidate.fits && candidate.pin.getNames().size() == 1 &&
           !candidate.exchanged.axes.empty();
  });
}

FailureOr<SmallVector<Choice>>
burst::weighStrategies(ArrayRef<AttentionInterface> ops) {
  SmallVector<Choice> choices;
  SmallVector<SmallVector<Estimate>> costs;
  if (failed(weighEach(ops, /*withChunks=*/false, choices, costs)))
    return failure();
  if (llvm::any_of(choices, needsChunks) && whyNoChunksTogether(ops).empty() &&
      failed(weighEach(ops, /*withChunks=*/true, choices, costs)))
    return failure();
  bool areSizesKnown =
      llvm::all_of(choices, [](const Choice &c) { return c.areSizesKnown; });
  const Candidate *only = nullptr;
  for (const Choice &choice : choices)
    if (!only)
      only = onlyExchangeOf(choice);
  for (auto [op, choice] : llvm::zip_equal(ops, choices))
    if (failed(checkFits(op, choice, only)))
      return failure();
  SmallVector<Together> all;
  SmallVector<Estimate> costsOfAll;
  SmallVector<Exchanged> seen;
  for (const Choice &choice : choices)
    for (const Candidate &candidate : choice.candidates) {
      if (llvm::is_contained(seen, candidate.exchanged))
        continue;
      seen.push_back(candidate.exchanged);
      if (auto together =
              chooseWith(candidate.exchanged, ops, choices, costs)) {
        costsOfAll.push_back(together->cost);
        all.push_back(std::move(*together));
      }
    }
  for (auto [number, choice] : llvm::enumerate(choices)) {
    if (choice.isPinned)
      continue;
    // Where pins differ burst-partition says so.
    choice.chosen =
        all.empty() ? cheapestWith({}, choice, costs[number]).value_or(0)
                    : all[cheapest(costsOfAll, areSizesKnown)].chosen[number];
  }
  return choices;
}
