//===- ScoreKernels.cpp - attention that stores its scores ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simple kernels over the tile ops of ring.attend: they are there to be
// compared with, not to be fast.
//
//===----------------------------------------------------------------------===//
#include "passes/Tile/Lowering.h"
#include "passes/Tile/Strips.h"

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
  auto type = cast<MemRefType>(weights.getType());
  Value seen = b.alloca(type);
  b.make<memref::CopyOp>(weights, seen);
  Value zero = b.index(0), one = b.index(1);
  auto anywhere = [&](int64_t count) {
    Value block = b.alloca(shape.positions(count));
    b.make<tile::PositionsOp>(block, zero, b.index(count), zero, one, one);
    return block;
  };
  auto map = b.make<tile::MapOp>(
      seen, at.count, b.index(type.getDimSize(1)), at.b, at.h,
      anywhere(type.getDimSize(0)), anywhere(type.getDimSize(1)), one, one,
      ValueRange(), ValueRange(), b.getF64FloatAttr(1.0));
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

/// A product of weights; `finite` says whether all that they weigh is.
static void whereSeen(TileBuilder &b, Value finite, Value weights,
                      const RowTask &at, const Shape &shape,
                      llvm::function_ref<void(Value seen)> multiply) {
  b.when(
      finite, [&] { multiply({}); },
      [&] { multiply(seenBy(b, weights, at, shape)); });
}

namespace {
/// A shard in tiles of so many rows, as right operands of products.
struct PackedRows {
  Value panels; ///< (batch, heads, tiles, ...)
  Value finite; ///< whether a tile's numbers all are; null where rows are
                ///< columns, which weights do not rule out

  void release(TileBuilder &b) const {
    b.make<memref::DeallocOp>(panels);
    if (finite)
      b.make<memref::DeallocOp>(finite);
  }
};

/// Whose keys a step is about, and how the whole sequence is laid out.
struct KeySlice {
  ring::LayoutAttr layout;
  Value owner, extent;

  template <typename OpT>
  static KeySlice of(OpT op) {
    return {op.getKeyLayout(), op.getOwner(), op.getKeyExtent()};
  }
  Value firstColumn(TileBuilder &b) const {
    return ::firstColumn(b, layout, owner, extent);
  }
};
} // namespace

static PackedRows pack(TileBuilder &b, Launcher launch, StringRef name,
                       Value shard, int64_t rows, const Shape &shape,
                       bool areColumns = false) {
  int64_t any = ShapedType::kDynamic, heads = headsOf(shard);
  Value batch = b.dim(shard, 0), tiles = b.ceilDiv(b.dim(shard, 1), rows);
  PackedRows packed;
  packed.panels =
      b.allocate(areColumns ? shape.packedKeys(heads, dimOf(shard))
                            : shape.packedDims(heads, dimOf(shard), rows),
                 {batch, tiles}, tile::Memory::Packing);
  if (!areColumns)
    packed.finite =
        b.allocate(MemRefType::get({any, heads, any}, b.getI1Type()),
                   {batch, tiles}, tile::Memory::Schedule);
  Value inside, panels, finite;
  Operands operands;
  operands.read(inside, "", shard);
  operands.write(panels, "", packed.panels);
  if (packed.finite)
    operands.write(finite, "", packed.finite);
  launch(name, b.mul(b.mul(batch, b.index(heads)), tiles), {}, operands,
         [&](TileBuilder &b, Value task) {
           Value count = b.dim(inside, 1), tiles = b.ceilDiv(count, rows);
           Value tile = b.rem(task, tiles), head = b.div(task, tiles);
           Value numHeads = b.index(heads), height = b.index(rows);
           Value h = b.rem(head, numHeads), batch = b.div(head, numHeads);
           Value row = b.mul(tile, height);
           Value to = b.panels(panels, batch, h, tile);
           b.make<tile::PackOp>(
               b.rows(inside, batch, h, row, b.min(b.sub(count, row), height)),
               to, areColumns);
           if (finite)
             b.store(b.make<tile::IsFiniteOp>(b.getI1Type(), to), finite,
                     {batch, h, tile});
         });
  return packed;
}

