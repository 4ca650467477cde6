//===- GradientRing.cpp - the backward pass as a ring ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Ring/ReturningRing.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

static Value extentOf(AttentionBackwardOp op, bool keys) {
  Value tensor = keys ? op.getKey() : op.getQuery();
  return tensor.getDefiningOp<UnshardOp>().getExtent();
}

namespace {

/// The share of a slice are the gradients by it.
class GradientRing final : public ReturningRing {
public:
  GradientRing(AttentionBackwardOp op, const Deal &deal, bool movesKeys)
      : ReturningRing(op, deal, extentOf(op, movesKeys),
                      movesKeys ? Dims{1, 1} : Dims{1, 1, 2, 2},
                      movesKeys ? Dims{1, 1} : Dims{1}),
        op(op), movesKeys(movesKeys) {}

  void build() override;

private:
  using Dims = SmallVector<int64_t>;

  Value zero(Value like);
  Tensors zeros(ValueRange like);
  Tensors gradientsOf(ValueRange slice, bool keys);
  Tensors fresh(ValueRange slice) override {
    return zeros(gradientsOf(slice, movesKeys));
  }
  void compute(ValueRange slice, Value owner, Tensors &kept,
               Tensors &share) override;
  Tensors join(ValueRange a, ValueRange b, Value owner,
               const Flags &flags) override;
  Value finish(Value gradient, Type element);

  AttentionBackwardOp op;
  bool movesKeys;
  Tensors queries, keys; ///< what is dealt as queries are, and as keys
};

} // namespace

Value GradientRing::zero(Value like) {
  auto type = cast<RankedTensorType>(like.getType());
  return ring::ZeroOp::create(builder, loc, type.clone(op.getStateType()), like,
                              /*into=*/Value())
      .getZero();
}

Tensors GradientRing::zeros(ValueRange like) {
  return llvm::map_to_vector(like, [&](Value v) { return zero(v); });
}

/// By what of a slice there are gradients: by keys and values, or by queries.
Tensors GradientRing::gradientsOf(ValueRange slice, bool keys) {
  return Tensors(slice.take_front(keys ? 2 : 1));
}

/// Adds the gradients of a slice and of what stays here.
void GradientRing::compute(ValueRange slice, Value owner, Tensors &kept,
                           Tensors &share) {
  ValueRange q = movesKeys ? ValueRange(queries) : slice;
  ValueRange kv = movesKeys ? slice : ValueRange(keys);
  Value queryOwner = movesKeys ? rank : owner;
  Value keyOwner = movesKeys ? owner : rank;
  size_t keptGradients = movesKeys ? 1 : 2;
  ValueRange here = ValueRange(kept).take_front(keptGradients);
  ValueRange captures = ValueRange(kept).drop_front(keptGradients);
  Tensors grads(movesKeys ? here : ValueRange(share));
  llvm::append_range(grads, movesKeys ? ValueRange(share) : here);
  llvm::append_range(grads, captures);
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
  kept = Tensors(movesKeys ? byQuery : byKeys);
  llvm::append_range(kept, made.drop_front(3));
  share = Tensors(movesKeys ? byKeys : byQuery);
}

Tensors GradientRing::join(ValueRange a, ValueRange b, Value owner,
                           const Flags &flags) {
  Tensors sums;
  for (auto [x, y] : llvm::zip_equal(a, b))
    sums.push_back(ring::AddOp::create(builder, loc, x.getType(), x, y, owner,
                                       extent, flags.table, flags.turn, layout)
                       .getSum());
  return sums;
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

  Tensors kept = zeros(gradientsOf(movesKeys ? queries : keys, !movesKeys));
  for (int64_t n : op.getGradients().value_or(ArrayRef<int64_t>()))
    kept.push_back(zero(op.getScoreCaptures()[n]));
  Tensors slice = movesKeys ? keys : queries, moved = fresh(slice);
  run(slice, kept, moved);

  Type element = op.getQuery().getType().getElementType();
  Tensors byQuery = movesKeys ? kept : moved, byKeys = movesKeys ? moved : kept;
  replace(op.getQueryGrad(), finish(byQuery[0], element));
  replace(op.getKeyGrad(), finish(byKeys[0], element));
  replace(op.getValueGrad(), finish(byKeys[1], element));
  size_t keptGradients = movesKeys ? 1 : 2;
  for (auto [global, table] : llvm::zip_equal(
           op.getCaptureGrads(), ValueRange(kept).drop_front(keptGradients)))
    global.replaceAllUsesWith(table);
  erase();
}

std::unique_ptr<RingBuilder> burst::makeGradientRing(AttentionBackwardOp op,
                                                     const Deal &deal,
                                                     bool movesKeys) {
  return std::make_unique<GradientRing>(op, deal, movesKeys);
}
