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

/// Whether each chunk of heads has keys of its own: else query heads that share
/// a key head are in several chunks, and keys come whole.
bool haveChunksOwnKeys(AttentionInterface op);

/// Why attentions of one function cannot go in chunks together, to follow "in
/// chunks, and"; empty where they can.
std::string whyNoChunksTogether(llvm::ArrayRef<AttentionInterface> ops);

/// The heads of queries and keys that `members` ranks exchange, and how many of
/// them a rank has room for between the exchanges.
struct DividedHeads {
  int64_t queries, keys; ///< in all
  int64_t members;
  int64_t query, key; ///< of a rank
  /// Ranks, and heads of keys with the query heads that share them, are in so
  /// many groups, each with as many ranks; those that are left have no heads.
  int64_t groups = 1;

  int64_t ranksOfGroup() const { return members / groups; }
  /// Whether the ranks of a group share its only key head.
  bool areShared() const {
    return groups == keys && queries > keys && ranksOfGroup() > 1;
  }
  /// Whether each rank has as many heads as the others.
  bool areEven() const {
    return query * members == queries &&
           (areShared() ? groups * ranksOfGroup() == members
                        : key * members == keys);
  }
  /// In how many groups all-to-alls have them: ranks that divide query heads
  /// take them in order, whatever their group.
  int64_t groupsOf(bool isOfKeys) const {
    return isOfKeys ? (areShared() ? groups : 1) : (areEven() ? 1 : groups);
  }
};

DividedHeads divideHeads(int64_t queryHeads, int64_t keyHeads, int64_t members);
/// Those of an attention that a rank has by the clause `heads`.
DividedHeads divideHeads(AttentionInterface op, int64_t members);

/// Why attentions of one function cannot share their heads over so many ranks
/// together, to follow "shards heads over 3 ranks, and"; empty where they can.
std::string whyNoHeadsTogether(llvm::ArrayRef<AttentionInterface> ops,
                               int64_t members);

/// The grid over whose ranks an attention shards its sequence.
mlir::shard::GridOp gridOf(AttentionInterface op);

/// How many ranks exchange along `axes`; 1 where there are none.
int64_t membersAlong(AttentionInterface op, llvm::ArrayRef<int64_t> axes);

/// What an attention is between the exchanges.
struct Exchange {
  /// Along which it is done; none where it is not.
  llvm::SmallVector<int64_t> axes;
  /// The clauses of the attention in between: without an exchange its own.
  SequenceAttr sequence;
  AxesAttr heads;
  /// That of the attention in between, null where none is pinned.
  StrategyAttr rest;
  /// In how many chunks heads go, one after the other.
  int64_t chunks = 1;

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

/// The same exchange with heads in chunks, of powers of two: all that an
/// attention can have.
llvm::SmallVector<Exchange> inChunks(AttentionInterface op,
                                     const Exchange &exchange);

/// How heads go; all at once where there is one chunk.
struct HeadChunks {
  int64_t count = 1;
  bool haveOwnKeys = true; ///< else keys come whole, in front of all chunks
  double compute = 0;      ///< seconds of the attention in between
};

/// What the exchanges of an attention with these heads send and store, beside
/// that of the attention in between, along these axes. Nothing hides them, but
/// for those of one chunk of heads behind the attention of another. The sizes
/// of the workload are those of the attention in between, and its heads, on a
/// rank that has the most; where ranks share heads of keys, gradients come back
/// in the state type.
Estimate estimateExchange(const Workload &inside, const DividedHeads &heads,
                          llvm::ArrayRef<Axis> axes, bool hasLseGradient,
                          const Hardware &hardware, HeadChunks chunks = {});

/// The attention in between of one chunk.
Workload chunkOf(const Workload &inside, const HeadChunks &chunks);

/// What an attention in chunks needs in between, where one of a chunk needs
/// `buffers`: that of one, but for a state whose largest scores are under way
/// while the next chunk has another one.
double buffersInChunks(double buffers, const Workload &inside,
                       const HeadChunks &chunks);

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_EXCHANGE_H
