//===- OpsTest.cpp - the derivative of each op ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/gradient/Score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

using namespace burst;
using namespace burst::test;

namespace {

struct Case {
  const char *name;
  const char *ops; ///< %r, of %s and the captured %c0
  double from = -3, to = 3;
  double secondFrom = -3, secondTo = 3;
};

/// For gtest.
void PrintTo(const Case &one, std::ostream *stream) { *stream << one.name; }

class OpsTest : public ::testing::TestWithParam<Case> {};

} // namespace

TEST_P(OpsTest, AgreesWithFiniteDifferences) {
  const Case &one = GetParam();
  auto context = makeContext();
  std::mt19937_64 random{7};
  std::uniform_real_distribution<double> first(one.from, one.to);
  std::uniform_real_distribution<double> second(one.secondFrom, one.secondTo);
  int checked = 0;
  constexpr int trials = 60;
  for (int trial = 0; trial < trials; ++trial) {
    Score score = Score::ofOps(*context, one.ops, {{"f64", {second(random)}}});
    ASSERT_TRUE(score.isDifferentiable()) << score.error();
    checked += score.check(first(random)) ? 1 : 0;
    if (HasFailure())
      return;
  }
  EXPECT_GT(checked, trials * 3 / 4);
}

static const Case unary[] = {
    {"absf", "%r = math.absf %s : f64"},
    {"acos", "%r = math.acos %s : f64", -0.95, 0.95},
    {"acosh", "%r = math.acosh %s : f64", 1.05, 4},
    {"asin", "%r = math.asin %s : f64", -0.95, 0.95},
    {"asinh", "%r = math.asinh %s : f64"},
    {"atan", "%r = math.atan %s : f64"},
    {"atanh", "%r = math.atanh %s : f64", -0.95, 0.95},
    {"cbrt", "%r = math.cbrt %s : f64"},
    {"ceil", "%r = math.ceil %s : f64"},
    {"cos", "%r = math.cos %s : f64"},
    {"cosh", "%r = math.cosh %s : f64"},
    {"erf", "%r = math.erf %s : f64"},
    {"erfc", "%r = math.erfc %s : f64"},
    {"exp", "%r = math.exp %s : f64"},
    {"exp2", "%r = math.exp2 %s : f64"},
    {"expm1", "%r = math.expm1 %s : f64"},
    {"floor", "%r = math.floor %s : f64"},
    {"log", "%r = math.log %s : f64", 0.1, 9},
    {"log10", "%r = math.log10 %s : f64", 0.1, 9},
    {"log1p", "%r = math.log1p %s : f64", -0.9, 9},
    {"log2", "%r = math.log2 %s : f64", 0.1, 9},
    {"negf", "%r = arith.negf %s : f64"},
    {"round", "%r = math.round %s : f64"},
    {"roundeven", "%r = math.roundeven %s : f64"},
    {"rsqrt", "%r = math.rsqrt %s : f64", 0.1, 9},
    {"sin", "%r = math.sin %s : f64"},
    {"sinh", "%r = math.sinh %s : f64"},
    {"sqrt", "%r = math.sqrt %s : f64", 0.1, 9},
    {"tan", "%r = math.tan %s : f64", -1.4, 1.4},
    {"tanh", "%r = math.tanh %s : f64"},
    {"trunc", "%r = math.trunc %s : f64"},
    {"fptosi", R"(%n = arith.fptosi %s : f64 to i32
                  %f = arith.sitofp %n : i32 to f64
                  %r = arith.mulf %f, %s : f64)"},
    {"fptoui", R"(%n = arith.fptoui %s : f64 to i8
                  %f = arith.uitofp %n : i8 to f64
                  %r = arith.mulf %f, %s : f64)",
     0, 9},
};

