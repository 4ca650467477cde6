//===- Image.c - Whether an image makes sense -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "burst/internal/processor.h"
#include "runtime/src/base/Version.h"
#include "runtime/src/program/Program.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define INVALID(...) burst_error_create(BURST_INVALID_PROGRAM, "", __VA_ARGS__)

static burst_error *check_sizes(const char *name,
                                const burst_parameter *parameter) {
  if (parameter->rank < 0 || parameter->rank > 8)
    return INVALID("%s: rank %d, wanted 0 to 8", name, parameter->rank);
  if (parameter->rank > 0 && !parameter->sizes)
    return INVALID("%s: no sizes, wanted %d", name, parameter->rank);
  for (int32_t d = 0; d < parameter->rank; ++d)
    if (parameter->sizes[d] < -1)
      return INVALID("%s: size %" PRId64
                     " in dimension %d, wanted 0 or more, or -1",
                     name, parameter->sizes[d], d);
  return NULL;
}

static burst_error *check_splits(const burst_image *image, const char *name,
                                 const burst_parameter *parameter) {
  int32_t count = parameter->num_splits, last = -1;
  if (count < 0 || count > parameter->rank || (count > 0 && !parameter->splits))
    return INVALID("%s: %d dimensions that are split, wanted 0 to %d", name,
                   count, parameter->rank);
  for (int32_t i = 0; i < count; ++i) {
    const burst_split *split = &parameter->splits[i];
    if (split->dim <= last || split->dim >= parameter->rank ||
        split->dim == parameter->shard_dim)
      return INVALID("%s: split %d of dimension %d, wanted another than the "
                     "sharded one, by rising number, below %d",
                     name, i, split->dim, parameter->rank);
    if (split->parts < 1 || split->stride < 1 ||
        split->stride > image->num_ranks / split->parts)
      return INVALID("%s: dimension %d over %d ranks with a stride of %" PRId64
                     ", of %" PRId64,
                     name, split->dim, split->parts, split->stride,
                     image->num_ranks);
    last = split->dim;
  }
  return NULL;
}

static burst_error *check_sharding(const burst_image *image, const char *name,
                                   const burst_parameter *parameter) {
  int32_t carrier = parameter->extent_parameter;
  if (parameter->shard_dim < -1 || parameter->shard_dim >= parameter->rank)
    return INVALID("%s: sharded dimension %d, wanted -1 to %d", name,
                   parameter->shard_dim, parameter->rank - 1);
  if (parameter->extent < -1)
    return INVALID("%s: extent %" PRId64 ", wanted 0 or more, or -1", name,
                   parameter->extent);
  if (carrier < -1 || carrier >= image->num_arguments)
    return INVALID("%s: extent in parameter %d, wanted -1 to %d", name, carrier,
                   image->num_arguments - 1);
  if (carrier >= 0 && image->parameters[carrier].kind != BURST_EXTENT)
    return INVALID("%s: extent in parameter %d, which is none", name, carrier);
  if (parameter->is_partial &&
      (!parameter->is_result || parameter->kind != BURST_TENSOR ||
       parameter->shard_dim >= 0 ||
       (parameter->type != BURST_F32 && parameter->type != BURST_F64)))
    return INVALID("%s: is_partial %d, wanted 0 but for results that are whole "
                   "tensors of f32 or f64",
                   name, parameter->is_partial);
  burst_error *error = check_splits(image, name, parameter);
  if (error || parameter->shard_dim < 0)
    return error;
  if (parameter->extent < 0 && carrier < 0)
    return INVALID("%s: no extent of the sharded dimension", name);
  if (parameter->num_segments < 0)
    return INVALID("%s: %d segments, wanted 0 or more", name,
                   parameter->num_segments);
  return NULL;
}

static burst_error *check_parameter(const burst_image *image, int32_t index) {
  const burst_parameter *parameter = &image->parameters[index];
  const char *name = parameter->name;
  if (!name)
    return INVALID("%s: parameter %d: no name", image->name, index);
  if (parameter->kind < BURST_TENSOR || parameter->kind > BURST_EXTENT)
    return INVALID("%s: kind %d, wanted 0 to 2", name, parameter->kind);
  if (!burst_type_bytes(parameter->type))
    return INVALID("%s: there is no type %d", name, parameter->type);
  if (parameter->kind == BURST_EXTENT && parameter->type != BURST_I64)
    return INVALID("%s: an extent of type %d, wanted %d", name, parameter->type,
                   BURST_I64);
  if (parameter->kind != BURST_TENSOR && parameter->rank != 0)
    return INVALID("%s: a scalar of rank %d, wanted 0", name, parameter->rank);
  if (parameter->is_result != (index >= image->num_arguments))
    return INVALID("%s: is_result %d at place %d behind %d arguments", name,
                   parameter->is_result, index, image->num_arguments);
  burst_error *error = check_sizes(name, parameter);
  return error ? error : check_sharding(image, name, parameter);
}

