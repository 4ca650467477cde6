//===- AttendKernel.cpp - one tile of queries against its list ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/AttendKernel.h"

#include "llvm/Support/SaveAndRestore.h"

#include <numbers>

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

void AttendArguments::bindTo(Operands &operands, ring::AttendOp op,
                             const Schedule &schedule,
                             const PackedSlice *packed, Value stored,
                             const KeyParts *parts) {
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
  if (!op.isFirst() && !parts) {
    operands.write(o, "oState", op.getO());
    operands.write(m, "mState", op.getM());
    operands.write(l, "lState", op.getL());
  }
  static constexpr StringRef state[] = {"oState", "mState", "lState"},
                             results[] = {"out", "lse"};
  ArrayRef<StringRef> names = state;
  if (op.isLast() && !parts)
    names = results;
  ValueRange into = parts ? ValueRange(parts->states) : op.getInto();
  made.resize(into.size());
  for (auto [argument, name, buffer] : llvm::zip(made, names, into))
    operands.write(argument, name, buffer);
  if (stored)
    operands.write(scores, "scores", stored);
  operands.scalar(sq, "sq", op.getQueryExtent());
  operands.scalar(sk, "sk", op.getKeyExtent());
  if (parts)
    operands.scalar(numParts, "parts", parts->count);
  operands.capture(maskCaptures, op.getMaskCaptures());
  operands.capture(scoreCaptures, op.getScoreCaptures());
}

AttendKernel::AttendKernel(TileBuilder &builder, ring::AttendOp op,
                           const Shape &shape, const Schedule &schedule,
                           const AttendArguments &arguments, AttendPart part)
    : AttendArguments(arguments), b(builder), op(op), shape(shape),
      schedule(schedule), does(part), scale(op.getScale().convertToDouble()) {
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
            {s, rows, columns, at.b, at.h, blocks.i, blocks.j, sq, sk,
             maskCaptures, scoreCaptures},
            isPartial, hasScore);
}

/// The scores of a tile of keys.
void AttendKernel::score(Value key, bool isPartial) {
  if (scores)
    blocks.s = b.element(scores, {at.b, at.h, tile, key});
  // Of numbers of the state, the scale is in q.
  b.make<tile::MultiplyOp>(
      blocks.q, right(/*isValue=*/false, key), blocks.s, rows,
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
    b.make<tile::MultiplyOp>(blocks.p ? blocks.p : blocks.s, v, blocks.o, rows,
                             llvm::APFloat(1.0), seen, true);
  };
  if (!isPartial || op.getMask().empty() || shape.isStaged())
    return multiply({});
  b.when(hides(key), [&] { multiply(seen()); }, [&] { multiply({}); });
}

