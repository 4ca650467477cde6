//===- Shards.c - Sharding global tensors, and gathering them -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "burst/internal/tensor.h"
#include "runtime/src/base/View.h"
#include "runtime/src/program/Segments.h"

#include <inttypes.h>
#include <stdlib.h>

// Both tensors of a copy, seen through the same dimensions.
typedef struct pair {
  burst_view global, local;
  int32_t dim; // the sharded one
} pair;

static void copy(const pair *pair, bool gather) {
  const burst_view *views[] = {&pair->local, &pair->global};
  burst_view_copy(views[gather], views[!gather]);
}

// `blocks` blocks of `block` positions each: two dimensions in place of one.
static void copy_blocks(pair pair, int64_t global_begin, int64_t local_begin,
                        int64_t blocks, int64_t block, int64_t step,
                        bool gather) {
  burst_view *views[] = {&pair.global, &pair.local};
  const int64_t begins[] = {global_begin, local_begin};
  const int64_t steps[] = {step, block};
  for (int i = 0; i < 2; ++i) {
    burst_view *view = views[i];
    int64_t stride = view->strides[pair.dim];
    view->data += begins[i] * stride * view->element_bytes;
    for (int64_t d = view->rank; d > pair.dim + 1; --d) {
      view->sizes[d] = view->sizes[d - 1];
      view->strides[d] = view->strides[d - 1];
    }
    ++view->rank;
    view->sizes[pair.dim] = blocks;
    view->strides[pair.dim] = steps[i] * stride;
    view->sizes[pair.dim + 1] = block;
    view->strides[pair.dim + 1] = stride;
  }
  copy(&pair, gather);
}

static void copy_segment(const pair *pair, const burst_segment *segment,
                         int64_t begin, bool gather) {
  // A tensor without elements may have no data to count from.
  if (segment->count == 0 || !pair->global.data || !pair->local.data)
    return;
  int64_t blocks = segment->count / segment->block;
  int64_t rest = segment->count % segment->block;
  if (blocks > 0)
    copy_blocks(*pair, segment->begin, begin, blocks, segment->block,
                blocks > 1 ? segment->step : 0, gather);
  if (rest > 0)
    copy_blocks(*pair, segment->begin + blocks * segment->step,
                begin + blocks * segment->block, 1, rest, rest, gather);
}

static burst_error *check_part(const burst_tensor *global,
                               const burst_tensor *local,
                               const burst_parameter *parameter, int32_t d) {
  int64_t parts = burst_parameter_parts(parameter, d);
  if (global->sizes[d] % parts != 0)
    return burst_error_create(BURST_INVALID_ARGUMENT, "global",
                              "%s: size %" PRId64
                              " in dimension %d, wanted a multiple of %" PRId64,
                              parameter->name, global->sizes[d], d, parts);
  return burst_tensor_check_size("local", local, parameter, d,
                                 global->sizes[d] / parts);
}

static burst_error *check(const burst_tensor *global, const burst_tensor *local,
                          const burst_parameter *parameter, bool gather) {
  burst_error *error = burst_tensor_check("global", global, parameter, gather);
  if (!error)
    error = burst_tensor_check("local", local, parameter, !gather);
  for (int32_t d = 0; d < parameter->rank && !error; ++d)
    if (d != parameter->shard_dim)
      error = check_part(global, local, parameter, d);
  return error;
}

// The part of the global tensor that the rank has of the dimensions that are
// split.
static burst_view view_part(const burst_tensor *global,
                            const burst_parameter *parameter, int64_t rank) {
  burst_view view = burst_view_of_tensor(global);
  for (int32_t i = 0; i < parameter->num_splits; ++i) {
    const burst_split *split = &parameter->splits[i];
    int64_t place = rank / split->stride % split->parts;
    view.sizes[split->dim] /= split->parts;
    if (view.data)
      view.data += place * view.sizes[split->dim] * view.strides[split->dim] *
                   view.element_bytes;
  }
  return view;
}

static burst_error *move(const burst_program *program, int64_t parameter,
                         int64_t rank, const burst_tensor *global,
                         const burst_tensor *local, bool gather) {
  burst_error *error = burst_program_check(program, parameter, rank);
  if (error)
    return error;
  const burst_parameter *moved = &program->image->parameters[parameter];
  error = check(global, local, moved, gather);
  if (error)
    return error;
  pair pair = {view_part(global, moved, rank), burst_view_of_tensor(local),
               moved->shard_dim};
  if (moved->shard_dim < 0) {
    if (gather && moved->is_partial && rank > 0)
      burst_view_add(&pair.global, &pair.local, moved->type);
    else
      copy(&pair, gather);
    return NULL;
  }
  burst_holding holding;
  error = burst_holding_create(program, parameter, rank,
                               global->sizes[moved->shard_dim], &holding);
  if (error)
    return error;
  error = burst_tensor_check_size("local", local, moved, moved->shard_dim,
                                  holding.size);
  int64_t begin = 0;
  for (int32_t i = 0; i < holding.num_segments && !error; ++i) {
    copy_segment(&pair, &holding.segments[i], begin, gather);
    begin += holding.segments[i].count;
  }
  free(holding.segments);
  return error;
}

burst_error *burst_shard(const burst_program *program, int64_t parameter,
                         int64_t rank, const burst_tensor *global,
                         const burst_tensor *local) {
  BURST_REQUIRE_HANDLE(program, BURST_KIND_PROGRAM);
  BURST_REQUIRE(global);
  BURST_REQUIRE(local);
  return move(program, parameter, rank, global, local, false);
}

burst_error *burst_gather(const burst_program *program, int64_t parameter,
                          int64_t rank, const burst_tensor *local,
                          const burst_tensor *global) {
  BURST_REQUIRE_HANDLE(program, BURST_KIND_PROGRAM);
  BURST_REQUIRE(global);
  BURST_REQUIRE(local);
  return move(program, parameter, rank, global, local, true);
}
