//===- Sequence.cpp - how a sequence is laid out over ranks ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Sequence.h"

#include <algorithm>
#include <array>
#include <numeric>

using namespace burst;

static constexpr std::array<std::string_view, 3> orderNames = {
    "contiguous", "zigzag", "striped"};

std::string_view burst::stringifyOrder(Order order) {
  return orderNames[static_cast<size_t>(order)];
}

std::optional<Order> burst::symbolizeOrder(std::string_view name) {
  const auto *found = std::find(orderNames.begin(), orderNames.end(), name);
  if (found == orderNames.end())
    return std::nullopt;
  return static_cast<Order>(found - orderNames.begin());
}

/// Where chunk `c` of `chunks` begins: c * extent / chunks, rounded down,
/// without the product, which could overflow.
static int64_t chunkBegin(int64_t c, int64_t chunks, int64_t extent) {
  return c * (extent / chunks) + c * (extent % chunks) / chunks;
}

static Segment chunk(int64_t c, int64_t chunks, int64_t extent) {
  int64_t begin = chunkBegin(c, chunks, extent);
  return {begin, chunkBegin(c + 1, chunks, extent) - begin, 1, 1};
}

Segment Layout::segment(int64_t owner, int64_t index, int64_t extent) const {
  if (all)
    return ofPart().segment(index / segmentsOfPart(), index % segmentsOfPart(),
                            extent);
  switch (order) {
  case Order::Contiguous:
    return chunk(owner, parts, extent);
  case Order::Zigzag:
    return chunk(index == 0 ? owner : 2 * parts - 1 - owner, 2 * parts, extent);
  case Order::Striped: {
    int64_t round = parts * block;
    int64_t last =
        std::clamp(extent % round - owner * block, int64_t{0}, block);
    return {owner * block, extent / round * block + last, round, block};
  }
  }
  return {};
}

Segment Layout::segmentInGroup(int64_t owner, int64_t index, int64_t extent,
                               int64_t members) const {
  Layout groups = ofGroups(members);
  Segment own = segment(owner, index, extent);
  if (groups.parts == 1)
    return own;
  int64_t before = 0;
  for (int64_t s = 0; s < index; ++s)
    before += groups.segment(owner / members, s, extent).count;
  own.begin += before - groups.segment(owner / members, index, extent).begin;
  if (order == Order::Striped)
    own.step = block * members;
  return own;
}

std::vector<Segment> Layout::segments(int64_t owner, int64_t extent) const {
  std::vector<Segment> result(numSegments());
  for (int64_t index = 0; index < numSegments(); ++index)
    result[index] = segment(owner, index, extent);
  return result;
}

int64_t Layout::count(int64_t owner, int64_t extent) const {
  int64_t sum = 0;
  for (int64_t index = 0; index < numSegments(); ++index)
    sum += segment(owner, index, extent).count;
  return sum;
}

int64_t Layout::largest(int64_t extent) const {
  int64_t most = 0;
  for (int64_t owner = 0; owner < numOwners(); ++owner)
    most = std::max(most, count(owner, extent));
  return most;
}

std::vector<int64_t> Layout::positions(int64_t owner, int64_t extent) const {
  std::vector<int64_t> result;
  for (const Segment &segment : segments(owner, extent))
    for (int64_t x = 0; x < segment.count; ++x)
      result.push_back(segment.position(x));
  return result;
}

bool Layout::isEven(int64_t extent) const {
  if (order != Order::Striped)
    return extent % (parts * segmentsOfPart()) == 0;
  return parts == 1 || extent % (parts * block) == 0;
}
