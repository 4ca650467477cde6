//===- Event.h - A moment on a stream ---------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_CUDA_EVENT_H
#define BURST_RUNTIME_CUDA_EVENT_H

#include "runtime/src/cuda/Gpu.h"

#include <stdatomic.h>

// An event that is recorded once, counted by references: both sides of a
// transfer wait for its end, each on its own stream and in its own time.
typedef struct burst_cuda_event {
  const burst_driver *driver;
  CUevent event;
  _Atomic int references;
} burst_cuda_event;

// Before work is asked for whose end must be known, and behind it: nothing is
// allocated then.
burst_error *burst_cuda_event_create(burst_gpu *gpu, bool timed,
                                     burst_cuda_event **event);
burst_error *burst_cuda_event_mark(burst_gpu *gpu, CUstream stream,
                                   const burst_cuda_event *event);
// Both.
burst_error *burst_cuda_event_record(burst_gpu *gpu, bool timed,
                                     CUstream stream, burst_cuda_event **event);
burst_cuda_event *burst_cuda_event_retain(burst_cuda_event *event);
// Null is ignored.
void burst_cuda_event_release(burst_cuda_event *event);

#endif // BURST_RUNTIME_CUDA_EVENT_H
