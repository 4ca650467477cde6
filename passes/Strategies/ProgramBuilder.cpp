//===- ProgramBuilder.cpp - a rank's program of one attention -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/ProgramBuilder.h"

#include "passes/Strategies/Strategy.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;
using namespace burst;

ProgramBuilder::ProgramBuilder(AttentionInterface op, const Layout &layout)
    : attention(op), builder(op), loc(op.getLoc()),
      layout(ring::LayoutAttr::get(op.getContext(), layout)),
      channel(ring::ChannelAttr::get(op.getContext(),
                                     op.getSequence()->getGrid(),
                                     op.getSequence()->getAxes(), 0)) {
  rings.push_back({channel, 1});
}

void ProgramBuilder::nestRings() {
  shard::GridOp grid = lookupGrid(attention, channel.getGrid());
  SmallVector<Ring, 2> nest;
  int64_t stride = layout.getParts();
  for (int64_t axis : axesOf(attention, *attention.getSequence())) {
    int64_t size = groupOf(grid, {axis}).size;
    if (size == 1)
      continue;
    stride /= size;
    int64_t index = nest.empty() ? 0 : ring::exchangeChannel + 1;
    nest.push_back({ring::ChannelAttr::get(attention.getContext(),
                                           channel.getGrid(), {axis}, index),
                    stride});
  }
  if (nest.size() > 1)
    rings = nest;
}

void ProgramBuilder::beginProgram() {
  shard::GridOp grid = lookupGrid(attention, channel.getGrid());
  rank = ring::createPlace(builder, loc, grid, channel.getAxes());
  if (!attention.getHeadsAttr() && !attention.getBatchAttr())
    return;
  // The tensors are those of this rank's batches and heads already.
  Value query = unshardOf(attention.getQuery()).getShard();
  auto type = cast<RankedTensorType>(query.getType());
  query = ring::behindAllToAll(query);
  const std::pair<AxesAttr, int64_t> splits[] = {{attention.getBatchAttr(), 0},
                                                 {attention.getHeadsAttr(), 2}};
  for (auto [axes, dim] : splits) {
    Value size;
    if (type.isDynamicDim(dim))
      size = tensor::DimOp::create(builder, loc, query, dim);
    else
      size = arith::ConstantIndexOp::create(builder, loc, type.getDimSize(dim));
    if (!axes) {
      llvm::append_range(
          offsets,
          ValueRange{arith::ConstantIndexOp::create(builder, loc, 0), size});
      continue;
    }
    Value place = ring::createPlace(builder, loc, grid, axes.getAxes());
    Value parts = arith::ConstantIndexOp::create(
        builder, loc, groupOf(grid, axes.getAxes()).size);
    offsets.push_back(arith::MulIOp::create(builder, loc, place, size));
    offsets.push_back(builder.createOrFold<arith::MulIOp>(loc, size, parts));
  }
}

Tensors ProgramBuilder::rotate(const Rotation &rotation, ArrayRef<Ring> nest,
                               Value owner, Turn turn) {
  SmallVector<Type> given(ValueRange(rotation.carried).getTypes());
  llvm::append_range(given, rotation.partials);
  auto rotate = ring::RotateOp::create(
      builder, loc, given, rotation.tensors, owner, rotation.extent,
      /*reach=*/Value(), /*ring=*/Value(), /*step=*/Value(),
      /*segments=*/Value(), rotation.carried, rotation.dims, isDirect,
      isBidirectional, layout, nest.front().channel, nest.front().stride,
      rotation.join
          ? ring::JoinAttr::get(attention.getContext(), *rotation.join)
          : ring::JoinAttr(),
      rotation.join ? builder.getDenseI64ArrayAttr(rotation.partialDims)
                    : DenseI64ArrayAttr());
  SmallVector<Type> taken{builder.getIndexType()};
  llvm::append_range(taken, ValueRange(rotation.tensors).getTypes());
  llvm::append_range(taken, given);
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&rotate.getBody(), {}, taken,
                      SmallVector<Location>(taken.size(), loc));
  Tensors made;
  if (nest.size() == 1) {
    made = turn(rotate.getOwner(), rotate.getBrought(), rotate.getCarried(),
                rotate.getPartials());
  } else {
    // Partial results of the ranks that an inner ring joins are one of this
    // ring, which begins with none.
    Rotation inner = rotation;
    inner.tensors = Tensors(rotate.getBrought());
    inner.carried = Tensors(rotate.getCarried());
    made = this->rotate(inner, nest.drop_front(), rotate.getOwner(), turn);
  }
  ring::YieldOp::create(builder, loc, made);
  return Tensors(rotate.getResults());
}

/// The types of the shards of all ranks: on one rank those of its own.
static SmallVector<Type> gatheredTypes(TypeRange shards, ArrayRef<int64_t> dims,
                                       Value extent, ring::LayoutAttr layout) {
  SmallVector<Type> types(shards);
  if (layout.getParts() == 1)
    return types;
  int64_t size = getConstantIntValue(extent).value_or(ShapedType::kDynamic);
  for (auto [type, dim] : llvm::zip_equal(types, dims)) {
    auto shard = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(shard.getShape());
    shape[dim] = size;
    type = shard.clone(shape);
  }
  return types;
}

Tensors ProgramBuilder::gather(const Gathering &gathering, Whole whole) {
  SmallVector<Type> given(gathering.values);
  llvm::append_range(given, gathering.partials);
  SmallVector<Type> taken =
      gatheredTypes(ValueRange(gathering.tensors).getTypes(), gathering.dims,
                    gathering.extent, layout);
  llvm::append_range(taken,
                     gatheredTypes(gathering.partials, gathering.partialDims,
                                   gathering.extent, layout));
  auto gather = ring::GatherOp::create(
      builder, loc, given, gathering.tensors, rank, gathering.extent,
      /*segments=*/Value(), builder.getDenseI64ArrayAttr(gathering.dims),
      layout, channel,
      gathering.join
          ? ring::JoinAttr::get(attention.getContext(), *gathering.join)
          : ring::JoinAttr(),
      gathering.join ? builder.getDenseI64ArrayAttr(gathering.partialDims)
                     : DenseI64ArrayAttr());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&gather.getBody(), {}, taken,
                      SmallVector<Location>(taken.size(), loc));
  Tensors made = whole(gather.getBrought(), gather.getPartials());
  ring::YieldOp::create(builder, loc, made);
  return Tensors(gather.getResults());
}

ProgramBuilder::Shards ProgramBuilder::gatheredShards(ValueRange tensors) {
  return {Tensors(tensors), arith::ConstantIndexOp::create(builder, loc, 0),
          layout.ofAll()};
}

void ProgramBuilder::replace(Value global, Value tensor) {
  for (Operation *user : llvm::make_early_inc_range(global.getUsers())) {
    cast<ShardOp>(user).getResult().replaceAllUsesWith(tensor);
    user->erase();
  }
}

void ProgramBuilder::erase() {
  SmallVector<Value> operands(attention->getOperands());
  attention->erase();
  // One tensor may be several operands.
  llvm::SmallSetVector<Operation *, 8> unshards;
  for (Value operand : operands)
    if (auto unshard = operand.getDefiningOp<UnshardOp>())
      unshards.insert(unshard);
  for (Operation *unshard : unshards)
    if (unshard->use_empty())
      unshard->erase();
}
