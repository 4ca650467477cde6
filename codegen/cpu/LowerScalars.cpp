//===- LowerScalars.cpp - positions, table ranges, waits, copies as loops -===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Passes.h"
#include "dialect/Tile/Build.h"

#include "mlir/Dialect/Func/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

namespace burst::cpu {
#define GEN_PASS_DEF_LOWERSCALARSPASS
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

/// The first position of chunk `c` of `chunks`: c * extent / chunks without the
/// product, which could overflow (see Sequence.cpp).
static Value chunkBegin(tile::LoopBuilder &b, Value c, int64_t chunks,
                        Value extent) {
  Value n = b.index(chunks);
  return b.add(b.mul(c, b.div(extent, n)),
               b.div(b.mul(c, b.rem(extent, n)), n));
}

/// What `Layout::segment` computes, as IR.
static void lower(ring::SegmentOp op) {
  tile::LoopBuilder b(op.getLoc(), op);
  Layout layout = op.getLayout().getValue();
  Value owner = op.getOwner(), extent = op.getExtent(), index = op.getIndex();
  if (layout.all) { // of one part behind the other
    layout = layout.ofPart();
    Value segments = b.index(layout.numSegments());
    owner = b.div(index, segments);
    index = b.rem(index, segments);
  }
  Value begin, end, count, step = b.index(1), block = step;
  if (layout.order == Order::Striped) {
    Value round = b.index(layout.parts * layout.block);
    block = b.index(layout.block);
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
    int64_t chunks = layout.parts * layout.numSegments();
    Value chunk = owner;
    if (layout.order == Order::Zigzag) {
      Value isFirst = b.compare(arith::CmpIPredicate::eq, index, b.index(0));
      chunk = b.select(isFirst, owner, b.sub(b.index(chunks - 1), owner));
    }
    begin = chunkBegin(b, chunk, chunks, extent);
    end = chunkBegin(b, b.add(chunk, b.index(1)), chunks, extent);
    count = b.sub(end, begin);
  }
  op->replaceAllUsesWith(ValueRange{begin, end, count, step, block});
  op.erase();
}

/// Bits of an element that vectors hold; 0 where they hold none of its type.
static int64_t widthOf(Type element) {
  if (element.isIndex())
    return 64;
  int64_t bits = element.getIntOrFloatBitWidth();
  return bits >= 8 && llvm::isPowerOf2_64(bits) ? bits : 0;
}

namespace {
/// The smallest and the largest element so far, as i64.
using Extremes = SmallVector<Value>;

/// Emits the search for the range of a box of a table.
class RangeSearch {
public:
  RangeSearch(TableRangeOp op, int64_t vectorBits)
      : b(op.getLoc(), op), op(op), table(op.getTable()),
        vectorBits(vectorBits) {}
  /// Both results, where the table is not empty.
  void run();

private:
  Value number(int64_t value) {
    return b.make<arith::ConstantIntOp>(value, 64);
  }
  Value widened(Value value) {
    Type i64 = b.getI64Type();
    if (value.getType().isIndex())
      return b.make<arith::IndexCastOp>(i64, value);
    if (value.getType().getIntOrFloatBitWidth() < 64)
      return b.make<arith::ExtSIOp>(i64, value);
    return value;
  }
  Extremes with(ValueRange found, Value smallest, Value largest) {
    return {b.min(found[0], widened(smallest)),
            b.max(found[1], widened(largest))};
  }
  Extremes nest(ValueRange found);
  Extremes rows(Value begin, Value end, ValueRange found);

