//===- LowerToTile.cpp - kernels over tiles, and their launches -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"
#include "passes/Tile/AttendKernel.h"
#include "passes/Tile/CtaGradient.h"
#include "passes/Tile/GradientKernel.h"
#include "passes/Tile/GradientOperands.h"
#include "passes/Tile/ScoreKernels.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace burst {
#define GEN_PASS_DEF_LOWERTOTILEPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

namespace {

/// Emits what is done to a row of a table: all its elements along the last
/// dimension, by where the row lies in the others.
using RowBody =
    llvm::function_ref<void(TileBuilder &, ValueRange row, ValueRange args)>;

/// The packed keys and values of all slices of an attend, and of the values of
/// each tile, whether all are finite.
struct PackedSlices {
  Value keys, values, finite;
};

/// Lowers the ops of one program.
class Lowering {
public:
  Lowering(func::FuncOp program, const LowerToTilePassOptions &options)
      : program(program), options(options) {}

  LogicalResult run();

private:
  /// Gives the kernel.
  func::FuncOp launch(TileBuilder &builder, StringRef name, Value tasks,
                      Value order, const Operands &operands, Body body,
                      int64_t warps);
  void launch(TileBuilder &builder, StringRef name, Value tasks, Value order,
              const Operands &operands, Body body) {
    launch(builder, name, tasks, order, operands, body, options.warps);
  }

  Shape shapeOf(Value state);
  Shape rowShapeOf(Value state);
  /// Whether products are of pairs, of these operands and others of their type.
  bool arePairs(Value operand) const {
    return options.pairs && options.localTiling &&
           cast<MemRefType>(operand.getType()).getElementType().isBF16();
  }
  LogicalResult verifyStaged(Operation *op);
  void attend(TileBuilder &builder, ring::AttendOp op);
  void attendStaged(TileBuilder &builder, ring::AttendOp op, Shape shape,
                    const Schedule &schedule);
  void attendTiled(TileBuilder &builder, ring::AttendOp op, Shape shape,
                   const Schedule &schedule);
  PackedSlices pack(TileBuilder &builder, ring::AttendOp op, const Shape &shape,
                    const Schedule &schedule);
  void attendGrad(TileBuilder &builder, ring::AttendGradOp op);
  void attendGradStaged(TileBuilder &builder, ring::AttendGradOp op,
                        const CtaShape &cta, ArrayRef<Sums> kernels);
  void attendGradTiled(TileBuilder &builder, ring::AttendGradOp op);
  template <typename OpT>
  void ofSegments(TileBuilder &builder, OpT op,
                  llvm::function_ref<void(Value first, Value count)> body);
  void findAlone(ArrayRef<Operation *> steps);
  void lower(ring::InitOp op);
  void lower(ring::AttendOp op);
  void lower(ring::MergeOp op);
  void lower(ring::FinalizeOp op);
  template <typename OpT>
  void lowerStored(OpT op, Value stored,
                   void (*lower)(TileBuilder &, OpT, const Shape &, Launcher));
  void lower(ring::ScoresOp op);
  void lower(ring::ScoreOp op);
  void lower(ring::SoftmaxOp op);
  void lower(ring::WeighOp op);
  void lower(ring::ZeroOp op);
  void lower(ring::DeltaOp op);
  void lower(ring::AttendGradOp op);
  void lower(ring::AddOp op);
  void lower(ring::RoundOp op);
  void findTables(ArrayRef<Operation *> steps);
  void makeCopies(Value gradient, ArrayRef<ring::AttendGradOp> ops,
                  int64_t capture);
  void launchRows(TileBuilder &builder, StringRef name, Value table,
                  const Operands &operands, RowBody body);
  void launchZeros(TileBuilder &builder, Value table);

