//===- EvaluatorFloatTest.cpp - floats as upstream folds them -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Programs.h"
#include "test/unit/simulation/Snippet.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace mlir;
using namespace burst;
using namespace burst::test;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

/// One number, or both not a number; zeros differ in their sign.
static bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

/// The nearest number of a type, by LLVM.
static double nearest(double value, Type type) {
  APFloat number(value);
  bool losesInfo;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 APFloat::rmNearestTiesToEven, &losesInfo);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToDouble();
}

class EvaluatorFloatTest : public ::testing::Test {
protected:
  EvaluatorFloatTest() {
    Builder builder(context.get());
    types = {builder.getF64Type(), builder.getF32Type(), builder.getF16Type(),
             builder.getBF16Type()};
  }

  static std::string nameOf(Type type) { return llvm::formatv("{0}", type); }

  /// Numbers that a type holds: special ones, and random ones of magnitudes
  /// around 1.
  std::vector<double> operandsOf(Type type, int count = 8) {
    std::vector<double> values{0.0, -0.0,     1.0,       -1.0,      0.5,
                               3.0, infinity, -infinity, notANumber};
    std::normal_distribution<double> normal(0, 8);
    for (int n = 0; n < count; ++n)
      values.push_back(nearest(normal(random), type));
    return values;
  }

  std::unique_ptr<MLIRContext> context = makeContext();
  std::vector<FloatType> types;
  std::mt19937_64 random{1};
};

TEST_F(EvaluatorFloatTest, TruncationRoundsToNearestEven) {
  for (FloatType type : llvm::drop_begin(types)) {
    SCOPED_TRACE(nameOf(type));
    Snippet snippet = Snippet::ofOp(
        *context, "%a: f64", nameOf(type),
        llvm::formatv("arith.truncf %a : f64 to {0}", type).str());
    auto check = [&](double value) {
      ASSERT_TRUE(snippet.run(real(value)));
      EXPECT_TRUE(same(snippet.result().f, nearest(value, type)))
          << value << " gives " << snippet.result().f;
    };
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    double least = APFloat::getSmallest(semantics).convertToDouble();
    double normal = APFloat::getSmallestNormalized(semantics).convertToDouble();
    double most = APFloat::getLargest(semantics).convertToDouble();
    for (double value : {0.0,
                         -0.0,
                         infinity,
                         -infinity,
                         notANumber,
                         1.0,
                         least,
                         least / 2,
                         least * 0.50001,
                         least * 1.5,
                         least * 2.5,
                         normal,
                         normal - least / 2,
                         normal * 0.999,
                         most,
                         most * 1.0001,
                         most * 1.01,
                         most * 2,
                         1e308,
                         5e-324,
                         std::numeric_limits<double>::min()})
      for (double sign : {1.0, -1.0})
        check(sign * value);
    // Numbers of the type, the ties between them, and what is next to a tie.
    int digits = APFloat::semanticsPrecision(semantics) - 1;
    for (int n = 0; n < 2000; ++n) {
      double bits = std::ldexp(1.0, digits) + random() % (1 << digits);
      int exponent = static_cast<int>(random() % 80) - 60;
      for (double offset : {0.0, 0.5, 0.25, 0.5 + 0x1p-26, 0.5 - 0x1p-26})
        check(std::ldexp(bits + offset, exponent));
    }
    for (int n = 0; n < 2000; ++n)
      check(llvm::bit_cast<double>(random()));
  }
}

TEST_F(EvaluatorFloatTest, ExtensionKeepsNumbers) {
  for (FloatType type : llvm::drop_begin(types)) {
    Snippet snippet =
        Snippet::ofOp(*context, "%a: " + nameOf(type), "f64",
                      llvm::formatv("arith.extf %a : {0} to f64", type).str());
    for (double value : operandsOf(type)) {
      ASSERT_TRUE(snippet.run(real(value)));
      EXPECT_TRUE(same(snippet.result().f, value));
    }
  }
}

TEST_F(EvaluatorFloatTest, ArithmeticAgreesWithUpstream) {
  for (StringRef op : {"addf", "subf", "mulf", "divf", "remf", "minimumf",
                       "maximumf", "minnumf", "maxnumf"})
    for (FloatType type : types) {
      SCOPED_TRACE(op.str() + " " + nameOf(type));
      Snippet snippet = Snippet::ofOp(
          *context, llvm::formatv("%a: {0}, %b: {0}", type).str(), nameOf(type),
          llvm::formatv("arith.{0} %a, %b : {1}", op, type).str());
      unsigned folded = 0;
      auto values = operandsOf(type);
      for (double a : values)
        for (double b : values) {
          ASSERT_TRUE(snippet.run({real(a), real(b)}));
          auto expected = snippet.fold({real(a), real(b)});
          if (!expected)
            continue;
          ++folded;
          // The machine keeps f64: rounding it once gives the type's result.
          double found = nearest(snippet.result().f, type);
          EXPECT_TRUE(same(found, expected->f))
              << a << ", " << b << " gives " << found << ", not "
              << expected->f;
        }
      EXPECT_GT(folded, op == "remf" ? 0 : values.size() * values.size() / 2);
    }
}

