//===- BackwardProgram.cpp - a rank's program of a backward pass ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/BackwardProgram.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

void BackwardProgram::beginBackward() {
  ProgramBuilder::beginProgram();
  auto shard = [&](Value global) { return unshardOf(global).getShard(); };
  Value outGrad = shard(op.getOutGrad()), lse = shard(op.getLse());
  Value lseGrad = op.getLseGrad() ? shard(op.getLseGrad()) : Value();
  auto delta =
      ring::DeltaOp::create(builder, loc, lse.getType(), shard(op.getOut()),
                            outGrad, lseGrad, /*into=*/Value());
  queries = {shard(op.getQuery()), outGrad, lse, delta.getDelta()};
  keys = {shard(op.getKey()), shard(op.getValue())};
}

Value BackwardProgram::queryExtent() {
  return unshardOf(op.getQuery()).getExtent();
}

Value BackwardProgram::keyExtent() {
  return unshardOf(op.getKey()).getExtent();
}

Type BackwardProgram::gradientType(Type like) {
  return cast<RankedTensorType>(like).clone(op.getStateType());
}

Value BackwardProgram::zero(Value like) {
  return ring::ZeroOp::create(builder, loc, gradientType(like.getType()), like,
                              /*into=*/Value())
      .getZero();
}

Tensors BackwardProgram::zeroTables() {
  Tensors zeros;
  for (int64_t n : op.getGradients().value_or(ArrayRef<int64_t>()))
    zeros.push_back(zero(op.getScoreCaptures()[n]));
  return zeros;
}

Tensors BackwardProgram::attend(const Shards &queries, const Shards &keys,
                                ValueRange grads) {
  ArrayRef<int64_t> wanted = op.getGradients().value_or(ArrayRef<int64_t>());
  auto attend = ring::AttendGradOp::create(
      builder, loc, grads.getTypes(), queries.tensors[0], queries.tensors[1],
      queries.tensors[2], queries.tensors[3], queries.owner, queryExtent(),
      keys.tensors[0], keys.tensors[1], keys.owner, keyExtent(), grads, offsets,
      /*pairs=*/Value(), op.getMaskCaptures(), op.getScoreCaptures(),
      queries.layout, keys.layout,
      builder.getF64FloatAttr(op.getScaleOrDefault()),
      builder.getDenseI64ArrayAttr(wanted));
  IRMapping mapping;
  op.getMask().cloneInto(&attend.getMask(), mapping);
  op.getScore().cloneInto(&attend.getScore(), mapping);
  op.getBounds().cloneInto(&attend.getBounds(), mapping);
  op.getGradient().cloneInto(&attend.getGradient(), mapping);
  return Tensors(attend.getNewGrads());
}

/// The gradient in the type of a result.
Value BackwardProgram::round(Value gradient, Value global) {
  auto type = cast<RankedTensorType>(gradient.getType());
  Type element = cast<RankedTensorType>(global.getType()).getElementType();
  if (type.getElementType() == element)
    return gradient;
  return ring::RoundOp::create(builder, loc, type.clone(element), gradient,
                               /*into=*/Value())
      .getRounded();
}

void BackwardProgram::finish(ValueRange grads) {
  for (auto [global, gradient] :
       llvm::zip(op->getResults(), grads.take_front(3)))
    if (!global.use_empty())
      replace(global, round(gradient, global));
  for (auto [global, table] :
       llvm::zip_equal(op.getCaptureGrads(), grads.drop_front(3)))
    global.replaceAllUsesWith(table);
  erase();
}
