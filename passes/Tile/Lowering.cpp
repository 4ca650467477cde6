//===- Lowering.cpp - launches, and what all steps share ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/Lowering.h"
#include "dialect/Burst/Emit.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

#include "passes/Tile/TileLowering.cpp.inc"

func::FuncOp Lowering::launch(TileBuilder &builder, StringRef name, Value tasks,
                              Value order, const Operands &operands, Body body,
                              int64_t warps) {
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
    if (warps)
      kernel->setAttr(tile::warpsAttr, inside.getI64IntegerAttr(warps));
    Block *entry = kernel.addEntryBlock();
    inside.setInsertionPointToStart(entry);
    operands.bind(inside, entry->getArguments().drop_front());
    body(inside, entry->getArgument(0));
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
  builder.make<tile::LaunchOp>(kernel.getName(), tasks, order, operands.reads(),
                               operands.writes(), operands.scalars());
  return kernel;
}

Shape Lowering::shapeOf(FloatType type) {
  if (options.warps) // a fragment has 16 columns
    return {type, options.rows,    options.columns, 16,
            16,   /*pairs=*/false, options.warps};
  int64_t dimPanel = options.panelBytes * 8 / type.getWidth(), panel = dimPanel;
  if (options.keyPanelBytes)
    panel = options.keyPanelBytes * 8 / type.getWidth();
  return {type, options.rows,
          static_cast<int64_t>(llvm::alignTo(options.columns, panel)), panel,
          dimPanel};
}

/// Of what is done row by row, without products: whole rows of a CTA, and no
/// more, so that all their columns fit into registers.
Shape Lowering::rowShapeOf(Value state) {
  Shape shape = shapeOf(state);
  if (shape.isStaged())
    shape.rows = 16 * shape.warps;
  return shape;
}

void tiling::wherePairs(TileBuilder &b, ring::AttendLikeOpInterface op,
                        llvm::function_ref<void()> body) {
  Value pairs = op.getPairs();
  if (!pairs || !op.mayBeSkipped())
    return body();
  int64_t numA = op.getQueryLayout().getNumSegments();
  int64_t numB = op.getKeyLayout().getNumSegments();
  Value any = b.truth(false), zero = b.index(0), one = b.index(1);
  Location loc = op.getLoc();
  auto loop = scf::ForOp::create(
      b, loc, zero, b.index(numA * numB), one, any,
      [&](OpBuilder &inside, Location, Value pair, ValueRange found) {
        Emit e{inside, loc};
        Value divisor = e.index(numB);
        Value a = arith::DivUIOp::create(inside, loc, pair, divisor);
        Value flag = memref::LoadOp::create(inside, loc, pairs,
                                            ValueRange{op.getQueryOwner(),
                                                       op.getKeyOwner(), a,
                                                       e.mod(pair, numB)});
        scf::YieldOp::create(inside, loc, e.either(found.front(), flag));
      });
  b.when(loop.getResult(0), body);
}

void tiling::ofSegments(
    TileBuilder &builder, const OwnedSegments &of,
    llvm::function_ref<void(Value first, Value count)> body) {
  Value first = builder.index(0);
  for (int64_t s = 0; s < of.layout.getNumSegments(); ++s) {
    auto segment =
        builder.make<ring::SegmentOp>(s, of.layout, of.owner, of.extent);
    Value count = segment.getCount();
    Value isFlagged =
        builder.compare(arith::CmpIPredicate::ne, count, builder.index(0));
    if (of.flags)
      isFlagged = builder.both(
          isFlagged,
          builder.load(of.flags, ring::segmentIndices(
                                     builder, builder.getLoc(), of.flags,
                                     of.owner, of.turn, builder.index(s))));
    builder.when(isFlagged, [&] { body(first, count); });
    first = builder.add(first, count);
  }
}

//===----------------------------------------------------------------------===//
// All steps
//===----------------------------------------------------------------------===//

