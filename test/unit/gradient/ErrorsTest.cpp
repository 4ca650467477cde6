//===- ErrorsTest.cpp - what cannot be differentiated ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/gradient/Score.h"

#include <gtest/gtest.h>

using namespace burst;
using namespace burst::test;

static std::string errorOf(const char *ops,
                           std::vector<Captured> captures = {}) {
  auto context = makeContext();
  Score score = Score::ofOps(*context, ops, std::move(captures));
  EXPECT_FALSE(score.isDifferentiable());
  return score.error();
}

static bool works(const char *ops, std::vector<Captured> captures = {}) {
  auto context = makeContext();
  Score score = Score::ofOps(*context, ops, std::move(captures));
  EXPECT_EQ(score.error(), "");
  return score.isDifferentiable();
}

TEST(GradientErrorsTest, NumbersMadeOfBits) {
  const char *expected =
      "'arith.bitcast' op cannot be differentiated: the score depends on the "
      "integer that it makes of a float; compute with floats, or use the "
      "integer in comparisons only";
  EXPECT_EQ(errorOf(R"(%n = arith.bitcast %s : f64 to i64
                       %r = arith.sitofp %n : i64 to f64)"),
            expected);
  EXPECT_EQ(errorOf(R"(%n = arith.bitcast %s : f64 to i64
                       %one = arith.constant 1 : i64
                       %m = arith.shrui %n, %one : i64
                       %r = arith.bitcast %m : i64 to f64)"),
            expected);
  EXPECT_EQ(errorOf(R"(%n = arith.bitcast %s : f64 to i64
                       %zero = arith.constant 0 : i64
                       %c = arith.cmpi eq, %i, %j : index
                       %m = arith.select %c, %n, %zero : i64
                       %r = arith.uitofp %m : i64 to f64)"),
            expected);
  EXPECT_EQ(errorOf(R"(%n = arith.bitcast %s : f64 to i64
                       %r = math.fpowi %s, %n : f64, i64)"),
            expected);
}

TEST(GradientErrorsTest, ByACapture) {
  const char *ops = R"(%x = tensor.extract %c0[%i] : tensor<8xf64>
                       %n = arith.bitcast %x : f64 to i64
                       %y = arith.bitcast %n : i64 to f64
                       %r = arith.addf %s, %y : f64)";
  std::vector<double> values(8, 1.0);
  EXPECT_NE(errorOf(ops, {{"tensor<8xf64>", values}}), "");
  // The score does not vary with what is not wanted.
  EXPECT_TRUE(works(ops, {{"tensor<8xf64>", values, false}}));
}

TEST(GradientErrorsTest, WhatTheResultDoesNotDependOn) {
  EXPECT_TRUE(works(R"(%n = arith.bitcast %s : f64 to i64
                       %unused = arith.sitofp %n : i64 to f64
                       %r = arith.negf %s : f64)"));
}

TEST(GradientErrorsTest, BitsThatDecide) {
  EXPECT_TRUE(works(R"(%n = arith.bitcast %s : f64 to i64
                       %odd = arith.trunci %n : i64 to i1
                       %zero = arith.constant 0.0 : f64
                       %r = arith.select %odd, %s, %zero : f64)"));
  EXPECT_TRUE(works(R"(%n = arith.bitcast %s : f64 to i64
                       %seven = arith.constant 7 : i64
                       %m = arith.andi %n, %seven : i64
                       %k = arith.index_cast %m : i64 to index
                       %x = tensor.extract %c0[%k] : tensor<8xf64>
                       %r = arith.addf %s, %x : f64)",
                    {{"tensor<8xf64>", std::vector<double>(8, 1.0)}}));
}
