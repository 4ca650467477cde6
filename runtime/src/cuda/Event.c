//===- Event.c - A moment on a stream -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/cuda/Event.h"
#include "burst/internal/error.h"
#include "runtime/src/cuda/GpuImpl.h"

#include <stdlib.h>

burst_error *burst_cuda_event_create(burst_gpu *gpu, bool timed,
                                     burst_cuda_event **event) {
  *event = NULL;
  burst_cuda_event *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  made->driver = gpu->driver;
  atomic_init(&made->references, 1);
  burst_error *error = burst_gpu_event_create(gpu, timed, &made->event);
  if (error)
    burst_cuda_event_release(made);
  else
    *event = made;
  return error;
}

burst_error *burst_cuda_event_mark(burst_gpu *gpu, CUstream stream,
                                   const burst_cuda_event *event) {
  return burst_gpu_record(gpu, event->event, stream);
}

burst_error *burst_cuda_event_record(burst_gpu *gpu, bool timed,
                                     CUstream stream,
                                     burst_cuda_event **event) {
  burst_error *error = burst_cuda_event_create(gpu, timed, event);
  if (!error)
    error = burst_cuda_event_mark(gpu, stream, *event);
  if (error) {
    burst_cuda_event_release(*event);
    *event = NULL;
  }
  return error;
}

burst_cuda_event *burst_cuda_event_retain(burst_cuda_event *event) {
  atomic_fetch_add(&event->references, 1);
  return event;
}

void burst_cuda_event_release(burst_cuda_event *event) {
  if (!event || atomic_fetch_sub(&event->references, 1) > 1)
    return;
  if (event->event)
    event->driver->cuEventDestroy_v2(event->event);
  free(event);
}
