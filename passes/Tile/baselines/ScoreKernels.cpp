//===- ScoreKernels.cpp - attention that stores its scores ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simple kernels over the tile ops of ring.attend: they are there to be
// compared with, not to be fast.
//
//===----------------------------------------------------------------------===//
#include "passes/Tile/Lowering.h"

#include <numbers>

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

/// `count` columns from `column` on of the rows of a task, of scores (batch,
/// heads, rows, keys).
static Value viewOf(TileBuilder &b, Value scores, const RowTask &at,
                    Value column, Value count) {
  OpFoldResult one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets{at.b, at.h, at.row, column};
  SmallVector<OpFoldResult> sizes{one, one, at.count, count};
  SmallVector<OpFoldResult> strides(4, one);
  auto whole = cast<MemRefType>(memref::SubViewOp::inferResultType(
      cast<MemRefType>(scores.getType()), offsets, sizes, strides));
  auto [steps, offset] = whole.getStridesAndOffset();
  auto view = MemRefType::get(
      whole.getShape().take_back(2), whole.getElementType(),
      StridedLayoutAttr::get(b.getContext(), offset,
                             ArrayRef<int64_t>(steps).take_back(2)));
  return b.make<memref::SubViewOp>(view, scores, offsets, sizes, strides);
}

static int64_t headsOf(Value shard) {
  return cast<MemRefType>(shard.getType()).getDimSize(2);
}

/// How many positions `owner` holds.
static Value countOf(TileBuilder &b, ring::LayoutAttr layout, Value owner,
                     Value extent) {
  Value count = b.index(0);
  for (int64_t i = 0; i < layout.getNumSegments(); ++i)
    count = b.add(count,
                  b.make<ring::SegmentOp>(i, layout, owner, extent).getCount());
  return count;
}

/// The column at which the keys of `owner` begin.
static Value firstColumn(TileBuilder &b, ring::LayoutAttr layout, Value owner,
                         Value extent) {
  auto loop = b.loop(owner, b.index(0), [&](Value before, ValueRange sum) {
    return SmallVector<Value>{
        b.add(sum.front(), countOf(b, layout, before, extent))};
  });
  return loop.getResult(0);
}

/// A task for each row of scores, tile by tile.
static Value numScoreTasks(TileBuilder &b, Value scores, const Shape &shape) {
  Value tiles = b.ceilDiv(b.dim(scores, 2), shape.rows);
  return b.mul(b.mul(b.dim(scores, 0), b.dim(scores, 1)), tiles);
}

static RowTask decodeScoreTask(TileBuilder &b, Value task, Value scores,
                               const Shape &shape) {
  Value rows = b.dim(scores, 2), heads = b.dim(scores, 1);
  Value tiles = b.ceilDiv(rows, shape.rows);
  Value row = b.mul(b.rem(task, tiles), b.index(shape.rows));
  Value head = b.div(task, tiles);
  return {b.div(head, heads), b.rem(head, heads), row,
          b.min(b.sub(rows, row), b.index(shape.rows))};
}

/// Columns from 0 to `end` in tiles: where one begins, and how many there are.
static void eachTile(TileBuilder &b, Value end, const Shape &shape,
                     llvm::function_ref<void(Value first, Value count)> body) {
  b.loop(b.index(0), end, shape.columns, [&](Value first) {
    body(first, b.min(b.sub(end, first), b.index(shape.columns)));
  });
}

static void load(TileBuilder &b, Value view, Value block, double padding) {
  b.make<tile::LoadOp>(view, block, b.getF64FloatAttr(1.0),
                       b.getF64FloatAttr(padding));
}

static Value filled(TileBuilder &b, MemRefType type, double value) {
  Value block = b.alloca(type);
  b.make<tile::FillOp>(block, b.getF64FloatAttr(value));
  return block;
}

static void lowerScores(TileBuilder &b, ring::ScoresOp op, const Shape &shape,
                        Launcher launch) {
  Value scores;
  Operands operands;
  operands.write(scores, "", op.getInto());
  launch("scores", numScoreTasks(b, op.getInto(), shape), {}, operands,
         [&](TileBuilder &b, Value task) {
           RowTask at = decodeScoreTask(b, task, scores, shape);
           Value none = filled(b, shape.tile(shape.columns), minusInfinity);
           eachTile(b, b.dim(scores, 3), shape, [&](Value first, Value count) {
             b.make<tile::StoreOp>(none, viewOf(b, scores, at, first, count));
           });
         });
}

