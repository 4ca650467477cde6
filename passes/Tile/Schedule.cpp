//===- Schedule.cpp - which tiles an attend has to do ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/Schedule.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

/// Does `body` for each segment of a layout, with its number and the values
/// that the segment before it gave.
static SmallVector<Value>
forSegments(TileBuilder &b, ring::LayoutAttr layout, ValueRange inits,
            llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  int64_t segments = layout.getNumSegments();
  if (segments == 1)
    return body(b.index(0), inits);
  return SmallVector<Value>(
      b.loop(b.index(segments), inits, body).getResults());
}

/// How many heads have tiles of their own.
Value Schedule::numHeads() {
  Value heads = b.dim(op.getQuery(), 2);
  return shape.heads == 1 ? heads : b.div(heads, b.index(shape.heads));
}

/// How many tiles of `size` positions the shard of `owner` has; a tile holds
/// positions of one segment.
Value Schedule::numTiles(ring::LayoutAttr layout, Value owner, Value extent,
                         int64_t size) {
  return forSegments(b, layout, b.index(0),
                     [&](Value i, ValueRange tiles) -> SmallVector<Value> {
                       auto segment =
                           b.make<ring::SegmentOp>(i, layout, owner, extent);
                       return {b.add(tiles.front(),
                                     b.ceilDiv(segment.getCount(), size))};
                     })
      .front();
}

/// Writes the tiles of a shard, from the first or, falling, from the last on.
void Schedule::fill(Value table, ring::LayoutAttr layout, Value owner,
                    Value extent, int64_t size, int64_t pairStep,
                    bool isFalling) {
  auto fillSegment = [&](Value i, ValueRange before) -> SmallVector<Value> {
    Value first = before[0], row = before[1];
    auto segment = b.make<ring::SegmentOp>(i, layout, owner, extent);
    Value count = segment.getCount(), tiles = b.ceilDiv(count, size);
    Value pairOfSegment = b.mul(i, b.index(pairStep));
    b.loop(tiles, [&](Value t) {
      Value x = b.mul(t, b.index(size));
      Value n = b.min(b.sub(count, x), b.index(size));
      auto position = [&](Value y) {
        Value jumps = b.mul(b.div(y, segment.getBlock()), segment.getStep());
        return b.add(segment.getBegin(),
                     b.add(jumps, b.rem(y, segment.getBlock())));
      };
      Value last = position(b.sub(b.add(x, n), b.index(1)));
      Value fields[Field::NumFields];
      fields[Field::Begin] = segment.getBegin();
      fields[Field::First] = x;
      fields[Field::Count] = n;
      fields[Field::Row] = b.add(row, x);
      fields[Field::Pair] = pairOfSegment;
      fields[Field::Lowest] = position(x);
      fields[Field::Behind] = b.add(last, b.index(1));
      Value tile = b.add(first, t);
      if (isFalling)
        tile = b.sub(b.sub(b.dim(table, 0), b.index(1)), tile);
      for (auto [field, value] : llvm::enumerate(fields))
        b.store(value, table, {tile, b.index(field)});
    });
    return {b.add(first, tiles), b.add(row, count)};
  };
  forSegments(b, layout, {b.index(0), b.index(0)}, fillSegment);
}

std::pair<Value, Value> Schedule::bounds(TileBuilder &b,
                                         ValueRange arguments) const {
  ring::AttendLikeOpInterface op = this->op;
  if (op.getMask().empty())
    return {b.truth(true), b.truth(true)};
  if (op.getBounds().empty())
    return {b.truth(true), b.truth(false)};
  Block &block = op.getBounds().front();
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  for (Operation &inner : block.without_terminator()) {
    if (auto dim = dyn_cast<tensor::DimOp>(inner))
      mapping.map(dim.getResult(),
                  b.make<memref::DimOp>(mapping.lookup(dim.getSource()),
                                        mapping.lookup(dim.getIndex()))
                      .getResult());
    else
      b.clone(inner, mapping);
  }
  Operation *yield = block.getTerminator();
  return {mapping.lookup(yield->getOperand(0)),
          mapping.lookup(yield->getOperand(1))};
}

/// What stands for the operands of the kernel of `classify` in it.
struct Schedule::ClassifyArguments {
  Value queries, flags, keys, needed, list, counts;
  Value batch, heads, sq, sk;
  SmallVector<Value> captures;
};

