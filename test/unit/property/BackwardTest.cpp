//===- BackwardTest.cpp - random backward passes against the oracle -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// BURST_SEED and BURST_COUNT are as in PropertyTest.
//
//===----------------------------------------------------------------------===//
#include "test/unit/property/Captures.h"
#include "test/unit/property/Trial.h"
#include "tools/data/Random.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

/// What the problems were like: a test of nothing would pass, too.
struct Statistics {
  int64_t dropped = 0, computed = 0, poisoned = 0, gradients = 0, tables = 0;
  int64_t withForward = 0, ofQueries = 0, emptyRows = 0;
  double worst = 0; ///< error / bound

  void print() const {
    std::printf("pairs of segments: %jd computed, %jd dropped; gradients: %jd, "
                "of tables %jd; with their forward pass %jd; queries travel: "
                "%jd; rows without terms: %jd; poisoned elements: %jd; worst "
                "error/bound %.3f\n",
                intmax_t(computed), intmax_t(dropped), intmax_t(gradients),
                intmax_t(tables), intmax_t(withForward), intmax_t(ofQueries),
                intmax_t(emptyRows), intmax_t(poisoned), worst);
  }
};

/// One problem, on its ranks and on one.
class Check {
public:
  Check(MLIRContext &context, RandomProblem &problem, Statistics &statistics)
      : context(context), problem(problem), statistics(statistics),
        many(context, problem, problem.ranks), one(context, problem, 1) {}

  void run();

private:
  void compare(const Trial::Backward &backward, const Trial::Backward &alone);
  void compareForward(const Trial::Attention &attention);
  void compareTightly(const oracle::Gradient &expected, const Tensor &found);

  MLIRContext &context;
  RandomProblem &problem;
  Statistics &statistics;
  Trial many, one;
};

} // namespace

/// The interpreter computes in fp64, whatever the type: only results are
/// rounded.
void Check::compareTightly(const oracle::Gradient &expected,
                           const Tensor &found) {
  double roundoff = 0, least = 0;
  if (found.element.isF32())
    roundoff = 0x1p-24, least = 0x1p-150;
  else if (found.element.isBF16())
    roundoff = 0x1p-8, least = 0x1p-134;
  else if (found.element.isF16())
    roundoff = 0x1p-11, least = 0x1p-25;
  oracle::Gradient rounded = expected;
  for (auto [own, value] : llvm::zip_equal(rounded.ownError, rounded.value))
    own += roundoff * std::abs(value) + least;
  oracle::Deviation deviation =
      oracle::compare(rounded, found.floats, oracle::toleranceF64);
  EXPECT_EQ(deviation.failed, 0) << oracle::describe("in fp64", deviation);
}

void Check::compare(const Trial::Backward &backward,
                    const Trial::Backward &alone) {
  const oracle::Sizes &sizes = backward.problem.forward.sizes;
  oracle::Gradients expected =
      oracle::evaluate(backward.problem, oracle::allRows(sizes),
                       oracle::allRows(oracle::ofKeys(sizes)), {.threads = 1});
  const oracle::Tolerance &tolerance = toleranceOf(backward.element);
  bool isGiven = !backward.problem.lse.empty();
  statistics.withForward += !isGiven;
  AttentionBackwardOp op = backward.op;
  StrategyAttr strategy = op.getStrategyAttr();
  statistics.ofQueries +=
      strategy && StringRef(strategy.getParts().back().name).ends_with("_q");
  for (auto [index, gradient] : llvm::enumerate(expected.all())) {
    const TensorRef &found = backward.results[index];
    if (!found)
      continue;
    std::string name = "gradient " + std::to_string(index);
    oracle::Deviation deviation =
        oracle::compare(*gradient, found->floats, tolerance);
    EXPECT_EQ(deviation.failed, 0) << oracle::describe(name, deviation);
    statistics.worst = std::max(statistics.worst, deviation.worstRatio);
    // Out and lse of a forward pass are rounded in between.
    if (isGiven)
      compareTightly(*gradient, *found);
    deviation = oracle::compare(
        oracle::withValues(*gradient, alone.results[index]->floats),
        found->floats, tolerance);
    EXPECT_EQ(deviation.failed, 0)
        << oracle::describe(name + " against one rank", deviation);
    ++statistics.gradients;
    statistics.tables += index >= 3;
    statistics.emptyRows += llvm::count(gradient->stateScale, 0.0);
  }
}