namespace {
/// What a product of stored weights and packed rows reads, and adds to.
struct ProductOperands {
  ProductOperands(TileBuilder &b, Value stored, const PackedRows &rows,
                  Value sums, const KeySlice &of) {
    operands.read(weights, "", stored);
    operands.read(packed, "", rows.panels);
    operands.read(finite, "", rows.finite);
    operands.write(sum, "", sums);
    operands.scalar(column, "", of.firstColumn(b));
  }

  Value weights, packed, finite, sum;
  Value column; ///< the first of the weights that meets the slice
  Operands operands;
};
} // namespace

/// sums += weights slice, row by row of the weights.
static void addToQueries(TileBuilder &b, Launcher launch, StringRef name,
                         StringRef packName, Value stored, Value slice,
                         const KeySlice &of, Value sums, const Shape &shape) {
  int64_t heads = headsOf(sums), keyHeads = headsOf(slice);
  PackedRows rows = pack(b, launch, packName, slice, shape.columns, shape);
  ProductOperands product(b, stored, rows, sums, of);
  auto &[weights, packed, finite, sum, column, operands] = product;
  Value numKeys;
  operands.scalar(numKeys, "", b.dim(slice, 1));
  launch(
      name, numScoreTasks(b, stored, shape), {}, operands,
      [&](TileBuilder &b, Value task) {
        RowTask at = decodeScoreTask(b, task, weights, shape);
        Value keyHead = b.div(at.h, b.index(heads / keyHeads));
        Value block =
            loadRows(b, sum, at, shape.tile(shape.padded(dimOf(sums))));
        Value p = b.alloca(shape.tile(shape.columns));
        eachTile(b, numKeys, shape, [&](Value first, Value count) {
          load(b, viewOf(b, weights, at, b.add(column, first), count), p, 0.0);
          Value tile = b.div(first, b.index(shape.columns));
          Value right = b.panels(packed, at.b, keyHead, tile);
          whereSeen(b, b.load(finite, {at.b, keyHead, tile}), p, at, shape,
                    [&](Value seen) {
                      b.make<tile::MultiplyOp>(p, right, block, at.count,
                                               llvm::APFloat(1.0), seen, true);
                    });
        });
        storeRows(b, block, sum, at);
      });
  rows.release(b);
}

