//===- Bytes.h - Programs that only exchange bytes --------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_RUN_BYTES_H
#define BURST_RUNTIME_RUN_BYTES_H

#include "burst/burst.h"

#include <stdbool.h>

// A program of the runtime's own, which has messages and no kernels: on a CPU
// and on a GPU alike, it sends out of one tensor and receives into another one.
// Both have as many bytes on all ranks, 1 or more, in the host's memory.
typedef struct burst_bytes_program {
  const char *name;
  uint64_t hash; // differs between programs
  int64_t num_ranks;
  void (*run)(void *context, burst_rank *rank, const burst_table *table,
              char *sent, char *received);
  void *context;
  void *sent, *received;
  int64_t sent_bytes, received_bytes;
} burst_bytes_program;

// Runs it as the rank of `config`.
burst_error *burst_bytes_run(const burst_bytes_program *program,
                             const burst_run_config *config);

#endif // BURST_RUNTIME_RUN_BYTES_H