TEST_F(EvaluatorFloatTest, NegationAgreesWithUpstream) {
  Snippet snippet =
      Snippet::ofOp(*context, "%a: f32", "f32", "arith.negf %a : f32");
  for (double a : operandsOf(types[1])) {
    ASSERT_TRUE(snippet.run(real(a)));
    EXPECT_TRUE(same(snippet.result().f, snippet.fold(real(a))->f)) << a;
  }
}

TEST_F(EvaluatorFloatTest, ComparisonsAgreeWithUpstream) {
  for (StringRef predicate :
       {"false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt",
        "uge", "ult", "ule", "une", "uno", "true"}) {
    SCOPED_TRACE(predicate.str());
    Snippet snippet = Snippet::ofOp(
        *context, "%a: f32, %b: f32", "i1",
        llvm::formatv("arith.cmpf {0}, %a, %b : f32", predicate).str());
    for (double a : operandsOf(types[1]))
      for (double b : operandsOf(types[1])) {
        ASSERT_TRUE(snippet.run({real(a), real(b)}));
        auto expected = snippet.fold({real(a), real(b)});
        ASSERT_TRUE(expected);
        EXPECT_EQ(snippet.result().i, expected->i) << a << ", " << b;
      }
  }
}

TEST_F(EvaluatorFloatTest, IntegersToFloatsRoundOnce) {
  // By way of f64, a number next to a tie of f32 would round twice.
  std::vector<int64_t> values{0,
                              1,
                              -1,
                              16777217,
                              -16777217,
                              (int64_t{1} << 62) + 1,
                              (int64_t{1} << 60) + (int64_t{1} << 36) + 1,
                              -(int64_t{1} << 60) - (int64_t{1} << 36) - 1,
                              (int64_t{1} << 60) + (int64_t{1} << 36) - 1,
                              std::numeric_limits<int64_t>::max(),
                              std::numeric_limits<int64_t>::min()};
  for (int n = 0; n < 500; ++n)
    values.push_back(static_cast<int64_t>(random()) >> (random() % 64));
  for (StringRef op : {"sitofp", "uitofp"})
    for (unsigned width : {1, 8, 16, 32, 64})
      for (FloatType type : types) {
        SCOPED_TRACE(llvm::formatv("{0} i{1} {2}", op, width, type).str());
        Snippet snippet = Snippet::ofOp(
            *context, llvm::formatv("%a: i{0}", width).str(), nameOf(type),
            llvm::formatv("arith.{0} %a : i{1} to {2}", op, width, type).str());
        for (int64_t value : values) {
          Scalar a = integer(signExtend(value, width));
          ASSERT_TRUE(snippet.run(a));
          auto expected = snippet.fold(a);
          ASSERT_TRUE(expected);
          EXPECT_TRUE(same(snippet.result().f, expected->f))
              << a.i << " gives " << snippet.result().f << ", not "
              << expected->f;
        }
      }
}

TEST_F(EvaluatorFloatTest, FloatsToIntegersAgreeWithUpstream) {
  std::vector<double> values{
      0.0,    -0.0,    0.5,    -0.5,   0.999,   1.5,      -1.5,      127.9,
      128.0,  -128.9,  -129.0, 255.0,  256.0,   infinity, -infinity, notANumber,
      0x1p31, -0x1p31, 0x1p62, 0x1p63, -0x1p63, 0x1p64,   1e300};
  std::normal_distribution<double> normal(0, 300);
  for (int n = 0; n < 100; ++n)
    values.push_back(normal(random));
  for (StringRef op : {"fptosi", "fptoui"})
    for (unsigned width : {1, 8, 16, 32, 64}) {
      SCOPED_TRACE(llvm::formatv("{0} i{1}", op, width).str());
      Snippet snippet = Snippet::ofOp(
          *context, "%a: f64", llvm::formatv("i{0}", width).str(),
          llvm::formatv("arith.{0} %a : f64 to i{1}", op, width).str());
      unsigned folded = 0;
      for (double value : values) {
        bool isDefined = snippet.run(real(value));
        auto expected = snippet.fold(real(value));
        ASSERT_EQ(isDefined, expected.has_value()) << value;
        if (!expected)
          continue;
        ++folded;
        EXPECT_EQ(snippet.result().i, expected->i) << value;
      }
      EXPECT_GT(folded, 3u);
    }
}

