//===- LowerAttend.cpp - the steps of a forward pass ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/AttendKernel.h"
#include "passes/Tile/Lowering.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

namespace {
/// The memory of a state in a kernel.
struct StateArguments {
  void write(Operands &operands, ValueRange state) {
    operands.write(o, "oState", state[0]);
    operands.write(m, "mState", state[1]);
    operands.write(l, "lState", state[2]);
  }

  Value o, m, l;
};
} // namespace

void Lowering::lower(ring::InitOp op) {
  TileBuilder builder(op.getLoc(), op);
  ValueRange state = op.getState();
  Shape shape = rowShapeOf(state[0]);
  int64_t columns = shape.padded(dimOf(state[0]));
  StateArguments into;
  Operands operands;
  into.write(operands, state);
  launch(builder, "init", numRowTasks(builder, state[0], shape), {}, operands,
         [&](TileBuilder &b, Value task) {
           RowTask at = decodeRowTask(b, task, into.o, shape);
           Value o = b.alloca(shape.tile(columns));
           Value rows = b.alloca(shape.rowVector());
           auto store = [&](Value block, Value buffer, double value) {
             b.make<tile::FillOp>(block, b.getF64FloatAttr(value));
             b.make<tile::StoreOp>(
                 block, b.rows(buffer, at.b, at.h, at.row, at.count));
           };
           store(o, into.o, 0.0);
           store(rows, into.m, minusInfinity);
           store(rows, into.l, 0.0);
         });
  op.erase();
}

void Lowering::lower(ring::FinalizeOp op) {
  TileBuilder builder(op.getLoc(), op);
  Shape shape = rowShapeOf(op.getO());
  int64_t columns = shape.padded(dimOf(op.getO()));
  StateArguments state;
  Value out, lse, maxScores;
  Operands operands;
  operands.read(state.o, "oState", op.getO());
  operands.read(state.m, "mState", op.getM());
  operands.read(state.l, "lState", op.getL());
  operands.write(out, "out", op.getInto()[0]);
  operands.write(lse, "lse", op.getInto()[1]);
  bool hasMaxScores = op.hasMaxScores();
  if (hasMaxScores)
    operands.write(maxScores, "maxScores", op.getInto()[2]);
  launch(builder, "finalize", numRowTasks(builder, op.getO(), shape), {},
         operands, [&](TileBuilder &b, Value task) {
           RowTask at = decodeRowTask(b, task, state.o, shape);
           Value o = loadRows(b, state.o, at, shape.tile(columns));
           Value m = loadRows(b, state.m, at, shape.rowVector());
           Value l = loadRows(b, state.l, at, shape.rowVector());
           Value largest;
           if (hasMaxScores) {
             largest = loadRows(b, state.m, at, shape.rowVector());
             b.make<tile::MaxScoreOp>(largest, l, at.count);
           }
           b.make<tile::NormalizeOp>(o, m, l, at.count);
           storeRows(b, o, out, at);
           storeRows(b, m, lse, at);
           if (hasMaxScores)
             storeRows(b, largest, maxScores, at);
         });
  op.erase();
}

/// A launch per segment.
void Lowering::lower(ring::MergeOp op) {
  if (hasNoElements(op.getO1()))
    return op.erase();
  TileBuilder builder(op.getLoc(), op);
  Shape shape = rowShapeOf(op.getO1());
  int64_t columns = shape.padded(dimOf(op.getO1()));
  ofSegments(builder, OwnedSegments::of(op), [&](Value first, Value count) {
    auto segments = [&](ValueRange state) {
      return llvm::map_to_vector(state, [&](Value part) {
        return builder.segment(part, first, count);
      });
    };
    SmallVector<Value> state = segments(op.getInto());
    SmallVector<Value> other = segments(op.getFrom());
    StateArguments into, from;
    Operands operands;
    operands.read(from.o, "oFrom", other[0]);
    operands.read(from.m, "mFrom", other[1]);
    operands.read(from.l, "lFrom", other[2]);
    into.write(operands, state);
    launch(builder, "merge", numRowTasks(builder, state[0], shape), {},
           operands, [&](TileBuilder &b, Value task) {
             RowTask at = decodeRowTask(b, task, into.o, shape);
             Value o2 = loadRows(b, from.o, at, shape.tile(columns));
             Value m2 = loadRows(b, from.m, at, shape.rowVector());
             Value l2 = loadRows(b, from.l, at, shape.rowVector());
             Value o = loadRows(b, into.o, at, shape.tile(columns));
             Value m = loadRows(b, into.m, at, shape.rowVector());
             Value l = loadRows(b, into.l, at, shape.rowVector());
             b.make<tile::MergeOp>(o, m, l, o2, m2, l2, at.count);
             storeRows(b, o, into.o, at);
             storeRows(b, m, into.m, at);
             storeRows(b, l, into.l, at);
           });
  });
  op.erase();
}

//===----------------------------------------------------------------------===//
// Attend
//===----------------------------------------------------------------------===//

