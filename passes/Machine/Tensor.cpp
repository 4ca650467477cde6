//===- Tensor.cpp - tensors of evaluated programs -------------------------===//
#include "passes/Machine/Tensor.h"

#include <algorithm>

using namespace mlir;
using namespace burst;

int64_t burst::elementBytes(Type element) {
  return element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
}

bool burst::checkSize(ArrayRef<int64_t> shape, Type element,
                      std::string &error) {
  int64_t bytes = elementBytes(element);
  bool isEmpty = llvm::is_contained(shape, 0), tooLarge = false;
  for (int64_t extent : shape)
    tooLarge |= extent < 0 ||
                (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes));
  if (!tooLarge || isEmpty)
    return true;
  error = "is too large: ";
  for (int64_t extent : shape)
    error += std::to_string(extent) + "x";
  llvm::raw_string_ostream(error) << element;
  return false;
}

int64_t Tensor::size() const {
  int64_t product = 1;
  for (int64_t extent : shape)
    product *= extent;
  return product;
}

int64_t Tensor::bytes() const { return size() * elementBytes(element); }

int64_t Tensor::offset(ArrayRef<int64_t> indices) const {
  int64_t result = 0;
  for (auto [index, extent] : llvm::zip_equal(indices, shape)) {
    if (index < 0 || index >= extent)
      return -1;
    result = result * extent + index;
  }
  return result;
}

std::pair<int64_t, int64_t> Tensor::range(ArrayRef<int64_t> from,
                                          ArrayRef<int64_t> to) {
  std::pair<int64_t, int64_t> everything{INT64_MIN, INT64_MAX};
  if (ints.empty())
    return everything;
  std::vector<int64_t> box;
  for (auto [low, high, extent] : llvm::zip_equal(from, to, shape)) {
    int64_t first = std::clamp(low, int64_t{0}, extent - 1);
    box.push_back(first);
    box.push_back(std::clamp(high, first, extent - 1));
  }
  auto [entry, isNew] = ranges.try_emplace(box);
  if (!isNew)
    return entry->second;
  int64_t least = INT64_MAX, most = INT64_MIN;
  SmallVector<int64_t, 4> index;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    index.push_back(box[2 * dim]);
  // Counts through the box, the last dimension fastest.
  for (bool more = true; more;) {
    int64_t value = ints[offset(index)];
    least = std::min(least, value);
    most = std::max(most, value);
    more = false;
    for (size_t dim = shape.size(); dim-- > 0 && !more;) {
      more = index[dim] < box[2 * dim + 1];
      index[dim] = more ? index[dim] + 1 : box[2 * dim];
    }
  }
  return entry->second = {least, most};
}
