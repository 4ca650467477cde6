//===- Run.h - Calls of burst_run -------------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_RUN_RUN_H
#define BURST_RUNTIME_RUN_RUN_H

#include "runtime/src/program/Call.h"

// Runs the host code of a call, on a CPU with all that it asks for.
burst_error *burst_call_run(burst_call *call);

// The device of a stream, and taking on a call, which it then owns.
burst_device *burst_stream_device(const burst_stream *stream);
void burst_stream_push(burst_stream *stream, burst_call *call);

#endif // BURST_RUNTIME_RUN_RUN_H