void Lowering::lower(ring::AttendOp op) {
  if (!options.localTiling && (op.isFirst() || op.isLast()))
    return splitEnds(op);
  TileBuilder b(op.getLoc(), op);
  wherePairs(b, op, [&] { attend(b, op); });
  op.erase();
}

void Lowering::attend(TileBuilder &b, ring::AttendOp op) {
  Shape shape = shapeOf(op.getStateType());
  shape.pairs = arePairs(op.getQuery());
  std::optional<FewQueries> few;
  if (options.localTiling && !shape.isStaged()) {
    shape.strip = options.strip;
    few = FewQueries::find(op, shape.rows, shape.columns, shape.panel);
  }
  if (few)
    shape = ofFew(shape, *few);
  Schedule schedule(b, op, shape, Schedule::Lists::OfQueries);
  // What is to do is found out where programs run, not where kernels do.
  schedule.build([&](StringRef name, Value tasks, Value order,
                     const Operands &operands, Body body) {
    launch(b, name, tasks, order, operands, body, /*warps=*/0);
  });
  if (few && few->isSplit) {
    schedule.count();
    attendParts(b, op, shape, schedule);
    return schedule.release();
  }
  schedule.sort();
  if (shape.isStaged())
    attendStaged(b, op, shape, schedule);
  else
    attendTiled(b, op, shape, schedule);
  schedule.release();
}

/// The tiles of few queries: all heads of a key head, in strips of about as
/// many rows, and nothing is packed.
Shape Lowering::ofFew(Shape shape, const FewQueries &few) {
  shape.heads = few.heads;
  shape.rows = few.positions * few.heads;
  auto strips = static_cast<int64_t>(
      llvm::divideCeil(shape.rows, static_cast<uint64_t>(shape.strip)));
  shape.strip = static_cast<int64_t>(
      llvm::divideCeil(shape.rows, static_cast<uint64_t>(strips)));
  shape.pairs = false;
  shape.inPlace = true;
  return shape;
}

/// Launches a kernel whose tasks have parts of the keys, and one that merges
/// the states that these give, in the order of the parts.
void Lowering::attendParts(TileBuilder &b, ring::AttendOp op,
                           const Shape &shape, const Schedule &schedule) {
  int64_t any = ShapedType::kDynamic;
  int64_t heads = cast<MemRefType>(op.getQuery().getType()).getDimSize(2);
  Value batch = b.dim(op.getQuery(), 0);
  KeyParts parts;
  parts.count =
      FewQueries::numParts(b, schedule.tasks, b.dim(schedule.keys, 0));
  Value rows = b.mul(parts.count, b.dim(op.getQuery(), 1));
  auto allocate = [&](ArrayRef<int64_t> sizes) {
    parts.states.push_back(b.allocate(MemRefType::get(sizes, shape.state),
                                      {batch, rows}, tile::Memory::Packing));
  };
  allocate({any, any, heads, dimOf(op.getValue())});
  allocate({any, heads, any});
  allocate({any, heads, any});
  AttendArguments arguments;
  Operands operands;
  arguments.bindTo(operands, op, schedule, /*packed=*/nullptr,
                   /*stored=*/Value(), &parts);
  launch(b, "attend", b.mul(schedule.tasks, parts.count), {}, operands,
         [&](TileBuilder &inside, Value task) {
           AttendKernel(inside, op, shape, schedule, arguments).build(task);
         });
  mergeParts(b, op, shape, parts);
  for (Value state : parts.states)
    b.make<memref::DeallocOp>(state);
}

/// Launches a kernel that merges the states of parts into that of the attend,
/// or, where it is the first, into none: a task has the rows of a head.
void Lowering::mergeParts(TileBuilder &b, ring::AttendOp op, Shape shape,
                          const KeyParts &parts) {
  shape.rows = shape.queries();
  shape.heads = 1;
  shape.strip = 0;
  StateArguments from, state;
  SmallVector<Value> made(op.getInto().size());
  Value numParts;
  Operands operands;
  operands.read(from.o, "oFrom", parts.states[0]);
  operands.read(from.m, "mFrom", parts.states[1]);
  operands.read(from.l, "lFrom", parts.states[2]);
  if (!op.isFirst())
    state.write(operands, {op.getO(), op.getM(), op.getL()});
  for (auto [argument, buffer] : llvm::zip_equal(made, op.getInto()))
    operands.write(argument, "into", buffer);
  operands.scalar(numParts, "parts", parts.count);
  Value all = made.empty() ? op.getO() : op.getInto()[0];
  launch(b, "merge_parts", numRowTasks(b, all, shape), {}, operands,
         [&](TileBuilder &b, Value task) {
           if (made.empty())
             made = {state.o, state.m, state.l};
           RowTask at = decodeRowTask(b, task, made[0], shape);
           SmallVector<Value> sums, others;
           for (SmallVector<Value> *blocks : {&sums, &others}) {
             blocks->push_back(
                 b.alloca(shape.tile(shape.padded(dimOf(made[0])))));
             blocks->push_back(b.alloca(shape.rowVector()));
             blocks->push_back(b.alloca(shape.rowVector()));
           }
           auto load = [&](ArrayRef<Value> blocks, const StateArguments &from,
                           Value row) {
             const Value buffers[] = {from.o, from.m, from.l};
             for (auto [block, buffer] : llvm::zip_equal(blocks, buffers))
               b.make<tile::LoadOp>(b.rows(buffer, at.b, at.h, row, at.count),
                                    block);
           };
           const double first[] = {0.0, minusInfinity, 0.0};
           if (op.isFirst())
             for (auto [block, value] : llvm::zip_equal(sums, first))
               b.make<tile::FillOp>(block, b.getF64FloatAttr(value));
           else
             load(sums, state, at.row);
           Value rows = b.dim(made[0], 1);
           b.loop(numParts, [&](Value part) {
             load(others, from, b.add(b.mul(part, rows), at.row));
             b.make<tile::MergeOp>(sums[0], sums[1], sums[2], others[0],
                                   others[1], others[2], at.count);
           });
           if (op.isLast())
             b.make<tile::NormalizeOp>(sums[0], sums[1], sums[2], at.count);
           for (auto [block, buffer] : llvm::zip(sums, made))
             storeRows(b, block, buffer, at);
         });
}

