//===- Explain.cpp - what a program would send, store and compute ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Explain/Explain.h"
#include "jit/Diagnostics.h"
#include "jit/Frontend.h"
#include "jit/Request.h"
#include "jit/RuntimeErrors.h"
#include "jit/Without.h"
#include "passes/Cost/Cost.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace burst;

static std::unique_ptr<Pass> clockPass(const jit::ExplainRequest &request,
                                       const jit::Without &without,
                                       llvm::raw_ostream &stream) {
  int64_t what = request.what, maxRanks = request.maxRanks;
  SimulatePassOptions options;
  options.drop = !without.dropping;
  options.overlap = !without.overlap;
  options.format = what == BURST_EXPLAIN_TIME_JSON      ? "json"
                   : what == BURST_EXPLAIN_TIMELINE     ? "trace"
                   : what == BURST_EXPLAIN_TIMELINE_SVG ? "svg"
                                                        : "text";
  if (what == BURST_EXPLAIN_COMPARISON)
    for (StringRef each : llvm::split(request.compare, ','))
      options.compare.push_back(each.str());
  if (maxRanks > 0)
    options.maxRanks = maxRanks;
  return createSimulatePass(options, stream);
}

static burst_error *checkCompared(const jit::ExplainRequest &request) {
  if (request.what != BURST_EXPLAIN_COMPARISON) {
    if (request.compare.empty())
      return nullptr;
    return jit::makeError(BURST_INVALID_ARGUMENT,
                          "burst_explain_config: compare: '" + request.compare +
                              "', wanted NULL: what is told is no comparison");
  }
  for (StringRef each : llvm::split(request.compare, ','))
    if (!llvm::is_contained({"strategies", "orders", "placements"}, each))
      return jit::makeError(BURST_INVALID_ARGUMENT,
                            ("burst_explain_config: compare: '" + each +
                             "', wanted strategies, orders or placements")
                                .str());
  return nullptr;
}

burst_error *jit::explain(const ExplainRequest &request, std::string &told) {
  if (burst_error *error = checkCompared(request))
    return error;
  std::string wrong;
  auto without =
      readWithout(request.without, "which is no part of a schedule", wrong);
  if (failed(without))
    return makeError(BURST_INVALID_ARGUMENT, "burst_explain_config: " + wrong);
  DialectRegistry dialects;
  registerDialects(dialects);
  MLIRContext context(dialects, MLIRContext::Threading::DISABLED);
  Diagnostics diagnostics(&context);
  auto module =
      parseSourceString<ModuleOp>(request.text, &context, request.name);
  auto fail = [&] {
    return makeError(BURST_INVALID_PROGRAM,
                     diagnostics.empty() ? "cannot be explained"
                                         : diagnostics.getText(),
                     diagnostics.getLocation());
  };
  if (!module)
    return fail();
  if (!hasPrograms(*module))
    return makeError(
        BURST_INVALID_PROGRAM,
        "no function with burst.attention, nor the program of a rank",
        request.name);
  if (!request.machine.empty() &&
      failed(describeMachine(*module, request.machine, "machine")))
    return fail();
  for (auto entry : module->getOps<func::FuncOp>())
    if (failed(without->check(entry)))
      return fail();
  llvm::raw_string_ostream stream(told);
  PassManager passes(&context);
  int64_t what = request.what, maxRanks = request.maxRanks;
  if (what >= BURST_EXPLAIN_TIME) {
    passes.addPass(clockPass(request, *without, stream));
  } else if (what == BURST_EXPLAIN_PLAN) {
    RingPipelineOptions options;
    without->applyTo(options);
    buildRingPipeline(passes, options);
    passes.addPass(createPlanPass(stream));
  } else {
    bool draws = what == BURST_EXPLAIN_SVG;
    ExplainPassOptions options;
    options.drop = !without->dropping;
    options.overlap = !without->overlap;
    passes.addPass(createExplainPass(
        options, maxRanks > 0 ? std::optional(maxRanks) : std::nullopt,
        draws ? llvm::nulls() : stream, draws ? &stream : nullptr));
  }
  return succeeded(passes.run(*module)) ? nullptr : fail();
}
