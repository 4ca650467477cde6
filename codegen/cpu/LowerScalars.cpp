//===- LowerScalars.cpp - positions, table ranges and copies as loops -----===//
#include "codegen/cpu/Passes.h"
#include "dialect/Tile/Build.h"

#include "llvm/Support/MathExtras.h"

namespace burst::cpu {
#define GEN_PASS_DEF_LOWERSCALARSPASS
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;
using namespace burst;

/// The first position of chunk `c` of `chunks`: c * extent / chunks without the
/// product, which could overflow (see Sequence.cpp).
static Value chunkBegin(tile::LoopBuilder &b, Value c, int64_t chunks,
                        Value extent) {
  Value n = b.index(chunks);
  return b.add(b.mul(c, b.div(extent, n)),
               b.div(b.mul(c, b.rem(extent, n)), n));
}

/// What `Deal::segment` computes, as IR.
static void lower(ring::SegmentOp op) {
  tile::LoopBuilder b(op.getLoc(), op);
  Deal deal = op.getLayout().getDeal();
  Value owner = op.getOwner(), extent = op.getExtent();
  Value begin, end, count, step = b.index(1), block = step;
  if (deal.order == Order::Striped) {
    Value round = b.index(deal.parts * deal.block);
    block = b.index(deal.block);
    begin = b.mul(owner, block);
    Value last = b.sub(b.rem(extent, round), begin);
    last = b.min(b.max(last, b.index(0)), block);
    count = b.add(b.mul(b.div(extent, round), block), last);
    step = round;
    // One past position(count - 1); begin where there is none.
    Value x = b.sub(count, b.index(1));
    Value position =
        b.add(begin, b.add(b.mul(b.div(x, block), step), b.rem(x, block)));
    Value isEmpty = b.compare(arith::CmpIPredicate::eq, count, b.index(0));
    end = b.select(isEmpty, begin, b.add(position, b.index(1)));
  } else {
    int64_t chunks = deal.parts * deal.numSegments();
    Value chunk = owner;
    if (op.getIndex() == 1)
      chunk = b.sub(b.index(chunks - 1), owner);
    begin = chunkBegin(b, chunk, chunks, extent);
    end = chunkBegin(b, b.add(chunk, b.index(1)), chunks, extent);
    count = b.sub(end, begin);
  }
  op->replaceAllUsesWith(ValueRange{begin, end, count, step, block});
  op.erase();
}

/// A loop nest over the clamped box.
static void lower(TableRangeOp op) {
  tile::LoopBuilder b(op.getLoc(), op);
  Value table = op.getTable();
  auto type = cast<MemRefType>(table.getType());
  Type element = type.getElementType(), i64 = b.getI64Type();
  auto number = [&](int64_t value) -> Value {
    return b.make<arith::ConstantIntOp>(value, 64);
  };
  Value isEmpty = b.truth(false);
  SmallVector<std::pair<Value, Value>> box;
  for (auto [dim, range] :
       llvm::enumerate(llvm::zip_equal(op.getFrom(), op.getTo()))) {
    auto [from, to] = range;
    Value size = b.dim(table, dim), last = b.sub(size, b.index(1));
    Value first = b.max(b.min(from, last), b.index(0));
    box.emplace_back(first, b.add(b.max(b.min(to, last), first), b.index(1)));
    isEmpty = b.make<arith::OrIOp>(
        isEmpty, b.compare(arith::CmpIPredicate::eq, size, b.index(0)));
  }
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  auto choice = b.make<scf::IfOp>(TypeRange{i64, i64}, isEmpty, true);
  b.setInsertionPointToStart(choice.thenBlock());
  b.make<scf::YieldOp>(ValueRange{number(least), number(most)});
  b.setInsertionPointToStart(choice.elseBlock());
  SmallVector<Value> indices;
  std::function<SmallVector<Value>(ValueRange)> nest =
      [&](ValueRange found) -> SmallVector<Value> {
    size_t dim = indices.size();
    if (dim == box.size()) {
      Value value = b.load(table, indices);
      if (element.isIndex())
        value = b.make<arith::IndexCastOp>(i64, value);
      else if (element.getIntOrFloatBitWidth() < 64)
        value = b.make<arith::ExtSIOp>(i64, value);
      return {b.min(found[0], value), b.max(found[1], value)};
    }
    auto loop = b.loop(box[dim].first, box[dim].second, 1, found,
                       [&](Value i, ValueRange carried) {
                         indices.push_back(i);
                         SmallVector<Value> inner = nest(carried);
                         indices.pop_back();
                         return inner;
                       });
    return SmallVector<Value>(loop.getResults());
  };
  SmallVector<Value> range = nest({number(most), number(least)});
  b.make<scf::YieldOp>(range);
  op->replaceAllUsesWith(choice);
  op.erase();
}

/// A loop nest: strided copies would be calls of MLIR's own runtime.
static void lower(memref::CopyOp op) {
  tile::LoopBuilder b(op.getLoc(), op);
  auto type = cast<MemRefType>(op.getSource().getType());
  SmallVector<Value> indices;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    auto loop = b.loop(b.index(0), b.dim(op.getSource(), d), 1, ValueRange(),
                       [](Value, ValueRange) { return SmallVector<Value>(); });
    indices.push_back(loop.getInductionVar());
    b.setInsertionPointToStart(loop.getBody());
  }
  b.store(b.load(op.getSource(), indices), op.getTarget(), indices);
  op.erase();
}

namespace {
struct LowerScalars : burst::cpu::impl::LowerScalarsPassBase<LowerScalars> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<ring::SegmentOp, TableRangeOp, memref::CopyOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      auto range = dyn_cast<TableRangeOp>(op);
      if (auto copy = dyn_cast<memref::CopyOp>(op)) {
        lower(copy);
      } else if (!range) {
        lower(cast<ring::SegmentOp>(op));
      } else if (isa<MemRefType>(range.getTable().getType())) {
        lower(range);
      } else {
        range.emitOpError("reads a tensor; run ring-bufferize first");
        return signalPassFailure();
      }
    }
  }
};
} // namespace
