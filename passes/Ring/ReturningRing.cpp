//===- ReturningRing.cpp - rings of which something comes home ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Ring/ReturningRing.h"

using namespace mlir;
using namespace burst;

/// Sends shards of `owner` to `to`, takes those of `receivedOwner` from `from`,
/// and waits.
Tensors ReturningRing::send(ValueRange tensors, ArrayRef<int64_t> dims,
                            Value owner, Value to, Value receivedOwner,
                            Value from, int64_t channel, const Flags &flags) {
  return transfer({tensors, llvm::to_vector(dims), owner, extent, to,
                   receivedOwner, from, channel, flags});
}

/// Hop t computes the slice of rank - t.
void ReturningRing::hops(Tensors slice, Tensors &kept, Tensors &own) {
  Emit e = emit();
  int64_t parts = deal.parts;
  Value to = neighbour(rank, 1), from = neighbour(rank, parts - 1);
  Value zero = constant(0), one = constant(1), end = constant(parts);
  using Predicate = arith::CmpIPredicate;
  // What arrives for turn t: the slice in front of all but the first, of which
  // the rank has its own; its share from turn 2 on, since the owner keeps what
  // it computes itself; and at home for the end.
  Value sliceArrives = turnTable(parts + 1, [&](Emit e, Value t) {
    return e.both(e.compare(Predicate::ne, t, e.index(0)),
                  e.compare(Predicate::ult, t, e.index(parts)));
  });
  Value shareArrives = turnTable(parts + 1, [&](Emit e, Value t) {
    return e.both(e.compare(Predicate::ugt, t, e.index(1)),
                  e.compare(Predicate::ult, t, e.index(parts)));
  });
  Value homeArrives = turnTable(parts + 1, [&](Emit e, Value t) {
    return e.compare(Predicate::eq, t, e.index(parts));
  });
  Value isOwn = turnTable(parts, [&](Emit e, Value t) {
    return e.compare(Predicate::eq, t, e.index(0));
  });
  // Nothing arrives in front of the first hop, but hops take something there.
  Flags none{
      arith::ConstantOp::create(
          builder, loc,
          DenseElementsAttr::get(
              RankedTensorType::get({1, 1, 1}, builder.getI1Type()), false)),
      zero};
  Tensors onward = send(own, shareDims, rank, to, from, from, 1, none);
  Tensors home = send(own, shareDims, rank, rank, rank, rank, 1, none);
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
    Tensors part = fresh(slice);
    compute(slice, owner, kept, part);

    Value nextOwner = neighbour(owner, parts - 1), next = e.add(t, one);
    Tensors nextSlice = send(slice, sliceDims, owner, to, nextOwner, from, 0,
                             {sliceArrives, next});
    // What came home in the hop before, and what the owner computes itself.
    own = join(own, home, rank, {homeArrives, t});
    own = join(own, part, rank, {isOwn, t});
    part = join(part, onward, owner, {shareArrives, t});
    onward = send(part, shareDims, owner, to, nextOwner, from, 1,
                  {shareArrives, next});
    // Who has the own slice now is as far ahead as the slice's owner behind.
    Value holder = e.mod(e.add(rank, e.sub(e.add(rank, end), owner)), parts);
    home = send(part, shareDims, owner, owner, rank, holder, 1,
                {homeArrives, next});
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
  own = join(own, home, rank, {homeArrives, end});
}

void ReturningRing::run(Tensors slice, Tensors &kept, Tensors &own) {
  if (deal.parts == 1)
    compute(slice, rank, kept, own);
  else
    hops(std::move(slice), kept, own);
}
