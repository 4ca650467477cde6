//===- TrapTest.cpp - One test for each trap ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/unit/bounds/Masks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <limits>

using namespace mlir;
using namespace burst::test;

namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kPositions = int64_t(1) << 40;

constexpr Decision kNone{false, false}, kSome{true, false}, kAll{true, true};

class TrapTest : public ::testing::Test {
protected:
  /// What is emitted for a mask over i and j and what is captured decides, in
  /// all styles; all must agree. An extent of one number is captured, unless it
  /// is a range of an i1 (-1..0).
  Decision decide(StringRef body, Extent i, Extent j, StringRef captured = "",
                  ArrayRef<Extent> extents = {}) {
    OwningOpRef<Operation *> mask = parseMask(*context, body, captured);
    SmallVector<Extent> rectangle = {{0, 0}, {0, 0}, i, j, {8, 8}, {8, 8}};
    rectangle.append(extents.begin(), extents.end());
    SmallVector<bool> isCaptured = {false, false, false, false, true, true};
    for (const Extent &extent : extents)
      isCaptured.push_back(extent.lo == extent.hi);
    Region &region = mask->getRegion(0);
    std::optional<Decision> first;
    for (Style style : {Style::Constant, Style::Bounded, Style::Open}) {
      Emitted emitted(region, style, rectangle, isCaptured);
      std::optional<Decision> decision = emitted.run(rectangle);
      EXPECT_TRUE(decision) << "undefined behaviour in\n" << emitted.text();
      if (!first)
        first = decision;
      // Where signs are not known statically the code may be coarser, not
      // wrong.
      if (style == Style::Open && openIsCoarse && decision == kSome)
        continue;
      EXPECT_EQ(first, decision) << emitted.text();
    }
    return first.value_or(kSome);
  }

  /// For positions and sizes: the ops that are not constants.
  unsigned cost(StringRef body) {
    OwningOpRef<Operation *> mask = parseMask(*context, body);
    OwningOpRef<ModuleOp> module = ModuleOp::create(mask->getLoc());
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    auto drawn = [&]() -> Value {
      OperationState state(mask->getLoc(), "test.value");
      state.addTypes(builder.getIndexType());
      return builder.create(state)->getResult(0);
    };
    SmallVector<burst::bounds::Argument> arguments;
    for (int n = 0; n < 4; ++n)
      arguments.push_back(
          burst::bounds::Interval{drawn(), drawn(), 0, kPositions});
    for (int n = 0; n < 2; ++n)
      arguments.push_back(burst::bounds::Captured{drawn(), 0, kPositions});
    burst::bounds::emit(builder, mask->getLoc(), mask->getRegion(0), arguments);
    return llvm::count_if(*module->getBody(), [](Operation &op) {
      return op.getDialect() && !isa<arith::ConstantOp>(op);
    });
  }

  std::unique_ptr<MLIRContext> context = makeContext();
  bool openIsCoarse = false;
};

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

TEST_F(TrapTest, UnsignedCompareOfADifference) {
  const char *window = R"(
    %c4 = arith.constant 4 : index
    %d = arith.subi %i, %j : index
    %keep = arith.cmpi ult, %d, %c4 : index)";
  EXPECT_EQ(decide(window, {3, 5}, {6, 9}),
            kNone); // negative: large, if unsigned
  EXPECT_EQ(decide(window, {3, 6}, {6, 9}), kSome);
  EXPECT_EQ(decide(window, {8, 9}, {6, 8}), kAll);
  EXPECT_EQ(decide(window, {12, 13}, {6, 8}), kNone);
}

TEST_F(TrapTest, UnsignedCompareWithANegativeNumber) {
  const char *body = R"(
    %c = arith.constant -4 : index
    %keep = arith.cmpi ult, %i, %c : index)";
  EXPECT_EQ(decide(body, {0, kMax}, {0, 0}), kAll);
  EXPECT_EQ(decide(body, {-4, -1}, {0, 0}), kNone);
  EXPECT_EQ(decide(body, {-9, -5}, {0, 0}), kAll);
  EXPECT_EQ(decide(body, {-9, 5}, {0, 0}), kSome);
}

