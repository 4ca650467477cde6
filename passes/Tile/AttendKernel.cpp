//===- AttendKernel.cpp - one tile of queries against its list ------------===//
#include "passes/Tile/AttendKernel.h"

#include <numbers>

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

AttendKernel::AttendKernel(TileBuilder &builder, ring::AttendOp op,
                           const Shape &shape, const Schedule &schedule,
                           ValueRange args)
    : b(builder), op(op), shape(shape), schedule(schedule),
      scale(op.getScale().convertToDouble()) {
  if (op.getScore().empty())
    scale *= std::numbers::log2e;
  Arguments list(b, args);
  query = list.take("q");
  if (shape.isStaged()) {
    for (auto [slices, name] :
         {std::pair(&keySlices, "k"), {&valueSlices, "v"}})
      for (size_t slice = 0; slice < op.getKeys().size(); ++slice)
        slices->push_back(list.take(name));
  } else {
    packedKeys = list.take("keys");
    packedValues = list.take("values");
    finite = list.take("finite");
  }
  queries = list.take("queryTiles");
  keys = list.take("keyTiles");
  this->list = list.take("list");
  counts = list.take("counts");
  list.take(op.getMaskCaptures(), maskCaptures, true);
  list.take(op.getScoreCaptures(), scoreCaptures, true);
  o = list.take("oState");
  m = list.take("mState");
  l = list.take("lState");
  sq = list.take("sq");
  sk = list.take("sk");
  if (shape.isStaged())
    for (size_t slice = 1; slice < op.getKeys().size(); ++slice)
      firstTiles.push_back(list.take("firstTile"));
  list.take(op.getMaskCaptures(), maskCaptures, false);
  list.take(op.getScoreCaptures(), scoreCaptures, false);
}

/// Scores and mask of the tile at hand.
void AttendKernel::map(Value key, bool isPartial) {
  Value columns = b.index(shape.columns);
  if (isPartial)
    columns = b.field(keys, key, Field::Count);
  b.positions(blocks.j, keys, key, columns, op.getKeyLayout());
  mapScores(b, op,
            {blocks.s, at.count, columns, at.b, at.h, blocks.i, blocks.j, sq,
             sk, maskCaptures, scoreCaptures},
            isPartial);
}

/// The right operand of a product: packed, or brought from its slice.
Value AttendKernel::right(bool isValue, Value key) {
  if (!shape.isStaged())
    return b.panels(isValue ? packedValues : packedKeys, at.b, keyHead, key);
  ArrayRef<Value> slices = isValue ? valueSlices : keySlices;
  Value row = b.field(keys, key, Field::Row);
  Value count = b.field(keys, key, Field::Count);
  Value view = b.rows(slices.front(), at.b, keyHead, row, count);
  b.named(isValue ? "values" : "keys", view);
  for (auto [slice, first] : llvm::zip_equal(slices.drop_front(), firstTiles))
    view = b.select(b.compare(arith::CmpIPredicate::uge, key, first),
                    b.rows(slice, at.b, keyHead, row, count), view);
  Value block = isValue ? blocks.v : blocks.k;
  b.make<tile::LoadOp>(view, block);
  return block;
}

