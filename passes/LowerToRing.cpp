//===- LowerToRing.cpp - keys and values travel round a ring --------------===//
#include "passes/Passes.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace burst {
#define GEN_PASS_DEF_LOWERTORINGPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {

/// Builds the ring of one attention.
class RingBuilder {
public:
  RingBuilder(AttentionOp op, Deal deal)
      : op(op), deal(deal), builder(op), loc(op.getLoc()),
        layout(ring::LayoutAttr::get(op.getContext(), deal)) {}

  void build();

private:
  struct State {
    Value o, m, l;
  };

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value neighbour(Value rank, int64_t offset);
  State init(RankedTensorType out);
  State attend(OpBuilder &at, Value key, Value value, Value owner, State state);
  State hops(State state);
  void replaceResults(State state);

  AttentionOp op;
  Deal deal;
  OpBuilder builder;
  Location loc;
  ring::LayoutAttr layout;
  UnshardOp query, key, value;
  Value rank;
};

} // namespace

/// (rank + offset) mod parts.
Value RingBuilder::neighbour(Value rank, int64_t offset) {
  Value sum = arith::AddIOp::create(builder, loc, rank, constant(offset));
  return arith::RemUIOp::create(builder, loc, sum, constant(deal.parts));
}

RingBuilder::State RingBuilder::init(RankedTensorType out) {
  RankedTensorType shard = shardType(out, 1, deal);
  auto o = shard.clone(op.getStateType());
  auto m = RankedTensorType::get(
      {shard.getDimSize(0), shard.getDimSize(2), shard.getDimSize(1)},
      op.getStateType());
  auto state = ring::InitOp::create(builder, loc, TypeRange{o, m, m},
                                    query.getShard(), /*into=*/ValueRange());
  return {state.getO(), state.getM(), state.getL()};
}

RingBuilder::State RingBuilder::attend(OpBuilder &at, Value key, Value value,
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
RingBuilder::State RingBuilder::hops(State state) {
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

void RingBuilder::replaceResults(State state) {
  auto out = shardType(cast<RankedTensorType>(op.getOut().getType()), 1, deal);
  auto finalize = ring::FinalizeOp::create(
      builder, loc, TypeRange{out, state.m.getType()}, state.o, state.m,
      state.l, /*into=*/ValueRange());
  for (auto [global, shard] :
       llvm::zip_equal(op.getResults(), finalize.getResults()))
    for (Operation *user : llvm::make_early_inc_range(global.getUsers())) {
      cast<ShardOp>(user).getResult().replaceAllUsesWith(shard);
      user->erase();
    }
}

void RingBuilder::build() {
  query = op.getQuery().getDefiningOp<UnshardOp>();
  key = op.getKey().getDefiningOp<UnshardOp>();
  value = op.getValue().getDefiningOp<UnshardOp>();
  rank = shard::ProcessMultiIndexOp::create(
             builder, loc, op.getSequence()->getGrid().getValue(),
             ArrayRef<shard::GridAxis>{0})
             .getResult()
             .front();
  State state = init(cast<RankedTensorType>(op.getOut().getType()));
  replaceResults(hops(state));
  op.erase();
  // One argument may be several of them.
  llvm::SmallSetVector<Operation *, 3> unshards;
  unshards.insert_range(ArrayRef<Operation *>{query, key, value});
  for (Operation *unshard : unshards)
    if (unshard->use_empty())
      unshard->erase();
}

namespace {
struct LowerToRing : burst::impl::LowerToRingPassBase<LowerToRing> {
  void runOnOperation() override {
    SmallVector<AttentionOp> attentions;
    getOperation().walk([&](AttentionOp op) { attentions.push_back(op); });
    for (AttentionOp op : attentions)
      if (failed(lower(op)))
        return signalPassFailure();
  }

  /// Between burst.unshard and burst.shard of its own sequence.
  static bool isPartitioned(AttentionOp op) {
    if (!op.getSequence())
      return false;
    for (Value value : {op.getQuery(), op.getKey(), op.getValue()}) {
      auto unshard = value.getDefiningOp<UnshardOp>();
      if (!unshard || unshard.getSequence() != *op.getSequence())
        return false;
    }
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      auto shard = dyn_cast<ShardOp>(user);
      return shard && shard.getSequence() == *op.getSequence();
    });
  }

  static LogicalResult lower(AttentionOp op) {
    StrategyAttr strategy = op.getStrategyAttr();
    if (strategy && strategy.getValue() != Strategy::RingKV)
      return op.emitOpError("pins the strategy ")
             << stringifyStrategy(strategy.getValue())
             << ", which is not supported yet: leave it out, or pin ring_kv";
    if (op.getMaskNamesAttr() || op.getScoreNamesAttr())
      return op.emitOpError("has named masks or scores; run "
                            "burst-expand-names first");
    if (!isPartitioned(op))
      return op.emitOpError("is not partitioned; run burst-partition first");
    FailureOr<Deal> deal = resolveDeal(op, *op.getSequence());
    if (failed(deal))
      return failure();
    RingBuilder(op, *deal).build();
    return success();
  }
};
} // namespace
