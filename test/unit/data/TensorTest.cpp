//===- TensorTest.cpp - Tests of tensors in memory ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/data/Tensor.h"

#include <gtest/gtest.h>

using namespace burst::data;

namespace {

std::optional<int64_t> sizeOfShape(DType dtype, std::vector<int64_t> shape) {
  return byteSize(dtype, shape);
}

TEST(Tensor, ByteSize) {
  EXPECT_EQ(sizeOfShape(DType::F32, {}), 4);
  EXPECT_EQ(sizeOfShape(DType::BF16, {2, 3}), 12);
  EXPECT_EQ(sizeOfShape(DType::I64, {0, 7}), 0);
  EXPECT_EQ(sizeOfShape(DType::U8, {INT64_MAX}), INT64_MAX);
}

TEST(Tensor, ByteSizeThatDoesNotExist) {
  int64_t half = int64_t{1} << 32;
  EXPECT_EQ(sizeOfShape(DType::U8, {-1}), std::nullopt);
  EXPECT_EQ(sizeOfShape(DType::U8, {-1, -1}), std::nullopt);
  EXPECT_EQ(sizeOfShape(DType::U8, {half, half}), std::nullopt);
  EXPECT_EQ(sizeOfShape(DType::I16, {INT64_MAX}), std::nullopt);
  EXPECT_EQ(sizeOfShape(DType::U8, {half, half, 0}), std::nullopt);
  EXPECT_EQ(sizeOfShape(DType::U8, {0, half, half}), std::nullopt);
}

TEST(Tensor, ShapeText) {
  EXPECT_EQ(shapeText({}), "[]");
  EXPECT_EQ(shapeText(std::vector<int64_t>{2, 3}), "[2, 3]");
}

TEST(Tensor, Zeros) {
  Tensor tensor = Tensor::zeros(DType::F16, {2, 3});
  EXPECT_EQ(tensor.numel(), 6u);
  EXPECT_EQ(tensor.bytes.size(), 12u);
  EXPECT_EQ(tensor.toDoubles(), std::vector<double>(6));
  EXPECT_EQ(Tensor::zeros(DType::F16, {}).numel(), 1u);
  EXPECT_EQ(Tensor::zeros(DType::F16, {4, 0}).numel(), 0u);
}

TEST(Tensor, ValuesAreRoundedAndComeBack) {
  std::vector<double> values = {1, -2, 0.5, 1 + 0x1p-9};
  Tensor tensor = Tensor::of(DType::BF16, {2, 2}, values);
  EXPECT_EQ(tensor.toDoubles(), (std::vector<double>{1, -2, 0.5, 1}));
  EXPECT_EQ(Tensor::of(DType::F64, {4}, values).toDoubles(), values);
  tensor.set(1, 3);
  EXPECT_EQ(tensor.get(1), 3);
  EXPECT_EQ(std::to_integer<int>(tensor.bytes[3]), 0x40); // 3 is 0x4040.
}

TEST(Tensor, EqualityIsOfBits) {
  std::vector<double> zero = {0}, negative = {-0.0};
  Tensor tensor = Tensor::of(DType::F32, {1}, zero);
  EXPECT_EQ(tensor, Tensor::zeros(DType::F32, {1}));
  EXPECT_NE(tensor, Tensor::zeros(DType::I32, {1}));
  EXPECT_NE(tensor, Tensor::zeros(DType::F32, {}));
  EXPECT_NE(tensor, Tensor::of(DType::F32, {1}, negative));
}

} // namespace
