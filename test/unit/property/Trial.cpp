//===- Trial.cpp - runs a problem on all its ranks ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/property/Trial.h"
#include "passes/Proof/Prove.h"

#include "passes/Passes.h"
#include "tools/burst-opt/Registry.h"
#include "tools/harness/Tensors.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

using namespace mlir;
using namespace burst;
using namespace burst::test;

std::unique_ptr<MLIRContext> test::makeContext() {
  DialectRegistry registry;
  registerDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
  return context;
}

bool Trial::fail(const std::string &message) {
  error += message + "\n";
  return false;
}

/// Keeps the diagnostics for the one who asks why.
bool Trial::guarded(llvm::function_ref<bool()> body) {
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    fail(diagnostic.str());
    return success();
  });
  return body();
}

bool Trial::parse() {
  return guarded([&] {
    source = parseSourceString<ModuleOp>(problem.text(ranks), &context);
    if (!source)
      return fail("cannot be parsed");
    function = source->lookupSymbol<func::FuncOp>("f");
    return true;
  });
}

bool Trial::lower() {
  return guarded([&] {
    lowered = cast<ModuleOp>(source.get()->clone());
    RingPipelineOptions options;
    options.drop = problem.drop;
    options.overlap = problem.overlap;
    options.fuse = problem.fuse;
    PassManager pm(&context);
    buildRingPipeline(pm, options);
    if (problem.fuseSeparately) {
      pm.addNestedPass<func::FuncOp>(createFuseEndsPass({/*separately=*/true}));
      pm.addPass(createVerifyRingPass({/*allowEmpty=*/!problem.drop}));
    }
    if (failed(pm.run(*lowered)))
      return fail("cannot be lowered");
    program = lowered->lookupSymbol<func::FuncOp>("f");
    simulation = Simulation::create(program);
    return simulation != nullptr || fail("cannot be simulated");
  });
}

bool Trial::bind() {
  return guarded([&] {
    auto found = makeGlobals(program, &problem.tensors, /*seed=*/0, {});
    if (failed(found))
      return fail("cannot be bound");
    globals = std::move(*found);
    return true;
  });
}

bool Trial::bindSource() {
  bool isBound = guarded([&] {
    auto found = makeGlobals(function, &problem.tensors, /*seed=*/0, {});
    if (failed(found))
      return fail("cannot be bound");
    globals = std::move(*found);
    return true;
  });
  return isBound && findAttentions();
}

bool Trial::giveForward(RandomProblem &problem) {
  return guarded([&] {
    auto found = makeGlobals(function, &problem.tensors, /*seed=*/0, {});
    if (failed(found) || failed(burst::giveForward(function, *found)))
      return fail("cannot be given the results of a forward pass");
    for (auto [index, value] : llvm::enumerate(*found))
      if (value.table)
        problem.tensors.at(argumentNameOf(function, index)) =
            toData(*value.table);
    return true;
  });
}

std::optional<std::vector<Argument>> Trial::maskCaptures(AttentionOp op) const {
  std::vector<Argument> captures;
  for (Value operand : op.getMaskCaptures()) {
    auto found = values.find(operand);
    if (found == values.end())
      return std::nullopt;
    captures.push_back(found->second);
  }
  return captures;
}

std::optional<std::vector<RegionEvaluator::Capture>>
Trial::captures(AttentionOp op, OperandRange operands) {
  auto found = captureValues(op, operands, values);
  if (failed(found))
    return std::nullopt;
  return *found;
}

static std::string text(const Counterexample &counterexample) {
  return "rank " + std::to_string(counterexample.rank) + ", hop " +
         std::to_string(counterexample.hop) + ": " + counterexample.message;
}