TEST_F(TrapTest, UnsignedMinimum) {
  const char *body = R"(
    %c = arith.constant 3 : index
    %m = arith.minui %i, %c : index
    %keep = arith.cmpi eq, %m, %c : index)";
  EXPECT_EQ(decide(body, {-5, -1}, {0, 0}), kAll);
  EXPECT_EQ(decide(body, {-1, 9}, {0, 0}), kSome);
  EXPECT_EQ(decide(body, {0, 2}, {0, 0}), kNone);
}

TEST_F(TrapTest, DivisionsRoundDifferentlyBelowZero) {
  auto equalsZero = [](StringRef op) {
    return "%c4 = arith.constant 4 : index\n%c0 = arith.constant 0 : index\n%q "
           "= arith." +
           op.str() +
           " %i, %c4 : index\n%keep = arith.cmpi eq, %q, %c0 : index";
  };
  EXPECT_EQ(decide(equalsZero("divsi"), {-3, 3}, {0, 0}), kAll);
  EXPECT_EQ(decide(equalsZero("floordivsi"), {-3, 3}, {0, 0}), kSome);
  EXPECT_EQ(decide(equalsZero("floordivsi"), {-3, -1}, {0, 0}), kNone);
  EXPECT_EQ(decide(equalsZero("ceildivsi"), {-3, 0}, {0, 0}), kAll);
  EXPECT_EQ(decide(equalsZero("ceildivsi"), {1, 3}, {0, 0}), kNone);
  EXPECT_EQ(decide(equalsZero("divui"), {-3, -1}, {0, 0}), kSome); // unknown
}

TEST_F(TrapTest, DivisorMayBeZero) {
  const char *body = R"(
    %q = arith.divsi %i, %j : index
    %r = arith.remsi %i, %j : index
    %s = arith.addi %q, %r : index
    %keep = arith.cmpi slt, %s, %i : index)";
  EXPECT_EQ(decide(body, {3, 5}, {-1, 1}), kSome);
  EXPECT_EQ(decide(body, {3, 5}, {0, 0}), kSome);
  const char *positive = R"(
    %c = arith.constant 2 : index
    %q = arith.divsi %i, %j : index
    %keep = arith.cmpi sle, %q, %c : index)";
  EXPECT_EQ(decide(positive, {3, 5}, {2, 3}), kAll);
  EXPECT_EQ(decide(positive, {3, 5}, {-3, -2}), kAll);
}

TEST_F(TrapTest, LeastNumberDividedByMinusOne) {
  for (const char *op : {"divsi", "floordivsi", "ceildivsi"}) {
    std::string body =
        std::string("%q = arith.") + op +
        " %i, %j : index\n%keep = arith.cmpi sgt, %q, %i : index";
    EXPECT_EQ(decide(body, {kMin, kMin + 1}, {-1, -1}), kSome) << op;
    EXPECT_EQ(decide(body, {kMin, kMin}, {-2, -1}), kSome) << op;
  }
}

TEST_F(TrapTest, RemainderHasTheSignOfTheDividend) {
  const char *body = R"(
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %r = arith.remsi %i, %c4 : index
    %keep = arith.cmpi sge, %r, %c0 : index)";
  EXPECT_EQ(decide(body, {0, 99}, {0, 0}), kAll);
  EXPECT_EQ(decide(body, {-3, -1}, {0, 0}), kNone);
  EXPECT_EQ(decide(body, {-9, -1}, {0, 0}), kSome);
}

TEST_F(TrapTest, RemainderOfNegativeNumbersWithinOneBlock) {
  const char *body = R"(
    %c4 = arith.constant 4 : index
    %c-2 = arith.constant -2 : index
    %r = arith.remsi %i, %c4 : index
    %keep = arith.cmpi sge, %r, %c-2 : index)";
  EXPECT_EQ(decide(body, {-6, -5}, {0, 0}), kAll); // -2 and -1
  EXPECT_EQ(decide(body, {-7, -7}, {0, 0}), kNone);
}

TEST_F(TrapTest, RemainderByNegativeNumbers) {
  const char *body = R"(
    %c3 = arith.constant 3 : index
    %r = arith.remsi %i, %j : index
    %keep = arith.cmpi slt, %r, %c3 : index)";
  EXPECT_EQ(decide(body, {4, 9}, {-5, -3}), kSome); // 9 rem -5 = 4
  EXPECT_EQ(decide(body, {4, 9}, {-2, -1}), kAll);
  EXPECT_EQ(decide(body, {-9, -4}, {-5, -3}), kAll);
}

