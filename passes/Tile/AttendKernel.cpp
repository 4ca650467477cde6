//===- AttendKernel.cpp - one tile of queries against its list ------------===//
#include "passes/Tile/AttendKernel.h"

#include <numbers>

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

AttendKernel::AttendKernel(TileBuilder &builder, ring::AttendOp op,
                           const Shape &shape, const Schedule &schedule,
                           ValueRange args, AttendPart part)
    : b(builder), op(op), shape(shape), schedule(schedule), part(part),
      scale(op.getScale().convertToDouble()) {
  if (op.getScore().empty())
    scale *= std::numbers::log2e;
  size_t next = 0;
  auto take = [&] { return args[next++]; };
  for (Value *value : {&query, &packedKeys, &packedValues, &finite, &queries,
                       &keys, &list, &counts})
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
  for (Value *value : {&o, &m, &l})
    *value = take();
  if (part != AttendPart::All)
    scores = take();
  for (Value *value : {&sq, &sk})
    *value = take();
  takeCaptures(op.getMaskCaptures(), maskCaptures, false);
  takeCaptures(op.getScoreCaptures(), scoreCaptures, false);
}

/// Score and mask of a tile, or its mask alone.
void AttendKernel::map(Value s, Value key, bool isPartial, bool hasScore) {
  Value columns = b.index(shape.columns);
  if (isPartial)
    columns = b.field(keys, key, Field::Count);
  b.make<tile::PositionsOp>(blocks.j, b.field(keys, key, Field::First), columns,
                            b.field(keys, key, Field::Begin),
                            b.field(keys, key, Field::Step),
                            b.field(keys, key, Field::Block));
  auto map = b.make<tile::MapOp>(
      s, at.count, columns, at.b, at.h, blocks.i, blocks.j, sq, sk,
      isPartial ? ValueRange(maskCaptures) : ValueRange(),
      hasScore ? ValueRange(scoreCaptures) : ValueRange(),
      b.getF64FloatAttr(hasScore ? std::numbers::log2e : 1.0));
  IRMapping mapping;
  if (isPartial)
    op.getMask().cloneInto(&map.getMask(), mapping);
  if (hasScore)
    op.getScore().cloneInto(&map.getScore(), mapping);
}

/// The scores of a tile of keys.
void AttendKernel::score(Value key, bool isPartial) {
  if (scores)
    blocks.s = b.element(scores, {at.b, at.h, tile, key});
  // Of numbers of the state, the scale is in q.
  b.make<tile::MultiplyOp>(
      blocks.q, b.panels(packedKeys, at.b, keyHead, key), blocks.s, at.count,
      llvm::APFloat(shape.pairs ? scale : 1.0), Value(), false);
  bool hasScore = !op.getScore().empty();
  if (isPartial || hasScore)
    map(blocks.s, key, isPartial, hasScore);
}