static const Case binary[] = {
    {"addf", "%r = arith.addf %s, %c0 : f64"},
    {"subf", "%r = arith.subf %s, %c0 : f64"},
    {"mulf", "%r = arith.mulf %s, %c0 : f64"},
    {"square", "%r = arith.mulf %s, %s : f64"},
    {"divf", "%r = arith.divf %s, %c0 : f64", -3, 3, 0.5, 3},
    {"divf_of_negative", "%r = arith.divf %c0, %s : f64", -3, -0.5},
    {"remf", "%r = arith.remf %s, %c0 : f64", -9, 9, 0.7, 3},
    {"remf_by_negative", "%r = arith.remf %s, %c0 : f64", -9, 9, -3, -0.7},
    {"minimumf", "%r = arith.minimumf %s, %c0 : f64"},
    {"maximumf", "%r = arith.maximumf %s, %c0 : f64"},
    {"minnumf", "%r = arith.minnumf %s, %c0 : f64"},
    {"maxnumf", "%r = arith.maxnumf %s, %c0 : f64"},
    {"atan2", "%r = math.atan2 %s, %c0 : f64"},
    {"copysign", "%r = math.copysign %s, %c0 : f64"},
    {"powf", "%r = math.powf %s, %c0 : f64", 0.3, 3},
    {"powf_of_capture", "%r = math.powf %c0, %s : f64", -3, 3, 0.3, 3},
    {"fma", "%r = math.fma %s, %c0, %s : f64"},
    {"fma_addend", "%r = math.fma %c0, %c0, %s : f64"},
    {"select", R"(%less = arith.cmpf olt, %s, %c0 : f64
                  %x = arith.mulf %s, %c0 : f64
                  %y = math.sin %c0 : f64
                  %r = arith.select %less, %x, %y : f64)"},
    {"capture_alone", "%r = arith.addf %c0, %c0 : f64"},
    {"powf_of_constant_exponent", R"(%n = arith.constant 3.0 : f64
                                     %p = math.powf %s, %n : f64
                                     %r = arith.mulf %p, %c0 : f64)"},
    {"fpowi", R"(%n = arith.constant -3 : i32
                 %p = math.fpowi %s, %n : f64, i32
                 %r = arith.mulf %p, %c0 : f64)",
     0.5, 3},
    {"fpowi_of_few_bits", R"(%n = arith.constant 1 : i1
                             %p = math.fpowi %s, %n : f64, i1
                             %r = arith.mulf %p, %c0 : f64)",
     0.5, 3},
    {"fpowi_of_positions", R"(%n = arith.index_cast %sq : index to i64
                              %p = math.fpowi %c0, %n : f64, i64
                              %r = arith.addf %p, %s : f64)"},
    {"bits_in_a_comparison", R"(%n = arith.bitcast %s : f64 to i64
                                %zero = arith.constant 0 : i64
                                %c = arith.cmpi slt, %n, %zero : i64
                                %x = arith.mulf %s, %c0 : f64
                                %r = arith.select %c, %s, %x : f64)"},
    {"bits_that_select", R"(%n = arith.bitcast %s : f64 to i64
                            %last = arith.constant 63 : i64
                            %sign = arith.shrui %n, %last : i64
                            %c = arith.trunci %sign : i64 to i1
                            %x = arith.select %c, %c0, %s : f64
                            %r = arith.mulf %x, %c0 : f64)"},
};

static std::string nameOf(const ::testing::TestParamInfo<Case> &info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Unary, OpsTest, ::testing::ValuesIn(unary), nameOf);
INSTANTIATE_TEST_SUITE_P(Binary, OpsTest, ::testing::ValuesIn(binary), nameOf);

//===----------------------------------------------------------------------===//
// Where there is no finite difference
//===----------------------------------------------------------------------===//

namespace {
class EdgesTest : public ::testing::Test {
protected:
  Score of(const char *ops, std::vector<Captured> captures = {}) {
    Score score = Score::ofOps(*context, ops, std::move(captures));
    EXPECT_TRUE(score.isDifferentiable()) << score.error();
    return score;
  }
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
};

constexpr double infinity = std::numeric_limits<double>::infinity();
} // namespace

TEST_F(EdgesTest, EqualOperandsOfAMaximumGiveAllToTheFirst) {
  for (const char *op : {"maximumf", "minimumf", "maxnumf", "minnumf"}) {
    std::string ops = std::string("%r = arith.") + op + " %s, %c0 : f64";
    Score score = of(ops.c_str(), {{"f64", {2.0}}});
    EXPECT_EQ(score.derivative(2.0, 0.5), 0.5);
    EXPECT_EQ(score.sum(0), 0);
  }
}

TEST_F(EdgesTest, WhatIsNoNumberIsNotChosen) {
  for (const char *op : {"maxnumf", "minnumf"}) {
    std::string ops = std::string("%r = arith.") + op + " %s, %c0 : f64";
    Score score = of(ops.c_str(), {{"f64", {NAN}}});
    EXPECT_EQ(score.derivative(2.0, 0.5), 0.5);
    EXPECT_EQ(score.sum(0), 0);
    Score other = of(ops.c_str(), {{"f64", {2.0}}});
    EXPECT_EQ(other.derivative(NAN, 0.5), 0);
    EXPECT_EQ(other.sum(0), 0.5);
  }
}

