//===- TableTest.cpp - tables: their ranges, and how they are made --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Shards.h"
#include "test/unit/simulation/Programs.h"
#include "test/unit/simulation/Snippet.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

using Shape = std::vector<int64_t>;

/// Element by element.
std::pair<int64_t, int64_t> bruteRange(const Tensor &table, const Shape &from,
                                       const Shape &to) {
  std::pair<int64_t, int64_t> range{INT64_MAX, INT64_MIN};
  for (int64_t at = 0; at < table.size(); ++at) {
    bool isInside = true;
    for (int64_t rest = at, dim = table.shape.size(); dim-- > 0;) {
      int64_t extent = table.shape[dim], index = rest % extent;
      int64_t first = std::clamp(from[dim], int64_t{0}, extent - 1);
      isInside &=
          index >= first && index <= std::clamp(to[dim], first, extent - 1);
      rest /= extent;
    }
    if (!isInside)
      continue;
    range.first = std::min(range.first, table.integer(at));
    range.second = std::max(range.second, table.integer(at));
  }
  return range;
}

class RangeTest : public ::testing::TestWithParam<Shape> {
protected:
  RangeTest() : context(makeContext()), random(17) {}

  int64_t draw(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  }

  /// Compares boxes at random, some of which reach over the edges.
  void compare(Tensor &table) {
    for (int trial = 0; trial < 300; ++trial) {
      Shape from, to;
      for (int64_t extent : table.shape) {
        from.push_back(draw(-2, extent + 1));
        to.push_back(draw(-2, extent + 1));
      }
      ASSERT_EQ(table.range(from, to), bruteRange(table, from, to)) << trial;
      ASSERT_EQ(table.range(from, to), bruteRange(table, from, to)) << trial;
    }
  }

  std::unique_ptr<MLIRContext> context;
  std::mt19937_64 random;
};

TEST_P(RangeTest, OfIntegers) {
  Tensor table(GetParam(), IndexType::get(context.get()));
  for (int64_t at = 0; at < table.size(); ++at)
    table.ints.push_back(draw(-1000, 1000));
  compare(table);
}

TEST_P(RangeTest, OfTruthValues) {
  Tensor table(GetParam(), IntegerType::get(context.get(), 1));
  for (int64_t at = 0; at < table.size(); ++at)
    table.bits.push_back(draw(0, 99) == 0);
  compare(table);
}

/// Below, at and above the 256 elements of a block, with rows that are whole
/// blocks, that end within one, and that are shorter than one.
INSTANTIATE_TEST_SUITE_P(
    Shapes, RangeTest,
    ::testing::Values(Shape{}, Shape{1}, Shape{255}, Shape{256}, Shape{257},
                      Shape{512}, Shape{1500}, Shape{4, 256}, Shape{5, 300},
                      Shape{300, 3}, Shape{3, 7, 40}, Shape{2, 3, 5, 30}));

TEST(TableTest, ARangeSeesTheLastElementOfABlock) {
  auto context = makeContext();
  Tensor table(1024, IndexType::get(context.get()));
  table.ints.assign(1024, 0);
  table.ints[511] = 7;
  table.ints[512] = -7;
  EXPECT_EQ(table.range(256, 511), std::pair(int64_t{0}, int64_t{7}));
  EXPECT_EQ(table.range(512, 767), std::pair(int64_t{-7}, int64_t{0}));
  EXPECT_EQ(table.range(255, 512), std::pair(int64_t{-7}, int64_t{7}));
  EXPECT_EQ(table.range(513, 1023), std::pair(int64_t{0}, int64_t{0}));
}

//===----------------------------------------------------------------------===//
// How they are made
//===----------------------------------------------------------------------===//

/// The body of a function that makes a table, and gives the element that the
/// arguments name.
std::string generating(StringRef type, StringRef body, StringRef indices) {
  return ("%t = tensor.generate {" + body + "} : " + type +
          "\n%r = tensor.extract %t[" + indices + "] : " + type +
          "\nreturn %r : index")
      .str();
}

/// One op for each number of indices that must be known, and each is read by
/// ops in inner loops, behind others that are run in outer ones.
TEST(TableTest, WhatIsRunInOuterLoopsIsThereInInnerOnes) {
  auto context = makeContext();
  Snippet snippet(*context, "%x: index, %y: index, %z: index, %a: index",
                  "index",
                  generating("tensor<3x4x5xindex>", R"(
    ^bb0(%i: index, %j: index, %k: index):
      %inner = arith.muli %k, %a : index
      %none = arith.addi %a, %a : index
      %outer = arith.addi %i, %none : index
      %middle = arith.muli %outer, %j : index
      %again = arith.subi %outer, %none : index
      %last = arith.addi %middle, %inner : index
      %sum = arith.addi %last, %again : index
      tensor.yield %sum : index
    )",
                             "%x, %y, %z"));
  ASSERT_TRUE(snippet.isValid());
  for (int64_t a : {3, 11})
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 4; ++j)
        for (int64_t k = 0; k < 5; ++k) {
          ASSERT_TRUE(
              snippet.run({integer(i), integer(j), integer(k), integer(a)}));
          EXPECT_EQ(snippet.result().i, (i + 2 * a) * j + k * a + i);
        }
}

