//===- Explain.cpp - shows schedules --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Explain/Explain.h"

#include "passes/Cost/Cost.h"
#include "passes/Explain/Candidates.h"
#include "passes/Explain/Table.h"
#include "support/Files.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace burst {
#define GEN_PASS_DEF_EXPLAINPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {
struct Explain : burst::impl::ExplainPassBase<Explain> {
  using Base::Base;
  Explain(const ExplainPassOptions &options, std::optional<int64_t> shown,
          raw_ostream &os, raw_ostream *drawing)
      : Base(options), os(&os), drawing(drawing) {
    if (shown)
      maxRanks = *shown;
  }

  raw_ostream *os = &llvm::outs();
  raw_ostream *drawing = nullptr; ///< beside the file of the option

  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager pm(ModuleOp::getOperationName());
    buildRingPipeline(pm, {});
    pm.getDependentDialects(registry);
  }

  /// How many ranks are shown where the option does not say it.
  int64_t shownOf(func::FuncOp program) const {
    return maxRanks.hasValue() || !svg.empty() || drawing
               ? maxRanks
               : Table::defaultRanks(program);
  }

  void runOnOperation() override {
    if (maxRanks < 1) {
      emitError(getOperation().getLoc(), "burst-explain shows at least 1 rank, "
                                         "got max-ranks=")
          << static_cast<int64_t>(maxRanks);
      return signalPassFailure();
    }
    OwningOpRef<ModuleOp> copy;
    ModuleOp module = getOperation();
    bool isLowered = true;
    module.walk([&](AttentionInterface) { isLowered = false; });
    if (isLowered && !(drop && overlap && machine.empty())) {
      emitError(module.getLoc(), "burst-explain with ")
          << (!drop      ? "drop=false"
              : !overlap ? "overlap=false"
                         : "a machine")
          << " lowers burst.attention, got programs of ranks, which have a "
             "schedule";
      return signalPassFailure();
    }
    if (!isLowered) {
      copy = module.clone();
      module = *copy;
      if (failed(describeMachineOf(module, machine)) || failed(lower(module)))
        return signalPassFailure();
    }
    std::vector<Drawing> drawings;
    for (auto program : module.getOps<func::FuncOp>())
      if (program->hasAttr(ring::gridAttr) && failed(print(program, drawings)))
        signalPassFailure();
    if (!svg.empty() && failed(write(drawings)))
      signalPassFailure();
    if (drawing)
      draw(drawings, *drawing);
  }

  LogicalResult print(func::FuncOp program, std::vector<Drawing> &drawings) {
    if (!isStatic(program))
      return emitError(program.getLoc(),
                       "has sizes or tables that are known at run time "
                       "only, so its schedule cannot be shown; make them "
                       "static, or let burst-run --explain show it");
    FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
    if (failed(globals))
      return failure();
    Table table(program, shownOf(program), *os);
    ScheduleProof proof;
    proof::Verdict verdict = proof::proveForAll(program, allowWaste);
    if (failed(proveSchedule(program, verdict, *globals,
                             {allowWaste,
                              /*wantsTraffic=*/true,
                              /*simulation=*/nullptr, table.listener()},
                             proof)))
      return failure();
    table.print(proof, "max-ranks");
    drawings.push_back(std::move(table.drawing));
    return success();
  }

  /// And prints what was weighed on the way.
  LogicalResult lower(ModuleOp module) {
    PassManager expand(&getContext()), schedule(&getContext());
    buildExpandPipeline(expand);
    RingPipelineOptions options;
    options.verify = false; // it is proved below
    options.drop = drop.getValue();
    options.overlap = overlap.getValue();
    buildSchedulePipeline(schedule, options);
    std::string candidates;
    llvm::raw_string_ostream stream(candidates);
    if (failed(expand.run(module)) || failed(printCandidates(module, stream)) ||
        failed(schedule.run(module)))
      return failure();
    *os << candidates;
    return success();
  }

  LogicalResult write(ArrayRef<Drawing> drawings) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    draw(drawings, stream);
    if (llvm::Error error = writeFile(text, svg))
      return emitError(getOperation().getLoc(), "burst-explain: ")
             << llvm::toString(std::move(error));
    return success();
  }
};
} // namespace

std::unique_ptr<Pass>
burst::createExplainPass(const ExplainPassOptions &options,
                         std::optional<int64_t> maxRanks, raw_ostream &os,
                         raw_ostream *drawing) {
  return std::make_unique<Explain>(options, maxRanks, os, drawing);
}