//===----------------------------------------------------------------------===//
// score
//===----------------------------------------------------------------------===//

static void lowerScore(TileBuilder &b, ring::ScoreOp op, const Shape &shape,
                       Launcher launch) {
  Schedule schedule(b, op, shape, Schedule::Lists::OfQueries);
  schedule.build(launch);
  schedule.sort();
  int64_t heads = headsOf(op.getQuery()), keyHeads = headsOf(op.getKey());
  int64_t keyDim = dimOf(op.getKey());
  Value batch = b.dim(op.getQuery(), 0), tiles = b.dim(schedule.keys, 0);
  Value packedKeys = b.allocate(shape.packedKeys(keyHeads, keyDim),
                                {batch, tiles}, tile::Memory::Packing);
  Value shard, table, panels;
  Operands packing;
  packing.read(shard, "", op.getKey());
  packing.read(table, "", schedule.keys);
  packing.write(panels, "", packedKeys);
  launch("pack_keys", b.mul(b.mul(batch, b.index(keyHeads)), tiles), {},
         packing, [&](TileBuilder &b, Value task) {
           Value tiles = b.dim(table, 0), tile = b.rem(task, tiles);
           Value head = b.div(task, tiles), heads = b.index(keyHeads);
           Value h = b.rem(head, heads), batch = b.div(head, heads);
           b.make<tile::PackOp>(b.rows(shard, batch, h,
                                       b.field(table, tile, Field::Row),
                                       b.field(table, tile, Field::Count)),
                                b.panels(panels, batch, h, tile), true);
         });

  Value query, packed, queries, keys, list, counts, scores, sq, sk, column;
  SmallVector<Value> maskCaptures, scoreCaptures;
  Operands operands;
  operands.read(query, "", op.getQuery());
  operands.read(packed, "", packedKeys);
  operands.read(queries, "", schedule.queries);
  operands.read(keys, "", schedule.keys);
  operands.read(list, "", schedule.list);
  operands.read(counts, "", schedule.counts);
  operands.write(scores, "", op.getScores());
  operands.scalar(sq, "", op.getQueryExtent());
  operands.scalar(sk, "", op.getKeyExtent());
  operands.scalar(
      column, "",
      firstColumn(b, op.getKeyLayout(), op.getKeyOwner(), op.getKeyExtent()));
  operands.capture(maskCaptures, op.getMaskCaptures());
  operands.capture(scoreCaptures, op.getScoreCaptures());
  bool hasScore = !op.getScore().empty();
  double scale = op.getScale().convertToDouble();
  launch(
      "score", schedule.tasks, schedule.order, operands,
      [&](TileBuilder &b, Value task) {
        Value numQueries = b.dim(queries, 0), zero = b.index(0);
        Value tile = b.rem(task, numQueries), head = b.div(task, numQueries);
        RowTask at{b.div(head, b.index(heads)), b.rem(head, b.index(heads)),
                   b.field(queries, tile, Field::Row),
                   b.field(queries, tile, Field::Count)};
        Value keyHead = b.div(at.h, b.index(heads / keyHeads));
        Value cb = schedule.byBatch ? at.b : zero;
        Value ch = schedule.byHead ? at.h : zero;
        Value q = b.alloca(shape.tile(keyDim));
        Value s = b.alloca(shape.tile(shape.columns));
        Value i = b.alloca(shape.positions(shape.rows));
        Value j = b.alloca(shape.positions(shape.columns));
        b.make<tile::LoadOp>(
            b.rows(query, at.b, at.h, at.row, at.count), q,
            b.getF64FloatAttr(hasScore ? scale : scale * std::numbers::log2e),
            b.getF64FloatAttr(0.0));
        b.positions(i, queries, tile, at.count, op.getQueryLayout());
        auto step = [&](Value place, bool isPartial) {
          Value key = b.make<arith::IndexCastUIOp>(
              b.getIndexType(), b.load(list, {cb, ch, tile, place}));
          Value count = b.field(keys, key, Field::Count);
          b.make<tile::MultiplyOp>(q, b.panels(packed, at.b, keyHead, key), s,
                                   at.count, llvm::APFloat(1.0), Value(),
                                   false);
          if (isPartial || hasScore) {
            b.positions(j, keys, key, count, op.getKeyLayout());
            auto map = b.make<tile::MapOp>(
                s, at.count, count, at.b, at.h, i, j, sq, sk,
                isPartial ? ValueRange(maskCaptures) : ValueRange(),
                scoreCaptures,
                b.getF64FloatAttr(hasScore ? std::numbers::log2e : 1.0));
            IRMapping mapping;
            if (isPartial)
              op.getMask().cloneInto(&map.getMask(), mapping);
            op.getScore().cloneInto(&map.getScore(), mapping);
          }
          Value first = b.add(column, b.field(keys, key, Field::Row));
          b.make<tile::StoreOp>(s, viewOf(b, scores, at, first, count));
        };
        Value last = b.sub(b.dim(keys, 0), b.index(1));
        b.loop(b.load(counts, {cb, ch, tile, zero}),
               [&](Value t) { step(t, false); });
        b.loop(b.load(counts, {cb, ch, tile, b.index(1)}),
               [&](Value t) { step(b.sub(last, t), true); });
      });
  b.make<memref::DeallocOp>(packedKeys);
  schedule.release();
}

