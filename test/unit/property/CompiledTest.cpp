//===- CompiledTest.cpp - random problems, compiled -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The problems of PropertyTest, on their ranks, as machine code. Tiles and
// vectors are drawn, too: problems are small, and tiles are not.
//
// BURST_SEED and BURST_COMPILED set the seed and the number of problems of each
// case: problem n of case c is BURST_SEED=seed+1000*c+n BURST_COMPILED=1, case
// 0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/property/Captures.h"
#include "test/unit/property/CompiledTrial.h"
#include "test/unit/property/Dice.h"
#include "tools/data/Random.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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

/// This machine, with other vectors and small tiles, and blocks that may begin
/// as no numbers.
static cpu::Target drawTarget(Dice &dice) {
  cpu::Target target = cpu::Target::host();
  if (dice.chance(25))
    return target;
  while (target.vectorBits > 128 && dice.chance(40))
    target.vectorBits /= 2;
  target.microVectors = dice.within(1, 4);
  target.fma &= dice.chance(80);
  target.microRows = dice.within(1, 8);
  target.rows = dice.pick({1, 2, 5, 8, 12, 96});
  target.columns = dice.pick({1, 8, 16, 24, 64});
  target.pairs = dice.chance(50);
  target.dot &= target.vectorBits >= 256 && dice.chance(50);
  target.localTiling = dice.chance(80);
  target.poison = dice.chance(50);
  return target;
}

namespace {

class CompiledTest : public ::testing::TestWithParam<int> {
protected:
  /// Compiles problems that are drawn, and compares them with the oracle.
  void checkRandom(llvm::function_ref<RandomProblem(uint64_t seed)> draw);

  std::unique_ptr<MLIRContext> context = makeContext();
};

} // namespace

void CompiledTest::checkRandom(
    llvm::function_ref<RandomProblem(uint64_t seed)> draw) {
  uint64_t count = countFromEnvironment("BURST_COMPILED", 2, 420), checked = 0;
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
    std::vector<std::vector<double>> first = trial.values();
    options.threads = 4 - options.threads;
    options.checked = false;
    if (!HasFailure()) {
      EXPECT_TRUE(trial.run(options)) << trial.trial.error;
      EXPECT_EQ(trial.values(), first) << "another time";
    }
    if (HasFailure())
      FAIL() << "BURST_SEED=" << seed << " BURST_COMPILED=1, register tiles of "
             << target.microVectors << " vectors, " << target.str() << "\n"
             << problem.text(problem.ranks);
    worst = std::max(worst, trial.worstRatio);
    ++checked;
  }
  std::printf("%ju problems, worst error/bound %.3f\n", uintmax_t(checked),
              worst);
}

TEST_P(CompiledTest, AgreesWithTheOracle) {
  checkRandom([](uint64_t seed) { return drawProblem(seed); });
}

TEST_P(CompiledTest, DifferentiatesAsTheOracle) {
  checkRandom([](uint64_t seed) {
    return drawBackward(seed, seed % 2 ? Scores::Tables : Scores::None);
  });
}

INSTANTIATE_TEST_SUITE_P(Problems, CompiledTest, ::testing::Range(0, 24));

//===----------------------------------------------------------------------===//
// One program
//===----------------------------------------------------------------------===//

namespace {

/// A program whose sizes are open: attention under a window that is captured,
/// or its gradients.
struct OpenProblem : RandomProblem {
  OpenProblem(const std::string &element, const std::string &order,
              int64_t ranks, int64_t queryDim = 6, int64_t valueDim = 5,
              bool isBackward = false)
      : queryDim(queryDim), valueDim(valueDim), isBackward(isBackward) {
    this->element = element;
    this->order = order;
    this->ranks = ranks;
    drop = overlap = true;
    std::string window = fmt::format(
        "\n      mask(%b, %h, %i, %j, %sq, %sk, %w = %left : i32) {{\n"
        "        %n = arith.index_cast %w : i32 to index\n"
        "        %reach = arith.subi %i, %n : index\n"
        "        %near = arith.cmpi sge, %j, %reach : index\n"
        "        %past = arith.cmpi sle, %j, %i : index\n"
        "        %keep = arith.andi %near, %past : i1\n"
        "        burst.yield %keep : i1\n"
        "      }}\n"
        "      sequence <@g, {}> : ",
        order);
    std::string gradients =
        "  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %do" +
        window + "(!q, !k, !v, !o, !l, !o) -> (!q, !k, !v)\n";
    body = fmt::format(
        "!q = tensor<?x?x4x{2}x{0}>\n!k = tensor<?x?x2x{2}x{0}>\n"
        "!v = tensor<?x?x2x{3}x{0}>\n!o = tensor<?x?x4x{3}x{0}>\n"
        "!l = tensor<?x4x?x{1}>\n"
        "func.func @f(%q: !q {{burst.name = \"q\"}}, %k: !k {{burst.name = "
        "\"k\"}}, %v: !v {{burst.name = \"v\"}}, %left: i32 {{burst.name = "
        "\"left\"}}{4}) -> ({5}) {{\n"
        "  %o, %l = burst.attention %q, %k, %v{6}(!q, !k, !v) -> (!o, !l)\n"
        "{7}}}\n",
        element, element == "f64" ? "f64" : "f32", queryDim, valueDim,
        isBackward ? ", %do: !o {burst.name = \"do\"}" : "",
        isBackward ? "!q, !k, !v" : "!o, !l", window,
        isBackward ? gradients + "  return %dq, %dk, %dv : !q, !k, !v\n"
                   : "  return %o, %l : !o, !l\n");
  }

