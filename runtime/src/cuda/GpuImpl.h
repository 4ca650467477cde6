//===- GpuImpl.h - What the files of a GPU share ----------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_CUDA_GPUIMPL_H
#define BURST_RUNTIME_CUDA_GPUIMPL_H

#include "runtime/src/cuda/Gpu.h"

#include <stdatomic.h>

struct burst_gpu {
  const burst_driver *driver;
  CUdevice device;
  CUcontext context;
  CUmemoryPool pool;
  _Atomic uint64_t readers; // of the pool: a bit per ordinal of a peer
  burst_gpu_properties properties;
};

// What the driver said of a call; a negative ordinal: of no device.
burst_error *burst_driver_error(const burst_driver *driver, int ordinal,
                                const char *call, CUresult result);

// Makes the context of a GPU that of the thread, and back.
burst_error *burst_gpu_enter(burst_gpu *gpu, CUcontext *before);
void burst_gpu_leave(burst_gpu *gpu, CUcontext before);

// An error unless tensor maps can be made of the arguments of `kernel`.
burst_error *burst_gpu_map_check(const burst_gpu *gpu,
                                 const burst_gpu_kernel *kernel,
                                 const burst_gpu_map *map);
// Makes the map of a buffer in the arguments of a launch.
burst_error *burst_gpu_map_encode(const burst_gpu *gpu,
                                  const burst_gpu_kernel *kernel,
                                  const burst_gpu_map *map,
                                  const void *arguments, CUtensorMap *encoded);

#endif // BURST_RUNTIME_CUDA_GPUIMPL_H
