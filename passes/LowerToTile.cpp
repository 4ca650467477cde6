//===- LowerToTile.cpp - kernels over tiles, and their launches -----------===//
#include "passes/Passes.h"

#include "dialect/Tile/Build.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

#include <numbers>

namespace burst {
#define GEN_PASS_DEF_LOWERTOTILEPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {

/// Sizes of tiles for one type of state.
struct Shape {
  FloatType state;
  int64_t rows, columns, panel;

  int64_t padded(int64_t size) const { return llvm::alignTo(size, panel); }
  MemRefType tile(int64_t columns) const {
    return MemRefType::get({rows, columns}, state);
  }
  MemRefType rowVector() const { return MemRefType::get({rows}, state); }
  MemRefType positions(int64_t count) const {
    return MemRefType::get({count}, IndexType::get(state.getContext()));
  }
};

/// Columns of a table of tiles: where a tile lies in its shard, and the
/// positions it holds.
struct Field {
  enum Name : int64_t {
    Begin, ///< of its segment, as are step and block
    Step,
    Block,
    First,  ///< its first position's number in the segment
    Count,  ///< its positions
    Row,    ///< its first row in the shard
    Pair,   ///< what it adds to the number of a pair's flag
    Lowest, ///< its first position
    Behind, ///< one past its last position
    NumFields
  };
};

/// Emits schedules and kernels.
class TileBuilder : public tile::LoopBuilder {
public:
  using LoopBuilder::LoopBuilder;

  Value field(Value table, Value tile, Field::Name field) {
    return load(table, {tile, index(field)});
  }
  Value allocate(MemRefType type, ValueRange sizes, tile::Memory memory) {
    return make<tile::AllocateOp>(type, stringify(memory), sizes);
  }

  /// `count` rows of batch b and head h from `row` on: of a shard (batch,
  /// sequence, heads, dim) two dimensions, of m, l and lse (batch, heads,
  /// sequence) one.
  Value rows(Value buffer, Value b, Value h, Value row, Value count) {
    auto type = cast<MemRefType>(buffer.getType());
    OpFoldResult one = getIndexAttr(1), zero = getIndexAttr(0);
    SmallVector<OpFoldResult> offsets, sizes, strides(type.getRank(), one);
    SmallVector<int64_t> kept{2};
    if (type.getRank() == 4) {
      offsets = {b, row, h, zero};
      sizes = {one, count, one, getIndexAttr(type.getDimSize(3))};
      kept = {1, 3};
    } else {
      offsets = {b, h, row};
      sizes = {one, one, count};
    }
    // Which dimensions are kept, shapes do not tell: a head may have one number.
    auto whole = cast<MemRefType>(
        memref::SubViewOp::inferResultType(type, offsets, sizes, strides));
    auto [steps, offset] = whole.getStridesAndOffset();
    SmallVector<int64_t> shape, keptSteps;
    for (int64_t dim : kept) {
      shape.push_back(whole.getDimSize(dim));
      keptSteps.push_back(steps[dim]);
    }
    auto view = MemRefType::get(
        shape, type.getElementType(),
        StridedLayoutAttr::get(getContext(), offset, keptSteps));
    return make<memref::SubViewOp>(view, buffer, offsets, sizes, strides);
  }

  /// The panels of a tile in packed memory (batch, heads, tiles, panels...).
  Value panels(Value packed, Value b, Value h, Value tile) {
    auto type = cast<MemRefType>(packed.getType());
    OpFoldResult one = getIndexAttr(1), zero = getIndexAttr(0);
    ArrayRef<int64_t> shape = type.getShape().take_back(3);
    SmallVector<OpFoldResult> offsets{b, h, tile, zero, zero, zero};
    SmallVector<OpFoldResult> sizes{one, one, one};
    for (int64_t size : shape)
      sizes.push_back(getIndexAttr(size));
    SmallVector<OpFoldResult> strides(6, one);
    MemRefType view = memref::SubViewOp::inferRankReducedResultType(
        shape, type, offsets, sizes, strides);
    return make<memref::SubViewOp>(view, packed, offsets, sizes, strides);
  }
};

/// The operands of a launch, in the order in which its kernel takes them.
struct Operands {
  SmallVector<Value> reads, writes, scalars;