/// Launches a kernel that packs the keys and values of the slice, tile by tile,
/// where any list has the tile.
PackedSlice Lowering::pack(TileBuilder &b, ring::AttendOp op,
                           const Shape &shape, const Schedule &schedule) {
  int64_t any = ShapedType::kDynamic;
  auto keyType = cast<MemRefType>(op.getKey().getType());
  int64_t keyHeads = keyType.getDimSize(2), keyDim = keyType.getDimSize(3);
  Value batch = b.dim(op.getQuery(), 0), numKeys = b.dim(schedule.keys, 0);
  auto allocate = [&](MemRefType type, tile::Memory memory) {
    return b.allocate(type, {batch, numKeys}, memory);
  };
  PackedSlice packed;
  packed.keys =
      allocate(shape.packedKeys(keyHeads, keyDim), tile::Memory::Packing);
  packed.values =
      allocate(shape.packedDims(keyHeads, dimOf(op.getMade(0)), shape.columns),
               tile::Memory::Packing);
  packed.finite = allocate(MemRefType::get({any, keyHeads, any}, b.getI1Type()),
                           tile::Memory::Schedule);
  Value shards[2], table, needed, keys, values, finite;
  Operands operands;
  operands.read(shards[0], "", op.getKey());
  operands.read(shards[1], "", op.getValue());
  operands.read(table, "", schedule.keys);
  operands.read(needed, "", schedule.needed);
  operands.write(keys, "", packed.keys);
  operands.write(values, "", packed.values);
  operands.write(finite, "", packed.finite);
  Value tasks = b.mul(b.mul(batch, b.index(keyHeads)), numKeys);
  launch(b, "pack", tasks, {}, operands, [&](TileBuilder &b, Value task) {
    auto [batch, h, key] =
        headTask(b, task, b.index(keyHeads), b.dim(table, 0));
    Value none = b.make<arith::ConstantIntOp>(0, 32);
    Value isNeeded =
        b.compare(arith::CmpIPredicate::ne, b.load(needed, key), none);
    b.when(isNeeded, [&, batch = batch, h = h, key = key] {
      Value row = b.field(table, key, Field::Row);
      Value rows = b.field(table, key, Field::Count);
      b.make<tile::PackOp>(b.rows(shards[0], batch, h, row, rows),
                           b.panels(keys, batch, h, key), true);
      Value panels = b.panels(values, batch, h, key);
      b.make<tile::PackOp>(b.rows(shards[1], batch, h, row, rows), panels,
                           false);
      b.store(b.make<tile::IsFiniteOp>(b.getI1Type(), panels), finite,
              {batch, h, key});
    });
  });
  return packed;
}

/// Launches the kernels of a processor, which read the packed slice, or the
/// slice itself.
void Lowering::attendTiled(TileBuilder &b, ring::AttendOp op, Shape shape,
                           const Schedule &schedule) {
  PackedSlice packed;
  if (!shape.inPlace)
    packed = pack(b, op, shape, schedule);
  auto attend = [&](StringRef name, AttendPart part, Value stored) {
    AttendArguments arguments;
    Operands operands;
    arguments.bindTo(operands, op, schedule, shape.inPlace ? nullptr : &packed,
                     stored);
    launch(b, name, schedule.tasks, schedule.order, operands,
           [&](TileBuilder &inside, Value task) {
             AttendKernel(inside, op, shape, schedule, arguments, part)
                 .build(task);
           });
  };
  if (options.localTiling) {
    attend("attend", AttendPart::All, /*stored=*/Value());
  } else {
    Value scores = allocateTiles(b, op.getQuery(), schedule, shape);
    attend("scores", AttendPart::Scores, scores);
    attend("softmax", AttendPart::Softmax, scores);
    attend("sums", AttendPart::Sums, scores);
    b.make<memref::DeallocOp>(scores);
  }
  for (Value buffer : {packed.keys, packed.values, packed.finite})
    if (buffer)
      b.make<memref::DeallocOp>(buffer);
}
