//===- GradientRing.cpp - the backward pass as a ring ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Ring/Builders.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

static Value extentOf(AttentionBackwardOp op, bool keys) {
  Value tensor = keys ? op.getKey() : op.getQuery();
  return tensor.getDefiningOp<UnshardOp>().getExtent();
}

namespace {

/// The partial results of shards are the gradients by them.
class GradientRing final : public ProgramBuilder {
public:
  GradientRing(AttentionBackwardOp op, const Deal &deal, bool movesKeys)
      : ProgramBuilder(op, deal), op(op), movesKeys(movesKeys) {}

  void build();

private:
  Type gradientType(Value like);
  Value zero(Value like);
  Tensors attend(Value owner, ValueRange slice, ValueRange kept,
                 ValueRange partials);
  Value finish(Value gradient, Type element);

  AttentionBackwardOp op;
  bool movesKeys;
  Tensors queries, keys; ///< what is dealt as queries are, and as keys
};

} // namespace

Type GradientRing::gradientType(Value like) {
  return cast<RankedTensorType>(like.getType()).clone(op.getStateType());
}

Value GradientRing::zero(Value like) {
  return ring::ZeroOp::create(builder, loc, gradientType(like), like,
                              /*into=*/Value())
      .getZero();
}

/// By what of a slice there are gradients: by keys and values, or by queries.
static ValueRange differentiated(ValueRange slice, bool keys) {
  return slice.take_front(keys ? 2 : 1);
}

/// Adds the gradients of the shards of `owner` and of what stays here.
Tensors GradientRing::attend(Value owner, ValueRange slice, ValueRange kept,
                             ValueRange partials) {
  ValueRange q = movesKeys ? ValueRange(queries) : slice;
  ValueRange kv = movesKeys ? slice : ValueRange(keys);
  Value queryOwner = movesKeys ? rank : owner;
  Value keyOwner = movesKeys ? owner : rank;
  size_t keptGradients = movesKeys ? 1 : 2;
  ValueRange here = kept.take_front(keptGradients);
  Tensors grads(movesKeys ? here : partials);
  llvm::append_range(grads, movesKeys ? partials : here);
  llvm::append_range(grads, kept.drop_front(keptGradients));
  ArrayRef<int64_t> wanted = op.getGradients().value_or(ArrayRef<int64_t>());
  auto attend = ring::AttendGradOp::create(
      builder, loc, ValueRange(grads).getTypes(), q[0], q[1], q[2], q[3],
      queryOwner, extentOf(op, false), kv[0], kv[1], keyOwner,
      extentOf(op, true), grads, /*pairs=*/Value(), op.getMaskCaptures(),
      op.getScoreCaptures(), layout, layout,
      builder.getF64FloatAttr(op.getScaleOrDefault()),
      builder.getDenseI64ArrayAttr(wanted));
  IRMapping mapping;
  op.getMask().cloneInto(&attend.getMask(), mapping);
  op.getScore().cloneInto(&attend.getScore(), mapping);
  op.getBounds().cloneInto(&attend.getBounds(), mapping);
  op.getGradient().cloneInto(&attend.getGradient(), mapping);
  ValueRange made = attend.getNewGrads();
  ValueRange byQuery = made.take_front(1), byKeys = made.slice(1, 2);
  Tensors given(movesKeys ? byQuery : byKeys);
  llvm::append_range(given, made.drop_front(3));
  llvm::append_range(given, movesKeys ? byKeys : byQuery);
  return given;
}

/// The gradient in the type of the result.
Value GradientRing::finish(Value gradient, Type element) {
  auto type = cast<RankedTensorType>(gradient.getType());
  if (type.getElementType() == element)
    return gradient;
  return ring::RoundOp::create(builder, loc, type.clone(element), gradient,
                               /*into=*/Value())
      .getRounded();
}

void GradientRing::build() {
  beginProgram();
  auto shard = [&](Value global) { return unshardOf(global).getShard(); };
  Value outGrad = shard(op.getOutGrad()), lse = shard(op.getLse());
  Value lseGrad = op.getLseGrad() ? shard(op.getLseGrad()) : Value();
  auto delta =
      ring::DeltaOp::create(builder, loc, lse.getType(), shard(op.getOut()),
                            outGrad, lseGrad, /*into=*/Value());
  queries = {shard(op.getQuery()), outGrad, lse, delta.getDelta()};
  keys = {shard(op.getKey()), shard(op.getValue())};

  Tensors kept;
  for (Value like : differentiated(movesKeys ? queries : keys, !movesKeys))
    kept.push_back(zero(like));
  for (int64_t n : op.getGradients().value_or(ArrayRef<int64_t>()))
    kept.push_back(zero(op.getScoreCaptures()[n]));
  const Tensors &slice = movesKeys ? keys : queries;
  SmallVector<Type> partials;
  for (Value like : differentiated(slice, movesKeys))
    partials.push_back(gradientType(like));
  using Dims = SmallVector<int64_t>;
  Tensors made = rotate(
      {slice, movesKeys ? Dims{1, 1} : Dims{1, 1, 2, 2},
       extentOf(op, movesKeys), kept, ring::Join::Add, partials,
       movesKeys ? Dims{1, 1} : Dims{1}},
      [&](Value owner, ValueRange shards, ValueRange carried,
          ValueRange fresh) { return attend(owner, shards, carried, fresh); });

  Type element = op.getQuery().getType().getElementType();
  ValueRange stayed = ValueRange(made).take_front(kept.size());
  ValueRange moved = ValueRange(made).drop_front(kept.size());
  ValueRange byQuery = movesKeys ? stayed : moved,
             byKeys = movesKeys ? moved : stayed;
  replace(op.getQueryGrad(), finish(byQuery[0], element));
  replace(op.getKeyGrad(), finish(byKeys[0], element));
  replace(op.getValueGrad(), finish(byKeys[1], element));
  size_t keptGradients = movesKeys ? 1 : 2;
  for (auto [global, table] :
       llvm::zip_equal(op.getCaptureGrads(), stayed.drop_front(keptGradients)))
    global.replaceAllUsesWith(table);
  erase();
}

void burst::buildGradientRing(AttentionBackwardOp op, const Deal &deal,
                              bool movesKeys) {
  GradientRing(op, deal, movesKeys).build();
}
