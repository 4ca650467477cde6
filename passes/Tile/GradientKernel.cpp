//===- GradientKernel.cpp - the backward pass of tiles of keys -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/GradientKernel.h"

#include "llvm/Support/SaveAndRestore.h"

#include <numbers>

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

void GradientArguments::bindTo(Operands &operands, ring::AttendGradOp op,
                               const Schedule &schedule,
                               const GradientOperands &packed,
                               ArrayRef<Value> copies, Value together,
                               ArrayRef<Value> stored) {
  operands.read(query, "q", op.getQuery());
  operands.read(outGrad, "dout", op.getOutGrad());
  operands.read(lse, "lse", op.getLse());
  operands.read(delta, "delta", op.getDelta());
  operands.read(packedKeysT, "keysTransposed", packed.keyColumns());
  operands.read(packedValuesT, "valuesTransposed", packed.valueColumns());
  operands.read(packedKeys, "keys", packed.keyRows());
  operands.read(finiteKeys, "finiteKeys", packed.finiteKeys());
  operands.read(packedQueries, "queries", packed.queryRows());
  operands.read(packedOutGrads, "outGrads", packed.outGradRows());
  operands.read(finiteQueries, "finiteQueries", packed.finiteQueries());
  operands.read(queries, "queryTiles", schedule.queries);
  operands.read(keys, "keyTiles", schedule.keys);
  operands.read(list, "list", schedule.list);
  operands.read(counts, "counts", schedule.counts);
  if (schedule.turns)
    operands.read(turns, "turns", schedule.turns);
  operands.write(dq, "dq", op.getGrads()[0]);
  operands.write(dk, "dk", op.getGrads()[1]);
  operands.write(dv, "dv", op.getGrads()[2]);
  ValueRange gradients = op.getGrads().drop_front(3);
  tables.resize(gradients.size());
  for (auto [table, gradient] : llvm::zip_equal(tables, gradients))
    operands.write(table.gradient, "gradient", gradient);
  if (schedule.turns)
    operands.write(passed, "passed", schedule.passed);
  for (auto [table, copy] : llvm::zip_equal(tables, copies))
    if (copy)
      operands.write(table.copies, "copies", copy);
  if (!stored.empty()) {
    operands.write(weights, "weights", stored[0]);
    operands.write(differentials, "differentials", stored[1]);
  }
  operands.scalar(sq, "sq", op.getQueryExtent());
  operands.scalar(sk, "sk", op.getKeyExtent());
  if (together)
    operands.scalar(this->together, "together", together);
  operands.capture(maskCaptures, op.getMaskCaptures());
  operands.capture(scoreCaptures, op.getScoreCaptures());
}

/// A block without the columns that only make it wider.
Value GradientKernel::tileOf(Value block) {
  int64_t rank = cast<MemRefType>(block.getType()).getRank();
  SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0)), sizes;
  for (int64_t d = 0; d < rank; ++d)
    sizes.push_back(getAsOpFoldResult(b.dim(block, d)));
  sizes[1] = b.getIndexAttr(shape.columns);
  return b.part(block, offsets, sizes);
}

/// A block as the left operand of a product, which is a place of its own where
/// operands are rounded.
Value GradientKernel::rounded(Value block, Value into, const Tile &query) {
  if (!into)
    return block;
  b.make<tile::RoundOp>(block, into, query.count);
  return into;
}

