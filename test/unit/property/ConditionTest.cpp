//===- ConditionTest.cpp - right and wrong results of difficult scores ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scores that rounding changes much, or that are no numbers: what is compiled
// is right, and next to each a twin that is not, which must be found.
//
//===----------------------------------------------------------------------===//
#include "test/unit/property/Captures.h"
#include "test/unit/property/CompiledTrial.h"
#include "tools/data/Random.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

constexpr int64_t length = 64;

struct Example {
  std::string name, element, score; ///< ops that make %x of %s; T: its type
  std::string state() const { return element == "f64" ? "f64" : "f32"; }
};

void PrintTo(const Example &example, std::ostream *os) { *os << example.name; }

std::vector<Example> examples() {
  const std::string one = "%one = arith.constant 1.0 : T\n",
                    zero = "%zero = arith.constant 0.0 : T\n",
                    big = "%big = arith.constant 1.0e10 : T\n",
                    thousand = "%c = arith.constant 1.0e3 : T\n",
                    isTwo = "%two = arith.constant 2 : index\n"
                            "%is = arith.cmpi eq, %i, %two : index\n",
                    choose = "%x = arith.select %is, %odd, %s : T\n";
  const std::pair<std::string, std::string> scores[] = {
      {"inverse", one + "%x = arith.divf %one, %s : T\n"},
      {"ratio", "%x = arith.divf %s, %s : T\n"},
      {"expOfSquare", "%y = arith.mulf %s, %s : T\n%x = math.exp %y : T\n"},
      {"large", big + "%x = arith.mulf %s, %big : T\n"},
      {"cancels", thousand + "%y = arith.addf %s, %c : T\n"
                             "%x = arith.subf %y, %c : T\n"},
      {"floor", "%x = math.floor %s : T\n"},
      {"log", "%x = math.log %s : T\n"},
      {"logOfSize", "%y = math.absf %s : T\n%x = math.log %y : T\n"},
      {"nan", zero + isTwo + "%odd = arith.divf %zero, %zero : T\n" + choose},
      {"infinite",
       zero + one + isTwo + "%odd = arith.divf %one, %zero : T\n" + choose}};
  std::vector<Example> result;
  for (const auto &[name, ops] : scores)
    for (const char *element : {"f32", "bf16", "f64"}) {
      if (result.size() > 9 && element[1] == '6')
        continue; // As f32, with other bounds.
      Example example{name + "_" + element, element, ops};
      for (size_t at; (at = example.score.find(": T\n")) != std::string::npos;)
        example.score.replace(at, 3, ": " + example.state());
      result.push_back(std::move(example));
    }
  return result;
}

RandomProblem emptyProblem(const std::string &element, int64_t heads) {
  RandomProblem problem;
  problem.element = element;
  problem.sizes = {1, length, length, heads, heads, 16, 16};
  problem.order = "contiguous";
  problem.ranks = 2;
  problem.drop = problem.overlap = true;
  for (const char *name : {"q", "k", "v", "do"})
    problem.tensors.emplace(
        name, data::Tensor::of(dtypeOfElement(element), {1, length, heads, 16},
                               data::normal(1, name, length * heads * 16)));
  return problem;
}

const char *const inputs =
    "%q: !q {burst.name = \"q\"}, %k: !q {burst.name = \"k\"}, %v: !q "
    "{burst.name = \"v\"}, %do: !q {burst.name = \"do\"}";

RandomProblem problemOf(const Example &example) {
  RandomProblem problem = emptyProblem(example.element, 2);
  std::string score = fmt::format(
      "score(%s : {}, %b, %h, %i, %j, %sq, %sk) {{\n{}burst.yield %x : {}\n}} "
      "sequence <@g, contiguous> : ",
      example.state(), example.score, example.state());
  problem.body = fmt::format(
      "!q = {0}\n!l = {1}\nfunc.func @f({2}) -> (!q, !l, !q, !q, !q) {{\n"
      "%o, %l = burst.attention %q, %k, %v {3}(!q, !q, !q) -> (!q, !l)\n"
      "%dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %do {3}"
      "(!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)\n"
      "return %o, %l, %dq, %dk, %dv : !q, !l, !q, !q, !q\n}}\n",
      tensorText({1, length, 2, 16}, example.element),
      tensorText({1, 2, length}, example.state()), inputs, score);
  return problem;
}

class ConditionTest : public ::testing::TestWithParam<Example> {
protected:
  std::unique_ptr<MLIRContext> context = makeContext();
};

