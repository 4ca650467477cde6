//===- RegionsTest.cpp - gradients of whole scores ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/gradient/Score.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace burst;
using namespace burst::test;

namespace {
class RegionsTest : public ::testing::Test {
protected:
  Score of(const char *ops, std::vector<Captured> captures = {},
           const char *state = "f64") {
    Score score = Score::ofOps(*context, ops, std::move(captures), state);
    EXPECT_TRUE(score.isDifferentiable()) << score.error();
    return score;
  }
  /// Of a named score, at all positions.
  void checkNamed(const char *clause, const std::vector<Captured> &captures) {
    SCOPED_TRACE(clause);
    Score score(*context, clause, captures);
    ASSERT_TRUE(score.isDifferentiable()) << score.error();
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t i = 0; i < 8; i += 3)
          for (int64_t j = 0; j < 8; j += 2)
            EXPECT_TRUE(
                score.check(0.3 * static_cast<double>(i) - 0.7, {b, h, i, j}));
  }
  static std::vector<double> numbers(size_t count) {
    std::vector<double> result;
    for (size_t n = 0; n < count; ++n)
      result.push_back(std::sin(1.0 + 3.0 * static_cast<double>(n)));
    return result;
  }

  std::unique_ptr<mlir::MLIRContext> context = makeContext();
};
} // namespace

TEST_F(RegionsTest, NamedScores) {
  checkNamed("score softcap<1.5>", {});
  checkNamed("score alibi(%t0 : tensor<2xf64>)",
             {{"tensor<2xf64>", numbers(2)}});
  checkNamed("score alibi(%t0 : tensor<2x2xf64>)",
             {{"tensor<2x2xf64>", numbers(4)}});
  checkNamed("score bias(%t0 : tensor<8x8xf64>)",
             {{"tensor<8x8xf64>", numbers(64)}});
  checkNamed("score bias(%t0 : tensor<2x1x8x8xf64>)",
             {{"tensor<2x1x8x8xf64>", numbers(128)}});
  checkNamed("score bias(%t0 : tensor<1x2x1x8xf64>)",
             {{"tensor<1x2x1x8xf64>", numbers(16)}});
  checkNamed("score [softcap<1.5>, alibi](%t0 : tensor<2xf64>)",
             {{"tensor<2xf64>", numbers(2)}});
}

TEST_F(RegionsTest, NamedScoresOfShortFloats) {
  for (const char *element : {"f16", "bf16", "f32"}) {
    std::string slopes = std::string("tensor<2x") + element + ">";
    Score alibi(*context, "score alibi(%t0 : " + slopes + ")",
                {{slopes, {0.5, 0.25}}}, "f32");
    EXPECT_EQ(alibi.derivative(1, 1e-9, {0, 1, 2, 5}), 1e-9);
    EXPECT_DOUBLE_EQ(alibi.sum(0, 1), -3e-9);
    EXPECT_EQ(alibi.sum(0, 0), 0);
    std::string table = std::string("tensor<8x8x") + element + ">";
    Score bias(*context, "score bias(%t0 : " + table + ")",
               {{table, numbers(64)}}, "f32");
    EXPECT_EQ(bias.derivative(1, 1e-9, {0, 1, 2, 5}), 1e-9);
    EXPECT_EQ(bias.sum(0, 2 * 8 + 5), 1e-9);
  }
}

TEST_F(RegionsTest, NothingIsContributedToWhatIsNotWanted) {
  Score score(*context, "score alibi(%t0 : tensor<2xf64>)",
              {{"tensor<2xf64>", numbers(2), false}});
  ASSERT_TRUE(score.isDifferentiable());
  EXPECT_EQ(score.contributes(), std::vector<bool>{false});
  EXPECT_EQ(score.text(), "  burst.yield %arg7 : f64\n");
}

TEST_F(RegionsTest, NorToWhatTheScoreDoesNotDependOn) {
  Score score = of("%r = arith.addf %s, %c1 : f64",
                   {{"tensor<2xf64>", numbers(2)}, {"f64", {2}}, {"i32", {2}}});
  EXPECT_EQ(score.contributes(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(score.derivative(1, 0.5), 0.5);
  EXPECT_EQ(score.sum(1), 0.5);
}

/// What is found by the head alone is the head's, and so on; but only where it
/// always lies along one dimension.
TEST_F(RegionsTest, WhoContributesToOneElement) {
  auto shared = [&](const char *first, const char *second = nullptr) {
    std::string ops =
        std::string("%x = tensor.extract %c0[") + first +
        "] : tensor<8x8xf64>\n %y = tensor.extract %c0[" +
        (second ? second : first) +
        "] : tensor<8x8xf64>\n %p = arith.mulf %x, %y : f64\n %r = arith.mulf "
        "%p, %s : f64";
    return of(ops.c_str(), {{"tensor<8x8xf64>", numbers(64)}}).shared(0);
  };
  EXPECT_EQ(shared("%i, %j"), "bh");
  EXPECT_EQ(shared("%h, %j"), "b");
  EXPECT_EQ(shared("%i, %b"), "h");
  EXPECT_EQ(shared("%b, %h"), "");
  EXPECT_EQ(shared("%h, %i", "%h, %j"), "b");
  EXPECT_EQ(shared("%h, %i", "%i, %h"), "bh");
  EXPECT_EQ(shared("%h, %b", "%h, %h"), "b");
  // A half of the heads shares a row.
  Score halves = of(R"(%two = arith.constant 2 : index
                       %half = arith.divui %h, %two : index
                       %x = tensor.extract %c0[%half] : tensor<8xf64>
                       %r = arith.mulf %x, %s : f64)",
                    {{"tensor<8xf64>", numbers(8)}});
  EXPECT_EQ(halves.shared(0), "bh");
  // Nobody contributes.
  Score score =
      of("%r = arith.addf %s, %s : f64", {{"tensor<8xf64>", numbers(8)}});
  EXPECT_EQ(score.shared(0), "");
}

TEST_F(RegionsTest, OfAConstant) {
  Score score = of("%r = arith.constant 3.0 : f64");
  EXPECT_EQ(score.derivative(1, 0.5), 0);
}

TEST_F(RegionsTest, OfTheIdentity) {
  Score score(*context, R"(score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
                             burst.yield %s : f32 })",
              {}, "f32");
  ASSERT_TRUE(score.isDifferentiable());
  EXPECT_EQ(score.text(), "  burst.yield %arg7 : f32\n");
}

