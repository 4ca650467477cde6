//===- CtaGradient.cpp - the backward pass of a CTA of a GPU --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/CtaGradient.h"

#include <numbers>

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

CtaShape tiling::queryCtaOf(int64_t dim, int64_t valueDim) {
  return {64, std::max(dim, valueDim) <= 128 ? 64 : 32, 4};
}

CtaShape tiling::keyCtaOf(int64_t dim, int64_t valueDim) {
  return {64, std::max(dim, valueDim) <= 128 ? 32 : 16, 4};
}

SmallVector<Sums> tiling::keySumsOf(int64_t dim, int64_t valueDim) {
  if (dim + valueDim <= 160)
    return {Sums::OfKeysAndValues};
  return {Sums::OfKeys, Sums::OfValues};
}

void CtaGradientArguments::bindTo(Operands &operands, ring::AttendGradOp op,
                                  const Schedule &schedule, Sums sums) {
  operands.read(queries.first, "q", op.getQuery());
  operands.read(queries.second, "dout", op.getOutGrad());
  operands.read(keys.first, "k", op.getKey());
  operands.read(keys.second, "v", op.getValue());
  operands.read(lse, "lse", op.getLse());
  operands.read(delta, "delta", op.getDelta());
  operands.read(queries.tiles, "queryTiles", schedule.queries);
  operands.read(keys.tiles, "keyTiles", schedule.keys);
  operands.read(list, "list", schedule.list);
  operands.read(counts, "counts", schedule.counts);
  if (sums == Sums::OfQueries)
    operands.write(gradient, "dq", op.getGrads()[0]);
  if (sums == Sums::OfKeysAndValues || sums == Sums::OfKeys)
    operands.write(gradient, "dk", op.getGrads()[1]);
  if (sums == Sums::OfKeysAndValues || sums == Sums::OfValues)
    operands.write(valueGradient, "dv", op.getGrads()[2]);
  operands.scalar(sq, "sq", op.getQueryExtent());
  operands.scalar(sk, "sk", op.getKeyExtent());
  operands.capture(maskCaptures, op.getMaskCaptures());
  operands.capture(scoreCaptures, op.getScoreCaptures());
}

/// A number for each query of a tile of scores.
MemRefType CtaGradient::perQuery() {
  if (!ofKeys)
    return shape.rowVector();
  return MemRefType::get({shape.columns}, shape.state,
                         MemRefLayoutAttrInterface(),
                         shape.rowVector().getMemorySpace());
}

/// Rows of the head at hand.
Value CtaGradient::rowsOf(Value shard, Value row, Value count) {
  bool isOfKeys = shard == keys.first || shard == keys.second;
  return b.rows(shard, batch, isOfKeys ? keyHead : head, row, count);
}

/// Loads a listed tile.
Value CtaGradient::otherTile(bool isSecond, const Listed &other) {
  const Shards &shards = ofKeys ? queries : keys;
  Value block = isSecond ? blocks.other.second : blocks.other.first;
  b.make<tile::LoadOp>(
      rowsOf(isSecond ? shards.second : shards.first, other.row, other.count),
      block);
  return block;
}

void CtaGradient::product(Value own, Value other, Value into, double factor) {
  b.make<tile::MultiplyOp>(own, other, into, count, llvm::APFloat(factor),
                           /*seen=*/Value(), /*accumulate=*/false,
                           /*byRows=*/true);
}

/// Gradients by scores become those by what the score region was given.
void CtaGradient::differentiate(Value columns) {
  auto map = b.make<tile::MapGradientOp>(
      blocks.dp, blocks.t, count, columns, batch, head, blocks.i, blocks.j, sq,
      sk, /*grads=*/ValueRange(), scoreCaptures, ArrayRef<int64_t>(), ofKeys);
  IRMapping mapping;
  op.getGradient().cloneInto(&map.getGradient(), mapping);
}

