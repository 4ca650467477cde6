//===- BackwardProgram.h - a rank's program of a backward pass --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_STRATEGIES_BACKWARDPROGRAM_H
#define BURST_PASSES_STRATEGIES_BACKWARDPROGRAM_H

#include "passes/Strategies/ProgramBuilder.h"

namespace burst {

/// What strategies build a backward pass of: steps, with the regions of the
/// attention.
class BackwardProgram : public ProgramBuilder {
public:
  BackwardProgram(AttentionBackwardOp op, const Layout &layout)
      : ProgramBuilder(op, layout), op(op) {}

protected:
  /// Makes `rank`, delta, and what is laid out as queries and as keys are.
  void beginBackward();
  /// The type of a gradient by what has the type of `like`.
  mlir::Type gradientType(mlir::Type like);
  mlir::Value zero(mlir::Value like);
  /// Those by the score's tables that are wanted, to which nothing was added.
  Tensors zeroTables();
  /// Adds to the gradients, by queries, keys, values and tables.
  Tensors attend(const Shards &queries, const Shards &keys,
                 mlir::ValueRange grads);
  /// The gradients, as attend gives them, become the results, and the attention
  /// is erased.
  void finish(mlir::ValueRange grads);

  /// (query, outGrad, lse, delta) and (key, value) of this rank.
  Shards ownQueries() { return {queries, rank, layout}; }
  Shards ownKeys() { return {keys, rank, layout}; }
  mlir::Value queryExtent();
  mlir::Value keyExtent();

  AttentionBackwardOp op;

private:
  mlir::Value round(mlir::Value gradient, mlir::Value global);

  Tensors queries, keys;
};

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_BACKWARDPROGRAM_H
