//===- LowerToTile.cpp - kernels over tiles, and their launches -----------===//
#include "passes/Passes.h"
#include "passes/Tile/AttendKernel.h"

#include "llvm/Support/MathExtras.h"

namespace burst {
#define GEN_PASS_DEF_LOWERTOTILEPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

namespace {

/// Lowers the ops of one program.
class Lowering {
public:
  Lowering(func::FuncOp program, const LowerToTilePassOptions &options)
      : program(program), options(options) {}

  LogicalResult run();

private:
  void launch(TileBuilder &builder, StringRef name, Value tasks, Value order,
              const Operands &operands, Body body);

  Shape shapeOf(Value state);
  void lower(ring::InitOp op);
  void lower(ring::AttendOp op);
  void lower(ring::MergeOp op);
  void lower(ring::FinalizeOp op);

  func::FuncOp program;
  const LowerToTilePassOptions &options;
  SmallVector<func::FuncOp> kernels;
};

} // namespace

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void Lowering::launch(TileBuilder &builder, StringRef name, Value tasks,
                      Value order, const Operands &operands, Body body) {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Type> types{builder.getIndexType()};
  llvm::append_range(types, operands.types());
  func::FuncOp kernel;
  {
    TileBuilder inside(program.getLoc(), program.getContext());
    inside.setInsertionPoint(program);
    kernel = inside.make<func::FuncOp>((program.getName() + "_" + name).str(),
                                       inside.getFunctionType(types, {}));
    kernel.setPrivate();
    kernel->setAttr(tile::kernelAttr, inside.getUnitAttr());
    Block *entry = kernel.addEntryBlock();
    inside.setInsertionPointToStart(entry);
    body(inside, entry->getArgument(0), entry->getArguments().drop_front());
    inside.make<func::ReturnOp>();
  }
  auto *equal = llvm::find_if(kernels, [&](func::FuncOp other) {
    return kernel.getFunctionType() == other.getFunctionType() &&
           OperationEquivalence::isRegionEquivalentTo(
               &kernel.getBody(), &other.getBody(),
               OperationEquivalence::IgnoreLocations);
  });
  if (equal != kernels.end()) {
    kernel.erase();
    kernel = *equal;
  } else {
    SymbolTable(program->getParentOp()).insert(kernel, program->getIterator());
    kernels.push_back(kernel);
  }
  builder.make<tile::LaunchOp>(kernel.getName(), tasks, order, operands.reads,
                               operands.writes, operands.scalars);
}

Shape Lowering::shapeOf(Value state) {
  auto type =
      cast<FloatType>(cast<MemRefType>(state.getType()).getElementType());
  int64_t panel = options.panelBytes * 8 / type.getWidth();
  return {type, options.rows,
          static_cast<int64_t>(llvm::alignTo(options.columns, panel)), panel};
}

void Lowering::lower(ring::InitOp op) {
  TileBuilder builder(op.getLoc(), op);
  ValueRange state = op.getState();
  Shape shape = shapeOf(state[0]);
  int64_t columns = shape.padded(dimOf(state[0]));
  launch(builder, "init", numRowTasks(builder, state[0], shape), {},
         {{}, SmallVector<Value>(state), {}},
         [&](TileBuilder &b, Value task, ValueRange args) {
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
  Shape shape = shapeOf(op.getO());
  int64_t columns = shape.padded(dimOf(op.getO()));
  launch(
      builder, "finalize", numRowTasks(builder, op.getO(), shape), {},
      {{op.getO(), op.getM(), op.getL()}, SmallVector<Value>(op.getInto()), {}},
      [&](TileBuilder &b, Value task, ValueRange args) {
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

void Lowering::lower(ring::MergeOp op) {
  TileBuilder builder(op.getLoc(), op);
  Shape shape = shapeOf(op.getO1());
  int64_t columns = shape.padded(dimOf(op.getO1()));
  launch(builder, "merge", numRowTasks(builder, op.getO1(), shape), {},
         {{op.getO2(), op.getM2(), op.getL2()},
          {op.getO1(), op.getM1(), op.getL1()},
          {}},
         [&](TileBuilder &b, Value task, ValueRange args) {
           RowTask at = decodeRowTask(b, task, args[0], shape);
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
  op.erase();
}

static SmallVector<Value> ofType(ValueRange values, bool buffers) {
  SmallVector<Value> result;
  for (Value value : values)
    if (isa<MemRefType>(value.getType()) == buffers)
      result.push_back(value);
  return result;
}

void Lowering::lower(ring::AttendOp op) {
  TileBuilder b(op.getLoc(), op);
  Shape shape = shapeOf(op.getO());
  shape.pairs =
      options.pairs &&
      cast<MemRefType>(op.getQuery().getType()).getElementType().isBF16();
  Schedule schedule(b, op, shape);
  schedule.build(
      [&](StringRef name, Value tasks, Value order, const Operands &operands,
          Body body) { launch(b, name, tasks, order, operands, body); });

  // Keys and values of all slices, packed tile by tile.
  int64_t any = ShapedType::kDynamic;
  auto keyType = cast<MemRefType>(op.getKeys().front().getType());
  int64_t keyHeads = keyType.getDimSize(2), keyDim = keyType.getDimSize(3);
  Value batch = b.dim(op.getQuery(), 0), numKeys = schedule.firstKeys.back();
  auto allocate = [&](int64_t columns, int64_t depth) {
    return b.allocate(shape.packed(keyHeads, columns, depth), {batch, numKeys},
                      tile::Memory::Packing);
  };
  Value packedKeys = allocate(shape.columns, keyDim);
  Value packedValues = allocate(dimOf(op.getO()), shape.columns);
  // Of the values of each tile, whether all are finite.
  Value finite =
      b.allocate(MemRefType::get({any, keyHeads, any}, b.getI1Type()),
                 {batch, numKeys}, tile::Memory::Schedule);
  for (size_t slice = 0; slice < op.getKeys().size(); ++slice) {
    Value first = schedule.firstKeys[slice];
    Value tiles = b.sub(schedule.firstKeys[slice + 1], first);
    Value tasks = b.mul(b.mul(batch, b.index(keyHeads)), tiles);
    launch(b, "pack", tasks, {},
           {{op.getKeys()[slice], op.getValues()[slice], schedule.keys,
             schedule.needed},
            {packedKeys, packedValues, finite},
            {first, tiles}},
           [&](TileBuilder &b, Value task, ValueRange args) {
             Value keys = args[2], first = args[7], tiles = args[8];
             Value key = b.add(first, b.rem(task, tiles));
             Value none = b.make<arith::ConstantIntOp>(0, 32);
             Value needed = b.compare(arith::CmpIPredicate::ne,
                                      b.load(args[3], key), none);
             b.when(needed, [&] {
               Value head = b.div(task, tiles);
               Value h = b.rem(head, b.index(keyHeads));
               Value batch = b.div(head, b.index(keyHeads));
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

  Operands operands;
  operands.reads = {op.getQuery(), packedKeys,       packedValues,
                    finite,        schedule.queries, schedule.keys,
                    schedule.list, schedule.counts};
  llvm::append_range(operands.reads, ofType(op.getMaskCaptures(), true));
  llvm::append_range(operands.reads, ofType(op.getScoreCaptures(), true));
  operands.writes = {op.getO(), op.getM(), op.getL()};
  operands.scalars = {op.getQueryExtent(), op.getKeyExtent()};
  llvm::append_range(operands.scalars, ofType(op.getMaskCaptures(), false));
  llvm::append_range(operands.scalars, ofType(op.getScoreCaptures(), false));
  launch(b, "attend", schedule.tasks, schedule.order, operands,
         [&](TileBuilder &inside, Value task, ValueRange args) {
           AttendKernel(inside, op, shape, schedule, args).build(task);
         });
  b.make<memref::DeallocOp>(packedKeys);
  b.make<memref::DeallocOp>(packedValues);
  b.make<memref::DeallocOp>(finite);
  schedule.release();
  op.erase();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

LogicalResult Lowering::run() {
  SmallVector<Operation *> steps;
  WalkResult result = program.walk([&](Operation *op) {
    if (isa<ring::InitOp, ring::AttendOp, ring::MergeOp, ring::FinalizeOp>(
            op)) {
      if (op->getNumResults() != 0) {
        op->emitOpError("works on tensors; run ring-bufferize first");
        return WalkResult::interrupt();
      }
      steps.push_back(op);
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (Operation *op : steps)
    llvm::TypeSwitch<Operation *>(op)
        .Case<ring::InitOp, ring::AttendOp, ring::MergeOp, ring::FinalizeOp>(
            [&](auto op) { lower(op); });
  return success();
}

namespace {
struct LowerToTile : burst::impl::LowerToTilePassBase<LowerToTile> {
  using LowerToTilePassBase::LowerToTilePassBase;

  void runOnOperation() override {
    if (rows < 1 || columns < 1 || panelBytes < 8 || panelBytes % 8 != 0) {
      getOperation().emitError("tiles need rows and columns, and panels a "
                               "multiple of 8 bytes, got: ")
          << rows.getValue() << ", " << columns.getValue() << ", "
          << panelBytes.getValue();
      return signalPassFailure();
    }
    LowerToTilePassOptions options{rows, columns, panelBytes, pairs};
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(ring::gridAttr))
        programs.push_back(function);
    for (func::FuncOp program : programs)
      if (failed(Lowering(program, options).run()))
        return signalPassFailure();
  }
};
} // namespace