TEST_F(RegionsTest, EveryReadContributes) {
  Score score = of(R"(%x = tensor.extract %c0[%i] : tensor<8xf64>
                      %y = tensor.extract %c0[%j] : tensor<8xf64>
                      %p = arith.mulf %x, %y : f64
                      %r = arith.mulf %p, %s : f64)",
                   {{"tensor<8xf64>", numbers(8)}});
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 8; ++j)
      EXPECT_TRUE(score.check(0.7, {0, 0, i, j}));
}

TEST_F(RegionsTest, ContributionsAddUp) {
  Score score = of(R"(%x = tensor.extract %c0[%i] : tensor<8xf64>
                      %r = arith.mulf %x, %s : f64)",
                   {{"tensor<8xf64>", numbers(8)}});
  for (int64_t i : {2, 5, 2})
    score.derivative(0.5, 1, {0, 0, i, 0});
  EXPECT_EQ(score.sum(0, 2), 1.0);
  EXPECT_EQ(score.sum(0, 5), 0.5);
  EXPECT_EQ(score.sum(0, 3), 0.0);
}

TEST_F(RegionsTest, TablesOfIntegersChooseOnly) {
  Score score = of(R"(%k = tensor.extract %c1[%j] : tensor<8xindex>
                      %x = tensor.extract %c0[%k] : tensor<4xf64>
                      %f = arith.index_cast %k : index to i64
                      %n = arith.sitofp %f : i64 to f64
                      %p = arith.mulf %n, %x : f64
                      %r = arith.mulf %p, %s : f64)",
                   {{"tensor<4xf64>", numbers(4)},
                    {"tensor<8xindex>", {0, 3, 1, 2, 2, 1, 3, 0}, false}});
  for (int64_t j = 0; j < 8; ++j)
    EXPECT_TRUE(score.check(0.7, {0, 0, 0, j}));
}

/// Rounding on the way there is not repeated on the way back.
TEST_F(RegionsTest, AdjointsAreNotRounded) {
  Score score = of(R"(%h16 = arith.truncf %s : f32 to f16
                      %x = arith.mulf %h16, %c0 : f16
                      %r = arith.extf %x : f16 to f32)",
                   {{"f16", {3.0}}}, "f32");
  double g = 1e-9; // Zero in f16.
  EXPECT_NEAR(score.derivative(2.0, g), 3 * g, 1e-15);
  EXPECT_NEAR(score.sum(0), 2 * g, 1e-15);
  Score wide = of(R"(%d = arith.extf %s : f32 to f64
                     %x = math.exp %d : f64
                     %y = arith.mulf %x, %c0 : f64
                     %r = arith.truncf %y : f64 to f32)",
                  {{"f64", {0.5}}}, "f32");
  EXPECT_NEAR(wide.derivative(1.0, 2), std::exp(1.0), 1e-6);
  EXPECT_NEAR(wide.sum(0), 2 * std::exp(1.0), 1e-6);
}

TEST_F(RegionsTest, ReadsAsText) {
  Score bias(*context, "score bias(%t0 : tensor<8x8xbf16>)",
             {{"tensor<8x8xbf16>", numbers(64)}}, "f32");
  EXPECT_EQ(
      bias.text(),
      R"(  burst.contribute %arg7 to %arg8[%arg3, %arg4] : f32, tensor<8x8xbf16>
  burst.yield %arg7 : f32
)");
  // The last product of the score is not computed anew.
  Score softcap(*context, "score softcap<2.0>", {}, "f32");
  EXPECT_EQ(softcap.text(), R"(  %cst = arith.constant 2.000000e+00 : f32
  %0 = arith.divf %arg0, %cst : f32
  %1 = math.tanh %0 : f32
  %cst_0 = arith.constant 0.000000e+00 : f32
  %2 = arith.mulf %arg7, %cst : f32
  %cst_1 = arith.constant 1.000000e+00 : f32
  %3 = arith.subf %cst_1, %1 : f32
  %4 = arith.addf %1, %cst_1 : f32
  %5 = arith.mulf %3, %4 : f32
  %6 = arith.mulf %2, %5 : f32
  %7 = arith.cmpf oeq, %2, %cst_0 : f32
  %8 = arith.select %7, %2, %6 : f32
  %9 = arith.divf %8, %cst : f32
  burst.yield %9 : f32
)");
}