//===----------------------------------------------------------------------===//
// softmax
//===----------------------------------------------------------------------===//

static void lowerSoftmax(TileBuilder &b, ring::SoftmaxOp op, const Shape &shape,
                         Launcher launch) {
  Value scores, maxima, sums;
  Operands operands;
  operands.write(scores, "", op.getScores());
  operands.write(maxima, "", op.getM());
  operands.write(sums, "", op.getL());
  launch("softmax", numScoreTasks(b, op.getScores(), shape), {}, operands,
         [&](TileBuilder &b, Value task) {
           RowTask at = decodeScoreTask(b, task, scores, shape);
           Value m = loadRows(b, maxima, at, shape.rowVector());
           Value l = loadRows(b, sums, at, shape.rowVector());
           Value factor = b.alloca(shape.rowVector());
           Value s = b.alloca(shape.tile(shape.columns));
           Value keys = b.dim(scores, 3);
           eachTile(b, keys, shape, [&](Value first, Value count) {
             load(b, viewOf(b, scores, at, first, count), s, minusInfinity);
             b.make<tile::RowMaxOp>(s, m, factor, at.count);
           });
           // All weights have one reference: their sum is never rescaled.
           b.make<tile::FillOp>(factor, b.getF64FloatAttr(1.0));
           eachTile(b, keys, shape, [&](Value first, Value count) {
             Value view = viewOf(b, scores, at, first, count);
             load(b, view, s, minusInfinity);
             b.make<tile::ExponentialsOp>(s, m, l, factor, at.count, Value());
             b.make<tile::StoreOp>(s, view);
           });
           storeRows(b, m, maxima, at);
           storeRows(b, l, sums, at);
         });
}

//===----------------------------------------------------------------------===//
// weigh
//===----------------------------------------------------------------------===//

/// Weights of 0 become -inf: where those are, nothing is seen.
static Value seenBy(TileBuilder &b, Value weights, const RowTask &at,
                    const Shape &shape) {
  Value seen = b.alloca(shape.tile(shape.columns));
  b.make<memref::CopyOp>(weights, seen);
  Value zero = b.index(0), one = b.index(1);
  auto anywhere = [&](int64_t count) {
    Value block = b.alloca(shape.positions(count));
    b.make<tile::PositionsOp>(block, zero, b.index(count), zero, one, one);
    return block;
  };
  auto map = b.make<tile::MapOp>(
      seen, at.count, b.index(shape.columns), at.b, at.h, anywhere(shape.rows),
      anywhere(shape.columns), one, one, ValueRange(), ValueRange(),
      b.getF64FloatAttr(1.0));
  OpBuilder::InsertionGuard guard(b);
  Block &block = addRegionBlock(b, b.getLoc(), map.getScore(),
                                RegionRole::Score, shape.state, {});
  b.setInsertionPointToStart(&block);
  Value weight = block.getArgument(0);
  auto number = [&](double value) {
    return b.make<arith::ConstantOp>(b.getFloatAttr(shape.state, value));
  };
  Value isNone =
      b.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, weight, number(0.0));
  b.make<YieldOp>(b.select(isNone, number(minusInfinity), weight));
  return seen;
}

