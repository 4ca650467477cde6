//===- GradientOperands.cpp - what a backward pass packs ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/GradientOperands.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

/// The outermost loop around an attend through which the shards that it packs
/// stay the same, with what says where they lie; null if there is none. Only
/// inputs of the program are known to. What several attends would pack in front
/// of a loop would have to be held at once.
static Operation *loopOver(ring::AttendGradOp op, ArrayRef<Value> shards,
                           ArrayRef<Value> places) {
  auto staysIn = [&](scf::ForOp loop) {
    int64_t attends = 0;
    loop.walk([&](ring::AttendGradOp) { ++attends; });
    return attends == 1 &&
           llvm::all_of(places,
                        [&](Value place) {
                          return loop.isDefinedOutsideOfLoop(place);
                        }) &&
           llvm::all_of(shards, [&](Value shard) {
             auto input = dyn_cast<BlockArgument>(shard);
             return input &&
                    isa<func::FuncOp>(input.getOwner()->getParentOp()) &&
                    llvm::all_of(input.getUsers(), [&](Operation *user) {
                      return user == op || !loop->isProperAncestor(user);
                    });
           });
  };
  Operation *outermost = nullptr;
  for (auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
       loop && staysIn(loop); loop = dyn_cast<scf::ForOp>(loop->getParentOp()))
    outermost = loop;
  return outermost;
}

Operation *tiling::loopOfQueries(ring::AttendGradOp op) {
  return loopOver(op, {op.getQuery(), op.getOutGrad()},
                  {op.getQueryOwner(), op.getQueryExtent()});
}

Operation *tiling::loopOfKeys(ring::AttendGradOp op) {
  return loopOver(op, {op.getKey(), op.getValue()},
                  {op.getKeyOwner(), op.getKeyExtent()});
}

static int64_t headsOf(Value shard) {
  return cast<MemRefType>(shard.getType()).getDimSize(2);
}

GradientOperands::GradientOperands(TileBuilder &builder, ring::AttendGradOp op,
                                   const Shape &shape, const Schedule &schedule)
    : b(builder), schedule(schedule), keys{"pack_keys",
                                           schedule.keysStay,
                                           {op.getKey(), op.getValue()},
                                           schedule.keys,
                                           {{0, true}, {1, true}, {0, false}},
                                           {}},
      queries{"pack_queries",
              schedule.queriesStay,
              {op.getQuery(), op.getOutGrad()},
              schedule.queries,
              {{0, false}, {1, false}},
              {}} {
  allocate(keys, shape, shape.columns);
  allocate(queries, shape, shape.rows);
}

void GradientOperands::allocate(Side &side, const Shape &shape, int64_t rows) {
  b.inFrontOf(side.loop, [&] {
    int64_t any = ShapedType::kDynamic, heads = headsOf(side.shards[0]);
    auto allocate = [&](MemRefType type, tile::Memory memory) {
      Value sizes[] = {b.dim(side.shards[0], 0), b.dim(side.table, 0)};
      side.buffers.push_back(b.allocate(type, sizes, memory));
    };
    for (auto [shard, areColumns] : side.panels) {
      int64_t dim = dimOf(side.shards[shard]);
      allocate(areColumns ? shape.packedKeys(heads, dim)
                          : shape.packedDims(heads, dim, rows),
               tile::Memory::Packing);
    }
    allocate(MemRefType::get({any, heads, any}, b.getI1Type()),
             tile::Memory::Schedule);
  });
}

void GradientOperands::pack(
    const Side &side, Launcher launch, Value asked,
    llvm::function_ref<Value(TileBuilder &, Value asked, HeadTask)> isNeeded) {
  TileBuilder::InsertionGuard guard(b);
  if (side.loop)
    b.setInsertionPoint(side.loop);
  int64_t heads = headsOf(side.shards[0]);
  Value shards[2], table, askedInside, finite;
  SmallVector<Value> buffers(side.panels.size());
  Operands operands;
  for (auto [inside, shard] : llvm::zip_equal(shards, side.shards))
    operands.read(inside, "", shard);
  operands.read(table, "", side.table);
  if (!side.loop)
    operands.read(askedInside, "", asked);
  for (auto [inside, buffer] : llvm::zip(buffers, side.buffers))
    operands.write(inside, "", buffer);
  operands.write(finite, "", side.buffers.back());
  Value tasks = b.mul(b.mul(b.dim(side.shards[0], 0), b.index(heads)),
                      b.dim(side.table, 0));
  launch(side.kernel, tasks, {}, operands, [&](TileBuilder &b, Value task) {
    Value tiles = b.dim(table, 0);
    HeadTask at = headTask(b, task, b.index(heads), tiles);
    auto packTile = [&] {
      auto [batch, head, tile] = at;
      Value row = b.field(table, tile, Field::Row);
      Value count = b.field(table, tile, Field::Count);
      Value rows[] = {b.rows(shards[0], batch, head, row, count),
                      b.rows(shards[1], batch, head, row, count)};
      SmallVector<Value> weighted;
      for (auto [buffer, panels] : llvm::zip_equal(buffers, side.panels)) {
        Value packed = b.panels(buffer, batch, head, tile);
        b.make<tile::PackOp>(rows[panels.shard], packed, panels.areColumns);
        if (!panels.areColumns)
          weighted.push_back(packed);
      }
      Value isFinite = b.truth(true);
      for (Value packed : weighted)
        isFinite =
            b.both(isFinite, b.make<tile::IsFiniteOp>(b.getI1Type(), packed));
      b.store(isFinite, finite, {batch, head, tile});
    };
    if (side.loop)
      packTile();
    else
      b.when(isNeeded(b, askedInside, at), packTile);
  });
}

void GradientOperands::pack(Launcher launch) {
  int64_t group = headsOf(queries.shards[0]) / headsOf(keys.shards[0]);
  pack(keys, launch, schedule.counts,
       [&](TileBuilder &b, Value counts, HeadTask at) -> Value {
         Value head = b.mul(at.head, b.index(group));
         Value length =
             schedule.lengthOf(b, counts, at.batch, head, at.tile, group);
         return b.compare(arith::CmpIPredicate::ne, length, b.index(0));
       });
  pack(queries, launch, schedule.needed,
       [](TileBuilder &b, Value needed, HeadTask at) -> Value {
         return b.compare(arith::CmpIPredicate::ne, b.load(needed, at.tile),
                          b.make<arith::ConstantIntOp>(0, 32));
       });
}

void GradientOperands::release() {
  for (const Side *side : {&keys, &queries})
    for (Value buffer : side->buffers)
      b.release(side->loop, buffer);
}
