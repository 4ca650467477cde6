//===- Explain.cpp - what a program would send, store and compute ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Explain/Explain.h"
#include "jit/Diagnostics.h"
#include "jit/Frontend.h"
#include "jit/Request.h"
#include "jit/RuntimeErrors.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace burst;

burst_error *jit::explain(const std::string &text, const std::string &name,
                          int64_t what, int64_t maxRanks, std::string &told) {
  DialectRegistry dialects;
  registerDialects(dialects);
  MLIRContext context(dialects, MLIRContext::Threading::DISABLED);
  Diagnostics diagnostics(&context);
  auto module = parseSourceString<ModuleOp>(text, &context, name);
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
        "no function with burst.attention, nor the program of a rank", name);
  llvm::raw_string_ostream stream(told);
  PassManager passes(&context);
  if (what == BURST_EXPLAIN_PLAN) {
    buildRingPipeline(passes, {});
    passes.addPass(createPlanPass(stream));
  } else {
    bool draws = what == BURST_EXPLAIN_SVG;
    passes.addPass(createExplainPass(
        maxRanks > 0 ? std::optional(maxRanks) : std::nullopt,
        draws ? llvm::nulls() : stream, draws ? &stream : nullptr));
  }
  return succeeded(passes.run(*module)) ? nullptr : fail();
}
