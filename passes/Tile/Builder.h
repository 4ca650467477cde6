//===- Builder.h - what schedules and kernels are emitted with --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_TILE_BUILDER_H
#define BURST_PASSES_TILE_BUILDER_H

#include "dialect/Ring/Ring.h"
#include "dialect/Tile/Build.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

#include <numbers>

namespace burst::tiling {

using llvm::SmallVector;
using mlir::ArrayRef;
using mlir::cast;
using mlir::FloatType;
using mlir::getAsOpFoldResult;
using mlir::IndexType;
using mlir::isa;
using mlir::MemRefType;
using mlir::OpFoldResult;
using mlir::ShapedType;
using mlir::StridedLayoutAttr;
using mlir::StringRef;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
namespace memref = mlir::memref;

/// Sizes of tiles for one type of state.
struct Shape {
  FloatType state;
  int64_t rows, columns;
  int64_t panel;    ///< keys of a panel whose columns are scores
  int64_t dimPanel; ///< numbers of a panel whose columns are a head's, at most
  bool pairs = false; ///< products are of pairs of bf16
  /// Of a CTA of a GPU, whose products take tiles in shared memory; 0: a core.
  int64_t warps = 0;
  FloatType operand = {}; ///< of a CTA's products
  /// Rows that go through all steps of a core's kernel together; 0: all.
  int64_t strip = 0;
  /// Query heads of a key head of which a tile has rows: those of a position
  /// follow each other.
  int64_t heads = 1;
  /// Keys and values are no panels, but read where they lie.
  bool inPlace = false;

  /// The width of a head's panels: narrow ones where wide ones would be padded
  /// more.
  int64_t panelOf(int64_t dim) const {
    return llvm::alignTo(dim, panel) < llvm::alignTo(dim, dimPanel) ? panel
                                                                    : dimPanel;
  }
  int64_t padded(int64_t dim) const { return llvm::alignTo(dim, panelOf(dim)); }
  /// Rows of a block: whole strips.
  int64_t blockRows() const {
    return strip ? static_cast<int64_t>(llvm::alignTo(rows, strip)) : rows;
  }
  /// Queries of a tile.
  int64_t queries() const { return rows / heads; }
  bool isStaged() const { return warps != 0; }
  /// Whether products take numbers as they are in memory, and scale later.
  bool keepsOperands() const { return pairs || isStaged(); }
  /// Of the operands of products.
  FloatType factor() const {
    return pairs ? mlir::BFloat16Type::get(state.getContext()) : state;
  }
  /// A left operand.
  MemRefType factors(int64_t depth) const {
    if (isStaged())
      return staged(rows, depth);
    return MemRefType::get({blockRows(), pairs ? (depth + 1) / 2 * 2 : depth},
                           factor());
  }
  /// A tile in shared memory.
  MemRefType staged(int64_t rows, int64_t depth) const {
    return MemRefType::get({rows, padded(depth)}, operand,
                           mlir::MemRefLayoutAttrInterface(),
                           space(mlir::gpu::AddressSpace::Workgroup));
  }
  /// Right operands of tiles (batch, heads, tile) whose columns are keys.
  MemRefType packedKeys(int64_t heads, int64_t dim) const {
    return packed(heads, columns / panel, dim, panel);
  }
  /// Right operands of tiles whose columns are numbers of a head, and whose
  /// depth is the rows of a tile.
  MemRefType packedDims(int64_t heads, int64_t dim, int64_t depth) const {
    return packed(heads, padded(dim) / panelOf(dim), depth, panelOf(dim));
  }
  /// Left operands of sums over the rows of a block, two of which lie side by
  /// side.
  MemRefType pairedRows() const {
    return MemRefType::get({blockRows() / 2, blockColumns(), 2}, factor());
  }
  MemRefType tile(int64_t columns) const {
    return MemRefType::get({blockRows(), columns}, state,
                           mlir::MemRefLayoutAttrInterface(), registers());
  }
  MemRefType rowVector() const {
    return MemRefType::get({blockRows()}, state,
                           mlir::MemRefLayoutAttrInterface(), registers());
  }
  /// The shape of what is needed of one strip at a time.
  Shape ofStrip() const {
    Shape one = *this;
    one.rows = strip;
    return one;
  }
  /// Tiles in memory (batch, heads, tiles of queries, tiles of keys).
  MemRefType tiles(int64_t heads) const {
    int64_t any = ShapedType::kDynamic;
    return MemRefType::get({any, heads, any, any, blockRows(), blockColumns()},
                           state);
  }
  /// Columns of a block that is read by its columns, too: whole strips, and so
  /// many that the numbers of a column lie in different sets of a cache.
  int64_t blockColumns() const {
    return strip ? columns + static_cast<int64_t>(llvm::alignTo(strip, panel))
                 : columns;
  }
  MemRefType positions(int64_t count) const {
    return MemRefType::get({count}, IndexType::get(state.getContext()));
  }

private:
  MemRefType packed(int64_t heads, int64_t count, int64_t depth,
                    int64_t panel) const {
    int64_t any = ShapedType::kDynamic;
    if (!pairs)
      return MemRefType::get({any, heads, any, count, depth, panel}, factor());
    return MemRefType::get({any, heads, any, count, (depth + 1) / 2, panel, 2},
                           factor());
  }
  mlir::Attribute space(mlir::gpu::AddressSpace space) const {
    return mlir::gpu::AddressSpaceAttr::get(state.getContext(), space);
  }
  /// Where sums lie.
  mlir::Attribute registers() const {
    return isStaged() ? space(mlir::gpu::AddressSpace::Private)
                      : mlir::Attribute();
  }
};

/// Columns of a table of tiles: where a tile lies in its shard, and the
/// positions it holds.
struct Field {
  enum Name : uint8_t {
    Begin,  ///< of its segment
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

