//===- ReturningRing.cpp - rings of which something comes home ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Ring/ReturningRing.h"

using namespace mlir;
using namespace burst;

/// Sends shards of `owner` to `to`, takes those of `receivedOwner` from `from`,
/// all of it or nothing, and waits.
Tensors ReturningRing::send(ValueRange tensors, ArrayRef<int64_t> dims,
                            Value owner, Value to, Value flag,
                            Value receivedOwner, Value from, int64_t channel) {
  return transfer({tensors, llvm::to_vector(dims), owner, extent, to,
                   receivedOwner, from, channel, flags(flag)});
}

/// Hop t computes the slice of rank - t.
void ReturningRing::hops(Tensors slice, Tensors &kept, Tensors &own) {
  Emit e = emit();
  int64_t parts = deal.parts;
  Value to = neighbour(rank, 1), from = neighbour(rank, parts - 1);
  Value zero = constant(0), one = constant(1), end = constant(parts);
  Value last = constant(parts - 1), no = e.truth(false);
  // Nothing arrives in front of the first hop, but hops take something there.
  Tensors onward = send(own, shareDims, rank, to, no, from, from, 1);
  Tensors home = send(own, shareDims, rank, rank, no, rank, rank, 1);
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

    auto is = [&](arith::CmpIPredicate predicate, Value a, Value b) {
      return e.compare(predicate, a, b);
    };
    using Predicate = arith::CmpIPredicate;
    Value isFirst = is(Predicate::eq, t, zero);
    Value isLater = is(Predicate::ugt, t, one);
    Value goesOn = is(Predicate::ult, t, last);
    Value shareGoesOn = e.both(e.negate(isFirst), goesOn);
    Value goesHome = e.both(e.negate(isFirst), is(Predicate::eq, t, last));
    Value nextOwner = neighbour(owner, parts - 1);
    Tensors nextSlice =
        send(slice, sliceDims, owner, to, goesOn, nextOwner, from, 0);
    // What came home in the hop before, and what the owner computes itself.
    own = join(own, home, rank, flags(no));
    own = join(own, part, rank, flags(isFirst));
    part = join(part, onward, owner, flags(isLater));
    onward = send(part, shareDims, owner, to, shareGoesOn, nextOwner, from, 1);
    // Who has the own slice now is as far ahead as the slice's owner behind.
    Value holder = e.mod(e.add(rank, e.sub(e.add(rank, end), owner)), parts);
    home = send(part, shareDims, owner, owner, goesHome, rank, holder, 1);
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
  own = join(own, home, rank, flags(e.truth(true)));
}

void ReturningRing::run(Tensors slice, Tensors &kept, Tensors &own) {
  if (deal.parts == 1)
    compute(slice, rank, kept, own);
  else
    hops(std::move(slice), kept, own);
}