TEST_F(TrapTest, RemainderWithinOneBlockIsExact) {
  const char *body = R"(
    %c64 = arith.constant 64 : index
    %c8 = arith.constant 8 : index
    %r = arith.remui %i, %c64 : index
    %keep = arith.cmpi ult, %r, %c8 : index)";
  EXPECT_EQ(decide(body, {64, 71}, {0, 0}), kAll);
  EXPECT_EQ(decide(body, {72, 127}, {0, 0}), kNone);
  EXPECT_EQ(decide(body, {70, 130}, {0, 0}), kSome);
}

TEST_F(TrapTest, SumsWrap) {
  const char *index = R"(
    %c = arith.constant 0x7ffffffffffffff0 : index
    %s = arith.addi %i, %c : index
    %keep = arith.cmpi slt, %s, %i : index)";
  EXPECT_EQ(decide(index, {0, 15}, {0, 0}), kNone);
  EXPECT_EQ(decide(index, {0, 16}, {0, 0}), kSome); // 16 + c is negative
  const char *narrow = R"(
    %c = arith.constant 100 : i8
    %x = arith.index_cast %i : index to i8
    %s = arith.addi %x, %c : i8
    %keep = arith.cmpi sgt, %s, %x : i8)";
  EXPECT_EQ(decide(narrow, {0, 27}, {0, 0}), kAll);
  EXPECT_EQ(decide(narrow, {0, 28}, {0, 0}), kSome);
}

TEST_F(TrapTest, DifferencesAndProductsWrap) {
  const char *difference = R"(
    %d = arith.subi %i, %j : index
    %keep = arith.cmpi slt, %d, %i : index)";
  EXPECT_EQ(decide(difference, {kMin, kMin + 5}, {1, 1}), kSome);
  EXPECT_EQ(decide(difference, {5, 9}, {6, 7}), kAll);
  const char *product = R"(
    %c0 = arith.constant 0 : index
    %p = arith.muli %i, %j : index
    %keep = arith.cmpi sgt, %p, %c0 : index)";
  EXPECT_EQ(decide(product, {1, int64_t(1) << 30}, {1, 1 << 30}), kAll);
  EXPECT_EQ(decide(product, {1, int64_t(1) << 40}, {1, 1 << 24}), kSome);
  EXPECT_EQ(decide(product, {-3, -1}, {-5, -2}), kAll);
  EXPECT_EQ(decide(product, {-3, -1}, {2, 5}), kNone);
  EXPECT_EQ(decide(product, {kMin, kMin}, {-1, -1}), kSome);
}

TEST_F(TrapTest, CastsCutOff) {
  const char *body = R"(
    %x = arith.index_cast %i : index to i32
    %c = arith.constant 5 : i32
    %keep = arith.cmpi eq, %x, %c : i32)";
  int64_t wrap = int64_t(1) << 32;
  EXPECT_EQ(decide(body, {wrap + 5, wrap + 5}, {0, 0}), kAll);
  EXPECT_EQ(decide(body, {wrap + 6, wrap + 9}, {0, 0}), kNone);
  EXPECT_EQ(decide(body, {wrap / 2 - 1, wrap / 2}, {0, 0}), kSome);
  const char *back = R"(
    %x = arith.index_cast %i : index to i32
    %y = arith.index_castui %x : i32 to index
    %keep = arith.cmpi eq, %y, %j : index)";
  EXPECT_EQ(decide(back, {-1, -1}, {wrap - 1, wrap - 1}), kAll);
  EXPECT_EQ(decide(back, {-2, -1}, {0, wrap - 3}), kNone);
  EXPECT_EQ(decide(back, {-2, 0}, {1, wrap - 3}), kSome);
}

TEST_F(TrapTest, ShiftAmountsOutOfRange) {
  const char *body = R"(
    %x = arith.shli %i, %j : index
    %y = arith.shrsi %x, %j : index
    %keep = arith.cmpi eq, %y, %i : index)";
  EXPECT_EQ(decide(body, {3, 4}, {60, 70}), kSome);
  EXPECT_EQ(decide(body, {3, 3}, {2, 2}), kAll);
  decide(body, {3, 3}, {-5, -1}); // means nothing, but must be defined
}

