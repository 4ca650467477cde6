//===- Call.h - A call of a program that is to be run -----------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_PROGRAM_CALL_H
#define BURST_RUNTIME_PROGRAM_CALL_H

#include "burst/burst.h"

// A call that may be executed later: a copy of all that the caller may change.
typedef struct burst_call {
  struct burst_call *next; // in a stream
  burst_program *program;
  burst_run_config config;
  burst_counters *counters;
  struct burst_cuda_run *cuda; // on a GPU
  burst_tensor values[];
} burst_call;

burst_error *burst_call_create(burst_program *program,
                               const burst_run_config *config,
                               const burst_tensor *values, int64_t count,
                               burst_counters *counters, burst_call **call);
void burst_call_destroy(burst_call *call);

// What memory holds in checked runs that was freshly allocated or is awaited.
enum { BURST_POISON = 0xFF };

#endif // BURST_RUNTIME_PROGRAM_CALL_H
