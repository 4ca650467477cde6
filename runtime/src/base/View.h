//===- View.h - Strided memory ----------------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_BASE_VIEW_H
#define BURST_RUNTIME_BASE_VIEW_H

#include "burst/burst.h"

#include <stdbool.h>

// A tensor has 8 dimensions; sharding it in blocks splits one of them.
enum { BURST_VIEW_RANK = 9 };

// Elements in memory. Strides count elements and are not negative.
typedef struct burst_view {
  char *data;
  int64_t element_bytes;
  int64_t rank;
  int64_t sizes[BURST_VIEW_RANK];
  int64_t strides[BURST_VIEW_RANK];
} burst_view;

burst_view burst_view_of_bytes(void *data, int64_t bytes);
burst_view burst_view_of_piece(const burst_piece *piece);
// Of a tensor that was checked.
burst_view burst_view_of_tensor(const burst_tensor *tensor);

// Copies between views of equal sizes that do not overlap.
void burst_view_copy(const burst_view *to, const burst_view *from);
// The same, adding floats of `type` to what is there.
void burst_view_add(const burst_view *to, const burst_view *from, int32_t type);
void burst_view_fill(const burst_view *view, int byte);

// Runs of bytes that lie together in two views: `count` of them, as far apart
// as the pitches say.
typedef struct burst_rows {
  char *to, *from;
  int64_t bytes, count, to_pitch, from_pitch;
} burst_rows;

// Calls `visit` with all elements of two views of equal sizes, until it fails.
burst_error *burst_view_visit(const burst_view *to, const burst_view *from,
                              burst_error *(*visit)(void *context,
                                                    const burst_rows *rows),
                              void *context);

// Whether an element lies, with any byte of it, in [begin, end).
bool burst_view_touches(const burst_view *view, const char *begin,
                        const char *end);
bool burst_view_overlaps(const burst_view *view, const burst_view *other);

#endif // BURST_RUNTIME_BASE_VIEW_H
