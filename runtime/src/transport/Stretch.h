//===- Stretch.h - What lies together in a piece ----------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_TRANSPORT_STRETCH_H
#define BURST_RUNTIME_TRANSPORT_STRETCH_H

#include "burst/program.h"

#include <stddef.h>

// A piece as stretches of bytes without gaps, as long as they can be.
typedef struct burst_stretches {
  const burst_piece *piece;
  int64_t bytes; // of each
  int64_t count;
  int dims; // those outside of a stretch
} burst_stretches;

static inline burst_stretches burst_stretches_of(const burst_piece *piece) {
  burst_stretches made = {piece, piece->element_bytes, 1, 4};
  int64_t together = 1; // elements
  while (made.dims > 0 && (piece->sizes[made.dims - 1] == 1 ||
                           piece->strides[made.dims - 1] == together))
    together *= piece->sizes[--made.dims];
  made.bytes *= together;
  for (int d = 0; d < made.dims; ++d)
    made.count *= piece->sizes[d];
  return made;
}

static inline char *burst_stretch_at(const burst_stretches *stretches,
                                     int64_t index) {
  const burst_piece *piece = stretches->piece;
  int64_t elements = 0;
  for (int d = stretches->dims - 1; d >= 0; --d) {
    elements += index % piece->sizes[d] * piece->strides[d];
    index /= piece->sizes[d];
  }
  return (char *)piece->data + elements * piece->element_bytes;
}

#endif // BURST_RUNTIME_TRANSPORT_STRETCH_H