static void lowerWeigh(TileBuilder &b, ring::WeighOp op, const Shape &shape,
                       Launcher launch) {
  int64_t heads = headsOf(op.getO()), keyHeads = headsOf(op.getValue());
  Value batch = b.dim(op.getValue(), 0), count = b.dim(op.getValue(), 1);
  Value tiles = b.ceilDiv(count, shape.columns);
  Value packedValues =
      b.allocate(shape.packedDims(keyHeads, dimOf(op.getO()), shape.columns),
                 {batch, tiles}, tile::Memory::Packing);
  // Of the values of each tile, whether all are finite.
  Value finiteTiles = b.allocate(
      MemRefType::get({ShapedType::kDynamic, keyHeads, ShapedType::kDynamic},
                      b.getI1Type()),
      {batch, tiles}, tile::Memory::Schedule);
  Value shard, packed, finite;
  Operands packing;
  packing.read(shard, "", op.getValue());
  packing.write(packed, "", packedValues);
  packing.write(finite, "", finiteTiles);
  launch("pack_values", b.mul(b.mul(batch, b.index(keyHeads)), tiles), {},
         packing, [&](TileBuilder &b, Value task) {
           Value count = b.dim(shard, 1);
           Value tiles = b.ceilDiv(count, shape.columns);
           Value tile = b.rem(task, tiles), head = b.div(task, tiles);
           Value heads = b.index(keyHeads), wide = b.index(shape.columns);
           Value h = b.rem(head, heads), batch = b.div(head, heads);
           Value row = b.mul(tile, wide);
           Value panels = b.panels(packed, batch, h, tile);
           b.make<tile::PackOp>(
               b.rows(shard, batch, h, row, b.min(b.sub(count, row), wide)),
               panels, false);
           b.store(b.make<tile::IsFiniteOp>(b.getI1Type(), panels), finite,
                   {batch, h, tile});
         });
  Value weights, out, column, numKeys;
  Operands operands;
  operands.read(weights, "", op.getWeights());
  operands.read(packed, "", packedValues);
  operands.read(finite, "", finiteTiles);
  operands.write(out, "", op.getO());
  operands.scalar(
      column, "",
      firstColumn(b, op.getKeyLayout(), op.getOwner(), op.getKeyExtent()));
  operands.scalar(numKeys, "", count);
  launch("weigh", numScoreTasks(b, op.getWeights(), shape), {}, operands,
         [&](TileBuilder &b, Value task) {
           RowTask at = decodeScoreTask(b, task, weights, shape);
           Value keyHead = b.div(at.h, b.index(heads / keyHeads));
           Value o =
               loadRows(b, out, at, shape.tile(shape.padded(dimOf(op.getO()))));
           Value p = b.alloca(shape.tile(shape.columns));
           eachTile(b, numKeys, shape, [&](Value first, Value count) {
             load(b, viewOf(b, weights, at, b.add(column, first), count), p,
                  0.0);
             Value tile = b.div(first, b.index(shape.columns));
             Value v = b.panels(packed, at.b, keyHead, tile);
             auto multiply = [&](Value seen) {
               b.make<tile::MultiplyOp>(p, v, o, at.count, llvm::APFloat(1.0),
                                        seen, true);
             };
             b.when(
                 b.load(finite, {at.b, keyHead, tile}), [&] { multiply({}); },
                 [&] { multiply(seenBy(b, p, at, shape)); });
           });
           storeRows(b, o, out, at);
         });
  b.make<memref::DeallocOp>(packedValues);
  b.make<memref::DeallocOp>(finiteTiles);
}

//===----------------------------------------------------------------------===//
// The steps
//===----------------------------------------------------------------------===//

template <typename OpT>
static void lowerStep(Lowering &lowering, OpT op, Value stored,
                      void (*lower)(TileBuilder &, OpT, const Shape &,
                                    Launcher)) {
  TileBuilder b(op.getLoc(), op);
  lower(b, op, lowering.shapeOf(stored),
        [&](StringRef name, Value tasks, Value order, const Operands &operands,
            Body body) {
          lowering.launch(b, name, tasks, order, operands, body);
        });
  op.erase();
}

void Lowering::lower(ring::ScoresOp op) {
  lowerStep(*this, op, op.getInto(), lowerScores);
}

void Lowering::lower(ring::ScoreOp op) {
  lowerStep(*this, op, op.getScores(), lowerScore);
}

void Lowering::lower(ring::SoftmaxOp op) {
  lowerStep(*this, op, op.getScores(), lowerSoftmax);
}

void Lowering::lower(ring::WeighOp op) {
  lowerStep(*this, op, op.getWeights(), lowerWeigh);
}
