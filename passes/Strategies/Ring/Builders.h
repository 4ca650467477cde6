//===- Builders.h - the programs of ring strategies -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_STRATEGIES_RING_BUILDERS_H
#define BURST_PASSES_STRATEGIES_RING_BUILDERS_H

#include "passes/Strategies/ProgramBuilder.h"

namespace burst {

/// What goes round the ring, or the rings.
struct RingKind {
  bool movesKeys;
  /// An inner ring for each shard that an outer one brings, in place of one
  /// ring of all ranks.
  bool isDouble = false;
  /// Shards come from their owners, not from rank to rank.
  bool isDirect = false;
  /// Half of the shards go round in one direction, half in the other.
  bool isBidirectional = false;
};

/// Keys and values travel past queries, which keep their softmax state; or
/// queries travel, and their softmax state behind them.
void buildForwardRing(AttentionOp op, const Layout &layout, RingKind kind);
/// Keys and values travel with their gradients, or queries with theirs.
void buildGradientRing(AttentionBackwardOp op, const Layout &layout,
                       RingKind kind);

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_RING_BUILDERS_H
