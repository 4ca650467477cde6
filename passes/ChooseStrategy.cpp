//===- ChooseStrategy.cpp - decides what travels --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"
#include "passes/Strategies/Choice.h"

#include "mlir/IR/Remarks.h"

namespace burst {
#define GEN_PASS_DEF_CHOOSESTRATEGYPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {
struct ChooseStrategy : burst::impl::ChooseStrategyPassBase<ChooseStrategy> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<AttentionInterface> attentions = attentionsOf(function);
      FailureOr<SmallVector<Choice>> choices = weighStrategies(attentions);
      if (failed(choices))
        return signalPassFailure();
      for (auto [op, choice] : llvm::zip_equal(attentions, *choices))
        choose(op, choice);
    }
  }

  static void choose(AttentionInterface op, const Choice &choice) {
    for (auto [index, candidate] : llvm::enumerate(choice.candidates))
      report(op, choice, candidate, index == choice.chosen);
    for (const Refused &refused : choice.refused)
      report(op, refused);
    if (!choice.isPinned)
      op->setAttr("strategy", choice.candidates[*choice.chosen].pin);
  }

  static remark::RemarkOpts optionsOf(AttentionInterface op, StringRef name) {
    return remark::RemarkOpts::name(name)
        .category("strategy")
        .function(op->getParentOfType<func::FuncOp>().getName());
  }

  static void report(AttentionInterface op, const Refused &refused) {
    remark::analysis(op.getLoc(), optionsOf(op, "unsupported"))
        << remark::metric("strategy", refused.pin.getText())
        << remark::reason("{0}", refused.why);
  }

  static void report(AttentionInterface op, const Choice &choice,
                     const Candidate &candidate, bool isChosen) {
    StringRef name = isChosen          ? (choice.isPinned ? "pinned" : "chosen")
                     : !candidate.fits ? "ruled-out"
                                       : "alternative";
    remark::RemarkOpts options = optionsOf(op, name);
    auto remark = isChosen ? remark::passed(op.getLoc(), options)
                           : remark::analysis(op.getLoc(), options);
    auto microseconds = [](double seconds) {
      return llvm::formatv("{0:f1}", seconds * 1e6).str();
    };
    auto bytes = [](double count) {
      return llvm::formatv("{0:f0}", count).str();
    };
    const Estimate &cost = candidate.cost;
    remark << remark::metric("strategy", candidate.pin.getText())
           << remark::metric("bytes", bytes(cost.bytes))
           << remark::metric("peak_bytes", bytes(candidate.peakBytes))
           << remark::metric("compute_us", microseconds(cost.compute))
           << remark::metric("hidden_us", microseconds(cost.hidden))
           << remark::metric("exposed_us", microseconds(cost.exposed));
    for (int64_t axis : choice.axes)
      remark << remark::metric("bytes_axis_" + std::to_string(axis),
                               bytes(cost.bytesAlong(axis)));
    std::string reason = choice.assumptions;
    if (!candidate.fits)
      reason +=
          (reason.empty() ? "" : "; ") +
          llvm::formatv("a rank has {0} bytes", bytes(choice.memory)).str();
    if (!reason.empty())
      remark << remark::reason("{0}", reason);
  }
};
} // namespace