/// Adds what a tile of weights gives. A weight of 0 rules out what it weighs
/// only if that is a number; `seen` gives scores where it is not.
void AttendKernel::multiply(Value key, Value v, bool isPartial,
                            llvm::function_ref<Value()> seen) {
  auto multiply = [&](Value seen) {
    b.make<tile::MultiplyOp>(blocks.p ? blocks.p : blocks.s, v, blocks.o,
                             at.count, llvm::APFloat(1.0), seen, true);
  };
  if (!isPartial || op.getMask().empty())
    return multiply({});
  auto choice = b.make<scf::IfOp>(hides(key), /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  multiply(seen());
  b.setInsertionPointToStart(choice.elseBlock());
  multiply({});
}

Value AttendKernel::valuesOf(Value key) {
  return b.panels(packedValues, at.b, keyHead, key);
}

/// Whether not all values of a tile are finite.
Value AttendKernel::hides(Value key) {
  return b.make<arith::XOrIOp>(b.load(finite, {at.b, keyHead, key}),
                               b.truth(true));
}

/// Everything, for a tile of keys.
void AttendKernel::step(Value key, bool isPartial) {
  Value v = valuesOf(key);
  score(key, isPartial);
  if (isPartial && blocks.seen && blocks.seen != blocks.s)
    b.when(hides(key), [&] { b.make<memref::CopyOp>(blocks.s, blocks.seen); });
  b.make<tile::RowMaxOp>(blocks.s, blocks.m, blocks.factor, at.count);
  b.make<tile::ExponentialsOp>(blocks.s, blocks.m, blocks.l, blocks.factor,
                               at.count, blocks.p);
  b.make<tile::RescaleOp>(blocks.o, blocks.factor, at.count);
  multiply(key, v, isPartial, [&] { return blocks.seen; });
}

/// Does something for each tile of keys in the task's list.
void AttendKernel::each(Step step) {
  Value last = b.sub(b.dim(keys, 0), b.index(1));
  auto keyAt = [&](Value place) {
    return b.make<arith::IndexCastUIOp>(
        b.getIndexType(), b.load(list, {classBatch, classHead, tile, place}));
  };
  b.loop(full, [&](Value t) { (this->*step)(keyAt(t), false); });
  b.loop(partial, [&](Value t) { (this->*step)(keyAt(b.sub(last, t)), true); });
}

//===----------------------------------------------------------------------===//
// With the scores of the slice in memory
//===----------------------------------------------------------------------===//

/// The largest scores.
void AttendKernel::reference(Value key, bool) {
  b.make<tile::RowMaxOp>(b.element(scores, {at.b, at.h, tile, key}), blocks.m,
                         blocks.factor, at.count);
}

/// Scores become weights; their sum.
void AttendKernel::weigh(Value key, bool) {
  b.make<tile::ExponentialsOp>(b.element(scores, {at.b, at.h, tile, key}),
                               blocks.m, blocks.l, blocks.factor, at.count,
                               Value());
}

/// The state before and a state that saw nothing, but whose reference is that
/// of all scores, merge to the state that they are added to.
void AttendKernel::softmax() {
  auto copy = [&](Value block) {
    Value copied = b.alloca(cast<MemRefType>(block.getType()));
    b.make<memref::CopyOp>(block, copied);
    return copied;
  };
  auto filled = [&](Value like, double value) {
    Value block = b.alloca(cast<MemRefType>(like.getType()));
    b.make<tile::FillOp>(block, b.getF64FloatAttr(value));
    return block;
  };
  Value before = copy(blocks.m);
  each(&AttendKernel::reference);
  b.make<tile::MergeOp>(blocks.o, before, blocks.l, filled(blocks.o, 0.0),
                        blocks.m, filled(blocks.l, 0.0), at.count);
  blocks.factor = filled(blocks.m, 1.0);
  blocks.m = before;
  each(&AttendKernel::weigh);
}

/// What a tile of weights gives. Its scores are gone: where values hide, the
/// mask is asked again.
void AttendKernel::sum(Value key, bool isPartial) {
  blocks.s = b.element(scores, {at.b, at.h, tile, key});
  multiply(key, valuesOf(key), isPartial, [&] {
    b.make<tile::FillOp>(blocks.seen, b.getF64FloatAttr(0.0));
    map(blocks.seen, key, isPartial, /*hasScore=*/false);
    return blocks.seen;
  });
}

//===----------------------------------------------------------------------===//
// The task
//===----------------------------------------------------------------------===//

void AttendKernel::build(Value task) {
  Value numQueries = b.dim(queries, 0);
  Value zero = b.index(0), one = b.index(1);
  tile = b.rem(task, numQueries);
  Value head = b.div(task, numQueries);
  Value heads = b.dim(query, 2);
  at.b = b.div(head, heads);
  at.h = b.rem(head, heads);
  at.row = b.field(queries, tile, Field::Row);
  at.count = b.field(queries, tile, Field::Count);
  auto keyType = cast<MemRefType>(packedKeys.getType());
  auto queryType = cast<MemRefType>(query.getType());
  keyHead =
      b.div(at.h, b.index(queryType.getDimSize(2) / keyType.getDimSize(1)));
  classBatch = schedule.byBatch ? at.b : zero;
  classHead = schedule.byHead ? at.h : zero;
  full = b.load(counts, {classBatch, classHead, tile, zero});
  partial = b.load(counts, {classBatch, classHead, tile, one});

  int64_t valueColumns = shape.padded(dimOf(o));
  blocks = {b.alloca(shape.factors(queryType.getDimSize(3))),
            b.alloca(shape.tile(shape.columns)),
            b.alloca(shape.tile(valueColumns)),
            b.alloca(shape.rowVector()),
            b.alloca(shape.rowVector()),
            b.alloca(shape.rowVector()),
            b.alloca(shape.positions(shape.rows)),
            b.alloca(shape.positions(shape.columns)),
            Value(),
            Value()};
  if (shape.pairs)
    blocks.p = b.alloca(shape.factors(shape.columns));
  // Scores outlive their weights where these have a place of their own.
  if (!op.getMask().empty())
    blocks.seen = shape.pairs ? blocks.s : b.alloca(shape.tile(shape.columns));
  // A task without tiles leaves its state as it is.
  Value any = b.compare(arith::CmpIPredicate::ne, b.add(full, partial), zero);
  b.when(any, [&] {
    auto load = [&](Value buffer, Value block, double factor) {
      b.make<tile::LoadOp>(b.rows(buffer, at.b, at.h, at.row, at.count), block,
                           b.getF64FloatAttr(factor), b.getF64FloatAttr(0.0));
    };
    bool scoring = part == AttendPart::All || part == AttendPart::Scores;
    if (scoring)
      load(query, blocks.q, shape.pairs ? 1.0 : scale);
    if (part != AttendPart::Scores) {
      load(o, blocks.o, 1.0);
      load(m, blocks.m, 1.0);
      load(l, blocks.l, 1.0);
    }
    if (!op.getMask().empty() || !op.getScore().empty())
      b.make<tile::PositionsOp>(blocks.i, b.field(queries, tile, Field::First),
                                at.count, b.field(queries, tile, Field::Begin),
                                b.field(queries, tile, Field::Step),
                                b.field(queries, tile, Field::Block));
    switch (part) {
    case AttendPart::All:
      each(&AttendKernel::step);
      break;
    case AttendPart::Scores:
      return each(&AttendKernel::score);
    case AttendPart::Softmax:
      softmax();
      break;
    case AttendPart::Sums:
      each(&AttendKernel::sum);
      break;
    }
    storeRows(b, blocks.o, o, at);
    storeRows(b, blocks.m, m, at);
    storeRows(b, blocks.l, l, at);
  });
}