// The head is what every version has.
static burst_error *check_head(const burst_image *image) {
  if (!image)
    return INVALID("no image");
  if (image->version != BURST_ABI_VERSION)
    return INVALID("image of ABI version %" PRIu32 ", wanted %d",
                   image->version, BURST_ABI_VERSION);
  if (image->size < offsetof(burst_image, features))
    return INVALID("image of %" PRIu32 " bytes, wanted at least %zu",
                   image->size, offsetof(burst_image, features));
  if (!image->name)
    return INVALID("image: no name");
  return NULL;
}

// Code for another processor would end the process with an illegal instruction.
static burst_error *check_features(const burst_image *image) {
  if (image->size < offsetof(burst_image, version_major) || !image->features)
    return NULL;
  char missing[256] = "";
  size_t length = 0;
  for (const char *name = image->features; *name;) {
    size_t bytes = strcspn(name, ",");
    if (burst_processor_has(name, bytes) != 1 &&
        length + bytes + 2 < sizeof(missing))
      length +=
          (size_t)snprintf(missing + length, sizeof(missing) - length, "%s%.*s",
                           length ? ", " : "", (int)bytes, name);
    name += bytes + (name[bytes] == ',');
  }
  if (length == 0)
    return NULL;
  return INVALID("%s: compiled for %s, and this processor lacks: %s",
                 image->name, image->target, missing);
}

static burst_error *check_version(const burst_image *image) {
  if (image->size < BURST_COVERS(burst_image, version_minor) ||
      burst_version_fits(image->version_major, image->version_minor))
    return NULL;
  return INVALID("%s: compiled by burst %d.%d, this is %s: compile it again",
                 image->name, image->version_major, image->version_minor,
                 BURST_VERSION);
}

// Groups divide the ranks. Images that end before them have none.
static burst_error *check_groups(const burst_image *image) {
  if (image->size < BURST_COVERS(burst_image, groups))
    return NULL;
  if (image->num_groups < 0 || (image->num_groups > 0 && !image->groups))
    return INVALID("%s: %" PRId64 " groups%s, wanted 0 or more and their list",
                   image->name, image->num_groups,
                   image->groups ? "" : " without a list");
  for (int64_t i = 0; i < image->num_groups; ++i) {
    const burst_group *group = &image->groups[i];
    int64_t together;
    if (group->num_ranks < 1 || group->stride < 1 ||
        __builtin_mul_overflow(group->num_ranks, group->stride, &together) ||
        image->num_ranks % together != 0)
      return INVALID(
          "%s: a group of %" PRId64 " ranks with a stride of %" PRId64
          ", wanted one that divides %" PRId64 " ranks",
          image->name, group->num_ranks, group->stride, image->num_ranks);
  }
  return NULL;
}

burst_error *burst_image_check(const burst_image *image) {
  burst_error *error = check_head(image);
  if (error)
    return error;
  error = check_version(image);
  if (error)
    return error;
  const char *name = image->name;
  if (!image->target)
    return INVALID("%s: no target", name);
  if (image->num_ranks < 1)
    return INVALID("%s: %" PRId64 " ranks, wanted at least 1", name,
                   image->num_ranks);
  if (image->num_parameters < 0)
    return INVALID("%s: %d parameters, wanted 0 or more", name,
                   image->num_parameters);
  if (image->num_arguments < 0 || image->num_arguments > image->num_parameters)
    return INVALID("%s: %d arguments, wanted 0 to %d", name,
                   image->num_arguments, image->num_parameters);
  if (image->num_parameters > 0 && !image->parameters)
    return INVALID("%s: no parameters, wanted %d", name, image->num_parameters);
  if (!image->run || !image->segments)
    return INVALID("%s: no function %s", name, image->run ? "segments" : "run");
  if (image->minimum_driver < 0)
    return INVALID("%s: minimum_driver %d, wanted 0 or more", name,
                   image->minimum_driver);
  if (image->num_gpu_kernels < 0 ||
      (image->num_gpu_kernels > 0 && image->minimum_driver == 0))
    return INVALID("%s: %d kernels of GPUs, wanted 0 %s", name,
                   image->num_gpu_kernels,
                   image->minimum_driver ? "or more" : "without a driver");
  if (image->num_gpu_kernels > 0 && !image->gpu_kernels)
    return INVALID("%s: no kernels of GPUs, wanted %d", name,
                   image->num_gpu_kernels);
  for (int32_t i = 0; i < image->num_parameters && !error; ++i)
    error = check_parameter(image, i);
  if (!error)
    error = check_groups(image);
  return error ? error : check_features(image);
}