/// The right operand of a product: packed, loaded from the slice, or part of
/// it.
Value AttendKernel::right(bool isValue, Value key) {
  if (shape.inPlace)
    return isValue ? blocks.v : blocks.k;
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

/// What meets a span of the columns of scores: of keys, or of the depth.
Value AttendKernel::rightOf(bool isValue, Value key, const Span &span) {
  Value all = right(isValue, key);
  if (shape.inPlace)
    return keysOf(b, all, span, shape);
  return isValue ? depthOf(b, all, span, shape) : panelsOf(b, all, span);
}

/// Whether not all values of a tile are finite.
Value AttendKernel::hides(Value key) {
  if (shape.inPlace)
    return hidden;
  return b.make<arith::XOrIOp>(b.load(finite, {at.b, keyHead, key}),
                               b.truth(true));
}

/// Everything, for a tile of keys of a GPU's kernel.
void AttendKernel::step(Value key, bool isPartial) {
  score(key, isPartial);
  b.make<tile::RowMaxOp>(blocks.s, blocks.m, blocks.factor, rows);
  b.make<tile::ExponentialsOp>(blocks.s, blocks.m, blocks.l, blocks.factor,
                               rows, blocks.p);
  b.make<tile::RescaleOp>(blocks.o, blocks.factor, rows);
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
  if (shape.inPlace) {
    Value row = b.field(keys, key, Field::Row);
    blocks.k = b.rows(keySlice, at.b, keyHead, row, columns);
    blocks.v = b.rows(valueSlice, at.b, keyHead, row, columns);
    if (isPartial && !op.getMask().empty())
      hidden = b.make<arith::XOrIOp>(
          b.make<tile::IsFiniteOp>(b.getI1Type(), blocks.v), b.truth(true));
  }
  b.loop(b.index(0), rows, shape.strip,
         [&](Value row) { strip(key, row, columns, isPartial); });
}

/// Everything, for the rows from `row` on and a tile of keys. Of a partial tile
/// only the panels that these rows may see.
void AttendKernel::strip(Value key, Value row, Value columns, bool isPartial) {
  llvm::SaveAndRestore<Blocks> whole(blocks);
  llvm::SaveAndRestore<Value> all(rows);
  rows = b.min(b.sub(rows, row), b.index(shape.strip));
  for (Value *block : {&blocks.q, &blocks.o, &blocks.m, &blocks.l,
                       &blocks.factor, &blocks.i, &blocks.heads})
    if (*block)
      *block = rowsOf(b, *block, row, shape.strip);
  Scores scores{blocks.s,      rows,         columns,    at.b, at.h,
                blocks.i,      blocks.j,     sq,         sk,   maskCaptures,
                scoreCaptures, blocks.heads, shape.heads};
  Span span = Span::all(b, shape);
  if (isPartial)
    span = neededPanels(b, schedule, shape, scores, blocks.whole);
  auto steps = [&] {
    for (Value *block : {&blocks.s, &blocks.p, &blocks.seen})
      if (*block)
        *block = columnsOf(b, *block, span, shape);
    b.make<tile::MultiplyOp>(
        blocks.q, rightOf(/*isValue=*/false, key, span), blocks.s, rows,
        llvm::APFloat(shape.keepsOperands() ? scale : 1.0), Value(),
        /*accumulate=*/false, /*byRows=*/shape.inPlace);
    mapStrip(b, op, scores, span, shape, blocks.whole, isPartial);
    if (isPartial && blocks.seen && !shape.pairs)
      b.when(hides(key),
             [&] { b.make<memref::CopyOp>(blocks.s, blocks.seen); });
    b.make<tile::RowMaxOp>(blocks.s, blocks.m, blocks.factor, rows);
    b.make<tile::ExponentialsOp>(blocks.s, blocks.m, blocks.l, blocks.factor,
                                 rows, blocks.p);
    b.make<tile::RescaleOp>(blocks.o, blocks.factor, rows);
    multiply(key, rightOf(/*isValue=*/true, key, span), isPartial,
             [&] { return blocks.seen; });
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
    return b.loop(b.add(full.end, partial.end), [&](Value t) {
      masked = b.compare(arith::CmpIPredicate::sge, t, full.end);
      Value place = b.select(masked, b.sub(last, b.sub(t, full.end)), t);
      (this->*step)(keyAt(place), true);
    });
  b.loop(full.begin, full.end, 1,
         [&](Value t) { (this->*step)(keyAt(t), false); });
  b.loop(partial.begin, partial.end, 1,
         [&](Value t) { (this->*step)(keyAt(b.sub(last, t)), true); });
}

//===----------------------------------------------------------------------===//
// The task
//===----------------------------------------------------------------------===//

/// Does `body` for each head of the tile's rows.
void AttendKernel::eachHead(
    llvm::function_ref<void(Value index, Value head)> body) {
  if (shape.heads == 1)
    return body(b.index(0), at.h);
  b.loop(b.index(shape.heads),
         [&](Value index) { body(index, b.add(at.h, index)); });
}

/// The rows of a block that are of one head.
Value AttendKernel::rowsOfHead(Value block, Value index) {
  if (shape.heads == 1)
    return block;
  auto type = cast<MemRefType>(block.getType());
  SmallVector<OpFoldResult> offsets{index},
      sizes{b.getIndexAttr(shape.queries())},
      steps{b.getIndexAttr(shape.heads)};
  for (int64_t size : type.getShape().drop_front()) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(size));
    steps.push_back(b.getIndexAttr(1));
  }
  return b.make<memref::SubViewOp>(block, offsets, sizes, steps);
}

