//===- CompiledTest.cpp - random problems, compiled -----------------------===//
//
// The problems of PropertyTest, on their ranks, as machine code. Tiles and
// vectors are drawn, too: problems are small, and tiles are not.
//
// BURST_SEED and BURST_COMPILED set the seed and the number of problems of each
// case: problem n of case c is BURST_SEED=seed+1000*c+n BURST_COMPILED=1, case
// 0.
//
//===----------------------------------------------------------------------===//
#include "tools/harness/Compiled.h"
#include "test/unit/property/Captures.h"
#include "test/unit/property/Dice.h"
#include "test/unit/property/Trial.h"
#include "tools/data/Random.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace mlir;
using namespace burst;
using namespace burst::test;

/// One seed for all cases of a process.
static uint64_t firstSeed() {
  static const uint64_t seed =
      fromEnvironment("BURST_SEED", std::random_device()());
  return seed;
}

/// This machine, with other vectors and small tiles.
static cpu::Target drawTarget(Dice &dice) {
  cpu::Target target = cpu::Target::host();
  if (dice.chance(25))
    return target;
  while (target.vectorBits > 128 && dice.chance(40))
    target.vectorBits /= 2;
  target.panelBytes = target.vectorBits / 8 * dice.within(1, 3);
  target.fma &= dice.chance(80);
  target.microRows = dice.within(1, 8);
  target.rows = dice.pick({1, 2, 5, 8, 12, 96});
  target.columns = dice.pick({1, 8, 16, 24, 64});
  target.pairs = dice.chance(50);
  target.dot &= target.vectorBits >= 256 && dice.chance(50);
  return target;
}

namespace {

/// A compiled problem.
class CompiledTrial {
public:
  CompiledTrial(MLIRContext &context, const RandomProblem &problem)
      : trial(context, problem, problem.ranks) {}

  bool compile(const cpu::Target &target) {
    this->target = target;
    if (!trial.parse() || !trial.lower())
      return false;
    ScopedDiagnosticHandler handler(trial.program.getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      trial.error += diagnostic.str() + "\n";
                                      return success();
                                    });
    auto found = burst::compile(trial.program, target);
    if (failed(found))
      return false;
    program = std::move(*found);
    return true;
  }

  /// Binds the problem's tensors, which may have changed, and runs.
  bool run(const CompiledRun &options) {
    trial.attentions.clear();
    trial.backwards.clear();
    trial.results.clear();
    trial.proof = Proof();
    if (!trial.bind() || !trial.prove())
      return false;
    // The proof has run the program without data: it knows the shapes.
    for (unsigned i = 0; i < trial.program.getNumResults(); ++i)
      trial.results.push_back(gatherResult(*trial.simulation, i));
    auto error = burst::run(program.get(), trial.globals, trial.results,
                            options, counters);
    if (error)
      trial.error += *error;
    return !error && trial.findAttentions();
  }

  void check() {
    for (const Trial::Attention &attention : trial.attentions)
      checkAttention(attention);
    for (const Trial::Backward &backward : trial.backwards)
      checkBackward(backward);
    ASSERT_EQ(counters.size(), trial.proof.traffic.size());
    for (size_t rank = 0; rank < counters.size(); ++rank) {
      const Traffic &planned = trial.proof.traffic[rank];
      const burst_counters &counted = counters[rank];
      EXPECT_EQ(counted.bytes_sent, planned.totalBytes()) << "rank " << rank;
      EXPECT_EQ(counted.tensor_bytes + counted.peak_bytes[BURST_MEMORY_STATE] +
                    counted.peak_bytes[BURST_MEMORY_SLICE],
                planned.peakBytes)
          << "rank " << rank;
      EXPECT_EQ(counted.peak_bytes[BURST_MEMORY_PACKING],
                planPacking(trial.program, target, static_cast<int64_t>(rank),
                            trial.globals))
          << "rank " << rank;
    }
  }

