//===- KeyRing.cpp - keys and values travel past queries ------------------===//
#include "passes/Ring/RingBuilder.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

namespace {

class KeyRing final : public RingBuilder {
public:
  KeyRing(AttentionOp op, const Deal &deal)
      : RingBuilder(op, deal), op(op), query(unshardOf(op.getQuery())),
        key(unshardOf(op.getKey())), value(unshardOf(op.getValue())) {}

  void build() override;

private:
  struct State {
    Value o, m, l;
  };

  State init(RankedTensorType out);
  State attend(OpBuilder &at, Value key, Value value, Value owner, State state);
  State hops(State state);

  AttentionOp op;
  UnshardOp query, key, value;
};

} // namespace

KeyRing::State KeyRing::init(RankedTensorType out) {
  RankedTensorType shard = shardType(out, 1, deal);
  auto o = shard.clone(op.getStateType());
  auto m = RankedTensorType::get(
      {shard.getDimSize(0), shard.getDimSize(2), shard.getDimSize(1)},
      op.getStateType());
  auto state = ring::InitOp::create(builder, loc, TypeRange{o, m, m},
                                    query.getShard(), /*into=*/ValueRange());
  return {state.getO(), state.getM(), state.getL()};
}

KeyRing::State KeyRing::attend(OpBuilder &at, Value key, Value value,
                               Value owner, State state) {
  auto attend = ring::AttendOp::create(
      at, loc, state.o.getType(), state.m.getType(), state.l.getType(),
      query.getShard(), rank, query.getExtent(), key, value, owner,
      this->key.getExtent(), state.o, state.m, state.l, /*pairs=*/ValueRange(),
      op.getMaskCaptures(), op.getScoreCaptures(), layout, layout,
      builder.getF64FloatAttr(op.getScaleOrDefault()));
  IRMapping mapping;
  op.getMask().cloneInto(&attend.getMask(), mapping);
  op.getScore().cloneInto(&attend.getScore(), mapping);
  op.getBounds().cloneInto(&attend.getBounds(), mapping);
  return {attend.getNewO(), attend.getNewM(), attend.getNewL()};
}

/// P - 1 times: attend the slice at hand, pass it on, take the next one. Then
/// attend the last.
KeyRing::State KeyRing::hops(State state) {
  if (deal.parts == 1)
    return attend(builder, key.getShard(), value.getShard(), rank, state);
  Value to = neighbour(rank, 1), from = neighbour(rank, deal.parts - 1);
  Value zero = constant(0), one = constant(1), last = constant(deal.parts - 1);
  auto loop = scf::ForOp::create(builder, loc, zero, last, one,
                                 ValueRange{key.getShard(), value.getShard(),
                                            rank, state.o, state.m, state.l});
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    ValueRange args = loop.getRegionIterArgs();
    Value owner = args[2];
    State next =
        attend(builder, args[0], args[1], owner, {args[3], args[4], args[5]});
    Value nextOwner = neighbour(owner, deal.parts - 1);
    SmallVector<Type> slice{args[0].getType(), args[1].getType()};
    auto channel =
        ring::ChannelAttr::get(op.getContext(), op.getSequence()->getGrid(), 0);
    auto start = ring::StartOp::create(
        builder, loc, ring::TokenType::get(op.getContext(), slice),
        args.take_front(2), owner, key.getExtent(), to, ValueRange(), nextOwner,
        from, ValueRange(), /*into=*/ValueRange(), ArrayRef<int64_t>{1, 1},
        layout, channel);
    auto wait = ring::WaitOp::create(builder, loc, slice, start.getToken());
    scf::YieldOp::create(builder, loc,
                         ValueRange{wait.getResult(0), wait.getResult(1),
                                    nextOwner, next.o, next.m, next.l});
  }
  ValueRange results = loop.getResults();
  return attend(builder, results[0], results[1], results[2],
                {results[3], results[4], results[5]});
}

void KeyRing::build() {
  beginProgram();
  auto out = shardType(cast<RankedTensorType>(op.getOut().getType()), 1, deal);
  State state = hops(init(cast<RankedTensorType>(op.getOut().getType())));
  auto finalize = ring::FinalizeOp::create(
      builder, loc, TypeRange{out, state.m.getType()}, state.o, state.m,
      state.l, /*into=*/ValueRange());
  replace(op.getOut(), finalize.getOut());
  replace(op.getLse(), finalize.getLse());
  erase();
}

std::unique_ptr<RingBuilder> burst::makeKeyRing(AttentionOp op,
                                                const Deal &deal) {
  return std::make_unique<KeyRing>(op, deal);
}
