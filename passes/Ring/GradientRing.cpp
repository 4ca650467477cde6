//===- GradientRing.cpp - the backward pass as a ring ---------------------===//
#include "passes/Ring/RingBuilder.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

namespace {

/// A slice travels past what stays, and gradients by it go along, one hop
/// behind: what a rank computes is added to what the ranks before it have, and
/// passed on, while the rank computes the next slice. The last rank sends the
/// sum home; what the owner itself computed has stayed there. So gradients take
/// as many hops as their slice.
///
/// All hops are turns of one loop: flags say what travels in which.
class GradientRing final : public RingBuilder {
public:
  GradientRing(AttentionBackwardOp op, const Deal &deal, bool movesKeys);

  void build() override;

private:
  using Tensors = SmallVector<Value>;

  Value extentOf(bool keys) {
    return unshardOf(keys ? op.getKey() : op.getQuery()).getExtent();
  }
  Value zero(OpBuilder &at, Value like);
  Tensors zeros(OpBuilder &at, ValueRange like);
  Tensors gradientsOf(ValueRange slice, bool keys);
  std::pair<Tensors, Tensors> attend(ValueRange slice, Value owner,
                                     ValueRange kept, ValueRange moved);
  Tensors transfer(ValueRange tensors, ArrayRef<int64_t> dims, Value owner,
                   Value to, Value flag, Value receivedOwner, Value from,
                   int64_t channel);
  Tensors add(ValueRange a, ValueRange b, Value owner, Value flag);
  void loop(Tensors &kept, Tensors &own);
  Value finish(Value gradient, Type element);

  SmallVector<Value> flags(Value flag) {
    return SmallVector<Value>(layout.getNumSegments(), flag);
  }

  AttentionBackwardOp op;
  bool movesKeys;
  Tensors queries, keys; ///< what is dealt as queries are, and as keys
  Value movedExtent;
};

} // namespace

GradientRing::GradientRing(AttentionBackwardOp op, const Deal &deal,
                           bool movesKeys)
    : RingBuilder(op, deal), op(op), movesKeys(movesKeys),
      movedExtent(extentOf(movesKeys)) {}

Value GradientRing::zero(OpBuilder &at, Value like) {
  auto type = cast<RankedTensorType>(like.getType());
  return ring::ZeroOp::create(at, loc, type.clone(op.getStateType()), like,
                              /*into=*/Value())
      .getZero();
}

GradientRing::Tensors GradientRing::zeros(OpBuilder &at, ValueRange like) {
  return llvm::map_to_vector(like, [&](Value v) { return zero(at, v); });
}

/// By what of a slice there are gradients: by keys and values, or by queries.
GradientRing::Tensors GradientRing::gradientsOf(ValueRange slice, bool keys) {
  return Tensors(slice.take_front(keys ? 2 : 1));
}

