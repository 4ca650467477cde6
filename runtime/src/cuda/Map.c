//===- Map.c - Tensor maps ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "runtime/src/cuda/GpuImpl.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_DIMENSIONS = 5, MOST_OF_A_BOX = 256, ALIGNMENT = 16 };

static const struct {
  int32_t type;
  CUtensorMapDataType mapped;
} types[] = {{BURST_F64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64},
             {BURST_F32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32},
             {BURST_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16},
             {BURST_F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16},
             {BURST_I64, CU_TENSOR_MAP_DATA_TYPE_INT64},
             {BURST_I32, CU_TENSOR_MAP_DATA_TYPE_INT32},
             {BURST_I16, CU_TENSOR_MAP_DATA_TYPE_UINT16},
             {BURST_I8, CU_TENSOR_MAP_DATA_TYPE_UINT8},
             {BURST_I1, CU_TENSOR_MAP_DATA_TYPE_UINT8}};

static const struct {
  int32_t bytes;
  CUtensorMapSwizzle mapped;
} swizzles[] = {{0, CU_TENSOR_MAP_SWIZZLE_NONE},
                {32, CU_TENSOR_MAP_SWIZZLE_32B},
                {64, CU_TENSOR_MAP_SWIZZLE_64B},
                {128, CU_TENSOR_MAP_SWIZZLE_128B}};

enum {
  TYPES = sizeof(types) / sizeof(*types),
  SWIZZLES = sizeof(swizzles) / sizeof(*swizzles)
};

static int find_type(int32_t type) {
  int i = 0;
  while (i < TYPES && types[i].type != type)
    ++i;
  return i;
}

static int find_swizzle(int32_t bytes) {
  int i = 0;
  while (i < SWIZZLES && swizzles[i].bytes != bytes)
    ++i;
  return i;
}

#define INVALID(...) burst_error_create(BURST_INVALID_PROGRAM, "", __VA_ARGS__)

burst_error *burst_gpu_map_check(const burst_gpu *gpu,
                                 const burst_gpu_kernel *kernel,
                                 const burst_gpu_map *map) {
  const char *name = kernel->name;
  if (!gpu->properties.tensor_maps)
    return INVALID("kernel %s: tensor maps, which GPU %d (compute capability "
                   "%d.%d) does not have",
                   name, gpu->properties.ordinal, gpu->properties.major,
                   gpu->properties.minor);
  if (map->rank < 1 || map->rank > MOST_DIMENSIONS)
    return INVALID("kernel %s: a tensor map of %d dimensions, wanted 1 to %d",
                   name, map->rank, MOST_DIMENSIONS);
  int64_t bytes = (int64_t)sizeof(void *) +
                  map->rank * (int64_t)(sizeof(int64_t) + sizeof(int32_t));
  if (map->buffer < 0 || map->buffer > kernel->argument_bytes - bytes)
    return INVALID("kernel %s: a tensor map of %" PRId64 " bytes at byte "
                   "%" PRId64 " of %" PRId64,
                   name, bytes, map->buffer, kernel->argument_bytes);
  if (find_type(map->type) == TYPES)
    return INVALID("kernel %s: a tensor map of type %d", name, map->type);
  if (find_swizzle(map->swizzle) == SWIZZLES)
    return INVALID("kernel %s: a tensor map swizzled over %d bytes, wanted 0, "
                   "32, 64 or 128",
                   name, map->swizzle);
  for (int32_t d = 0; d < map->rank; ++d)
    if (map->box[d] < 1 || map->box[d] > MOST_OF_A_BOX)
      return INVALID("kernel %s: a tensor map with boxes of %d elements in "
                     "dimension %d, wanted 1 to %d",
                     name, map->box[d], d, MOST_OF_A_BOX);
  return NULL;
}

// What a map is made of, innermost dimension first. False: there are no
// elements.
typedef struct tiling {
  void *data;
  uint64_t sizes[MOST_DIMENSIONS];
  uint64_t
      strides[MOST_DIMENSIONS]; // in bytes, of all dimensions but the first
  uint32_t box[MOST_DIMENSIONS];
} tiling;

static bool read_tiling(const burst_gpu_map *map, const void *arguments,
                        tiling *read) {
  const char *buffer = (const char *)arguments + map->buffer;
  int64_t steps[MOST_DIMENSIONS];
  int32_t sizes[MOST_DIMENSIONS];
  size_t rank = (size_t)map->rank;
  memcpy(&read->data, buffer, sizeof(read->data));
  buffer += sizeof(read->data);
  memcpy(steps, buffer, rank * sizeof(*steps));
  memcpy(sizes, buffer + rank * sizeof(*steps), rank * sizeof(*sizes));
  uint64_t inner = (uint64_t)burst_type_bytes(map->type);
  for (size_t i = 0; i < rank; ++i) {
    size_t d = rank - 1 - i;
    if (sizes[d] < 1)
      return false;
    read->sizes[i] = (uint64_t)sizes[d];
    read->box[i] = (uint32_t)map->box[d];
    if (i > 0)
      // Where there is one element, any step will do but not for the driver.
      read->strides[i - 1] =
          sizes[d] == 1
              ? (inner + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
              : (uint64_t)steps[d] * (uint64_t)burst_type_bytes(map->type);
    inner =
        i > 0 ? read->strides[i - 1] * read->sizes[i] : inner * read->sizes[i];
  }
  return true;
}

burst_error *burst_gpu_map_encode(const burst_gpu *gpu,
                                  const burst_gpu_kernel *kernel,
                                  const burst_gpu_map *map,
                                  const void *arguments, CUtensorMap *encoded) {
  static const uint32_t ones[MOST_DIMENSIONS] = {1, 1, 1, 1, 1};
  tiling tiling;
  memset(encoded, 0, sizeof(*encoded));
  // Nothing is copied by a map over nothing; the driver makes none.
  if (!read_tiling(map, arguments, &tiling))
    return NULL;
  if ((uintptr_t)tiling.data % ALIGNMENT != 0)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "kernel %s: a buffer at %p, wanted a multiple of "
                              "%d: align the tensor",
                              kernel->name, tiling.data, ALIGNMENT);
  for (int32_t i = 0; i < map->rank - 1; ++i)
    if (tiling.strides[i] % ALIGNMENT != 0)
      return burst_error_create(
          BURST_INVALID_ARGUMENT, "",
          "kernel %s: a stride of %" PRIu64 " bytes in dimension %d, wanted a "
          "multiple of %d",
          kernel->name, tiling.strides[i], map->rank - 2 - i, ALIGNMENT);
  CUresult result = gpu->driver->cuTensorMapEncodeTiled(
      encoded, types[find_type(map->type)].mapped, (uint32_t)map->rank,
      tiling.data, tiling.sizes, tiling.strides, tiling.box, ones,
      CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzles[find_swizzle(map->swizzle)].mapped,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS
             ? NULL
             : burst_driver_error(gpu->driver, gpu->properties.ordinal,
                                  "cuTensorMapEncodeTiled", result);
}
