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
                               ArrayRef<Value> copies, ValueRange args,
                               GradientPart part)
    : b(builder), op(op), shape(shape), schedule(schedule), part(part) {
  Arguments list(b, args);
  const std::pair<Value *, StringRef> reads[] = {
      {&query, "q"},
      {&outGrad, "dout"},
      {&lse, "lse"},
      {&delta, "delta"},
      {&packedKeysT, "keysTransposed"},
      {&packedValuesT, "valuesTransposed"},
      {&packedKeys, "keys"},
      {&packedQueries, "queries"},
      {&packedOutGrads, "outGrads"},
      {&finiteKeys, "finiteKeys"},
      {&finiteQueries, "finiteQueries"},
      {&queries, "queryTiles"},
      {&keys, "keyTiles"},
      {&this->list, "list"},
      {&counts, "counts"}};
  for (auto [place, name] : reads)
    *place = list.take(name);
  list.take(op.getMaskCaptures(), maskCaptures, true);
  list.take(op.getScoreCaptures(), scoreCaptures, true);
  dq = list.take("dq");
  dk = list.take("dk");
  dv = list.take("dv");
  for (size_t n = 0; n < copies.size(); ++n)
    tables.push_back({list.take("gradient"), Value(), Value()});
  for (auto [table, copy] : llvm::zip_equal(tables, copies))
    if (copy)
      table.copies = list.take("copies");
  if (part != GradientPart::All) {
    weights = list.take("weights");
    differentials = list.take("differentials");
  }
  sq = list.take("sq");
  sk = list.take("sk");
  list.take(op.getMaskCaptures(), maskCaptures, false);
  list.take(op.getScoreCaptures(), scoreCaptures, false);
}

void GradientKernel::positions(const Tile &key, const Tile &query) {
  b.positions(blocks.i, queries, query.number, query.count,
              op.getQueryLayout());
  b.positions(blocks.j, keys, key.number, key.count, op.getKeyLayout());
}

/// Score and mask of the pair of tiles at hand, or its mask alone.
void GradientKernel::map(Value s, const Tile &key, const Tile &query,
                         bool isPartial, bool hasScore) {
  positions(key, query);
  mapScores(b, op,
            {s, query.count, key.count, batch, head, blocks.i, blocks.j, sq, sk,
             maskCaptures, scoreCaptures},
            isPartial, hasScore);
}

/// Through the score, and to the unit of the products q k.
void GradientKernel::differentiate(const Tile &key, const Tile &query) {
  // Both are of one type, and what is stored has a layout.
  Value t = blocks.t;
  if (t.getType() != blocks.dp.getType())
    t = b.make<memref::CastOp>(cast<MemRefType>(blocks.dp.getType()), t);
  SmallVector<Value> grads =
      llvm::map_to_vector(tables, [](const Table &table) { return table.own; });
  auto map = b.make<tile::MapGradientOp>(
      blocks.dp, t, query.count, key.count, batch, head, blocks.i, blocks.j, sq,
      sk, grads, scoreCaptures, op.getCapturesAttr());
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
                                llvm::APFloat(hasScore ? 1.0 : scale));
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

/// Where this task adds to the gradient of a table: to the table itself, or to
/// one of its copies, which nobody adds to at the same time.
Value GradientKernel::ownTable(const Table &table, Sharing sharing) {
  auto type = cast<MemRefType>(table.gradient.getType());
  Value numKeyHeads = b.index(cast<MemRefType>(dk.getType()).getDimSize(2));
  Value number = sharing.batches ? batch : b.index(0);
  if (sharing.heads)
    number =
        sharing.batches ? b.add(b.mul(number, numKeyHeads), keyHead) : keyHead;
  Value isFirst = b.compare(arith::CmpIPredicate::eq, number, b.index(0));
  OpFoldResult one = b.getIndexAttr(1), zero = b.getIndexAttr(0);
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> offsets(rank + 1, zero), sizes{one},
      strides(rank + 1, one);
  offsets[0] = b.max(b.sub(number, b.index(1)), b.index(0));
  for (int64_t d = 0; d < rank; ++d)
    sizes.push_back(getAsOpFoldResult(b.dim(table.copies, d + 1)));
  MemRefType view = memref::SubViewOp::inferRankReducedResultType(
      type.getShape(), cast<MemRefType>(table.copies.getType()), offsets, sizes,
      strides);
  // Wherever it lies.
  SmallVector<int64_t> steps(rank, ShapedType::kDynamic);
  steps.back() = 1;
  auto any = MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, steps));
  Value copy =
      b.make<memref::SubViewOp>(view, table.copies, offsets, sizes, strides);
  return b.select(isFirst, b.make<memref::CastOp>(any, table.gradient),
                  b.make<memref::CastOp>(any, copy));
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
  for (auto [n, table] : llvm::zip_equal(op.getCaptures(), tables))
    table.own = table.copies ? ownTable(table, sharingOf(op.getGradient(), n))
                             : table.gradient;
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
