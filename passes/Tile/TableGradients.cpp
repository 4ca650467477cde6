//===- TableGradients.cpp - gradients of captured tables ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/GradientKernel.h"
#include "passes/Tile/Lowering.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

/// A task per row of `table`, which is `inside` of the kernel.
void Lowering::launchRows(TileBuilder &builder, StringRef name, Value table,
                          const Value &inside, const Operands &operands,
                          RowBody body) {
  int64_t last = cast<MemRefType>(table.getType()).getRank() - 1;
  Value rows = builder.index(1);
  for (int64_t d = 0; d < last; ++d)
    rows = builder.mul(rows, builder.dim(table, d));
  launch(builder, name, rows, {}, operands, [&](TileBuilder &b, Value task) {
    SmallVector<Value> row(last);
    for (int64_t d = last; d-- > 0;) {
      Value size = b.dim(inside, d);
      row[d] = b.rem(task, size);
      task = b.div(task, size);
    }
    body(b, row);
  });
}

void Lowering::launchZeros(TileBuilder &builder, Value table) {
  Value inside;
  Operands operands;
  operands.write(inside, "", table);
  launchRows(builder, "zero_table", table, inside, operands,
             [&](TileBuilder &b, ValueRange row) {
               auto type = cast<MemRefType>(inside.getType());
               Value zero = b.make<arith::ConstantOp>(
                   b.getFloatAttr(type.getElementType(), 0.0));
               b.loop(b.dim(inside, type.getRank() - 1), [&](Value column) {
                 SmallVector<Value> at(row);
                 at.push_back(column);
                 b.store(zero, inside, at);
               });
             });
}

/// A shard of the same batch in front of `op`: loops in it, or it, carry shards
/// of one batch.
static Value inFrontOf(Operation *op, Value shard) {
  while (op->isAncestor(shard.getParentBlock()->getParentOp())) {
    if (auto view = shard.getDefiningOp<memref::CastOp>()) {
      shard = view.getSource();
    } else if (auto loop = shard.getDefiningOp<scf::ForOp>()) {
      shard = loop.getTiedLoopInit(cast<OpResult>(shard))->get();
    } else {
      auto carried = cast<BlockArgument>(shard);
      auto around = cast<scf::ForOp>(carried.getOwner()->getParentOp());
      shard = around.getTiedLoopInit(carried)->get();
    }
  }
  return shard;
}

/// Makes what tasks of `ops` add to beside `gradient`, from the first of them
/// to the last, behind which all is added up.
void Lowering::makeCopies(Value gradient, ArrayRef<ring::AttendGradOp> ops,
                          int64_t capture) {
  Block *block = gradient.getParentBlock();
  ring::AttendGradOp op = ops.front();
  Sharing sharing;
  Operation *first = block->findAncestorOpInBlock(*op), *last = first;
  for (ring::AttendGradOp op : ops) {
    Sharing here = sharingOf(op.getGradient(), capture);
    sharing = {sharing.batches || here.batches, sharing.heads || here.heads};
    Operation *ancestor = block->findAncestorOpInBlock(*op);
    if (ancestor->isBeforeInBlock(first))
      first = ancestor;
    if (last->isBeforeInBlock(ancestor))
      last = ancestor;
  }
  TileBuilder b(op.getLoc(), first);
  Value copies = b.index(1);
  if (sharing.batches)
    copies = b.dim(inFrontOf(first, op.getKey()), 0);
  if (sharing.heads)
    copies = b.createOrFold<arith::MulIOp>(copies, b.dim(op.getKey(), 2));
  auto type = cast<MemRefType>(gradient.getType());
  // Of a table without elements memref.subview has no views.
  if (getConstantIntValue(copies) == 1 || hasNoElements(gradient))
    return;
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  llvm::append_range(shape, type.getShape());
  // None of a batch of 0, where nobody adds to any.
  SmallVector<Value> sizes{
      b.sub(b.make<arith::MaxSIOp>(copies, b.index(1)), b.index(1))};
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (type.isDynamicDim(d))
      sizes.push_back(b.dim(gradient, d));
  Value others = b.allocate(MemRefType::get(shape, type.getElementType()),
                            sizes, tile::Memory::Packing);
  tables[gradient] = others;
  launchZeros(b, others);
  b.setInsertionPointAfter(last);
  Value from, into;
  Operands operands;
  operands.read(from, "", others);
  operands.write(into, "", gradient);
  launchRows(b, "add_tables", gradient, into, operands,
             [&](TileBuilder &b, ValueRange row) {
               int64_t rank = static_cast<int64_t>(row.size()) + 1;
               b.loop(b.dim(from, 0), [&](Value copy) {
                 b.loop(b.dim(into, rank - 1), [&](Value column) {
                   SmallVector<Value> at(row);
                   at.push_back(column);
                   SmallVector<Value> ofCopy{copy};
                   llvm::append_range(ofCopy, at);
                   Value sum = b.make<arith::AddFOp>(b.load(into, at),
                                                     b.load(from, ofCopy));
                   b.store(sum, into, at);
                 });
               });
             });
  b.make<memref::DeallocOp>(others);
}

void Lowering::findTables(ArrayRef<Operation *> steps) {
  llvm::MapVector<Value, SmallVector<ring::AttendGradOp>> ops;
  llvm::DenseMap<Value, int64_t> captures;
  for (Operation *step : steps) {
    auto op = dyn_cast<ring::AttendGradOp>(step);
    if (!op)
      continue;
    for (auto [gradient, capture] :
         llvm::zip_equal(op.getGrads().drop_front(3), op.getCaptures())) {
      tables.insert({gradient, Value()});
      ops[gradient].push_back(op);
      captures[gradient] = capture;
    }
  }
  for (const auto &[gradient, users] : ops)
    makeCopies(gradient, users, captures[gradient]);
}
