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

void Lowering::lower(ring::InitOp op) {
  TileBuilder builder(op.getLoc(), op);
  ValueRange state = op.getState();
  Shape shape = rowShapeOf(state[0]);
  int64_t columns = shape.padded(dimOf(state[0]));
  launch(builder, "init", numRowTasks(builder, state[0], shape), {},
         {{}, SmallVector<Value>(state), {}},
         [&](TileBuilder &b, Value task, ValueRange args) {
           nameAll(b, args, {"oState", "mState", "lState"});
           RowTask at = decodeRowTask(b, task, args[0], shape);
           Value o = b.alloca(shape.tile(columns));
           Value rows = b.alloca(shape.rowVector());
           auto store = [&](Value block, Value buffer, double value) {
             b.make<tile::FillOp>(block, b.getF64FloatAttr(value));
             b.make<tile::StoreOp>(
                 block, b.rows(buffer, at.b, at.h, at.row, at.count));
           };
           store(o, args[0], 0.0);
           store(rows, args[1], minusInfinity);
           store(rows, args[2], 0.0);
         });
  op.erase();
}

void Lowering::lower(ring::FinalizeOp op) {
  TileBuilder builder(op.getLoc(), op);
  Shape shape = rowShapeOf(op.getO());
  int64_t columns = shape.padded(dimOf(op.getO()));
  launch(
      builder, "finalize", numRowTasks(builder, op.getO(), shape), {},
      {{op.getO(), op.getM(), op.getL()}, SmallVector<Value>(op.getInto()), {}},
      [&](TileBuilder &b, Value task, ValueRange args) {
        nameAll(b, args, {"oState", "mState", "lState", "out", "lse"});
        RowTask at = decodeRowTask(b, task, args[0], shape);
        Value o = loadRows(b, args[0], at, shape.tile(columns));
        Value m = loadRows(b, args[1], at, shape.rowVector());
        Value l = loadRows(b, args[2], at, shape.rowVector());
        b.make<tile::NormalizeOp>(o, m, l, at.count);
        storeRows(b, o, args[3], at);
        storeRows(b, m, args[4], at);
      });
  op.erase();
}