  SmallVector<Type> types() const {
    SmallVector<Type> types;
    for (const auto &list : {reads, writes, scalars})
      for (Value value : list)
        types.push_back(value.getType());
    return types;
  }
};

/// Emits the body of a kernel: the number of the task, and its arguments in
/// place of the operands.
using Body =
    llvm::function_ref<void(TileBuilder &, Value task, ValueRange args)>;
/// Makes a kernel, or finds an equal one, and launches it.
using Launcher =
    llvm::function_ref<void(StringRef name, Value tasks, Value order,
                            const Operands &operands, Body body)>;

/// Lowers the ops of one program.
class Lowering {
public:
  Lowering(func::FuncOp program, const LowerToTilePassOptions &options)
      : program(program), options(options) {}

  LogicalResult run();

private:
  void launch(TileBuilder &builder, StringRef name, Value tasks, Value order,
              const Operands &operands, Body body);

  LogicalResult check(FloatType state, int64_t keyDim, int64_t valueDim);
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
  auto equal = llvm::find_if(kernels, [&](func::FuncOp other) {
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

/// The tile of rows of a shard with `count` rows that a task stands for.
namespace {
struct RowTask {
  Value b, h, row, count;
};
} // namespace

/// Tasks over (batch, head, tile of rows) of a state.
static Value numRowTasks(TileBuilder &builder, Value o, const Shape &shape) {
  Value tiles = builder.ceilDiv(builder.dim(o, 1), shape.rows);
  return builder.mul(builder.mul(builder.dim(o, 0), builder.dim(o, 2)), tiles);
}

static RowTask decodeRowTask(TileBuilder &builder, Value task, Value o,
                             const Shape &shape) {
  Value rows = builder.dim(o, 1), heads = builder.dim(o, 2);
  Value tiles = builder.ceilDiv(rows, shape.rows);
  Value row = builder.mul(builder.rem(task, tiles), builder.index(shape.rows));
  Value head = builder.div(task, tiles);
  return {builder.div(head, heads), builder.rem(head, heads), row,
          builder.min(builder.sub(rows, row), builder.index(shape.rows))};
}

Shape Lowering::shapeOf(Value state) {
  auto type =
      cast<FloatType>(cast<MemRefType>(state.getType()).getElementType());
  int64_t panel = options.panelBytes * 8 / type.getWidth();
  return {type, options.rows,
          static_cast<int64_t>(llvm::alignTo(options.columns, panel)), panel};
}

static int64_t dimOf(Value shard) {
  return cast<MemRefType>(shard.getType()).getDimSize(3);
}

static constexpr double minusInfinity =
    -std::numeric_limits<double>::infinity();

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

/// Loads a block from `count` rows of memory.
static Value loadRows(TileBuilder &b, Value buffer, const RowTask &at,
                      MemRefType type, double factor = 1.0,
                      double padding = 0.0) {
  Value block = b.alloca(type);
  b.make<tile::LoadOp>(b.rows(buffer, at.b, at.h, at.row, at.count), block,
                       b.getF64FloatAttr(factor), b.getF64FloatAttr(padding));
  return block;
}

static void storeRows(TileBuilder &b, Value block, Value buffer,
                      const RowTask &at) {
  b.make<tile::StoreOp>(block, b.rows(buffer, at.b, at.h, at.row, at.count));
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

//===----------------------------------------------------------------------===//
// The schedule of an attend
//===----------------------------------------------------------------------===//

namespace {

/// Builds what stands in front of an attend's launches.
class Schedule {
public:
  Schedule(TileBuilder &builder, ring::AttendOp op, const Shape &shape)
      : b(builder), op(op), shape(shape) {}

  void build(Launcher launch);
  void release();

  Value queries, keys; ///< tables of tiles
  Value needed;        ///< of tiles of keys: 1 where any task needs it
  Value list;          ///< (batch, heads, query tiles, key tiles)
  Value counts;        ///< (batch, heads, query tiles, full and partial)
  Value order;         ///< of tasks (batch, heads, query tiles)
  Value tasks;
  SmallVector<Value> firstKeys;         ///< per slice, and the number of all
  bool byBatch = false, byHead = false; ///< what the list tells apart

private:
  Value numTiles(ring::LayoutAttr layout, Value owner, Value extent,
                 int64_t size);
  Value fill(Value table, Value first, ring::LayoutAttr layout, Value owner,
             Value extent, int64_t size, int64_t pair, int64_t pairStep);
  void classify(Launcher launch);
  void sort();
  std::pair<Value, Value> bounds(TileBuilder &b, ValueRange arguments);

  TileBuilder &b;
  ring::AttendOp op;
  Shape shape;
  Value flags; ///< of pairs of segments; null: all are computed
};

} // namespace

/// How many tiles of `size` positions the shard of `owner` has; a tile holds
/// positions of one segment.
Value Schedule::numTiles(ring::LayoutAttr layout, Value owner, Value extent,
                         int64_t size) {
  Value tiles = b.index(0);
  for (int64_t i = 0; i < layout.getNumSegments(); ++i) {
    auto segment = b.make<ring::SegmentOp>(i, layout, owner, extent);
    tiles = b.add(tiles, b.ceilDiv(segment.getCount(), size));
  }
  return tiles;
}

/// Writes the tiles of a shard from number `first` on; gives the next number.
Value Schedule::fill(Value table, Value first, ring::LayoutAttr layout,
                     Value owner, Value extent, int64_t size, int64_t pair,
                     int64_t pairStep) {
  Value row = b.index(0);
  for (int64_t i = 0; i < layout.getNumSegments(); ++i) {
    auto segment = b.make<ring::SegmentOp>(i, layout, owner, extent);
    Value count = segment.getCount(), tiles = b.ceilDiv(count, size);
    b.loop(tiles, [&](Value t) {
      Value x = b.mul(t, b.index(size));
      Value n = b.min(b.sub(count, x), b.index(size));
      auto position = [&](Value y) {
        Value jumps = b.mul(b.div(y, segment.getBlock()), segment.getStep());
        return b.add(segment.getBegin(),
                     b.add(jumps, b.rem(y, segment.getBlock())));
      };
      Value last = position(b.sub(b.add(x, n), b.index(1)));
      Value fields[Field::NumFields];
      fields[Field::Begin] = segment.getBegin();
      fields[Field::Step] = segment.getStep();
      fields[Field::Block] = segment.getBlock();
      fields[Field::First] = x;
      fields[Field::Count] = n;
      fields[Field::Row] = b.add(row, x);
      fields[Field::Pair] = b.index(pair + i * pairStep);
      fields[Field::Lowest] = position(x);
      fields[Field::Behind] = b.add(last, b.index(1));
      Value tile = b.add(first, t);
      for (auto [field, value] : llvm::enumerate(fields))
        b.store(value, table, {tile, b.index(field)});
    });
    first = b.add(first, tiles);
    row = b.add(row, count);
  }
  return first;
}

/// May any pair of the box be kept, must all be: the bounds of the mask at
/// `arguments`, its box, sizes and captures.
std::pair<Value, Value> Schedule::bounds(TileBuilder &b, ValueRange arguments) {
  if (op.getMask().empty())
    return {b.truth(true), b.truth(true)};
  if (op.getBounds().empty())
    return {b.truth(true), b.truth(false)};
  Block &block = op.getBounds().front();
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  for (Operation &inner : block.without_terminator()) {
    if (auto dim = dyn_cast<tensor::DimOp>(inner))
      mapping.map(dim.getResult(),
                  b.make<memref::DimOp>(mapping.lookup(dim.getSource()),
                                        mapping.lookup(dim.getIndex()))
                      .getResult());
    else
      b.clone(inner, mapping);
  }
  Operation *yield = block.getTerminator();
  return {mapping.lookup(yield->getOperand(0)),
          mapping.lookup(yield->getOperand(1))};
}

/// Launches a kernel that asks, for one tile of queries per task, the bounds
/// about every tile of keys, and lists them by class.
void Schedule::classify(Launcher launch) {
  Value batch = b.dim(op.getQuery(), 0), heads = b.dim(op.getQuery(), 2);
  Value numQueries = b.dim(queries, 0), numKeys = b.dim(keys, 0);
  Value one = b.index(1);
  Value classBatch = byBatch ? batch : one, classHeads = byHead ? heads : one;
  int64_t any = ShapedType::kDynamic;
  Type i32 = b.getI32Type();
  list = b.allocate(MemRefType::get({any, any, any, any}, i32),
                    {classBatch, classHeads, numQueries, numKeys},
                    tile::Memory::Schedule);
  counts =
      b.allocate(MemRefType::get({any, any, any, 2}, b.getIndexType()),
                 {classBatch, classHeads, numQueries}, tile::Memory::Schedule);
  needed =
      b.allocate(MemRefType::get({any}, i32), numKeys, tile::Memory::Schedule);
  Value no = b.make<arith::ConstantIntOp>(0, 32);
  b.loop(numKeys, [&](Value k) { b.store(no, needed, k); });
  Operands operands;
  operands.reads = {queries};
  if (flags)
    operands.reads.push_back(flags);
  operands.reads.push_back(keys);
  operands.writes = {needed, list, counts};
  operands.scalars = {batch, heads, op.getQueryExtent(), op.getKeyExtent()};
  for (Value capture : op.getMaskCaptures())
    (isa<MemRefType>(capture.getType()) ? operands.reads : operands.scalars)
        .push_back(capture);
  size_t numReads = operands.reads.size();
  Value rowTasks = b.mul(b.mul(classBatch, classHeads), numQueries);
  launch("classify", rowTasks, {}, operands,
         [&](TileBuilder &b, Value task, ValueRange args) {
           Value queries = args[0], flags = this->flags ? args[1] : Value();
           Value keys = args[this->flags ? 2 : 1];
           ValueRange writes = args.drop_front(numReads);
           Value needed = writes[0], list = writes[1], counts = writes[2];
           Value batch = writes[3], heads = writes[4];
           Value numQueries = b.dim(queries, 0), numKeys = b.dim(keys, 0);
           Value zero = b.index(0), one = b.index(1);
           Value q = b.rem(task, numQueries), head = b.div(task, numQueries);
           Value classHeads = byHead ? heads : one;
           Value cb = b.div(head, classHeads), ch = b.rem(head, classHeads);
           SmallVector<Value> tail{writes[5], writes[6]};
           size_t buffer = this->flags ? 3 : 2, scalar = 7;
           for (Value capture : op.getMaskCaptures())
             tail.push_back(isa<MemRefType>(capture.getType())
                                ? args[buffer++]
                                : writes[scalar++]);
           SmallVector<Value> box{byBatch ? cb : zero,
                                  byBatch ? b.add(cb, one) : batch,
                                  byHead ? ch : zero,
                                  byHead ? b.add(ch, one) : heads,
                                  b.field(queries, q, Field::Lowest),
                                  b.field(queries, q, Field::Behind)};
           auto step = [&](Value k, ValueRange found) {
             SmallVector<Value> arguments(box);
             arguments.append({b.field(keys, k, Field::Lowest),
                               b.field(keys, k, Field::Behind)});
             llvm::append_range(arguments, tail);
             auto [may, must] = bounds(b, arguments);
             Value kept = may;
             if (flags)
               kept = b.both(
                   kept, b.load(flags, b.add(b.field(queries, q, Field::Pair),
                                             b.field(keys, k, Field::Pair))));
             Value whole = b.compare(arith::CmpIPredicate::eq,
                                     b.field(keys, k, Field::Count),
                                     b.index(shape.columns));
             Value full = b.both(kept, b.both(must, whole));
             Value partial = b.make<arith::XOrIOp>(kept, full);
             b.when(kept, [&] {
               Value behind = b.sub(b.sub(numKeys, one), found[1]);
               Value place = b.select(full, found[0], behind);
               b.store(b.make<arith::IndexCastOp>(b.getI32Type(), k), list,
                       {cb, ch, q, place});
               // Other tasks write it as well.
               b.make<memref::AtomicRMWOp>(arith::AtomicRMWKind::maxu,
                                           b.make<arith::ConstantIntOp>(1, 32),
                                           needed, ValueRange{k});
             });
             auto asIndex = [&](Value truth) {
               return b.make<arith::IndexCastUIOp>(b.getIndexType(), truth);
             };
             return SmallVector<Value>{b.add(found[0], asIndex(full)),
                                       b.add(found[1], asIndex(partial))};
           };
           auto loop = b.loop(numKeys, {zero, zero}, step);
           b.store(loop.getResult(0), counts, {cb, ch, q, zero});
           b.store(loop.getResult(1), counts, {cb, ch, q, one});
         });
}

/// Orders the tasks by their work: the number of tiles.
void Schedule::sort() {
  Value batch = b.dim(op.getQuery(), 0), heads = b.dim(op.getQuery(), 2);
  Value numQueries = b.dim(queries, 0), zero = b.index(0), one = b.index(1);
  int64_t any = ShapedType::kDynamic;
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  tasks = b.mul(b.mul(batch, heads), numQueries);
  Value costs =
      b.allocate(MemRefType::get({any}, i64), tasks, tile::Memory::Schedule);
  order =
      b.allocate(MemRefType::get({any}, i32), tasks, tile::Memory::Schedule);
  b.loop(tasks, [&](Value task) {
    Value q = b.rem(task, numQueries), head = b.div(task, numQueries);
    Value cb = byBatch ? b.div(head, heads) : zero;
    Value ch = byHead ? b.rem(head, heads) : zero;
    Value tiles = b.add(b.load(counts, {cb, ch, q, zero}),
                        b.load(counts, {cb, ch, q, one}));
    b.store(b.make<arith::IndexCastOp>(i64, tiles), costs, task);
  });
  b.make<tile::SortOp>(costs, order);
  b.make<memref::DeallocOp>(costs);
}

void Schedule::build(Launcher launch) {
  ring::LayoutAttr queryLayout = op.getQueryLayout();
  ring::LayoutAttr keyLayout = op.getKeyLayout();
  int64_t querySegments = queryLayout.getNumSegments();
  int64_t keySegments = keyLayout.getNumSegments();
  auto table = [&](Value tiles) {
    return b.allocate(MemRefType::get({ShapedType::kDynamic, Field::NumFields},
                                      b.getIndexType()),
                      tiles, tile::Memory::Schedule);
  };
  queries = table(numTiles(queryLayout, op.getQueryOwner(), op.getQueryExtent(),
                           shape.rows));
  fill(queries, b.index(0), queryLayout, op.getQueryOwner(),
       op.getQueryExtent(), shape.rows, 0, keySegments);
  Value numKeys = b.index(0);
  for (Value owner : op.getOwners())
    numKeys = b.add(
        numKeys, numTiles(keyLayout, owner, op.getKeyExtent(), shape.columns));
  keys = table(numKeys);
  Value first = b.index(0);
  for (auto [slice, owner] : llvm::enumerate(op.getOwners())) {
    firstKeys.push_back(first);
    first = fill(keys, first, keyLayout, owner, op.getKeyExtent(),
                 shape.columns, slice * querySegments * keySegments, 1);
  }
  firstKeys.push_back(first);
  if (!op.getPairs().empty()) {
    flags =
        b.allocate(MemRefType::get({static_cast<int64_t>(op.getPairs().size())},
                                   b.getI1Type()),
                   {}, tile::Memory::Schedule);
    for (auto [i, value] : llvm::enumerate(op.getPairs()))
      b.store(value, flags, b.index(i));
  }
  if (!op.getBounds().empty()) {
    auto arguments = op.getBounds().getArguments();
    byBatch = !arguments[0].use_empty() || !arguments[1].use_empty();
    byHead = !arguments[2].use_empty() || !arguments[3].use_empty();
  }
  classify(launch);
  sort();
}

void Schedule::release() {
  for (Value buffer : {queries, keys, needed, list, counts, order, flags})
    if (buffer)
      b.make<memref::DeallocOp>(buffer);
}

//===----------------------------------------------------------------------===//
// attend
//===----------------------------------------------------------------------===//

static SmallVector<Value> ofType(ValueRange values, bool buffers) {
  SmallVector<Value> result;
  for (Value value : values)
    if (isa<MemRefType>(value.getType()) == buffers)
      result.push_back(value);
  return result;
}

namespace {

/// The body of the kernel of an attend: one tile of queries against its list.
class AttendKernel {
public:
  AttendKernel(TileBuilder &builder, ring::AttendOp op, const Shape &shape,
               const Schedule &schedule, ValueRange args);

  void build(Value task);

private:
  void step(Value key, bool isPartial);
  void map(Value key, bool isPartial);

  TileBuilder &b;
  ring::AttendOp op;
  Shape shape;
  const Schedule &schedule;
  Value query, packedKeys, packedValues, finite, queries, keys, list, counts;
  Value o, m, l; ///< memory of the state
  Value sq, sk;
  SmallVector<Value> maskCaptures, scoreCaptures;

  RowTask at;
  Value keyHead;
  struct {
    Value q, s, o, m, l, factor, i, j;
    Value seen; ///< scores of partial tiles under a mask
  } blocks;
};

} // namespace

AttendKernel::AttendKernel(TileBuilder &builder, ring::AttendOp op,
                           const Shape &shape, const Schedule &schedule,
                           ValueRange args)
    : b(builder), op(op), shape(shape), schedule(schedule) {
  size_t next = 0;
  auto take = [&] { return args[next++]; };
  for (Value *value : {&query, &packedKeys, &packedValues, &finite, &queries,
                       &keys, &list, &counts})
    *value = take();
  auto takeCaptures = [&](ValueRange captures, SmallVector<Value> &into,
                          bool buffers) {
    into.resize(captures.size());
    for (auto [capture, argument] : llvm::zip_equal(captures, into))
      if (isa<MemRefType>(capture.getType()) == buffers)
        argument = take();
  };
  takeCaptures(op.getMaskCaptures(), maskCaptures, true);
  takeCaptures(op.getScoreCaptures(), scoreCaptures, true);
  for (Value *value : {&o, &m, &l, &sq, &sk})
    *value = take();
  takeCaptures(op.getMaskCaptures(), maskCaptures, false);
  takeCaptures(op.getScoreCaptures(), scoreCaptures, false);
}

/// Scores and mask of the tile at hand.
void AttendKernel::map(Value key, bool isPartial) {
  Value columns = b.index(shape.columns);
  if (isPartial)
    columns = b.field(keys, key, Field::Count);
  b.make<tile::PositionsOp>(blocks.j, b.field(keys, key, Field::First), columns,
                            b.field(keys, key, Field::Begin),
                            b.field(keys, key, Field::Step),
                            b.field(keys, key, Field::Block));
  bool hasScore = !op.getScore().empty();
  auto map = b.make<tile::MapOp>(
      blocks.s, at.count, columns, at.b, at.h, blocks.i, blocks.j, sq, sk,
      isPartial ? ValueRange(maskCaptures) : ValueRange(), scoreCaptures,
      b.getF64FloatAttr(hasScore ? std::numbers::log2e : 1.0));
  IRMapping mapping;
  if (isPartial)
    op.getMask().cloneInto(&map.getMask(), mapping);
  op.getScore().cloneInto(&map.getScore(), mapping);
}

void AttendKernel::step(Value key, bool isPartial) {
  Value k = b.panels(packedKeys, at.b, keyHead, key);
  Value v = b.panels(packedValues, at.b, keyHead, key);
  b.make<tile::MultiplyOp>(blocks.q, k, blocks.s, at.count, Value(), false);
  if (isPartial || !op.getScore().empty())
    map(key, isPartial);
  // A weight of 0 rules out what it weighs only if that is a number.
  bool mayHide = isPartial && blocks.seen;
  Value hides;
  if (mayHide) {
    Value isFinite = b.load(finite, {at.b, keyHead, key});
    hides = b.make<arith::XOrIOp>(isFinite, b.truth(true));
    b.when(hides, [&] { b.make<memref::CopyOp>(blocks.s, blocks.seen); });
  }
  b.make<tile::RowMaxOp>(blocks.s, blocks.m, blocks.factor, at.count);
  b.make<tile::ExponentialsOp>(blocks.s, blocks.m, blocks.l, blocks.factor,
                               at.count);
  b.make<tile::RescaleOp>(blocks.o, blocks.factor, at.count);
  auto multiply = [&](Value seen) {
    b.make<tile::MultiplyOp>(blocks.s, v, blocks.o, at.count, seen, true);
  };
  if (!mayHide)
    return multiply({});
  auto choice = b.make<scf::IfOp>(hides, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  multiply(blocks.seen);
  b.setInsertionPointToStart(choice.elseBlock());
  multiply({});
}

void AttendKernel::build(Value task) {
  Value numQueries = b.dim(queries, 0), numKeys = b.dim(keys, 0);
  Value zero = b.index(0), one = b.index(1);
  Value tile = b.rem(task, numQueries), head = b.div(task, numQueries);
  Value heads = b.dim(query, 2);
  at.b = b.div(head, heads);
  at.h = b.rem(head, heads);
  at.row = b.field(queries, tile, Field::Row);
  at.count = b.field(queries, tile, Field::Count);
  auto keyType = cast<MemRefType>(packedKeys.getType());
  auto queryType = cast<MemRefType>(query.getType());
  keyHead =
      b.div(at.h, b.index(queryType.getDimSize(2) / keyType.getDimSize(1)));
  Value cb = schedule.byBatch ? at.b : zero;
  Value ch = schedule.byHead ? at.h : zero;
  Value full = b.load(counts, {cb, ch, tile, zero});
  Value partial = b.load(counts, {cb, ch, tile, one});

  int64_t valueColumns = shape.padded(dimOf(o));
  blocks = {b.alloca(shape.tile(queryType.getDimSize(3))),
            b.alloca(shape.tile(shape.columns)),
            b.alloca(shape.tile(valueColumns)),
            b.alloca(shape.rowVector()),
            b.alloca(shape.rowVector()),
            b.alloca(shape.rowVector()),
            b.alloca(shape.positions(shape.rows)),
            b.alloca(shape.positions(shape.columns)),
            Value()};
  if (!op.getMask().empty()) {
    blocks.seen = b.alloca(shape.tile(shape.columns));
  }
  // A task without tiles leaves its state as it is.
  Value any = b.compare(arith::CmpIPredicate::ne, b.add(full, partial), zero);
  b.when(any, [&] {
    double scale = op.getScale().convertToDouble();
    if (op.getScore().empty())
      scale *= std::numbers::log2e;
    auto load = [&](Value buffer, Value block, double factor) {
      b.make<tile::LoadOp>(b.rows(buffer, at.b, at.h, at.row, at.count), block,
                           b.getF64FloatAttr(factor), b.getF64FloatAttr(0.0));
    };
    load(query, blocks.q, scale);
    load(o, blocks.o, 1.0);
    load(m, blocks.m, 1.0);
    load(l, blocks.l, 1.0);
    if (!op.getMask().empty() || !op.getScore().empty())
      b.make<tile::PositionsOp>(blocks.i, b.field(queries, tile, Field::First),
                                at.count, b.field(queries, tile, Field::Begin),
                                b.field(queries, tile, Field::Step),
                                b.field(queries, tile, Field::Block));
    auto keyAt = [&](Value place) {
      return b.make<arith::IndexCastUIOp>(b.getIndexType(),
                                          b.load(list, {cb, ch, tile, place}));
    };
    b.loop(full, [&](Value t) { step(keyAt(t), false); });
    b.loop(partial,
           [&](Value t) { step(keyAt(b.sub(b.sub(numKeys, one), t)), true); });
    storeRows(b, blocks.o, o, at);
    storeRows(b, blocks.m, m, at);
    storeRows(b, blocks.l, l, at);
  });
}

void Lowering::lower(ring::AttendOp op) {
  TileBuilder b(op.getLoc(), op);
  Shape shape = shapeOf(op.getO());
  Schedule schedule(b, op, shape);
  schedule.build(
      [&](StringRef name, Value tasks, Value order, const Operands &operands,
          Body body) { launch(b, name, tasks, order, operands, body); });

  // Keys and values of all slices, packed tile by tile.
  int64_t any = ShapedType::kDynamic;
  auto keyType = cast<MemRefType>(op.getKeys().front().getType());
  int64_t keyHeads = keyType.getDimSize(2), keyDim = keyType.getDimSize(3);
  int64_t valueColumns = shape.padded(dimOf(op.getO()));
  Value batch = b.dim(op.getQuery(), 0), numKeys = schedule.firstKeys.back();
  auto allocate = [&](int64_t panels, int64_t depth) {
    return b.allocate(
        MemRefType::get({any, keyHeads, any, panels, depth, shape.panel},
                        shape.state),
        {batch, numKeys}, tile::Memory::Packing);
  };
  Value packedKeys = allocate(shape.columns / shape.panel, keyDim);
  Value packedValues = allocate(valueColumns / shape.panel, shape.columns);
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
          << rows << ", " << columns << ", " << panelBytes;
      return signalPassFailure();
    }
    LowerToTilePassOptions options{rows, columns, panelBytes};
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