/// The state of the task's rows, as it was or as it begins.
void AttendKernel::begin() {
  const std::tuple<Value, Value, double> parts[] = {
      {blocks.o, o, 0.0}, {blocks.m, m, minusInfinity}, {blocks.l, l, 0.0}};
  for (auto [block, buffer, first] : parts) {
    if (!buffer) {
      b.make<tile::FillOp>(block, b.getF64FloatAttr(first));
      continue;
    }
    eachHead([&, block = block, buffer = buffer](Value index, Value head) {
      b.make<tile::LoadOp>(b.rows(buffer, at.b, head, at.row, at.count),
                           rowsOfHead(block, index), b.getF64FloatAttr(1.0),
                           b.getF64FloatAttr(0.0));
    });
  }
}

/// The state goes on, or becomes results.
void AttendKernel::end() {
  RowTask into = at;
  if (numParts)
    into.row = b.add(b.mul(part, b.dim(query, 1)), at.row);
  else if (op.isLast())
    b.make<tile::NormalizeOp>(blocks.o, blocks.m, blocks.l, rows);
  const Value states[] = {blocks.o, blocks.m, blocks.l};
  eachHead([&](Value index, Value head) {
    into.h = head;
    for (auto [block, buffer] : llvm::zip(states, made))
      storeRows(b, rowsOfHead(block, index), buffer, into);
  });
}

/// What a task does of so many tiles of a list.
AttendKernel::Range AttendKernel::rangeOf(Value count) {
  if (!numParts)
    return {b.index(0), count};
  Value next = b.add(part, b.index(1));
  return {b.div(b.mul(part, count), numParts),
          b.div(b.mul(next, count), numParts)};
}

void AttendKernel::build(Value task) {
  Value numQueries = b.dim(queries, 0);
  Value zero = b.index(0), one = b.index(1);
  tile = b.named("tile", b.rem(task, numQueries));
  Value rest = b.div(task, numQueries);
  auto keyType = cast<MemRefType>(op.getKey().getType());
  auto queryType = cast<MemRefType>(query.getType());
  int64_t heads = queryType.getDimSize(2),
          group = heads / keyType.getDimSize(2);
  Value classHeads = b.index(heads / shape.heads);
  Value head = b.rem(rest, classHeads);
  rest = b.div(rest, classHeads);
  if (numParts) {
    // Of a part of the keys all heads: they may lie side by side.
    part = b.named("part", b.rem(rest, numParts));
    rest = b.div(rest, numParts);
  }
  at.b = b.named("batch", rest);
  at.h = shape.heads == 1 ? head : b.mul(head, b.index(shape.heads));
  b.named("head", at.h);
  at.row = b.field(queries, tile, Field::Row);
  at.count = b.field(queries, tile, Field::Count);
  rows = shape.heads == 1 ? at.count : b.mul(at.count, b.index(shape.heads));
  keyHead = b.named("keyHead", b.div(head, b.index(group / shape.heads)));
  classBatch = schedule.byBatch ? at.b : zero;
  classHead = schedule.byHead ? head : zero;
  full = rangeOf(
      b.named("full", b.load(counts, {classBatch, classHead, tile, zero})));
  partial = rangeOf(
      b.named("partial", b.load(counts, {classBatch, classHead, tile, one})));

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
  if (shape.heads != 1 && (!op.getMask().empty() || !op.getScore().empty()))
    blocks.heads = block("heads", shape.positions(shape.blockRows()));
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
    if (does == AttendPart::All || does == AttendPart::Scores)
      eachHead([&](Value index, Value head) {
        b.make<tile::LoadOp>(
            b.rows(query, at.b, head, at.row, at.count),
            rowsOfHead(blocks.q, index),
            b.getF64FloatAttr(shape.keepsOperands() ? 1.0 : scale),
            b.getF64FloatAttr(0.0));
      });
    if (does != AttendPart::Scores)
      begin();
    if (!op.getMask().empty() || !op.getScore().empty())
      eachHead([&](Value index, Value head) {
        b.positions(rowsOfHead(blocks.i, index), queries, tile, at.count,
                    op.getQueryLayout());
        if (blocks.heads)
          b.loop(at.count, [&](Value row) {
            b.store(head, rowsOfHead(blocks.heads, index), row);
          });
      });
    switch (does) {
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
  if (op.isFirst() || op.isLast() || numParts)
    return body();
  // A task without tiles leaves its state as it is.
  Value any =
      b.compare(arith::CmpIPredicate::ne, b.add(full.end, partial.end), zero);
  b.when(any, body);
}
