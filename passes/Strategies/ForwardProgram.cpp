//===- ForwardProgram.cpp - a rank's program of a forward pass ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/ForwardProgram.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

ForwardProgram::ForwardProgram(AttentionOp op, const Layout &layout)
    : ProgramBuilder(op, layout), op(op), query(unshardOf(op.getQuery())),
      key(unshardOf(op.getKey())), value(unshardOf(op.getValue())),
      out(shardType(cast<RankedTensorType>(op.getOut().getType()), 1, layout)) {
}

SmallVector<Type> ForwardProgram::stateTypes() {
  auto rows = RankedTensorType::get(
      {out.getDimSize(0), out.getDimSize(2), out.getDimSize(1)},
      op.getStateType());
  return {out.clone(op.getStateType()), rows, rows};
}

Tensors ForwardProgram::init() {
  auto state = ring::InitOp::create(builder, loc, stateTypes(),
                                    query.getShard(), /*into=*/ValueRange());
  return Tensors(state.getResults());
}

Tensors ForwardProgram::attend(const Shards &queries, const Shards &keys,
                               ValueRange state) {
  auto attend = ring::AttendOp::create(
      builder, loc, TypeRange(state), queries.tensors[0], queries.owner,
      query.getExtent(), keys.tensors[0], keys.tensors[1], keys.owner,
      key.getExtent(), state[0], state[1], state[2], offsets, /*pairs=*/Value(),
      op.getMaskCaptures(), op.getScoreCaptures(), /*into=*/ValueRange(),
      queries.layout, keys.layout,
      builder.getF64FloatAttr(op.getScaleOrDefault()), /*last=*/UnitAttr());
  IRMapping mapping;
  op.getMask().cloneInto(&attend.getMask(), mapping);
  op.getScore().cloneInto(&attend.getScore(), mapping);
  op.getBounds().cloneInto(&attend.getBounds(), mapping);
  return Tensors(attend.getResults());
}

void ForwardProgram::finish(ValueRange state) {
  Type rows = state[1].getType();
  SmallVector<Type> types{out, rows};
  if (op.givesMaxScores())
    types.push_back(rows);
  auto finalize = ring::FinalizeOp::create(
      builder, loc, types, state[0], state[1], state[2], /*into=*/ValueRange());
  for (auto [result, made] : llvm::zip(op->getResults(), finalize.getMade()))
    replace(result, made);
  erase();
}
