//===- ForwardProgram.h - a rank's program of a forward pass ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_STRATEGIES_FORWARDPROGRAM_H
#define BURST_PASSES_STRATEGIES_FORWARDPROGRAM_H

#include "passes/Strategies/ProgramBuilder.h"

namespace burst {

/// What strategies build a forward pass of: steps, with the regions of the
/// attention.
class ForwardProgram : public ProgramBuilder {
public:
  ForwardProgram(AttentionOp op, const Layout &layout);

protected:
  /// Of (o, m, l), of this rank's queries.
  llvm::SmallVector<mlir::Type> stateTypes();
  /// Which dimensions of (o, m, l) are laid out over ranks.
  static llvm::SmallVector<int64_t> stateDims() { return {1, 2, 2}; }
  /// That of this rank's queries, before any attend.
  Tensors init();
  /// Queries attend keys and values.
  Tensors attend(const Shards &queries, const Shards &keys,
                 mlir::ValueRange state);
  /// The state of this rank's queries becomes the results, and the attention is
  /// erased.
  void finish(mlir::ValueRange state);

  /// Those of this rank.
  Shards ownQueries() { return {{query.getShard()}, rank, layout}; }
  Shards ownKeys() {
    return {{key.getShard(), value.getShard()}, rank, layout};
  }

  AttentionOp op;
  UnshardOp query, key, value; ///< what brings them

private:
  mlir::RankedTensorType out; ///< a shard of the result
};

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_FORWARDPROGRAM_H
