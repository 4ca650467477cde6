//===- NumbersTest.cpp - Tests of the element conversions -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/data/Numbers.h"

#include <gtest/gtest.h>

using namespace burst::data;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Eight bytes even for 16 bits, and all of them set: g++ warns of accesses
// that only the wider types make.
uint16_t to16(DType dtype, double value) {
  std::byte bytes[8] = {};
  fromDouble(dtype, value, bytes);
  return detail::load<uint16_t>(bytes);
}

double from16(DType dtype, uint16_t pattern) {
  std::byte bytes[8] = {};
  detail::store(pattern, bytes);
  return toDouble(dtype, bytes);
}

/// Stores and loads one value.
double through(DType dtype, double value) {
  std::byte bytes[8] = {};
  fromDouble(dtype, value, bytes);
  return toDouble(dtype, bytes);
}

std::optional<int64_t> throughInt(DType dtype, int64_t value) {
  std::byte bytes[8] = {};
  if (!fromInt(dtype, value, bytes))
    return std::nullopt;
  return toInt(dtype, bytes);
}

class SixteenBits : public testing::TestWithParam<DType> {
protected:
  DType dtype = GetParam();
  uint16_t infinityPattern = dtype == DType::F16 ? 0x7c00 : 0x7f80;
  uint16_t quietBit = dtype == DType::F16 ? 0x0200 : 0x0040;
};

TEST_P(SixteenBits, EveryPatternComesBack) {
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    uint16_t pattern = uint16_t(i);
    double value = from16(dtype, pattern);
    bool isNan = (pattern & 0x7fff) > infinityPattern;
    EXPECT_EQ(std::isnan(value), isNan) << pattern;
    EXPECT_EQ(to16(dtype, value), isNan ? pattern | quietBit : pattern);
  }
}

TEST_P(SixteenBits, PatternsGrowWithTheirValues) {
  for (uint16_t pattern = 0; pattern < infinityPattern; ++pattern) {
    EXPECT_LT(from16(dtype, pattern), from16(dtype, uint16_t(pattern + 1)));
    EXPECT_EQ(from16(dtype, pattern | 0x8000), -from16(dtype, pattern));
  }
}

// The midpoint of each pair of neighbours, and the doubles on its two sides,
// which a conversion by way of float would round as if they were the midpoint.
TEST_P(SixteenBits, EveryTieGoesToEvenAndOnlyTies) {
  for (uint16_t low = 0; low + 1 < infinityPattern; ++low) {
    uint16_t high = uint16_t(low + 1);
    double middle = (from16(dtype, low) + from16(dtype, high)) / 2;
    EXPECT_EQ(to16(dtype, middle), low % 2 ? high : low);
    EXPECT_EQ(to16(dtype, std::nextafter(middle, 0)), low);
    EXPECT_EQ(to16(dtype, std::nextafter(middle, infinity)), high);
    EXPECT_EQ(to16(dtype, -middle), (low % 2 ? high : low) | 0x8000);
  }
}

TEST_P(SixteenBits, OverflowStartsHalfAStepPastTheLargest) {
  uint16_t largest = uint16_t(infinityPattern - 1);
  double top = from16(dtype, largest);
  double step = top - from16(dtype, uint16_t(largest - 1));
  double middle = top + step / 2;
  EXPECT_EQ(to16(dtype, std::nextafter(middle, 0)), largest);
  EXPECT_EQ(to16(dtype, middle), infinityPattern);
  EXPECT_EQ(to16(dtype, std::numeric_limits<double>::max()), infinityPattern);
  EXPECT_EQ(to16(dtype, -infinity), infinityPattern | 0x8000);
}

