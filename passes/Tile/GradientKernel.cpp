//===- GradientKernel.cpp - the backward pass of a key head ---------------===//
#include "passes/Tile/GradientKernel.h"

#include <numbers>

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

GradientOperands::GradientOperands(TileBuilder &b, ring::AttendGradOp op,
                                   const Shape &shape,
                                   const Schedule &schedule) {
  int64_t any = ShapedType::kDynamic;
  Value batch = b.dim(op.getQuery(), 0);
  auto allocate = [&](Value shard, Value table, int64_t width, int64_t depth) {
    int64_t heads = cast<MemRefType>(shard.getType()).getDimSize(2);
    return b.allocate(
        MemRefType::get({any, heads, any, shape.padded(width) / shape.panel,
                         depth, shape.panel},
                        shape.state),
        {batch, b.dim(table, 0)}, tile::Memory::Packing);
  };
  auto flags = [&](Value shard, Value table) {
    int64_t heads = cast<MemRefType>(shard.getType()).getDimSize(2);
    return b.allocate(MemRefType::get({any, heads, any}, b.getI1Type()),
                      {batch, b.dim(table, 0)}, tile::Memory::Schedule);
  };
  Value key = op.getKey(), value = op.getValue(), query = op.getQuery();
  keysTransposed = allocate(key, schedule.keys, shape.columns, dimOf(key));
  valuesTransposed =
      allocate(value, schedule.keys, shape.columns, dimOf(value));
  keys = allocate(key, schedule.keys, dimOf(key), shape.columns);
  queries = allocate(query, schedule.queries, dimOf(query), shape.rows);
  outGrads = allocate(op.getOutGrad(), schedule.queries, dimOf(op.getOutGrad()),
                      shape.rows);
  finiteKeys = flags(key, schedule.keys);
  finiteQueries = flags(query, schedule.queries);
}

GradientKernel::GradientKernel(TileBuilder &builder, ring::AttendGradOp op,
                               const Shape &shape, const Schedule &schedule,
                               ValueRange args, GradientPart part)
    : b(builder), op(op), shape(shape), schedule(schedule), part(part) {
  size_t next = 0;
  auto take = [&] { return args[next++]; };
  for (Value *value :
       {&query, &outGrad, &lse, &delta, &packedKeysT, &packedValuesT,
        &packedKeys, &packedQueries, &packedOutGrads, &finiteKeys,
        &finiteQueries, &queries, &keys, &list, &counts})
    *value = take();
  auto takeCaptures = [&](ValueRange captures, SmallVector<Value> &into,
                          bool buffers) {
    into.resize(captures.size());
    for (auto [capture, argument] : llvm::zip_equal(captures, into))
      if (isa<MemRefType>(capture.getType()) == buffers)
        argument = take();
  };
  takeCaptures(op.getMaskCaptures(), maskCaptures, true);
  takeCaptures(op.getScoreCaptures(), scoreCaptures, true);
  for (Value *value : {&dq, &dk, &dv})
    *value = take();
  if (part != GradientPart::All)
    for (Value *value : {&weights, &differentials})
      *value = take();
  for (Value *value : {&sq, &sk})
    *value = take();
  takeCaptures(op.getMaskCaptures(), maskCaptures, false);
  takeCaptures(op.getScoreCaptures(), scoreCaptures, false);
}

void GradientKernel::positions(const Tile &key, const Tile &query) {
  auto write = [&](Value block, Value table, const Tile &tile) {
    b.make<tile::PositionsOp>(block, b.field(table, tile.number, Field::First),
                              tile.count,
                              b.field(table, tile.number, Field::Begin),
                              b.field(table, tile.number, Field::Step),
                              b.field(table, tile.number, Field::Block));
  };
  write(blocks.i, queries, query);
  write(blocks.j, keys, key);
}

/// Score and mask of the pair of tiles at hand, or its mask alone.
void GradientKernel::map(Value s, const Tile &key, const Tile &query,
                         bool isPartial, bool hasScore) {
  positions(key, query);
  auto map = b.make<tile::MapOp>(
      s, query.count, key.count, batch, head, blocks.i, blocks.j, sq, sk,
      isPartial ? ValueRange(maskCaptures) : ValueRange(),
      hasScore ? ValueRange(scoreCaptures) : ValueRange(),
      b.getF64FloatAttr(hasScore ? std::numbers::log2e : 1.0));
  IRMapping mapping;
  if (isPartial)
    op.getMask().cloneInto(&map.getMask(), mapping);
  if (hasScore)
    op.getScore().cloneInto(&map.getScore(), mapping);
}

