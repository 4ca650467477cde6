//===- Tensor.cpp - tensors of evaluated programs -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Scalars/Tensor.h"

#include <algorithm>
#include <map>

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

int64_t burst::bytesOf(ArrayRef<int64_t> shape, Type element) {
  int64_t bytes = elementBytes(element);
  for (int64_t extent : shape)
    bytes *= extent;
  return bytes;
}

int64_t Tensor::bytes() const { return bytesOf(shape, element); }

int64_t Tensor::offset(ArrayRef<int64_t> indices) const {
  int64_t result = 0;
  for (auto [index, extent] : llvm::zip_equal(indices, shape)) {
    if (index < 0 || index >= extent)
      return -1;
    result = result * extent + index;
  }
  return result;
}

/// Elements of which the range is known together.
static constexpr int64_t blockSize = 256;

using Interval = std::pair<int64_t, int64_t>;

struct Tensor::Ranges {
  std::map<std::vector<int64_t>, Interval> known; ///< by box
  std::vector<Interval> blocks;                   ///< of elements in order
};

static void extend(Interval &range, Interval other) {
  range.first = std::min(range.first, other.first);
  range.second = std::max(range.second, other.second);
}

/// Of the elements [begin, end) in order: whole blocks at once.
Interval Tensor::stretchRange(int64_t begin, int64_t end) {
  Interval range{INT64_MAX, INT64_MIN};
  std::vector<Interval> &blocks = ranges->blocks;
  if (blocks.empty() && size() >= blockSize) {
    blocks.assign((size() + blockSize - 1) / blockSize, range);
    for (int64_t i = 0; i < size(); ++i)
      extend(blocks[i / blockSize], {integer(i), integer(i)});
  }
  while (begin < end) {
    bool isWhole = begin % blockSize == 0 && begin + blockSize <= end;
    int64_t value = isWhole ? 0 : integer(begin);
    extend(range, isWhole ? blocks[begin / blockSize] : Interval{value, value});
    begin += isWhole ? blockSize : 1;
  }
  return range;
}

Interval Tensor::range(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (ints.empty() && bits.empty())
    return {INT64_MIN, INT64_MAX};
  std::vector<int64_t> box;
  for (auto [low, high, extent] : llvm::zip_equal(from, to, shape)) {
    int64_t first = std::clamp(low, int64_t{0}, extent - 1);
    box.push_back(first);
    box.push_back(std::clamp(high, first, extent - 1));
  }
  if (!ranges)
    ranges = std::make_shared<Ranges>();
  auto [entry, isNew] = ranges->known.try_emplace(box);
  if (!isNew)
    return entry->second;
  Interval range{INT64_MAX, INT64_MIN};
  SmallVector<int64_t, 4> index;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    index.push_back(box[2 * dim]);
  int64_t row = shape.empty() ? 1 : box.back() - index.back() + 1;
  // Counts through the rows of the box.
  for (bool more = true; more;) {
    int64_t begin = offset(index);
    extend(range, stretchRange(begin, begin + row));
    more = false;
    for (size_t dim = std::max<size_t>(shape.size(), 1) - 1;
         dim-- > 0 && !more;) {
      more = index[dim] < box[2 * dim + 1];
      index[dim] = more ? index[dim] + 1 : box[2 * dim];
    }
  }
  return entry->second = range;
}
