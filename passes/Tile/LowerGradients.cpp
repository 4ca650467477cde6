//===- LowerGradients.cpp - the steps of a backward pass ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/GradientKernel.h"
#include "passes/Tile/GradientOperands.h"
#include "passes/Tile/Lowering.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

bool tiling::hasHeads(Value gradient) {
  auto type = cast<MemRefType>(gradient.getType());
  return type.getRank() == 4 && !type.isDynamicDim(3);
}

void Lowering::launchZero(TileBuilder &builder, Value zero) {
  Shape shape = rowShapeOf(zero);
  if (shape.state.getWidth() < 32) // Tiles are of the state type.
    shape.state = builder.getF32Type();
  auto type = cast<MemRefType>(zero.getType());
  // Rows (batch, heads, sequence) have no columns; one has to be there.
  bool isShard = type.getRank() == 4;
  int64_t columns = shape.padded(isShard ? type.getDimSize(3) : 1);
  Value inside;
  Operands operands;
  operands.write(inside, "gradient", zero);
  Value tasks = numRowTasks(builder, zero, shape);
  launch(builder, "zero", tasks, {}, operands, [&](TileBuilder &b, Value task) {
    RowTask at = decodeRowTask(b, task, inside, shape);
    Value block = b.alloca(shape.tile(columns));
    b.make<tile::FillOp>(block, b.getF64FloatAttr(0.0));
    if (!isShard) {
      block = b.alloca(shape.rowVector());
      b.make<tile::FillOp>(block, b.getF64FloatAttr(0.0));
    }
    storeRows(b, block, inside, at);
  });
}

void Lowering::lower(ring::ZeroOp op) {
  TileBuilder builder(op.getLoc(), op);
  if (Value zero = op.getInto(); tables.contains(zero) || !hasHeads(zero))
    launchZeros(builder, zero);
  else
    launchZero(builder, zero);
  op.erase();
}

/// Heads that a rank only has room for are computed from by nothing, but read
/// in whole tiles, so they are made zeros.
void Lowering::clearRoom(ring::TransferOpInterface start) {
  auto members = static_cast<int64_t>(start.getMembers());
  auto headsOf = [](Value tensor) {
    auto type = cast<MemRefType>(tensor.getType());
    return type.getDimSize(ring::headsDimOf(type));
  };
  auto groups = static_cast<int64_t>(start.getGroups());
  int64_t ranks = members / groups; // of a group
  for (auto [sent, into] :
       llvm::zip_equal(start.getTensors(), start.getInto())) {
    int64_t heads = headsOf(sent) / groups, most = headsOf(into);
    bool isGroupFull =
        most == 1 ? heads == 1 || heads == ranks : heads == most * ranks;
    if (isGroupFull && ranks * groups == members)
      continue;
    TileBuilder builder(start.getLoc(), start);
    auto isAbove = [&](Value value, int64_t bound) {
      return builder.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, value,
                                         builder.index(bound));
    };
    Value place = builder.rem(start.getOwner(), builder.index(members));
    Value hasRoom = isAbove(place, groups * ranks - 1);
    if (!isGroupFull) {
      Value member = builder.rem(place, builder.index(ranks));
      Value end = builder.mul(builder.add(member, builder.index(1)),
                              builder.index(most));
      hasRoom = builder.make<arith::OrIOp>(hasRoom, isAbove(end, heads));
    }
    auto ifOp = builder.make<scf::IfOp>(hasRoom, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(ifOp.thenBlock());
    launchZero(builder, into);
  }
}

void Lowering::lower(ring::DeltaOp op) {
  TileBuilder builder(op.getLoc(), op);
  Shape shape = rowShapeOf(op.getInto());
  int64_t columns = shape.padded(dimOf(op.getOut()));
  Value outs, outGrads, lseGrads, deltas;
  Operands operands;
  operands.read(outs, "out", op.getOut());
  operands.read(outGrads, "dout", op.getOutGrad());
  if (op.getLseGrad())
    operands.read(lseGrads, "dlse", op.getLseGrad());
  operands.write(deltas, "delta", op.getInto());
  launch(builder, "delta", numRowTasks(builder, op.getOut(), shape), {},
         operands, [&](TileBuilder &b, Value task) {
           RowTask at = decodeRowTask(b, task, outs, shape);
           Value out = loadRows(b, outs, at, shape.tile(columns));
           Value outGrad = loadRows(b, outGrads, at, shape.tile(columns));
           Value delta;
           if (lseGrads) {
             delta = loadRows(b, lseGrads, at, shape.rowVector());
           } else {
             delta = b.alloca(shape.rowVector());
             b.make<tile::FillOp>(delta, b.getF64FloatAttr(0.0));
           }
           b.make<tile::RowDotOp>(out, outGrad, delta, at.count);
           storeRows(b, delta, deltas, at);
         });
  op.erase();
}