/// A loop within the body depends on what its own body reads.
TEST(TableTest, ALoopIsRunWhereAllItReadsIsKnown) {
  auto context = makeContext();
  Snippet snippet(*context, "%x: index, %y: index", "index",
                  generating("tensor<4x6xindex>", R"(
    ^bb0(%i: index, %j: index):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %thrice = scf.for %n = %c0 to %c3 step %c1 iter_args(%s = %c0) -> (index) {
        %t = arith.addi %s, %i : index
        scf.yield %t : index
      }
      %sum = scf.for %n = %c0 to %j step %c1 iter_args(%s = %thrice) -> (index) {
        %t = arith.addi %s, %n : index
        scf.yield %t : index
      }
      tensor.yield %sum : index
    )",
                             "%x, %y"));
  ASSERT_TRUE(snippet.isValid());
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 6; ++j) {
      ASSERT_TRUE(snippet.run({integer(i), integer(j)}));
      EXPECT_EQ(snippet.result().i, 3 * i + j * (j - 1) / 2);
    }
}

/// Entries of a long dimension are made many at once, by whatever ops.
TEST(TableTest, EntriesAreMadeTogether) {
  auto context = makeContext();
  Snippet snippet(*context, "%x: index, %y: index, %a: index", "index",
                  "%other = arith.constant dense<[5, 2, 8, 1, 9, 3, 7]> : "
                  "tensor<7xindex>\n" +
                      generating("tensor<150x3xindex>", R"(
    ^bb0(%i: index, %j: index):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c7 = arith.constant 7 : index
      %at = arith.remui %i, %c7 : index
      %read = tensor.extract %other[%at] : tensor<7xindex>
      %less = arith.cmpi slt, %read, %a : index
      %least = arith.minsi %i, %a : index
      %chosen = arith.select %less, %least, %read : index
      %quotient = arith.ceildivsi %i, %c7 : index
      %sum = scf.for %n = %c0 to %a step %c1 iter_args(%s = %j) -> (index) {
        %t = arith.addi %s, %i : index
        scf.yield %t : index
      }
      %more = arith.addi %chosen, %quotient : index
      %all = arith.addi %more, %sum : index
      tensor.yield %all : index
    )",
                                 "%x, %y"));
  ASSERT_TRUE(snippet.isValid());
  constexpr int64_t other[] = {5, 2, 8, 1, 9, 3, 7};
  for (int64_t a : {0, 4, 100})
    for (int64_t i = 0; i < 150; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        ASSERT_TRUE(snippet.run({integer(i), integer(j), integer(a)}));
        int64_t read = other[i % 7];
        EXPECT_EQ(snippet.result().i,
                  (read < a ? std::min(i, a) : read) + (i + 6) / 7 + j + a * i);
      }
}

/// Where entries would take different ways, they are made one by one.
TEST(TableTest, EntriesThatDifferAreMadeOneByOne) {
  auto context = makeContext();
  Snippet snippet(*context, "%x: index, %a: index", "index",
                  generating("tensor<150xindex>", R"(
    ^bb0(%i: index):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %isLate = arith.cmpi sgt, %i, %a : index
      %start = scf.if %isLate -> (index) {
        scf.yield %a : index
      } else {
        scf.yield %c1 : index
      }
      %sum = scf.for %n = %c0 to %i step %c1 iter_args(%s = %start) -> (index) {
        %t = arith.addi %s, %n : index
        scf.yield %t : index
      }
      tensor.yield %sum : index
    )",
                             "%x"));
  ASSERT_TRUE(snippet.isValid());
  for (int64_t i = 0; i < 150; ++i) {
    ASSERT_TRUE(snippet.run({integer(i), integer(100)}));
    EXPECT_EQ(snippet.result().i, (i > 100 ? 100 : 1) + i * (i - 1) / 2);
  }
}

/// What is wrong with one of many entries is said as if they were made one by
/// one.
TEST(TableTest, AFaultOfOneOfManyEntriesIsSaid) {
  auto context = makeContext();
  Snippet snippet(*context, "%a: index", "index",
                  "%x = arith.constant 0 : index\n" +
                      generating("tensor<150xindex>", R"(
    ^bb0(%i: index):
      %d = arith.subi %a, %i : index
      %v = arith.divui %i, %d : index
      tensor.yield %v : index
    )",
                                 "%x"));
  ASSERT_TRUE(snippet.isValid());
  EXPECT_FALSE(snippet.run(integer(131)));
  EXPECT_EQ(snippet.fault(), "divides 131 by 0");
  EXPECT_TRUE(snippet.run(integer(150)));
}

