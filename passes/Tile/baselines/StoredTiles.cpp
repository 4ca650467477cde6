//===- StoredTiles.cpp - attends that store all tiles of scores -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What local-tiling=false does otherwise: the baseline of attention that keeps
// one tile of scores at a time.
//
//===----------------------------------------------------------------------===//
#include "passes/Tile/AttendKernel.h"
#include "passes/Tile/Lowering.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

Value tiling::allocateTiles(TileBuilder &b, Value query,
                            const Schedule &schedule, const Shape &shape) {
  int64_t heads = cast<MemRefType>(query.getType()).getDimSize(2);
  return b.allocate(
      shape.tiles(heads),
      {b.dim(query, 0), b.dim(schedule.queries, 0), b.dim(schedule.keys, 0)},
      tile::Memory::Packing);
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
