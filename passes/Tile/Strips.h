//===- Strips.h - some rows of a tile against panels of keys ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_TILE_STRIPS_H
#define BURST_PASSES_TILE_STRIPS_H

#include "passes/Tile/Schedule.h"

namespace burst::tiling {

/// Panels of a tile of keys, from one on and up to one.
struct Span {
  Value first, end;

  static Span all(TileBuilder &b, const Shape &shape) {
    return {b.index(0), b.index(shape.columns / shape.panel)};
  }
  /// Their first column.
  Value begin(TileBuilder &b, const Shape &shape) const {
    return b.mul(first, b.index(shape.panel));
  }
  /// How many columns they have.
  Value width(TileBuilder &b, const Shape &shape) const {
    return b.mul(b.sub(end, first), b.index(shape.panel));
  }
};

/// The panels between which all lie that the rows of a strip may see, by the
/// bounds of the mask. Notes in `whole` which of them it leaves as they are.
Span neededPanels(TileBuilder &b, const Schedule &schedule, const Shape &shape,
                  const Scores &strip, Value whole);

/// Panels of a right operand: some of them, and some of their depth.
Value panelsOf(TileBuilder &b, Value panels, OpFoldResult first,
               OpFoldResult count, OpFoldResult begin, OpFoldResult depth);
/// Of some panels, the whole depth.
Value panelsOf(TileBuilder &b, Value panels, const Span &span);
/// Of all panels, some of the depth: that of a span's columns.
Value depthOf(TileBuilder &b, Value panels, const Span &span,
              const Shape &shape);

/// Of rows of memory, which are no panels, those of a span's columns.
Value keysOf(TileBuilder &b, Value rows, const Span &span, const Shape &shape);

/// Rows of a block from `row` on.
Value rowsOf(TileBuilder &b, Value block, Value row, int64_t count);
/// The columns of a block that belong to a span.
Value columnsOf(TileBuilder &b, Value block, const Span &span,
                const Shape &shape);

/// Applies the score to panels of a strip, and the mask to those that it does
/// not leave whole.
template <typename Attend>
void mapStrip(TileBuilder &b, Attend op, const Scores &strip, const Span &span,
              const Shape &shape, Value whole, bool isMasked) {
  bool isScored = !op.getScore().empty();
  if (!isMasked && !isScored)
    return;
  OpFoldResult width = b.getIndexAttr(shape.panel);
  OpFoldResult rows = b.getIndexAttr(shape.strip), zero = b.getIndexAttr(0);
  b.loop(span.first, span.end, 1, [&](Value panel) {
    auto map = [&] {
      Value column = b.mul(panel, b.index(shape.panel));
      Scores part = strip;
      part.block = b.part(strip.block, {zero, column}, {rows, width});
      part.columns = b.sub(strip.columns, column);
      part.j = b.part(strip.j, {OpFoldResult(column)}, {width});
      mapScores(b, op, part, isMasked, isScored);
    };
    if (isScored)
      return map();
    b.when(b.make<mlir::arith::XOrIOp>(b.load(whole, panel), b.truth(true)),
           map);
  });
}

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_STRIPS_H