  Trial trial;
  std::vector<burst_counters> counters;
  double worstRatio = 0; ///< of an error and its bound

private:
  void checkAttention(const Trial::Attention &attention) {
    oracle::Result expected = oracle::evaluate(
        attention.problem, oracle::allRows(attention.problem.sizes),
        {.threads = 1});
    std::vector<double> nothing(attention.out ? 0
                                              : expected.sizes.outElements());
    std::span<const double> lse;
    if (attention.lse)
      lse = attention.lse->floats;
    oracle::Verdict verdict = oracle::compare(
        expected, attention.out ? attention.out->floats : nothing, lse,
        toleranceOf(attention.element));
    if (!attention.out)
      verdict.out = {};
    EXPECT_TRUE(verdict.pass()) << verdict.text();
    worstRatio =
        std::max({worstRatio, verdict.out.worstRatio, verdict.lse.worstRatio});
  }

  void checkBackward(const Trial::Backward &backward) {
    const oracle::Sizes &sizes = backward.problem.forward.sizes;
    oracle::Gradients expected = oracle::evaluate(
        backward.problem, oracle::allRows(sizes),
        oracle::allRows(oracle::ofKeys(sizes)), {.threads = 1});
    for (auto [index, gradient] : llvm::enumerate(expected.all())) {
      const TensorRef &found = backward.results[index];
      if (!found)
        continue;
      oracle::Deviation deviation = oracle::compare(
          *gradient, found->floats, toleranceOf(backward.element));
      EXPECT_EQ(deviation.failed, 0)
          << oracle::describe("gradient " + std::to_string(index), deviation);
      worstRatio = std::max(worstRatio, deviation.worstRatio);
    }
  }

  cpu::Target target;
  ProgramRef program;
};

class CompiledTest : public ::testing::TestWithParam<int> {
protected:
  /// Compiles problems that are drawn, and compares them with the oracle.
  void checkRandom(llvm::function_ref<RandomProblem(uint64_t seed)> draw);

  std::unique_ptr<MLIRContext> context = makeContext();
};

} // namespace

/// The bits of all results.
static std::vector<std::vector<double>> valuesOf(const Trial &trial) {
  std::vector<std::vector<double>> values;
  values.reserve(trial.results.size());
  for (const TensorRef &result : trial.results)
    values.push_back(result->floats);
  return values;
}

void CompiledTest::checkRandom(
    llvm::function_ref<RandomProblem(uint64_t seed)> draw) {
  uint64_t count = fromEnvironment("BURST_COMPILED", 5), checked = 0;
  uint64_t first = firstSeed() + 1000 * GetParam();
  std::printf("BURST_SEED=%ju\n", uintmax_t(first));
  RecordProperty("seed", std::to_string(first));
  double worst = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    RandomProblem problem = draw(seed);
    Dice dice(~seed);
    cpu::Target target = drawTarget(dice);
    Trial made(*context, problem, 1);
    ASSERT_TRUE(made.parse() && made.giveForward(problem)) << made.error;
    CompiledTrial trial(*context, problem);
    CompiledRun options;
    options.threads = dice.within(1, 3);
    options.checked = true;
    if (trial.compile(target) && trial.run(options))
      trial.check();
    else
      ADD_FAILURE() << trial.trial.error;
    // Again, with other threads, and transfers as they complete.
    std::vector<std::vector<double>> first = valuesOf(trial.trial);
    options.threads = 4 - options.threads;
    options.checked = false;
    if (!HasFailure()) {
      EXPECT_TRUE(trial.run(options)) << trial.trial.error;
      EXPECT_EQ(valuesOf(trial.trial), first) << "another time";
    }
    if (HasFailure())
      FAIL() << "BURST_SEED=" << seed << " BURST_COMPILED=1, panels of "
             << target.panelBytes << " bytes, " << target.str() << "\n"
             << problem.text(problem.ranks);
    worst = std::max(worst, trial.worstRatio);
    ++checked;
  }
  std::printf("%ju problems, worst error/bound %.3f\n", uintmax_t(checked),
              worst);
}

TEST_P(CompiledTest, AgreesWithTheOracle) { checkRandom(drawProblem); }

TEST_P(CompiledTest, DifferentiatesAsTheOracle) {
  checkRandom([](uint64_t seed) {
    return drawBackward(seed, seed % 2 ? Scores::Some : Scores::None);
  });
}