/// A launch per segment.
void Lowering::lower(ring::MergeOp op) {
  TileBuilder builder(op.getLoc(), op);
  Shape shape = rowShapeOf(op.getO1());
  int64_t columns = shape.padded(dimOf(op.getO1()));
  ofSegments(builder, OwnedSegments::of(op), [&](Value first, Value count) {
    auto segments = [&](ValueRange state) {
      return llvm::map_to_vector(state, [&](Value part) {
        return builder.segment(part, first, count);
      });
    };
    SmallVector<Value> into = segments(op.getInto());
    launch(builder, "merge", numRowTasks(builder, into[0], shape), {},
           {segments(op.getFrom()), into, {}},
           [&](TileBuilder &b, Value task, ValueRange args) {
             nameAll(b, args,
                     {"oFrom", "mFrom", "lFrom", "oState", "mState", "lState"});
             RowTask at = decodeRowTask(b, task, args[3], shape);
             Value o2 = loadRows(b, args[0], at, shape.tile(columns));
             Value m2 = loadRows(b, args[1], at, shape.rowVector());
             Value l2 = loadRows(b, args[2], at, shape.rowVector());
             Value o = loadRows(b, args[3], at, shape.tile(columns));
             Value m = loadRows(b, args[4], at, shape.rowVector());
             Value l = loadRows(b, args[5], at, shape.rowVector());
             b.make<tile::MergeOp>(o, m, l, o2, m2, l2, at.count);
             storeRows(b, o, args[3], at);
             storeRows(b, m, args[4], at);
             storeRows(b, l, args[5], at);
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

/// With scores in memory there are kernels between which there is a state.
void Lowering::splitEnds(ring::AttendOp op) {
  TileBuilder b(op.getLoc(), op);
  SmallVector<Value> state(op.getState());
  bool isHidden = op.isFirst() && op.isLast();
  if (isHidden) {
    Value batch = b.dim(op.getQuery(), 0), rows = b.dim(op.getQuery(), 1);
    int64_t any = ShapedType::kDynamic;
    int64_t heads = cast<MemRefType>(op.getQuery().getType()).getDimSize(2);
    FloatType element = op.getStateType();
    auto allocate = [&](ArrayRef<int64_t> shape) {
      return b.allocate(MemRefType::get(shape, element), {batch, rows},
                        tile::Memory::Packing);
    };
    state = {allocate({any, any, heads, dimOf(op.getMade(0))}),
             allocate({any, heads, any}), allocate({any, heads, any})};
  } else if (op.isFirst()) {
    state.assign(op.getInto().begin(), op.getInto().end());
  }
  if (op.isFirst())
    lower(b.make<ring::InitOp>(TypeRange(), op.getQuery(), state));
  SmallVector<Value> results;
  if (op.isLast())
    results.assign(op.getInto().begin(), op.getInto().end());
  IRMapping same;
  auto between = cast<ring::AttendOp>(b.clone(*op, same));
  between.getIntoMutable().clear();
  between.setLast(false);
  if (op.isFirst()) {
    between.getOMutable().assign(state[0]);
    between.getMMutable().assign(state[1]);
    between.getLMutable().assign(state[2]);
  }
  lower(between);
  if (op.isLast())
    lower(b.make<ring::FinalizeOp>(TypeRange(), state[0], state[1], state[2],
                                   results));
  if (isHidden)
    for (Value part : state)
      b.make<memref::DeallocOp>(part);
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

/// Launches a kernel per slice that packs its keys and values, tile by tile,
/// where any list has the tile.
PackedSlices Lowering::pack(TileBuilder &b, ring::AttendOp op,
                            const Shape &shape, const Schedule &schedule) {
  int64_t any = ShapedType::kDynamic;
  auto keyType = cast<MemRefType>(op.getKeys().front().getType());
  int64_t keyHeads = keyType.getDimSize(2), keyDim = keyType.getDimSize(3);
  Value batch = b.dim(op.getQuery(), 0), numKeys = schedule.firstKeys.back();
  auto allocate = [&](MemRefType type, tile::Memory memory) {
    return b.allocate(type, {batch, numKeys}, memory);
  };
  PackedSlices packed;
  packed.keys =
      allocate(shape.packedKeys(keyHeads, keyDim), tile::Memory::Packing);
  packed.values =
      allocate(shape.packedDims(keyHeads, dimOf(op.getMade(0)), shape.columns),
               tile::Memory::Packing);
  packed.finite = allocate(MemRefType::get({any, keyHeads, any}, b.getI1Type()),
                           tile::Memory::Schedule);
  for (size_t slice = 0; slice < op.getKeys().size(); ++slice) {
    Value first = schedule.firstKeys[slice];
    Value tiles = b.sub(schedule.firstKeys[slice + 1], first);
    Value tasks = b.mul(b.mul(batch, b.index(keyHeads)), tiles);
    launch(b, "pack", tasks, {},
           {{op.getKeys()[slice], op.getValues()[slice], schedule.keys,
             schedule.needed},
            {packed.keys, packed.values, packed.finite},
            {first, tiles}},
           [&](TileBuilder &b, Value task, ValueRange args) {
             Value keys = args[2], first = args[7], tiles = args[8];
             auto [batch, h, tile] =
                 headTask(b, task, b.index(keyHeads), tiles);
             Value key = b.add(first, tile);
             Value none = b.make<arith::ConstantIntOp>(0, 32);
             Value needed = b.compare(arith::CmpIPredicate::ne,
                                      b.load(args[3], key), none);
             b.when(needed, [&, batch = batch, h = h] {
               Value row = b.field(keys, key, Field::Row);
               Value count = b.field(keys, key, Field::Count);
               b.make<tile::PackOp>(b.rows(args[0], batch, h, row, count),
                                    b.panels(args[4], batch, h, key), true);
               Value values = b.panels(args[5], batch, h, key);
               b.make<tile::PackOp>(b.rows(args[1], batch, h, row, count),
                                    values, false);
               b.store(b.make<tile::IsFiniteOp>(b.getI1Type(), values), args[6],
                       {batch, h, key});
             });
           });
  }
  return packed;
}

/// Launches the kernels of a processor, which read packed slices.
void Lowering::attendTiled(TileBuilder &b, ring::AttendOp op, Shape shape,
                           const Schedule &schedule) {
  PackedSlices packed = pack(b, op, shape, schedule);
  Operands operands;
  operands.reads = {op.getQuery(), packed.keys,      packed.values,
                    packed.finite, schedule.queries, schedule.keys,
                    schedule.list, schedule.counts};
  llvm::append_range(operands.reads, ofType(op.getMaskCaptures(), true));
  llvm::append_range(operands.reads, ofType(op.getScoreCaptures(), true));
  llvm::append_range(operands.writes, op.getState());
  llvm::append_range(operands.writes, op.getInto());
  operands.scalars = {op.getQueryExtent(), op.getKeyExtent()};
  llvm::append_range(operands.scalars, ofType(op.getMaskCaptures(), false));
  llvm::append_range(operands.scalars, ofType(op.getScoreCaptures(), false));
  auto attend = [&](StringRef name, AttendPart part) {
    launch(b, name, schedule.tasks, schedule.order, operands,
           [&](TileBuilder &inside, Value task, ValueRange args) {
             AttendKernel(inside, op, shape, schedule, args, part).build(task);
           });
  };
  if (options.localTiling) {
    attend("attend", AttendPart::All);
  } else {
    Value scores = allocateTiles(b, op.getQuery(), schedule, shape);
    operands.writes.push_back(scores);
    attend("scores", AttendPart::Scores);
    attend("softmax", AttendPart::Softmax);
    attend("sums", AttendPart::Sums);
    b.make<memref::DeallocOp>(scores);
  }
  for (Value buffer : {packed.keys, packed.values, packed.finite})
    b.make<memref::DeallocOp>(buffer);
}
