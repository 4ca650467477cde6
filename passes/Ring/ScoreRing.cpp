//===- ScoreRing.cpp - scores are stored, then values travel --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RingAttention of Li et al. (Sequence Parallelism, arXiv 2105.13120), section
// 3.2: no online softmax. It is what global attention optimisation is compared
// with.
//
//===----------------------------------------------------------------------===//
#include "passes/Ring/RingBuilder.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

namespace {

class ScoreRing final : public RingBuilder {
public:
  ScoreRing(AttentionOp op, const Deal &deal)
      : RingBuilder(op, deal), op(op), query(unshardOf(op.getQuery())),
        key(unshardOf(op.getKey())), value(unshardOf(op.getValue())) {}

  void build() override;

private:
  /// What is done with the slice of an owner; gives what is carried.
  using Visit = llvm::function_ref<SmallVector<Value>(Value slice, Value owner,
                                                      ValueRange carried)>;
  SmallVector<Value> hops(UnshardOp moved, ValueRange carried, Visit visit);
  Value score(Value key, Value owner, Value scores);
  ring::InitOp init(RankedTensorType out);

  AttentionOp op;
  UnshardOp query, key, value;
};

} // namespace

/// P - 1 times: visit the slice at hand, pass it on, take the next one. Then
/// visit the last.
SmallVector<Value> ScoreRing::hops(UnshardOp moved, ValueRange carried,
                                   Visit visit) {
  if (deal.parts == 1)
    return visit(moved.getShard(), rank, carried);
  Value to = neighbour(rank, 1), from = neighbour(rank, deal.parts - 1);
  SmallVector<Value> inits{moved.getShard(), rank};
  llvm::append_range(inits, carried);
  auto loop = scf::ForOp::create(builder, loc, constant(0),
                                 constant(deal.parts - 1), constant(1), inits);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    ValueRange args = loop.getRegionIterArgs();
    SmallVector<Value> next = visit(args[0], args[1], args.drop_front(2));
    Value nextOwner = neighbour(args[1], deal.parts - 1);
    Type slice = args[0].getType();
    auto channel =
        ring::ChannelAttr::get(op.getContext(), op.getSequence()->getGrid(), 0);
    auto start = ring::StartOp::create(
        builder, loc, ring::TokenType::get(op.getContext(), slice), args[0],
        args[1], moved.getExtent(), to, nextOwner, from, /*segments=*/Value(),
        /*turn=*/Value(), /*into=*/ValueRange(), ArrayRef<int64_t>{1}, layout,
        channel);
    auto wait = ring::WaitOp::create(builder, loc, slice, start.getToken());
    SmallVector<Value> yields{wait.getResult(0), nextOwner};
    llvm::append_range(yields, next);
    scf::YieldOp::create(builder, loc, yields);
  }
  ValueRange results = loop.getResults();
  return visit(results[0], results[1], results.drop_front(2));
}

Value ScoreRing::score(Value key, Value owner, Value scores) {
  auto score = ring::ScoreOp::create(
      builder, loc, scores.getType(), query.getShard(), rank, query.getExtent(),
      key, owner, this->key.getExtent(), scores,
      /*pairs=*/Value(), op.getMaskCaptures(), op.getScoreCaptures(), layout,
      layout, builder.getF64FloatAttr(op.getScaleOrDefault()));
  IRMapping mapping;
  op.getMask().cloneInto(&score.getMask(), mapping);
  op.getScore().cloneInto(&score.getScore(), mapping);
  op.getBounds().cloneInto(&score.getBounds(), mapping);
  return score.getNewScores();
}

ring::InitOp ScoreRing::init(RankedTensorType out) {
  RankedTensorType shard = shardType(out, 1, deal);
  auto rows = RankedTensorType::get(
      {shard.getDimSize(0), shard.getDimSize(2), shard.getDimSize(1)},
      op.getStateType());
  return ring::InitOp::create(
      builder, loc, TypeRange{shard.clone(op.getStateType()), rows, rows},
      query.getShard(), /*into=*/ValueRange());
}

void ScoreRing::build() {
  beginProgram();
  auto shard = cast<RankedTensorType>(query.getShard().getType());
  auto stored = RankedTensorType::get(
      {shard.getDimSize(0), shard.getDimSize(2), shard.getDimSize(1),
       cast<RankedTensorType>(op.getKey().getType()).getDimSize(1)},
      op.getStateType());
  Value scores = ring::ScoresOp::create(builder, loc, stored, query.getShard(),
                                        key.getExtent(), /*into=*/Value())
                     .getScores();
  scores = hops(key, scores, [&](Value key, Value owner, ValueRange carried) {
             return SmallVector<Value>{score(key, owner, carried[0])};
           }).front();
  auto out = cast<RankedTensorType>(op.getOut().getType());
  ring::InitOp state = init(out);
  SmallVector<Type> types{stored};
  llvm::append_range(types, state.getResultTypes());
  auto softmax = ring::SoftmaxOp::create(
      builder, loc, types, scores, state.getO(), state.getM(), state.getL());
  auto sums = hops(value, softmax.getResults().drop_front(),
                   [&](Value value, Value owner, ValueRange carried) {
                     auto weigh = ring::WeighOp::create(
                         builder, loc, TypeRange(carried), softmax.getWeights(),
                         value, owner, key.getExtent(), carried[0], carried[1],
                         carried[2], layout);
                     return SmallVector<Value>(weigh.getResults());
                   });
  auto finalize = ring::FinalizeOp::create(
      builder, loc, TypeRange{shardType(out, 1, deal), sums[1].getType()},
      sums[0], sums[1], sums[2], /*into=*/ValueRange());
  replace(op.getOut(), finalize.getOut());
  replace(op.getLse(), finalize.getLse());
  erase();
}

std::unique_ptr<RingBuilder> burst::makeScoreRing(AttentionOp op,
                                                  const Deal &deal) {
  return std::make_unique<ScoreRing>(op, deal);
}
