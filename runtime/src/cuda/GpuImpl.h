//===- GpuImpl.h - What the files of a GPU share ----------------*- C -*-===//

#ifndef BURST_RUNTIME_CUDA_GPUIMPL_H
#define BURST_RUNTIME_CUDA_GPUIMPL_H

#include "Gpu.h"

struct burst_gpu {
  const burst_driver *driver;
  CUdevice device;
  CUcontext context;
  CUmemoryPool pool;
  burst_gpu_properties properties;
};

// What the driver said of a call; a negative ordinal: of no device.
burst_error *burst_driver_error(const burst_driver *driver, int ordinal,
                                const char *call, CUresult result);

// Makes the context of a GPU that of the thread, and back.
burst_error *burst_gpu_enter(burst_gpu *gpu, CUcontext *before);
void burst_gpu_leave(burst_gpu *gpu, CUcontext before);

#endif // BURST_RUNTIME_CUDA_GPUIMPL_H