/// What no turn of the loops would run is not run in front of them.
TEST(TableTest, OfAnEmptyTableNothingIsRun) {
  auto context = makeContext();
  constexpr StringLiteral text = R"(
    %t = tensor.generate {
    ^bb0(%i: index, %j: index):
      %q = arith.divui %i, %a : index
      %p = arith.divui %a, %a : index
      %s = arith.addi %q, %p : index
      tensor.yield %s : index
    } : tensor<{0}xindex>
    %c1 = arith.constant 1 : index
    %d = tensor.dim %t, %c1 : tensor<{0}xindex>
    return %d : index)";
  for (auto [shape, columns, fails] :
       {std::tuple("0x3", 3, false), {"3x0", 0, false}, {"2x3", 3, true}}) {
    std::string body = text.str();
    for (size_t at; (at = body.find("{0}")) != std::string::npos;)
      body.replace(at, 3, shape);
    Snippet snippet(*context, "%a: index", "index", body);
    ASSERT_TRUE(snippet.isValid()) << shape;
    ASSERT_TRUE(snippet.run(integer(1))) << shape;
    EXPECT_EQ(snippet.result().i, columns) << shape;
    EXPECT_EQ(snippet.run(integer(0)), !fails) << shape;
    if (fails) {
      EXPECT_EQ(snippet.fault(), "divides 0 by 0");
    }
  }
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// Values that stay, change places, and are yielded twice, beside a table and
/// a temporary that would take the slot of what is read no more.
TEST(TableTest, WhatALoopYieldsIsAssignedAtOnce) {
  auto context = makeContext();
  Snippet snippet(*context, "%n: index, %p: index, %q: index",
                  "index, index, index, index", R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r:4 = scf.for %i = %c0 to %n step %c1
        iter_args(%a = %p, %b = %q, %c = %c0, %d = %p)
        -> (index, index, index, index) {
      %twice = arith.addi %a, %a : index
      %t = arith.addi %twice, %b : index
      %u = arith.muli %t, %c1 : index
      scf.yield %b, %a, %u, %d : index, index, index, index
    }
    return %r#0, %r#1, %r#2, %r#3 : index, index, index, index)");
  ASSERT_TRUE(snippet.isValid());
  int64_t a = 5, b = 8, c = 0;
  for (int64_t n = 0; n < 6; ++n) {
    ASSERT_TRUE(snippet.run({integer(n), integer(5), integer(8)}));
    EXPECT_EQ(snippet.result(0).i, a) << n;
    EXPECT_EQ(snippet.result(1).i, b) << n;
    EXPECT_EQ(snippet.result(2).i, c) << n;
    EXPECT_EQ(snippet.result(3).i, 5) << n;
    c = 2 * a + b;
    std::swap(a, b);
  }
}

/// The same of tables: one that stays is there although it leaves as another.
TEST(TableTest, TablesThatALoopYieldsAreAssignedAtOnce) {
  auto context = makeContext();
  Snippet snippet(*context, "%n: index", "index, index, index", R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = arith.constant dense<[3]> : tensor<1xindex>
    %y = arith.constant dense<[4]> : tensor<1xindex>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %c = %y)
        -> (tensor<1xindex>, tensor<1xindex>, tensor<1xindex>) {
      %e = tensor.extract %b[%c0] : tensor<1xindex>
      %t = tensor.generate {
      ^bb0(%j: index):
        %f = arith.addi %e, %i : index
        tensor.yield %f : index
      } : tensor<1xindex>
      scf.yield %a, %t, %b : tensor<1xindex>, tensor<1xindex>, tensor<1xindex>
    }
    %p = tensor.extract %r#0[%c0] : tensor<1xindex>
    %q = tensor.extract %r#1[%c0] : tensor<1xindex>
    %s = tensor.extract %r#2[%c0] : tensor<1xindex>
    return %p, %q, %s : index, index, index)");
  ASSERT_TRUE(snippet.isValid());
  int64_t b = 4, c = 4;
  for (int64_t n = 0; n < 5; ++n) {
    ASSERT_TRUE(snippet.run(integer(n)));
    EXPECT_EQ(snippet.result(0).i, 3) << n;
    EXPECT_EQ(snippet.result(1).i, b) << n;
    EXPECT_EQ(snippet.result(2).i, c) << n;
    c = b;
    b += n;
  }
}

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//

TEST(ShareTableTest, SaysWhatTheLayoutSays) {
  ShardTable shards(5);
  for (int64_t extent : {0, 1, 4, 9, 10, 64, 1003})
    for (Layout layout :
         {Layout{Order::Contiguous, 1, 5}, Layout{Order::Zigzag, 1, 5},
          Layout{Order::Striped, 3, 5}}) {
      int64_t largest = 0;
      for (int64_t owner = 0; owner < 5; ++owner) {
        const Shard &shard = shards.of(layout, extent, owner);
        EXPECT_EQ(shard.count, layout.count(owner, extent));
        largest = std::max(largest, shard.count);
        for (int64_t s = 0; s < layout.numSegments(); ++s) {
          int64_t count = layout.segment(owner, s, extent).count;
          EXPECT_EQ(shard.countOf(uint64_t{1} << s), count);
          EXPECT_EQ(shard.mask >> s & 1, uint64_t{count != 0});
        }
        EXPECT_EQ(shard.countOf(shard.mask), shard.count);
      }
      EXPECT_EQ(shards.largest(layout, extent), largest);
    }
}

} // namespace
