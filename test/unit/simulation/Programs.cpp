//===- Programs.cpp - programs that the tests of the machine run ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Programs.h"

#include "passes/Passes.h"
#include "passes/Proof/StepMeaning.h"
#include "passes/Simulation/Interpret/Interpreter.h"
#include "passes/Simulation/SimulatedOp.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;

namespace burst::test {

std::string Problem::text() const {
  auto tensor = [&](int64_t positions, int64_t heads, int64_t dim) {
    return llvm::formatv("tensor<{0}x{1}x{2}x{3}x{4}>", batch, positions, heads,
                         dim, element)
        .str();
  };
  std::string q = tensor(queries, heads, dim), k = tensor(keys, keyHeads, dim),
              v = tensor(keys, keyHeads, valueDim),
              o = tensor(queries, heads, valueDim);
  std::string lse = llvm::formatv("tensor<{0}x{1}x{2}x{3}>", batch, heads,
                                  queries, element == "f64" ? "f64" : "f32");
  std::string grid = std::to_string(parts), exchange;
  if (innerRanks != 0)
    grid = llvm::formatv("{0}x{1}", parts / innerRanks, innerRanks);
  if (members > 1) {
    grid += "x" + std::to_string(members);
    exchange = llvm::formatv("ulysses on [{0}] in {1} chunks, ",
                             innerRanks == 0 ? 1 : 2, chunks);
  }
  std::vector<std::string> gradients, types;
  for (char name : wanted) {
    gradients.push_back(std::string("%d") + name);
    types.push_back(name == 'q' ? q : name == 'k' ? k : v);
  }
  std::string given = llvm::join(types, ", ");
  if (!backward.empty())
    return llvm::formatv(R"(
shard.grid @cp(shape = {0})
func.func @f(%q: {1}, %k: {2}, %v: {3}, %o: {4}, %lse: {5}, %do: {4})
    -> ({10}) {{
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do {6} {7}
      sequence <@cp, {8}> strategy <{9}>
      : ({1}, {2}, {3}, {4}, {5}, {4}) -> ({1}, {2}, {3})
  return {11} : {10}
})",
                         grid, q, k, v, o, lse, mask.empty() ? "" : "mask",
                         mask, order, exchange + backward, given,
                         llvm::join(gradients, ", "));
  return llvm::formatv(R"(
shard.grid @cp(shape = {0})
func.func @f(%q: {1}, %k: {2}, %v: {3}) -> ({4}, {5}) {{
  %o, %lse{10} = burst.attention %q, %k, %v {6} {7} sequence <@cp, {8}>
      strategy <{9}> : ({1}, {2}, {3}) -> ({4}, {5})
  return %o, %lse{10} : {4}, {5}
})",
                       grid, q, k, v, o,
                       givesMaxScores ? lse + ", " + lse : lse,
                       mask.empty() ? "" : "mask", mask, order,
                       exchange + forward, givesMaxScores ? ", %max" : "");
}

std::string nameOfProblem(const testing::TestParamInfo<Problem> &info) {
  std::string name = info.param.describe();
  for (char &c : name)
    c = isalnum(c) ? c : '_';
  return name;
}

std::string Problem::describe() const {
  return llvm::formatv(
      "{0} {1} over {2}{10}{9}, {3} x {4}{5}{6}{7}{8}{11}{12}{13}", order,
      mask.empty() ? "full" : mask, parts, queries, keys, drop ? ", drop" : "",
      overlap ? ", overlap" : "", backward.empty() ? ", " : ", backward ",
      backward.empty() ? forward : backward,
      members > 1 ? " x " + std::to_string(members) : "",
      innerRanks == 0 ? "" : " in rings of " + std::to_string(innerRanks),
      wanted == "qkv" ? "" : " of " + wanted,
      givesMaxScores ? ", largest scores" : "",
      chunks > 1 ? ", in " + std::to_string(chunks) + " chunks" : "");
}

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry.insert<BurstDialect, ring::RingDialect, arith::ArithDialect,
                  func::FuncDialect, math::MathDialect, scf::SCFDialect,
                  shard::ShardDialect, tensor::TensorDialect>();
  registerRingSimulation(registry);
  registerRingProof(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

OwningOpRef<ModuleOp> parseModule(MLIRContext &context, StringRef text) {
  auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module)
    llvm::report_fatal_error(llvm::Twine("not a program: ") + text);
  return module;
}

OwningOpRef<ModuleOp>
lower(MLIRContext &context, const Problem &problem,
      std::unique_ptr<PassInstrumentation> instrumentation) {
  OwningOpRef<ModuleOp> module = parseModule(context, problem.text());
  RingPipelineOptions options;
  options.drop = problem.drop;
  options.overlap = problem.overlap;
  options.verify = false; // That is what tests do.
  PassManager passes(&context);
  if (instrumentation)
    passes.addInstrumentation(std::move(instrumentation));
  buildRingPipeline(passes, options);
  if (failed(passes.run(*module)))
    llvm::report_fatal_error(llvm::Twine("not lowered: ") + problem.text());
  return module;
}

func::FuncOp getProgram(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(ring::gridAttr))
      return function;
  llvm::report_fatal_error("a module without a program");
}