  /// Says what a value is called in text that is made of it.
  Value named(StringRef name, Value value) {
    value.setLoc(mlir::NameLoc::get(getStringAttr(name), value.getLoc()));
    return value;
  }
  Value field(Value table, Value tile, Field::Name field) {
    static constexpr StringRef names[Field::NumFields] = {
        "begin", "first", "count", "row", "pair", "lowest", "behind"};
    return named(names[field], load(table, {tile, index(field)}));
  }
  /// The positions that the first `count` rows of a tile hold.
  void positions(Value block, Value table, Value tile, Value count,
                 ring::LayoutAttr layout) {
    bool isStriped = layout.getOrder() == Order::Striped;
    int64_t together = isStriped ? layout.getBlock() : 1;
    int64_t step = isStriped ? layout.getParts() * together : 1;
    make<tile::PositionsOp>(block, field(table, tile, Field::First), count,
                            field(table, tile, Field::Begin), index(step),
                            index(together));
  }
  Value allocate(MemRefType type, ValueRange sizes, tile::Memory memory) {
    return make<tile::AllocateOp>(type, stringify(memory), sizes);
  }
  /// Emits in front of a loop; without one, here.
  void inFrontOf(mlir::Operation *loop, llvm::function_ref<void()> body) {
    InsertionGuard guard(*this);
    if (loop)
      setInsertionPoint(loop);
    body();
  }
  /// Frees a buffer behind a loop; without one, here.
  void release(mlir::Operation *loop, Value buffer) {
    InsertionGuard guard(*this);
    if (loop)
      setInsertionPointAfter(loop);
    make<memref::DeallocOp>(buffer);
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
    // Which dimensions are kept, shapes do not tell: a head may have one
    // number.
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

  /// `count` positions from `first` on, of a shard (batch, sequence, heads,
  /// dim) or of rows (batch, heads, sequence).
  Value segment(Value shard, Value first, Value count) {
    int64_t rank = cast<MemRefType>(shard.getType()).getRank();
    int64_t sharded = rank == 4 ? 1 : 2;
    SmallVector<OpFoldResult> offsets(rank, getIndexAttr(0)), sizes;
    SmallVector<OpFoldResult> strides(rank, getIndexAttr(1));
    offsets[sharded] = first;
    for (int64_t d = 0; d < rank; ++d)
      sizes.push_back(d == sharded ? OpFoldResult(count)
                                   : getAsOpFoldResult(dim(shard, d)));
    return make<memref::SubViewOp>(shard, offsets, sizes, strides);
  }

  /// The panels of a tile in packed memory (batch, heads, tiles, panels...).
  Value panels(Value packed, Value b, Value h, Value tile) {
    return element(packed, {b, h, tile});
  }

  /// Part of a buffer: in each dimension so many elements, from some one on.
  Value part(Value buffer, ArrayRef<OpFoldResult> offsets,
             ArrayRef<OpFoldResult> sizes) {
    SmallVector<OpFoldResult> strides(offsets.size(), getIndexAttr(1));
    return make<memref::SubViewOp>(buffer, offsets, sizes, strides);
  }

  /// What `buffer` holds at the first indices: the other dimensions, whole.
  Value element(Value buffer, ArrayRef<Value> at) {
    auto type = cast<MemRefType>(buffer.getType());
    OpFoldResult one = getIndexAttr(1), zero = getIndexAttr(0);
    ArrayRef<int64_t> shape = type.getShape().drop_front(at.size());
    SmallVector<OpFoldResult> offsets(at.begin(), at.end());
    offsets.resize(type.getRank(), zero);
    SmallVector<OpFoldResult> sizes(at.size(), one);
    for (int64_t size : shape)
      sizes.push_back(getIndexAttr(size));
    SmallVector<OpFoldResult> strides(type.getRank(), one);
    // Which dimensions are kept, shapes do not tell: some may have one element.
    auto whole = cast<MemRefType>(
        memref::SubViewOp::inferResultType(type, offsets, sizes, strides));
    auto [steps, offset] = whole.getStridesAndOffset();
    ArrayRef<int64_t> kept = ArrayRef(steps).drop_front(at.size());
    auto view =
        MemRefType::get(shape, type.getElementType(),
                        StridedLayoutAttr::get(getContext(), offset, kept));
    return make<memref::SubViewOp>(view, buffer, offsets, sizes, strides);
  }
};

/// The operands of a launch. Each comes with the place of the argument that
/// stands for it in the kernel, which is filled before the kernel's body is
/// emitted, and the name that this argument is given. Kernels take what they
/// read first, then what they write, then scalars.
class Operands {
public:
  void read(Value &inside, StringRef name, Value buffer) {
    lists[0].add(inside, name, buffer);
  }
  void write(Value &inside, StringRef name, Value buffer) {
    lists[1].add(inside, name, buffer);
  }
  void scalar(Value &inside, StringRef name, Value scalar) {
    lists[2].add(inside, name, scalar);
  }
  /// What regions capture: tables, which are read, and scalars.
  void capture(SmallVector<Value> &inside, ValueRange captures) {
    inside.resize(captures.size());
    for (auto [argument, capture] : llvm::zip_equal(inside, captures))
      if (isa<MemRefType>(capture.getType()))
        read(argument, "table", capture);
      else
        scalar(argument, "scalar", capture);
  }

