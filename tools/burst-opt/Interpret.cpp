//===- Interpret.cpp - the pass ring-interpret ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/burst-opt/Interpret.h"

#include "passes/Passes.h"
#include "passes/Simulation/Interpret/Interpreter.h"
#include "passes/Simulation/Prove/Audit.h"
#include "tools/harness/Tensors.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace burst;

/// What stays the same, up to rounding, whatever the order, the strategy and
/// the number of ranks.
static void printDigest(StringRef name, const Tensor &tensor) {
  double sum = 0, squares = 0, largest = 0;
  int64_t infinities = 0, nans = 0;
  for (double value : tensor.floats) {
    if (std::isnan(value)) {
      ++nans;
    } else if (std::isinf(value)) {
      ++infinities;
    } else {
      sum += value;
      squares += value * value;
      largest = std::max(largest, std::abs(value));
    }
  }
  llvm::outs() << "  " << name << ": ";
  llvm::interleave(
      tensor.shape, llvm::outs(), [](int64_t n) { llvm::outs() << n; }, "x");
  llvm::outs() << llvm::formatv("x{0}, sum {1:f4}, norm {2:f4}, largest {3:f4}",
                                tensor.element, sum, std::sqrt(squares),
                                largest);
  if (infinities != 0)
    llvm::outs() << ", " << infinities << " infinite";
  if (nans != 0)
    llvm::outs() << ", " << nans << " NaN";
  llvm::outs() << "\n";
}

namespace {
struct InterpretPass : PassWrapper<InterpretPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InterpretPass)

  InterpretPass() = default;
  InterpretPass(const InterpretPass &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "ring-interpret"; }
  StringRef getDescription() const override {
    return "Run every rank's program in fp64 on seeded tensors and print a "
           "digest of its results";
  }

  Option<uint64_t> seed{*this, "seed", llvm::cl::desc("Seed of the tensors."),
                        llvm::cl::init(0)};
  ListOption<int64_t> extents{
      *this, "extents",
      llvm::cl::desc("Values of the dynamic sizes, in the order of the "
                     "program's ring.extent arguments.")};
  Option<int64_t> batch{*this, "batch",
                        llvm::cl::desc("The batch size, where it is dynamic."),
                        llvm::cl::init(1)};

  void runOnOperation() override {
    bool isFound = false;
    for (auto program : getOperation().getOps<func::FuncOp>())
      if (program->hasAttr(ring::gridAttr)) {
        isFound = true;
        if (failed(interpret(program)))
          signalPassFailure();
      }
    if (!isFound) {
      emitError(getOperation().getLoc(),
                "has no program of a rank to run; run burst-to-ring first");
      signalPassFailure();
    }
  }

  LogicalResult interpret(func::FuncOp program) {
    std::unique_ptr<Simulation> simulation = Simulation::create(program);
    if (!simulation)
      return failure();
    Sizes sizes{batch.hasValue() ? std::optional<int64_t>(batch) : std::nullopt,
                SmallVector<int64_t>(extents.begin(), extents.end())};
    FailureOr<std::vector<Argument>> globals =
        makeGlobals(program, /*archive=*/nullptr, seed, sizes);
    if (failed(globals))
      return failure();
    Interpreter interpreter;
    simulation->reset();
    auto shards = shardGlobals(*simulation, *globals, ShardData::Copy);
    if (!simulation->run(interpreter, std::move(shards))) {
      report(program, simulation->getCounterexample());
      return failure();
    }
    llvm::outs() << "@" << program.getName() << " on " << simulation->numRanks()
                 << " ranks\n";
    for (unsigned index = 0; index < program.getNumResults(); ++index)
      if (TensorRef result = gatherResult(*simulation, index))
        printDigest(resultNameOf(program, index), *result);
    return success();
  }
};
} // namespace

void burst::registerInterpretPass() { PassRegistration<InterpretPass>(); }
