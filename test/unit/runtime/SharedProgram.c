/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A program as a shared object: its one rank writes the sum of its argument. */

#include "burst/program.h"

struct memref {
  float *base, *data;
  int64_t offset, sizes[1], strides[1];
};

static void run(burst_rank *rank, const burst_table *table,
                void *const *values) {
  const struct memref *in = values[0], *out = values[1];
  (void)rank;
  (void)table;
  out->data[0] = 0;
  for (int64_t i = 0; i < in->sizes[0]; ++i)
    out->data[0] += in->data[i];
}

static void segments(int32_t index, int64_t owner, int64_t extent,
                     burst_segment *segments) {
  (void)index;
  (void)owner;
  (void)extent;
  (void)segments;
}

static const int64_t open[] = {-1}, one[] = {1};

static const burst_parameter parameters[] = {
    {"in", BURST_TENSOR, BURST_F32, 1, 0, open, -1, 0, -1, -1, 0, 0, 0, 0},
    {"out", BURST_TENSOR, BURST_F32, 1, 1, one, -1, 0, -1, -1, 0, 0, 0, 0},
};

const burst_image burst_program_image = {sizeof(burst_image),
                                         BURST_ABI_VERSION,
                                         "sum",
                                         "any",
                                         1,
                                         2,
                                         1,
                                         parameters,
                                         segments,
                                         run,
                                         7,
                                         0,
                                         0,
                                         0,
                                         0,
                                         BURST_VERSION_MAJOR,
                                         BURST_VERSION_MINOR,
                                         0,
                                         0};
