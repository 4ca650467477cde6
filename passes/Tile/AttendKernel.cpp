//===- AttendKernel.cpp - one tile of queries against its list ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/AttendKernel.h"

#include "passes/Tile/Strips.h"

#include "llvm/Support/SaveAndRestore.h"

#include <numbers>

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

void AttendArguments::bindTo(Operands &operands, ring::AttendOp op,
                             const Schedule &schedule,
                             const PackedSlice *packed, Value stored) {
  operands.read(query, "q", op.getQuery());
  if (packed) {
    operands.read(packedKeys, "keys", packed->keys);
    operands.read(packedValues, "values", packed->values);
    operands.read(finite, "finite", packed->finite);
  } else {
    operands.read(keySlice, "k", op.getKey());
    operands.read(valueSlice, "v", op.getValue());
  }
  operands.read(queries, "queryTiles", schedule.queries);
  operands.read(keys, "keyTiles", schedule.keys);
  operands.read(list, "list", schedule.list);
  operands.read(counts, "counts", schedule.counts);
  if (!op.isFirst()) {
    operands.write(o, "oState", op.getO());
    operands.write(m, "mState", op.getM());
    operands.write(l, "lState", op.getL());
  }
  static constexpr StringRef state[] = {"oState", "mState", "lState"},
                             results[] = {"out", "lse"};
  made.resize(op.getInto().size());
  for (auto [argument, name, buffer] :
       llvm::zip(made, op.isLast() ? ArrayRef(results) : ArrayRef(state),
                 op.getInto()))
    operands.write(argument, name, buffer);
  if (stored)
    operands.write(scores, "scores", stored);
  operands.scalar(sq, "sq", op.getQueryExtent());
  operands.scalar(sk, "sk", op.getKeyExtent());
  operands.capture(maskCaptures, op.getMaskCaptures());
  operands.capture(scoreCaptures, op.getScoreCaptures());
}

AttendKernel::AttendKernel(TileBuilder &builder, ring::AttendOp op,
                           const Shape &shape, const Schedule &schedule,
                           const AttendArguments &arguments, AttendPart part)
    : AttendArguments(arguments), b(builder), op(op), shape(shape),
      schedule(schedule), part(part), scale(op.getScale().convertToDouble()) {
  if (op.getScore().empty())
    scale *= std::numbers::log2e;
  if (made.empty())
    made = {o, m, l};
}

/// Score and mask of a tile, or one of them.
void AttendKernel::map(Value s, Value key, bool isPartial, bool hasScore) {
  Value columns = b.index(shape.columns);
  if (isPartial)
    columns = b.field(keys, key, Field::Count);
  b.positions(blocks.j, keys, key, columns, op.getKeyLayout());
  mapScores(b, op,
            {s, at.count, columns, at.b, at.h, blocks.i, blocks.j, sq, sk,
             maskCaptures, scoreCaptures},
            isPartial, hasScore);
}

/// The scores of a tile of keys.
void AttendKernel::score(Value key, bool isPartial) {
  if (scores)
    blocks.s = b.element(scores, {at.b, at.h, tile, key});
  // Of numbers of the state, the scale is in q.
  b.make<tile::MultiplyOp>(
      blocks.q, right(/*isValue=*/false, key), blocks.s, at.count,
      llvm::APFloat(shape.keepsOperands() ? scale : 1.0), Value(),
      /*accumulate=*/false, /*byRows=*/shape.isStaged());
  bool hasScore = !op.getScore().empty();
  if (!masked) {
    if (isPartial || hasScore)
      map(blocks.s, key, isPartial, hasScore);
    return;
  }
  if (hasScore)
    map(blocks.s, key, /*isPartial=*/false, /*hasScore=*/true);
  b.when(masked,
         [&] { map(blocks.s, key, /*isPartial=*/true, /*hasScore=*/false); });
}

/// Adds what a tile of weights gives. A weight of 0 rules out what it weighs
/// only if that is a number; `seen` gives scores where it is not.
void AttendKernel::multiply(Value key, Value v, bool isPartial,
                            llvm::function_ref<Value()> seen) {
  auto multiply = [&](Value seen) {
    b.make<tile::MultiplyOp>(blocks.p ? blocks.p : blocks.s, v, blocks.o,
                             at.count, llvm::APFloat(1.0), seen, true);
  };
  if (!isPartial || op.getMask().empty() || shape.isStaged())
    return multiply({});
  b.when(hides(key), [&] { multiply(seen()); }, [&] { multiply({}); });
}

