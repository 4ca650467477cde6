//===- FewQueries.cpp - attends of few queries against many keys ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/FewQueries.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

/// Enough tasks for many processors, and not so few keys in any that what is
/// begun and merged for it would count.
static constexpr int64_t enoughTasks = 128, leastTiles = 2;

/// The most positions of a segment of any owner.
static int64_t largestSegment(const Layout &layout, int64_t extent) {
  int64_t most = 0;
  for (int64_t owner = 0; owner < layout.numOwners(); ++owner)
    for (const Segment &segment : layout.segments(owner, extent))
      most = std::max(most, segment.count);
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
  if (!queries || layout.all || *queries / layout.parts > rows ||
      sizeOf(op.getQuery(), 3) % panel != 0 ||
      sizeOf(op.getValue(), 3) % panel != 0)
    return std::nullopt;
  int64_t heads = sizeOf(op.getQuery(), 2) / sizeOf(op.getKey(), 2);
  int64_t positions = largestSegment(layout, *queries);
  if (positions == 0 || layout.numSegments() * positions * heads > rows)
    return std::nullopt;
  FewQueries found{positions, heads, /*isSplit=*/true};
  if (std::optional<int64_t> keys = getConstantIntValue(op.getKeyExtent())) {
    Layout keyLayout = op.getKeyLayout().getValue();
    found.isSplit = keyLayout.numSegments() *
                        static_cast<int64_t>(llvm::divideCeil(
                            largestSegment(keyLayout, *keys), columns)) >
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