/// A forward pass that the backward pass stands behind must be none the worse.
void Check::compareForward(const Trial::Attention &attention) {
  oracle::Result expected = oracle::evaluate(
      attention.problem, oracle::allRows(attention.problem.sizes),
      {.threads = 1});
  std::vector<double> nothing(expected.sizes.outElements());
  oracle::Verdict verdict = oracle::compare(
      expected, attention.out ? attention.out->floats : nothing,
      attention.lse ? std::span<const double>(attention.lse->floats)
                    : std::span<const double>(),
      toleranceOf(attention.element));
  if (attention.out)
    EXPECT_EQ(verdict.out.failed, 0) << verdict.text();
  EXPECT_EQ(verdict.lse.failed, 0) << verdict.text();
}

void Check::run() {
  Trial made(context, problem, 1);
  ASSERT_TRUE(made.parse() && made.giveForward(problem)) << made.error;
  PoisonChecker interpreter;
  Interpreter plain;
  ASSERT_TRUE(many.all(interpreter) && many.findAttentions()) << many.error;
  ASSERT_TRUE(one.all(plain) && one.findAttentions())
      << "on one rank: " << one.error;
  EXPECT_TRUE(interpreter.isSound) << "what was not sent is not NaN";
  for (const Trial::Attention &attention : many.attentions)
    compareForward(attention);
  for (auto [backward, alone] : llvm::zip_equal(many.backwards, one.backwards))
    compare(backward, alone);
  expectPlanned(many);
  statistics.poisoned += interpreter.poisoned;
  statistics.computed += many.proof.computed;
  statistics.dropped += many.proof.dropped;
}

static Statistics checkRandom(Scores scores) {
  uint64_t seed = fromEnvironment("BURST_SEED", std::random_device()());
  uint64_t count = fromEnvironment("BURST_COUNT", 200);
  std::printf("BURST_SEED=%ju BURST_COUNT=%ju\n", uintmax_t(seed),
              uintmax_t(count));
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  std::unique_ptr<MLIRContext> context = makeContext();
  Statistics statistics;
  for (uint64_t n = 0; n < count && !::testing::Test::HasFailure(); ++n) {
    RandomProblem problem = drawBackward(seed + n, scores);
    Check(*context, problem, statistics).run();
    if (::testing::Test::HasFailure())
      ADD_FAILURE() << leave(problem);
  }
  statistics.print();
  if (count < 100 || ::testing::Test::HasFailure())
    return statistics; // too few to say how often
  EXPECT_GT(statistics.dropped, 0);
  EXPECT_GT(statistics.poisoned, 0);
  EXPECT_GT(statistics.emptyRows, 0);
  EXPECT_GT(statistics.withForward, 0);
  EXPECT_GT(statistics.ofQueries, 0);
  return statistics;
}

TEST(BackwardTest, RandomProblems) { checkRandom(Scores::None); }

TEST(BackwardTest, RandomProblemsWithScores) {
  Statistics statistics = checkRandom(Scores::Tables);
  if (fromEnvironment("BURST_COUNT", 200) >= 100)
    EXPECT_GT(statistics.tables, 0);
}

//===----------------------------------------------------------------------===//
// Sabotage
//===----------------------------------------------------------------------===//

namespace {

enum class Deed : uint8_t {
  Nothing,
  SkipPair,     ///< one pair of segments is not computed
  RepeatPair,   ///< one attend is done twice
  WrongOwner,   ///< one slice is taken for that of another rank
  SpoilDelta,   ///< one row has another delta
  LoseGradient, ///< one partial gradient is not added
  AddTwice,     ///< or added twice
  LoseSegment,  ///< one delivered tensor does not arrive
};

/// Does one deed on rank 1.
class Saboteur : public Interpreter {
public:
  explicit Saboteur(Deed deed) : deed(deed) {}

  bool attendGrad(AttendGrad &attend, std::string &message) override {
    if (attend.rank != 1 || isDone)
      return Interpreter::attendGrad(attend, message);
    auto kept = llvm::find(attend.pairs, true);
    switch (deed) {
    case Deed::SkipPair:
      isDone = kept != attend.pairs.end();
      if (isDone)
        *kept = false;
      break;
    case Deed::RepeatPair: {
      isDone = true;
      AttendGrad again = attend;
      if (!Interpreter::attendGrad(again, message))
        return false;
      attend.grads = again.grads;
      break;
    }
    case Deed::WrongOwner:
      isDone = true;
      attend.slice.owner = (attend.slice.owner + 1) % 3;
      break;
    default:
      break;
    }
    return Interpreter::attendGrad(attend, message);
  }

  bool delta(Type element, const TensorRef &out, const TensorRef &outGrad,
             const TensorRef &lseGrad, TensorRef &result,
             std::string &message) override {
    if (!Interpreter::delta(element, out, outGrad, lseGrad, result, message))
      return false;
    if (deed == Deed::SpoilDelta && !isDone) {
      isDone = true;
      result->floats[5] += 1;
    }
    return true;
  }

