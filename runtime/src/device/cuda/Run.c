//===- Run.c - What a run asks of a GPU -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "runtime/src/base/View.h"
#include "runtime/src/cuda/GpuImpl.h"
#include "runtime/src/device/cuda/Device.h"
#include "runtime/src/program/Program.h"
#include "runtime/src/transport/Transfer.h"

#include <inttypes.h>
#include <stdlib.h>

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

enum { ALIGNMENT = 64 };

static burst_error *ask_caller(const burst_cuda_run *run, int64_t bytes,
                               void **memory) {
  const burst_cuda_config *config = &run->cuda->config;
  *memory = config->allocate(config->context, bytes, run->compute);
  if (!*memory)
    return burst_error_create(
        BURST_OUT_OF_MEMORY, "",
        "the caller's allocate: no memory for %" PRId64 " bytes", bytes);
  if ((uintptr_t)*memory % ALIGNMENT == 0)
    return NULL;
  burst_error *error = burst_error_create(
      BURST_INVALID_ARGUMENT, "",
      "the caller's allocate: memory at %p, wanted a multiple of %d", *memory,
      ALIGNMENT);
  config->release(config->context, *memory, bytes, run->compute);
  return error;
}

burst_error *burst_cuda_allocate(burst_cuda_run *run, int64_t bytes,
                                 void **memory) {
  bytes += bytes == 0; // it has an address too
  if (run->cuda->config.allocate)
    return ask_caller(run, bytes, memory);
  CUdeviceptr made;
  burst_error *error =
      burst_gpu_allocate(run->cuda->gpu, (size_t)bytes, run->compute, &made);
  *memory = (void *)made;
  return error;
}

burst_error *burst_cuda_release(burst_cuda_run *run, void *memory,
                                int64_t bytes) {
  const burst_cuda_config *config = &run->cuda->config;
  bytes += bytes == 0;
  if (!config->allocate)
    return burst_gpu_free(run->cuda->gpu, (CUdeviceptr)memory, run->compute);
  config->release(config->context, memory, bytes, run->compute);
  return NULL;
}

burst_error *burst_cuda_upload(burst_cuda_run *run, const void *from,
                               int64_t bytes, void **memory) {
  void *staged = NULL;
  burst_error *error =
      burst_cuda_stage(run->cuda, &run->staging, from, (size_t)bytes, &staged);
  if (!error)
    error = burst_cuda_allocate(run, bytes, memory);
  if (error)
    return error;
  error = burst_gpu_upload(run->cuda->gpu, (CUdeviceptr)*memory, staged,
                           (size_t)bytes, run->compute);
  if (error)
    burst_error_destroy(burst_cuda_release(run, *memory, bytes));
  return error;
}

//===----------------------------------------------------------------------===//
// Poison
//===----------------------------------------------------------------------===//

typedef struct filling {
  burst_gpu *gpu;
  CUstream stream;
} filling;

static burst_error *fill_rows(void *context, const burst_rows *rows) {
  const filling *filling = context;
  burst_error *error = NULL;
  for (int64_t i = 0; i < rows->count && !error; ++i)
    error = burst_gpu_fill(filling->gpu,
                           (CUdeviceptr)(rows->to + i * rows->to_pitch),
                           BURST_POISON, (size_t)rows->bytes, filling->stream);
  return error;
}

burst_error *burst_cuda_poison(const burst_cuda_run *run,
                               const burst_view *view) {
  filling filling = {run->cuda->gpu, run->compute};
  return burst_view_visit(view, view, fill_rows, &filling);
}

burst_error *burst_cuda_poison_results(const burst_cuda_run *run) {
  const burst_image *image = run->call->program->image;
  burst_error *error = NULL;
  for (int32_t i = image->num_arguments;
       run->bound && i < image->num_parameters && !error; ++i) {
    burst_view view = burst_view_of_tensor(&run->call->values[i]);
    if (image->parameters[i].is_host)
      burst_view_fill(&view, BURST_POISON);
    else
      error = burst_cuda_poison(run, &view);
  }
  return error;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

burst_error *burst_cuda_launch(burst_cuda_run *run, int64_t kernel,
                               const void *arguments, int64_t blocks) {
  if (!run->module) {
    burst_error *error =
        burst_cuda_load(run->cuda, run->call->program, &run->module);
    if (error)
      return error;
  }
  return burst_gpu_launch(run->module, kernel, blocks, arguments, run->compute);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

burst_error *burst_cuda_depart(burst_cuda_run *run, burst_post *const *posts,
                               int64_t count) {
  burst_cuda_event *ready;
  burst_error *error =
      burst_cuda_event_record(run->cuda->gpu, false, run->compute, &ready);
  if (error)
    return error;
  for (int64_t i = 0; i < count; ++i) {
    posts[i]->lane = &run->lane;
    posts[i]->ready = burst_cuda_event_retain(ready);
  }
  burst_cuda_event_release(ready);
  return NULL;
}

burst_error *burst_cuda_copy_here(const burst_cuda_run *run,
                                  const burst_view *to,
                                  const burst_view *from) {
  CUcontext before;
  burst_error *error = burst_gpu_enter(run->cuda->gpu, &before);
  if (error)
    return error;
  error = burst_cuda_copy(run->cuda->gpu, run->compute, to, from);
  burst_gpu_leave(run->cuda->gpu, before);
  return error;
}

burst_error *burst_cuda_join(burst_cuda_run *run, const burst_post *post) {
  return post->done
             ? burst_gpu_wait(run->cuda->gpu, run->compute, post->done->event)
             : NULL;
}

burst_error *burst_cuda_arrive(burst_cuda_run *run, const burst_post *post) {
  burst_error *error = burst_cuda_join(run, post);
  return error ? error : burst_cuda_watch_post(run, post);
}