/// The kernel of `classify`.
void Schedule::classifyTile(TileBuilder &b, Value task,
                            const ClassifyArguments &arguments) const {
  bool ofKeys = lists == Lists::OfKeys;
  auto [queries, flags, keys, needed, list, counts, batch, heads, sq, sk,
        captures] = arguments;
  Value numListing = b.dim(ofKeys ? keys : queries, 0);
  Value numListed = b.dim(ofKeys ? queries : keys, 0);
  Value zero = b.index(0), one = b.index(1);
  Value tile = b.rem(task, numListing);
  Value head = b.div(task, numListing);
  Value classHeads = byHead ? heads : one;
  Value cb = b.div(head, classHeads), ch = b.rem(head, classHeads);
  SmallVector<Value> tail{sq, sk};
  llvm::append_range(tail, captures);
  // Of all heads of which a tile has rows.
  auto first = [&](Value head) {
    return shape.heads == 1 ? head : b.mul(head, b.index(shape.heads));
  };
  SmallVector<Value> heading{
      byBatch ? cb : zero, byBatch ? b.add(cb, one) : batch,
      byHead ? first(ch) : zero, first(byHead ? b.add(ch, one) : heads)};
  auto step = [&](Value other, ValueRange found) {
    Value q = ofKeys ? other : tile, k = ofKeys ? tile : other;
    SmallVector<Value> arguments(heading);
    arguments.append(
        {b.field(queries, q, Field::Lowest), b.field(queries, q, Field::Behind),
         b.field(keys, k, Field::Lowest), b.field(keys, k, Field::Behind)});
    llvm::append_range(arguments, tail);
    auto [may, must] = bounds(b, arguments);
    Value kept = may;
    if (flags)
      kept = b.both(kept, b.load(flags, b.add(b.field(queries, q, Field::Pair),
                                              b.field(keys, k, Field::Pair))));
    Value whole =
        b.compare(arith::CmpIPredicate::eq, b.field(keys, k, Field::Count),
                  b.index(shape.columns));
    Value full = b.both(kept, b.both(must, whole));
    Value partial = b.make<arith::XOrIOp>(kept, full);
    b.when(kept, [&] {
      Value behind = b.sub(b.sub(numListed, one), found[1]);
      Value place = b.select(full, found[0], behind);
      b.store(b.make<arith::IndexCastOp>(b.getI32Type(), other), list,
              {cb, ch, tile, place});
      // Other tasks write it as well.
      b.make<memref::AtomicRMWOp>(arith::AtomicRMWKind::maxu,
                                  b.make<arith::ConstantIntOp>(1, 32), needed,
                                  ValueRange{other});
    });
    auto asIndex = [&](Value truth) {
      return b.make<arith::IndexCastUIOp>(b.getIndexType(), truth);
    };
    return SmallVector<Value>{b.add(found[0], asIndex(full)),
                              b.add(found[1], asIndex(partial))};
  };
  auto loop = b.loop(numListed, {zero, zero}, step);
  b.store(loop.getResult(0), counts, {cb, ch, tile, zero});
  b.store(loop.getResult(1), counts, {cb, ch, tile, one});
}

/// Launches a kernel that asks, for one listing tile per task, the bounds about
/// every tile it may list, and lists them by class.
void Schedule::classify(Launcher launch) {
  Value batch = b.dim(op.getQuery(), 0), heads = numHeads();
  Value numListing = b.dim(listing(), 0), numListed = b.dim(listed(), 0);
  Value one = b.index(1);
  Value classBatch = byBatch ? batch : one, classHeads = byHead ? heads : one;
  int64_t any = ShapedType::kDynamic;
  Type i32 = b.getI32Type();
  list = b.allocate(MemRefType::get({any, any, any, any}, i32),
                    {classBatch, classHeads, numListing, numListed},
                    tile::Memory::Schedule);
  counts =
      b.allocate(MemRefType::get({any, any, any, 2}, b.getIndexType()),
                 {classBatch, classHeads, numListing}, tile::Memory::Schedule);
  needed = b.allocate(MemRefType::get({any}, i32), numListed,
                      tile::Memory::Schedule);
  Value no = b.make<arith::ConstantIntOp>(0, 32);
  b.loop(numListed, [&](Value k) { b.store(no, needed, k); });
  ClassifyArguments arguments;
  Operands operands;
  operands.read(arguments.queries, "", queries);
  if (flags)
    operands.read(arguments.flags, "", flags);
  operands.read(arguments.keys, "", keys);
  operands.write(arguments.needed, "", needed);
  operands.write(arguments.list, "", list);
  operands.write(arguments.counts, "", counts);
  operands.scalar(arguments.batch, "", batch);
  operands.scalar(arguments.heads, "", heads);
  operands.scalar(arguments.sq, "", op.getQueryExtent());
  operands.scalar(arguments.sk, "", op.getKeyExtent());
  operands.capture(arguments.captures, op.getMaskCaptures());
  Value rowTasks = b.mul(b.mul(classBatch, classHeads), numListing);
  launch("classify", rowTasks, {}, operands,
         [&](TileBuilder &b, Value task) { classifyTile(b, task, arguments); });
}

