//===- Staging.c - What the host gives to a GPU to read -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A copy from memory that the system may move waits for the stream before it
// begins, and the host with it. So what is uploaded goes through memory that is
// locked, in blocks that are used again.
//
//===----------------------------------------------------------------------===//

#include "burst/internal/error.h"
#include "runtime/src/cuda/GpuImpl.h"
#include "runtime/src/device/cuda/Device.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 20, ALIGNMENT = 64 };

static size_t room(const burst_staging *block) {
  return block->capacity - block->used;
}

static burst_error *make_block(const burst_cuda *cuda, size_t bytes,
                               burst_staging **block) {
  burst_staging *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  made->capacity = bytes < BLOCK ? BLOCK : bytes;
  CUcontext before;
  burst_error *error = burst_gpu_enter(cuda->gpu, &before);
  if (!error) {
    CUstreamCaptureMode mode = burst_cuda_relax(cuda);
    void *memory = NULL;
    CUresult result =
        cuda->gpu->driver->cuMemAllocHost_v2(&memory, made->capacity);
    burst_cuda_unrelax(cuda, mode);
    burst_gpu_leave(cuda->gpu, before);
    made->memory = memory;
    if (result != CUDA_SUCCESS)
      error =
          burst_driver_error(cuda->gpu->driver, cuda->gpu->properties.ordinal,
                             "cuMemAllocHost", result);
  }
  if (error)
    free(made);
  else
    *block = made;
  return error;
}

// A free block with room for so many bytes, or null.
static burst_staging *take_block(burst_cuda *cuda, size_t bytes) {
  pthread_mutex_lock(&cuda->mutex);
  burst_staging **place = &cuda->staging;
  while (*place && (*place)->capacity < bytes)
    place = &(*place)->next;
  burst_staging *taken = *place;
  if (taken)
    *place = taken->next;
  pthread_mutex_unlock(&cuda->mutex);
  return taken;
}

burst_error *burst_cuda_stage(burst_cuda *cuda, burst_staging **blocks,
                              const void *memory, size_t bytes, void **copy) {
  size_t wanted = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (!*blocks || room(*blocks) < wanted) {
    burst_staging *block = take_block(cuda, wanted);
    burst_error *error = block ? NULL : make_block(cuda, wanted, &block);
    if (error)
      return error;
    block->used = 0;
    block->next = *blocks;
    *blocks = block;
  }
  *copy = (*blocks)->memory + (*blocks)->used;
  (*blocks)->used += wanted;
  memcpy(*copy, memory, bytes);
  return NULL;
}

void burst_cuda_unstage(burst_staging **from, burst_staging **to) {
  while (*from) {
    burst_staging *moved = *from;
    *from = moved->next;
    moved->next = *to;
    *to = moved;
  }
}

void burst_cuda_free_staging(burst_cuda *cuda, burst_staging *blocks) {
  while (blocks) {
    burst_staging *next = blocks->next;
    cuda->gpu->driver->cuMemFreeHost(blocks->memory);
    free(blocks);
    blocks = next;
  }
}