/// The right operand of a product: packed, or loaded from the slice.
Value AttendKernel::right(bool isValue, Value key) {
  if (!shape.isStaged())
    return b.panels(isValue ? packedValues : packedKeys, at.b, keyHead, key);
  Value row = b.field(keys, key, Field::Row);
  Value count = b.field(keys, key, Field::Count);
  Value view =
      b.rows(isValue ? valueSlice : keySlice, at.b, keyHead, row, count);
  b.named(isValue ? "values" : "keys", view);
  Value block = isValue ? blocks.v : blocks.k;
  b.make<tile::LoadOp>(view, block);
  return block;
}

/// Whether not all values of a tile are finite.
Value AttendKernel::hides(Value key) {
  return b.make<arith::XOrIOp>(b.load(finite, {at.b, keyHead, key}),
                               b.truth(true));
}

/// Everything, for a tile of keys of a GPU's kernel.
void AttendKernel::step(Value key, bool isPartial) {
  score(key, isPartial);
  b.make<tile::RowMaxOp>(blocks.s, blocks.m, blocks.factor, at.count);
  b.make<tile::ExponentialsOp>(blocks.s, blocks.m, blocks.l, blocks.factor,
                               at.count, blocks.p);
  b.make<tile::RescaleOp>(blocks.o, blocks.factor, at.count);
  multiply(key, right(/*isValue=*/true, key), isPartial,
           [&] { return blocks.seen; });
}

//===----------------------------------------------------------------------===//
// Strip by strip
//===----------------------------------------------------------------------===//

/// Everything, for a tile of keys: as many rows as a product takes at once go
/// through all steps together, so that their scores never leave the first level
/// cache.
void AttendKernel::stripSteps(Value key, bool isPartial) {
  Value columns = b.index(shape.columns);
  if (isPartial)
    columns = b.field(keys, key, Field::Count);
  if (isPartial || !op.getScore().empty())
    b.positions(blocks.j, keys, key, columns, op.getKeyLayout());
  b.loop(b.index(0), at.count, shape.strip,
         [&](Value row) { strip(key, row, columns, isPartial); });
}

/// Everything, for the rows from `row` on and a tile of keys. Of a partial tile
/// only the panels that these rows may see.
void AttendKernel::strip(Value key, Value row, Value columns, bool isPartial) {
  llvm::SaveAndRestore<Blocks> whole(blocks);
  llvm::SaveAndRestore<Value> all(at.count);
  at.count = b.min(b.sub(at.count, row), b.index(shape.strip));
  for (Value *block :
       {&blocks.q, &blocks.o, &blocks.m, &blocks.l, &blocks.factor, &blocks.i})
    *block = rowsOf(b, *block, row, shape.strip);
  Scores scores{blocks.s, at.count,     columns,      at.b,
                at.h,     blocks.i,     blocks.j,     sq,
                sk,       maskCaptures, scoreCaptures};
  Span span = Span::all(b, shape);
  if (isPartial)
    span = neededPanels(b, schedule, shape, scores, blocks.whole);
  auto steps = [&] {
    for (Value *block : {&blocks.s, &blocks.p, &blocks.seen})
      if (*block)
        *block = columnsOf(b, *block, span, shape);
    b.make<tile::MultiplyOp>(
        blocks.q, panelsOf(b, right(/*isValue=*/false, key), span), blocks.s,
        at.count, llvm::APFloat(shape.keepsOperands() ? scale : 1.0), Value(),
        /*accumulate=*/false);
    mapStrip(b, op, scores, span, shape, blocks.whole, isPartial);
    if (isPartial && blocks.seen && !shape.pairs)
      b.when(hides(key),
             [&] { b.make<memref::CopyOp>(blocks.s, blocks.seen); });
    b.make<tile::RowMaxOp>(blocks.s, blocks.m, blocks.factor, at.count);
    b.make<tile::ExponentialsOp>(blocks.s, blocks.m, blocks.l, blocks.factor,
                                 at.count, blocks.p);
    b.make<tile::RescaleOp>(blocks.o, blocks.factor, at.count);
    multiply(key, depthOf(b, right(/*isValue=*/true, key), span, shape),
             isPartial, [&] { return blocks.seen; });
  };
  if (isPartial)
    b.when(b.compare(arith::CmpIPredicate::slt, span.first, span.end), steps);
  else
    steps();
}

/// Does something for each tile of keys in the task's list.
void AttendKernel::each(Step step) {
  Value last = b.sub(b.dim(keys, 0), b.index(1));
  auto keyAt = [&](Value place) {
    Value key = b.make<arith::IndexCastUIOp>(
        b.getIndexType(), b.load(list, {classBatch, classHead, tile, place}));
    return b.named("key", key);
  };
  if (shape.isStaged())
    return b.loop(b.add(full, partial), [&](Value t) {
      masked = b.compare(arith::CmpIPredicate::sge, t, full);
      Value place = b.select(masked, b.sub(last, b.sub(t, full)), t);
      (this->*step)(keyAt(place), true);
    });
  b.loop(full, [&](Value t) { (this->*step)(keyAt(t), false); });
  b.loop(partial, [&](Value t) { (this->*step)(keyAt(b.sub(last, t)), true); });
}