/// What regions are told of batches and heads is counted from the offsets,
/// which they capture; kernels know those of their tensors only.
static void captureOffsets(ring::AttendLikeOpInterface op) {
  OperandRange offsets = op.getOffsetsMutable();
  if (offsets.empty())
    return;
  Value batch = offsets[0], head = offsets[2];
  // Regions that share captures, and the arguments that are counted.
  using Counted = ArrayRef<std::pair<Region *, unsigned>>;
  auto countFrom = [&](Value first, MutableOperandRange captures,
                       Counted counted) {
    SmallVector<BlockArgument> locals;
    for (auto [region, number] : counted)
      if (!region->empty())
        locals.push_back(region->getArgument(number));
    if (llvm::all_of(locals, [](Value local) { return local.use_empty(); }))
      return;
    captures.append(first);
    llvm::SmallDenseMap<Block *, Value> offsetIn;
    for (BlockArgument local : locals) {
      Block *block = local.getOwner();
      Value &offset = offsetIn[block];
      if (!offset)
        offset = block->addArgument(first.getType(), op.getLoc());
      if (local.use_empty())
        continue;
      auto builder = OpBuilder::atBlockBegin(block);
      auto global = arith::AddIOp::create(builder, op.getLoc(), local, offset);
      local.replaceAllUsesExcept(global, global);
    }
  };
  Region none, &mask = op.getMask(), &bounds = op.getBounds(),
               &score = op.getScore();
  auto backward = dyn_cast<ring::AttendGradOp>(op.getOperation());
  Region &gradient = backward ? backward.getGradient() : none;
  countFrom(batch, op.getMaskCapturesMutable(),
            {{&mask, 0}, {&bounds, 0}, {&bounds, 1}});
  countFrom(head, op.getMaskCapturesMutable(),
            {{&mask, 1}, {&bounds, 2}, {&bounds, 3}});
  countFrom(batch, op.getScoreCapturesMutable(), {{&score, 1}, {&gradient, 1}});
  countFrom(head, op.getScoreCapturesMutable(), {{&score, 2}, {&gradient, 2}});
}

LogicalResult Lowering::run() {
  SmallVector<Operation *> steps;
  WalkResult result = program.walk([&](ring::StepOpInterface op) {
    if (op->getNumResults() != 0) {
      op->emitOpError("works on tensors; run ring-bufferize first");
      return WalkResult::interrupt();
    }
    if (!isa<TileLoweringOpInterface>(op.getOperation())) {
      op->emitOpError("has no kernel: it does not implement "
                      "TileLoweringOpInterface");
      return WalkResult::interrupt();
    }
    if (options.warps && failed(verifyStaged(op)))
      return WalkResult::interrupt();
    steps.push_back(op);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  program.walk([&](ring::TransferOpInterface start) {
    if (start.getRoute() == ring::Route::ToHeads)
      clearRoom(start);
  });
  for (Operation *op : steps)
    if (auto attend = dyn_cast<ring::AttendLikeOpInterface>(op))
      captureOffsets(attend);
  findTables(steps);
  for (Operation *op : steps)
    cast<TileLoweringOpInterface>(op).lowerToTile(*this);
  return success();
}

namespace {
template <typename OpT>
struct Lowered : TileLoweringOpInterface::ExternalModel<Lowered<OpT>, OpT> {
  void lowerToTile(Operation *op, Lowering &lowering) const {
    lowering.lower(cast<OpT>(op));
  }
};
} // namespace

template <typename... Ops>
static void attach(MLIRContext *context) {
  (Ops::template attachInterface<Lowered<Ops>>(*context), ...);
}

void burst::registerRingTileLowering(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ring::RingDialect *) {
    attach<ring::InitOp, ring::AttendOp, ring::MergeOp, ring::FinalizeOp,
           ring::ScoresOp, ring::ScoreOp, ring::SoftmaxOp, ring::WeighOp,
           ring::ProbabilitiesOp, ring::WeighGradOp, ring::ScoreGradOp,
           ring::ZeroOp, ring::DeltaOp, ring::AttendGradOp, ring::AddOp,
           ring::RoundOp>(context);
  });
}