  tile::LoopBuilder b;
  TableRangeOp op;
  Value table;
  int64_t vectorBits;
  SmallVector<std::pair<Value, Value>> box;
  SmallVector<Value> indices; ///< of the dimensions whose loops are open
};
} // namespace

/// Elements [begin, end) of the last dimension: in vectors, then one by one.
Extremes RangeSearch::rows(Value begin, Value end, ValueRange found) {
  auto type = cast<MemRefType>(table.getType());
  Type element = type.getElementType();
  Extremes range(found);
  auto at = [&](Value i) {
    SmallVector<Value> all(indices);
    all.push_back(i);
    return all;
  };
  int64_t width = widthOf(element), lanes = width ? vectorBits / width : 0;
  if (lanes > 1 && type.isLastDimUnitStride()) {
    auto vector = VectorType::get(lanes, element);
    auto splat = [&](const APInt &value) -> Value {
      return b.make<arith::ConstantOp>(DenseElementsAttr::get(
          vector, Attribute(b.getIntegerAttr(element, value))));
    };
    Value count = b.sub(end, begin);
    Value whole = b.sub(end, b.rem(count, b.index(lanes)));
    auto bits = static_cast<unsigned>(width);
    auto loop = b.loop(
        begin, whole, lanes,
        {splat(APInt::getSignedMaxValue(bits)),
         splat(APInt::getSignedMinValue(bits))},
        [&](Value i, ValueRange carried) {
          Value some = b.make<vector::LoadOp>(vector, table, at(i));
          return Extremes{b.min(carried[0], some), b.max(carried[1], some)};
        });
    auto reduced = [&](vector::CombiningKind kind, unsigned i) {
      return b.make<vector::ReductionOp>(kind, loop.getResult(i));
    };
    range = with(found, reduced(vector::CombiningKind::MINSI, 0),
                 reduced(vector::CombiningKind::MAXSI, 1));
    begin = whole;
  }
  auto loop = b.loop(begin, end, 1, range, [&](Value i, ValueRange carried) {
    Value value = b.load(table, at(i));
    return with(carried, value, value);
  });
  return Extremes(loop.getResults());
}

Extremes RangeSearch::nest(ValueRange found) {
  if (box.empty()) {
    Value only = b.load(table, {});
    return with(found, only, only);
  }
  auto [begin, end] = box[indices.size()];
  if (indices.size() + 1 == box.size())
    return rows(begin, end, found);
  auto loop = b.loop(begin, end, 1, found, [&](Value i, ValueRange carried) {
    indices.push_back(i);
    Extremes inner = nest(carried);
    indices.pop_back();
    return inner;
  });
  return Extremes(loop.getResults());
}

void RangeSearch::run() {
  Value isEmpty = b.truth(false);
  for (auto [dim, range] :
       llvm::enumerate(llvm::zip_equal(op.getFrom(), op.getTo()))) {
    auto [from, to] = range;
    Value size = b.dim(table, dim), last = b.sub(size, b.index(1));
    Value first = b.max(b.min(from, last), b.index(0));
    box.emplace_back(first, b.add(b.max(b.min(to, last), first), b.index(1)));
    isEmpty = b.make<arith::OrIOp>(
        isEmpty, b.compare(arith::CmpIPredicate::eq, size, b.index(0)));
  }
  Value least = number(std::numeric_limits<int64_t>::min());
  Value most = number(std::numeric_limits<int64_t>::max());
  Type i64 = b.getI64Type();
  auto choice = b.make<scf::IfOp>(TypeRange{i64, i64}, isEmpty, true);
  b.setInsertionPointToStart(choice.thenBlock());
  b.make<scf::YieldOp>(ValueRange{least, most});
  b.setInsertionPointToStart(choice.elseBlock());
  b.make<scf::YieldOp>(nest({most, least}));
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

/// So often a wait looks before it sleeps, and so long it sleeps between looks.
/// Both take about as long as to fall asleep and to be woken: a wait lasts no
/// more than twice as long as it must, and one that is long takes no processor.
static constexpr int64_t looks = 100, sleepMicroseconds = 50;

/// A loop that looks at the element until it is the value, and meanwhile calls
/// POSIX's functions.
static LogicalResult lower(tile::AwaitOp op, ModuleOp module) {
  tile::LoopBuilder b(op.getLoc(), op);
  Type i32 = b.getI32Type();
  auto declare = [&](StringRef name, TypeRange parameters) {
    FailureOr<func::FuncOp> function =
        func::lookupOrCreateFnDecl(b, module, name, parameters, nullptr, i32);
    if (failed(function))
      op.emitOpError("calls ") << name
                               << " of POSIX, and another function has that "
                                  "name: give it another";
    return function;
  };
  FailureOr<func::FuncOp> yield = declare("sched_yield", {});
  FailureOr<func::FuncOp> sleep = declare("usleep", {i32});
  if (failed(yield) || failed(sleep))
    return failure();
  auto number = [&](int64_t value) -> Value {
    return b.make<arith::ConstantIntOp>(value, 32);
  };
  Value none = number(0), one = number(1), most = number(looks);
  Value pause = number(sleepMicroseconds);
  auto loop = b.make<scf::WhileOp>(TypeRange(i32), none);
  Block *before = b.createBlock(&loop.getBefore(), {}, i32, op.getLoc());
  // memref.load is not atomic. To add nothing is, and orders what follows.
  Value found = b.make<memref::AtomicRMWOp>(arith::AtomicRMWKind::addi, none,
                                            op.getCounters(), op.getIndices());
  b.make<scf::ConditionOp>(
      b.compare(arith::CmpIPredicate::ne, found, op.getValue()),
      before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, i32, op.getLoc());
  Value looked = after->getArgument(0);
  b.when(
      b.compare(arith::CmpIPredicate::ult, looked, most),
      [&] { b.make<func::CallOp>(*yield, ValueRange()); },
      [&] { b.make<func::CallOp>(*sleep, pause); });
  b.make<scf::YieldOp>(b.min(b.add(looked, one), most));
  op.erase();
  return success();
}

namespace {
struct LowerScalars : burst::cpu::impl::LowerScalarsPassBase<LowerScalars> {
  using LowerScalarsPassBase::LowerScalarsPassBase;

  void runOnOperation() override {
    if (!isVectorBits(vectorBits)) {
      getOperation().emitError(
          "vectors have a power of two of bits, from 64 to 2048, got: ")
          << vectorBits.getValue();
      return signalPassFailure();
    }
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<ring::SegmentOp, TableRangeOp, memref::CopyOp, tile::AwaitOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      auto range = dyn_cast<TableRangeOp>(op);
      if (auto copy = dyn_cast<memref::CopyOp>(op)) {
        lower(copy);
      } else if (auto await = dyn_cast<tile::AwaitOp>(op)) {
        if (failed(lower(await, getOperation())))
          return signalPassFailure();
      } else if (!range) {
        lower(cast<ring::SegmentOp>(op));
      } else if (isa<MemRefType>(range.getTable().getType())) {
        RangeSearch(range, vectorBits).run();
      } else {
        range.emitOpError("reads a tensor; run ring-bufferize first");
        return signalPassFailure();
      }
    }
  }
};
} // namespace
