//===- Calls.h - what a call costs beside its kernels -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_CALLS_H
#define BURST_BENCH_CALLS_H

#include "bench/Bound.h"
#include "bench/Table.h"

namespace burst::bench {

/// Calls of small programs on one rank, one after the other and after pauses in
/// which the threads of the pool go to sleep, on a pool with pinned threads and
/// on one without.
void measureCalls(Table &table, int64_t threads, const cpu::Target &target,
                  const std::string &only);

} // namespace burst::bench

#endif // BURST_BENCH_CALLS_H
