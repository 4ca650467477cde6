//===- EvaluatorTest.cpp - integers, control flow and tables --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ground is upstream's constant folding: what it folds, the machine must
// give as well.
//
//===----------------------------------------------------------------------===//
#include "test/unit/simulation/Programs.h"
#include "test/unit/simulation/Snippet.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace mlir;
using namespace burst;
using namespace burst::test;

static constexpr StringLiteral integerTypes[] = {"i1",  "i8",  "i16",
                                                 "i32", "i64", "index"};

static unsigned widthOf(StringRef type) {
  unsigned width = 64;
  (void)type.drop_front().getAsInteger(10, width);
  return type == "index" ? 64 : width;
}

/// Where arithmetic wraps, and small numbers; then random ones.
static std::vector<int64_t> operandsOf(unsigned width,
                                       std::mt19937_64 &random) {
  int64_t least =
      signExtend(static_cast<int64_t>(uint64_t{1} << (width - 1)), width);
  // The greatest two, of 64 bits as well.
  int64_t greatest = ~least;
  std::vector<int64_t> values;
  for (int64_t value :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{2}, int64_t{-2},
        int64_t{3}, int64_t{7}, int64_t{-7}, int64_t{width - 1},
        int64_t{width / 2}, least, least + 1, greatest, greatest - 1})
    values.push_back(signExtend(value, width));
  for (int n = 0; n < 6; ++n) {
    // Of all magnitudes, not only large ones.
    int64_t drawn = static_cast<int64_t>(random());
    values.push_back(signExtend(drawn >> (random() % 64), width));
  }
  return values;
}

class EvaluatorTest : public ::testing::Test {
protected:
  std::unique_ptr<MLIRContext> context = makeContext();
  std::mt19937_64 random{1};
};

//===----------------------------------------------------------------------===//
// Integer ops, as upstream folds them
//===----------------------------------------------------------------------===//

/// By zero, or the least number by -1, a division has no result, and by the
/// width a shift.
static bool isUndefined(StringRef op, int64_t a, int64_t b, unsigned width) {
  if (op.starts_with("sh"))
    return b < 0 || b >= width;
  if (!op.contains("div") && !op.contains("rem"))
    return false;
  int64_t least =
      signExtend(static_cast<int64_t>(uint64_t{1} << (width - 1)), width);
  return b == 0 || (op.contains('s') && a == least && b == -1);
}

TEST_F(EvaluatorTest, BinaryOpsAgreeWithUpstream) {
  for (StringRef op :
       {"addi",      "subi",      "muli",       "divsi", "divui",
        "ceildivsi", "ceildivui", "floordivsi", "remsi", "remui",
        "andi",      "ori",       "xori",       "shli",  "shrsi",
        "shrui",     "minsi",     "maxsi",      "minui", "maxui"})
    for (StringRef type : integerTypes) {
      SCOPED_TRACE((op + " " + type).str());
      Snippet snippet = Snippet::ofOp(
          *context, llvm::formatv("%a: {0}, %b: {0}", type).str(), type,
          llvm::formatv("arith.{0} %a, %b : {1}", op, type).str());
      ASSERT_TRUE(snippet.isValid());
      // div is also a part of "divui": only the name in front of 's' is signed.
      StringRef name = op.ends_with("ui") ? op.drop_back(2) : op;
      auto values = operandsOf(widthOf(type), random);
      unsigned folded = 0, undefined = 0;
      for (int64_t a : values)
        for (int64_t b : values) {
          bool done = snippet.run({integer(a), integer(b)});
          if (isUndefined(name, a, b, widthOf(type))) {
            ++undefined;
            EXPECT_FALSE(done) << a << ", " << b;
            EXPECT_NE(snippet.fault().find(op.starts_with("sh") ? "shifts"
                                                                : "divides"),
                      std::string::npos);
            continue;
          }
          ASSERT_TRUE(done) << a << ", " << b;
          auto expected = snippet.fold({integer(a), integer(b)});
          if (!expected)
            continue;
          ++folded;
          EXPECT_EQ(snippet.result().i, expected->i) << a << ", " << b;
        }
      unsigned total = values.size() * values.size() - undefined;
      EXPECT_GT(folded, total * 3 / 4);
    }
}

