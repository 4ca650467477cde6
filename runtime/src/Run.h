//===- Run.h - Calls of burst_run -------------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_RUN_H
#define BURST_RUNTIME_RUN_H

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

burst_error *burst_call_run(burst_call *call);
// Instead of running it: tells the other ranks, for `reason`.
void burst_call_skip(burst_call *call, const char *reason);
void burst_call_destroy(burst_call *call);

// The device of a stream, and taking on a call, which it then owns.
burst_device *burst_stream_device(const burst_stream *stream);
void burst_stream_push(burst_stream *stream, burst_call *call);

#endif // BURST_RUNTIME_RUN_H
