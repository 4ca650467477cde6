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

void Lowering::lower(ring::ZeroOp op) {
  TileBuilder builder(op.getLoc(), op);
  Value zero = op.getInto();
  if (tables.contains(zero) || !hasHeads(zero)) {
    launchZeros(builder, zero);
    op.erase();
    return;
  }
  Shape shape = rowShapeOf(zero);
  int64_t columns = shape.padded(dimOf(zero));
  launch(builder, "zero", numRowTasks(builder, zero, shape), {},
         {{}, {zero}, {}}, [&](TileBuilder &b, Value task, ValueRange args) {
           b.named("gradient", args[0]);
           RowTask at = decodeRowTask(b, task, args[0], shape);
           Value block = b.alloca(shape.tile(columns));
           b.make<tile::FillOp>(block, b.getF64FloatAttr(0.0));
           storeRows(b, block, args[0], at);
         });
  op.erase();
}

void Lowering::lower(ring::DeltaOp op) {
  TileBuilder builder(op.getLoc(), op);
  Shape shape = rowShapeOf(op.getInto());
  int64_t columns = shape.padded(dimOf(op.getOut()));
  Operands operands{{op.getOut(), op.getOutGrad()}, {op.getInto()}, {}};
  bool hasLseGrad = op.getLseGrad() != nullptr;
  if (hasLseGrad)
    operands.reads.push_back(op.getLseGrad());
  launch(builder, "delta", numRowTasks(builder, op.getOut(), shape), {},
         operands, [&](TileBuilder &b, Value task, ValueRange args) {
           nameAll(b, args, {"out", "dout", hasLseGrad ? "dlse" : "delta"});
           b.named("delta", args.back());
           RowTask at = decodeRowTask(b, task, args[0], shape);
           Value out = loadRows(b, args[0], at, shape.tile(columns));
           Value outGrad = loadRows(b, args[1], at, shape.tile(columns));
           Value delta;
           if (hasLseGrad) {
             delta = loadRows(b, args[2], at, shape.rowVector());
           } else {
             delta = b.alloca(shape.rowVector());
             b.make<tile::FillOp>(delta, b.getF64FloatAttr(0.0));
           }
           b.make<tile::RowDotOp>(out, outGrad, delta, at.count);
           storeRows(b, delta, args.back(), at);
         });
  op.erase();
}

void Lowering::lower(ring::RoundOp op) {
  TileBuilder builder(op.getLoc(), op);
  Shape shape = rowShapeOf(op.getGradient());
  int64_t columns = shape.padded(dimOf(op.getGradient()));
  launch(builder, "round", numRowTasks(builder, op.getGradient(), shape), {},
         {{op.getGradient()}, {op.getInto()}, {}},
         [&](TileBuilder &b, Value task, ValueRange args) {
           nameAll(b, args, {"gradient", "rounded"});
           RowTask at = decodeRowTask(b, task, args[0], shape);
           storeRows(b, loadRows(b, args[0], at, shape.tile(columns)), args[1],
                     at);
         });
  op.erase();
}

/// A launch per segment.
void Lowering::lower(ring::AddOp op) {
  TileBuilder builder(op.getLoc(), op);
  Shape shape = rowShapeOf(op.getA());
  int64_t columns = shape.padded(dimOf(op.getA()));
  ofSegments(builder, OwnedSegments::of(op), [&](Value first, Value count) {
    Value a = builder.segment(op.getA(), first, count);
    Value b = builder.segment(op.getB(), first, count);
    launch(builder, "add", numRowTasks(builder, a, shape), {}, {{b}, {a}, {}},
           [&](TileBuilder &b, Value task, ValueRange args) {
             nameAll(b, args, {"from", "gradient"});
             RowTask at = decodeRowTask(b, task, args[1], shape);
             Value other = loadRows(b, args[0], at, shape.tile(columns));
             Value sum = loadRows(b, args[1], at, shape.tile(columns));
             b.make<tile::AddOp>(sum, other, at.count);
             storeRows(b, sum, args[1], at);
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
  Operands operands;
  operands.reads = {op.getQuery(), op.getOutGrad(), op.getLse(), op.getDelta()};
  llvm::append_range(operands.reads, packed.ofKeys());
  llvm::append_range(operands.reads, packed.ofQueries());
  operands.reads.append(
      {schedule.queries, schedule.keys, schedule.list, schedule.counts});
  if (schedule.turns)
    operands.reads.push_back(schedule.turns);
  llvm::append_range(operands.reads, ofType(op.getMaskCaptures(), true));
  llvm::append_range(operands.reads, ofType(op.getScoreCaptures(), true));
  llvm::append_range(operands.writes, op.getGrads());
  if (schedule.turns)
    operands.writes.push_back(schedule.passed);
  SmallVector<Value> copies =
      llvm::map_to_vector(op.getGrads().drop_front(3), [&](Value gradient) {
        return tables.lookup(gradient);
      });
  llvm::copy_if(copies, std::back_inserter(operands.writes),
                [](Value copy) { return copy != nullptr; });
  operands.scalars = {op.getQueryExtent(), op.getKeyExtent()};
  // A tile of keys reads all queries of its head: those of more heads than
  // there are threads would only push each other out of the caches.
  if (schedule.turns)
    operands.scalars.push_back(b.make<tile::ThreadsOp>(b.getIndexType()));
  llvm::append_range(operands.scalars, ofType(op.getMaskCaptures(), false));
  llvm::append_range(operands.scalars, ofType(op.getScoreCaptures(), false));
  Value tasks = b.mul(b.dim(op.getKey(), 0), b.dim(op.getKey(), 2));
  if (schedule.turns)
    tasks = b.mul(tasks, b.dim(schedule.keys, 0));
  auto attend = [&](StringRef name, GradientPart part) {
    launch(b, name, tasks, {}, operands,
           [&](TileBuilder &inside, Value task, ValueRange args) {
             GradientKernel(inside, op, shape, schedule, copies, args, part)
                 .build(task);
           });
  };
  if (options.localTiling) {
    attend("attend_grad", GradientPart::All);
  } else {
    Value stored[] = {allocateTiles(b, op.getQuery(), schedule, shape),
                      allocateTiles(b, op.getQuery(), schedule, shape)};
    llvm::append_range(operands.writes, stored);
    attend("weights", GradientPart::Weights);
    attend("sums", GradientPart::Sums);
    for (Value buffer : stored)
      b.make<memref::DeallocOp>(buffer);
  }
  packed.release();
  schedule.release();
}
