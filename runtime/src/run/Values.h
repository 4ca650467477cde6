//===- Values.h - Runs on tensors of the host -------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_RUN_VALUES_H
#define BURST_RUNTIME_RUN_VALUES_H

#include "burst/burst.h"

// burst_run on a GPU, with a copy there of each tensor that belongs there, and
// results copied back. Tensors lie row by row, without a gap.
burst_error *burst_cuda_run_values(burst_program *program,
                                   const burst_run_config *config,
                                   const burst_tensor *values, int64_t count,
                                   burst_counters *counters);

#endif // BURST_RUNTIME_RUN_VALUES_H