TEST_F(EvaluatorFloatTest, BitcastsAgreeWithUpstream) {
  for (FloatType type : types) {
    unsigned width = type.getWidth();
    Snippet toBits = Snippet::ofOp(
        *context, "%a: " + nameOf(type), llvm::formatv("i{0}", width).str(),
        llvm::formatv("arith.bitcast %a : {0} to i{1}", type, width).str());
    Snippet fromBits = Snippet::ofOp(
        *context, llvm::formatv("%a: i{0}", width).str(), nameOf(type),
        llvm::formatv("arith.bitcast %a : i{0} to {1}", width, type).str());
    for (double value : operandsOf(type, 100)) {
      ASSERT_TRUE(toBits.run(real(value)));
      if (!std::isnan(value)) { // The payload of a NaN is nobody's.
        EXPECT_EQ(toBits.result().i, toBits.fold(real(value))->i) << value;
      }
      Scalar bits = toBits.result();
      ASSERT_TRUE(fromBits.run(bits));
      EXPECT_TRUE(same(fromBits.result().f, value)) << value;
      EXPECT_TRUE(same(fromBits.result().f, fromBits.fold(bits)->f)) << value;
    }
  }
}

TEST_F(EvaluatorFloatTest, FunctionsAgreeWithUpstream) {
  for (StringRef op :
       {"absf",  "acos",  "acosh", "asin",  "asinh",     "atan",
        "atanh", "cbrt",  "ceil",  "cos",   "cosh",      "erf",
        "erfc",  "exp",   "exp2",  "expm1", "floor",     "log",
        "log10", "log1p", "log2",  "round", "roundeven", "rsqrt",
        "sin",   "sinh",  "sqrt",  "tan",   "tanh",      "trunc"}) {
    SCOPED_TRACE(op.str());
    Snippet snippet =
        Snippet::ofOp(*context, "%a: f64", "f64",
                      llvm::formatv("math.{0} %a : f64", op).str());
    ASSERT_TRUE(snippet.isValid());
    for (double a : operandsOf(types[0], 40)) {
      ASSERT_TRUE(snippet.run(real(a)));
      auto expected = snippet.fold(real(a));
      if (!expected)
        continue;
      double found = snippet.result().f;
      EXPECT_TRUE(same(found, expected->f) || std::abs(found - expected->f) <=
                                                  1e-14 * std::abs(expected->f))
          << a << " gives " << found << ", not " << expected->f;
    }
  }
}

TEST_F(EvaluatorFloatTest, FunctionsOfTwoAgreeWithUpstream) {
  for (StringRef op : {"atan2", "copysign", "powf"}) {
    SCOPED_TRACE(op.str());
    Snippet snippet =
        Snippet::ofOp(*context, "%a: f64, %b: f64", "f64",
                      llvm::formatv("math.{0} %a, %b : f64", op).str());
    for (double a : operandsOf(types[0]))
      for (double b : operandsOf(types[0])) {
        ASSERT_TRUE(snippet.run({real(a), real(b)}));
        if (op == "atan2" && a == 0 && b == 0)
          continue; // Upstream folds it to NaN, and runs what C says.
        if (auto expected = snippet.fold({real(a), real(b)}))
          EXPECT_TRUE(same(snippet.result().f, expected->f)) << a << ", " << b;
      }
  }
}

TEST_F(EvaluatorFloatTest, WholePowers) {
  Snippet snippet = Snippet::ofOp(*context, "%a: f64, %n: i32", "f64",
                                  "math.fpowi %a, %n : f64, i32");
  auto power = [&](double a, int64_t n) {
    EXPECT_TRUE(snippet.run({real(a), integer(n)}));
    return snippet.result().f;
  };
  EXPECT_EQ(power(-1.5, 3), -3.375);
  EXPECT_EQ(power(2, -2), 0.25);
  EXPECT_EQ(power(0, 0), 1);
  EXPECT_EQ(power(-0.0, -1), -infinity);
  EXPECT_TRUE(std::isnan(power(notANumber, 1)));
}

TEST_F(EvaluatorFloatTest, FusedMultiplyAddRoundsOnce) {
  Snippet snippet = Snippet::ofOp(*context, "%a: f64, %b: f64, %c: f64", "f64",
                                  "math.fma %a, %b, %c : f64");
  double a = 1 + 0x1p-30, c = -(1 + 0x1p-29);
  ASSERT_TRUE(snippet.run({real(a), real(a), real(c)}));
  EXPECT_EQ(snippet.result().f, 0x1p-60);
}

TEST_F(EvaluatorFloatTest, TablesOfFloats) {
  auto table = tableOf(types[1], {3}, {}, {0.5, -1.5, infinity});
  Snippet snippet(*context, "%i: index, %t: tensor<3xf32>", "f32", R"(
    %r = tensor.extract %t[%i] : tensor<3xf32>
    return %r : f32)",
                  table);
  for (int64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(snippet.run(integer(i)));
    EXPECT_EQ(snippet.result().f, table.table->floats[i]);
  }
  ASSERT_TRUE(snippet.run(integer(3))); // is clamped
  EXPECT_EQ(snippet.result().f, infinity);
}