/// Through the score, and to the unit of the products q k.
void GradientKernel::differentiate(const Tile &key, const Tile &query) {
  // Both are of one type, and what is stored has a layout.
  Value t = blocks.t;
  if (t.getType() != blocks.dp.getType())
    t = b.make<memref::CastOp>(cast<MemRefType>(blocks.dp.getType()), t);
  auto map = b.make<tile::MapGradientOp>(blocks.dp, t, query.count, key.count,
                                         batch, head, blocks.i, blocks.j, sq,
                                         sk, scoreCaptures);
  IRMapping mapping;
  op.getGradient().cloneInto(&map.getGradient(), mapping);
  b.make<tile::RescaleOp>(blocks.dp, blocks.scale, query.count);
}

void GradientKernel::multiply(Value left, Value panels, Value into, Value rows,
                              Value depth, Value seen, bool transposed) {
  b.make<tile::MultiplyOp>(left, panels, into, rows, llvm::APFloat(1.0), seen,
                           /*accumulate=*/true, depth, transposed);
}

void GradientKernel::load(Value buffer, const Tile &query, Value block,
                          double factor) {
  b.make<tile::LoadOp>(b.rows(buffer, batch, head, query.row, query.count),
                       block, b.getF64FloatAttr(factor),
                       b.getF64FloatAttr(0.0));
}

/// Whether not all numbers that weights and their gradients weigh are finite.
Value GradientKernel::hides(const Tile &key, const Tile &query) {
  Value isFinite = b.both(b.load(finiteKeys, {batch, keyHead, key.number}),
                          b.load(finiteQueries, {batch, head, query.number}));
  return b.make<arith::XOrIOp>(isFinite, b.truth(true));
}

/// Weights and their gradients: two products.
void GradientKernel::weigh(const Tile &key, const Tile &query, bool isPartial) {
  bool hasScore = !op.getScore().empty();
  double scale = op.getScale().convertToDouble();
  load(this->query, query, blocks.q,
       hasScore ? scale : scale * std::numbers::log2e);
  load(outGrad, query, blocks.outGrad, 1.0);
  load(lse, query, blocks.lse, std::numbers::log2e);
  load(delta, query, blocks.delta, 1.0);
  auto product = [&](Value left, Value panels, Value into) {
    b.make<tile::MultiplyOp>(left, panels, into, query.count,
                             llvm::APFloat(1.0), /*seen=*/Value(),
                             /*accumulate=*/false, /*depth=*/Value(),
                             /*transposed=*/false);
  };
  product(blocks.q, b.panels(packedKeysT, batch, keyHead, key.number),
          blocks.s);
  if (hasScore)
    b.make<memref::CopyOp>(blocks.s, blocks.t);
  if (isPartial || hasScore)
    map(blocks.s, key, query, isPartial, hasScore);
  if (part == GradientPart::All && isPartial && blocks.seen)
    b.when(hides(key, query),
           [&] { b.make<memref::CopyOp>(blocks.s, blocks.seen); });
  b.make<tile::WeightsOp>(blocks.s, blocks.lse, query.count);
  product(blocks.outGrad, b.panels(packedValuesT, batch, keyHead, key.number),
          blocks.dp);
  b.make<tile::DifferentialsOp>(blocks.s, blocks.dp, blocks.delta, query.count,
                                b.getF64FloatAttr(hasScore ? 1.0 : scale));
  if (hasScore)
    differentiate(key, query);
}