  ArrayRef<Value> reads() const { return lists[0].values; }
  ArrayRef<Value> writes() const { return lists[1].values; }
  ArrayRef<Value> scalars() const { return lists[2].values; }

  SmallVector<Type> types() const {
    SmallVector<Type> types;
    for (const List &list : lists)
      llvm::append_range(types, mlir::TypeRange(list.values));
    return types;
  }
  /// Says which arguments of a kernel stand for them.
  void bind(TileBuilder &b, ValueRange arguments) const {
    for (const List &list : lists)
      for (auto [inside, name] : llvm::zip_equal(list.inside, list.names)) {
        *inside = arguments.front();
        if (!name.empty())
          b.named(name, *inside);
        arguments = arguments.drop_front();
      }
  }

private:
  struct List {
    SmallVector<Value> values;
    SmallVector<Value *> inside;
    SmallVector<StringRef> names; ///< literals

    void add(Value &argument, StringRef name, Value value) {
      values.push_back(value);
      inside.push_back(&argument);
      names.push_back(name);
    }
  };
  std::array<List, 3> lists;
};

/// A tile of scores: which rows and columns of which positions it has, and what
/// mask and score region capture.
struct Scores {
  Value block, rows, columns, batch, head, i, j, queries, keys;
  ValueRange maskCaptures, scoreCaptures;
  /// Where rows are of several heads: the head of each, and how many there are
  /// from `head` on.
  Value heads = {};
  int64_t numHeads = 1;
};

/// Applies the mask of an attend, its score region, or both.
template <typename Attend>
void mapScores(TileBuilder &b, Attend op, const Scores &s, bool isMasked,
               bool isScored, bool isTransposed = false) {
  auto map = b.make<tile::MapOp>(
      s.block, s.rows, s.columns, s.batch, s.heads ? s.heads : s.head, s.i, s.j,
      s.queries, s.keys, isMasked ? s.maskCaptures : ValueRange(),
      isScored ? s.scoreCaptures : ValueRange(),
      llvm::APFloat(isScored ? std::numbers::log2e : 1.0), isTransposed);
  mlir::IRMapping mapping;
  if (isMasked)
    op.getMask().cloneInto(&map.getMask(), mapping);
  if (isScored)
    op.getScore().cloneInto(&map.getScore(), mapping);
}

/// Emits the body of a kernel for the number of a task. Operands are bound to
/// its arguments.
using Body = llvm::function_ref<void(TileBuilder &, Value task)>;
/// Makes a kernel, or finds an equal one, and launches it.
using Launcher =
    llvm::function_ref<void(StringRef name, Value tasks, Value order,
                            const Operands &operands, Body body)>;

/// The tile of rows of a shard with `count` rows that a task stands for.
struct RowTask {
  Value b, h, row, count;
};

/// One of the tasks (batch, tile, head) that go over memory once. The rows of
/// all heads at a position lie side by side: so do their tasks.
struct HeadTask {
  Value batch, head, tile;
};

inline HeadTask headTask(TileBuilder &b, Value task, Value heads, Value tiles) {
  Value rest = b.div(task, heads);
  return {b.div(rest, tiles), b.rem(task, heads), b.rem(rest, tiles)};
}

/// How many rows a shard (batch, sequence, heads, dim) has, or rows (batch,
/// heads, sequence), and heads.
inline std::pair<Value, Value> rowsAndHeads(TileBuilder &builder, Value o) {
  auto type = cast<MemRefType>(o.getType());
  return {builder.dim(o, type.getRank() == 4 ? 1 : 2),
          builder.dim(o, ring::headsDimOf(type))};
}

/// Tasks over (batch, tile of rows, head) of a state.
inline Value numRowTasks(TileBuilder &builder, Value o, const Shape &shape) {
  auto [rows, heads] = rowsAndHeads(builder, o);
  Value tiles = builder.ceilDiv(rows, shape.rows);
  return builder.mul(builder.mul(builder.dim(o, 0), heads), tiles);
}

inline RowTask decodeRowTask(TileBuilder &builder, Value task, Value o,
                             const Shape &shape) {
  auto [rows, heads] = rowsAndHeads(builder, o);
  Value tiles = builder.ceilDiv(rows, shape.rows);
  auto [batch, head, tile] = headTask(builder, task, heads, tiles);
  Value row =
      builder.named("row", builder.mul(tile, builder.index(shape.rows)));
  Value count = builder.min(builder.sub(rows, row), builder.index(shape.rows));
  return {builder.named("batch", batch), builder.named("head", head), row,
          builder.named("count", count)};
}

inline int64_t dimOf(Value shard) {
  return cast<MemRefType>(shard.getType()).getDimSize(3);
}

inline constexpr double minusInfinity =
    -std::numeric_limits<double>::infinity();

/// Loads a block from `count` rows of memory.
inline Value loadRows(TileBuilder &b, Value buffer, const RowTask &at,
                      MemRefType type, double factor = 1.0,
                      double padding = 0.0) {
  Value block = b.alloca(type);
  b.make<tile::LoadOp>(b.rows(buffer, at.b, at.h, at.row, at.count), block,
                       b.getF64FloatAttr(factor), b.getF64FloatAttr(padding));
  return block;
}

inline void storeRows(TileBuilder &b, Value block, Value buffer,
                      const RowTask &at) {
  b.make<tile::StoreOp>(block, b.rows(buffer, at.b, at.h, at.row, at.count));
}

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_BUILDER_H
