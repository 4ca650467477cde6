//===- LowerToRing.cpp - attention becomes the program of a rank ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Slices.h"
#include "passes/Passes.h"
#include "passes/Strategies/Exchange.h"
#include "passes/Strategies/Strategy.h"

#include "llvm/ADT/StringExtras.h"

namespace burst {
#define GEN_PASS_DEF_LOWERTORINGPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {
struct LowerToRing : burst::impl::LowerToRingPassBase<LowerToRing> {
  void runOnOperation() override {
    SmallVector<AttentionInterface> attentions;
    getOperation().walk(
        [&](AttentionInterface op) { attentions.push_back(op); });
    SmallVector<ArrayRef<int64_t>> maxSlices;
    for (AttentionInterface op : attentions) {
      FailureOr<const Strategy *> strategy = lower(op);
      if (failed(strategy))
        return signalPassFailure();
      maxSlices.push_back((*strategy)->maxSlices());
    }
    ring::stateMaxSlices(getOperation(), maxSlices);
  }

  /// Between burst.unshard and burst.shard of its own sequence.
  static bool isPartitioned(AttentionInterface op) {
    if (!op.getSequence())
      return false;
    for (const Sharded &sharded : op.getSharded()) {
      if (sharded.tensor.getDefiningOp() == op) {
        for (Operation *user : sharded.tensor.getUsers()) {
          auto shard = dyn_cast<ShardOp>(user);
          if (!shard || shard.getSequence() != *op.getSequence())
            return false;
        }
        continue;
      }
      auto unshard = sharded.tensor.getDefiningOp<UnshardOp>();
      if (!unshard || unshard.getSequence() != *op.getSequence())
        return false;
    }
    return true;
  }

  /// The strategy that is pinned or chosen, if it can compute `op`.
  static FailureOr<const Strategy *> findStrategy(AttentionInterface op) {
    StrategyAttr pinned = op.getStrategyAttr();
    if (!pinned)
      return getStrategies().front();
    StrategyPart part = pinned.getParts().front();
    if (pinned.getParts().size() > 1 || !part.axes.empty() ||
        part.name == exchangeName)
      return op->emitOpError("pins the strategy ")
             << pinned.getText() << "; run burst-partition first";
    const Strategy *strategy = lookupStrategy(part.name);
    std::string why =
        strategy ? strategy->whyNot(op, *op.getSequence()) : whyUnknown(op);
    if (why.empty())
      return strategy;
    return op->emitOpError("pins the strategy ")
           << part.name << ", which " << why;
  }

  static std::string whyUnknown(AttentionInterface op) {
    std::string text = "is not known: leave it out, or pin one of ";
    llvm::raw_string_ostream out(text);
    llvm::ListSeparator comma;
    for (const Strategy *strategy : getStrategies())
      if (strategy->whyNot(op, *op.getSequence()).empty())
        out << comma << strategy->getName();
    out << comma << exchangeName;
    return text;
  }

  /// Of what nobody uses nothing travels.
  static void eraseUnused(AttentionInterface op) {
    llvm::SmallSetVector<Operation *, 8> unshards;
    for (Value operand : op->getOperands())
      if (auto unshard = operand.getDefiningOp<UnshardOp>())
        unshards.insert(unshard);
    op->erase();
    for (Operation *unshard : unshards)
      if (unshard->use_empty())
        unshard->erase();
  }

  /// By the strategy that it returns.
  static FailureOr<const Strategy *> lower(AttentionInterface op) {
    FailureOr<const Strategy *> strategy = findStrategy(op);
    if (failed(strategy))
      return failure();
    auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
    if (op.getMaskNamesAttr() || op.getScoreNamesAttr())
      return op->emitOpError("has named masks or scores; run "
                             "burst-expand-names first");
    if (backward && !op.getScore().empty() && backward.getGradient().empty())
      return op->emitOpError("has a score without its gradient; run "
                             "burst-derive-gradients first");
    if (!isPartitioned(op))
      return op->emitOpError("is not partitioned; run burst-partition first");
    FailureOr<Layout> layout = resolveLayout(op, *op.getSequence());
    if (failed(layout))
      return failure();
    if (op->use_empty())
      eraseUnused(op);
    else
      (*strategy)->build(op, *layout);
    return strategy;
  }
};
} // namespace
