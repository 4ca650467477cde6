//===- Plan.cpp - what each rank sends and holds --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Plan.h"

#include "passes/Explain/Explain.h"
#include "passes/Proof/Prove.h"

namespace burst {
#define GEN_PASS_DEF_PLANPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

std::string burst::argumentName(func::FuncOp program, unsigned index) {
  if (auto name = program.getArgAttrOfType<StringAttr>(index, nameAttr))
    return name.str();
  return "arg" + std::to_string(index);
}

std::string burst::tensorName(func::FuncOp program, int number) {
  if (number >= 0)
    return argumentName(program, number);
  if (number == -1)
    return "other";
  auto [argument, what] = whatIsMade(number);
  switch (what) {
  case Made::Gradient:
    return "d" + argumentName(program, argument);
  case Made::Delta:
    return "delta";
  case Made::Out:
    return "out";
  case Made::Lse:
    return "lse";
  case Made::MaxScores:
    return "max_scores";
  case Made::O:
    return "o";
  case Made::M:
    return "m";
  case Made::L:
    return "l";
  }
  return "";
}

llvm::json::Object burst::toJson(func::FuncOp program,
                                 const std::vector<Traffic> &traffic) {
  llvm::json::Array ranks;
  bool hasSeveralAxes = !axesOfSeveral(program).empty();
  for (auto [rank, found] : llvm::enumerate(traffic)) {
    llvm::json::Object bytes;
    for (auto [argument, sent] : found.sentBytes)
      bytes[tensorName(program, argument)] = sent;
    llvm::json::Object ofRank{
        {"rank", static_cast<int64_t>(rank)},
        {"hops", found.hops},
        {"messages", found.messages},
        {"bytes_sent", found.totalBytes()},
        {"bytes_sent_by_tensor", std::move(bytes)},
        {"peak_slices", found.peakSlices},
        {"peak_bytes", found.peakBytes},
    };
    if (hasSeveralAxes)
      ofRank["bytes_sent_by_axis"] = llvm::json::Array(found.sentByAxis);
    ranks.push_back(std::move(ofRank));
  }
  return llvm::json::Object{{"program", program.getName()},
                            {"ranks", static_cast<int64_t>(traffic.size())},
                            {"per_rank", std::move(ranks)}};
}

namespace {
struct PlanPass : burst::impl::PlanPassBase<PlanPass> {
  using Base::Base;
  explicit PlanPass(raw_ostream &os) : os(&os) {}

  raw_ostream *os = &llvm::outs();

  void runOnOperation() override {
    bool isFound = false;
    for (auto program : getOperation().getOps<func::FuncOp>())
      if (program->hasAttr(ring::gridAttr)) {
        isFound = true;
        if (failed(print(program)))
          signalPassFailure();
      }
    if (!isFound) {
      emitError(getOperation().getLoc(),
                "has no program of a rank to plan; run burst-to-ring first");
      signalPassFailure();
    }
  }

  LogicalResult print(func::FuncOp program) {
    for (unsigned index = 0; index < program.getNumArguments(); ++index)
      if (!program.getArgAttr(index, ring::extentAttr) &&
          steersSchedule(program, index))
        return emitError(program.getLoc(), "argument ")
               << index << " is captured by a mask, and its value is known at "
               << "run time only: burst-run --json shows the plan for given "
               << "values";
    // What meets what is known of a program that is proved.
    bool isProved = proof::proveForAll(program, allowWaste).isProved();
    std::unique_ptr<Simulation> simulation = Simulation::create(
        program, isProved ? maxPlannedRanks : maxSimulatedRanks);
    if (!simulation)
      return failure();
    Sizes sizes{batch.hasValue() ? std::optional<int64_t>(batch) : std::nullopt,
                SmallVector<int64_t>(extents.begin(), extents.end())};
    FailureOr<std::vector<Argument>> globals = describeGlobals(program, sizes);
    if (failed(globals))
      return failure();
    std::vector<Traffic> traffic;
    if (auto counterexample = plan(*simulation, *globals, traffic, isProved)) {
      report(program, *counterexample);
      return failure();
    }
    *os << llvm::formatv("{0:2}\n",
                         llvm::json::Value(toJson(program, traffic)));
    return success();
  }
};
} // namespace

std::unique_ptr<Pass> burst::createPlanPass(raw_ostream &os) {
  return std::make_unique<::PlanPass>(os);
}
