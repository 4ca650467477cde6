//===- Segments.h - What a rank holds of a tensor ---------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_PROGRAM_SEGMENTS_H
#define BURST_RUNTIME_PROGRAM_SEGMENTS_H

#include "runtime/src/program/Program.h"

// The checked segments of a shard, on the heap, and the sum of their counts.
typedef struct burst_holding {
  int32_t num_segments;
  burst_segment *segments;
  int64_t size;
} burst_holding;

burst_error *burst_holding_create(const burst_program *program,
                                  int64_t parameter, int64_t rank,
                                  int64_t extent, burst_holding *holding);

#endif // BURST_RUNTIME_PROGRAM_SEGMENTS_H