TEST_F(EdgesTest, AbsoluteValueAtZero) {
  Score score = of("%r = math.absf %s : f64");
  EXPECT_EQ(score.derivative(0.0, 2), 0);
  EXPECT_EQ(score.derivative(-0.0, 2), 0);
  EXPECT_EQ(score.derivative(-3.0, 2), -2);
}

TEST_F(EdgesTest, PowersOfZero) {
  Score score = of("%r = math.powf %s, %c0 : f64", {{"f64", {2.0}}});
  EXPECT_EQ(score.derivative(0.0, 1), 0);
  EXPECT_EQ(score.sum(0), 0);
  Score constant = of("%r = math.powf %s, %c0 : f64", {{"f64", {0.0}, false}});
  EXPECT_EQ(constant.derivative(0.0, 1), 0);
  Score whole = of(R"(%n = arith.constant 0 : i32
                      %r = math.fpowi %s, %n : f64, i32)");
  EXPECT_EQ(whole.derivative(0.0, 1), 0);
}

TEST_F(EdgesTest, InfiniteWhereItIs) {
  EXPECT_EQ(of("%r = math.sqrt %s : f64").derivative(0.0, 1), infinity);
  EXPECT_EQ(of("%r = math.log %s : f64").derivative(0.0, -1), -infinity);
}

/// The arm that is not taken has an infinite derivative, or is NaN itself.
TEST_F(EdgesTest, ArmsThatAreNotTakenCountNothing) {
  struct {
    const char *op;
    double s;
  } cases[] = {
      {"math.sqrt %s : f64", 0},         {"math.sqrt %s : f64", -1},
      {"math.rsqrt %s : f64", 0},        {"math.log %s : f64", 0},
      {"math.log %s : f64", -1},         {"math.log2 %s : f64", 0},
      {"math.log10 %s : f64", 0},        {"math.log1p %s : f64", -1},
      {"math.cbrt %s : f64", 0},         {"math.asin %s : f64", 1},
      {"math.asin %s : f64", 2},         {"math.acos %s : f64", -1},
      {"math.acosh %s : f64", 1},        {"math.atanh %s : f64", 1},
      {"math.exp %s : f64", 1e4},        {"math.exp2 %s : f64", 1e4},
      {"math.expm1 %s : f64", 1e4},      {"math.sinh %s : f64", 1e4},
      {"math.cosh %s : f64", 1e4},       {"math.sin %s : f64", infinity},
      {"math.tan %s : f64", infinity},   {"math.tanh %s : f64", NAN},
      {"math.erf %s : f64", NAN},        {"math.atan %s : f64", NAN},
      {"math.absf %s : f64", infinity},  {"math.asinh %s : f64", NAN},
      {"arith.divf %c0, %s : f64", 0},   {"arith.divf %s, %z : f64", 1},
      {"arith.remf %c0, %s : f64", 0},   {"arith.mulf %s, %c1 : f64", 1},
      {"math.powf %s, %c0 : f64", -1},   {"math.powf %s, %c0 : f64", 0},
      {"math.powf %c0, %s : f64", 1e9},  {"math.atan2 %s, %z : f64", 0},
      {"math.fma %s, %c1, %s : f64", 1}, {"math.copysign %s, %c1 : f64", NAN},
  };
  for (auto [op, s] : cases) {
    std::string ops = std::string("%z = arith.constant 0.0 : f64\n%x = ") + op +
                      R"(
        %c = arith.cmpi eq, %i, %j : index
        %r = arith.select %c, %s, %x : f64)";
    Score score = of(ops.c_str(), {{"f64", {-2.5}}, {"f64", {infinity}}});
    EXPECT_EQ(score.derivative(s, 1), 1) << op << " at " << s;
    EXPECT_EQ(score.sum(0), 0) << op << " at " << s;
    EXPECT_EQ(score.sum(1), 0) << op << " at " << s;
  }
}

/// As of a probability that underflows.
TEST_F(EdgesTest, NothingComesOfNothing) {
  Score score = of(R"(%l = math.log %c0 : f64
                      %r = arith.addf %s, %l : f64)",
                   {{"f64", {0.0}}});
  EXPECT_EQ(score.derivative(1, 0), 0);
  EXPECT_EQ(score.sum(0), 0);
}