/// What a listed tile gives. What is read once is multiplied first: its next
/// tile is copied from then on.
void CtaGradient::step(Value number, Value isPartial) {
  Value table = (ofKeys ? queries : keys).tiles;
  Listed other{b.field(table, number, Field::Row),
               b.field(table, number, Field::Count)};
  bool hasScore = !op.getScore().empty();
  double scale = op.getScale().convertToDouble();
  Value columns = b.index(shape.columns);
  if (ofKeys) {
    // Of queries that a tile does not have no weight is more than 0.
    auto load = [&](Value buffer, Value block, double factor, double padding) {
      b.make<tile::LoadOp>(rowsOf(buffer, other.row, other.count), block,
                           b.getF64FloatAttr(factor),
                           b.getF64FloatAttr(padding));
    };
    load(lse, blocks.lse, std::numbers::log2e, minusInfinity);
    if (blocks.dp)
      load(delta, blocks.delta, 1.0, 0.0);
  } else {
    columns = other.count;
  }
  if (blocks.dp)
    product(blocks.own.second, otherTile(/*isSecond=*/true, other), blocks.dp,
            1.0);
  product(blocks.own.first, otherTile(/*isSecond=*/false, other), blocks.s,
          hasScore ? scale : scale * std::numbers::log2e);
  if (blocks.t)
    b.make<memref::CopyOp>(blocks.s, blocks.t);
  auto positions = [&] {
    b.positions(ofKeys ? blocks.i : blocks.j, table, number, columns,
                ofKeys ? op.getQueryLayout() : op.getKeyLayout());
  };
  auto map = [&](bool isMasked) {
    mapScores(b, op,
              {blocks.s, count, columns, batch, head, blocks.i, blocks.j, sq,
               sk, maskCaptures, scoreCaptures},
              isMasked, /*isScored=*/!isMasked, /*isTransposed=*/ofKeys);
  };
  if (hasScore) { // of whose positions the gradient is, too
    positions();
    map(/*isMasked=*/false);
  }
  b.when(isPartial, [&] {
    if (!hasScore)
      positions();
    map(/*isMasked=*/true);
  });
  b.make<tile::WeightsOp>(blocks.s, blocks.lse, count, ofKeys);
  auto sum = [&](Value weights, Value tile, Value into) {
    b.make<tile::MultiplyOp>(weights, tile, into, count, llvm::APFloat(1.0),
                             /*seen=*/Value(), /*accumulate=*/true);
  };
  if (blocks.valueGradient)
    sum(blocks.s,
        blocks.dp ? blocks.other.second : otherTile(/*isSecond=*/true, other),
        blocks.valueGradient);
  if (!blocks.dp)
    return;
  b.make<tile::DifferentialsOp>(blocks.s, blocks.dp, blocks.delta, count,
                                llvm::APFloat(1.0), ofKeys);
  if (blocks.t)
    differentiate(columns);
  sum(blocks.dp, blocks.other.first, blocks.gradient);
}

/// Does a step for each tile of the list of a head.
void CtaGradient::lists(Value head) {
  this->head = b.named("head", head);
  Value zero = b.index(0), one = b.index(1);
  Value cb = schedule.byBatch ? batch : zero;
  Value ch = schedule.byHead ? head : zero;
  Value full = b.named("full", b.load(counts, {cb, ch, tile, zero}));
  Value partial = b.named("partial", b.load(counts, {cb, ch, tile, one}));
  StringRef name = ofKeys ? "query" : "key";
  auto otherAt = [&](Value place) {
    Value other = b.make<arith::IndexCastUIOp>(
        b.getIndexType(), b.load(list, {cb, ch, tile, place}));
    return b.named(name, other);
  };
  Value last = b.sub(b.dim((ofKeys ? queries : keys).tiles, 0), one);
  b.loop(b.add(full, partial), [&](Value t) {
    Value isPartial = b.compare(arith::CmpIPredicate::sge, t, full);
    step(otherAt(b.select(isPartial, b.sub(last, b.sub(t, full)), t)),
         isPartial);
  });
}

/// Adds a sum to a gradient in memory.
void CtaGradient::add(Value sum, Value gradient) {
  Value view = b.rows(gradient, batch, ofKeys ? keyHead : head, row, count);
  Value before = b.named("before", b.alloca(cast<MemRefType>(sum.getType())));
  b.make<tile::LoadOp>(view, before);
  b.make<tile::AddOp>(sum, before, count);
  b.make<tile::StoreOp>(sum, view);
}

