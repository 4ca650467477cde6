//===- FewQueries.cpp - attends of few queries against many keys ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/FewQueries.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

/// Enough tasks for many processors, and not so few keys in any that what is
/// begun and merged for it would count.
static constexpr int64_t enoughTasks = 128, leastTiles = 2;

namespace {
/// The segments of any owner that have positions: how many they are, and how
/// many the largest one has.
struct Segments {
  int64_t count = 0, largest = 0;
};
} // namespace

static Segments segmentsOf(const Layout &layout, int64_t extent) {
  Segments most;
  for (int64_t owner = 0; owner < layout.numOwners(); ++owner) {
    int64_t count = 0;
    for (const Segment &segment : layout.segments(owner, extent)) {
      count += segment.count != 0;
      most.largest = std::max(most.largest, segment.count);
    }
    most.count = std::max(most.count, count);
  }
  return most;
}

std::optional<FewQueries> FewQueries::find(ring::AttendOp op, int64_t rows,
                                           int64_t columns, int64_t panel) {
  auto sizeOf = [](Value tensor, int64_t d) {
    return cast<ShapedType>(tensor.getType()).getDimSize(d);
  };
  std::optional<int64_t> queries = getConstantIntValue(op.getQueryExtent());
  Layout layout = op.getQueryLayout().getValue();
  // Of a longer sequence, nobody has few.
  if (!queries || *queries / layout.numOwners() > rows ||
      sizeOf(op.getQuery(), 3) % panel != 0 ||
      sizeOf(op.getValue(), 3) % panel != 0)
    return std::nullopt;
  int64_t heads = sizeOf(op.getQuery(), 2) / sizeOf(op.getKey(), 2);
  Segments segments = segmentsOf(layout, *queries);
  if (segments.count == 0 || segments.count * segments.largest * heads > rows)
    return std::nullopt;
  FewQueries found{segments.largest, heads, /*isSplit=*/true};
  if (std::optional<int64_t> keys = getConstantIntValue(op.getKeyExtent())) {
    Layout keyLayout = op.getKeyLayout().getValue();
    found.isSplit = keyLayout.numSegments() *
                        static_cast<int64_t>(llvm::divideCeil(
                            segmentsOf(keyLayout, *keys).largest, columns)) >
                    leastTiles;
  }
  return found;
}

int64_t FewQueries::numParts(int64_t tasks, int64_t keyTiles) {
  auto wanted = static_cast<int64_t>(
      llvm::divideCeil(enoughTasks, std::max<int64_t>(tasks, 1)));
  auto most = static_cast<int64_t>(llvm::divideCeil(keyTiles, leastTiles));
  return std::max<int64_t>(std::min(wanted, most), 1);
}

Value FewQueries::numParts(TileBuilder &b, Value tasks, Value keyTiles) {
  Value one = b.index(1), some = b.max(tasks, one);
  Value wanted = b.div(b.add(b.index(enoughTasks - 1), some), some);
  return b.max(b.min(wanted, b.ceilDiv(keyTiles, leastTiles)), one);
}
