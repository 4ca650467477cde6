//===- Launcher.h - What started this process -------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_WORLD_LAUNCHER_H
#define BURST_RUNTIME_WORLD_LAUNCHER_H

#include "burst/burst.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BURST_HOST_BYTES = 256 };

typedef struct burst_place {
  int64_t rank, num_ranks;
  int64_t local_rank; // -1: not said
  char host[BURST_HOST_BYTES];
  int64_t port;
} burst_place;

// Where this process stands: as the config says, which is complete but for its
// defaults, and the environment where it says nothing.
burst_error *burst_place_find(const burst_world_config *config,
                              burst_place *place);

#ifdef __cplusplus
}
#endif

#endif // BURST_RUNTIME_WORLD_LAUNCHER_H