/// Tensors with one element that is not as it should be: off by ten bounds, or
/// a number where there is none.
void spoil(const oracle::Result &expected, std::vector<double> &out,
           const oracle::Tolerance &tolerance) {
  for (size_t r = 0; r < expected.rows.size(); ++r) {
    double bound = expected.outBound(r, 0, tolerance);
    double &element = out[oracle::outOffset(expected.sizes, expected.rows[r])];
    if (std::isnan(element))
      element = 0;
    else if (std::isfinite(bound))
      element += 10 * bound;
    else
      continue;
    return;
  }
  FAIL() << "nothing is determined";
}

/// What comes of it when rank 0 never sees the keys of rank 1.
std::pair<std::vector<double>, std::vector<double>>
withoutHop(oracle::Problem problem) {
  problem.masks.push_back([](const oracle::Point &p) {
    return p.i >= length / 2 || p.j < length / 2;
  });
  oracle::Result result =
      oracle::evaluate(problem, oracle::allRows(problem.sizes));
  std::vector<double> out(problem.sizes.outElements());
  for (size_t r = 0; r < result.rows.size(); ++r)
    std::copy_n(result.out.begin() + int64_t(r) * 16, 16,
                out.begin() + oracle::outOffset(problem.sizes, result.rows[r]));
  return {out, result.lse};
}

} // namespace

TEST_P(ConditionTest, RightIsRightAndItsTwinsAreWrong) {
  RandomProblem problem = problemOf(GetParam());
  CompiledTrial trial(*context, problem);
  ASSERT_TRUE(trial.compile(cpu::Target::host()) && trial.run({}))
      << trial.trial.error;
  // The backward pass took the out and lse that were returned.
  Trial::Attention &attention = trial.trial.attentions.front();
  oracle::BackwardProblem &backward = trial.trial.backwards.front().problem;
  backward.out = attention.out->floats;
  backward.lse = attention.lse->floats;
  trial.check();

  const oracle::Tolerance &tolerance = toleranceOf(attention.element);
  oracle::Result expected = oracle::evaluate(
      attention.problem, oracle::allRows(attention.problem.sizes));
  std::vector<double> spoilt = attention.out->floats;
  ASSERT_NO_FATAL_FAILURE(spoil(expected, spoilt, tolerance));
  EXPECT_EQ(oracle::compare(expected, spoilt, {}, tolerance).out.failed, 1);
  if (StringRef(GetParam().name).starts_with("log_"))
    return; // Without a hop, too, all rows are NaN.
  auto [out, lse] = withoutHop(attention.problem);
  EXPECT_FALSE(oracle::compare(expected, out, lse, tolerance).pass());
}

INSTANTIATE_TEST_SUITE_P(Scores, ConditionTest, ::testing::ValuesIn(examples()),
                         [](const auto &info) { return info.param.name; });

TEST(ConditionTablesTest, GradientsOfTablesOfZerosAreWrong) {
  auto context = makeContext();
  for (const char *element : {"f32", "bf16"}) {
    RandomProblem problem = emptyProblem(element, 4);
    const char *text = "mask causal score alibi(%t : !t) sequence "
                       "<@g, contiguous>";
    problem.body = fmt::format(
        "!q = {0}\n!l = {1}\n!t = tensor<4xf32>\n"
        "func.func @f({2}, %t: !t {{burst.name = \"t\"}}) -> (!q, !l, !t) {{\n"
        "%o, %l = burst.attention %q, %k, %v {3} : (!q, !q, !q) -> (!q, !l)\n"
        "%dq, %dk, %dv, %dt = burst.attention_backward %q, %k, %v, %o, %l, %do "
        "{3} gradients [0] : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)\n"
        "return %o, %l, %dt : !q, !l, !t\n}}\n",
        tensorText({1, length, 4, 16}, element),
        tensorText({1, 4, length}, "f32"), inputs, text);
    const std::vector<double> slopes = {-0.25, -0.5, -1, -2};
    problem.tensors.emplace("t",
                            data::Tensor::of(data::DType::F32, {4}, slopes));
    CompiledTrial trial(*context, problem);
    ASSERT_TRUE(trial.compile(cpu::Target::host()) && trial.run({}))
        << trial.trial.error;
    Trial::Attention &attention = trial.trial.attentions.front();
    Trial::Backward &backward = trial.trial.backwards.front();
    backward.problem.out = attention.out->floats;
    backward.problem.lse = attention.lse->floats;
    trial.check();
    oracle::Gradients expected = oracle::evaluate(backward.problem, {}, {});
    EXPECT_EQ(oracle::compare(expected.tables[0], std::vector<double>(4),
                              toleranceOf(attention.element))
                  .failed,
              4)
        << element;
  }
}