INSTANTIATE_TEST_SUITE_P(Problems, CompiledTest, ::testing::Range(0, 24));

//===----------------------------------------------------------------------===//
// One program
//===----------------------------------------------------------------------===//

namespace {

/// A program whose sizes are open: attention under a window that is captured.
struct OpenProblem : RandomProblem {
  OpenProblem(const std::string &element, const std::string &order,
              int64_t ranks, int64_t queryDim = 6, int64_t valueDim = 5)
      : queryDim(queryDim), valueDim(valueDim) {
    this->element = element;
    this->order = order;
    this->ranks = ranks;
    drop = overlap = true;
    body = fmt::format(
        "!q = tensor<?x?x4x{3}x{0}>\n!k = tensor<?x?x2x{3}x{0}>\n"
        "!v = tensor<?x?x2x{4}x{0}>\n!o = tensor<?x?x4x{4}x{0}>\n"
        "!l = tensor<?x4x?x{1}>\n"
        "func.func @f(%q: !q {{burst.name = \"q\"}}, %k: !k {{burst.name = "
        "\"k\"}}, %v: !v {{burst.name = \"v\"}}, %left: i32 {{burst.name = "
        "\"left\"}}) -> (!o, !l) {{\n"
        "  %o, %l = burst.attention %q, %k, %v\n"
        "      mask(%b, %h, %i, %j, %sq, %sk, %w = %left : i32) {{\n"
        "        %n = arith.index_cast %w : i32 to index\n"
        "        %reach = arith.subi %i, %n : index\n"
        "        %near = arith.cmpi sge, %j, %reach : index\n"
        "        %past = arith.cmpi sle, %j, %i : index\n"
        "        %keep = arith.andi %near, %past : i1\n"
        "        burst.yield %keep : i1\n"
        "      }}\n"
        "      sequence <@g, {2}> : (!q, !k, !v) -> (!o, !l)\n"
        "  return %o, %l : !o, !l\n}}\n",
        element, element == "f64" ? "f64" : "f32", order, queryDim, valueDim);
  }

  void resize(int64_t batch, int64_t queries, int64_t keys, int64_t left) {
    tensors.clear();
    sizes = {batch, queries, keys, 4, 2, queryDim, valueDim};
    auto input = [&](const char *name, std::vector<int64_t> shape) {
      size_t count = 1;
      for (int64_t size : shape)
        count *= size;
      tensors.emplace(name, data::Tensor::of(dtypeOfElement(element), shape,
                                             data::normal(7, name, count)));
    };
    input("q", {batch, queries, 4, queryDim});
    input("k", {batch, keys, 2, queryDim});
    input("v", {batch, keys, 2, valueDim});
    data::Tensor window = data::Tensor::zeros(data::DType::I32, {});
    auto narrow = static_cast<int32_t>(left);
    std::memcpy(window.element(0), &narrow, sizeof(narrow));
    tensors.emplace("left", window);
  }

  int64_t queryDim, valueDim;
};

} // namespace

TEST(CompiledProgramTest, ServesAllSizes) {
  auto context = makeContext();
  Dice dice(fromEnvironment("BURST_SEED", 1));
  for (const char *order : {"zigzag", "striped 3"}) {
    OpenProblem problem("f32", order, 3);
    CompiledTrial trial(*context, problem);
    cpu::Target target = cpu::Target::host();
    target.rows = 16;
    target.columns = 32;
    ASSERT_TRUE(trial.compile(target)) << trial.trial.error;
    for (int64_t n = 0; n < 40; ++n) {
      int64_t queries =
          dice.within(0, 4) == 0 ? dice.within(0, 3) : dice.within(1, 260);
      int64_t keys = dice.chance(60) ? queries : dice.within(0, 260);
      problem.resize(dice.within(1, 2), queries, keys, dice.within(0, 300));
      CompiledRun options;
      options.checked = true;
      ASSERT_TRUE(trial.run(options))
          << queries << " x " << keys << ": " << trial.trial.error;
      trial.check();
      if (HasFailure())
        FAIL() << queries << " queries, " << keys << " keys, " << order;
    }
  }
}

