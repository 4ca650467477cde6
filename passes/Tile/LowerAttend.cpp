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
  Value out, lse;
  Operands operands;
  operands.read(state.o, "oState", op.getO());
  operands.read(state.m, "mState", op.getM());
  operands.read(state.l, "lState", op.getL());
  operands.write(out, "out", op.getInto()[0]);
  operands.write(lse, "lse", op.getInto()[1]);
  launch(builder, "finalize", numRowTasks(builder, op.getO(), shape), {},
         operands, [&](TileBuilder &b, Value task) {
           RowTask at = decodeRowTask(b, task, state.o, shape);
           Value o = loadRows(b, state.o, at, shape.tile(columns));
           Value m = loadRows(b, state.m, at, shape.rowVector());
           Value l = loadRows(b, state.l, at, shape.rowVector());
           b.make<tile::NormalizeOp>(o, m, l, at.count);
           storeRows(b, o, out, at);
           storeRows(b, m, lse, at);
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
  if (options.localTiling && !shape.isStaged())
    shape.strip = options.strip;
  Schedule schedule(b, op, shape, Schedule::Lists::OfQueries);
  // What is to do is found out where programs run, not where kernels do.
  schedule.build([&](StringRef name, Value tasks, Value order,
                     const Operands &operands, Body body) {
    launch(b, name, tasks, order, operands, body, /*warps=*/0);
  });
  schedule.sort();
  if (shape.isStaged())
    attendStaged(b, op, shape, schedule);
  else
    attendTiled(b, op, shape, schedule);
  schedule.release();
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

/// Launches the kernels of a processor, which read the packed slice.
void Lowering::attendTiled(TileBuilder &b, ring::AttendOp op, Shape shape,
                           const Schedule &schedule) {
  PackedSlice packed = pack(b, op, shape, schedule);
  auto attend = [&](StringRef name, AttendPart part, Value stored) {
    AttendArguments arguments;
    Operands operands;
    arguments.bindTo(operands, op, schedule, &packed, stored);
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
    b.make<memref::DeallocOp>(buffer);
}
