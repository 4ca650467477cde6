//===- Transfer.c - Messages between memory of GPUs -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/transport/Transfer.h"
#include "burst/internal/error.h"
#include "runtime/src/base/View.h"
#include "runtime/src/cuda/GpuImpl.h"

#include <limits.h>

burst_error *burst_cuda_check_lane(const burst_post *post, const char *name,
                                   const burst_gpu *gpu) {
  int ordinal = gpu->properties.ordinal;
  burst_location location = burst_location_of_post(post);
  if (!post->lane)
    return burst_error_create(
        BURST_INVALID_ARGUMENT, location.text,
        "%s transport: the run is on a CPU, wanted on GPU %d", name, ordinal);
  if (post->lane->gpu->device == gpu->device)
    return NULL;
  return burst_error_create(
      BURST_INVALID_ARGUMENT, location.text,
      "%s transport: the run is on GPU %d, wanted on GPU %d", name,
      post->lane->gpu->properties.ordinal, ordinal);
}

typedef struct copying {
  const burst_gpu *to, *from;
  CUstream stream; // of `to`
} copying;

// A copy between GPUs has no rows.
static CUresult copy_row(const copying *copying, char *to, char *from,
                         int64_t bytes) {
  const burst_driver *driver = copying->to->driver;
  CUdeviceptr target = (CUdeviceptr)to, source = (CUdeviceptr)from;
  return copying->to->device == copying->from->device
             ? driver->cuMemcpyDtoDAsync_v2(target, source, (size_t)bytes,
                                            copying->stream)
             : driver->cuMemcpyPeerAsync(target, copying->to->context, source,
                                         copying->from->context, (size_t)bytes,
                                         copying->stream);
}

static CUresult copy_block(const copying *copying, const burst_rows *rows) {
  const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .srcDevice = (CUdeviceptr)rows->from,
                              .srcPitch = (size_t)rows->from_pitch,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = (CUdeviceptr)rows->to,
                              .dstPitch = (size_t)rows->to_pitch,
                              .WidthInBytes = (size_t)rows->bytes,
                              .Height = (size_t)rows->count};
  return copying->to->driver->cuMemcpy2DAsync_v2(&copy, copying->stream);
}

static bool is_pitch(const burst_rows *rows, int64_t pitch) {
  return pitch >= rows->bytes && pitch <= INT_MAX;
}

static burst_error *copy_rows(void *context, const burst_rows *rows) {
  const copying *copying = context;
  CUresult result = CUDA_SUCCESS;
  if (rows->count > 1 && copying->to->device == copying->from->device &&
      is_pitch(rows, rows->to_pitch) && is_pitch(rows, rows->from_pitch))
    result = copy_block(copying, rows);
  else
    for (int64_t i = 0; i < rows->count && result == CUDA_SUCCESS; ++i)
      result = copy_row(copying, rows->to + i * rows->to_pitch,
                        rows->from + i * rows->from_pitch, rows->bytes);
  return result == CUDA_SUCCESS
             ? NULL
             : burst_driver_error(copying->to->driver,
                                  copying->to->properties.ordinal,
                                  "a copy of a message", result);
}

burst_error *burst_cuda_copy(const burst_gpu *gpu, CUstream stream,
                             const burst_view *to, const burst_view *from) {
  copying copying = {gpu, gpu, stream};
  return burst_view_visit(to, from, copy_rows, &copying);
}

static burst_error *copy(const burst_post *receive, const burst_post *send) {
  copying copying = {receive->lane->gpu, send->lane->gpu,
                     receive->lane->copies};
  burst_error *error = NULL;
  for (int64_t i = 0; i < receive->num_pieces && !error; ++i) {
    burst_view to = burst_view_of_piece(&receive->pieces[i]);
    burst_view from = burst_view_of_piece(&send->pieces[i]);
    error = burst_view_visit(&to, &from, copy_rows, &copying);
  }
  return error;
}

burst_error *burst_cuda_transfer(burst_post *receive, burst_post *send) {
  burst_gpu *gpu = receive->lane->gpu;
  CUstream stream = receive->lane->copies;
  burst_error *error = NULL;
  if (gpu->device != send->lane->gpu->device)
    error = burst_gpu_open_peer(gpu, send->lane->gpu);
  if (!error)
    error = burst_gpu_wait(gpu, stream, send->ready->event);
  if (!error)
    error = burst_gpu_wait(gpu, stream, receive->ready->event);
  burst_cuda_event *done = NULL;
  if (!error)
    error = burst_cuda_event_create(gpu, false, &done);
  CUcontext before;
  if (!error)
    error = burst_gpu_enter(gpu, &before);
  if (error) {
    burst_cuda_event_release(done);
    return error;
  }
  error = copy(receive, send);
  burst_gpu_leave(gpu, before);
  // Also of what was asked for until something failed.
  burst_error *unknown = burst_cuda_event_mark(gpu, stream, done);
  receive->done = done;
  send->done = burst_cuda_event_retain(done);
  if (!error)
    return unknown;
  burst_error_destroy(unknown);
  return error;
}