/// Elements, and whether those of bf16 are multiplied in pairs.
static const std::pair<const char *, bool> kinds[] = {
    {"f32", false}, {"bf16", false}, {"bf16", true}};

TEST(CompiledProgramTest, GivesTheSameBitsHoweverItIsRun) {
  auto context = makeContext();
  for (const auto &[element, pairs] : kinds) {
    OpenProblem problem(element, "zigzag", 5);
    problem.resize(2, 223, 223, 150);
    CompiledTrial trial(*context, problem);
    cpu::Target target = cpu::Target::host();
    target.rows = 8;
    target.columns = 32;
    target.pairs = pairs;
    ASSERT_TRUE(trial.compile(target)) << trial.trial.error;
    std::vector<std::vector<double>> first;
    // Checked transfers complete as late as is legal.
    for (int64_t threads : {1, 2, 5})
      for (bool checked : {false, true})
        for (int64_t again = 0; again < 2; ++again) {
          CompiledRun options;
          options.threads = threads;
          options.checked = checked;
          ASSERT_TRUE(trial.run(options)) << trial.trial.error;
          std::vector<std::vector<double>> found = valuesOf(trial.trial);
          if (first.empty())
            first = found;
          EXPECT_EQ(found, first) << threads << " threads";
        }
    trial.check();
  }
}

/// The shapes that processors with instructions for pairs take, where there is
/// none.
TEST(CompiledProgramTest, MultipliesPairsOnAnyProcessor) {
  auto context = makeContext();
  // An odd depth, and values that begin a fourth panel.
  OpenProblem problem("bf16", "zigzag", 2, 67, 100);
  cpu::Target target = cpu::Target::host();
  target.vectorBits = 512;
  target.panelBytes = 128;
  target.microRows = 14;
  target.rows = 112;
  target.columns = 128;
  target.pairs = true;
  target.dot = false;
  CompiledTrial trial(*context, problem);
  ASSERT_TRUE(trial.compile(target)) << trial.trial.error;
  for (int64_t length : {131, 511, 900}) {
    problem.resize(1, length, length, 350);
    CompiledRun options;
    options.checked = true;
    ASSERT_TRUE(trial.run(options)) << trial.trial.error;
    trial.check();
  }
}

TEST(CompiledProgramTest, CarriesWhatIsNoNumberWhereItIsSeen) {
  auto context = makeContext();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto &[element, pairs] : kinds) {
    OpenProblem problem(element, "zigzag", 3);
    CompiledTrial trial(*context, problem);
    cpu::Target target = cpu::Target::host();
    target.rows = 16;
    target.columns = 32;
    target.pairs = pairs;
    ASSERT_TRUE(trial.compile(target)) << trial.trial.error;
    for (const char *name : {"q", "k", "v"})
      for (double value : {std::nan(""), infinity, -infinity, 0.0})
        for (int64_t at : {3, 200, 600}) {
          SCOPED_TRACE(fmt::format("{}{} {}[{}] = {}", element,
                                   pairs ? " in pairs" : "", name, at, value));
          problem.resize(1, 70, 70, 40);
          data::Tensor &tensor = problem.tensors.at(name);
          tensor.set(at, value);
          if (value == 0.0) // a NaN with all bits set
            std::memset(tensor.element(at), 0xff,
                        element[0] == 'f' ? sizeof(float) : 2);
          ASSERT_TRUE(trial.run({})) << trial.trial.error;
          std::vector<TensorRef> compiled;
          std::swap(compiled, trial.trial.results);
          Interpreter interpreter;
          ASSERT_TRUE(trial.trial.interpret(interpreter));
          for (size_t i = 0; i < compiled.size(); ++i) {
            const auto &found = compiled[i]->floats;
            const auto &expected = trial.trial.results[i]->floats;
            int64_t differ = 0;
            for (size_t x = 0; x < found.size(); ++x)
              differ += std::isnan(found[x]) != std::isnan(expected[x]) ||
                        std::isinf(found[x]) != std::isinf(expected[x]);
            EXPECT_EQ(differ, 0) << "result " << i;
          }
        }
  }
}
