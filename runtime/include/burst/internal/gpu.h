//===- gpu.h - Which GPUs this machine has ----------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call fails with an error that names the device, the call and what the
// driver said.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_INTERNAL_GPU_H
#define BURST_INTERNAL_GPU_H

#include "burst/burst.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct burst_gpu burst_gpu;

typedef struct burst_gpu_properties {
  int ordinal;
  char name[128];
  int major, minor; // of the compute capability: 9, 0
  int multiprocessors;
  int shared_bytes; // that a block can ask for
  bool tensor_maps; // TMA
} burst_gpu_properties;

burst_error *burst_gpu_count(int *count);
burst_error *burst_gpu_create(int ordinal, burst_gpu **gpu);
// When all that was made of it is destroyed. Null is ignored.
void burst_gpu_destroy(burst_gpu *gpu);
const burst_gpu_properties *burst_gpu_get_properties(const burst_gpu *gpu);

#ifdef __cplusplus
}
#endif

#endif // BURST_INTERNAL_GPU_H
