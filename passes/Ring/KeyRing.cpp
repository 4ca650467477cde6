//===- KeyRing.cpp - keys and values travel past queries ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Ring/ForwardSteps.h"

using namespace mlir;
using namespace burst;

namespace {

class KeyRing final : public RingBuilder {
public:
  KeyRing(AttentionOp op, const Deal &deal)
      : RingBuilder(op, deal), op(op), steps(op, deal) {}

  void build() override;

private:
  Tensors attend(Value key, Value value, Value owner, ValueRange state) {
    return steps.attend(builder, steps.query.getShard(), rank, key, value,
                        owner, state);
  }
  Tensors hops(Tensors state);

  AttentionOp op;
  ForwardSteps steps;
};

} // namespace

/// P - 1 times: attend the slice at hand, pass it on, take the next one. Then
/// attend the last.
Tensors KeyRing::hops(Tensors state) {
  Value key = steps.key.getShard(), value = steps.value.getShard();
  if (deal.parts == 1)
    return attend(key, value, rank, state);
  Value to = neighbour(rank, 1), from = neighbour(rank, deal.parts - 1);
  Value zero = constant(0), one = constant(1), last = constant(deal.parts - 1);
  auto loop = scf::ForOp::create(
      builder, loc, zero, last, one,
      ValueRange{key, value, rank, state[0], state[1], state[2]});
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    ValueRange args = loop.getRegionIterArgs();
    Value owner = args[2];
    Tensors next = attend(args[0], args[1], owner, args.drop_front(3));
    Value nextOwner = neighbour(owner, deal.parts - 1);
    Tensors yields = transfer({args.take_front(2),
                               {1, 1},
                               owner,
                               steps.key.getExtent(),
                               to,
                               nextOwner,
                               from,
                               /*channel=*/0});
    yields.push_back(nextOwner);
    llvm::append_range(yields, next);
    scf::YieldOp::create(builder, loc, yields);
  }
  ValueRange results = loop.getResults();
  return attend(results[0], results[1], results[2], results.drop_front(3));
}

void KeyRing::build() {
  beginProgram();
  Tensors state = hops(steps.init(builder, steps.query.getShard()));
  ring::FinalizeOp finalize = steps.finalize(builder, state);
  replace(op.getOut(), finalize.getOut());
  replace(op.getLse(), finalize.getLse());
  erase();
}

std::unique_ptr<RingBuilder> burst::makeKeyRing(AttentionOp op,
                                                const Deal &deal) {
  return std::make_unique<KeyRing>(op, deal);
}