TEST_F(EvaluatorTest, ComparisonsAgreeWithUpstream) {
  for (StringRef predicate :
       {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"})
    for (StringRef type : integerTypes) {
      SCOPED_TRACE((predicate + " " + type).str());
      Snippet snippet = Snippet::ofOp(
          *context, llvm::formatv("%a: {0}, %b: {0}", type).str(), "i1",
          llvm::formatv("arith.cmpi {0}, %a, %b : {1}", predicate, type).str());
      for (int64_t a : operandsOf(widthOf(type), random))
        for (int64_t b : operandsOf(widthOf(type), random)) {
          ASSERT_TRUE(snippet.run({integer(a), integer(b)}));
          auto expected = snippet.fold({integer(a), integer(b)});
          ASSERT_TRUE(expected);
          EXPECT_EQ(snippet.result().i, expected->i) << a << ", " << b;
        }
    }
}

TEST_F(EvaluatorTest, SelectAndAbsoluteValueAgreeWithUpstream) {
  for (StringRef type : integerTypes) {
    Snippet select = Snippet::ofOp(
        *context, llvm::formatv("%c: i1, %a: {0}, %b: {0}", type).str(), type,
        llvm::formatv("arith.select %c, %a, %b : {0}", type).str());
    Snippet absolute =
        Snippet::ofOp(*context, llvm::formatv("%a: {0}", type).str(), type,
                      llvm::formatv("math.absi %a : {0}", type).str());
    for (int64_t a : operandsOf(widthOf(type), random)) {
      ASSERT_TRUE(absolute.run(integer(a)));
      if (auto expected = absolute.fold(integer(a)))
        EXPECT_EQ(absolute.result().i, expected->i) << a << " " << type.str();
      for (int64_t b : operandsOf(widthOf(type), random))
        for (int64_t c : {0, -1}) {
          ASSERT_TRUE(select.run({integer(c), integer(a), integer(b)}));
          EXPECT_EQ(select.result().i, c != 0 ? a : b);
        }
    }
  }
}

TEST_F(EvaluatorTest, ConversionsAgreeWithUpstream) {
  for (StringRef op :
       {"extsi", "extui", "trunci", "index_cast", "index_castui"})
    for (StringRef from : integerTypes)
      for (StringRef to : integerTypes) {
        bool isCast = op.starts_with("index");
        bool hasIndex = (from == "index") != (to == "index");
        if (isCast != hasIndex || from == to)
          continue;
        if (!isCast && (from == "index" ||
                        (widthOf(from) < widthOf(to)) != op.starts_with("ext")))
          continue;
        SCOPED_TRACE((op + " " + from + " to " + to).str());
        Snippet snippet = Snippet::ofOp(
            *context, ("%a: " + from).str(), to,
            llvm::formatv("arith.{0} %a : {1} to {2}", op, from, to).str());
        for (int64_t a : operandsOf(widthOf(from), random)) {
          ASSERT_TRUE(snippet.run(integer(a)));
          auto expected = snippet.fold(integer(a));
          ASSERT_TRUE(expected);
          EXPECT_EQ(snippet.result().i, expected->i) << a;
        }
      }
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

TEST_F(EvaluatorTest, ALoopYieldsAllItsValuesAtOnce) {
  // Swapped without a temporary, both would become the same number.
  Snippet snippet(*context, "%n: index", "index, index", R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %b = %c1)
        -> (index, index) {
      %sum = arith.addi %a, %b : index
      scf.yield %b, %sum : index, index
    }
    return %r#0, %r#1 : index, index)");
  std::vector<int64_t> fibonacci{0, 1, 1, 2, 3, 5, 8, 13, 21};
  for (int64_t n = 0; n < 8; ++n) {
    ASSERT_TRUE(snippet.run(integer(n)));
    EXPECT_EQ(snippet.result(0).i, fibonacci[n]);
    EXPECT_EQ(snippet.result(1).i, fibonacci[n + 1]);
  }
}

TEST_F(EvaluatorTest, NestedLoopsAndBranches) {
  Snippet snippet(*context, "%n: index, %step: index", "index, index", R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r:2 = scf.for %i = %c1 to %n step %step
        iter_args(%odd = %c0, %even = %c0) -> (index, index) {
      %inner:2 = scf.for %j = %i to %n step %c1
          iter_args(%x = %odd, %y = %even) -> (index, index) {
        %product = arith.muli %i, %j : index
        %bit = arith.remui %product, %c2 : index
        %isOdd = arith.cmpi ne, %bit, %c0 : index
        %both:2 = scf.if %isOdd -> (index, index) {
          %more = arith.addi %x, %product : index
          scf.yield %more, %y : index, index
        } else {
          %more = arith.addi %y, %c1 : index
          scf.yield %x, %more : index, index
        }
        scf.yield %both#0, %both#1 : index, index
      }
      scf.yield %inner#0, %inner#1 : index, index
    }
    return %r#0, %r#1 : index, index)");
  for (int64_t n = 0; n < 9; ++n)
    for (int64_t step = 1; step < 4; ++step) {
      int64_t odd = 0, even = 0;
      for (int64_t i = 1; i < n; i += step)
        for (int64_t j = i; j < n; ++j)
          i *j % 2 != 0 ? odd += i *j : even += 1;
      ASSERT_TRUE(snippet.run({integer(n), integer(step)}));
      EXPECT_EQ(snippet.result(0).i, odd) << n << " by " << step;
      EXPECT_EQ(snippet.result(1).i, even) << n << " by " << step;
    }
}

TEST_F(EvaluatorTest, BoundsOfLoopsMayBeUnsigned) {
  // From 2^63 - 2 up to 2^63 + 2: nothing, if the bounds were signed.
  Snippet snippet(*context, "%low: index, %high: index", "index", R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for unsigned %i = %low to %high step %c1 iter_args(%a = %c0)
        -> (index) {
      %next = arith.addi %a, %c1 : index
      scf.yield %next : index
    }
    return %r : index)");
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  ASSERT_TRUE(snippet.run({integer(most - 1), integer(-most + 1)}));
  EXPECT_EQ(snippet.result().i, 4);
  ASSERT_TRUE(snippet.run({integer(-1), integer(1)}));
  EXPECT_EQ(snippet.result().i, 0);
}

TEST_F(EvaluatorTest, ALoopThatDoesNotAdvanceIsAFault) {
  // Upstream leaves it undefined; a hang would be the worst of all meanings.
  Snippet snippet(*context, "%step: index", "index", R"(
    %c0 = arith.constant 0 : index
    %c9 = arith.constant 9 : index
    %r = scf.for %i = %c0 to %c9 step %step iter_args(%a = %c0) -> (index) {
      scf.yield %i : index
    }
    return %r : index)");
  for (int64_t step : {0, -1}) {
    EXPECT_FALSE(snippet.run(integer(step)));
    EXPECT_NE(snippet.fault().find("step"), std::string::npos);
  }
  EXPECT_TRUE(snippet.run(integer(4)));
  EXPECT_EQ(snippet.result().i, 8);
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

TEST_F(EvaluatorTest, GeneratedTablesAreReadBack) {
  Snippet snippet(*context, "%a: index, %b: index, %c: index",
                  "index, index, i1", R"(
    %c1 = arith.constant 1 : index
    %c100 = arith.constant 100 : index
    %c10 = arith.constant 10 : index
    %t = tensor.generate {
    ^bb0(%x: index, %y: index, %z: index):
      %u = arith.muli %x, %c100 : index
      %v = arith.muli %y, %c10 : index
      %w = arith.addi %u, %v : index
      %n = arith.addi %w, %z : index
      tensor.yield %n : index
    } : tensor<2x3x4xindex>
    %s = tensor.generate {
    ^bb0(%x: index):
      %e = tensor.extract %t[%c1, %x, %x] : tensor<2x3x4xindex>
      %isLess = arith.cmpi ult, %e, %c100 : index
      tensor.yield %isLess : i1
    } : tensor<3xi1>
    %r = tensor.extract %t[%a, %b, %c] : tensor<2x3x4xindex>
    %d = tensor.dim %t, %a : tensor<2x3x4xindex>
    %q = tensor.extract %s[%b] : tensor<3xi1>
    return %r, %d, %q : index, index, i1)");
  for (int64_t a = 0; a < 2; ++a)
    for (int64_t b = 0; b < 3; ++b)
      for (int64_t c = 0; c < 4; ++c) {
        ASSERT_TRUE(snippet.run({integer(a), integer(b), integer(c)}));
        EXPECT_EQ(snippet.result(0).i, 100 * a + 10 * b + c);
        EXPECT_EQ(snippet.result(1).i, 2 + a);
        EXPECT_EQ(snippet.result(2).i, 0);
      }
}

TEST_F(EvaluatorTest, ConstantTablesHoldSignedNumbers) {
  Snippet snippet(*context, "%i: index", "i1, i8, f32", R"(
    %bits = arith.constant dense<[true, false]> : tensor<2xi1>
    %bytes = arith.constant dense<[-128, 127]> : tensor<2xi8>
    %reals = arith.constant dense<2.5> : tensor<2xf32>
    %a = tensor.extract %bits[%i] : tensor<2xi1>
    %b = tensor.extract %bytes[%i] : tensor<2xi8>
    %c = tensor.extract %reals[%i] : tensor<2xf32>
    return %a, %b, %c : i1, i8, f32)");
  ASSERT_TRUE(snippet.run(integer(0)));
  EXPECT_EQ(snippet.result(0).i, -1);
  EXPECT_EQ(snippet.result(1).i, -128);
  EXPECT_EQ(snippet.result(2).f, 2.5);
  ASSERT_TRUE(snippet.run(integer(1)));
  EXPECT_EQ(snippet.result(0).i, 0);
  EXPECT_EQ(snippet.result(1).i, 127);
}

TEST_F(EvaluatorTest, BranchesAndLoopsCarryTables) {
  auto table = tableOf(IndexType::get(context.get()), {2}, {5, 7});
  Snippet snippet(*context, "%c: i1, %n: index, %t: tensor<2xindex>", "index",
                  R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %other = tensor.generate {
    ^bb0(%x: index):
      tensor.yield %x : index
    } : tensor<2xindex>
    %chosen = scf.if %c -> (tensor<2xindex>) {
      scf.yield %t : tensor<2xindex>
    } else {
      scf.yield %other : tensor<2xindex>
    }
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %chosen, %b = %other)
        -> (tensor<2xindex>, tensor<2xindex>) {
      scf.yield %b, %a : tensor<2xindex>, tensor<2xindex>
    }
    %e = tensor.extract %r#0[%c1] : tensor<2xindex>
    return %e : index)",
                  table);
  for (int64_t n = 0; n < 4; ++n)
    for (int64_t c : {0, -1}) {
      // Twice: what a run moves or drops must be there for the next.
      for (int repeat = 0; repeat < 2; ++repeat)
        ASSERT_TRUE(snippet.run({integer(c), integer(n)}));
      EXPECT_EQ(snippet.result().i, c != 0 && n % 2 == 0 ? 7 : 1);
    }
}

TEST_F(EvaluatorTest, TableRangeAgreesWithBruteForce) {
  constexpr int64_t rows = 4, columns = 5;
  std::vector<int64_t> values(rows * columns);
  for (int64_t &value : values)
    value = signExtend(static_cast<int64_t>(random()), 16);
  auto table =
      tableOf(IntegerType::get(context.get(), 16), {rows, columns}, values);
  Snippet snippet(*context,
                  "%a: index, %b: index, %c: index, %d: index, "
                  "%t: tensor<4x5xi16>",
                  "i64, i64", R"(
    %min, %max = burst.table_range %t[%a, %b to %c, %d] : tensor<4x5xi16>
    return %min, %max : i64, i64)",
                  table);
  std::uniform_int_distribution<int64_t> index(-3, 8);
  for (int n = 0; n < 2000; ++n) {
    int64_t a = index(random), b = index(random), c = index(random),
            d = index(random);
    ASSERT_TRUE(snippet.run({integer(a), integer(b), integer(c), integer(d)}));
    int64_t x0 = std::clamp(a, int64_t{0}, rows - 1),
            y0 = std::clamp(b, int64_t{0}, columns - 1);
    int64_t x1 = std::max(x0, std::min(c, rows - 1)),
            y1 = std::max(y0, std::min(d, columns - 1));
    int64_t least = values[x0 * columns + y0], most = least;
    for (int64_t x = x0; x <= x1; ++x)
      for (int64_t y = y0; y <= y1; ++y) {
        least = std::min(least, values[x * columns + y]);
        most = std::max(most, values[x * columns + y]);
      }
    EXPECT_EQ(snippet.result(0).i, least) << a << b << c << d;
    EXPECT_EQ(snippet.result(1).i, most) << a << b << c << d;
  }
}

TEST_F(EvaluatorTest, AnEmptyTableRangesOverEverything) {
  auto table = tableOf(IntegerType::get(context.get(), 32), {0}, {});
  Snippet snippet(*context, "%a: index, %t: tensor<?xi32>", "i64, i64", R"(
    %min, %max = burst.table_range %t[%a to %a] : tensor<?xi32>
    return %min, %max : i64, i64)",
                  table);
  ASSERT_TRUE(snippet.run(integer(0)));
  EXPECT_EQ(snippet.result(0).i, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(snippet.result(1).i, std::numeric_limits<int64_t>::max());
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

TEST_F(EvaluatorTest, IndicesIntoTablesAreClamped) {
  auto table =
      tableOf(IntegerType::get(context.get(), 32), {2, 3}, {1, 2, 3, 4, 5, 6});
  Snippet snippet(*context, "%a: index, %b: index, %t: tensor<2x3xi32>", "i32",
                  R"(
    %r = tensor.extract %t[%a, %b] : tensor<2x3xi32>
    return %r : i32)",
                  table);
  constexpr int64_t far = std::numeric_limits<int64_t>::max();
  const std::tuple<int64_t, int64_t, int64_t> cases[] = {
      {-1, 0, 1}, {2, 0, 4},     {0, 3, 3},   {0, -1, 1},
      {1, 2, 6},  {far, far, 6}, {-far, 0, 1}};
  for (auto [a, b, expected] : cases) {
    ASSERT_TRUE(snippet.run({integer(a), integer(b)}));
    EXPECT_EQ(snippet.result().i, expected) << a << ", " << b;
  }
}

/// An op on two operands of a type, and what it gives in regions where arith
/// leaves it undefined.
struct Total {
  const char *op, *type;
  int64_t a, b, expected;
};

TEST_F(EvaluatorTest, UndefinedOpsHaveAMeaningInRegions) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  const Total cases[] = {{"divsi", "i32", 7, 0, 0},
                         {"divui", "i8", -1, 0, 0},
                         {"floordivsi", "i8", -7, 0, 0},
                         {"ceildivsi", "i16", 7, 0, 0},
                         {"ceildivui", "index", 7, 0, 0},
                         {"remsi", "i32", -7, 0, -7},
                         {"remui", "i8", -3, 0, -3},
                         {"divsi", "i8", -128, -1, -128},
                         {"remsi", "i8", -128, -1, 0},
                         {"floordivsi", "i64", least, -1, least},
                         {"ceildivsi", "i64", least, -1, least},
                         {"divsi", "i1", -1, -1, -1},
                         {"divsi", "i1", -1, 0, 0},
                         {"remui", "i1", -1, 0, -1},
                         {"shli", "i32", 5, 32, 0},
                         {"shrui", "i8", -1, 8, 0},
                         {"shrui", "i8", -1, -1, 0},
                         {"shrsi", "i8", -5, 9, -1},
                         {"shrsi", "i8", 5, -128, 0},
                         {"shli", "i1", -1, -1, 0},
                         {"shrsi", "i1", -1, -1, -1}};
  for (const Total &total : cases) {
    SCOPED_TRACE(llvm::formatv("{0} {1}: {2}, {3}", total.op, total.type,
                               total.a, total.b)
                     .str());
    auto arguments = llvm::formatv("%a: {0}, %b: {0}", total.type).str();
    auto text = llvm::formatv("arith.{0} %a, %b : {1}", total.op, total.type);
    Snippet snippet =
        Snippet::ofOp(*context, arguments, total.type, text.str());
    std::vector<Scalar> operands = {integer(total.a), integer(total.b)};
    EXPECT_FALSE(snippet.run(operands));
    snippet.giveMeaning();
    ASSERT_TRUE(snippet.run(operands));
    EXPECT_EQ(snippet.result().i, total.expected);
  }
}

TEST_F(EvaluatorTest, ConversionsSaturateInRegions) {
  struct Case {
    const char *op, *type;
    double value;
    int64_t expected;
  };
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  const Case cases[] = {
      {"fptosi", "i8", 576.0, 127},      {"fptosi", "i8", -129.0, -128},
      {"fptosi", "i8", -128.9, -128},    {"fptosi", "i8", NAN, 0},
      {"fptosi", "i64", HUGE_VAL, most}, {"fptosi", "i64", -1e30, -most - 1},
      {"fptosi", "i1", 1.0, 0},          {"fptosi", "i1", -1.5, -1},
      {"fptoui", "i8", 256.0, -1},       {"fptoui", "i8", -0.9, 0},
      {"fptoui", "i8", -1.0, 0},         {"fptoui", "i64", HUGE_VAL, -1},
      {"fptoui", "i33", NAN, 0},         {"fptoui", "i1", 2.0, -1}};
  for (const Case &one : cases) {
    SCOPED_TRACE(
        llvm::formatv("{0} {1}: {2}", one.op, one.type, one.value).str());
    auto text = llvm::formatv("arith.{0} %a : f64 to {1}", one.op, one.type);
    Snippet snippet = Snippet::ofOp(*context, "%a: f64", one.type, text.str());
    snippet.giveMeaning();
    ASSERT_TRUE(snippet.run(real(one.value)));
    EXPECT_EQ(snippet.result().i, one.expected);
  }
}

TEST_F(EvaluatorTest, DivisionsWithoutAResultAreFaults) {
  Snippet snippet = Snippet::ofOp(*context, "%a: i32, %b: i32", "i32",
                                  "arith.divsi %a, %b : i32");
  EXPECT_FALSE(snippet.run({integer(7), integer(0)}));
  EXPECT_EQ(snippet.fault(), "divides 7 by 0");
  constexpr int64_t least = std::numeric_limits<int32_t>::min();
  EXPECT_FALSE(snippet.run({integer(least), integer(-1)}));
  EXPECT_EQ(snippet.fault(), "divides -2147483648 by -1");
  EXPECT_TRUE(snippet.run({integer(least), integer(1)}));
}

TEST_F(EvaluatorTest, AskingForADimensionThatIsNotThereIsAFault) {
  auto table = tableOf(IntegerType::get(context.get(), 32), {2}, {1, 2});
  Snippet snippet(*context, "%a: index, %t: tensor<?xi32>", "index", R"(
    %r = tensor.dim %t, %a : tensor<?xi32>
    return %r : index)",
                  table);
  ASSERT_TRUE(snippet.run(integer(0)));
  EXPECT_EQ(snippet.result().i, 2);
  for (int64_t dim : {-1, 1}) {
    EXPECT_FALSE(snippet.run(integer(dim)));
    EXPECT_NE(snippet.fault().find("dimension"), std::string::npos);
  }
}

TEST_F(EvaluatorTest, UnknownOpsAreErrorsAtTheOp) {
  std::string message;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
  });
  for (StringRef op :
       {"math.ctpop %a : i32", "arith.bitcast %a : i32 to i32"}) {
    message.clear();
    Snippet snippet = Snippet::ofOp(*context, "%a: i32", "i32", op);
    EXPECT_FALSE(snippet.isValid());
    EXPECT_NE(message.find("cannot be evaluated"), std::string::npos)
        << message;
  }
  Snippet wide =
      Snippet::ofOp(*context, "%a: i65", "i65", "arith.addi %a, %a : i65");
  EXPECT_FALSE(wide.isValid());
}
