//===- Collect.h - What ranks have, on rank 0 -------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_RUN_COLLECT_H
#define BURST_RUNTIME_RUN_COLLECT_H

#include "burst/burst.h"

// Bytes in the host's memory.
typedef struct burst_span {
  void *data;
  int64_t bytes;
} burst_span;

// Copies what the other ranks have to the memory of rank 0: as a run of its
// own, over the transport of `config` and on its device. `spans` has `count` of
// them for each rank, of sizes that all ranks know; their data is that of the
// own rank and, on rank 0, memory for the others.
burst_error *burst_collect(const burst_run_config *config, int64_t num_ranks,
                           int64_t count, const burst_span *spans);

#endif // BURST_RUNTIME_RUN_COLLECT_H
