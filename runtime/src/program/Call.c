//===- Call.c - A call of a program that is to be run ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/program/Call.h"
#include "burst/internal/error.h"

#include <stdlib.h>
#include <string.h>

burst_error *burst_call_create(burst_program *program,
                               const burst_run_config *config,
                               const burst_tensor *values, int64_t count,
                               burst_counters *counters, burst_call **call) {
  size_t bytes = sizeof(**call) + (size_t)count * sizeof(burst_tensor);
  *call = malloc(bytes);
  if (!*call)
    return burst_error_no_memory(bytes);
  burst_program_retain(program);
  **call =
      (burst_call){.program = program, .config = *config, .counters = counters};
  if (count > 0)
    memcpy((*call)->values, values, (size_t)count * sizeof(burst_tensor));
  return NULL;
}

void burst_call_destroy(burst_call *call) {
  burst_program_release(call->program);
  free(call);
}