void CtaGradient::makeBlocks() {
  int64_t dim = dimOf(queries.first), valueDim = dimOf(queries.second);
  auto block = [&](StringRef name, MemRefType type) {
    return b.named(name, b.alloca(type));
  };
  bool hasScore = !op.getScore().empty(), hasDp = sums != Sums::OfValues;
  auto shards = [&](bool areOfKeys, int64_t rows) {
    Shards shards;
    shards.first =
        block(areOfKeys ? "keyTile" : "queryTile", shape.staged(rows, dim));
    if (hasDp || !areOfKeys)
      shards.second = block(areOfKeys ? "valueTile" : "outGradTile",
                            shape.staged(rows, valueDim));
    return shards;
  };
  blocks.own = shards(ofKeys, shape.rows);
  blocks.other = shards(!ofKeys, shape.columns);
  blocks.s = block("scores", shape.tile(shape.columns));
  blocks.lse = block("lseRows", perQuery());
  if (hasDp) {
    blocks.dp = block("weightGrads", shape.tile(shape.columns));
    blocks.delta = block("deltaRows", perQuery());
    blocks.gradient =
        block(ofKeys ? "dkSum" : "dqSum", shape.tile(shape.padded(dim)));
    blocks.scale = block("factors", shape.rowVector());
    if (hasScore)
      blocks.t = block("products", shape.tile(shape.columns));
  }
  if (valueGradient)
    blocks.valueGradient = block("dvSum", shape.tile(shape.padded(valueDim)));
  blocks.i = block(ofKeys ? "columns" : "rows",
                   shape.positions(ofKeys ? shape.columns : shape.rows));
  blocks.j = block(ofKeys ? "rows" : "columns",
                   shape.positions(ofKeys ? shape.rows : shape.columns));
}

/// Adds up over the lists of the `group` heads of queries of a head.
void CtaGradient::sumUp(Value group) {
  const Shards &own = ofKeys ? keys : queries;
  auto load = [&](Value shard, Value block) {
    b.make<tile::LoadOp>(rowsOf(shard, row, count), block);
  };
  load(own.first, blocks.own.first);
  if (blocks.own.second)
    load(own.second, blocks.own.second);
  auto fill = [&](Value block) {
    if (block)
      b.make<tile::FillOp>(block, b.getF64FloatAttr(0.0));
  };
  fill(blocks.gradient);
  fill(blocks.valueGradient);
  if (!op.getMask().empty() || !op.getScore().empty())
    b.positions(ofKeys ? blocks.j : blocks.i, own.tiles, tile, count,
                ofKeys ? op.getKeyLayout() : op.getQueryLayout());
  if (ofKeys) {
    b.loop(group,
           [&](Value member) { lists(b.add(b.mul(keyHead, group), member)); });
  } else {
    auto load = [&](Value buffer, Value block, double factor) {
      b.make<tile::LoadOp>(rowsOf(buffer, row, count), block,
                           b.getF64FloatAttr(factor), b.getF64FloatAttr(0.0));
    };
    load(lse, blocks.lse, std::numbers::log2e);
    load(delta, blocks.delta, 1.0);
    lists(head);
  }
  if (blocks.gradient) {
    b.make<tile::FillOp>(blocks.scale, op.getScaleAttr());
    b.make<tile::RescaleOp>(blocks.gradient, blocks.scale, count);
    add(blocks.gradient, gradient);
  }
  if (blocks.valueGradient)
    add(blocks.valueGradient, valueGradient);
}

void CtaGradient::build(Value task) {
  const Shards &own = ofKeys ? keys : queries;
  int64_t heads = cast<MemRefType>(queries.first.getType()).getDimSize(2);
  int64_t keyHeads = cast<MemRefType>(keys.first.getType()).getDimSize(2);
  Value group = b.index(heads / keyHeads);
  Value numTiles = b.dim(own.tiles, 0), zero = b.index(0);
  tile = b.named("tile", b.rem(task, numTiles));
  Value ownHead = b.div(task, numTiles);
  Value ownHeads = b.index(ofKeys ? keyHeads : heads);
  batch = b.named("batch", b.div(ownHead, ownHeads));
  ownHead = b.rem(ownHead, ownHeads);
  keyHead = b.named("keyHead", ofKeys ? ownHead : b.div(ownHead, group));
  head = ownHead;
  row = b.field(own.tiles, tile, Field::Row);
  count = b.field(own.tiles, tile, Field::Count);
  makeBlocks();
  // Where lists differ by head, a tile of keys has as many lists as its head
  // has heads of queries.
  if (ofKeys && schedule.byHead && heads != keyHeads)
    return sumUp(group);
  Value cb = schedule.byBatch ? batch : zero;
  Value ch = schedule.byHead ? ownHead : zero;
  Value any = b.add(b.load(counts, {cb, ch, tile, zero}),
                    b.load(counts, {cb, ch, tile, b.index(1)}));
  b.when(b.compare(arith::CmpIPredicate::ne, any, zero), [&] { sumUp(group); });
}