/// Adds the gradients of a slice and of what stays here.
std::pair<GradientRing::Tensors, GradientRing::Tensors>
GradientRing::attend(ValueRange slice, Value owner, ValueRange kept,
                     ValueRange moved) {
  ValueRange q = movesKeys ? ValueRange(queries) : slice;
  ValueRange kv = movesKeys ? slice : ValueRange(keys);
  Value queryOwner = movesKeys ? rank : owner;
  Value keyOwner = movesKeys ? owner : rank;
  size_t keptGradients = movesKeys ? 1 : 2;
  ValueRange keptOfSlice = kept.take_front(keptGradients);
  ValueRange captures = kept.drop_front(keptGradients);
  Tensors grads(movesKeys ? keptOfSlice : moved);
  llvm::append_range(grads, movesKeys ? moved : keptOfSlice);
  llvm::append_range(grads, captures);
  ArrayRef<int64_t> wanted = op.getGradients().value_or(ArrayRef<int64_t>());
  auto attend = ring::AttendGradOp::create(
      builder, loc, ValueRange(grads).getTypes(), q[0], q[1], q[2], q[3],
      queryOwner, extentOf(false), kv[0], kv[1], keyOwner, extentOf(true),
      grads, /*pairs=*/ValueRange(), op.getMaskCaptures(),
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
  Tensors newKept(movesKeys ? byQuery : byKeys);
  llvm::append_range(newKept, made.drop_front(3));
  return {newKept, Tensors(movesKeys ? byKeys : byQuery)};
}

/// Sends shards of `owner` to `to`, takes those of `receivedOwner` from `from`,
/// all of it or nothing, and waits.
GradientRing::Tensors GradientRing::transfer(ValueRange tensors,
                                             ArrayRef<int64_t> dims,
                                             Value owner, Value to, Value flag,
                                             Value receivedOwner, Value from,
                                             int64_t channel) {
  auto start = ring::StartOp::create(
      builder, loc,
      ring::TokenType::get(op.getContext(),
                           llvm::to_vector(tensors.getTypes())),
      tensors, owner, movedExtent, to, flags(flag), receivedOwner, from,
      flags(flag), /*into=*/ValueRange(), dims, layout,
      ring::ChannelAttr::get(op.getContext(), op.getSequence()->getGrid(),
                             channel));
  auto wait =
      ring::WaitOp::create(builder, loc, tensors.getTypes(), start.getToken());
  return Tensors(wait.getTensors());
}

GradientRing::Tensors GradientRing::add(ValueRange a, ValueRange b, Value owner,
                                        Value flag) {
  Tensors sums;
  for (auto [x, y] : llvm::zip_equal(a, b))
    sums.push_back(ring::AddOp::create(builder, loc, x.getType(), x, y, owner,
                                       movedExtent, flags(flag), layout)
                       .getSum());
  return sums;
}

/// Of all hops; hop t computes the slice of rank - t.
void GradientRing::loop(Tensors &kept, Tensors &own) {
  Emit e = emit();
  Tensors slice = movesKeys ? keys : queries;
  SmallVector<int64_t> dims{1, 1, 2, 2}, gradientDims{1, 1};
  dims.resize(slice.size());
  gradientDims.resize(own.size());
  int64_t parts = deal.parts;
  Value to = neighbour(rank, 1), from = neighbour(rank, parts - 1);
  Value zero = constant(0), one = constant(1), end = constant(parts);
  Value last = constant(parts - 1), no = e.truth(false);
  // Nothing arrives in front of the first hop, but hops take something there.
  Tensors onward = transfer(own, gradientDims, rank, to, no, from, from, 1);
  Tensors home = transfer(own, gradientDims, rank, rank, no, rank, rank, 1);
  Tensors inits(slice);
  inits.push_back(rank);
  for (const Tensors &part : {kept, own, onward, home})
    llvm::append_range(inits, part);
  auto loop = scf::ForOp::create(builder, loc, zero, end, one, inits);
  auto take = [](ValueRange &values, size_t count) {
    Tensors taken(values.take_front(count));
    values = values.drop_front(count);
    return taken;
  };
  size_t numSlice = slice.size(), numKept = kept.size(), numOwn = own.size();
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value t = loop.getInductionVar();
    ValueRange args = loop.getRegionIterArgs();
    slice = take(args, numSlice);
    Value owner = take(args, 1).front();
    kept = take(args, numKept);
    own = take(args, numOwn);
    onward = take(args, numOwn);
    home = take(args, numOwn);
    Tensors part = zeros(builder, gradientsOf(slice, movesKeys));
    std::tie(kept, part) = attend(slice, owner, kept, part);

    auto is = [&](arith::CmpIPredicate predicate, Value a, Value b) {
      return e.compare(predicate, a, b);
    };
    using Predicate = arith::CmpIPredicate;
    Value isFirst = is(Predicate::eq, t, zero);
    Value isLater = is(Predicate::ugt, t, one);
    Value goesOn = is(Predicate::ult, t, last);
    Value gradientGoesOn = e.both(e.negate(isFirst), goesOn);
    Value goesHome = e.both(e.negate(isFirst), is(Predicate::eq, t, last));
    Value nextOwner = neighbour(owner, parts - 1);
    Tensors nextSlice =
        transfer(slice, dims, owner, to, goesOn, nextOwner, from, 0);
    // What came home in the hop before, and what the owner computes itself.
    own = add(own, home, rank, no);
    own = add(own, part, rank, isFirst);
    part = add(part, onward, owner, isLater);
    onward = transfer(part, gradientDims, owner, to, gradientGoesOn, nextOwner,
                      from, 1);
    // Who has the own slice now is as far ahead as the slice's owner behind.
    Value holder = e.mod(e.add(rank, e.sub(e.add(rank, end), owner)), parts);
    home =
        transfer(part, gradientDims, owner, owner, goesHome, rank, holder, 1);
    Tensors yields(nextSlice);
    yields.push_back(nextOwner);
    for (const Tensors &carried : {kept, own, onward, home})
      llvm::append_range(yields, carried);
    scf::YieldOp::create(builder, loc, yields);
  }
  ValueRange results = loop.getResults();
  results = results.drop_front(numSlice + 1);
  kept = take(results, numKept);
  own = take(results, numOwn);
  home = Tensors(results.drop_front(numOwn));
  own = add(own, home, rank, e.truth(true));
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

  Tensors kept =
      zeros(builder, gradientsOf(movesKeys ? queries : keys, !movesKeys));
  for (int64_t n : op.getGradients().value_or(ArrayRef<int64_t>()))
    kept.push_back(zero(builder, op.getScoreCaptures()[n]));
  Tensors moved =
      zeros(builder, gradientsOf(movesKeys ? keys : queries, movesKeys));
  if (deal.parts == 1)
    std::tie(kept, moved) =
        attend(movesKeys ? keys : queries, rank, kept, moved);
  else
    loop(kept, moved);

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
