//===- Exchange.h - heads in place of the sequence --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ulysses (Jacobs et al., DeepSpeed Ulysses, arXiv 2309.14509): ranks that
// share a sequence exchange its shards for heads of all of their positions, in
// an all-to-all, attend, and exchange what comes of it back. It composes with
// every strategy: between the exchanges the attention is another one, whose
// sequence is sharded over the other axes and whose heads are sharded over
// these.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_STRATEGIES_EXCHANGE_H
#define BURST_PASSES_STRATEGIES_EXCHANGE_H

#include "passes/Cost/Cost.h"

namespace burst {

/// As `strategy <...>` names it.
inline constexpr llvm::StringLiteral exchangeName = "ulysses";

/// The grid over whose ranks an attention shards its sequence.
mlir::shard::GridOp gridOf(AttentionInterface op);

/// What an attention is between the exchanges.
struct Exchange {
  /// Along which it is done; none where it is not.
  llvm::SmallVector<int64_t> axes;
  /// The clauses of the attention in between: without an exchange its own.
  SequenceAttr sequence;
  AxesAttr heads;
  /// That of the attention in between, null where none is pinned.
  StrategyAttr rest;

  bool isDone() const { return !axes.empty(); }
};

/// That which the strategy of an attention with a sequence says. Emits errors
/// at `op` where it cannot be had.
llvm::FailureOr<Exchange> exchangeOf(AttentionInterface op);

/// Axes along which there can be none, as `strategy <...>` names them, and why.
struct RefusedExchange {
  llvm::SmallVector<int64_t> axes;
  std::string why;
};

/// All that could be had of an attention, beginning with none; what cannot be
/// had, to `refused`.
llvm::SmallVector<Exchange>
allExchanges(AttentionInterface op,
             llvm::SmallVectorImpl<RefusedExchange> &refused);

/// What the exchanges of an attention send and store, beside that of the
/// attention in between, along these axes, which nothing hides. The sizes of
/// the workload are those of the attention in between, and its heads; where
/// ranks share heads of keys, gradients come back in the state type.
Estimate estimateExchange(const Workload &inside, llvm::ArrayRef<Axis> axes,
                          bool hasLseGradient, bool sharesHeads,
                          const Hardware &hardware);

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_EXCHANGE_H
