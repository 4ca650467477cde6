//===- Strips.cpp - some rows of a tile against panels of keys ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/Strips.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

Span burst::tiling::neededPanels(TileBuilder &b, const Schedule &schedule,
                                 const Shape &shape, const Scores &strip,
                                 Value whole) {
  Value one = b.index(1), width = b.index(shape.panel);
  Value last = b.sub(strip.rows, one);
  SmallVector<Value> box{strip.batch,
                         b.add(strip.batch, one),
                         strip.head,
                         b.add(strip.head, b.index(strip.numHeads)),
                         b.load(strip.i, b.index(0)),
                         b.add(b.load(strip.i, last), one)};
  auto step = [&](Value panel, ValueRange found) {
    Value first = b.mul(panel, width), end = b.add(first, width);
    SmallVector<Value> arguments(box);
    arguments.append({b.load(strip.j, first),
                      b.add(b.load(strip.j, b.sub(end, one)), one),
                      strip.queries, strip.keys});
    llvm::append_range(arguments, strip.maskCaptures);
    auto [may, must] = schedule.bounds(b, arguments);
    Value isWhole = b.compare(arith::CmpIPredicate::sle, end, strip.columns);
    b.store(b.both(must, isWhole), whole, panel);
    may =
        b.both(may, b.compare(arith::CmpIPredicate::slt, first, strip.columns));
    return SmallVector<Value>{b.select(may, b.min(found[0], panel), found[0]),
                              b.select(may, b.add(panel, one), found[1])};
  };
  Span all = Span::all(b, shape);
  auto loop = b.loop(all.end, {all.end, all.first}, step);
  return {loop.getResult(0), loop.getResult(1)};
}

static OpFoldResult sizeOf(TileBuilder &b, Value block, int64_t d) {
  return getAsOpFoldResult(b.dim(block, d));
}

Value burst::tiling::panelsOf(TileBuilder &b, Value panels, OpFoldResult first,
                              OpFoldResult count, OpFoldResult begin,
                              OpFoldResult depth) {
  SmallVector<OpFoldResult> offsets{first, begin}, sizes{count, depth};
  int64_t rank = cast<MemRefType>(panels.getType()).getRank();
  for (int64_t d = 2; d < rank; ++d) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(sizeOf(b, panels, d));
  }
  return b.part(panels, offsets, sizes);
}

Value burst::tiling::panelsOf(TileBuilder &b, Value panels, const Span &span) {
  return panelsOf(b, panels, span.first, b.sub(span.end, span.first),
                  b.getIndexAttr(0), sizeOf(b, panels, 1));
}

Value burst::tiling::depthOf(TileBuilder &b, Value panels, const Span &span,
                             const Shape &shape) {
  Value together = b.index(shape.pairs ? 2 : 1);
  return panelsOf(b, panels, b.getIndexAttr(0), sizeOf(b, panels, 0),
                  b.div(span.begin(b, shape), together),
                  b.div(span.width(b, shape), together));
}

Value burst::tiling::keysOf(TileBuilder &b, Value rows, const Span &span,
                            const Shape &shape) {
  Value first = span.begin(b, shape);
  Value end = b.min(b.mul(span.end, b.index(shape.panel)), b.dim(rows, 0));
  return b.part(rows, {first, b.getIndexAttr(0)},
                {b.sub(end, first), sizeOf(b, rows, 1)});
}

Value burst::tiling::rowsOf(TileBuilder &b, Value block, Value row,
                            int64_t count) {
  SmallVector<OpFoldResult> offsets{row}, sizes{b.getIndexAttr(count)};
  int64_t rank = cast<MemRefType>(block.getType()).getRank();
  for (int64_t d = 1; d < rank; ++d) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(sizeOf(b, block, d));
  }
  return b.part(block, offsets, sizes);
}

Value burst::tiling::columnsOf(TileBuilder &b, Value block, const Span &span,
                               const Shape &shape) {
  return b.part(block, {b.getIndexAttr(0), span.begin(b, shape)},
                {sizeOf(b, block, 0), span.width(b, shape)});
}