  void resize(int64_t batch, int64_t queries, int64_t keys, int64_t left) {
    tensors.clear();
    sizes = {batch, queries, keys, 4, 2, queryDim, valueDim};
    drawOperand("q", {batch, queries, 4, queryDim}, 7);
    drawOperand("k", {batch, keys, 2, queryDim}, 7);
    drawOperand("v", {batch, keys, 2, valueDim}, 7);
    if (isBackward)
      drawOperand("do", {batch, queries, 4, valueDim}, 7);
    data::Tensor window = data::Tensor::zeros(data::DType::I32, {});
    auto narrow = static_cast<int32_t>(left);
    std::memcpy(window.element(0), &narrow, sizeof(narrow));
    tensors.emplace("left", window);
  }

  int64_t queryDim, valueDim;
  bool isBackward;
};

} // namespace

static void servesAllSizes(bool isBackward) {
  auto context = makeContext();
  Dice dice(fromEnvironment("BURST_SEED", 1));
  for (const char *order : {"zigzag", "striped 3"}) {
    OpenProblem problem("f32", order, 3, 6, 5, isBackward);
    CompiledTrial trial(*context, problem);
    cpu::Target target = cpu::Target::host();
    target.rows = 16;
    target.columns = 32;
    target.poison = true;
    ASSERT_TRUE(trial.compile(target)) << trial.trial.error;
    for (int64_t n = 0; n < 40; ++n) {
      int64_t batch = dice.within(1, 2);
      int64_t queries =
          dice.within(0, 4) == 0 ? dice.within(0, 3) : dice.within(1, 260);
      int64_t keys = dice.chance(60) ? queries : dice.within(0, 260);
      // What has tiles, but nobody to write to them.
      if (n == 0) {
        batch = 0;
        queries = keys = 20000;
      }
      problem.resize(batch, queries, keys, dice.within(0, 300));
      CompiledRun options;
      options.checked = true;
      ASSERT_TRUE(trial.run(options))
          << queries << " x " << keys << ": " << trial.trial.error;
      trial.check();
      if (testing::Test::HasFailure())
        FAIL() << batch << " x " << queries << " queries, " << keys << " keys, "
               << order;
    }
  }
}

TEST(CompiledProgramTest, ServesAllSizes) {
  servesAllSizes(/*isBackward=*/false);
}
TEST(CompiledProgramTest, DifferentiatesAllSizes) {
  servesAllSizes(/*isBackward=*/true);
}

namespace {
/// Elements, and what kernels do with them.
struct Kind {
  const char *element;
  bool pairs, localTiling;

  std::string name() const {
    return fmt::format("{}{}{}", element, pairs ? " in pairs" : "",
                       localTiling ? "" : ", scores of whole slices");
  }
  /// This machine, with small tiles.
  cpu::Target target(int64_t rows) const {
    cpu::Target target = cpu::Target::host();
    target.rows = rows;
    target.columns = 32;
    target.pairs = pairs;
    target.localTiling = localTiling;
    return target;
  }
};
} // namespace

static constexpr Kind kinds[] = {{"f32", false, true},
                                 {"bf16", false, true},
                                 {"bf16", true, true},
                                 {"f32", false, false}};

/// With fewer heads than threads, tasks of a backward pass wait for each other.
static void givesTheSameBitsHoweverItIsRun(bool isBackward) {
  auto context = makeContext();
  for (const Kind &kind : kinds) {
    SCOPED_TRACE(kind.name());
    OpenProblem problem(kind.element, "zigzag", 5, 6, 5, isBackward);
    problem.resize(isBackward ? 1 : 2, 223, 223, 150);
    CompiledTrial trial(*context, problem);
    ASSERT_TRUE(trial.compile(kind.target(8))) << trial.trial.error;
    std::vector<std::vector<double>> first;
    // Checked transfers complete as late as is legal.
    for (int64_t threads : {1, 2, 5, 16})
      for (bool checked : {false, true})
        for (int64_t again = 0; again < 2; ++again) {
          CompiledRun options;
          options.threads = threads;
          options.checked = checked;
          ASSERT_TRUE(trial.run(options)) << trial.trial.error;
          std::vector<std::vector<double>> found = trial.values();
          if (first.empty())
            first = found;
          EXPECT_EQ(found, first) << threads << " threads";
        }
    trial.check();
  }
}