//===----------------------------------------------------------------------===//
// The task
//===----------------------------------------------------------------------===//

/// The state of the task's rows, as it was or as it begins.
void AttendKernel::begin() {
  const std::tuple<Value, Value, double> parts[] = {
      {blocks.o, o, 0.0}, {blocks.m, m, minusInfinity}, {blocks.l, l, 0.0}};
  for (auto [block, buffer, first] : parts) {
    if (op.isFirst())
      b.make<tile::FillOp>(block, b.getF64FloatAttr(first));
    else
      b.make<tile::LoadOp>(b.rows(buffer, at.b, at.h, at.row, at.count), block,
                           b.getF64FloatAttr(1.0), b.getF64FloatAttr(0.0));
  }
}

/// The state goes on, or becomes results.
void AttendKernel::end() {
  if (op.isLast())
    b.make<tile::NormalizeOp>(blocks.o, blocks.m, blocks.l, at.count);
  const Value parts[] = {blocks.o, blocks.m, blocks.l};
  for (auto [block, buffer] : llvm::zip(parts, made))
    storeRows(b, block, buffer, at);
}

void AttendKernel::build(Value task) {
  Value numQueries = b.dim(queries, 0);
  Value zero = b.index(0), one = b.index(1);
  tile = b.named("tile", b.rem(task, numQueries));
  Value head = b.div(task, numQueries);
  Value heads = b.dim(query, 2);
  at.b = b.named("batch", b.div(head, heads));
  at.h = b.named("head", b.rem(head, heads));
  at.row = b.field(queries, tile, Field::Row);
  at.count = b.field(queries, tile, Field::Count);
  auto keyType = cast<MemRefType>(op.getKey().getType());
  auto queryType = cast<MemRefType>(query.getType());
  keyHead = b.named("keyHead", b.div(at.h, b.index(queryType.getDimSize(2) /
                                                   keyType.getDimSize(2))));
  classBatch = schedule.byBatch ? at.b : zero;
  classHead = schedule.byHead ? at.h : zero;
  full = b.named("full", b.load(counts, {classBatch, classHead, tile, zero}));
  partial =
      b.named("partial", b.load(counts, {classBatch, classHead, tile, one}));

  int64_t valueColumns = shape.padded(dimOf(made[0]));
  auto block = [&](StringRef name, MemRefType type) {
    return b.named(name, b.alloca(type));
  };
  blocks.q = block("queryTile", shape.factors(queryType.getDimSize(3)));
  Shape scored = shape.strip ? shape.ofStrip() : shape;
  blocks.s = block("scores", scored.tile(shape.columns));
  blocks.o = block("o", shape.tile(valueColumns));
  blocks.m = block("m", shape.rowVector());
  blocks.l = block("l", shape.rowVector());
  blocks.factor = block("factor", shape.rowVector());
  blocks.i = block("rows", shape.positions(shape.blockRows()));
  blocks.j = block("columns", shape.positions(shape.columns));
  if (shape.isStaged()) {
    blocks.k =
        block("keyTile", shape.staged(shape.columns, queryType.getDimSize(3)));
    blocks.v = block("valueTile", shape.staged(shape.columns, dimOf(made[0])));
  }
  if (shape.pairs)
    blocks.p = b.alloca(scored.factors(shape.columns));
  // Scores outlive their weights where these have a place of their own.
  if (!op.getMask().empty() && !shape.isStaged())
    blocks.seen = shape.pairs ? blocks.s : b.alloca(scored.tile(shape.columns));
  if (shape.strip)
    blocks.whole =
        b.alloca(MemRefType::get({shape.columns / shape.panel}, b.getI1Type()));
  auto body = [&] {
    if (part == AttendPart::All || part == AttendPart::Scores)
      b.make<tile::LoadOp>(
          b.rows(query, at.b, at.h, at.row, at.count), blocks.q,
          b.getF64FloatAttr(shape.keepsOperands() ? 1.0 : scale),
          b.getF64FloatAttr(0.0));
    if (part != AttendPart::Scores)
      begin();
    if (!op.getMask().empty() || !op.getScore().empty())
      b.positions(blocks.i, queries, tile, at.count, op.getQueryLayout());
    switch (part) {
    case AttendPart::All:
      each(shape.strip ? &AttendKernel::stripSteps : &AttendKernel::step);
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
    end();
  };
  if (op.isFirst() || op.isLast())
    return body();
  // A task without tiles leaves its state as it is.
  Value any = b.compare(arith::CmpIPredicate::ne, b.add(full, partial), zero);
  b.when(any, body);
}
