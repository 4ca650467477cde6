//===- Clock.h - the clock beside real runs ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_CLOCK_H
#define BURST_BENCH_CLOCK_H

#include "bench/Bound.h"
#include "bench/Table.h"

namespace burst::bench {

struct ClockOptions {
  int64_t repeat, threads;
  bool quick;       ///< small problems
  std::string only; ///< cells whose name contains it
};

/// What burst-simulate says of ranks, beside how long they take: strategies,
/// masks and numbers of ranks, as threads of this process with links as they
/// are and with slow ones, and as processes over TCP. The machine is measured
/// by other runs: of one rank, of the memory and of hops between processes.
void measureClock(Table &table, const Device &device, const cpu::Target &target,
                  const ClockOptions &options);

} // namespace burst::bench

#endif // BURST_BENCH_CLOCK_H
