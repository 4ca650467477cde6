//===- Tensor.h - A dense array in memory -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TOOLS_DATA_TENSOR_H
#define BURST_TOOLS_DATA_TENSOR_H

#include "tools/data/Numbers.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace burst::data {

/// The bytes a shape takes; nothing when a dimension is negative or the size
/// does not fit into 63 bits. A dimension of 0 hides no overflow: the others
/// alone have to fit, in whatever order they come.
inline std::optional<int64_t> byteSize(DType dtype,
                                       std::span<const int64_t> shape) {
  int64_t size = int64_t(sizeOf(dtype));
  bool empty = false;
  for (int64_t dim : shape) {
    empty |= dim == 0;
    if (dim < 0 || __builtin_mul_overflow(size, dim ? dim : 1, &size))
      return std::nullopt;
  }
  return empty ? 0 : size;
}

/// A shape as messages show it: "[2, 3]".
inline std::string shapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (int64_t dim : shape)
    text += fmt::format("{}{}", text.size() > 1 ? ", " : "", dim);
  return text + "]";
}

/// A dense tensor: elements row-major and little endian, without padding. A
/// shape of no dimensions is a scalar.
struct Tensor {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  /// All zeros. The shape has to have a byteSize.
  static Tensor zeros(DType dtype, std::vector<int64_t> shape) {
    std::optional<int64_t> size = byteSize(dtype, shape);
    assert(size && "negative or overflowing shape");
    return {dtype, std::move(shape), std::vector<std::byte>(size.value_or(0))};
  }

  /// The values rounded to `dtype`; there have to be as many as the shape says.
  static Tensor of(DType dtype, std::vector<int64_t> shape,
                   std::span<const double> values) {
    Tensor tensor = zeros(dtype, std::move(shape));
    assert(tensor.numel() == values.size() && "shape and values disagree");
    for (size_t i = 0, e = std::min(tensor.numel(), values.size()); i != e; ++i)
      tensor.set(i, values[i]);
    return tensor;
  }

  size_t numel() const { return bytes.size() / sizeOf(dtype); }

  const std::byte *element(size_t i) const {
    assert(i < numel());
    return bytes.data() + i * sizeOf(dtype);
  }
  std::byte *element(size_t i) {
    assert(i < numel());
    return bytes.data() + i * sizeOf(dtype);
  }

  /// Element `i` in row-major order.
  double get(size_t i) const { return toDouble(dtype, element(i)); }
  void set(size_t i, double value) { fromDouble(dtype, value, element(i)); }

  std::vector<double> toDoubles() const {
    std::vector<double> values(numel());
    for (size_t i = 0; i != values.size(); ++i)
      values[i] = get(i);
    return values;
  }

  /// The same type, shape and bits.
  bool operator==(const Tensor &) const = default;
};

} // namespace burst::data

#endif // BURST_TOOLS_DATA_TENSOR_H