std::optional<Counterexample>
proveModule(ModuleOp module, const ProofOptions &options, Proof *proof) {
  func::FuncOp program = getProgram(module);
  std::unique_ptr<Simulation> simulation = Simulation::create(program);
  FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
  if (!simulation || failed(globals))
    return Counterexample{-1, -1, nullptr, "cannot be simulated"};
  Proof found;
  std::optional<Counterexample> counterexample =
      prove(*simulation, *globals, options, found);
  Proof forAll;
  // The text for more ranks is the same, see FamilyTest.cpp.
  if (simulation->numRanks() <= 5 && isProvedForAll(module, options, &forAll)) {
    // Nothing that a simulation refuses may be proved.
    EXPECT_FALSE(counterexample) << "proved for every number of ranks";
    EXPECT_EQ(forAll.computed, found.computed);
    EXPECT_EQ(forAll.wasted, found.wasted);
    // A simulation does not count those of ranks without queries.
    EXPECT_GE(forAll.dropped, found.dropped);
  }
  if (proof)
    *proof = std::move(found);
  return counterexample;
}

bool isProvedForAll(ModuleOp module, const ProofOptions &options,
                    Proof *proof) {
  func::FuncOp program = getProgram(module);
  FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
  proof::Verdict verdict = proof::proveForAll(program, options);
  if (!verdict.isProved() || failed(globals))
    return false;
  Proof counts;
  return !proof::checkContract(program, verdict.contract, verdict.attentions,
                               *globals, options, proof ? *proof : counts);
}

std::vector<Argument> randomGlobals(func::FuncOp program, unsigned seed) {
  FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
  EXPECT_TRUE(succeeded(globals));
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (Argument &argument : *globals)
    if (argument.table) {
      argument.table->floats.resize(argument.table->size());
      for (double &value : argument.table->floats)
        value = normal(random);
    }
  return *globals;
}

std::vector<TensorRef> interpret(ModuleOp module,
                                 const std::vector<Argument> &globals) {
  func::FuncOp program = getProgram(module);
  std::unique_ptr<Simulation> simulation = Simulation::create(program);
  EXPECT_TRUE(simulation != nullptr);
  if (!simulation)
    return {};
  simulation->reset();
  Interpreter interpreter;
  if (!simulation->run(interpreter,
                       shardGlobals(*simulation, globals, ShardData::Copy))) {
    ADD_FAILURE() << simulation->getCounterexample().message;
    return {};
  }
  std::vector<TensorRef> results;
  for (unsigned index = 0; index < program.getNumResults(); ++index)
    results.push_back(gatherResult(*simulation, index));
  return results;
}

bool isClose(const Tensor &a, const Tensor &b, double tolerance) {
  if (a.shape != b.shape || a.floats.size() != b.floats.size())
    return false;
  return llvm::all_of(llvm::zip(a.floats, b.floats), [&](auto pair) {
    auto [x, y] = pair;
    bool bothNaN = std::isnan(x) && std::isnan(y);
    return x == y || bothNaN ||
           std::abs(x - y) <= tolerance * (1 + std::abs(x));
  });
}

} // namespace burst::test
