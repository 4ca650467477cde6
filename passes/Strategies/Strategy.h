//===- Strategy.h - what a strategy is to passes ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_STRATEGIES_STRATEGY_H
#define BURST_PASSES_STRATEGIES_STRATEGY_H

#include "passes/Cost/Cost.h"

namespace burst {

/// A strategy: how the ranks of a grid compute an attention together. Each has
/// a folder here, and a line in Strategy.cpp; passes know strategies by this
/// interface only.
class Strategy {
public:
  virtual ~Strategy() = default;

  /// As `strategy <...>` names it.
  virtual llvm::StringRef getName() const = 0;

  /// Why it cannot compute `op` with a sequence that is sharded so, to follow
  /// "pins the strategy ..., which"; empty where it can.
  virtual std::string whyNot(AttentionInterface op,
                             SequenceAttr sequence) const {
    return {};
  }

  /// Whether over so many ranks it is there for who asks for it, say to compare
  /// with: it can be pinned, and is never chosen.
  virtual bool isOnlyPinned(int64_t ranks) const { return false; }

  /// What it sends, stores and computes for an attention that it can compute.
  virtual Estimate estimate(const Workload &workload,
                            const Hardware &hardware) const = 0;

  /// What ranks of its program may hold of received slices, see
  /// `ring.max_slices`; empty where the default will do, the double buffer.
  virtual llvm::ArrayRef<int64_t> maxSlices() const { return {}; }

  /// Puts the program of a rank in place of `op`, which stands between
  /// burst.unshard and burst.shard, is expanded and whyNot knows nothing
  /// against. `layout` is that of its sequence.
  virtual void build(AttentionInterface op, const Layout &layout) const = 0;
};

// Those of Strategies.def.
#define STRATEGY(name) const Strategy *get##name();
#include "passes/Strategies/Strategies.def"

/// All of them, in the order of Strategies.def.
llvm::ArrayRef<const Strategy *> getStrategies();

/// One more, from outside of this folder, to be chosen behind the others. Not
/// while another thread compiles.
void addStrategy(const Strategy *strategy);

/// Null where it is not there.
const Strategy *lookupStrategy(llvm::StringRef name);

/// The axes over which a sequence of `op` is sharded, each by its number.
llvm::SmallVector<int64_t> axesOf(AttentionInterface op, SequenceAttr sequence);

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_STRATEGY_H
