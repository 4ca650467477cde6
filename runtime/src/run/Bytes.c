//===- Bytes.c - Programs that only exchange bytes ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/run/Bytes.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/run/Values.h"

// MLIR's memref descriptor.
typedef struct memref {
  char *base, *data;
  int64_t offset, size, stride;
} memref;

static void run(burst_rank *rank, const burst_table *table,
                void *const *values) {
  const burst_bytes_program *program =
      (const void *)(uintptr_t)*(const int64_t *)values[1];
  const memref *sent = values[0], *received = values[2];
  program->run(program->context, rank, table, sent->data, received->data);
}

// Nothing of it is sharded.
static void no_segments(int32_t index, int64_t owner, int64_t extent,
                        burst_segment *segments) {
  (void)index, (void)owner, (void)extent, (void)segments;
}

static burst_tensor tensor_of(void *memory, int64_t bytes) {
  return (burst_tensor){.data = memory,
                        .type = BURST_I8,
                        .rank = 1,
                        .sizes = {bytes},
                        .strides = {1}};
}

burst_error *burst_bytes_run(const burst_bytes_program *own,
                             const burst_run_config *config) {
  static const int64_t any[] = {-1};
  const burst_parameter parameters[] = {
      {"sent", BURST_TENSOR, BURST_I8, 1, 0, any, -1, 0, -1, -1, 0, 0, 0, NULL},
      {"program", BURST_SCALAR, BURST_I64, 0, 0, NULL, -1, 0, -1, -1, 0, 0, 0,
       NULL},
      {"received", BURST_TENSOR, BURST_I8, 1, 1, any, -1, 0, -1, -1, 0, 0, 0,
       NULL}};
  bool is_gpu = burst_device_cuda(config->device) != NULL;
  const burst_image image = {.size = sizeof(image),
                             .version = BURST_ABI_VERSION,
                             .name = own->name,
                             .target = "",
                             .num_ranks = own->num_ranks,
                             .num_parameters = 3,
                             .num_arguments = 2,
                             .parameters = parameters,
                             .segments = no_segments,
                             .run = run,
                             .hash = own->hash,
                             .minimum_driver = is_gpu ? 12000 : 0,
                             .version_major = BURST_VERSION_MAJOR,
                             .version_minor = BURST_VERSION_MINOR};
  burst_program *program;
  burst_error *error = burst_program_from_image(&image, NULL, NULL, &program);
  if (error)
    return error;
  int64_t address = (int64_t)(uintptr_t)own;
  const burst_tensor values[] = {tensor_of(own->sent, own->sent_bytes),
                                 {.data = &address, .type = BURST_I64},
                                 tensor_of(own->received, own->received_bytes)};
  error = is_gpu ? burst_cuda_run_values(program, config, values, 3, NULL)
                 : burst_run(program, config, values, 3, NULL);
  burst_program_release(program);
  return error;
}
