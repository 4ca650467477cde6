//===- Trace.h - What runs did, and when ------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_RUN_TRACE_H
#define BURST_RUNTIME_RUN_TRACE_H

#include "runtime/src/transport/Transport.h"

// Each records what is past; times are of burst_now. A null trace is ignored,
// as is what there is no memory for, but burst_trace_write then fails.
void burst_trace_launch(burst_trace *trace, int64_t rank,
                        const burst_kernel *kernel, int64_t tasks,
                        int64_t begin, int64_t end);
void burst_trace_transfer(burst_trace *trace, const burst_post *post);
void burst_trace_wait(burst_trace *trace, const burst_post *post, int64_t begin,
                      int64_t end);

#endif // BURST_RUNTIME_RUN_TRACE_H
