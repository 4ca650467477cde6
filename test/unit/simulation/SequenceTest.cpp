//===- SequenceTest.cpp - how positions are dealt -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Sequence.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

using namespace burst;

namespace burst {
/// Found by gtest, which prints bytes without it.
static void PrintTo(const Deal &deal, std::ostream *stream) {
  *stream << stringifyOrder(deal.order) << " " << deal.block << " over "
          << deal.parts;
}
} // namespace burst

/// All orders, striped with several blocks, over 1 to 9 ranks.
static std::vector<Deal> allDeals() {
  std::vector<Deal> deals;
  for (int64_t parts = 1; parts <= 9; ++parts) {
    deals.push_back({Order::Contiguous, 1, parts});
    deals.push_back({Order::Zigzag, 1, parts});
    for (int64_t block : {1, 2, 3, 5, 16})
      deals.push_back({Order::Striped, block, parts});
  }
  return deals;
}

/// Where a position lies, from the definition of each order: its owner and the
/// segment. Chunk c of n begins at floor(c S / n), so position p lies in the
/// last chunk with c S < n (p + 1).
static std::pair<int64_t, int64_t> locate(const Deal &deal, int64_t p,
                                          int64_t extent) {
  auto chunk = [&](int64_t n) { return (n * (p + 1) - 1) / extent; };
  switch (deal.order) {
  case Order::Contiguous:
    return {chunk(deal.parts), 0};
  case Order::Zigzag: {
    int64_t c = chunk(2 * deal.parts);
    return c < deal.parts ? std::pair(c, int64_t{0})
                          : std::pair(2 * deal.parts - 1 - c, int64_t{1});
  }
  case Order::Striped:
    return {p / deal.block % deal.parts, 0};
  }
  return {};
}

class SequenceTest : public ::testing::TestWithParam<Deal> {};

INSTANTIATE_TEST_SUITE_P(Deals, SequenceTest, ::testing::ValuesIn(allDeals()),
                         [](const auto &info) {
                           const Deal &deal = info.param;
                           std::ostringstream name;
                           name << stringifyOrder(deal.order) << deal.block
                                << "over" << deal.parts;
                           return name.str();
                         });

TEST_P(SequenceTest, EveryPositionIsHeldOnceWhereItBelongs) {
  const Deal &deal = GetParam();
  for (int64_t extent = 0; extent <= 70; ++extent) {
    std::set<int64_t> held;
    for (int64_t owner = 0; owner < deal.parts; ++owner) {
      auto segments = deal.segments(owner, extent);
      ASSERT_EQ(static_cast<int64_t>(segments.size()), deal.numSegments());
      for (auto [index, segment] : llvm::enumerate(segments))
        for (int64_t x = 0; x < segment.count; ++x) {
          int64_t p = segment.position(x);
          ASSERT_TRUE(p >= 0 && p < extent) << p << " of " << extent;
          EXPECT_EQ(locate(deal, p, extent),
                    std::pair(owner, static_cast<int64_t>(index)))
              << p << " of " << extent;
          EXPECT_TRUE(held.insert(p).second) << p << " of " << extent;
        }
    }
    EXPECT_EQ(static_cast<int64_t>(held.size()), extent);
  }
}

TEST_P(SequenceTest, AShardIsItsSegmentsInRisingOrder) {
  const Deal &deal = GetParam();
  for (int64_t extent = 0; extent <= 70; ++extent)
    for (int64_t owner = 0; owner < deal.parts; ++owner) {
      std::vector<int64_t> expected;
      for (int64_t index = 0; index < deal.numSegments(); ++index) {
        Segment segment = deal.segment(owner, index, extent);
        EXPECT_EQ(segment, deal.segments(owner, extent)[index]);
        for (int64_t x = 0; x < segment.count; ++x)
          expected.push_back(segment.position(x));
        // One past the largest position, whatever the steps in between.
        EXPECT_EQ(segment.end(),
                  segment.count == 0 ? segment.begin : expected.back() + 1);
      }
      EXPECT_TRUE(llvm::is_sorted(expected));
      EXPECT_EQ(deal.positions(owner, extent), expected);
      EXPECT_EQ(deal.count(owner, extent),
                static_cast<int64_t>(expected.size()));
    }
}

