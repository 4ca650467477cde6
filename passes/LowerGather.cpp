//===- LowerGather.cpp - transfers of what is gathered --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Emit.h"
#include "passes/Passes.h"
#include "passes/Transfers/Transfers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace burst {
#define GEN_PASS_DEF_LOWERGATHERPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {
class GatherLowering {
public:
  explicit GatherLowering(ring::GatherOp op)
      : op(op), builder(op), loc(op.getLoc()), e{builder, loc},
        parts(op.getLayout().getParts()), rank(op.getRank()),
        wanted(wantedPartials(op.getPartialResults(), op.getJoin())) {}

  void run();

private:
  Values gathered();
  Values region(ValueRange tensors);
  Values returned(ValueRange partials, Value behind, Value ahead,
                  Value distance);
  Values joined(ValueRange partials);
  Values join(ValueRange sum, ValueRange part, Value distance);

  ring::GatherOp op;
  OpBuilder builder;
  Location loc;
  Emit e;
  int64_t parts;
  Value rank;
  SmallVector<size_t> wanted; ///< the partial results that are used
};
} // namespace

/// The shards of all ranks. One rank has all.
Values GatherLowering::gathered() {
  if (parts > 1)
    return allGather(builder, loc, op.getTensors(), op.getBrought().getTypes(),
                     op.getDims(), {op.getLayout(), rank, op.getExtent()},
                     op.getChannel(), op.getSegments());
  Values own;
  for (auto [tensor, all] : llvm::zip_equal(op.getTensors(), op.getBrought()))
    own.push_back(
        tensor.getType() == all.getType()
            ? Value(tensor)
            : tensor::CastOp::create(builder, loc, all.getType(), tensor));
  return own;
}

/// What the region makes of gathered tensors and of fresh partial results.
Values GatherLowering::region(ValueRange tensors) {
  Values arguments(tensors);
  if (op.getJoin())
    llvm::append_range(arguments,
                       freshPartials(builder, loc, *op.getJoin(), tensors,
                                     op.getPartials().getTypes()));
  return inlineRegion(builder, op.getBody(), arguments);
}

/// Sends what is of the shards of the rank that is so far behind to that, and
/// takes what the one as far ahead has of the own shards.
Values GatherLowering::returned(ValueRange partials, Value behind, Value ahead,
                                Value distance) {
  Flags flags;
  if (op.getSegments())
    flags = {op.getSegments(), distance};
  SmallVector<Type> types =
      pickWanted(op.getPartialResults().getTypes(), wanted);
  return shift(builder, loc, partials, types,
               pickWanted(*op.getPartialDims(), wanted),
               {op.getLayout().ofAll(), behind, op.getExtent()},
               {behind, rank, ahead}, op.getChannel(), /*offset=*/1, flags);
}

/// Joined with what came from the rank at this distance.
Values GatherLowering::join(ValueRange sum, ValueRange part, Value distance) {
  Flags flags;
  if (op.getSegments())
    flags = {op.getSegments(), distance};
  return joinPartials(builder, loc, *op.getJoin(), sum, part,
                      {op.getLayout(), rank, op.getExtent()}, flags);
}

/// The wanted partial results by the own shards, of all ranks: the own one
/// first, then those of the ranks ahead in the order of their distance.
Values GatherLowering::joined(ValueRange partials) {
  TypeRange types = op.getPartialResults().getTypes();
  if (parts == 1) {
    Values own;
    for (auto [partial, type] :
         llvm::zip_equal(partials, pickWanted(types, wanted)))
      own.push_back(partial.getType() == type
                        ? Value(partial)
                        : tensor::CastOp::create(builder, loc, type, partial));
    return own;
  }
  Values inits = pickWanted(
      freshPartials(builder, loc, *op.getJoin(), op.getTensors(), types),
      wanted);
  Value one = e.index(1);
  llvm::append_range(inits, returned(partials, rank, rank, e.index(0)));
  size_t count = wanted.size();
  auto loop = scf::ForOp::create(builder, loc, one, e.index(parts), one, inits);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    ValueRange args = loop.getRegionIterArgs();
    Value distance = loop.getInductionVar();
    Values yields = join(args.take_front(count), args.drop_front(count),
                         e.sub(distance, one));
    Value behind = e.mod(e.sub(e.add(rank, e.index(parts)), distance), parts);
    Value ahead = e.mod(e.add(rank, distance), parts);
    llvm::append_range(yields, returned(partials, behind, ahead, distance));
    scf::YieldOp::create(builder, loc, yields);
  }
  ValueRange results = loop.getResults();
  return join(results.take_front(count), results.drop_front(count),
              e.index(parts - 1));
}

void GatherLowering::run() {
  Values results;
  if (!op.use_empty()) // else nothing travels
    results = region(gathered());
  if (!wanted.empty()) {
    size_t first = results.size() - op.getNumPartials();
    Values partials = pickWanted(ValueRange(results).drop_front(first), wanted);
    for (auto [number, value] : llvm::zip_equal(wanted, joined(partials)))
      results[first + number] = value;
  }
  for (auto [result, value] : llvm::zip(op.getResults(), results))
    if (!result.use_empty()) // what is not has the types of all
      result.replaceAllUsesWith(value);
  op.erase();
}

namespace {
struct LowerGather : burst::impl::LowerGatherPassBase<LowerGather> {
  void runOnOperation() override {
    SmallVector<ring::GatherOp> gathers;
    getOperation().walk([&](ring::GatherOp op) { gathers.push_back(op); });
    for (ring::GatherOp op : gathers)
      GatherLowering(op).run();
  }
};
} // namespace
