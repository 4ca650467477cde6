//===- ForwardSteps.h - what rings of the forward pass do -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_STRATEGIES_RING_FORWARDSTEPS_H
#define BURST_PASSES_STRATEGIES_RING_FORWARDSTEPS_H

#include "passes/Strategies/ProgramBuilder.h"

namespace burst {

/// The steps of a softmax state, which is a list (o, m, l).
class ForwardSteps {
public:
  ForwardSteps(AttentionOp op, const Deal &deal)
      : query(op.getQuery().getDefiningOp<UnshardOp>()),
        key(op.getKey().getDefiningOp<UnshardOp>()),
        value(op.getValue().getDefiningOp<UnshardOp>()), op(op), deal(deal) {}

  llvm::SmallVector<mlir::Type> stateTypes();
  Tensors init(mlir::OpBuilder &builder, mlir::Value query);
  Tensors attend(mlir::OpBuilder &builder, mlir::Value query,
                 mlir::Value queryOwner, mlir::Value key, mlir::Value value,
                 mlir::Value keyOwner, mlir::ValueRange state);
  ring::FinalizeOp finalize(mlir::OpBuilder &builder, mlir::ValueRange state);

  UnshardOp query, key, value; ///< what brings them

private:
  AttentionOp op;
  Deal deal;
};

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_RING_FORWARDSTEPS_H
