//===- AttendKernel.cpp - one tile of queries against its list ------------===//
#include "passes/Tile/AttendKernel.h"

#include "llvm/Support/SaveAndRestore.h"

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
  if (part != AttendPart::All)
    scores = list.take("scores");
  sq = list.take("sq");
  sk = list.take("sk");
  if (shape.isStaged())
    for (size_t slice = 1; slice < op.getKeys().size(); ++slice)
      firstTiles.push_back(list.take("firstTile"));
  list.take(op.getMaskCaptures(), maskCaptures, false);
  list.take(op.getScoreCaptures(), scoreCaptures, false);
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
  auto choice = b.make<scf::IfOp>(hides(key), /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  multiply(seen());
  b.setInsertionPointToStart(choice.elseBlock());
  multiply({});
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

/// The panels between which all lie that the rows of a strip may see: the
/// first, and one past the last. Notes which of them the mask leaves whole.
std::pair<Value, Value> AttendKernel::neededPanels(Value columns) {
  Value one = b.index(1), width = b.index(shape.panel);
  SmallVector<Value> box{at.b,
                         b.add(at.b, one),
                         at.h,
                         b.add(at.h, one),
                         b.load(blocks.i, b.index(0)),
                         b.add(b.load(blocks.i, b.sub(at.count, one)), one)};
  auto step = [&](Value panel, ValueRange found) {
    Value first = b.mul(panel, width), end = b.add(first, width);
    SmallVector<Value> arguments(box);
    arguments.append({b.load(blocks.j, first),
                      b.add(b.load(blocks.j, b.sub(end, one)), one), sq, sk});
    llvm::append_range(arguments, maskCaptures);
    auto [may, must] = schedule.bounds(b, arguments);
    Value isThere = b.compare(arith::CmpIPredicate::sle, end, columns);
    b.store(b.both(must, isThere), blocks.whole, panel);
    return SmallVector<Value>{b.select(may, b.min(found[0], panel), found[0]),
                              b.select(may, b.add(panel, one), found[1])};
  };
  Value none = b.index(shape.columns / shape.panel);
  auto loop = b.loop(b.ceilDiv(columns, shape.panel), {none, b.index(0)}, step);
  return {loop.getResult(0), loop.getResult(1)};
}

/// Everything, for the rows from `row` on and a tile of keys. Of a partial tile
/// only the panels that these rows may see.
void AttendKernel::strip(Value key, Value row, Value columns, bool isPartial) {
  llvm::SaveAndRestore<Blocks> whole(blocks);
  llvm::SaveAndRestore<Value> all(at.count);
  at.count = b.min(b.sub(at.count, row), b.index(shape.strip));
  OpFoldResult zero = b.getIndexAttr(0), rows = b.getIndexAttr(shape.strip);
  auto sizeOf = [&](Value block, int64_t d) -> OpFoldResult {
    return b.getIndexAttr(cast<MemRefType>(block.getType()).getDimSize(d));
  };
  for (Value *block : {&blocks.q, &blocks.o})
    *block = b.part(*block, {row, zero}, {rows, sizeOf(*block, 1)});
  for (Value *block : {&blocks.m, &blocks.l, &blocks.factor, &blocks.i})
    *block = b.part(*block, OpFoldResult(row), rows);

  Value first = b.index(0), end = b.index(shape.columns / shape.panel);
  if (isPartial)
    std::tie(first, end) = neededPanels(columns);
  auto steps = [&] {
    Value panel = b.index(shape.panel), depth = b.index(shape.pairs ? 2 : 1);
    Value begin = b.mul(first, panel), width = b.mul(b.sub(end, first), panel);
    /// Panels, of which two dimensions are not taken whole.
    auto panels = [&](Value all, OpFoldResult first, OpFoldResult count,
                      OpFoldResult begin, OpFoldResult depth) {
      SmallVector<OpFoldResult> offsets{first, begin, zero},
          sizes{count, depth, sizeOf(all, 2)};
      if (shape.pairs) {
        offsets.push_back(zero);
        sizes.push_back(sizeOf(all, 3));
      }
      return b.part(all, offsets, sizes);
    };
    Value keys = right(/*isValue=*/false, key);
    Value values = right(/*isValue=*/true, key);
    keys = panels(keys, first, b.sub(end, first), zero, sizeOf(keys, 1));
    values = panels(values, zero, sizeOf(values, 0), b.div(begin, depth),
                    b.div(width, depth));
    Value scores = blocks.s; // of all columns
    for (Value *block : {&blocks.s, &blocks.p, &blocks.seen})
      if (*block)
        *block = b.part(*block, {zero, begin}, {rows, width});

    b.make<tile::MultiplyOp>(blocks.q, keys, blocks.s, at.count,
                             llvm::APFloat(shape.keepsOperands() ? scale : 1.0),
                             Value(), false);
    bool hasScore = !op.getScore().empty();
    if (isPartial || hasScore)
      b.loop(first, end, 1, [&](Value number) {
        Value column = b.mul(number, panel);
        auto map = [&] {
          mapScores(b, op,
                    {b.part(scores, {zero, column},
                            {rows, b.getIndexAttr(shape.panel)}),
                     at.count, b.sub(columns, column), at.b, at.h, blocks.i,
                     b.part(blocks.j, OpFoldResult(column),
                            OpFoldResult(b.getIndexAttr(shape.panel))),
                     sq, sk, maskCaptures, scoreCaptures},
                    isPartial, hasScore);
        };
        if (hasScore)
          return map();
        b.when(
            b.make<arith::XOrIOp>(b.load(blocks.whole, number), b.truth(true)),
            map);
      });
    if (isPartial && blocks.seen && !shape.pairs)
      b.when(hides(key),
             [&] { b.make<memref::CopyOp>(blocks.s, blocks.seen); });
    b.make<tile::RowMaxOp>(blocks.s, blocks.m, blocks.factor, at.count);
    b.make<tile::ExponentialsOp>(blocks.s, blocks.m, blocks.l, blocks.factor,
                                 at.count, blocks.p);
    b.make<tile::RescaleOp>(blocks.o, blocks.factor, at.count);
    multiply(key, values, isPartial, [&] { return blocks.seen; });
  };
  if (isPartial)
    b.when(b.compare(arith::CmpIPredicate::slt, first, end), steps);
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
  if (shape.oneLoop)
    return b.loop(b.add(full, partial), [&](Value t) {
      masked = b.compare(arith::CmpIPredicate::sge, t, full);
      Value place = b.select(masked, b.sub(last, b.sub(t, full)), t);
      (this->*step)(keyAt(place), true);
    });
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
  multiply(key, right(/*isValue=*/true, key), isPartial, [&] {
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
  tile = b.named("tile", b.rem(task, numQueries));
  Value head = b.div(task, numQueries);
  Value heads = b.dim(query, 2);
  at.b = b.named("batch", b.div(head, heads));
  at.h = b.named("head", b.rem(head, heads));
  at.row = b.field(queries, tile, Field::Row);
  at.count = b.field(queries, tile, Field::Count);
  auto keyType = cast<MemRefType>(op.getKeys().front().getType());
  auto queryType = cast<MemRefType>(query.getType());
  keyHead = b.named("keyHead", b.div(at.h, b.index(queryType.getDimSize(2) /
                                                   keyType.getDimSize(2))));
  classBatch = schedule.byBatch ? at.b : zero;
  classHead = schedule.byHead ? at.h : zero;
  full = b.named("full", b.load(counts, {classBatch, classHead, tile, zero}));
  partial =
      b.named("partial", b.load(counts, {classBatch, classHead, tile, one}));

  int64_t valueColumns = shape.padded(dimOf(o));
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
    blocks.v = block("valueTile", shape.staged(shape.columns, dimOf(o)));
  }
  if (shape.pairs)
    blocks.p = b.alloca(scored.factors(shape.columns));
  // Scores outlive their weights where these have a place of their own.
  if (!op.getMask().empty() && !shape.isStaged())
    blocks.seen = shape.pairs ? blocks.s : b.alloca(scored.tile(shape.columns));
  if (shape.strip)
    blocks.whole =
        b.alloca(MemRefType::get({shape.columns / shape.panel}, b.getI1Type()));
  // A task without tiles leaves its state as it is.
  Value any = b.compare(arith::CmpIPredicate::ne, b.add(full, partial), zero);
  b.when(any, [&] {
    auto load = [&](Value buffer, Value block, double factor) {
      b.make<tile::LoadOp>(b.rows(buffer, at.b, at.h, at.row, at.count), block,
                           b.getF64FloatAttr(factor), b.getF64FloatAttr(0.0));
    };
    bool scoring = part == AttendPart::All || part == AttendPart::Scores;
    if (scoring)
      load(query, blocks.q, shape.keepsOperands() ? 1.0 : scale);
    if (part != AttendPart::Scores) {
      load(o, blocks.o, 1.0);
      load(m, blocks.m, 1.0);
      load(l, blocks.l, 1.0);
    }
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
    storeRows(b, blocks.o, o, at);
    storeRows(b, blocks.m, m, at);
    storeRows(b, blocks.l, l, at);
  });
}
