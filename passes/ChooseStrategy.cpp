//===- ChooseStrategy.cpp - decides what travels --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"
#include "passes/Simulation/Scalars/Program.h"
#include "passes/Strategies/Strategy.h"

#include "mlir/IR/Remarks.h"

namespace burst {
#define GEN_PASS_DEF_CHOOSESTRATEGYPASS
#include "passes/Passes.h.inc"
} // namespace burst

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
    text = llvm::formatv("Sq = Sk = {0}", sizes.queries);
  if (batch)
    text += (text.empty() ? "" : ", ") + std::string("B = 1");
  return text;
}

namespace {
struct ChooseStrategy : burst::impl::ChooseStrategyPassBase<ChooseStrategy> {
  void runOnOperation() override {
    SmallVector<AttentionInterface> attentions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](AttentionInterface op) {
        // One without a sequence is refused by burst-partition.
        if (op.getSequence())
          attentions.push_back(op);
      });
    for (AttentionInterface op : attentions)
      if (failed(choose(op)))
        return signalPassFailure();
  }

  LogicalResult choose(AttentionInterface op) {
    FailureOr<Deal> deal = resolveDeal(op, *op.getSequence());
    if (failed(deal))
      return failure();
    FailureOr<MachineModel> machine =
        readMachine(getOperation(), op.getSequence()->getGrid().getValue());
    if (failed(machine))
      return failure();
    AttentionSizes sizes = op.getSizes();
    std::string assumed = assumeSizes(sizes, deal->parts);
    BoundsAsker mask(op, sizes);
    if (!mask.isKnown())
      assumed += (assumed.empty() ? "" : ", ") +
                 std::string("the mask keeps everything");
    std::string reason = assumed.empty() ? "" : "assuming " + assumed;
    if (deal->parts > maxExactRanks)
      reason += (reason.empty() ? "" : ", ") +
                llvm::formatv("costed as {0} ranks", maxExactRanks).str();
    Workload workload(sizes,
                      op.getQuery().getType().getElementTypeBitWidth() / 8,
                      op.getStateType().getWidth() / 8,
                      isa<AttentionBackwardOp>(op.getOperation()), *deal,
                      [&](const Segment &queries, const Segment &keys) {
                        return mask.ask(queries, keys);
                      });

    SmallVector<StringRef> candidates;
    SmallVector<Estimate> estimates;
    for (const Strategy *strategy : getStrategies()) {
      if (strategy->isBaseline() || !strategy->whyNot(op).empty())
        continue;
      candidates.push_back(strategy->getName());
      estimates.push_back(strategy->estimate(workload, *machine));
    }
    StrategyAttr pinned = op.getStrategyAttr();
    StringRef chosen =
        pinned ? pinned.getValue() : candidates[cheapest(estimates)];
    for (auto [strategy, cost] : llvm::zip_equal(candidates, estimates))
      report(op, strategy, strategy == chosen, pinned != nullptr, cost, reason);
    if (!pinned)
      op->setAttr("strategy", StrategyAttr::get(&getContext(), chosen));
    return success();
  }

  static void report(AttentionInterface op, StringRef strategy, bool isChosen,
                     bool isPinned, const Estimate &cost, StringRef reason) {
    StringRef name = !isChosen ? "alternative" : isPinned ? "pinned" : "chosen";
    auto options = remark::RemarkOpts::name(name)
                       .category("strategy")
                       .function(op->getParentOfType<func::FuncOp>().getName());
    auto remark = isChosen ? remark::passed(op.getLoc(), options)
                           : remark::analysis(op.getLoc(), options);
    auto microseconds = [](double seconds) {
      return llvm::formatv("{0:f1}", seconds * 1e6).str();
    };
    std::string bytes = llvm::formatv("{0:f0}", cost.bytes);
    remark << remark::metric("strategy", strategy)
           << remark::metric("bytes", bytes)
           << remark::metric("compute_us", microseconds(cost.compute))
           << remark::metric("hidden_us", microseconds(cost.hidden))
           << remark::metric("exposed_us", microseconds(cost.exposed));
    if (!reason.empty())
      remark << remark::reason("{0}", reason);
  }
};
} // namespace