TEST_F(TrapTest, ShiftsByAmountsThatVary) {
  openIsCoarse = true;
  auto atLeast = [](StringRef op, int limit) {
    return "%y = arith." + op.str() + " %i, %j : index\n%c = arith.constant " +
           std::to_string(limit) +
           " : index\n%keep = arith.cmpi sge, %y, %c : index";
  };
  EXPECT_EQ(decide(atLeast("shrsi", 2), {8, 9}, {1, 2}), kAll);
  EXPECT_EQ(decide(atLeast("shrsi", 3), {8, 9}, {1, 2}), kSome);
  EXPECT_EQ(decide(atLeast("shrsi", -2), {-8, -7}, {1, 2}), kSome);
  EXPECT_EQ(decide(atLeast("shrsi", -1), {-8, -7}, {1, 2}), kNone);
  EXPECT_EQ(decide(atLeast("shrui", 0), {-1, 1}, {0, 1}), kSome);
  EXPECT_EQ(decide(atLeast("shrui", 0), {-1, 1}, {1, 2}), kAll);
  EXPECT_EQ(decide(atLeast("shli", 8), {2, 3}, {2, 61}), kAll);
  EXPECT_EQ(decide(atLeast("shli", 0), {2, 3}, {2, 62}), kSome);
  EXPECT_EQ(decide(atLeast("shli", 0), {1, 1}, {0, 63}), kSome);
}

TEST_F(TrapTest, BitsOfNegativeNumbers) {
  openIsCoarse = true;
  auto atLeast = [](StringRef op, int limit) {
    return "%y = arith." + op.str() + " %i, %j : index\n%c = arith.constant " +
           std::to_string(limit) +
           " : index\n%keep = arith.cmpi sge, %y, %c : index";
  };
  EXPECT_EQ(decide(atLeast("andi", -8), {-8, -5}, {-4, -1}), kAll);
  EXPECT_EQ(decide(atLeast("andi", -4), {-8, -5}, {-4, -1}), kNone);
  EXPECT_EQ(decide(atLeast("andi", 0), {-8, 5}, {3, 9}), kAll);
  EXPECT_EQ(decide(atLeast("ori", 5), {4, 6}, {5, 9}), kAll);
  EXPECT_EQ(decide(atLeast("ori", 0), {4, 6}, {-9, -5}), kNone);
  EXPECT_EQ(decide(atLeast("xori", 0), {-8, -5}, {-4, -1}), kAll);
  EXPECT_EQ(decide(atLeast("xori", 0), {-8, 0}, {1, 1}),
            kSome); // 0 is not negative
  EXPECT_EQ(decide(atLeast("xori", 8), {0, 3}, {4, 7}), kNone);
}

TEST_F(TrapTest, EqualOperands) {
  const char *body = R"(
    %x = arith.muli %i, %j : index
    %y = arith.muli %i, %j : index
    %d = arith.subi %x, %y : index
    %c0 = arith.constant 0 : index
    %keep = arith.cmpi eq, %d, %c0 : index)";
  EXPECT_EQ(decide(body, {-7, 9}, {kMin, kMax}), kAll);
  const char *compare = R"(
    %x = arith.muli %i, %j : index
    %y = arith.muli %i, %j : index
    %keep = arith.cmpi ult, %x, %y : index)";
  EXPECT_EQ(decide(compare, {-7, 9}, {kMin, kMax}), kNone);
}

//===----------------------------------------------------------------------===//
// Logic
//===----------------------------------------------------------------------===//

TEST_F(TrapTest, NotSwapsMayAndMust) {
  const char *body = R"(
    %true = arith.constant true
    %causal = arith.cmpi sle, %j, %i : index
    %keep = arith.xori %causal, %true : i1)";
  EXPECT_EQ(decide(body, {4, 6}, {0, 4}), kNone);
  EXPECT_EQ(decide(body, {4, 6}, {7, 9}), kAll);
  EXPECT_EQ(decide(body, {4, 6}, {5, 5}), kSome);
}

