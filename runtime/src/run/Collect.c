//===- Collect.c - What ranks have, on rank 0 -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/run/Collect.h"
#include "burst/internal/error.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/run/Values.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct collection {
  int64_t rank, num_ranks, most; // bytes of a rank, at most
  const int64_t *bytes;          // of each rank
  burst_message *messages;
  burst_piece *pieces;
} collection;

// MLIR's memref descriptor.
typedef struct memref {
  char *base, *data;
  int64_t offset, size, stride;
} memref;

static void add(collection *all, burst_messages *list, int64_t peer,
                bool receives, char *data, int64_t bytes) {
  if (bytes == 0)
    return;
  burst_piece *piece = &all->pieces[list->count];
  *piece = (burst_piece){.data = data,
                         .element_bytes = 1,
                         .sizes = {1, 1, 1, bytes},
                         .strides = {0, 0, 0, 1}};
  all->messages[list->count++] = (burst_message){peer, receives, 1, piece};
}

static void run(burst_rank *rank, const burst_table *table,
                void *const *values) {
  collection *all = (void *)(uintptr_t)*(const int64_t *)values[1];
  const memref *own = values[0], *received = values[2];
  burst_messages list = {0, BURST_POINT_TO_POINT, all->messages};
  if (all->rank != 0)
    add(all, &list, 0, false, own->data, all->bytes[all->rank]);
  for (int64_t peer = 1; all->rank == 0 && peer < all->num_ranks; ++peer)
    add(all, &list, peer, true, received->data + peer * all->most,
        all->bytes[peer]);
  table->wait(rank, table->start(rank, 0, &list));
}

// Nothing of it is sharded.
static void no_segments(int32_t index, int64_t owner, int64_t extent,
                        burst_segment *segments) {
  (void)index, (void)owner, (void)extent, (void)segments;
}

static burst_error *run_all(collection *all, const burst_run_config *given,
                            char *own, char *received) {
  static const int64_t any[] = {-1};
  const burst_parameter parameters[] = {
      {"own", BURST_TENSOR, BURST_I8, 1, 0, any, -1, 0, -1, -1, 0, 0},
      {"all", BURST_SCALAR, BURST_I64, 0, 0, NULL, -1, 0, -1, -1, 0, 0},
      {"received", BURST_TENSOR, BURST_I8, 1, 1, any, -1, 0, -1, -1, 0, 0}};
  bool is_gpu = burst_device_cuda(given->device) != NULL;
  const burst_image image = {.size = sizeof(image),
                             .version = BURST_ABI_VERSION,
                             .name = "collecting results",
                             .target = "",
                             .num_ranks = all->num_ranks,
                             .num_parameters = 3,
                             .num_arguments = 2,
                             .parameters = parameters,
                             .segments = no_segments,
                             .run = run,
                             .hash = UINT64_C(0x636f6c6c656374),
                             .minimum_driver = is_gpu ? 12000 : 0,
                             .version_major = BURST_VERSION_MAJOR,
                             .version_minor = BURST_VERSION_MINOR};
  burst_program *program;
  burst_error *error = burst_program_from_image(&image, NULL, NULL, &program);
  if (error)
    return error;
  int64_t address = (int64_t)(uintptr_t)all;
  const burst_tensor values[] = {
      {own, BURST_I8, 1, {all->most}, {1}},
      {.data = &address, .type = BURST_I64},
      {received, BURST_I8, 1, {all->most * all->num_ranks}, {1}}};
  burst_run_config config = {.size = sizeof(config),
                             .rank = given->rank,
                             .device = given->device,
                             .transport = given->transport,
                             .deadline_seconds = given->deadline_seconds};
  error = is_gpu ? burst_cuda_run_values(program, &config, values, 3, NULL)
                 : burst_run(program, &config, values, 3, NULL);
  burst_program_release(program);
  return error;
}

// Copies spans of a rank to where they lie one behind the other, or back.
static void copy(const burst_span *spans, int64_t count, char *packed,
                 bool back) {
  for (int64_t i = 0; i < count; ++i) {
    if (spans[i].bytes)
      memcpy(back ? spans[i].data : packed, back ? packed : spans[i].data,
             (size_t)spans[i].bytes);
    packed += spans[i].bytes;
  }
}

burst_error *burst_collect(const burst_run_config *config, int64_t num_ranks,
                           int64_t count, const burst_span *spans) {
  size_t ranks = (size_t)num_ranks;
  int64_t *bytes = calloc(ranks, sizeof(int64_t));
  collection all = {
      .rank = config->rank, .num_ranks = num_ranks, .most = 1, .bytes = bytes};
  for (int64_t i = 0; bytes && i < num_ranks * count; ++i) {
    int64_t *sum = &bytes[i / count];
    *sum += spans[i].bytes;
    all.most = *sum > all.most ? *sum : all.most;
  }
  all.messages = calloc(ranks, sizeof(burst_message));
  all.pieces = calloc(ranks, sizeof(burst_piece));
  char *own = malloc((size_t)all.most);
  char *received = malloc((size_t)all.most * ranks);
  burst_error *error = NULL;
  if (!bytes || !all.messages || !all.pieces || !own || !received) {
    error = burst_error_no_memory((size_t)all.most * (ranks + 1));
    burst_transport_stop(config->transport, burst_error_message(error));
  } else {
    copy(spans + config->rank * count, count, own, false);
    error = run_all(&all, config, own, received);
  }
  for (int64_t rank = 1; !error && config->rank == 0 && rank < num_ranks;
       ++rank)
    copy(spans + rank * count, count, received + rank * all.most, true);
  free(bytes);
  free(all.messages);
  free(all.pieces);
  free(own);
  free(received);
  return error;
}
