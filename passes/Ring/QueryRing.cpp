//===- QueryRing.cpp - queries travel past keys and values ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Ring/ForwardSteps.h"
#include "passes/Ring/ReturningRing.h"

using namespace mlir;
using namespace burst;

namespace {

/// The share of a slice of queries is their softmax state.
class QueryRing final : public ReturningRing {
public:
  QueryRing(AttentionOp op, const Deal &deal)
      : ReturningRing(op, deal,
                      op.getQuery().getDefiningOp<UnshardOp>().getExtent(),
                      /*sliceDims=*/{1}, /*shareDims=*/{1, 2, 2}),
        op(op), steps(op, deal) {}

  void build() override;

private:
  Tensors fresh(ValueRange slice) override {
    return steps.init(builder, slice.front());
  }
  void compute(ValueRange slice, Value owner, Tensors &,
               Tensors &share) override {
    share = steps.attend(builder, slice.front(), owner, steps.key.getShard(),
                         steps.value.getShard(), rank, share);
  }
  Tensors join(ValueRange a, ValueRange b, Value owner,
               const Flags &flags) override;

  AttentionOp op;
  ForwardSteps steps;
};

} // namespace

Tensors QueryRing::join(ValueRange a, ValueRange b, Value owner,
                        const Flags &flags) {
  auto merge = ring::MergeOp::create(builder, loc, a.getTypes(), a[0], a[1],
                                     a[2], b[0], b[1], b[2], owner, extent,
                                     flags.table, flags.turn, layout);
  return Tensors(merge.getResults());
}

void QueryRing::build() {
  beginProgram();
  Tensors kept, state = fresh(steps.query.getShard());
  run({steps.query.getShard()}, kept, state);
  ring::FinalizeOp finalize = steps.finalize(builder, state);
  replace(op.getOut(), finalize.getOut());
  replace(op.getLse(), finalize.getLse());
  erase();
}

std::unique_ptr<RingBuilder> burst::makeQueryRing(AttentionOp op,
                                                  const Deal &deal) {
  return std::make_unique<QueryRing>(op, deal);
}