TEST_F(TrapTest, SignedTrueIsMinusOne) {
  const char *less = "%keep = arith.cmpi slt, %p, %q : i1";
  StringRef captured = "%p: i1, %q: i1";
  Extent truth{-1, -1}, falsehood{0, 0}, either{-1, 0};
  EXPECT_EQ(decide(less, {0, 0}, {0, 0}, captured, {truth, falsehood}), kAll);
  EXPECT_EQ(decide(less, {0, 0}, {0, 0}, captured, {falsehood, truth}), kNone);
  EXPECT_EQ(decide(less, {0, 0}, {0, 0}, captured, {either, falsehood}), kSome);
  EXPECT_EQ(decide(less, {0, 0}, {0, 0}, captured, {either, truth}), kNone);
  const char *below = "%keep = arith.cmpi ult, %p, %q : i1";
  EXPECT_EQ(decide(below, {0, 0}, {0, 0}, captured, {falsehood, truth}), kAll);
  const char *extended = R"(
    %x = arith.extsi %p : i1 to i32
    %y = arith.extui %q : i1 to i32
    %keep = arith.cmpi slt, %x, %y : i32)";
  EXPECT_EQ(decide(extended, {0, 0}, {0, 0}, captured, {truth, falsehood}),
            kAll);
  EXPECT_EQ(decide(extended, {0, 0}, {0, 0}, captured, {falsehood, truth}),
            kAll);
  EXPECT_EQ(decide(extended, {0, 0}, {0, 0}, captured, {falsehood, falsehood}),
            kNone);
  EXPECT_EQ(decide(extended, {0, 0}, {0, 0}, captured, {either, either}),
            kSome);
  EXPECT_EQ(decide(extended, {0, 0}, {0, 0}, captured, {either, truth}), kAll);
}

TEST_F(TrapTest, SelectJoinsItsArms) {
  const char *numbers = R"(
    %c3 = arith.constant 3 : index
    %early = arith.cmpi slt, %i, %c3 : index
    %limit = arith.select %early, %i, %c3 : index
    %keep = arith.cmpi sle, %j, %limit : index)";
  EXPECT_EQ(decide(numbers, {0, 2}, {0, 0}), kAll);
  EXPECT_EQ(decide(numbers, {2, 9}, {0, 2}), kAll);
  EXPECT_EQ(decide(numbers, {4, 9}, {4, 9}), kNone);
  const char *logic = R"(
    %c3 = arith.constant 3 : index
    %early = arith.cmpi slt, %i, %c3 : index
    %causal = arith.cmpi sle, %j, %i : index
    %keep = arith.select %early, %causal, %early : i1)";
  EXPECT_EQ(decide(logic, {3, 9}, {0, 0}), kNone);
  EXPECT_EQ(decide(logic, {1, 2}, {0, 1}), kAll);
  EXPECT_EQ(decide(logic, {1, 4}, {0, 1}), kSome);
  const char *sameArms = R"(
    %same = arith.cmpi eq, %i, %j : index
    %x = arith.cmpi slt, %i, %sq : index
    %y = arith.cmpi slt, %j, %sk : index
    %keep = arith.select %same, %x, %y : i1)";
  EXPECT_EQ(decide(sameArms, {0, 7}, {0, 7}), kAll);
}

TEST_F(TrapTest, CapturedLogicIsTheSameEverywhere) {
  const char *body = R"(
    %causal = arith.cmpi sle, %j, %i : index
    %true = arith.constant true
    %not = arith.xori %p, %true : i1
    %keep = arith.select %not, %causal, %true : i1)";
  EXPECT_EQ(decide(body, {0, 3}, {4, 5}, "%p: i1", {Extent{0, 0}}), kNone);
  EXPECT_EQ(decide(body, {0, 3}, {4, 5}, "%p: i1", {Extent{-1, -1}}), kAll);
}

//===----------------------------------------------------------------------===//
// What is not known
//===----------------------------------------------------------------------===//