Value Schedule::lengthOf(TileBuilder &b, Value counts, Value batch, Value head,
                         Value tile, int64_t group) const {
  Value zero = b.index(0), cb = byBatch ? batch : zero;
  auto lengthOf = [&](Value ch) -> Value {
    return b.add(b.load(counts, {cb, ch, tile, zero}),
                 b.load(counts, {cb, ch, tile, b.index(1)}));
  };
  if (!byHead)
    return lengthOf(zero);
  if (group == 1)
    return lengthOf(head);
  auto sum = b.loop(b.index(group), zero, [&](Value m, ValueRange before) {
    return SmallVector<Value>{b.add(before.front(), lengthOf(b.add(head, m)))};
  });
  return sum.getResult(0);
}

void Schedule::count(int64_t group) {
  Value heads = numHeads();
  if (group != 1)
    heads = b.div(heads, b.index(group));
  tasks = b.mul(b.mul(b.dim(op.getQuery(), 0), heads), b.dim(listing(), 0));
}

/// Lists that are so short matter less for who is done last than what their
/// tasks share: the rows of all heads at a position lie side by side, and
/// neighbours list the same tiles.
static constexpr int64_t shortList = 8;

/// Orders the tasks by their work, the number of tiles, which it rounds to a
/// power of two: of about as much work, those of a head follow each other,
/// which read the same keys and values again while these are in a cache. The
/// tasks of short lists come behind the others, from the last tile to the
/// first, which under a causal mask is by their work as well.
void Schedule::sort(int64_t group) {
  count(group);
  Value batch = b.dim(op.getQuery(), 0), heads = numHeads();
  if (group != 1)
    heads = b.div(heads, b.index(group));
  Value numListing = b.dim(listing(), 0), one = b.index(1);
  // Behind the tiles of any task.
  Value most = b.add(b.mul(b.dim(listed(), 0), b.index(group)), one);
  int64_t any = ShapedType::kDynamic;
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  Value costs =
      b.allocate(MemRefType::get({any}, i64), tasks, tile::Memory::Schedule);
  order =
      b.allocate(MemRefType::get({any}, i32), tasks, tile::Memory::Schedule);
  b.loop(tasks, [&](Value task) {
    Value q = b.rem(task, numListing), head = b.div(task, numListing);
    Value tiles = lengthOf(b, counts, b.div(head, heads),
                           b.mul(b.rem(head, heads), b.index(group)), q, group);
    Value isLong =
        b.compare(arith::CmpIPredicate::sgt, tiles, b.index(shortList));
    Value zeros = b.make<math::CountLeadingZerosOp>(
        b.make<arith::IndexCastOp>(i64, tiles));
    Value power =
        b.sub(b.index(64), b.make<arith::IndexCastOp>(b.getIndexType(), zeros));
    // By power, then by head, then by tiles.
    Value all = b.mul(batch, heads);
    Value place = b.sub(b.mul(b.add(power, one), all), b.add(head, one));
    Value cost = b.select(
        isLong, b.add(numListing, b.add(b.mul(place, most), tiles)), q);
    b.store(b.make<arith::IndexCastOp>(i64, cost), costs, task);
  });
  b.make<tile::SortOp>(costs, order);
  b.make<memref::DeallocOp>(costs);
}

