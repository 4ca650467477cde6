//===- View.c - Strided memory --------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/base/View.h"

#include <string.h>

int64_t burst_type_bytes(int32_t type) {
  static const int64_t bytes[] = {
      [BURST_F64] = 8, [BURST_F32] = 4, [BURST_BF16] = 2,
      [BURST_F16] = 2, [BURST_I64] = 8, [BURST_I32] = 4,
      [BURST_I16] = 2, [BURST_I8] = 1,  [BURST_I1] = 1};
  return type < BURST_F64 || type > BURST_I1 ? 0 : bytes[type];
}

burst_view burst_view_of_bytes(void *data, int64_t bytes) {
  return (burst_view){data, 1, 1, {bytes}, {1}};
}

burst_view burst_view_of_piece(const burst_piece *piece) {
  burst_view view = {piece->data, piece->element_bytes, 4, {0}, {0}};
  memcpy(view.sizes, piece->sizes, sizeof(piece->sizes));
  memcpy(view.strides, piece->strides, sizeof(piece->strides));
  return view;
}

burst_view burst_view_of_tensor(const burst_tensor *tensor) {
  burst_view view = {
      tensor->data, burst_type_bytes(tensor->type), tensor->rank, {0}, {0}};
  memcpy(view.sizes, tensor->sizes, sizeof(tensor->sizes));
  memcpy(view.strides, tensor->strides, sizeof(tensor->strides));
  return view;
}

// Two views of equal sizes as nested loops over runs of `run` bytes that lie
// together in both. Strides and spans count bytes.
typedef struct loops {
  char *data[2];
  int64_t run;
  int64_t rank;
  int64_t sizes[BURST_VIEW_RANK];
  int64_t strides[2][BURST_VIEW_RANK];
} loops;

// Makes dimension `d` of the views a loop outside of the loops made so far, or
// a part of the innermost run or of the outermost loop if it continues it.
static void wrap(loops *nest, const burst_view *const views[2], int64_t d) {
  int64_t size = views[0]->sizes[d];
  int64_t strides[2];
  bool in_run = nest->rank == 0, in_loop = nest->rank > 0;
  int64_t outer = nest->rank - 1;
  for (int side = 0; side < 2; ++side) {
    strides[side] = views[side]->strides[d] * views[side]->element_bytes;
    in_run &= strides[side] == nest->run;
    in_loop = in_loop &&
              strides[side] == nest->strides[side][outer] * nest->sizes[outer];
  }
  if (in_run) {
    nest->run *= size;
  } else if (in_loop) {
    nest->sizes[outer] *= size;
  } else {
    nest->sizes[nest->rank] = size;
    nest->strides[0][nest->rank] = strides[0];
    nest->strides[1][nest->rank] = strides[1];
    ++nest->rank;
  }
}

// Loop 0 is the innermost. False if there are no elements.
static bool loops_of(const burst_view *first, const burst_view *second,
                     loops *nest) {
  const burst_view *const views[2] = {first, second};
  nest->data[0] = first->data;
  nest->data[1] = second->data;
  nest->run = first->element_bytes;
  nest->rank = 0;
  for (int64_t d = first->rank - 1; d >= 0; --d) {
    if (first->sizes[d] == 0)
      return false;
    if (first->sizes[d] > 1)
      wrap(nest, views, d);
  }
  return true;
}

static void copy(const loops *nest, int64_t rank, char *to, const char *from) {
  if (rank == 0) {
    memcpy(to, from, (size_t)nest->run);
    return;
  }
  --rank;
  for (int64_t i = 0; i < nest->sizes[rank]; ++i)
    copy(nest, rank, to + i * nest->strides[0][rank],
         from + i * nest->strides[1][rank]);
}

void burst_view_copy(const burst_view *to, const burst_view *from) {
  loops nest;
  if (loops_of(to, from, &nest))
    copy(&nest, nest.rank, nest.data[0], nest.data[1]);
}

// Elements may lie anywhere.
static void add_run(char *to, const char *from, int64_t bytes, int32_t type) {
  if (type == BURST_F64)
    for (int64_t i = 0; i < bytes; i += (int64_t)sizeof(double)) {
      double sum, addend;
      memcpy(&sum, to + i, sizeof(sum));
      memcpy(&addend, from + i, sizeof(addend));
      sum += addend;
      memcpy(to + i, &sum, sizeof(sum));
    }
  else
    for (int64_t i = 0; i < bytes; i += (int64_t)sizeof(float)) {
      float sum, addend;
      memcpy(&sum, to + i, sizeof(sum));
      memcpy(&addend, from + i, sizeof(addend));
      sum += addend;
      memcpy(to + i, &sum, sizeof(sum));
    }
}

