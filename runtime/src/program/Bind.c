//===- Bind.c - The caller's tensors as a program wants them --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/program/Bind.h"
#include "burst/internal/error.h"
#include "burst/internal/tensor.h"
#include "runtime/src/base/View.h"
#include "runtime/src/program/Program.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// MLIR's memref descriptor of at most 8 dimensions: sizes and strides follow
// each other without a gap.
typedef struct descriptor {
  void *base, *data;
  int64_t offset;
  int64_t sizes_and_strides[16];
} descriptor;

struct burst_binding {
  void **values;
  descriptor descriptors[];
};

int64_t burst_extent_of(const burst_program *program, int64_t parameter,
                        const burst_tensor *values) {
  const burst_parameter *sharded = &program->image->parameters[parameter];
  int32_t carrier = sharded->extent_parameter;
  return carrier < 0 ? sharded->extent : *(const int64_t *)values[carrier].data;
}

int64_t burst_binding_bytes(const burst_program *program,
                            const burst_tensor *values) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < program->image->num_parameters; ++i)
    if (program->image->parameters[i].kind == BURST_TENSOR &&
        __builtin_add_overflow(bytes, burst_tensor_bytes(&values[i]), &bytes))
      return INT64_MAX; // of views whose strides are 0
  return bytes;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static burst_error *check_sizes(const burst_program *program, int64_t rank,
                                int64_t index, const burst_tensor *values,
                                const char *whose) {
  const burst_parameter *parameter = &program->image->parameters[index];
  const burst_tensor *tensor = &values[index];
  burst_error *error = NULL;
  for (int32_t d = 0; d < parameter->rank && !error; ++d)
    if (parameter->sizes[d] >= 0)
      error = burst_tensor_check_size(whose, tensor, parameter, d,
                                      parameter->sizes[d]);
  if (error || parameter->shard_dim < 0)
    return error;
  int64_t size;
  error = burst_program_local_size(
      program, index, rank, burst_extent_of(program, index, values), &size);
  return error ? error
               : burst_tensor_check_size(whose, tensor, parameter,
                                         parameter->shard_dim, size);
}

static burst_error *check_last_stride(const burst_tensor *tensor,
                                      const burst_parameter *parameter,
                                      const char *whose) {
  int32_t last = tensor->rank - 1;
  if (last < 0 || tensor->sizes[last] <= 1 || tensor->strides[last] == 1)
    return NULL;
  return burst_error_create(BURST_INVALID_ARGUMENT, whose,
                            "%s %s: stride %" PRId64
                            " in dimension %d, wanted 1",
                            parameter->is_result ? "result" : "argument",
                            parameter->name, tensor->strides[last], last);
}

static burst_error *check_overlaps(const burst_image *image,
                                   const burst_tensor *values,
                                   const char *whose) {
  for (int32_t i = image->num_arguments; i < image->num_parameters; ++i) {
    burst_view result = burst_view_of_tensor(&values[i]);
    for (int32_t j = 0; j < i; ++j) {
      burst_view other = burst_view_of_tensor(&values[j]);
      if (burst_view_overlaps(&result, &other))
        return burst_error_create(
            BURST_INVALID_ARGUMENT, whose, "result %s overlaps %s",
            image->parameters[i].name, image->parameters[j].name);
    }
  }
  return NULL;
}

burst_error *burst_values_check(const burst_program *program, const char *whose,
                                const burst_tensor *values) {
  const burst_image *image = program->image;
  burst_error *error = NULL;
  for (int32_t i = 0; i < image->num_parameters && !error; ++i)
    error = burst_tensor_check(whose, &values[i], &image->parameters[i],
                               i >= image->num_arguments);
  return error ? error : check_overlaps(image, values, whose);
}

static burst_error *check(const burst_program *program, int64_t rank,
                          const burst_tensor *values) {
  const burst_image *image = program->image;
  char whose[32];
  snprintf(whose, sizeof(whose), "rank %" PRId64, rank);
  burst_error *error = burst_values_check(program, whose, values);
  for (int32_t i = 0; i < image->num_parameters && !error; ++i) {
    error = check_last_stride(&values[i], &image->parameters[i], whose);
    if (!error)
      error = check_sizes(program, rank, i, values, whose);
  }
  return error;
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

/* Programs clamp indices into their tables. What they read of a table without
   elements is this, wherever they look. */
static int64_t nothing_on_host;

static bool is_empty(const burst_tensor *tensor) {
  for (int32_t d = 0; d < tensor->rank; ++d)
    if (tensor->sizes[d] == 0)
      return true;
  return false;
}

static void describe(const burst_tensor *tensor, void *nothing,
                     descriptor *described) {
  bool empty = is_empty(tensor);
  described->base = described->data = empty ? nothing : tensor->data;
  size_t bytes = (size_t)tensor->rank * sizeof(int64_t);
  int64_t *strides = described->sizes_and_strides + tensor->rank;
  memcpy(described->sizes_and_strides, tensor->sizes, bytes);
  if (!empty)
    memcpy(strides, tensor->strides, bytes);
  if (tensor->rank > 0)
    strides[tensor->rank - 1] = 1; // also where there is nothing to step over
}

burst_error *burst_binding_create(const burst_program *program, int64_t rank,
                                  const burst_tensor *values, void *nothing,
                                  burst_binding **binding) {
  *binding = NULL;
  burst_error *error = check(program, rank, values);
  if (error)
    return error;
  size_t count = (size_t)program->image->num_parameters;
  size_t descriptors = sizeof(burst_binding) + count * sizeof(descriptor);
  size_t bytes = descriptors + count * sizeof(void *);
  burst_binding *made = calloc(1, bytes);
  if (!made)
    return burst_error_no_memory(bytes);
  made->values = (void **)((char *)made + descriptors);
  for (size_t i = 0; i < count; ++i) {
    const burst_parameter *parameter = &program->image->parameters[i];
    if (parameter->kind == BURST_TENSOR) {
      describe(&values[i],
               nothing && !parameter->is_host ? nothing : &nothing_on_host,
               &made->descriptors[i]);
      made->values[i] = &made->descriptors[i];
    } else {
      made->values[i] = values[i].data;
    }
  }
  *binding = made;
  return NULL;
}

void burst_binding_destroy(burst_binding *binding) { free(binding); }

void *const *burst_binding_values(const burst_binding *binding) {
  return binding->values;
}