TEST(CompiledProgramTest, GivesTheSameBitsHoweverItIsRun) {
  givesTheSameBitsHoweverItIsRun(/*isBackward=*/false);
}
TEST(CompiledProgramTest, GivesGradientsOfTheSameBitsHoweverItIsRun) {
  givesTheSameBitsHoweverItIsRun(/*isBackward=*/true);
}

namespace {
/// Few queries of groups of heads against many keys. Mask and score tell heads
/// apart, and rows see different keys.
struct FewProblem : RandomProblem {
  FewProblem(const std::string &element, const std::string &strategy,
             int64_t ranks, oracle::Sizes of) {
    this->element = element;
    this->order = "contiguous";
    this->ranks = ranks;
    drop = overlap = true;
    sizes = of;
    std::string state = element == "f64" ? "f64" : "f32";
    std::string shapes = fmt::format(
        "!q = tensor<{0}x{1}x{3}x{5}x{7}>\n!k = tensor<{0}x{2}x{4}x{5}x{7}>\n"
        "!v = tensor<{0}x{2}x{4}x{6}x{7}>\n!o = tensor<{0}x{1}x{3}x{6}x{7}>\n"
        "!l = tensor<{0}x{3}x{1}x{8}>\n",
        of.batch, of.queries, of.keys, of.queryHeads, of.keyHeads, of.queryDim,
        of.valueDim, element, state);
    body = shapes +
           fmt::format(
               "func.func @f(%q: !q {{burst.name = \"q\"}}, "
               "%k: !k {{burst.name = \"k\"}}, %v: !v {{burst.name = \"v\"}})"
               " -> (!o, !l) {{\n"
               "  %o, %l = burst.attention %q, %k, %v\n"
               "      mask(%b, %h, %i, %j, %sq, %sk) {{\n"
               "        %c60 = arith.constant 60 : index\n"
               "        %before = arith.subi %sk, %sq : index\n"
               "        %own = arith.addi %i, %before : index\n"
               "        %last = arith.subi %own, %h : index\n"
               "        %past = arith.cmpi sle, %j, %last : index\n"
               "        %reach = arith.addi %j, %c60 : index\n"
               "        %far = arith.cmpi sge, %own, %reach : index\n"
               "        %odd = arith.cmpi sge, %h, %b : index\n"
               "        %some = arith.ori %far, %odd : i1\n"
               "        %keep = arith.andi %past, %some : i1\n"
               "        burst.yield %keep : i1\n"
               "      }}\n"
               "      score(%s : {0}, %b, %h, %i, %j, %sq, %sk) {{\n"
               "        %n = arith.index_cast %h : index to i32\n"
               "        %x = arith.sitofp %n : i32 to {0}\n"
               "        %c = arith.constant 0.125 : {0}\n"
               "        %y = arith.mulf %x, %c : {0}\n"
               "        %z = arith.mulf %s, %y : {0}\n"
               "        burst.yield %z : {0}\n"
               "      }}\n"
               "      sequence <@g, contiguous> strategy <{1}>\n"
               "      : (!q, !k, !v) -> (!o, !l)\n"
               "  return %o, %l : !o, !l\n"
               "}}\n",
               state, strategy);
    drawOperand("q", {of.batch, of.queries, of.queryHeads, of.queryDim}, 7);
    drawOperand("k", {of.batch, of.keys, of.keyHeads, of.queryDim}, 7);
    drawOperand("v", {of.batch, of.keys, of.keyHeads, of.valueDim}, 7);
  }
};
} // namespace

/// Heads are rows of a tile, keys are read where they lie, and parts of them
/// are merged: in one order, whoever computes them.
TEST(CompiledProgramTest, ReadsKeysOfFewQueriesInPlace) {
  auto context = makeContext();
  for (const char *element : {"f32", "f64", "bf16", "f16"})
    for (auto [strategy, ranks] :
         {std::pair("ring_kv", 1), {"ring_kv", 2}, {"all_gather", 2}})
      for (auto [queries, queryHeads] : {std::pair(1, 8), {3, 6}, {2, 2}}) {
        SCOPED_TRACE(fmt::format("{}, {} of {} ranks, {} queries, {} heads",
                                 element, strategy, ranks, queries,
                                 queryHeads));
        FewProblem problem(element, strategy, ranks,
                           {/*batch=*/2, queries, /*keys=*/331, queryHeads,
                            /*keyHeads=*/2, /*queryDim=*/32, /*valueDim=*/48});
        CompiledTrial trial(*context, problem);
        cpu::Target target = cpu::Target::host();
        target.columns = 32;
        target.poison = true;
        ASSERT_TRUE(trial.compile(target)) << trial.trial.error;
        std::vector<std::vector<double>> first;
        for (int64_t threads : {1, 2, 5}) {
          CompiledRun options;
          options.threads = threads;
          options.checked = threads == 2;
          ASSERT_TRUE(trial.run(options)) << trial.trial.error;
          if (first.empty())
            first = trial.values();
          EXPECT_EQ(trial.values(), first) << threads << " threads";
        }
        trial.check();
      }
}

