//===- RandomTest.cpp - Tests of the random numbers -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/data/Random.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace burst::data;

namespace {

// The known answers that the authors of Philox publish with Random123.
TEST(Random, PhiloxKnownAnswers) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({}, {}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// These bits are a promise: recorded results depend on them.
TEST(Random, SameBitsEverywhere) {
  EXPECT_EQ(normal(0, "", 2), (std::vector<double>{-0x1.b0969420c464fp-3,
                                                   -0x1.f9c87dfab4fa6p+0}));
  EXPECT_EQ(normal(42, "query", 3),
            (std::vector<double>{0x1.ed37c0bf3fb6fp-2, -0x1.1431fd85685fbp+0,
                                 0x1.200b30a99bda3p-2}));
  EXPECT_EQ(normal(UINT64_MAX, "k", 1),
            (std::vector<double>{0x1.6d599acbb96f5p-1}));
}

TEST(Random, CountDoesNotMatter) {
  std::vector<double> few = normal(7, "q", 10), many = normal(7, "q", 1000);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  EXPECT_TRUE(normal(7, "q", 0).empty());
}

TEST(Random, SeedsAndStreamsDiffer) {
  double number = normal(7, "q", 1)[0];
  EXPECT_NE(number, normal(8, "q", 1)[0]);
  EXPECT_NE(number, normal(7 + (uint64_t{1} << 32), "q", 1)[0]);
  EXPECT_NE(number, normal(7, "k", 1)[0]);
}

// The portable cosine and logarithm come close to those of the C library.
TEST(Random, AgreesWithTheLibrary) {
  // The stream of an empty name has the offset basis of FNV for its hash.
  std::vector<double> values = normal(3, "", 10000);
  for (uint32_t i = 0; i != values.size(); ++i) {
    auto bits = philox({i, 0, 0x84222325, 0xcbf29ce4}, {3, 0});
    uint64_t radius = (uint64_t{bits[1]} << 32 | bits[0]) >> 11;
    uint64_t angle = (uint64_t{bits[3]} << 32 | bits[2]) >> 11;
    double wanted = std::sqrt(-2 * std::log((double(radius) + 1) * 0x1p-53)) *
                    std::cos(2 * M_PI * double(angle) * 0x1p-53);
    ASSERT_NEAR(values[i], wanted, 1e-14) << i;
  }
}

TEST(Random, IsStandardNormal) {
  constexpr size_t count = 1000000;
  std::vector<double> values = normal(1, "statistics", count);
  double moments[5] = {}, serial = 0;
  for (size_t i = 0; i != count; ++i) {
    double power = 1;
    for (double &moment : moments) {
      moment += power / count;
      power *= values[i];
    }
    serial += values[i] * values[(i + 1) % count] / count;
  }
  // Within five standard deviations of each estimate.
  EXPECT_NEAR(moments[1], 0, 0.005);
  EXPECT_NEAR(moments[2], 1, 0.0071);
  EXPECT_NEAR(moments[3], 0, 0.0194);
  EXPECT_NEAR(moments[4], 3, 0.049);
  EXPECT_NEAR(serial, 0, 0.005);

  // Kolmogorov and Smirnov: the distance of the distribution functions. More
  // than 1.95 / sqrt(count) is seen once in a thousand times.
  std::sort(values.begin(), values.end());
  double distance = 0;
  for (size_t i = 0; i != count; ++i) {
    double wanted = std::erfc(-values[i] / std::sqrt(2)) / 2;
    distance = std::max(distance, std::abs(double(i) / count - wanted));
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(count));
  EXPECT_LT(values.front(), -4);
  EXPECT_GT(values.back(), 4);
}

} // namespace
