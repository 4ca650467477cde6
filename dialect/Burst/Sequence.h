//===- Sequence.h - how a sequence is laid out over ranks -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one place that knows which positions a rank holds. Everything that asks
// (types of shards, positions in masks, bytes of a transfer, sharding of global
// tensors) calls the functions below; none needs MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_DIALECT_BURST_SEQUENCE_H
#define BURST_DIALECT_BURST_SEQUENCE_H

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace burst {

/// The order in which positions are assigned to `parts` ranks, S positions in
/// all.
enum class Order : uint8_t {
  /// Rank r holds chunk r of `parts` chunks.
  Contiguous,
  /// Rank r holds chunks r and 2*parts-1-r of 2*parts chunks: the work under a
  /// causal mask is equal.
  Zigzag,
  /// Blocks of k positions are assigned round robin: rank r holds blocks r,
  /// r+parts, r+2*parts, ...
  Striped,
};

std::string_view stringifyOrder(Order order);
std::optional<Order> symbolizeOrder(std::string_view name);

/// Positions `begin + (x / block) * step + x % block` for x in [0, count):
/// `block` neighbours, then a jump. A contiguous segment has step == block.
struct Segment {
  int64_t begin = 0;
  int64_t count = 0;
  int64_t step = 1;
  int64_t block = 1;

  int64_t position(int64_t x) const {
    return begin + (x / block) * step + x % block;
  }
  /// One past the largest position; `begin` when empty.
  int64_t end() const { return count == 0 ? begin : position(count - 1) + 1; }

  bool operator==(const Segment &) const = default;
};

/// How a sequence is laid out: an order, its block (1 but for striped) and the
/// number of ranks. The extent S need not divide: chunk c of n holds positions
/// [c*S/n, (c+1)*S/n), rounded down, so chunks differ by at most one position
/// and are empty where n > S.
///
/// With `all`, one owner, 0, holds everything: the shards of all parts, one
/// behind the other, as an all-gather leaves them.
struct Layout {
  Order order = Order::Contiguous;
  int64_t block = 1;
  int64_t parts = 1;
  bool all = false;

  int64_t numOwners() const { return all ? 1 : parts; }
  /// Segments of every owner, empty ones included.
  int64_t numSegments() const {
    return segmentsOfPart() * (all ? parts : int64_t{1});
  }
  /// Of one part: 2 for zigzag, else 1.
  int64_t segmentsOfPart() const { return order == Order::Zigzag ? 2 : 1; }
  /// How each part is laid out, where one owner holds all.
  Layout ofPart() const { return {order, block, parts}; }
  /// How the shards of `members` neighbours, owners g members to
  /// (g + 1) members - 1, are laid out together, their positions in order: as
  /// that of owner g. `members` divides the parts.
  Layout ofGroups(int64_t members) const {
    if (members == parts) // All positions are one segment.
      return {};
    return {order, order == Order::Striped ? block * members : block,
            parts / members};
  }
  /// Where segment `index` of `owner` lies in the shard of its group: rows of
  /// that, as positions in a segment.
  Segment segmentInGroup(int64_t owner, int64_t index, int64_t extent,
                         int64_t members) const;
  /// Segment `index` of what `owner` holds of `extent` positions.
  Segment segment(int64_t owner, int64_t index, int64_t extent) const;
  /// All segments of `owner`, in the order in which its shard stores them.
  std::vector<Segment> segments(int64_t owner, int64_t extent) const;
  /// How many positions `owner` holds.
  int64_t count(int64_t owner, int64_t extent) const;
  /// The most positions that an owner holds.
  int64_t largest(int64_t extent) const;
  /// The global positions of the shard of `owner`, in storage order.
  std::vector<int64_t> positions(int64_t owner, int64_t extent) const;
  /// Whether every owner, and every segment, holds equally many positions.
  bool isEven(int64_t extent) const;

  bool operator==(const Layout &) const = default;
};

} // namespace burst

#endif // BURST_DIALECT_BURST_SEQUENCE_H
