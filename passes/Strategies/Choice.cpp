//===- Choice.cpp - strategies for an attention, weighed ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Choice.h"

#include "passes/Simulation/Scalars/Program.h"

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
  if (queries)
    sizes.queries = keys ? parts * assumedPositions : sizes.keys;
  if (keys)
    sizes.keys = sizes.queries;
  if (batch)
    sizes.batch = 1;
  std::string text;
  if (queries || keys)
    text = llvm::formatv("Sq = Sk = {0}", sizes.queries).str();
  if (batch)
    text += (text.empty() ? "" : ", ") + std::string("B = 1");
  return text;
}

/// Bytes of operands and results on a rank, whatever the strategy: each tensor
/// counts once.
static double tensorBytes(AttentionInterface op, const Workload &workload) {
  llvm::SmallSetVector<Value, 8> tensors(op->operand_begin(),
                                         op->operand_end());
  tensors.insert_range(op->getResults());
  SmallVector<Sharded> sharded = op.getSharded();
  double sum = 0;
  for (Value tensor : tensors) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (!type)
      continue;
    SmallVector<int64_t> shape(type.getShape());
    const auto *found = llvm::find_if(
        sharded, [&](const Sharded &other) { return other.tensor == tensor; });
    if (found != sharded.end()) {
      shape[ring::headsDimOf(type)] /= groupOf(op, op.getHeadsAttr()).size;
      shape[0] = workload.sizes.batch;
      shape[found->dim] =
          found->isOfKeys ? workload.keysOfRank : workload.queriesOfRank;
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

FailureOr<Choice> burst::weighStrategies(AttentionInterface op) {
  FailureOr<Layout> layout = resolveLayout(op, *op.getSequence());
  if (failed(layout))
    return failure();
  FailureOr<Hardware> hardware = readHardware(
      op->getParentOfType<ModuleOp>(), op.getSequence()->getGrid().getValue());
  if (failed(hardware))
    return failure();
  AttentionSizes sizes = op.getSizes();
  std::string assumed = assumeSizes(sizes, layout->parts);
  bool areAssumed = !assumed.empty();
  BoundsAsker mask(op, sizes);
  if (!mask.isKnown())
    assumed += (assumed.empty() ? "" : ", ") +
               std::string("the mask keeps everything");
  std::string assumptions = assumed.empty() ? "" : "assuming " + assumed;
  if (layout->parts > maxExactRanks)
    assumptions += (assumptions.empty() ? "" : ", ") +
                   llvm::formatv("costed as {0} ranks", maxExactRanks).str();
  // A rank computes with its own batches and heads, of all that the mask knows.
  sizes.batch =
      llvm::divideCeil(sizes.batch, groupOf(op, op.getBatchAttr()).size);
  int64_t headParts = groupOf(op, op.getHeadsAttr()).size;
  sizes.queryHeads = llvm::divideCeil(sizes.queryHeads, headParts);
  sizes.keyHeads = llvm::divideCeil(sizes.keyHeads, headParts);
  Workload workload(sizes, op.getQuery().getType().getElementTypeBitWidth() / 8,
                    op.getStateType().getWidth() / 8,
                    isa<AttentionBackwardOp>(op.getOperation()), *layout,
                    [&](const Segment &queries, const Segment &keys) {
                      return mask.ask(queries, keys);
                    });

  StrategyAttr pinned = op.getStrategyAttr();
  Choice choice;
  choice.isPinned = pinned != nullptr;
  choice.assumptions = std::move(assumptions);
  double tensors = tensorBytes(op, workload);
  SmallVector<Estimate> costs;
  for (const Strategy *strategy : getStrategies()) {
    bool isThis = pinned && pinned.getValue() == strategy->getName();
    if (!strategy->whyNot(op).empty() || (strategy->isBaseline() && !isThis))
      continue;
    if (isThis)
      choice.chosen = choice.candidates.size();
    Estimate cost = strategy->estimate(workload, *hardware);
    choice.candidates.push_back({strategy, cost, tensors + cost.buffers});
    costs.push_back(cost);
  }
  if (!pinned)
    choice.chosen = cheapest(costs, /*areSizesKnown=*/!areAssumed);
  return choice;
}