/// Tiles take turns in the order of their numbers.
void Schedule::takeTurns() {
  int64_t any = ShapedType::kDynamic;
  Type i32 = b.getI32Type();
  auto number = [&](int64_t value) -> Value {
    return b.make<arith::ConstantIntOp>(value, 32);
  };
  Value batch = b.dim(op.getQuery(), 0), heads = b.dim(op.getQuery(), 2);
  Value numListing = b.dim(listing(), 0), numListed = b.dim(listed(), 0);
  auto counters = MemRefType::get({any, any, any}, i32);
  passed =
      b.allocate(counters, {batch, heads, numListed}, tile::Memory::Schedule);
  // Lists may be of all batches, also where there is none.
  Value classBatch = b.min(b.dim(list, 0), batch), classHeads = b.dim(list, 1);
  turns = b.allocate(cast<MemRefType>(list.getType()),
                     {classBatch, classHeads, numListing, numListed},
                     tile::Memory::Schedule);
  auto clear = [&](Value batches, Value heads) {
    b.loop(batches, [&](Value batch) {
      b.loop(heads, [&](Value head) {
        b.loop(numListed, [&](Value tile) {
          b.store(number(0), passed, {batch, head, tile});
        });
      });
    });
  };
  // Here the counters of some heads count what takes a turn, then all of them
  // what had it.
  clear(classBatch, classHeads);
  b.loop(classBatch, [&](Value cb) {
    b.loop(classHeads, [&](Value ch) {
      b.loop(numListing, [&](Value tile) {
        auto note = [&](Value place) {
          Value listed = b.make<arith::IndexCastUIOp>(
              b.getIndexType(), b.load(list, {cb, ch, tile, place}));
          Value turn = b.load(passed, {cb, ch, listed});
          b.store(turn, turns, {cb, ch, tile, place});
          b.store(b.add(turn, number(1)), passed, {cb, ch, listed});
        };
        b.loop(b.load(counts, {cb, ch, tile, b.index(0)}), note);
        Value partial = b.load(counts, {cb, ch, tile, b.index(1)});
        b.loop(b.sub(numListed, partial), numListed, 1, note);
      });
    });
  });
  clear(batch, heads);
}

void Schedule::build(Launcher launch) {
  ring::LayoutAttr queryLayout = op.getQueryLayout();
  ring::LayoutAttr keyLayout = op.getKeyLayout();
  int64_t querySegments = queryLayout.getNumSegments();
  int64_t keySegments = keyLayout.getNumSegments();
  auto table = [&](Value tiles) {
    return b.allocate(MemRefType::get({ShapedType::kDynamic, Field::NumFields},
                                      b.getIndexType()),
                      tiles, tile::Memory::Schedule);
  };
  b.inFrontOf(queriesStay, [&] {
    queries = table(numTiles(queryLayout, op.getQueryOwner(),
                             op.getQueryExtent(), shape.queries()));
    fill(queries, queryLayout, op.getQueryOwner(), op.getQueryExtent(),
         shape.queries(), keySegments, isFalling);
  });
  b.inFrontOf(keysStay, [&] {
    keys = table(numTiles(keyLayout, op.getKeyOwner(), op.getKeyExtent(),
                          shape.columns));
    fill(keys, keyLayout, op.getKeyOwner(), op.getKeyExtent(), shape.columns,
         1);
  });
  if (Value pairs = op.getPairs()) {
    flags = b.allocate(
        MemRefType::get({querySegments * keySegments}, b.getI1Type()), {},
        tile::Memory::Schedule);
    b.loop(b.index(querySegments), [&](Value a) {
      Value first = b.mul(a, b.index(keySegments));
      b.loop(b.index(keySegments), [&](Value other) {
        b.store(b.load(pairs, {op.getQueryOwner(), op.getKeyOwner(), a, other}),
                flags, b.add(first, other));
      });
    });
  }
  if (!op.getBounds().empty()) {
    auto arguments = op.getBounds().getArguments();
    byBatch = !arguments[0].use_empty() || !arguments[1].use_empty();
    byHead = !arguments[2].use_empty() || !arguments[3].use_empty();
  }
  classify(launch);
}

void Schedule::release() {
  b.release(queriesStay, queries);
  b.release(keysStay, keys);
  for (Value buffer : {needed, list, counts, order, turns, passed, flags})
    if (buffer)
      b.make<memref::DeallocOp>(buffer);
}

//===----------------------------------------------------------------------===//