/// The shapes that processors with instructions for pairs take, where there is
/// none.
TEST(CompiledProgramTest, MultipliesPairsOnAnyProcessor) {
  auto context = makeContext();
  cpu::Target target = cpu::Target::host();
  target.vectorBits = 512;
  target.microVectors = 2;
  target.microRows = 14;
  target.rows = 112;
  target.columns = 128;
  target.pairs = true;
  target.dot = false;
  for (bool isBackward : {false, true}) {
    // An odd depth, and values that begin a fourth panel.
    OpenProblem problem("bf16", "zigzag", 2, 67, 100, isBackward);
    CompiledTrial trial(*context, problem);
    ASSERT_TRUE(trial.compile(target)) << trial.trial.error;
    for (int64_t length : {131, 511, isBackward ? 600 : 900}) {
      problem.resize(1, length, length, 350);
      CompiledRun options;
      options.checked = true;
      ASSERT_TRUE(trial.run(options)) << trial.trial.error;
      trial.check();
    }
  }
}

/// Whether results are numbers where the interpreter's are.
static void carriesWhatIsNoNumber(const Kind &kind, bool isBackward) {
  auto context = makeContext();
  const double infinity = std::numeric_limits<double>::infinity();
  OpenProblem problem(kind.element, "zigzag", 3, 6, 5, isBackward);
  CompiledTrial trial(*context, problem);
  ASSERT_TRUE(trial.compile(kind.target(16))) << trial.trial.error;
  for (const char *name : {"q", "k", "v", "do"})
    for (double value : {std::nan(""), infinity, -infinity, 0.0})
      for (int64_t at : {3, 200, 600}) {
        SCOPED_TRACE(
            fmt::format("{} {}[{}] = {}", kind.name(), name, at, value));
        problem.resize(1, 70, 70, 40);
        auto tensor = problem.tensors.find(name);
        // Of stored scores, sums know what the mask hides, not what was -inf.
        bool isGone = isBackward && !kind.localTiling && std::isinf(value) &&
                      (name[0] == 'q' || name[0] == 'k');
        if (tensor == problem.tensors.end() || isGone)
          continue;
        tensor->second.set(at, value);
        if (value == 0.0) // a NaN with all bits set
          std::memset(tensor->second.element(at), 0xff,
                      kind.element[0] == 'f' ? sizeof(float) : 2);
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

TEST(CompiledProgramTest, CarriesWhatIsNoNumberWhereItIsSeen) {
  for (const Kind &kind : kinds)
    carriesWhatIsNoNumber(kind, /*isBackward=*/false);
}

TEST(CompiledProgramTest, CarriesWhatIsNoNumberBackward) {
  for (const Kind &kind : kinds)
    carriesWhatIsNoNumber(kind, /*isBackward=*/true);
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

namespace {

/// A backward pass of grouped heads, whose masks may keep other pairs in each
/// head and batch, or none.
struct TurnsProblem : RandomProblem {
  explicit TurnsProblem(Dice &dice) {
    element = dice.pick({"f32", "f32", "f64", "bf16"});
    order = dice.pick({"contiguous", "zigzag", "striped", "striped 3"});
    ranks = dice.within(1, 8);
    drop = dice.chance(70);
    overlap = dice.chance(70);
    int64_t batch = dice.within(1, 3), keyHeads = dice.within(1, 3);
    int64_t heads = keyHeads * dice.within(1, 8);
    int64_t queries = dice.chance(10) ? dice.within(0, 3) : dice.within(1, 130);
    int64_t keys = dice.chance(50)   ? queries
                   : dice.chance(10) ? dice.within(0, 3)
                                     : dice.within(1, 130);
    int64_t queryDim = dice.within(1, 9), valueDim = dice.within(1, 9);
    sizes = {batch, queries, keys, heads, keyHeads, queryDim, valueDim};
    std::string state = element == "f64" ? "f64" : "f32";
    bool isOpen = dice.chance(50);
    auto size = [&](int64_t extent) {
      return isOpen ? std::string("?") : std::to_string(extent);
    };
    body = fmt::format(
        "!q = tensor<{2}x{3}x{5}x{7}x{0}>\n!k = tensor<{2}x{4}x{6}x{7}x{0}>\n"
        "!v = tensor<{2}x{4}x{6}x{8}x{0}>\n!o = tensor<{2}x{3}x{5}x{8}x{0}>\n"
        "!l = tensor<{2}x{5}x{3}x{1}>\n!w = tensor<{9}x{5}xi32>\n"
        "!d = tensor<{9}x{10}xi32>\n"
        "func.func @f(%q: !q {{burst.name = \"q\"}}, %k: !k {{burst.name = "
        "\"k\"}}, %v: !v {{burst.name = \"v\"}}, %do: !o {{burst.name = "
        "\"do\"}}, %w: !w {{burst.name = \"w\"}}, %d: !d {{burst.name = "
        "\"d\"}}) -> (!q, !k, !v) {{\n",
        element, state, size(batch), size(queries), size(keys), heads, keyHeads,
        queryDim, valueDim, batch, std::max(queries, keys));
    std::string region = "mask(%b, %h, %i, %j, %sq, %sk, %w_ = %w : !w, "
                         "%d_ = %d : !d) {\n"
                         "        %c0 = arith.constant 0 : index\n";
    std::string mask;
    const char *where = dice.pick({"%b, %h", "%c0, %h", "%b, %c0"});
    switch (dice.within(0, 5)) {
    case 0:
      break;
    case 1:
      mask = "mask causal";
      break;
    case 2:
    case 3:
      mask = region +
             fmt::format("        %x = tensor.extract %w_[{}] : !w\n"
                         "        %n = arith.index_cast %x : i32 to index\n"
                         "        %reach = arith.subi %i, %n : index\n"
                         "        %keep1 = arith.cmpi sge, %j, %reach : index\n"
                         "        %past = arith.cmpi sle, %j, %i : index\n"
                         "        %keep = arith.andi %keep1, %past : i1\n"
                         "        burst.yield %keep : i1\n      }}",
                         where);
      break;
    case 4: {
      const char *b = dice.pick({"%b", "%c0"});
      mask =
          region + fmt::format("        %x = tensor.extract %d_[{0}, %i] : !d\n"
                               "        %y = tensor.extract %d_[{0}, %j] : !d\n"
                               "        %keep = arith.cmpi eq, %x, %y : i32\n"
                               "        burst.yield %keep : i1\n      }}",
                               b);
      break;
    }
    default:
      mask = region +
             fmt::format("        %x = tensor.extract %w_[{}] : !w\n"
                         "        %n = arith.index_cast %x : i32 to index\n"
                         "        %keep = arith.cmpi slt, %j, %n : index\n"
                         "        burst.yield %keep : i1\n      }}",
                         where);
    }
    if (dice.chance(25))
      mask += fmt::format("\n      score(%s : {0}, %b, %h, %i, %j, %sq, %sk) "
                          "{{\n        %half = arith.constant 0.5 : {0}\n"
                          "        %t = arith.mulf %s, %half : {0}\n"
                          "        burst.yield %t : {0}\n      }}",
                          state);
    body += fmt::format(
        "  %o, %l = burst.attention %q, %k, %v {0}\n      sequence <@g, {1}> : "
        "(!q, !k, !v) -> (!o, !l)\n"
        "  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %do "
        "{0}\n      sequence <@g, {1}> strategy <{2}> : (!q, !k, !v, !o, !l, "
        "!o) -> (!q, !k, !v)\n  return %dq, %dk, %dv : !q, !k, !v\n}}\n",
        mask, order, dice.pick({"ring_kv", "ring_q"}));
    drawOperand("q", {batch, queries, heads, queryDim}, 7);
    drawOperand("k", {batch, keys, keyHeads, queryDim}, 7);
    drawOperand("v", {batch, keys, keyHeads, valueDim}, 7);
    drawOperand("do", {batch, queries, heads, valueDim}, 7);
    auto ints = [&](const char *name, const std::vector<int64_t> &shape,
                    auto draw) {
      data::Tensor tensor = data::Tensor::zeros(data::DType::I32, shape);
      for (size_t n = 0; n < tensor.numel(); ++n) {
        auto value = static_cast<int32_t>(draw());
        std::memcpy(tensor.element(n), &value, sizeof(value));
      }
      tensors.emplace(name, tensor);
    };
    ints("w", {batch, heads}, [&] {
      return dice.chance(25) ? dice.pick({-1, -1000, 0, 1000})
                             : static_cast<int>(dice.within(0, 130));
    });
    int64_t document = 0;
    ints("d", {batch, std::max(queries, keys)}, [&] {
      document += dice.chance(4);
      return document;
    });
  }
};

} // namespace

/// Who waits for whom, and so the bits, are of the lists.
TEST(CompiledProgramTest, TakesTurnsHoweverListsDiffer) {
  uint64_t seed = fromEnvironment("BURST_SEED", std::random_device()());
  uint64_t count = fromEnvironment("BURST_COMPILED", 6);
  std::printf("BURST_SEED=%ju\n", uintmax_t(seed));
  auto context = makeContext();
  for (uint64_t end = seed + count; seed < end; ++seed) {
    Dice dice(seed);
    TurnsProblem problem(dice);
    cpu::Target target = drawTarget(dice);
    target.rows = dice.pick({1, 4, 8, 12, 16, 40});
    target.columns = dice.pick({1, 8, 16, 24, 40});
    CompiledTrial trial(*context, problem);
    ASSERT_TRUE(trial.compile(target))
        << "BURST_SEED=" << seed << "\n"
        << trial.trial.error << problem.text(problem.ranks);
    std::vector<std::vector<double>> first;
    for (int64_t n = 0; n < 6; ++n) {
      CompiledRun options;
      options.threads = n == 0 ? 1 : dice.pick({2, 3, 5, 8, 16, 64});
      options.checked = dice.chance(50);
      EXPECT_TRUE(trial.run(options)) << trial.trial.error;
      std::vector<std::vector<double>> found = trial.values();
      if (n == 0)
        first = found;
      EXPECT_EQ(found, first) << options.threads << " threads";
    }
    trial.check();
    if (HasFailure())
      FAIL() << "BURST_SEED=" << seed << ", " << target.str() << "\n"
             << problem.text(problem.ranks);
  }
}

//===----------------------------------------------------------------------===//
// Captures
//===----------------------------------------------------------------------===//

namespace {

/// Attention whose mask and score capture a scalar and tables of each rank, of
/// one type. The sum of what they hold decides; that of integers is of their
/// remainders by 7, which change with every bit.
struct CapturingProblem : RandomProblem {
  CapturingProblem(const std::string &type, Dice &dice) {
    sizes = {2, 13, 11, 2, 1, 4, 4};
    element = "f32";
    order = "striped 2";
    ranks = 3;
    drop = overlap = true;
    Captures captures(dice);
    std::string clause;
    std::vector<std::string> values;
    values.reserve(5);
    for (size_t rank = 0; rank <= 4; ++rank) {
      Capture capture = draw(type, rank, dice, captures);
      std::string name = fmt::format("%c{}", rank);
      clause += fmt::format(", {} = {} : {}", name, capture.name, capture.type);
      values.push_back(valueAt(type, name, rank, capture.type));
    }
    std::string sum = sumOf(type, values);
    std::string arguments =
        fmt::format("{}", fmt::join(captures.arguments(), ", "));
    body = fmt::format(
        "!q = tensor<2x13x2x4xf32>\n!k = tensor<2x11x1x4xf32>\n"
        "!l = tensor<2x2x13xf32>\n"
        "func.func @f(%q: !q {{burst.name = \"q\"}}, %k: !k {{burst.name = "
        "\"k\"}}, %v: !k {{burst.name = \"v\"}}{0}{1}) -> (!q, !l) {{\n{2}"
        "  %o, %l = burst.attention %q, %k, %v\n"
        "      mask(%b, %h, %i, %j, %sq, %sk{3}) {{\n{4}"
        "        %zero = arith.constant 0.0 : f32\n"
        "        %keep = arith.cmpf ogt, %sum, %zero : f32\n"
        "        burst.yield %keep : i1\n"
        "      }}\n"
        "      score(%s : f32, %b, %h, %i, %j, %sq, %sk{3}) {{\n{4}"
        "        %eighth = arith.constant 0.125 : f32\n"
        "        %bias = arith.mulf %sum, %eighth : f32\n"
        "        %t = arith.addf %s, %bias : f32\n"
        "        burst.yield %t : f32\n"
        "      }}\n"
        "      sequence <@g, {5}> : (!q, !k, !k) -> (!q, !l)\n"
        "  return %o, %l : !q, !l\n}}\n",
        arguments.empty() ? "" : ", ", arguments, captures.constants(), clause,
        sum, order);
    tensors = captures.tensors();
    auto input = [&](const char *name, std::vector<int64_t> shape) {
      size_t count = data::Tensor::zeros(data::DType::F32, shape).numel();
      tensors.emplace(name, data::Tensor::of(data::DType::F32, shape,
                                             data::normal(7, name, count)));
    };
    input("q", {2, 13, 2, 4});
    input("k", {2, 11, 1, 4});
    input("v", {2, 11, 1, 4});
  }

private:
  static Capture draw(const std::string &type, size_t rank, Dice &dice,
                      Captures &captures) {
    // Those of the last of (%b, %h, %i, %j).
    std::vector<int64_t> shape{2, 2, 13, 11};
    shape.erase(shape.begin(), shape.end() - static_cast<ptrdiff_t>(rank));
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    if (isFloatElement(type)) {
      // Sums of these are exact in any type.
      std::vector<double> values;
      values.reserve(count);
      for (int64_t n = 0; n < count; ++n)
        values.push_back(static_cast<double>(dice.within(-16, 16)) / 8);
      return captures.addFloats(type, shape, values);
    }
    unsigned width = widthOfElement(type);
    int64_t most = std::numeric_limits<int64_t>::max() >> (64 - width);
    std::vector<int64_t> values;
    values.reserve(count);
    for (int64_t n = 0; n < count; ++n)
      values.push_back(width == 1        ? dice.within(0, 1)
                       : dice.chance(30) ? dice.number(width)
                                         : dice.within(-most - 1, most));
    return captures.addInts(type, shape, values);
  }

  /// Ops that give the f32 %f<rank>.
  static std::string valueAt(const std::string &type, const std::string &name,
                             size_t rank, const std::string &table) {
    static const char *const at[] = {"", "%j", "%i, %j", "%h, %i, %j",
                                     "%b, %h, %i, %j"};
    std::string text, value = name;
    if (rank > 0) {
      value = fmt::format("%x{}", rank);
      text = fmt::format("        {} = tensor.extract {}[{}] : {}\n", value,
                         name, at[rank], table);
    }
    auto make = [&](const char *result, const std::string &op) {
      text += fmt::format("        %{}{} = {}\n", result, rank, op);
      value = fmt::format("%{}{}", result, rank);
    };
    if (isFloatElement(type)) {
      const char *cast = type == "f64" ? "truncf" : "extf";
      make("f", type == "f32" ? fmt::format("arith.negf {} : f32", value)
                              : fmt::format("arith.{} {} : {} to f32", cast,
                                            value, type));
      return text;
    }
    const char *cast = type == "i1"      ? "extui"
                       : type == "index" ? "index_cast"
                                         : "extsi";
    if (type != "i64")
      make("w", fmt::format("arith.{} {} : {} to i64", cast, value, type));
    make("r", fmt::format("arith.remsi {}, %seven : i64", value));
    make("f", fmt::format("arith.sitofp {} : i64 to f32", value));
    return text;
  }

  static std::string sumOf(const std::string &type,
                           const std::vector<std::string> &values) {
    // About half of the pairs of i1 are seen.
    std::string text =
        fmt::format("        %seven = arith.constant 7 : i64\n"
                    "        %s0 = arith.constant {:.1f} : f32\n",
                    type == "i1" ? -2.0 : 0.0);
    for (size_t rank = 0; rank < values.size(); ++rank)
      text +=
          values[rank] +
          fmt::format("        %{} = arith.addf %s{}, %f{} : f32\n",
                      rank + 1 == values.size() ? "sum"
                                                : fmt::format("s{}", rank + 1),
                      rank, rank);
    return text;
  }
};

class CompiledCapturesTest : public ::testing::TestWithParam<const char *> {};

} // namespace

TEST_P(CompiledCapturesTest, AreReadAsTheyAre) {
  auto context = makeContext();
  // Arguments and constants, closed and open shapes are drawn.
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Dice dice(seed);
    CapturingProblem problem(GetParam(), dice);
    CompiledTrial trial(*context, problem);
    CompiledRun options;
    options.checked = true;
    ASSERT_TRUE(trial.compile(drawTarget(dice)) && trial.run(options))
        << trial.trial.error << problem.text(problem.ranks);
    trial.check();
    if (HasFailure())
      FAIL() << problem.text(problem.ranks);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CompiledCapturesTest,
                         ::testing::Values("i1", "i8", "i16", "i32", "i64",
                                           "index", "f16", "bf16", "f32",
                                           "f64"),
                         [](const auto &info) { return info.param; });

//===----------------------------------------------------------------------===//
// Gradients of captured tables
//===----------------------------------------------------------------------===//

namespace {

/// A backward pass with gradients of tables that the score finds by the batch,
/// by the head, by i - j, by (i, j) and by (h, i, j). What the mask rules out
/// looks for its element where there is none.
struct TablesProblem : RandomProblem {
  TablesProblem(const std::string &element, const std::string &strategy,
                int64_t ranks, const std::string &order) {
    this->element = element;
    this->order = order;
    this->ranks = ranks;
    sizes = {2, 37, 37, 4, 2, 6, 5};
    drop = overlap = true;
    std::string state = element == "f64" ? "f64" : "f32";
    body = fmt::format(
        "!q = tensor<2x37x4x6x{0}>\n!k = tensor<2x37x2x6x{0}>\n"
        "!v = tensor<2x37x2x5x{0}>\n!o = tensor<2x37x4x5x{0}>\n"
        "!l = tensor<2x4x37x{1}>\n"
        "func.func @f(%q: !q {{burst.name = \"q\"}}, %k: !k {{burst.name = "
        "\"k\"}}, %v: !v {{burst.name = \"v\"}}, %o: !o {{burst.name = "
        "\"o\"}}, %l: !l {{burst.name = \"l\"}}, %do: !o {{burst.name = "
        "\"do\"}}",
        element, state);
    const std::tuple<const char *, std::vector<int64_t>, const char *> tables[]{
        {"gains", {2}, "%b"},
        {"slopes", {4}, "%h"},
        {"near", {10}, "%place"},
        {"pairs", {37, 37}, "%i, %j"},
        {"heads", {4, 37, 37}, "%h, %i, %j"}};
    std::string clause, reads, names, types;
    for (const auto &[name, shape, indices] : tables) {
      std::string type = tensorText(shape, state);
      body += fmt::format(", %{0}: {1} {{burst.name = \"{0}\"}}", name, type);
      clause += fmt::format(", %t_{0} = %{0} : {1}", name, type);
      reads +=
          fmt::format("        %{0}_x = tensor.extract %t_{0}[{1}] : {2}\n",
                      name, indices, type);
      names += fmt::format(", %d{}", name);
      types += ", " + type;
      input(name, shape, state, 0.5);
    }
    body += fmt::format(
        ") -> (!q, !k, !v{1}) {{\n"
        "  %dq, %dk, %dv{2} = burst.attention_backward %q, %k, %v, %o, %l, "
        "%do\n      mask causal\n"
        "      score(%s : {0}, %b, %h, %i, %j, %sq, %sk{3}) {{\n"
        "        %far = arith.subi %i, %j : index\n"
        "        %nine = arith.constant 9 : index\n"
        "        %nowhere = arith.constant 1000000 : index\n"
        "        %clamped = arith.minsi %far, %nine : index\n"
        "        %seen = arith.cmpi sle, %j, %i : index\n"
        "        %place = arith.select %seen, %clamped, %nowhere : index\n"
        "{4}"
        "        %far64 = arith.index_cast %far : index to i64\n"
        "        %distance = arith.sitofp %far64 : i64 to {0}\n"
        "        %tenth = arith.constant 0.125 : {0}\n"
        "        %close = arith.mulf %distance, %tenth : {0}\n"
        "        %slope = arith.mulf %slopes_x, %close : {0}\n"
        "        %s1 = arith.mulf %s, %gains_x : {0}\n"
        "        %s2 = arith.subf %s1, %slope : {0}\n"
        "        %s3 = arith.addf %s2, %near_x : {0}\n"
        "        %s4 = arith.addf %s3, %pairs_x : {0}\n"
        "        %s5 = arith.addf %s4, %heads_x : {0}\n"
        "        burst.yield %s5 : {0}\n"
        "      }}\n"
        "      sequence <@g, {5}> strategy <{6}> gradients [0, 1, 2, 3, 4]\n"
        "      : (!q, !k, !v, !o, !l, !o) -> (!q, !k, !v{1})\n"
        "  return %dq, %dk, %dv{2} : !q, !k, !v{1}\n}}\n",
        state, types, names, clause, reads, order, strategy);
    input("q", {2, 37, 4, 6}, element, 1);
    input("k", {2, 37, 2, 6}, element, 1);
    input("v", {2, 37, 2, 5}, element, 1);
    input("o", {2, 37, 4, 5}, element, 1);
    input("l", {2, 4, 37}, state, 1);
    input("do", {2, 37, 4, 5}, element, 1);
  }

private:
  void input(const char *name, const std::vector<int64_t> &shape,
             const std::string &type, double factor) {
    data::Tensor tensor = data::Tensor::zeros(dtypeOfElement(type), shape);
    std::vector<double> values = data::normal(7, name, tensor.numel());
    for (size_t i = 0; i < values.size(); ++i)
      tensor.set(i, factor * values[i]);
    tensors.emplace(name, tensor);
  }
};

class CompiledTablesTest : public ::testing::TestWithParam<
                               std::tuple<const char *, const char *, int>> {};

} // namespace

TEST_P(CompiledTablesTest, AgreeWithTheOracleInTheSameBits) {
  auto context = makeContext();
  auto [element, strategy, ranks] = GetParam();
  TablesProblem problem(element, strategy, ranks,
                        ranks % 2 == 0 ? "zigzag" : "striped 3");
  Trial made(*context, problem, 1);
  ASSERT_TRUE(made.parse() && made.giveForward(problem)) << made.error;
  CompiledTrial trial(*context, problem);
  cpu::Target target = cpu::Target::host();
  target.rows = 8;
  target.columns = 16;
  ASSERT_TRUE(trial.compile(target)) << trial.trial.error;
  std::vector<std::vector<double>> first;
  for (int64_t threads : {1, 2, 5})
    for (bool checked : {false, true}) {
      CompiledRun options;
      options.threads = threads;
      options.checked = checked;
      ASSERT_TRUE(trial.run(options)) << trial.trial.error;
      std::vector<std::vector<double>> found = trial.values();
      if (first.empty())
        first = found;
      EXPECT_EQ(found, first) << threads << " threads";
    }
  trial.check();
}

INSTANTIATE_TEST_SUITE_P(
    Types, CompiledTablesTest,
    ::testing::Combine(::testing::Values("f64", "f32", "bf16"),
                       ::testing::Values("ring_kv", "ring_q"),
                       ::testing::Range(1, 5)),
    [](const auto &info) {
      return std::string(std::get<0>(info.param)) + "_" +
             std::get<1>(info.param) + "_" +
             std::to_string(std::get<2>(info.param));
    });