void AttendKernel::step(Value key, bool isPartial) {
  Value k = right(/*isValue=*/false, key), v;
  if (!shape.isStaged())
    v = right(/*isValue=*/true, key);
  // Of numbers of the state, the scale is in q.
  llvm::APFloat one(1.0);
  b.make<tile::MultiplyOp>(blocks.q, k, blocks.s, at.count,
                           shape.keepsOperands() ? llvm::APFloat(scale) : one,
                           Value(), /*accumulate=*/false,
                           /*byRows=*/shape.isStaged());
  if (isPartial || !op.getScore().empty())
    map(key, isPartial);
  // A weight of 0 rules out what it weighs only if that is a number.
  bool mayHide = isPartial && blocks.seen;
  Value hides;
  if (mayHide) {
    Value isFinite = b.load(finite, {at.b, keyHead, key});
    hides = b.make<arith::XOrIOp>(isFinite, b.truth(true));
    if (blocks.seen != blocks.s)
      b.when(hides, [&] { b.make<memref::CopyOp>(blocks.s, blocks.seen); });
  }
  b.make<tile::RowMaxOp>(blocks.s, blocks.m, blocks.factor, at.count);
  b.make<tile::ExponentialsOp>(blocks.s, blocks.m, blocks.l, blocks.factor,
                               at.count, blocks.p);
  b.make<tile::RescaleOp>(blocks.o, blocks.factor, at.count);
  if (shape.isStaged())
    v = right(/*isValue=*/true, key);
  auto multiply = [&](Value seen) {
    b.make<tile::MultiplyOp>(blocks.p ? blocks.p : blocks.s, v, blocks.o,
                             at.count, one, seen, /*accumulate=*/true);
  };
  if (!mayHide)
    return multiply({});
  auto choice = b.make<scf::IfOp>(hides, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  multiply(blocks.seen);
  b.setInsertionPointToStart(choice.elseBlock());
  multiply({});
}

void AttendKernel::build(Value task) {
  Value numQueries = b.dim(queries, 0), numKeys = b.dim(keys, 0);
  Value zero = b.index(0), one = b.index(1);
  Value tile = b.rem(task, numQueries), head = b.div(task, numQueries);
  Value heads = b.dim(query, 2);
  at.b = b.named("batch", b.div(head, heads));
  at.h = b.named("head", b.rem(head, heads));
  at.row = b.field(queries, tile, Field::Row);
  at.count = b.field(queries, tile, Field::Count);
  auto keyType = cast<MemRefType>(op.getKeys().front().getType());
  auto queryType = cast<MemRefType>(query.getType());
  keyHead = b.named("keyHead", b.div(at.h, b.index(queryType.getDimSize(2) /
                                                   keyType.getDimSize(2))));
  Value cb = schedule.byBatch ? at.b : zero;
  Value ch = schedule.byHead ? at.h : zero;
  Value full = b.named("full", b.load(counts, {cb, ch, tile, zero}));
  Value partial = b.named("partial", b.load(counts, {cb, ch, tile, one}));

  int64_t valueColumns = shape.padded(dimOf(o));
  auto block = [&](StringRef name, MemRefType type) {
    return b.named(name, b.alloca(type));
  };
  blocks.q = block("queryTile", shape.factors(queryType.getDimSize(3)));
  blocks.s = block("scores", shape.tile(shape.columns));
  blocks.o = block("o", shape.tile(valueColumns));
  blocks.m = block("m", shape.rowVector());
  blocks.l = block("l", shape.rowVector());
  blocks.factor = block("factor", shape.rowVector());
  blocks.i = block("rows", shape.positions(shape.rows));
  blocks.j = block("columns", shape.positions(shape.columns));
  if (shape.isStaged()) {
    blocks.k =
        block("keyTile", shape.staged(shape.columns, queryType.getDimSize(3)));
    blocks.v = block("valueTile", shape.staged(shape.columns, dimOf(o)));
  }
  if (shape.pairs)
    blocks.p = b.alloca(shape.factors(shape.columns));
  // Scores outlive their weights where these have a place of their own.
  if (!op.getMask().empty() && !shape.isStaged())
    blocks.seen = shape.pairs ? blocks.s : b.alloca(shape.tile(shape.columns));
  // A task without tiles leaves its state as it is.
  Value any = b.compare(arith::CmpIPredicate::ne, b.add(full, partial), zero);
  b.when(any, [&] {
    auto load = [&](Value buffer, Value block, double factor) {
      b.make<tile::LoadOp>(b.rows(buffer, at.b, at.h, at.row, at.count), block,
                           b.getF64FloatAttr(factor), b.getF64FloatAttr(0.0));
    };
    load(query, blocks.q, shape.keepsOperands() ? 1.0 : scale);
    load(o, blocks.o, 1.0);
    load(m, blocks.m, 1.0);
    load(l, blocks.l, 1.0);
    if (!op.getMask().empty() || !op.getScore().empty())
      b.positions(blocks.i, queries, tile, at.count, op.getQueryLayout());
    auto keyAt = [&](Value place) {
      Value key = b.make<arith::IndexCastUIOp>(
          b.getIndexType(), b.load(list, {cb, ch, tile, place}));
      return b.named("key", key);
    };
    b.loop(full, [&](Value t) { step(keyAt(t), false); });
    b.loop(partial,
           [&](Value t) { step(keyAt(b.sub(b.sub(numKeys, one), t)), true); });
    storeRows(b, blocks.o, o, at);
    storeRows(b, blocks.m, m, at);
    storeRows(b, blocks.l, l, at);
  });
}
