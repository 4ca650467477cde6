//===- SequenceTest.cpp - how positions are laid out ----------------------===//
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
static void PrintTo(const Layout &layout, std::ostream *stream) {
  *stream << stringifyOrder(layout.order) << " " << layout.block << " over "
          << layout.parts;
}
} // namespace burst

/// All orders, striped with several blocks, over 1 to 9 ranks.
static std::vector<Layout> allLayouts() {
  std::vector<Layout> layouts;
  for (int64_t parts = 1; parts <= 9; ++parts) {
    layouts.push_back({Order::Contiguous, 1, parts});
    layouts.push_back({Order::Zigzag, 1, parts});
    for (int64_t block : {1, 2, 3, 5, 16})
      layouts.push_back({Order::Striped, block, parts});
  }
  return layouts;
}

/// Where a position lies, from the definition of each order: its owner and the
/// segment. Chunk c of n begins at floor(c S / n), so position p lies in the
/// last chunk with c S < n (p + 1).
static std::pair<int64_t, int64_t> locate(const Layout &layout, int64_t p,
                                          int64_t extent) {
  auto chunk = [&](int64_t n) { return (n * (p + 1) - 1) / extent; };
  switch (layout.order) {
  case Order::Contiguous:
    return {chunk(layout.parts), 0};
  case Order::Zigzag: {
    int64_t c = chunk(2 * layout.parts);
    return c < layout.parts ? std::pair(c, int64_t{0})
                            : std::pair(2 * layout.parts - 1 - c, int64_t{1});
  }
  case Order::Striped:
    return {p / layout.block % layout.parts, 0};
  }
  return {};
}

class SequenceTest : public ::testing::TestWithParam<Layout> {};

INSTANTIATE_TEST_SUITE_P(Layouts, SequenceTest,
                         ::testing::ValuesIn(allLayouts()),
                         [](const auto &info) {
                           const Layout &layout = info.param;
                           std::ostringstream name;
                           name << stringifyOrder(layout.order) << layout.block
                                << "over" << layout.parts;
                           return name.str();
                         });

TEST_P(SequenceTest, EveryPositionIsHeldOnceWhereItBelongs) {
  const Layout &layout = GetParam();
  for (int64_t extent = 0; extent <= 70; ++extent) {
    std::set<int64_t> held;
    for (int64_t owner = 0; owner < layout.parts; ++owner) {
      auto segments = layout.segments(owner, extent);
      ASSERT_EQ(static_cast<int64_t>(segments.size()), layout.numSegments());
      for (auto [index, segment] : llvm::enumerate(segments))
        for (int64_t x = 0; x < segment.count; ++x) {
          int64_t p = segment.position(x);
          ASSERT_TRUE(p >= 0 && p < extent) << p << " of " << extent;
          EXPECT_EQ(locate(layout, p, extent),
                    std::pair(owner, static_cast<int64_t>(index)))
              << p << " of " << extent;
          EXPECT_TRUE(held.insert(p).second) << p << " of " << extent;
        }
    }
    EXPECT_EQ(static_cast<int64_t>(held.size()), extent);
  }
}

TEST_P(SequenceTest, AShardIsItsSegmentsInRisingOrder) {
  const Layout &layout = GetParam();
  for (int64_t extent = 0; extent <= 70; ++extent)
    for (int64_t owner = 0; owner < layout.parts; ++owner) {
      std::vector<int64_t> expected;
      for (int64_t index = 0; index < layout.numSegments(); ++index) {
        Segment segment = layout.segment(owner, index, extent);
        EXPECT_EQ(segment, layout.segments(owner, extent)[index]);
        for (int64_t x = 0; x < segment.count; ++x)
          expected.push_back(segment.position(x));
        // One past the largest position, whatever the steps in between.
        EXPECT_EQ(segment.end(),
                  segment.count == 0 ? segment.begin : expected.back() + 1);
      }
      EXPECT_TRUE(llvm::is_sorted(expected));
      EXPECT_EQ(layout.positions(owner, extent), expected);
      EXPECT_EQ(layout.count(owner, extent),
                static_cast<int64_t>(expected.size()));
    }
}

TEST_P(SequenceTest, NeighboursHoldAShardTogether) {
  const Layout &layout = GetParam();
  for (int64_t members = 1; members <= layout.parts; ++members) {
    if (layout.parts % members != 0)
      continue;
    Layout groups = layout.ofGroups(members);
    ASSERT_EQ(groups.parts, layout.parts / members);
    for (int64_t extent = 0; extent <= 70; ++extent)
      for (int64_t group = 0; group < groups.parts; ++group) {
        std::vector<int64_t> positions = groups.positions(group, extent);
        std::vector<int64_t> found(positions.size(), -1);
        for (int64_t owner = group * members; owner < (group + 1) * members;
             ++owner)
          for (int64_t s = 0; s < layout.numSegments(); ++s) {
            Segment own = layout.segment(owner, s, extent);
            Segment rows = layout.segmentInGroup(owner, s, extent, members);
            ASSERT_EQ(rows.count, own.count);
            for (int64_t x = 0; x < own.count; ++x)
              found.at(rows.position(x)) = own.position(x);
          }
        EXPECT_EQ(found, positions) << members << " of " << extent;
      }
  }
}

TEST_P(SequenceTest, SharesAreBalanced) {
  const Layout &layout = GetParam();
  for (int64_t extent = 0; extent <= 70; ++extent) {
    int64_t least = extent, most = 0;
    for (int64_t owner = 0; owner < layout.parts; ++owner)
      for (const Segment &segment : layout.segments(owner, extent)) {
        least = std::min(least, segment.count);
        most = std::max(most, segment.count);
      }
    bool isStriped = layout.order == Order::Striped;
    EXPECT_LE(most - least, isStriped ? layout.block : 1) << extent;
    EXPECT_EQ(layout.isEven(extent), most == least) << extent;
  }
}

TEST_P(SequenceTest, SomeShardsAreEmptyWhereThereAreMoreRanksThanPositions) {
  const Layout &layout = GetParam();
  for (int64_t extent = 0; extent < layout.parts; ++extent) {
    int64_t empty = 0;
    for (int64_t owner = 0; owner < layout.parts; ++owner)
      if (layout.count(owner, extent) == 0) {
        ++empty;
        EXPECT_TRUE(layout.positions(owner, extent).empty());
      }
    EXPECT_GE(empty, layout.parts - extent);
  }
}

/// floor(a b / c) without overflow.
static int64_t mulDiv(int64_t a, int64_t b, int64_t c) {
  return static_cast<int64_t>(static_cast<__int128>(a) * b / c);
}

TEST(SequenceLimitTest, HugeExtentsDoNotOverflow) {
  constexpr int64_t extent = (int64_t{1} << 39) + 12345;
  for (int64_t parts : {1, 7, 1 << 10, (1 << 20) - 1, 1 << 20}) {
    Layout contiguous{Order::Contiguous, 1, parts};
    Layout zigzag{Order::Zigzag, 1, parts};
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
      Layout layout{Order::Striped, block, parts};
      int64_t sum = 0, end = 0;
      for (int64_t owner = 0; owner < parts; ++owner) {
        Segment segment = layout.segment(owner, 0, extent);
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