static void add(const loops *nest, int64_t rank, char *to, const char *from,
                int32_t type) {
  if (rank == 0) {
    add_run(to, from, nest->run, type);
    return;
  }
  --rank;
  for (int64_t i = 0; i < nest->sizes[rank]; ++i)
    add(nest, rank, to + i * nest->strides[0][rank],
        from + i * nest->strides[1][rank], type);
}

void burst_view_add(const burst_view *to, const burst_view *from,
                    int32_t type) {
  loops nest;
  if (loops_of(to, from, &nest))
    add(&nest, nest.rank, nest.data[0], nest.data[1], type);
}

static void fill(const loops *nest, int64_t rank, char *data, int byte) {
  if (rank == 0) {
    memset(data, byte, (size_t)nest->run);
    return;
  }
  --rank;
  for (int64_t i = 0; i < nest->sizes[rank]; ++i)
    fill(nest, rank, data + i * nest->strides[0][rank], byte);
}

void burst_view_fill(const burst_view *view, int byte) {
  loops nest;
  if (loops_of(view, view, &nest))
    fill(&nest, nest.rank, nest.data[0], byte);
}

static burst_error *
visit_rows(const loops *nest, int64_t rank, char *to, char *from,
           burst_error *(*visit)(void *context, const burst_rows *rows),
           void *context) {
  if (rank <= 1) {
    const burst_rows rows = {.to = to,
                             .from = from,
                             .bytes = nest->run,
                             .count = rank ? nest->sizes[0] : 1,
                             .to_pitch = rank ? nest->strides[0][0] : nest->run,
                             .from_pitch =
                                 rank ? nest->strides[1][0] : nest->run};
    return visit(context, &rows);
  }
  --rank;
  burst_error *error = NULL;
  for (int64_t i = 0; i < nest->sizes[rank] && !error; ++i)
    error = visit_rows(nest, rank, to + i * nest->strides[0][rank],
                       from + i * nest->strides[1][rank], visit, context);
  return error;
}

burst_error *burst_view_visit(const burst_view *to, const burst_view *from,
                              burst_error *(*visit)(void *context,
                                                    const burst_rows *rows),
                              void *context) {
  loops nest;
  return loops_of(to, from, &nest) ? visit_rows(&nest, nest.rank, nest.data[0],
                                                nest.data[1], visit, context)
                                   : NULL;
}

// One past the last byte of the innermost `rank` loops that begin at `data`.
static const char *end_of(const loops *nest, int64_t rank, const char *data) {
  data += nest->run;
  for (int64_t d = 0; d < rank; ++d)
    data += (nest->sizes[d] - 1) * nest->strides[0][d];
  return data;
}

static bool touches(const loops *nest, int64_t rank, const char *data,
                    const char *begin, const char *end) {
  if (data >= end || end_of(nest, rank, data) <= begin)
    return false;
  if (rank == 0)
    return true;
  --rank;
  for (int64_t i = 0; i < nest->sizes[rank]; ++i)
    if (touches(nest, rank, data + i * nest->strides[0][rank], begin, end))
      return true;
  return false;
}

bool burst_view_touches(const burst_view *view, const char *begin,
                        const char *end) {
  loops nest;
  return begin < end && loops_of(view, view, &nest) &&
         touches(&nest, nest.rank, nest.data[0], begin, end);
}

static bool overlaps(const loops *nest, int64_t rank, const char *data,
                     const loops *other) {
  if (!touches(other, other->rank, other->data[0], data,
               end_of(nest, rank, data)))
    return false;
  if (rank == 0)
    return true;
  --rank;
  for (int64_t i = 0; i < nest->sizes[rank]; ++i)
    if (overlaps(nest, rank, data + i * nest->strides[0][rank], other))
      return true;
  return false;
}

bool burst_view_overlaps(const burst_view *view, const burst_view *other) {
  loops nest, others;
  return loops_of(view, view, &nest) && loops_of(other, other, &others) &&
         overlaps(&nest, nest.rank, nest.data[0], &others);
}