/// What they add to the gradients: three products. A weight of 0 rules out what
/// it weighs only if that is a number.
void GradientKernel::sum(const Tile &key, const Tile &query, bool isPartial) {
  load(dq, query, blocks.dq, 1.0);
  auto multiplyAll = [&](Value seen) {
    multiply(blocks.s, b.panels(packedOutGrads, batch, head, query.number),
             blocks.dv, key.count, query.count, seen, true);
    multiply(blocks.dp, b.panels(packedQueries, batch, head, query.number),
             blocks.dk, key.count, query.count, seen, true);
    multiply(blocks.dp, b.panels(packedKeys, batch, keyHead, key.number),
             blocks.dq, query.count, Value(), seen, false);
  };
  if (isPartial && blocks.seen) {
    auto choice = b.make<scf::IfOp>(hides(key, query), /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    if (part == GradientPart::Sums) {
      // The scores are gone: the mask is asked again.
      b.make<tile::FillOp>(blocks.seen, b.getF64FloatAttr(0.0));
      map(blocks.seen, key, query, isPartial, /*hasScore=*/false);
    }
    multiplyAll(blocks.seen);
    b.setInsertionPointToStart(choice.elseBlock());
    multiplyAll({});
  } else {
    multiplyAll({});
  }
  b.make<tile::StoreOp>(blocks.dq,
                        b.rows(dq, batch, head, query.row, query.count));
}

/// What a kernel does for a pair of tiles.
void GradientKernel::step(const Tile &key, Value number, bool isPartial) {
  Tile query{number, b.field(queries, number, Field::Row),
             b.field(queries, number, Field::Count)};
  if (part != GradientPart::All) {
    Value at[] = {batch, head, query.number, key.number};
    blocks.s = b.element(weights, at);
    blocks.dp = b.element(differentials, at);
  }
  if (part != GradientPart::Sums)
    weigh(key, query, isPartial);
  if (part != GradientPart::Weights)
    sum(key, query, isPartial);
}

void GradientKernel::build(Value task) {
  auto queryType = cast<MemRefType>(query.getType());
  int64_t numKeyHeads = cast<MemRefType>(dk.getType()).getDimSize(2);
  int64_t group = queryType.getDimSize(2) / numKeyHeads;
  keyHead = b.rem(task, b.index(numKeyHeads));
  batch = b.div(task, b.index(numKeyHeads));
  int64_t queryColumns = shape.padded(dimOf(dk));
  int64_t valueColumns = shape.padded(dimOf(dv));
  auto tileOfKeys = [&](int64_t columns) {
    return MemRefType::get({shape.columns, columns}, shape.state);
  };
  blocks = {b.alloca(shape.tile(queryType.getDimSize(3))),
            b.alloca(shape.tile(dimOf(outGrad))),
            b.alloca(shape.tile(shape.columns)),
            b.alloca(shape.tile(shape.columns)),
            b.alloca(shape.tile(queryColumns)),
            b.alloca(tileOfKeys(queryColumns)),
            b.alloca(tileOfKeys(valueColumns)),
            b.alloca(shape.rowVector()),
            b.alloca(shape.rowVector()),
            b.alloca(shape.positions(shape.rows)),
            b.alloca(shape.positions(shape.columns)),
            Value(),
            Value(),
            Value()};
  if (!op.getScore().empty()) {
    blocks.t = b.alloca(shape.tile(shape.columns));
    blocks.scale = b.alloca(shape.rowVector());
    b.make<tile::FillOp>(blocks.scale, op.getScaleAttr());
  }
  if (!op.getMask().empty())
    blocks.seen = b.alloca(shape.tile(shape.columns));
  Value zero = b.index(0), one = b.index(1);
  Value numQueries = b.dim(queries, 0);
  Value cb = schedule.byBatch ? batch : zero;
  b.loop(b.dim(keys, 0), [&](Value number) {
    Tile key{number, b.field(keys, number, Field::Row),
             b.field(keys, number, Field::Count)};
    auto view = [&](Value gradient) {
      return b.rows(gradient, batch, keyHead, key.row, key.count);
    };
    auto load = [&](Value gradient, Value block) {
      b.make<tile::LoadOp>(view(gradient), block, b.getF64FloatAttr(1.0),
                           b.getF64FloatAttr(0.0));
    };
    bool sums = part != GradientPart::Weights;
    if (sums) {
      load(dk, blocks.dk);
      load(dv, blocks.dv);
    }
    b.loop(b.index(group), [&](Value member) {
      head = b.add(b.mul(keyHead, b.index(group)), member);
      Value ch = schedule.byHead ? head : zero;
      Value full = b.load(counts, {cb, ch, number, zero});
      Value partial = b.load(counts, {cb, ch, number, one});
      auto queryAt = [&](Value place) {
        return b.make<arith::IndexCastUIOp>(
            b.getIndexType(), b.load(list, {cb, ch, number, place}));
      };
      b.loop(full, [&](Value t) { step(key, queryAt(t), false); });
      b.loop(partial, [&](Value t) {
        step(key, queryAt(b.sub(b.sub(numQueries, one), t)), true);
      });
    });
    if (sums) {
      b.make<tile::StoreOp>(blocks.dk, view(dk));
      b.make<tile::StoreOp>(blocks.dv, view(dv));
    }
  });
}