/// Score and mask of rows of queries, at their positions.
Scores GradientKernel::scoresOf(Value block, const Tile &key,
                                const Tile &query) {
  return {block, query.count,  key.count,    batch,
          head,  blocks.i,     blocks.j,     sq,
          sk,    maskCaptures, scoreCaptures};
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

/// Asks for the rows in front of those of a strip, which come next: they are
/// few, so that processors do not foresee it.
void GradientKernel::prefetch(Value buffer, const Tile &query) {
  auto type = cast<MemRefType>(buffer.getType());
  int64_t line = 64 * 8 / type.getElementTypeBitWidth();
  Value rows = b.index(shape.strip);
  Value first = b.max(b.sub(query.row, rows), b.index(0));
  Value view = b.rows(buffer, batch, head, first, query.count);
  b.loop(rows, [&](Value row) {
    b.loop(b.index(0), b.index(type.getDimSize(3)), line, [&](Value column) {
      b.make<memref::PrefetchOp>(view, ValueRange{row, column},
                                 /*isWrite=*/false, /*localityHint=*/3,
                                 /*isDataCache=*/true);
    });
  });
}

/// Products of weights. A weight of 0 rules out what it weighs only if that is
/// a number: else scores tell which count.
void GradientKernel::where(bool isPartial,
                           llvm::function_ref<void(Value seen)> multiply) {
  if (!isPartial || !blocks.seen)
    return multiply({});
  b.when(hides, [&] { multiply(blocks.seen); }, [&] { multiply({}); });
}

/// Weights and their gradients: two products.
void GradientKernel::weigh(const Tile &key, const Tile &query,
                           const Scores &scores, const Span &span,
                           bool isPartial) {
  bool hasScore = !op.getScore().empty();
  double scale = op.getScale().convertToDouble();
  for (Value buffer : {this->query, outGrad, dq})
    prefetch(buffer, query);
  double unit = hasScore ? scale : scale * std::numbers::log2e;
  load(this->query, query, blocks.q, shape.keepsOperands() ? 1.0 : unit);
  load(outGrad, query, blocks.outGrad, 1.0);
  auto product = [&](Value left, Value panels, Value into, double factor) {
    b.make<tile::MultiplyOp>(
        left, panelsOf(b, b.panels(panels, batch, keyHead, key.number), span),
        into, query.count, llvm::APFloat(factor), /*seen=*/Value(),
        /*accumulate=*/false);
  };
  Value s = columnsOf(b, blocks.s, span, shape);
  Value dp = columnsOf(b, blocks.dp, span, shape);
  product(blocks.q, packedKeysT, s, shape.keepsOperands() ? unit : 1.0);
  if (hasScore)
    b.make<memref::CopyOp>(blocks.s, blocks.t);
  mapStrip(b, op, scores, span, shape, blocks.whole, isPartial);
  if (part == GradientPart::All && isPartial && blocks.seen)
    b.when(hides, [&] {
      b.make<memref::CopyOp>(s, columnsOf(b, blocks.seen, span, shape));
    });
  b.make<tile::WeightsOp>(s, blocks.lse, query.count);
  product(blocks.outGrad, packedValuesT, dp, 1.0);
  b.make<tile::DifferentialsOp>(s, dp, blocks.delta, query.count,
                                llvm::APFloat(hasScore ? 1.0 : scale));
  if (hasScore)
    differentiate(key, query);
}

/// What gradients by scores add to that by queries: one product.
void GradientKernel::sumQueries(const Tile &key, const Tile &query,
                                const Span &span, bool isPartial) {
  load(dq, query, blocks.dq, 1.0);
  auto columns = [&](Value block) {
    return block ? columnsOf(b, block, span, shape) : block;
  };
  Value left = rounded(columns(blocks.dp), columns(blocks.dpRounded), query);
  where(isPartial, [&](Value seen) {
    b.make<tile::MultiplyOp>(
        left,
        depthOf(b, b.panels(packedKeys, batch, keyHead, key.number), span,
                shape),
        blocks.dq, query.count, llvm::APFloat(1.0), columns(seen),
        /*accumulate=*/true);
  });
  b.make<tile::StoreOp>(blocks.dq,
                        b.rows(dq, batch, head, query.row, query.count));
}

/// Notes for the panels of a strip that they need its rows.
void GradientKernel::note(const Tile &query, const Span &span) {
  Value row = b.sub(query.row, b.field(queries, query.number, Field::Row));
  b.loop(span.first, span.end, 1, [&](Value panel) {
    b.store(b.min(b.load(blocks.firstRow, panel), row), blocks.firstRow, panel);
    b.store(b.max(b.load(blocks.endRow, panel), b.add(row, query.count)),
            blocks.endRow, panel);
  });
}

/// What weights and gradients by scores add to those by values and keys: two
/// products, over the queries that may see the keys of a strip.
void GradientKernel::sumKeys(const Tile &key, const Tile &query,
                             bool isPartial) {
  OpFoldResult zero = b.getIndexAttr(0), width = b.getIndexAttr(shape.strip);
  bool isBound = isPartial && part == GradientPart::All;
  b.loop(b.index(0), key.count, shape.strip, [&](Value column) {
    Value first = b.index(0), end = query.count;
    if (isBound) {
      Value panel = b.index(shape.panel);
      Value last = b.add(column, b.index(shape.strip - 1));
      last = b.min(last, b.index(shape.columns - 1));
      auto rows =
          b.loop(b.div(column, panel), b.add(b.div(last, panel), b.index(1)), 1,
                 {end, first}, [&](Value p, ValueRange carried) {
                   return SmallVector<Value>{
                       b.min(carried[0], b.load(blocks.firstRow, p)),
                       b.max(carried[1], b.load(blocks.endRow, p))};
                 });
      first = rows.getResult(0);
      end = rows.getResult(1);
    }
    auto add = [&] {
      Value row = first, height = b.sub(end, first);
      Value step = row, depth = height;
      // Strips begin at even rows, and an odd number of rows ends in one of 0.
      if (shape.pairs) {
        step = b.div(row, b.index(2));
        depth = b.ceilDiv(height, 2);
        height = b.mul(depth, b.index(2));
      }
      Value rows = b.min(b.sub(key.count, column), b.index(shape.strip));
      auto left = [&](Value block) {
        if (!shape.pairs)
          return b.part(block, {step, column}, {depth, width});
        return b.part(block, {step, column, zero},
                      {depth, width, b.getIndexAttr(2)});
      };
      auto product = [&](Value left, Value packed, Value into, Value seen) {
        Value panels = b.panels(packed, batch, head, query.number);
        auto type = cast<MemRefType>(panels.getType());
        panels = panelsOf(b, panels, zero, b.getIndexAttr(type.getDimSize(0)),
                          step, depth);
        multiply(left, panels, rowsOf(b, into, column, shape.strip), rows,
                 depth, seen, /*transposed=*/true);
      };
      where(isPartial, [&](Value seen) {
        if (seen)
          seen = b.part(seen, {row, column}, {height, width});
        product(left(shape.pairs ? blocks.sPairs : blocks.s), packedOutGrads,
                blocks.dv, seen);
        product(left(shape.pairs ? blocks.dpPairs : blocks.dp), packedQueries,
                blocks.dk, seen);
      });
    };
    if (isBound)
      b.when(b.compare(arith::CmpIPredicate::slt, first, end), add);
    else
      add();
  });
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

/// What a kernel does for rows of queries and a tile of keys: as many as a
/// product takes at once go through all steps together.
void GradientKernel::strip(const Tile &key, const Tile &query, bool isPartial) {
  Scores scores = scoresOf(blocks.s, key, query);
  Span span = Span::all(b, shape);
  // The gradient of a score goes over all columns.
  bool isBound = isPartial && part == GradientPart::All;
  if (isPartial && part != GradientPart::Sums) {
    Span needed = neededPanels(b, schedule, shape, scores, blocks.whole);
    if (isBound && op.getScore().empty())
      span = needed;
  }
  if (isBound) {
    // Strips of keys go over rows that see no more than parts of them.
    for (Value block : {blocks.s, blocks.dp})
      b.make<tile::FillOp>(block, b.getF64FloatAttr(0.0));
    if (blocks.seen)
      b.when(hides, [&] {
        b.make<tile::FillOp>(blocks.seen, b.getF64FloatAttr(minusInfinity));
      });
    note(query, span);
  }
  auto steps = [&] {
    if (part != GradientPart::Sums)
      weigh(key, query, scores, span, isPartial);
    if (part != GradientPart::Weights)
      sumQueries(key, query, span, isPartial);
  };
  if (isBound)
    b.when(b.compare(arith::CmpIPredicate::slt, span.first, span.end), steps);
  else
    steps();
  rounded(blocks.s, blocks.sPairs, query);
  rounded(blocks.dp, blocks.dpPairs, query);
}

/// What a kernel does for a pair of tiles.
void GradientKernel::step(const Tile &key, Value number, Value turn,
                          bool isPartial) {
  Tile query{number, b.field(queries, number, Field::Row),
             b.field(queries, number, Field::Count)};
  llvm::SaveAndRestore<Blocks> all(blocks);
  if (part != GradientPart::All) {
    Value at[] = {batch, head, query.number, key.number};
    blocks.s = b.element(weights, at);
    blocks.dp = b.element(differentials, at);
  }
  if (part != GradientPart::Sums) {
    load(lse, query, blocks.lse, std::numbers::log2e);
    load(delta, query, blocks.delta, 1.0);
  }
  bool sums = part != GradientPart::Weights;
  bool isMapped = isPartial || !op.getScore().empty();
  if (isMapped) {
    b.positions(blocks.i, queries, query.number, query.count,
                op.getQueryLayout());
    b.positions(blocks.j, keys, key.number, key.count, op.getKeyLayout());
  }
  if (sums && isPartial && blocks.seen) {
    Value isFinite = b.both(b.load(finiteKeys, {batch, keyHead, key.number}),
                            b.load(finiteQueries, {batch, head, query.number}));
    hides = b.make<arith::XOrIOp>(isFinite, b.truth(true));
  }
  if (isPartial && part == GradientPart::All)
    b.loop(b.index(shape.columns / shape.panel), [&](Value panel) {
      b.store(query.count, blocks.firstRow, panel);
      b.store(b.index(0), blocks.endRow, panel);
    });
  if (isPartial && part == GradientPart::Sums && blocks.seen)
    // The scores are gone: the mask is asked again.
    b.when(hides, [&] {
      b.make<tile::FillOp>(blocks.seen, b.getF64FloatAttr(0.0));
      mapScores(b, op, scoresOf(tileOf(blocks.seen), key, query),
                /*isMasked=*/true, /*isScored=*/false);
    });
  Value height = b.index(shape.strip);
  Value last = b.mul(b.div(b.sub(query.count, b.index(1)), height), height);
  if (turn)
    b.make<tile::AwaitOp>(passed, ValueRange{batch, head, number}, turn);
  b.loop(b.index(0), query.count, shape.strip, [&](Value done) {
    Value row = b.sub(last, done);
    llvm::SaveAndRestore<Blocks> tile(blocks);
    Tile rows{query.number, b.add(query.row, row),
              b.min(b.sub(query.count, row), height)};
    // Where the sums over queries read what is rounded, strips share s and dp.
    if (!shape.pairs)
      for (Value *block : {&blocks.s, &blocks.dp})
        *block = rowsOf(b, *block, row, shape.strip);
    if (blocks.seen)
      blocks.seen = rowsOf(b, blocks.seen, row, shape.strip);
    for (Value *block : {&blocks.sPairs, &blocks.dpPairs})
      if (*block)
        *block = rowsOf(b, *block, b.div(row, b.index(2)), shape.strip / 2);
    for (Value *block :
         {&blocks.s, &blocks.dp, &blocks.seen, &blocks.sPairs, &blocks.dpPairs})
      if (*block)
        *block = tileOf(*block);
    for (Value *block : {&blocks.lse, &blocks.delta, &blocks.i})
      *block = rowsOf(b, *block, row, shape.strip);
    strip(key, rows, isPartial);
  });
  if (turn)
    b.make<memref::AtomicRMWOp>(arith::AtomicRMWKind::addi,
                                b.make<arith::ConstantIntOp>(1, 32), passed,
                                ValueRange{batch, head, number});
  if (sums)
    sumKeys(key, query, isPartial);
}

int64_t GradientKernel::numHeads() const {
  return cast<MemRefType>(query.getType()).getDimSize(2);
}
int64_t GradientKernel::numKeyHeads() const {
  return cast<MemRefType>(dk.getType()).getDimSize(2);
}

/// As many heads as run together follow one another, tile by tile, so that who
/// is waited for began as many tasks before.
GradientKernel::Task GradientKernel::decode(Value task) {
  if (!turns)
    return {task, Value()};
  Value tiles = b.dim(keys, 0);
  Value heads = b.mul(b.dim(query, 0), b.index(numKeyHeads()));
  Value some = b.mul(tiles, together);
  Value first = b.mul(b.div(task, some), together);
  Value count = b.min(b.sub(heads, first), together);
  Value place = b.rem(task, some);
  return {b.add(first, b.rem(place, count)), b.div(place, count)};
}

/// What a kernel does for a tile of keys, whose sums stay in blocks. It goes
/// from the last queries to the first, which is how their tiles are numbered:
/// the next tile of keys begins later, so that under a window as well it finds
/// that this one has passed.
void GradientKernel::sumUp(Value number) {
  int64_t group = numHeads() / numKeyHeads();
  Value zero = b.index(0), one = b.index(1);
  Value cb = schedule.byBatch ? batch : zero;
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
    // Full tiles stand in front of the list, partial ones at its end, where the
    // last is first.
    Value last = b.sub(b.dim(queries, 0), one);
    auto queryAt = [&](Value place) -> Value {
      return b.make<arith::IndexCastUIOp>(
          b.getIndexType(), b.load(list, {cb, ch, number, place}));
    };
    b.loop(b.add(full, partial), {zero, zero}, [&](Value, ValueRange done) {
      Value fullPlace = b.min(done[0], last);
      Value partialPlace = b.max(b.sub(last, done[1]), zero);
      Value isFirst = b.compare(arith::CmpIPredicate::slt, queryAt(fullPlace),
                                queryAt(partialPlace));
      Value noFull = b.compare(arith::CmpIPredicate::eq, done[0], full);
      Value noPartial = b.compare(arith::CmpIPredicate::eq, done[1], partial);
      Value isFull = b.select(noFull, b.truth(false),
                              b.select(noPartial, b.truth(true), isFirst));
      Value place = b.select(isFull, fullPlace, partialPlace);
      Value query = queryAt(place);
      Value turn = turns ? b.load(turns, {cb, ch, number, place}) : Value();
      b.when(
          isFull, [&] { step(key, query, turn, /*isPartial=*/false); },
          [&] { step(key, query, turn, /*isPartial=*/true); });
      Value wasFull = b.make<arith::IndexCastUIOp>(b.getIndexType(), isFull);
      return SmallVector<Value>{b.add(done[0], wasFull),
                                b.add(done[1], b.sub(one, wasFull))};
    });
  });
  if (sums) {
    b.make<tile::StoreOp>(blocks.dk, view(dk));
    b.make<tile::StoreOp>(blocks.dv, view(dv));
  }
}