TEST_P(SixteenBits, TinyNumbersKeepOnlyTheirSign) {
  double smallest = from16(dtype, 1);
  EXPECT_EQ(to16(dtype, smallest), 1);
  EXPECT_EQ(to16(dtype, smallest / 2), 0);
  EXPECT_EQ(to16(dtype, std::nextafter(smallest / 2, 1)), 1);
  EXPECT_EQ(to16(dtype, smallest / 4), 0);
  EXPECT_EQ(to16(dtype, std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(to16(dtype, -std::numeric_limits<double>::denorm_min()), 0x8000);
  EXPECT_EQ(to16(dtype, -0.0), 0x8000);
}

// Its payload lies below what 16 bits keep, and must not leave an infinity.
TEST_P(SixteenBits, NanStaysNan) {
  double low = std::bit_cast<double>(uint64_t{0x7ff0000000000001});
  EXPECT_EQ(to16(dtype, low), infinityPattern | quietBit);
  EXPECT_EQ(to16(dtype, -nan), infinityPattern | quietBit | 0x8000);
}

TEST_P(SixteenBits, RoundoffBoundsTheError) {
  double u = unitRoundoff(dtype);
  EXPECT_EQ(through(dtype, 1 + u), 1);
  EXPECT_EQ(through(dtype, 1 + 1.5 * u), 1 + 2 * u);
}

INSTANTIATE_TEST_SUITE_P(Numbers, SixteenBits,
                         testing::Values(DType::F16, DType::BF16),
                         [](const auto &info) {
                           return std::string(nameOf(info.param));
                         });

TEST(Numbers, KnownPatterns) {
  EXPECT_EQ(to16(DType::F16, 1), 0x3c00);
  EXPECT_EQ(to16(DType::F16, 65504), 0x7bff);
  EXPECT_EQ(to16(DType::F16, -0x1p-14), 0x8400);
  EXPECT_EQ(to16(DType::F16, 0x1p-24), 0x0001);
  EXPECT_EQ(to16(DType::F16, 1.0 / 3), 0x3555);
  EXPECT_EQ(to16(DType::BF16, 1), 0x3f80);
  EXPECT_EQ(to16(DType::BF16, -2), 0xc000);
  EXPECT_EQ(to16(DType::BF16, 0x1p-126), 0x0080);
  EXPECT_EQ(to16(DType::BF16, 0x1p-133), 0x0001);
  EXPECT_EQ(to16(DType::BF16, 3.14159), 0x4049);
}

TEST(Numbers, NamesAndSizes) {
  for (DType dtype : allDTypes) {
    EXPECT_EQ(dtypeNamed(nameOf(dtype)), dtype);
    EXPECT_EQ(through(dtype, 1), 1);
  }
  EXPECT_EQ(dtypeNamed("f32"), std::nullopt);
  EXPECT_EQ(dtypeNamed(""), std::nullopt);
  EXPECT_EQ(sizeOf(DType::F64) + sizeOf(DType::F32) + sizeOf(DType::BF16) +
                sizeOf(DType::BOOL),
            15u);
  EXPECT_TRUE(isFloat(DType::BF16));
  EXPECT_FALSE(isFloat(DType::I64));
}

TEST(Numbers, Roundoffs) {
  EXPECT_EQ(1 + unitRoundoff(DType::F64), 1);
  EXPECT_EQ(2 * unitRoundoff(DType::F64),
            std::numeric_limits<double>::epsilon());
  EXPECT_EQ(2 * unitRoundoff(DType::F32),
            std::numeric_limits<float>::epsilon());
  EXPECT_EQ(unitRoundoff(DType::I32), 0);
  EXPECT_EQ(unitRoundoff(DType::BOOL), 0);
}

TEST(Numbers, WideFloats) {
  EXPECT_EQ(through(DType::F64, 0.1), 0.1);
  EXPECT_EQ(through(DType::F32, 0.1), double(0.1f));
  EXPECT_EQ(through(DType::F32, 1e300), infinity);
  EXPECT_TRUE(std::isnan(through(DType::F32, nan)));
}

TEST(Numbers, IntegersRoundToEvenAndSaturate) {
  EXPECT_EQ(through(DType::I32, 2.5), 2);
  EXPECT_EQ(through(DType::I32, 3.5), 4);
  EXPECT_EQ(through(DType::I32, -2.5), -2);
  EXPECT_EQ(through(DType::I8, 127.6), 127);
  EXPECT_EQ(through(DType::I8, -1e9), -128);
  EXPECT_EQ(through(DType::U8, -1), 0);
  EXPECT_EQ(through(DType::U8, 300), 255);
  EXPECT_EQ(through(DType::I16, infinity), 32767);
  EXPECT_EQ(through(DType::I16, nan), 0);
  int64_t wide;
  fromDouble(DType::I64, 0x1p63, &wide);
  EXPECT_EQ(wide, INT64_MAX);
  fromDouble(DType::I64, -0x1p63, &wide);
  EXPECT_EQ(wide, INT64_MIN);
  EXPECT_EQ(through(DType::BOOL, -0.0), 0);
  EXPECT_EQ(through(DType::BOOL, 0.25), 1);
}

TEST(Numbers, IntegersRefuseWhatDoesNotFit) {
  EXPECT_EQ(throughInt(DType::I64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(throughInt(DType::I32, INT32_MAX), INT32_MAX);
  EXPECT_EQ(throughInt(DType::I32, INT64_C(1) << 31), std::nullopt);
  EXPECT_EQ(throughInt(DType::I16, -32769), std::nullopt);
  EXPECT_EQ(throughInt(DType::I8, -128), -128);
  EXPECT_EQ(throughInt(DType::U8, 255), 255);
  EXPECT_EQ(throughInt(DType::U8, -1), std::nullopt);
  EXPECT_EQ(throughInt(DType::BOOL, 1), 1);
  EXPECT_EQ(throughInt(DType::BOOL, 2), std::nullopt);
}

TEST(Numbers, ElementsNeedNoAlignment) {
  std::byte bytes[9] = {};
  for (DType dtype : allDTypes) {
    fromDouble(dtype, 1, bytes + 1);
    EXPECT_EQ(toDouble(dtype, bytes + 1), 1);
  }
}

} // namespace