TEST_F(TrapTest, FloatsAreUnknown) {
  const char *body = R"(
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %keep = arith.cmpf olt, %f, %f : f32)";
  EXPECT_EQ(decide(body, {0, 0}, {0, 0}), kSome);
  const char *table = R"(
    %f = tensor.extract %t[%i] : tensor<4xf32>
    %keep = arith.cmpf ugt, %f, %f : f32)";
  EXPECT_EQ(decide(table, {0, 0}, {0, 0}, "%t: tensor<4xf32>", {Extent()}),
            kSome);
}

TEST_F(TrapTest, UnknownOpsAndRegionsAreUnknown) {
  EXPECT_EQ(
      decide(R"(%keep = "test.opaque"(%i) : (index) -> i1)", {0, 0}, {0, 0}),
      kSome);
  const char *nested = R"(
    %keep = "test.if"(%i) ({
      %true = arith.constant true
      "test.yield"(%true) : (i1) -> ()
    }) : (index) -> i1)";
  EXPECT_EQ(decide(nested, {0, 0}, {0, 0}), kSome);
  // But its type is: at most 127.
  const char *number = R"(
    %x = "test.opaque"(%i) : (index) -> i8
    %c = arith.constant 200 : i32
    %y = arith.extsi %x : i8 to i32
    %keep = arith.cmpi slt, %y, %c : i32)";
  EXPECT_EQ(decide(number, {0, 0}, {0, 0}), kAll);
}

TEST_F(TrapTest, WideIntegersAreUnknown) {
  const char *body = R"(
    %n = arith.index_cast %i : index to i64
    %x = arith.extsi %n : i64 to i128
    %y = arith.addi %x, %x : i128
    %z = arith.trunci %y : i128 to i64
    %u = arith.cmpi eq, %x, %y : i128
    %v = arith.cmpi eq, %n, %z : i64
    %keep = arith.andi %u, %v : i1)";
  EXPECT_EQ(decide(body, {1, 1}, {0, 0}), kSome);
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

TEST_F(TrapTest, TablesAreReadWithinTheirBounds) {
  const char *body = R"(
    %x = tensor.extract %t[%i] : tensor<?xi16>
    %c = arith.constant 2 : i16
    %keep = arith.cmpi sge, %x, %c : i16)";
  Table table{{4}, {0, 1, 2, 3}};
  auto decideAt = [&](Extent i) {
    return decide(body, i, {0, 0}, "%t: tensor<?xi16>", {Extent{0, 0, &table}});
  };
  EXPECT_EQ(decideAt({2, 3}), kAll);
  EXPECT_EQ(decideAt({1, 2}), kSome);
  EXPECT_EQ(decideAt({0, 1}), kNone);
  EXPECT_EQ(decideAt({2, 99}), kAll); // only 2 and 3 can be meant
  EXPECT_EQ(decideAt({-5, 1}), kNone);
  decideAt({50, 60}); // means nothing, but must not read there
  table = {{0}, {}};
  decideAt({0, 0});
}

TEST_F(TrapTest, TablesOfTruth) {
  const char *body = R"(
    %x = tensor.extract %t[%i, %j] : tensor<2x3xi1>
    %true = arith.constant true
    %keep = arith.xori %x, %true : i1)";
  Table table{{2, 3}, {-1, -1, 0, -1, 0, 0}};
  auto decideAt = [&](Extent i, Extent j) {
    return decide(body, i, j, "%t: tensor<2x3xi1>", {Extent{0, 0, &table}});
  };
  EXPECT_EQ(decideAt({0, 0}, {0, 1}), kNone);
  EXPECT_EQ(decideAt({0, 1}, {2, 2}), kAll);
  EXPECT_EQ(decideAt({0, 1}, {0, 1}), kSome);
}

TEST_F(TrapTest, NoTableRange) {
  OwningOpRef<Operation *> mask = parseMask(*context, R"(
    %x = tensor.extract %t[%i] : tensor<?xi8>
    %c = arith.constant 127 : i8
    %keep = arith.cmpi sle, %x, %c : i8)",
                                            "%t: tensor<?xi8>");
  OpBuilder builder(context.get());
  Block block;
  builder.setInsertionPointToEnd(&block);
  Region &region = mask->getRegion(0);
  burst::bounds::Truth truth =
      burst::bounds::emit(builder, mask->getLoc(), region, {}, {});
  EXPECT_TRUE(isa<arith::ConstantOp>(truth.must.getDefiningOp()));
  EXPECT_TRUE(
      cast<BoolAttr>(truth.must.getDefiningOp<arith::ConstantOp>().getValue())
          .getValue());
}

