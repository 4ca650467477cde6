//===- GradientOperands.cpp - what a backward pass packs ------------------===//
#include "passes/Tile/GradientOperands.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

static int64_t headsOf(Value shard) {
  return cast<MemRefType>(shard.getType()).getDimSize(2);
}

GradientOperands::GradientOperands(TileBuilder &builder, ring::AttendGradOp op,
                                   const Shape &shape, const Schedule &schedule)
    : b(builder), op(op), schedule(schedule) {
  int64_t any = ShapedType::kDynamic;
  auto allocate = [&](MemRefType type, Value shard, Value table,
                      tile::Memory memory = tile::Memory::Packing) {
    return b.allocate(type, {b.dim(shard, 0), b.dim(table, 0)}, memory);
  };
  auto asColumns = [&](Value shard) {
    return allocate(shape.packedKeys(headsOf(shard), dimOf(shard)), shard,
                    schedule.keys);
  };
  auto asRows = [&](Value shard, Value table, int64_t rows) {
    return allocate(shape.packedDims(headsOf(shard), dimOf(shard), rows), shard,
                    table);
  };
  auto flags = [&](Value shard, Value table) {
    return allocate(MemRefType::get({any, headsOf(shard), any}, b.getI1Type()),
                    shard, table, tile::Memory::Schedule);
  };
  Value key = op.getKey(), query = op.getQuery();
  b.inFrontOf(schedule.keysStay, [&] {
    keysTransposed = asColumns(key);
    valuesTransposed = asColumns(op.getValue());
    keys = asRows(key, schedule.keys, shape.columns);
    finiteKeys = flags(key, schedule.keys);
  });
  b.inFrontOf(schedule.queriesStay, [&] {
    queries = asRows(query, schedule.queries, shape.rows);
    outGrads = asRows(op.getOutGrad(), schedule.queries, shape.rows);
    finiteQueries = flags(query, schedule.queries);
  });
}

void GradientOperands::pack(const Side &side, Launcher launch) {
  int64_t heads = headsOf(side.shards[0]);
  Operands operands{
      {side.shards[0], side.shards[1], side.table}, side.buffers, {}};
  if (!side.loop)
    operands.reads.push_back(side.asked);
  size_t numReads = operands.reads.size();
  Value tasks = b.mul(b.mul(b.dim(side.shards[0], 0), b.index(heads)),
                      b.dim(side.table, 0));
  launch(side.name, tasks, {}, operands,
         [&](TileBuilder &b, Value task, ValueRange args) {
           Value table = args[2], tiles = b.dim(table, 0);
           HeadTask at = headTask(b, task, b.index(heads), tiles);
           auto packTile = [&] {
             auto [batch, head, tile] = at;
             Value row = b.field(table, tile, Field::Row);
             Value count = b.field(table, tile, Field::Count);
             Value rows[] = {b.rows(args[0], batch, head, row, count),
                             b.rows(args[1], batch, head, row, count)};
             SmallVector<Value> packed;
             for (auto [buffer, panels] :
                  llvm::zip(args.drop_front(numReads), side.panels)) {
               packed.push_back(b.panels(buffer, batch, head, tile));
               b.make<tile::PackOp>(rows[panels.shard], packed.back(),
                                    panels.isTransposed);
             }
             Value isFinite = b.truth(true);
             for (Value number : ArrayRef(packed).take_back(side.numWeighted))
               isFinite = b.both(
                   isFinite, b.make<tile::IsFiniteOp>(b.getI1Type(), number));
             b.store(isFinite, args.back(), {batch, head, tile});
           };
           if (side.loop)
             packTile();
           else
             b.when(side.isNeeded(b, args[3], at), packTile);
         });
}

void GradientOperands::pack(Launcher launch) {
  int64_t group = headsOf(op.getQuery()) / headsOf(op.getKey());
  auto isListing = [&](TileBuilder &b, Value counts,
                       const HeadTask &at) -> Value {
    Value head = b.mul(at.head, b.index(group));
    Value length = schedule.lengthOf(b, counts, at.batch, head, at.tile, group);
    return b.compare(arith::CmpIPredicate::ne, length, b.index(0));
  };
  auto isListed = [](TileBuilder &b, Value needed,
                     const HeadTask &at) -> Value {
    return b.compare(arith::CmpIPredicate::ne, b.load(needed, at.tile),
                     b.make<arith::ConstantIntOp>(0, 32));
  };
  b.inFrontOf(schedule.keysStay, [&] {
    pack({.name = "pack_keys",
          .loop = schedule.keysStay,
          .shards = {op.getKey(), op.getValue()},
          .table = schedule.keys,
          .asked = schedule.counts,
          .isNeeded = isListing,
          .panels = {{0, true}, {1, true}, {0, false}},
          .buffers = ofKeys(),
          .numWeighted = 1},
         launch);
  });
  b.inFrontOf(schedule.queriesStay, [&] {
    pack({.name = "pack_queries",
          .loop = schedule.queriesStay,
          .shards = {op.getQuery(), op.getOutGrad()},
          .table = schedule.queries,
          .asked = schedule.needed,
          .isNeeded = isListed,
          .panels = {{0, false}, {1, false}},
          .buffers = ofQueries(),
          .numWeighted = 2},
         launch);
  });
}

void GradientOperands::release() {
  for (Value buffer : ofKeys())
    b.release(schedule.keysStay, buffer);
  for (Value buffer : ofQueries())
    b.release(schedule.queriesStay, buffer);
}
