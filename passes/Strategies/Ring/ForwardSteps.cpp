//===- ForwardSteps.cpp - what rings of the forward pass do ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Ring/ForwardSteps.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

SmallVector<Type> ForwardSteps::stateTypes() {
  auto shard =
      shardType(cast<RankedTensorType>(op.getOut().getType()), 1, deal);
  auto o = shard.clone(op.getStateType());
  auto m = RankedTensorType::get(
      {shard.getDimSize(0), shard.getDimSize(2), shard.getDimSize(1)},
      op.getStateType());
  return {o, m, m};
}

Tensors ForwardSteps::init(OpBuilder &builder, Value query) {
  auto state = ring::InitOp::create(builder, op.getLoc(), stateTypes(), query,
                                    /*into=*/ValueRange());
  return Tensors(state.getResults());
}

Tensors ForwardSteps::attend(OpBuilder &builder, Value query, Value queryOwner,
                             Value key, Value value, Value keyOwner,
                             ValueRange state) {
  auto layout = ring::LayoutAttr::get(op.getContext(), deal);
  auto attend = ring::AttendOp::create(
      builder, op.getLoc(), state[0].getType(), state[1].getType(),
      state[2].getType(), query, queryOwner, this->query.getExtent(), key,
      value, keyOwner, this->key.getExtent(), state[0], state[1], state[2],
      /*pairs=*/Value(), op.getMaskCaptures(), op.getScoreCaptures(), layout,
      layout, builder.getF64FloatAttr(op.getScaleOrDefault()));
  IRMapping mapping;
  op.getMask().cloneInto(&attend.getMask(), mapping);
  op.getScore().cloneInto(&attend.getScore(), mapping);
  op.getBounds().cloneInto(&attend.getBounds(), mapping);
  return Tensors(attend.getResults());
}

ring::FinalizeOp ForwardSteps::finalize(OpBuilder &builder, ValueRange state) {
  auto out = shardType(cast<RankedTensorType>(op.getOut().getType()), 1, deal);
  return ring::FinalizeOp::create(builder, op.getLoc(),
                                  TypeRange{out, state[1].getType()}, state[0],
                                  state[1], state[2], /*into=*/ValueRange());
}