//===----------------------------------------------------------------------===//
// What is emitted
//===----------------------------------------------------------------------===//

TEST_F(TrapTest, Cost) {
  const char *causal = R"(
    %shift = arith.subi %sk, %sq : index
    %last = arith.addi %i, %shift : index
    %keep = arith.cmpi sle, %j, %last : index)";
  EXPECT_EQ(cost("%keep = arith.constant true"), 0u);
  // The difference of the sizes, then a sum and a comparison for each corner.
  EXPECT_EQ(cost(causal), 5u);
  const char *same = "%keep = arith.cmpi sle, %j, %i : index";
  EXPECT_EQ(cost(same), 2u);
  // Nothing is kept of what is not used, or is decided.
  const char *dead = R"(
    %c8 = arith.constant 8 : index
    %c-1 = arith.constant -1 : index
    %dead = arith.divsi %i, %c8 : index
    %after = arith.cmpi sgt, %j, %c-1 : index
    %causal = arith.cmpi sle, %j, %i : index
    %keep = arith.andi %after, %causal : i1)";
  EXPECT_EQ(cost(dead), 2u);
  const char *opposite = R"(
    %true = arith.constant true
    %causal = arith.cmpi sle, %j, %i : index
    %keep = arith.xori %causal, %true : i1)";
  EXPECT_EQ(cost(opposite), 2u);
}

struct Recorder : OpBuilder::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    inserted.push_back(op);
  }
  SmallVector<Operation *> inserted;
};

TEST_F(TrapTest, ListenersSeeWhatStays) {
  OwningOpRef<Operation *> mask = parseMask(*context, R"(
    %unused = arith.muli %i, %j : index
    %keep = arith.cmpi sle, %j, %i : index)");
  Region &region = mask->getRegion(0);
  Block block;
  Value position =
      block.addArgument(IndexType::get(context.get()), mask->getLoc());
  Recorder recorder;
  OpBuilder builder(context.get(), &recorder);
  builder.setInsertionPointToEnd(&block);
  Operation *last = arith::ConstantIndexOp::create(builder, mask->getLoc(), 0);
  builder.setInsertionPoint(last);
  recorder.inserted.clear();
  burst::bounds::Interval interval{position, position, 0, 100};
  SmallVector<burst::bounds::Argument> arguments(6, interval);
  arguments[2] = burst::bounds::Captured{last->getResult(0)};
  burst::bounds::emit(builder, mask->getLoc(), region, arguments);
  SmallVector<Operation *> inBlock;
  for (Operation &op : llvm::drop_end(block))
    inBlock.push_back(&op);
  EXPECT_EQ(recorder.inserted, inBlock);
  EXPECT_EQ(&block.back(), last);
  block.dropAllReferences();
}

TEST_F(TrapTest, OddRegions) {
  auto isUnknown = [&](const char *text) {
    OwningOpRef<Operation *> op =
        parseSourceString(text, ParserConfig(context.get()));
    Block block;
    OpBuilder builder(context.get());
    builder.setInsertionPointToEnd(&block);
    burst::bounds::Truth truth =
        burst::bounds::emit(builder, op->getLoc(), op->getRegion(0), {});
    auto valueOf = [](Value value) {
      return cast<BoolAttr>(value.getDefiningOp<arith::ConstantOp>().getValue())
          .getValue();
    };
    return valueOf(truth.may) && !valueOf(truth.must);
  };
  EXPECT_TRUE(isUnknown(R"("test.mask"() ({}) : () -> ())"));
  EXPECT_TRUE(
      isUnknown(R"("test.mask"() ({ "test.keep"() : () -> () }) : () -> ())"));
  EXPECT_TRUE(isUnknown(R"("test.mask"() ({
    %c = arith.constant 1 : i32
    "test.keep"(%c) : (i32) -> () }) : () -> ())"));
  EXPECT_TRUE(isUnknown(R"("test.mask"() ({
    %c = arith.constant true
    "test.br"()[^next] : () -> ()
  ^next:
    "test.keep"(%c) : (i1) -> () }) : () -> ())"));
}

} // namespace