void Lowering::lower(ring::RoundOp op) {
  TileBuilder builder(op.getLoc(), op);
  Shape shape = rowShapeOf(op.getGradient());
  int64_t columns = shape.padded(dimOf(op.getGradient()));
  Value gradient, rounded;
  Operands operands;
  operands.read(gradient, "gradient", op.getGradient());
  operands.write(rounded, "rounded", op.getInto());
  auto from = cast<MemRefType>(op.getGradient().getType()),
       to = cast<MemRefType>(op.getInto().getType());
  int64_t parts =
      op.addsHeads() ? from.getDimSize(2) / to.getDimSize(2) : 1; // of a head
  launch(builder, "round", numRowTasks(builder, op.getInto(), shape), {},
         operands, [&](TileBuilder &b, Value task) {
           RowTask at = decodeRowTask(b, task, rounded, shape), part = at;
           if (parts > 1)
             part.h = b.mul(at.h, b.index(parts));
           Value sum = loadRows(b, gradient, part, shape.tile(columns));
           for (int64_t i = 1; i < parts; ++i) {
             RowTask next = part;
             next.h = b.add(part.h, b.index(i));
             b.make<tile::AddOp>(
                 sum, loadRows(b, gradient, next, shape.tile(columns)),
                 at.count);
           }
           storeRows(b, sum, rounded, at);
         });
  op.erase();
}

/// A launch per segment.
void Lowering::lower(ring::AddOp op) {
  if (hasNoElements(op.getA()))
    return op.erase();
  TileBuilder builder(op.getLoc(), op);
  Shape shape = rowShapeOf(op.getA());
  int64_t columns = shape.padded(dimOf(op.getA()));
  ofSegments(builder, OwnedSegments::of(op), [&](Value first, Value count) {
    Value a = builder.segment(op.getA(), first, count);
    Value b = builder.segment(op.getB(), first, count);
    Value from, gradient;
    Operands operands;
    operands.read(from, "from", b);
    operands.write(gradient, "gradient", a);
    launch(builder, "add", numRowTasks(builder, a, shape), {}, operands,
           [&](TileBuilder &b, Value task) {
             RowTask at = decodeRowTask(b, task, gradient, shape);
             Value other = loadRows(b, from, at, shape.tile(columns));
             Value sum = loadRows(b, gradient, at, shape.tile(columns));
             b.make<tile::AddOp>(sum, other, at.count);
             storeRows(b, sum, gradient, at);
           });
  });
  op.erase();
}

void Lowering::lower(ring::AttendGradOp op) {
  TileBuilder b(op.getLoc(), op);
  wherePairs(b, op, [&] { attendGrad(b, op); });
  op.erase();
}

/// Gradients are added to in one order, whatever the number of threads: each
/// task has a tile of keys, and takes turns at the tiles of queries. Elements
/// of captured tables may be met by any pair: with gradients of these, a task
/// has all tiles of a batch and a key head. So has it where weights are kept.
void Lowering::attendGradTiled(TileBuilder &b, ring::AttendGradOp op) {
  Shape shape = shapeOf(op.getGrads()[0]);
  shape.pairs = arePairs(op.getQuery());
  // Two rows are a pair of the sums over queries: both are of one strip.
  shape.strip = llvm::alignTo(options.strip, shape.pairs ? 2 : 1);
  Schedule schedule(b, op, shape, Schedule::Lists::OfKeys);
  schedule.queriesStay = loopOfQueries(op);
  schedule.keysStay = loopOfKeys(op);
  schedule.isFalling = true;
  auto launcher = [&](StringRef name, Value tasks, Value order,
                      const Operands &operands, Body body) {
    launch(b, name, tasks, order, operands, body);
  };
  schedule.build(launcher);
  if (options.localTiling && op.getCaptures().empty())
    schedule.takeTurns();
  GradientOperands packed(b, op, shape, schedule);
  packed.pack(launcher);
  SmallVector<Value> copies =
      llvm::map_to_vector(op.getGrads().drop_front(3), [&](Value gradient) {
        return tables.lookup(gradient);
      });
  // A tile of keys reads all queries of its head: those of more heads than
  // there are threads would only push each other out of the caches.
  Value together;
  if (schedule.turns)
    together = b.make<tile::ThreadsOp>(b.getIndexType());
  Value tasks = b.mul(b.dim(op.getKey(), 0), b.dim(op.getKey(), 2));
  if (schedule.turns)
    tasks = b.mul(tasks, b.dim(schedule.keys, 0));
  auto attend = [&](StringRef name, GradientPart part, ArrayRef<Value> stored) {
    GradientArguments arguments;
    Operands operands;
    arguments.bindTo(operands, op, schedule, packed, copies, together, stored);
    launch(b, name, tasks, {}, operands, [&](TileBuilder &inside, Value task) {
      GradientKernel(inside, op, shape, schedule, arguments, part).build(task);
    });
  };
  if (options.localTiling) {
    attend("attend_grad", GradientPart::All, {});
  } else {
    Value stored[] = {allocateTiles(b, op.getQuery(), schedule, shape),
                      allocateTiles(b, op.getQuery(), schedule, shape)};
    attend("weights", GradientPart::Weights, stored);
    attend("sums", GradientPart::Sums, stored);
    for (Value buffer : stored)
      b.make<memref::DeallocOp>(buffer);
  }
  packed.release();
  schedule.release();
}