static void lowerWeigh(TileBuilder &b, ring::WeighOp op, const Shape &shape,
                       Launcher launch) {
  addToQueries(b, launch, "weigh", "pack_values", op.getWeights(),
               op.getValue(), KeySlice::of(op), op.getO(), shape);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

static void lowerProbabilities(TileBuilder &b, ring::ProbabilitiesOp op,
                               const Shape &shape, Launcher launch) {
  Value scores, lses;
  Operands operands;
  operands.read(lses, "", op.getLse());
  operands.write(scores, "", op.getScores());
  launch("probabilities", numScoreTasks(b, op.getScores(), shape), {}, operands,
         [&](TileBuilder &b, Value task) {
           RowTask at = decodeScoreTask(b, task, scores, shape);
           Value lse =
               loadRows(b, lses, at, shape.rowVector(), std::numbers::log2e);
           Value s = b.alloca(shape.tile(shape.columns));
           eachTile(b, b.dim(scores, 3), shape, [&](Value first, Value count) {
             Value view = viewOf(b, scores, at, first, count);
             load(b, view, s, minusInfinity);
             b.make<tile::WeightsOp>(s, lse, at.count);
             b.make<tile::StoreOp>(s, view);
           });
         });
}

/// sums += weights^T queries: a task has a tile of keys, and goes over all
/// queries of the heads that share its own.
static void addToKeys(TileBuilder &b, Launcher launch, StringRef name,
                      StringRef packName, Value stored, Value shard,
                      const KeySlice &of, Value sums, const Shape &shape) {
  int64_t keyHeads = headsOf(sums), group = headsOf(shard) / keyHeads;
  PackedRows rows = pack(b, launch, packName, shard, shape.rows, shape);
  ProductOperands product(b, stored, rows, sums, of);
  auto &[weights, packed, finite, sum, column, operands] = product;
  Value tiles = b.ceilDiv(b.dim(sums, 1), shape.columns);
  Value heads = b.mul(b.dim(sums, 0), b.index(keyHeads));
  // Products go over strips of columns, the last of which may reach beyond.
  int64_t width = shape.blockColumns();
  auto weightsType = MemRefType::get({shape.rows, width}, shape.state);
  auto sumType =
      MemRefType::get({width, shape.padded(dimOf(sums))}, shape.state);
  auto addRows = [&](TileBuilder &b, const RowTask &at, Value tile, Value p,
                     Value block, Value count) {
    Value right = b.panels(packed, at.b, at.h, tile);
    whereSeen(b, b.load(finite, {at.b, at.h, tile}), p, at, shape,
              [&](Value seen) {
                b.loop(b.index(0), count, shape.strip, [&](Value first) {
                  auto strip = [&](Value block) {
                    return b.part(block, {b.getIndexAttr(0), first},
                                  {b.getIndexAttr(shape.rows),
                                   b.getIndexAttr(shape.strip)});
                  };
                  b.make<tile::MultiplyOp>(
                      strip(p), right, rowsOf(b, block, first, shape.strip),
                      b.min(b.sub(count, first), b.index(shape.strip)),
                      llvm::APFloat(1.0), seen ? strip(seen) : seen,
                      /*accumulate=*/true, /*depth=*/at.count,
                      /*transposed=*/true);
                });
              });
  };
  launch(
      name, b.mul(heads, tiles), {}, operands, [&](TileBuilder &b, Value task) {
        Value numKeys = b.dim(sum, 1), wide = b.index(shape.columns);
        Value tiles = b.ceilDiv(numKeys, shape.columns);
        Value head = b.div(task, tiles),
              first = b.mul(b.rem(task, tiles), wide);
        Value keyHead = b.rem(head, b.index(keyHeads));
        Value batch = b.div(head, b.index(keyHeads));
        RowTask keys{batch, keyHead, first, b.min(b.sub(numKeys, first), wide)};
        Value block = loadRows(b, sum, keys, sumType);
        Value p = b.alloca(weightsType);
        Value numRows = b.dim(weights, 2), height = b.index(shape.rows);
        b.loop(b.index(group), [&](Value member) {
          Value h = b.add(b.mul(keyHead, b.index(group)), member);
          b.loop(b.index(0), numRows, shape.rows, [&](Value row) {
            RowTask at{batch, h, row, b.min(b.sub(numRows, row), height)};
            load(b, viewOf(b, weights, at, b.add(column, first), keys.count), p,
                 0.0);
            addRows(b, at, b.div(row, height), p, block, keys.count);
          });
        });
        storeRows(b, block, sum, keys);
      });
  rows.release(b);
}

/// Probabilities become scale * p * (outGrad v^T - delta).
static void differentiate(TileBuilder &b, ring::WeighGradOp op,
                          const Shape &shape, Launcher launch) {
  int64_t heads = headsOf(op.getOutGrad()), keyHeads = headsOf(op.getValue());
  int64_t dim = dimOf(op.getValue());
  PackedRows values = pack(b, launch, "pack_values", op.getValue(),
                           shape.columns, shape, /*areColumns=*/true);
  Value weights, packed, outGrads, deltas, column, numKeys;
  Operands operands;
  operands.read(packed, "", values.panels);
  operands.read(outGrads, "", op.getOutGrad());
  operands.read(deltas, "", op.getDelta());
  operands.write(weights, "", op.getWeights());
  operands.scalar(column, "", KeySlice::of(op).firstColumn(b));
  operands.scalar(numKeys, "", b.dim(op.getValue(), 1));
  launch("differentials", numScoreTasks(b, op.getWeights(), shape), {},
         operands, [&](TileBuilder &b, Value task) {
           RowTask at = decodeScoreTask(b, task, weights, shape);
           Value keyHead = b.div(at.h, b.index(heads / keyHeads));
           Value outGrad = loadRows(b, outGrads, at, shape.tile(dim));
           Value delta = loadRows(b, deltas, at, shape.rowVector());
           Value p = b.alloca(shape.tile(shape.columns));
           Value dp = b.alloca(shape.tile(shape.columns));
           eachTile(b, numKeys, shape, [&](Value first, Value count) {
             Value view = viewOf(b, weights, at, b.add(column, first), count);
             load(b, view, p, 0.0);
             Value tile = b.div(first, b.index(shape.columns));
             b.make<tile::MultiplyOp>(
                 outGrad, b.panels(packed, at.b, keyHead, tile), dp, at.count,
                 llvm::APFloat(1.0), Value(), /*accumulate=*/false);
             b.make<tile::DifferentialsOp>(p, dp, delta, at.count,
                                           op.getScale());
             b.make<tile::StoreOp>(dp, view);
           });
         });
  values.release(b);
}

static void lowerWeighGrad(TileBuilder &b, ring::WeighGradOp op,
                           const Shape &shape, Launcher launch) {
  addToKeys(b, launch, "value_gradients", "pack_gradients", op.getWeights(),
            op.getOutGrad(), KeySlice::of(op), op.getValueGrad(), shape);
  differentiate(b, op, shape, launch);
}

static void lowerScoreGrad(TileBuilder &b, ring::ScoreGradOp op,
                           const Shape &shape, Launcher launch) {
  addToQueries(b, launch, "query_gradients", "pack_keys", op.getWeights(),
               op.getKey(), KeySlice::of(op), op.getQueryGrad(), shape);
  addToKeys(b, launch, "key_gradients", "pack_queries", op.getWeights(),
            op.getQuery(), KeySlice::of(op), op.getKeyGrad(), shape);
}

//===----------------------------------------------------------------------===//
// The steps
//===----------------------------------------------------------------------===//

template <typename OpT>
static void lowerStep(Lowering &lowering, OpT op, Shape shape,
                      void (*lower)(TileBuilder &, OpT, const Shape &,
                                    Launcher)) {
  TileBuilder b(op.getLoc(), op);
  lower(b, op, shape,
        [&](StringRef name, Value tasks, Value order, const Operands &operands,
            Body body) {
          lowering.launch(b, name, tasks, order, operands, body);
        });
  op.erase();
}

void Lowering::lower(ring::ScoresOp op) {
  lowerStep(*this, op, shapeOf(op.getInto()), lowerScores);
}

void Lowering::lower(ring::ScoreOp op) {
  lowerStep(*this, op, shapeOf(op.getScores()), lowerScore);
}

void Lowering::lower(ring::SoftmaxOp op) {
  lowerStep(*this, op, shapeOf(op.getScores()), lowerSoftmax);
}

void Lowering::lower(ring::WeighOp op) {
  lowerStep(*this, op, shapeOf(op.getWeights()), lowerWeigh);
}

void Lowering::lower(ring::ProbabilitiesOp op) {
  lowerStep(*this, op, shapeOf(op.getScores()), lowerProbabilities);
}

/// Blocks of weights are read by their columns, too.
Shape Lowering::stripShapeOf(Value stored) {
  Shape shape = shapeOf(stored);
  shape.strip = options.strip;
  return shape;
}

void Lowering::lower(ring::WeighGradOp op) {
  lowerStep(*this, op, stripShapeOf(op.getWeights()), lowerWeighGrad);
}

void Lowering::lower(ring::ScoreGradOp op) {
  lowerStep(*this, op, stripShapeOf(op.getWeights()), lowerScoreGrad);
}