void GradientKernel::build(Value task) {
  int64_t group = numHeads() / numKeyHeads();
  Task at = decode(task);
  keyHead = b.rem(at.head, b.index(numKeyHeads()));
  batch = b.div(at.head, b.index(numKeyHeads()));
  for (auto [n, table] : llvm::zip_equal(op.getCaptures(), tables))
    table.own = table.copies ? ownTable(table, sharingOf(op.getGradient(), n))
                             : table.gradient;
  int64_t queryColumns = shape.padded(dimOf(dk));
  int64_t valueColumns = shape.padded(dimOf(dv));
  Shape one = shape.ofStrip();
  // Read by their columns, too.
  auto ofRows = [&](int64_t rows) {
    return MemRefType::get({rows, shape.blockColumns()}, shape.state);
  };
  auto ofKeys = [&](int64_t columns) {
    return MemRefType::get({shape.blockColumns(), columns}, shape.state);
  };
  auto ofPanels = [&](Type element) {
    return MemRefType::get({shape.columns / shape.panel}, element);
  };
  blocks.q = b.alloca(one.factors(dimOf(query)));
  blocks.outGrad = b.alloca(one.factors(dimOf(outGrad)));
  blocks.dq = b.alloca(one.tile(queryColumns));
  if (part == GradientPart::All) {
    MemRefType type = ofRows(shape.pairs ? shape.strip : shape.blockRows());
    blocks.s = b.alloca(type);
    blocks.dp = b.alloca(type);
  }
  if (shape.pairs) {
    blocks.sPairs = b.alloca(shape.pairedRows());
    blocks.dpPairs = b.alloca(shape.pairedRows());
    blocks.dpRounded = b.alloca(one.factors(shape.columns));
  }
  blocks.dk = b.alloca(ofKeys(queryColumns));
  blocks.dv = b.alloca(ofKeys(valueColumns));
  blocks.lse = b.alloca(shape.rowVector());
  blocks.delta = b.alloca(shape.rowVector());
  blocks.i = b.alloca(shape.positions(shape.blockRows()));
  blocks.j = b.alloca(shape.positions(shape.columns));
  blocks.whole = b.alloca(ofPanels(b.getI1Type()));
  blocks.firstRow = b.alloca(ofPanels(b.getIndexType()));
  blocks.endRow = b.alloca(ofPanels(b.getIndexType()));
  if (!op.getScore().empty()) {
    blocks.t = tileOf(b.alloca(ofRows(shape.strip)));
    blocks.scale = b.alloca(one.rowVector());
    b.make<tile::FillOp>(blocks.scale, op.getScaleAttr());
  }
  if (!op.getMask().empty())
    blocks.seen = b.alloca(ofRows(shape.blockRows()));
  auto whenListed = [&](Value number) {
    Value first = b.mul(keyHead, b.index(group));
    Value length = schedule.lengthOf(b, counts, batch, first, number, group);
    b.when(b.compare(arith::CmpIPredicate::ne, length, b.index(0)),
           [&] { sumUp(number); });
  };
  if (turns)
    whenListed(at.tile);
  else
    b.loop(b.dim(keys, 0), whenListed);
}
