//===- Strategies.h - every strategy beside one rank ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_STRATEGIES_H
#define BURST_BENCH_STRATEGIES_H

#include "bench/Bound.h"
#include "bench/Table.h"

namespace burst::bench {

struct StrategyOptions {
  int64_t repeat;
  bool quick;       ///< small problems
  std::string only; ///< cells whose name contains it
};

/// Attention over several ranks in this process by each strategy, in turns with
/// the same attention on one rank: causal, forward and backward, and decode.
void measureStrategies(Table &table, const Device &device,
                       const cpu::Target &target,
                       const StrategyOptions &options);

} // namespace burst::bench

#endif // BURST_BENCH_STRATEGIES_H
