//===- Device.h - A pool of threads that runs kernels -----------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_DEVICE_DEVICE_H
#define BURST_RUNTIME_DEVICE_DEVICE_H

#include "burst/internal/handle.h"

struct burst_cuda;
struct burst_gpu;

// Runs the tasks of a kernel, begun in the order of `order` (null: rising), and
// returns when they are done. Launches of several threads are served first
// come, first served.
void burst_device_launch(burst_device *device, const burst_kernel *kernel,
                         const void *arguments, int64_t tasks,
                         const int32_t *order);

// What a device has that is a GPU: `destroy` ends it with the device.
void burst_device_set_cuda(burst_device *device, struct burst_cuda *cuda,
                           struct burst_gpu *gpu,
                           void (*destroy)(struct burst_cuda *cuda));
// Null for a CPU.
struct burst_cuda *burst_device_cuda(const burst_device *device);
struct burst_gpu *burst_device_gpu(const burst_device *device);

// The host's memory, for programs that run on the device.
struct burst_blocks *burst_device_blocks(burst_device *device);

#endif // BURST_RUNTIME_DEVICE_DEVICE_H
