//===- Device.h - A pool of threads that runs kernels -----------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_DEVICE_H
#define BURST_RUNTIME_DEVICE_H

#include "Handle.h"

#include <pthread.h>

// Runs the tasks of a kernel, begun in the order of `order` (null: rising), and
// returns when they are done. Launches of several threads are served first
// come, first served.
void burst_device_launch(burst_device *device, const burst_kernel *kernel,
                         const void *arguments, int64_t tasks,
                         const int32_t *order);

// What a device has that is a GPU, which ends with it; null for a CPU.
struct burst_cuda *burst_device_cuda(const burst_device *device);
void burst_device_set_cuda(burst_device *device, struct burst_cuda *cuda);

// The host's memory, for programs that run on the device.
struct burst_blocks *burst_device_blocks(burst_device *device);

// Makes a thread with a stack on which kernels may keep their tiles; `what`
// says in an error which thread could not be made.
burst_error *burst_thread_create(const char *what, pthread_t *thread,
                                 void *(*run)(void *), void *context);

#endif // BURST_RUNTIME_DEVICE_H