TEST_P(SequenceTest, SharesAreBalanced) {
  const Deal &deal = GetParam();
  for (int64_t extent = 0; extent <= 70; ++extent) {
    int64_t least = extent, most = 0;
    for (int64_t owner = 0; owner < deal.parts; ++owner)
      for (const Segment &segment : deal.segments(owner, extent)) {
        least = std::min(least, segment.count);
        most = std::max(most, segment.count);
      }
    bool isStriped = deal.order == Order::Striped;
    EXPECT_LE(most - least, isStriped ? deal.block : 1) << extent;
    EXPECT_EQ(deal.isEven(extent), most == least) << extent;
  }
}

TEST_P(SequenceTest, SomeShardsAreEmptyWhereThereAreMoreRanksThanPositions) {
  const Deal &deal = GetParam();
  for (int64_t extent = 0; extent < deal.parts; ++extent) {
    int64_t empty = 0;
    for (int64_t owner = 0; owner < deal.parts; ++owner)
      if (deal.count(owner, extent) == 0) {
        ++empty;
        EXPECT_TRUE(deal.positions(owner, extent).empty());
      }
    EXPECT_GE(empty, deal.parts - extent);
  }
}

/// floor(a b / c) without overflow.
static int64_t mulDiv(int64_t a, int64_t b, int64_t c) {
  return static_cast<int64_t>(static_cast<__int128>(a) * b / c);
}

TEST(SequenceLimitTest, HugeExtentsDoNotOverflow) {
  constexpr int64_t extent = (int64_t{1} << 39) + 12345;
  for (int64_t parts : {1, 7, 1 << 10, (1 << 20) - 1, 1 << 20}) {
    Deal contiguous{Order::Contiguous, 1, parts};
    Deal zigzag{Order::Zigzag, 1, parts};
    for (int64_t owner : {int64_t{0}, parts / 2, parts - 1}) {
      Segment chunk = contiguous.segment(owner, 0, extent);
      EXPECT_EQ(chunk.begin, mulDiv(owner, extent, parts));
      EXPECT_EQ(chunk.end(), mulDiv(owner + 1, extent, parts));
      Segment mirror = zigzag.segment(owner, 1, extent);
      EXPECT_EQ(mirror.begin, mulDiv(2 * parts - 1 - owner, extent, 2 * parts));
      EXPECT_EQ(mirror.end(), mulDiv(2 * parts - owner, extent, 2 * parts));
    }
    EXPECT_EQ(zigzag.segment(0, 1, extent).end(), extent);
  }
}

TEST(SequenceLimitTest, HugeStripesDoNotOverflow) {
  constexpr int64_t extent = (int64_t{1} << 39) + 12345;
  for (int64_t parts : {1, 7, 1 << 20})
    for (int64_t block : {int64_t{1}, int64_t{100}, (int64_t{1} << 19)}) {
      Deal deal{Order::Striped, block, parts};
      int64_t sum = 0, end = 0;
      for (int64_t owner = 0; owner < parts; ++owner) {
        Segment segment = deal.segment(owner, 0, extent);
        sum += segment.count;
        end = std::max(end, segment.end());
      }
      EXPECT_EQ(sum, extent);
      EXPECT_EQ(end, extent);
    }
}

TEST(SequenceLimitTest, NamesOfOrdersAreReadBack) {
  for (Order order : {Order::Contiguous, Order::Zigzag, Order::Striped})
    EXPECT_EQ(symbolizeOrder(stringifyOrder(order)), order);
  EXPECT_EQ(symbolizeOrder("zig"), std::nullopt);
}