  /// The gradients of captured tables that attends add to: what their tasks add
  /// to, beside the gradient; null where that alone will do.
  llvm::MapVector<Value, Value> tables;
  /// Attends that are all of their softmax, and what turns that to results; the
  /// steps that they take over.
  llvm::DenseMap<Operation *, ring::FinalizeOp> alone;
  llvm::SmallPtrSet<Operation *, 2> taken;
  func::FuncOp program;
  const LowerToTilePassOptions &options;
  SmallVector<func::FuncOp> kernels;
};

} // namespace

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

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
      kernel->setAttr(cuda::warpsAttr, inside.getI64IntegerAttr(warps));
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
  return kernel;
}

Shape Lowering::shapeOf(Value state) {
  auto type =
      cast<FloatType>(cast<MemRefType>(state.getType()).getElementType());
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

/// What an attend takes over: the one init in front of it and the one finalize
/// behind it, between which nobody else sees their state. Null where that is
/// not so.
static std::pair<ring::InitOp, ring::FinalizeOp> endsOf(ring::AttendOp attend) {
  ring::InitOp init;
  ring::FinalizeOp finalize;
  for (Value part : {attend.getO(), attend.getM(), attend.getL()})
    for (Operation *user : part.getUsers()) {
      if (user == attend || isa<memref::DeallocOp>(user))
        continue;
      if (user->getBlock() != attend->getBlock())
        return {};
      bool isKnown = user == init || user == finalize;
      if (auto first = dyn_cast<ring::InitOp>(user); first && !init)
        init = first;
      else if (auto last = dyn_cast<ring::FinalizeOp>(user); last && !finalize)
        finalize = last;
      else if (!isKnown)
        return {};
    }
  if (!init || !finalize || !init->isBeforeInBlock(attend) ||
      !attend->isBeforeInBlock(finalize))
    return {};
  return {init, finalize};
}

/// Whether results may be written by an attend, ahead of their time: they are
/// there, and not used in between.
static bool mayGiveResults(ring::AttendOp attend, ring::FinalizeOp finalize) {
  Block *block = attend->getBlock();
  return llvm::all_of(finalize.getInto(), [&](Value into) {
    Operation *made = into.getDefiningOp();
    bool isMade =
        !made || made->getBlock() != block || made->isBeforeInBlock(attend);
    return isMade && llvm::none_of(into.getUsers(), [&](Operation *user) {
             Operation *at = block->findAncestorOpInBlock(*user);
             return at && attend->isBeforeInBlock(at) &&
                    at->isBeforeInBlock(finalize);
           });
  });
}

/// A state that begins and ends with one attend need not pass through memory:
/// the kernel of the attend gives the results.
void Lowering::findAlone(ArrayRef<Operation *> steps) {
  if (!options.localTiling || options.warps)
    return;
  for (Operation *step : steps) {
    auto attend = dyn_cast<ring::AttendOp>(step);
    if (!attend)
      continue;
    auto [init, finalize] = endsOf(attend);
    if (!init || !mayGiveResults(attend, finalize))
      continue;
    alone[attend] = finalize;
    taken.insert({init, finalize});
  }
}

void Lowering::lower(ring::InitOp op) {
  if (taken.contains(op))
    return op.erase();
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
  if (taken.contains(op))
    return op.erase();
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

/// Code for each segment of what the op works on, where it is flagged and not
/// empty: its first position in the shard, and how many it has.
template <typename OpT>
void Lowering::ofSegments(
    TileBuilder &builder, OpT op,
    llvm::function_ref<void(Value first, Value count)> body) {
  Value first = builder.index(0);
  for (int64_t s = 0; s < op.getLayout().getNumSegments(); ++s) {
    auto segment = builder.make<ring::SegmentOp>(s, op.getLayout(),
                                                 op.getOwner(), op.getExtent());
    Value count = segment.getCount();
    Value isFlagged =
        builder.compare(arith::CmpIPredicate::ne, count, builder.index(0));
    if (!op.getSegments().empty())
      isFlagged = builder.both(isFlagged, op.getSegments()[s]);
    builder.when(isFlagged, [&] { body(first, count); });
    first = builder.add(first, count);
  }
}

/// A launch per segment.
void Lowering::lower(ring::MergeOp op) {
  TileBuilder builder(op.getLoc(), op);
  Shape shape = rowShapeOf(op.getO1());
  int64_t columns = shape.padded(dimOf(op.getO1()));
  ofSegments(builder, op, [&](Value first, Value count) {
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

/// Launches the kernel of a GPU, which copies its tiles to shared memory
/// itself.
void Lowering::attendStaged(TileBuilder &b, ring::AttendOp op, Shape shape,
                            const Schedule &schedule) {
  shape.operand = cast<FloatType>(
      cast<MemRefType>(op.getQuery().getType()).getElementType());
  Operands operands;
  operands.reads = {op.getQuery()};
  llvm::append_range(operands.reads, op.getKeys());
  llvm::append_range(operands.reads, op.getValues());
  operands.reads.append(
      {schedule.queries, schedule.keys, schedule.list, schedule.counts});
  llvm::append_range(operands.reads, ofType(op.getMaskCaptures(), true));
  llvm::append_range(operands.reads, ofType(op.getScoreCaptures(), true));
  operands.writes = {op.getO(), op.getM(), op.getL()};
  operands.scalars = {op.getQueryExtent(), op.getKeyExtent()};
  llvm::append_range(operands.scalars,
                     ArrayRef(schedule.firstKeys).drop_front().drop_back());
  llvm::append_range(operands.scalars, ofType(op.getMaskCaptures(), false));
  llvm::append_range(operands.scalars, ofType(op.getScoreCaptures(), false));
  launch(b, "attend", schedule.tasks, schedule.order, operands,
         [&](TileBuilder &inside, Value task, ValueRange args) {
           AttendKernel(inside, op, shape, schedule, args).build(task);
         });
}

/// Launches the kernels of a GPU that list the same tiles.
void Lowering::attendGradStaged(TileBuilder &b, ring::AttendGradOp op,
                                const CtaShape &cta, ArrayRef<Sums> kernels) {
  Shape shape = shapeOf(op.getGrads()[0]);
  shape.rows = cta.rows;
  shape.columns = cta.columns;
  shape.warps = cta.warps;
  shape.operand = cast<FloatType>(
      cast<MemRefType>(op.getQuery().getType()).getElementType());
  // Schedules have queries by rows.
  bool ofKeys = kernels.front() != Sums::OfQueries;
  Shape tiles = shape;
  if (ofKeys)
    std::swap(tiles.rows, tiles.columns);
  Schedule schedule(b, Question::of(op), tiles,
                    ofKeys ? Schedule::Lists::OfKeys
                           : Schedule::Lists::OfQueries);
  schedule.build([&](StringRef name, Value tasks, Value order,
                     const Operands &operands, Body body) {
    launch(b, name, tasks, order, operands, body, /*warps=*/0);
  });
  auto headsOf = [](Value shard) {
    return cast<MemRefType>(shard.getType()).getDimSize(2);
  };
  schedule.sort(ofKeys ? headsOf(op.getQuery()) / headsOf(op.getKey()) : 1);
  for (Sums sums : kernels) {
    StringRef name = sums == Sums::OfQueries  ? "attend_grad_queries"
                     : sums == Sums::OfValues ? "attend_grad_values"
                                              : "attend_grad_keys";
    launch(
        b, name, schedule.tasks, schedule.order,
        CtaGradient::operands(op, schedule, sums),
        [&](TileBuilder &inside, Value task, ValueRange args) {
          CtaGradient(inside, op, shape, schedule, args, sums).build(task);
        },
        cta.warps)
        ->setAttr(cuda::gradientAttr,
                  b.getStringAttr(ofKeys ? "keys" : "queries"));
  }
  schedule.release();
}

/// Memory for all pairs of tiles of a slice.
static Value allocateTiles(TileBuilder &b, Value query,
                           const Schedule &schedule, const Shape &shape) {
  int64_t heads = cast<MemRefType>(query.getType()).getDimSize(2);
  return b.allocate(
      shape.tiles(heads),
      {b.dim(query, 0), b.dim(schedule.queries, 0), b.dim(schedule.keys, 0)},
      tile::Memory::Packing);
}

/// Emits `body` for where a rank computes any pair of segments: in the hops
/// where it computes none, nothing is classified, packed or launched.
static void wherePairs(TileBuilder &b, ValueRange pairs,
                       llvm::function_ref<void()> body) {
  if (pairs.empty())
    return body();
  Value any = pairs.front();
  for (Value pair : pairs.drop_front())
    any = b.createOrFold<arith::OrIOp>(any, pair);
  b.when(any, body);
}

void Lowering::lower(ring::AttendOp op) {
  TileBuilder b(op.getLoc(), op);
  // Where the kernel finalizes its state, it has results to write in any case.
  if (alone.contains(op))
    attend(b, op);
  else
    wherePairs(b, op.getPairs(), [&] { attend(b, op); });
  op.erase();
}

void Lowering::attend(TileBuilder &b, ring::AttendOp op) {
  Shape shape = shapeOf(op.getO());
  shape.pairs = arePairs(op.getQuery());
  if (options.localTiling && !shape.isStaged())
    shape.strip = options.strip;
  Schedule schedule(b, Question::of(op), shape, Schedule::Lists::OfQueries);
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
      allocate(shape.packedDims(keyHeads, dimOf(op.getO()), shape.columns),
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
  operands.writes = {op.getO(), op.getM(), op.getL()};
  // The state's memory is there as planned, for any target, but not touched.
  ring::FinalizeOp finalize = alone.lookup(op);
  if (finalize)
    llvm::append_range(operands.writes, finalize.getInto());
  operands.scalars = {op.getQueryExtent(), op.getKeyExtent()};
  llvm::append_range(operands.scalars, ofType(op.getMaskCaptures(), false));
  llvm::append_range(operands.scalars, ofType(op.getScoreCaptures(), false));
  auto attend = [&](StringRef name, AttendPart part) {
    launch(b, name, schedule.tasks, schedule.order, operands,
           [&](TileBuilder &inside, Value task, ValueRange args) {
             AttendKernel(inside, op, shape, schedule, args, part,
                          finalize != nullptr)
                 .build(task);
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

//===----------------------------------------------------------------------===//
// Stored scores
//===----------------------------------------------------------------------===//

template <typename OpT>
void Lowering::lowerStored(OpT op, Value stored,
                           void (*lower)(TileBuilder &, OpT, const Shape &,
                                         Launcher)) {
  TileBuilder b(op.getLoc(), op);
  lower(b, op, shapeOf(stored),
        [&](StringRef name, Value tasks, Value order, const Operands &operands,
            Body body) { launch(b, name, tasks, order, operands, body); });
  op.erase();
}

void Lowering::lower(ring::ScoresOp op) {
  lowerStored(op, op.getInto(), lowerScores);
}

void Lowering::lower(ring::ScoreOp op) {
  lowerStored(op, op.getScores(), lowerScore);
}

void Lowering::lower(ring::SoftmaxOp op) {
  lowerStored(op, op.getScores(), lowerSoftmax);
}

void Lowering::lower(ring::WeighOp op) {
  lowerStored(op, op.getWeights(), lowerWeigh);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Whether a gradient may be that of a shard (batch, sequence, heads, dim), and
/// not that of a table.
static bool hasHeads(Value gradient) {
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
  ofSegments(builder, op, [&](Value first, Value count) {
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

//===----------------------------------------------------------------------===//
// Gradients of captured tables
//===----------------------------------------------------------------------===//

/// A task per row of `table`.
void Lowering::launchRows(TileBuilder &builder, StringRef name, Value table,
                          const Operands &operands, RowBody body) {
  int64_t last = cast<MemRefType>(table.getType()).getRank() - 1;
  Value rows = builder.index(1);
  for (int64_t d = 0; d < last; ++d)
    rows = builder.mul(rows, builder.dim(table, d));
  // What is written comes last, and is the table.
  launch(builder, name, rows, {}, operands,
         [&](TileBuilder &b, Value task, ValueRange args) {
           SmallVector<Value> row(last);
           for (int64_t d = last; d-- > 0;) {
             Value size = b.dim(args.back(), d);
             row[d] = b.rem(task, size);
             task = b.div(task, size);
           }
           body(b, row, args);
         });
}

void Lowering::launchZeros(TileBuilder &builder, Value table) {
  launchRows(builder, "zero_table", table, {{}, {table}, {}},
             [](TileBuilder &b, ValueRange row, ValueRange args) {
               auto type = cast<MemRefType>(args[0].getType());
               Value zero = b.make<arith::ConstantOp>(
                   b.getFloatAttr(type.getElementType(), 0.0));
               b.loop(b.dim(args[0], type.getRank() - 1), [&](Value column) {
                 SmallVector<Value> at(row);
                 at.push_back(column);
                 b.store(zero, args[0], at);
               });
             });
}

/// A shard of the same batch in front of `op`: a loop in it carries shards of
/// one batch.
static Value inFrontOf(Operation *op, Value shard) {
  while (op->isAncestor(shard.getParentBlock()->getParentOp())) {
    auto carried = cast<BlockArgument>(shard);
    auto loop = cast<scf::ForOp>(carried.getOwner()->getParentOp());
    shard = loop.getTiedLoopInit(carried)->get();
  }
  return shard;
}

/// Makes what tasks of `ops` add to beside `gradient`, from the first of them
/// to the last, behind which all is added up.
void Lowering::makeCopies(Value gradient, ArrayRef<ring::AttendGradOp> ops,
                          int64_t capture) {
  Block *block = gradient.getParentBlock();
  Sharing sharing;
  Operation *first = nullptr, *last = nullptr;
  for (ring::AttendGradOp op : ops) {
    Sharing here = sharingOf(op.getGradient(), capture);
    sharing = {sharing.batches || here.batches, sharing.heads || here.heads};
    Operation *ancestor = block->findAncestorOpInBlock(*op);
    if (!first || ancestor->isBeforeInBlock(first))
      first = ancestor;
    if (!last || last->isBeforeInBlock(ancestor))
      last = ancestor;
  }
  ring::AttendGradOp op = ops.front();
  TileBuilder b(op.getLoc(), first);
  Value copies = b.index(1);
  if (sharing.batches)
    copies = b.dim(inFrontOf(first, op.getKey()), 0);
  if (sharing.heads)
    copies = b.createOrFold<arith::MulIOp>(copies, b.dim(op.getKey(), 2));
  auto type = cast<MemRefType>(gradient.getType());
  // Of a table without elements memref.subview has no views.
  if (getConstantIntValue(copies) == 1 ||
      llvm::is_contained(type.getShape(), 0))
    return;
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  llvm::append_range(shape, type.getShape());
  SmallVector<Value> sizes{b.sub(copies, b.index(1))};
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (type.isDynamicDim(d))
      sizes.push_back(b.dim(gradient, d));
  Value others = b.allocate(MemRefType::get(shape, type.getElementType()),
                            sizes, tile::Memory::Packing);
  tables[gradient] = others;
  launchZeros(b, others);
  b.setInsertionPointAfter(last);
  launchRows(b, "add_tables", gradient, {{others}, {gradient}, {}},
             [](TileBuilder &b, ValueRange row, ValueRange args) {
               int64_t rank = static_cast<int64_t>(row.size()) + 1;
               b.loop(b.dim(args[0], 0), [&](Value copy) {
                 b.loop(b.dim(args[1], rank - 1), [&](Value column) {
                   SmallVector<Value> at(row);
                   at.push_back(column);
                   SmallVector<Value> from{copy};
                   llvm::append_range(from, at);
                   Value sum = b.make<arith::AddFOp>(b.load(args[1], at),
                                                     b.load(args[0], from));
                   b.store(sum, args[1], at);
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

void Lowering::lower(ring::AttendGradOp op) {
  TileBuilder b(op.getLoc(), op);
  wherePairs(b, op.getPairs(), [&] { attendGrad(b, op); });
  op.erase();
}

void Lowering::attendGrad(TileBuilder &b, ring::AttendGradOp op) {
  if (!options.warps)
    return attendGradTiled(b, op);
  int64_t dim = dimOf(op.getQuery()), valueDim = dimOf(op.getValue());
  auto given = [&](ArrayRef<int64_t> sizes, CtaShape known) {
    if (!sizes.empty())
      return CtaShape{sizes[0], sizes[1], sizes[2]};
    known.columns = std::min<int64_t>(known.columns, options.columns);
    return known;
  };
  attendGradStaged(b, op,
                   given(options.queryGradients, queryCtaOf(dim, valueDim)),
                   Sums::OfQueries);
  attendGradStaged(b, op, given(options.keyGradients, keyCtaOf(dim, valueDim)),
                   keySumsOf(dim, valueDim));
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
  Schedule schedule(b, Question::of(op), shape, Schedule::Lists::OfKeys);
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

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// Whether a GPU's kernel can do an op.
LogicalResult Lowering::verifyStaged(Operation *op) {
  if (isa<ring::ScoresOp, ring::ScoreOp, ring::SoftmaxOp, ring::WeighOp>(op))
    return op->emitOpError("keeps scores in memory, for which there is no "
                           "kernel for GPUs");
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (type && type.getElementType().isF64())
      return op->emitOpError(
                 "has a kernel for GPUs in f32, bf16 and f16, got: ")
             << type;
  }
  if (auto zero = dyn_cast<ring::ZeroOp>(op);
      zero && !hasHeads(zero.getInto()) &&
      llvm::none_of(zero.getInto().getUsers(),
                    llvm::IsaPred<ring::AttendGradOp>))
    return op->emitOpError("has no kernel for GPUs for gradients of captured "
                           "tables, got: ")
           << zero.getInto().getType();
  Value query, value;
  SmallVector<Value, 2> extents;
  if (auto attend = dyn_cast<ring::AttendOp>(op)) {
    query = attend.getQuery();
    value = attend.getValues().front();
    extents = {attend.getQueryExtent(), attend.getKeyExtent()};
  } else if (auto gradient = dyn_cast<ring::AttendGradOp>(op)) {
    query = gradient.getQuery();
    value = gradient.getValue();
    extents = {gradient.getQueryExtent(), gradient.getKeyExtent()};
    if (!gradient.getCaptures().empty())
      return op->emitOpError(
          "has no kernel for GPUs that adds to gradients of captured tables: "
          "their order would not be one; leave `gradients` out, or run it on "
          "processors");
  } else {
    return success();
  }
  for (Value extent : extents)
    if (std::optional<int64_t> size = getConstantIntValue(extent);
        size && *size > cuda::largestExtent)
      return op->emitOpError("has a kernel for GPUs of sequences of at most ")
             << cuda::largestExtent << " positions, got: " << *size;
  auto type = cast<MemRefType>(query.getType());
  if (type.getElementTypeBitWidth() != 16)
    return op->emitOpError("has a kernel for GPUs of queries, keys and values "
                           "in bf16 or f16, got: ")
           << type;
  for (int64_t dim : {dimOf(query), dimOf(value)})
    if (dim % 8 != 0 || dim > 256)
      return op->emitOpError(
                 "has a kernel for GPUs of head dimensions that are "
                 "multiples of 8, at most 256, got: ")
             << dim;
  return success();
}

LogicalResult Lowering::run() {
  SmallVector<Operation *> steps;
  WalkResult result = program.walk([&](Operation *op) {
    if (isa<ring::InitOp, ring::AttendOp, ring::MergeOp, ring::FinalizeOp,
            ring::ScoresOp, ring::ScoreOp, ring::SoftmaxOp, ring::WeighOp,
            ring::ZeroOp, ring::DeltaOp, ring::AttendGradOp, ring::AddOp,
            ring::RoundOp>(op)) {
      if (op->getNumResults() != 0) {
        op->emitOpError("works on tensors; run ring-bufferize first");
        return WalkResult::interrupt();
      }
      if (options.warps && failed(verifyStaged(op)))
        return WalkResult::interrupt();
      steps.push_back(op);
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  findTables(steps);
  findAlone(steps);
  for (Operation *op : steps)
    llvm::TypeSwitch<Operation *>(op)
        .Case<ring::InitOp, ring::AttendOp, ring::MergeOp, ring::FinalizeOp,
              ring::ScoresOp, ring::ScoreOp, ring::SoftmaxOp, ring::WeighOp,
              ring::ZeroOp, ring::DeltaOp, ring::AttendGradOp, ring::AddOp,
              ring::RoundOp>([&](auto op) { lower(op); });
  return success();
}

namespace {
struct LowerToTile : burst::impl::LowerToTilePassBase<LowerToTile> {
  using LowerToTilePassBase::LowerToTilePassBase;

  LogicalResult verifyCta(CtaShape cta) {
    if (cta.warps >= 1 && cta.warps <= 32 && cta.rows > 0 &&
        cta.rows % (16 * cta.warps) == 0 && cta.columns > 0 &&
        cta.columns % 16 == 0)
      return success();
    return getOperation().emitError(
               "a CTA has up to 32 warps, 16 rows for each or a "
               "multiple, and columns in sixteens, got: ")
           << cta.warps << " warps, " << cta.rows << " rows, " << cta.columns
           << " columns";
  }

  void runOnOperation() override {
    constexpr int64_t most = 1 << 16;
    if (rows < 1 || columns < 1 || panelBytes < 8 || panelBytes % 8 != 0 ||
        keyPanelBytes < 0 || keyPanelBytes % 8 != 0 || rows > most ||
        columns > most || panelBytes > most || keyPanelBytes > most) {
      getOperation().emitError("tiles need rows and columns, and panels a "
                               "multiple of 8 bytes, none more than 65536, "
                               "got: ")
          << rows.getValue() << ", " << columns.getValue() << ", "
          << panelBytes.getValue() << ", " << keyPanelBytes.getValue();
      return signalPassFailure();
    }
    if (strip < 1) {
      getOperation().emitError("strips need rows, got: ") << strip.getValue();
      return signalPassFailure();
    }
    if (warps != 0 && failed(verifyCta({rows, columns, warps})))
      return signalPassFailure();
    if (warps != 0 && !localTiling) {
      getOperation().emitError("a CTA keeps no more than tiles of "
                               "scores: local-tiling=false is for CPUs");
      return signalPassFailure();
    }
    for (ArrayRef<int64_t> sizes :
         {ArrayRef<int64_t>(queryGradients), ArrayRef<int64_t>(keyGradients)}) {
      if (!sizes.empty() && sizes.size() != 3) {
        getOperation().emitError("query-gradients and key-gradients are rows, "
                                 "columns and warps, got: ")
            << sizes.size() << " numbers";
        return signalPassFailure();
      }
      if (!sizes.empty() && failed(verifyCta({sizes[0], sizes[1], sizes[2]})))
        return signalPassFailure();
    }
    LowerToTilePassOptions options;
    options.rows = rows;
    options.columns = columns;
    options.panelBytes = panelBytes;
    options.keyPanelBytes = keyPanelBytes;
    options.strip = strip;
    options.pairs = pairs;
    options.warps = warps;
    options.localTiling = localTiling;
    options.queryGradients.assign(queryGradients.begin(), queryGradients.end());
    options.keyGradients.assign(keyGradients.begin(), keyGradients.end());
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(ring::gridAttr))
        programs.push_back(function);
    for (func::FuncOp program : programs) {
      LowerToTilePassOptions own = options;
      if (auto shape =
              program->getAttrOfType<DenseI64ArrayAttr>(tile::shapeAttr)) {
        own.rows = shape[0];
        own.columns = shape[1];
        if (warps != 0 && failed(verifyCta({own.rows, own.columns, warps})))
          return signalPassFailure();
      }
      if (failed(Lowering(program, own).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