/// Inner rings, and the second direction, have channels behind the others.
bool Trial::hasSeveralRings() {
  return program
      .walk([&](ring::TransferOpInterface op) {
        return op.getChannel().getIndex() > ring::exchangeChannel
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

bool Trial::prove() {
  ProofOptions options;
  options.allowEmpty = !problem.drop;
  auto counterexample = burst::prove(*simulation, globals, options, proof);
  if (counterexample)
    return fail("refused: " + text(*counterexample));
  return ring::shardingOf(program).sequence.size < 3 || proveForAll();
}

/// What is right is proved for every number of ranks, but for stored scores,
/// rings in rings and those in both directions.
/// By the contract alone as many pairs are counted as by a simulation, but
/// where two passes are twins: it counts those once.
bool Trial::proveForAll() {
  proof::Verdict verdict =
      proof::proveForAll(program, {/*allowEmpty=*/!problem.drop});
  // Passes that ask the same of the same arguments count as one attention.
  int64_t passes = 0, told = 0;
  function.walk([&](Operation *op) {
    passes += isa<AttentionOp, AttentionBackwardOp>(op);
  });
  for (const proof::ProvedAttention &attention : verdict.attentions)
    told += attention.isForward + attention.isBackward;
  bool hasTwins = told < passes;
  if (!verdict.isProved())
    return isa_and_present<ring::ScoresOp>(verdict.reason->op) ||
           hasSeveralRings() ||
           fail("not proved for every number of ranks: " +
                verdict.reason->text);
  Proof counted;
  if (auto broken =
          proof::checkContract(program, verdict.contract, verdict.attentions,
                               globals, {!problem.drop}, counted))
    return fail("tables break the contract: " + *broken);
  return hasTwins ||
         (counted.computed == proof.computed &&
          counted.wasted == proof.wasted) ||
         fail("the contract counts other pairs than the simulation");
}

bool Trial::interpret(Semantics &semantics) {
  simulation->reset();
  auto shards = shardGlobals(*simulation, globals, ShardData::Copy);
  if (!simulation->run(semantics, std::move(shards)))
    return fail("stopped: " + text(simulation->getCounterexample()));
  traffic = simulation->getTraffic();
  for (unsigned index = 0; index < program.getNumResults(); ++index)
    results.push_back(gatherResult(*simulation, index));
  return true;
}

bool Trial::findAttentions() {
  values = valuesOf(function, globals);
  auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  auto resultOf = [&](Value value) -> TensorRef {
    auto found = llvm::find(ret.getOperands(), value);
    return results.empty() || !value || found == ret.operand_end()
               ? nullptr
               : results[std::distance(ret.operand_begin(), found)];
  };
  return guarded([&] {
    for (auto op : function.getOps<AttentionOp>()) {
      auto made = makeProblem(op, values);
      if (failed(made))
        return fail("has no problem for the oracle");
      attentions.push_back({op, std::move(*made),
                            values[op.getQuery()].table->element,
                            resultOf(op.getOut()), resultOf(op.getLse()),
                            resultOf(op.getMaxScores())});
    }
    for (auto op : function.getOps<AttentionBackwardOp>()) {
      auto made = makeProblem(op, values);
      if (failed(made))
        return fail("has no problem for the oracle");
      Backward &backward = backwards.emplace_back(Backward{
          op, std::move(*made), values[op.getQuery()].table->element, {}});
      for (Value result : op.getResults())
        backward.results.push_back(resultOf(result));
    }
    return true;
  });
}

uint64_t test::fromEnvironment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

uint64_t test::countFromEnvironment(const char *name, uint64_t otherwise,
                                    uint64_t inFull) {
  return fromEnvironment(name,
                         std::getenv("BURST_TEST_FULL") ? inFull : otherwise);
}

std::string test::leave(const RandomProblem &problem) {
  std::string path =
      ::testing::TempDir() + "burst-property-" + std::to_string(problem.seed);
  std::string text = problem.text(problem.ranks);
  std::ofstream(path + ".mlir") << text;
  std::string error;
  if (!data::write(path + ".safetensors", problem.tensors, {}, error))
    return error;
  return "burst-run " + path + ".mlir --in " + path + ".safetensors --check\n" +
         problem.replay() + "\n" + text;
}

void test::expectPlanned(const Trial &trial) {
  ASSERT_EQ(trial.traffic.size(), trial.proof.traffic.size());
  for (size_t rank = 0; rank < trial.traffic.size(); ++rank) {
    const Traffic &moved = trial.traffic[rank];
    const Traffic &planned = trial.proof.traffic[rank];
    EXPECT_EQ(moved.sentBytes, planned.sentBytes) << "rank " << rank;
    EXPECT_EQ(moved.sentByAxis, planned.sentByAxis) << "rank " << rank;
    EXPECT_EQ(moved.messages, planned.messages) << "rank " << rank;
    EXPECT_EQ(moved.hops, planned.hops) << "rank " << rank;
    EXPECT_EQ(moved.peakSlices, planned.peakSlices) << "rank " << rank;
    EXPECT_EQ(moved.peakBytes, planned.peakBytes) << "rank " << rank;
  }
}

TensorRef PoisonChecker::deliver(const Transfer &from, const Transfer &to,
                                 size_t index) {
  TensorRef arrived = Interpreter::deliver(from, to, index);
  ring::TransferOpInterface op = to.start;
  const Tensor &received = *arrived;
  int64_t dim = op.getDims()[index], outer = 1, inner = 1;
  for (int64_t d = 0; d < int64_t(received.shape.size()); ++d)
    (d < dim ? outer : inner) *= d == dim ? 1 : received.shape[d];
  int64_t x = 0;
  auto segments = to.layout.segments(to.receivedOwner, to.extent);
  for (auto [s, segment] : llvm::enumerate(segments))
    for (int64_t end = x + segment.count; x < end; ++x) {
      if (to.receiveMask >> s & 1)
        continue;
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t e = 0; e < inner; ++e) {
          ++poisoned;
          isSound &= std::isnan(
              received.floats[(o * received.shape[dim] + x) * inner + e]);
        }
    }
  return arrived;
}