  bool add(Sum &sum, std::string &message) override {
    bool isIt = sum.rank == 1 && sum.segments != 0 && !isDone;
    if (isIt && deed == Deed::LoseGradient) {
      isDone = true;
      sum.segments = 0;
    } else if (isIt && deed == Deed::AddTwice) {
      isDone = true;
      Sum again = sum;
      if (!Interpreter::add(again, message))
        return false;
      sum.a = again.a;
    }
    return Interpreter::add(sum, message);
  }

  TensorRef deliver(const Transfer &from, const Transfer &to,
                    size_t index) override {
    TensorRef arrived = Interpreter::deliver(from, to, index);
    if (deed != Deed::LoseSegment || to.rank != 1 || isDone)
      return arrived;
    isDone = true;
    arrived->floats.assign(arrived->size(), std::nan(""));
    return arrived;
  }

  bool isDone = false;

private:
  Deed deed;
};

class BackwardSabotageTest
    : public ::testing::TestWithParam<std::tuple<const char *, const char *>> {
};

} // namespace

TEST_P(BackwardSabotageTest, IsNoticed) {
  auto [element, strategy] = GetParam();
  bool isDouble = std::string(element) == "f64";
  RandomProblem problem;
  problem.seed = 1;
  problem.sizes = {1, 12, 12, 2, 1, 4, 4};
  problem.element = element;
  problem.ranks = 3;
  problem.drop = problem.overlap = true;
  std::string query = tensorText({1, 12, 2, 4}, element);
  std::string key = tensorText({1, 12, 1, 4}, element);
  std::string lse = tensorText({1, 2, 12}, isDouble ? "f64" : "f32");
  problem.body = fmt::format(
      "func.func @f(%q: {0} {{burst.name = \"q\"}}, %k: {1} {{burst.name = "
      "\"k\"}}, %v: {1} {{burst.name = \"v\"}}, %o: {0} {{burst.name = "
      "\"o\"}}, %l: {2} {{burst.name = \"l\"}}, %do: {0} {{burst.name = "
      "\"do\"}}) -> ({0}, {1}, {1}) {{\n"
      "  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %do\n"
      "      mask window<left = 4, right = 5> sequence <@g, contiguous>\n"
      "      strategy <{3}> : ({0}, {1}, {1}, {0}, {2}, {0}) -> ({0}, {1}, "
      "{1})\n"
      "  return %dq, %dk, %dv : {0}, {1}, {1}\n}}\n",
      query, key, lse, strategy);
  auto input = [&](const char *name, std::vector<int64_t> shape,
                   const char *type) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    problem.tensors.emplace(name,
                            data::Tensor::of(dtypeOfElement(type), shape,
                                             data::normal(1, name, count)));
  };
  for (const char *name : {"q", "o", "do"})
    input(name, {1, 12, 2, 4}, element);
  for (const char *name : {"k", "v"})
    input(name, {1, 12, 1, 4}, element);
  input("l", {1, 2, 12}, isDouble ? "f64" : "f32");

  std::unique_ptr<MLIRContext> context = makeContext();
  Trial made(*context, problem, 1);
  ASSERT_TRUE(made.parse() && made.giveForward(problem)) << made.error;
  for (Deed deed : {Deed::Nothing, Deed::SkipPair, Deed::RepeatPair,
                    Deed::WrongOwner, Deed::SpoilDelta, Deed::LoseGradient,
                    Deed::AddTwice, Deed::LoseSegment}) {
    Trial run(*context, problem, 3);
    Saboteur saboteur(deed);
    ASSERT_TRUE(run.all(saboteur) && run.findAttentions()) << run.error;
    EXPECT_EQ(saboteur.isDone, deed != Deed::Nothing)
        << "deed " << static_cast<int>(deed);
    const Trial::Backward &backward = run.backwards.front();
    oracle::Gradients expected = oracle::evaluate(
        backward.problem, oracle::allRows(problem.sizes),
        oracle::allRows(oracle::ofKeys(problem.sizes)), {.threads = 1});
    int64_t failed = 0;
    for (auto [gradient, found] :
         llvm::zip_equal(expected.all(), backward.results))
      failed += oracle::compare(*gradient, found->floats,
                                toleranceOf(backward.element))
                    .failed;
    EXPECT_EQ(failed != 0, deed != Deed::Nothing)
        << "deed " << static_cast<int>(deed);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, BackwardSabotageTest,
    ::testing::Combine(::testing::Values("f64", "f32", "bf16", "f16"),
                       ::testing::Values("ring_kv", "ring_q")),
    [](const auto &info) {
      return std::string(std::get<0>(info.param)) + "_" +
             std::get<1>(info.param);
    });
