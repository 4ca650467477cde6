//===- Collect.c - What ranks have, on rank 0 -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/run/Collect.h"
#include "burst/internal/error.h"
#include "runtime/src/run/Bytes.h"

#include <stdlib.h>
#include <string.h>

typedef struct collection {
  int64_t rank, num_ranks, most; // bytes of a rank, at most
  const int64_t *bytes;          // of each rank
  burst_message *messages;
  burst_piece *pieces;
} collection;

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

static void run(void *context, burst_rank *rank, const burst_table *table,
                char *own, char *received) {
  collection *all = context;
  burst_messages list = {.list = all->messages};
  if (all->rank != 0)
    add(all, &list, 0, false, own, all->bytes[all->rank]);
  for (int64_t peer = 1; all->rank == 0 && peer < all->num_ranks; ++peer)
    add(all, &list, peer, true, received + peer * all->most, all->bytes[peer]);
  table->wait(rank, table->start(rank, 0, &list));
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
    const burst_bytes_program program = {.name = "collecting results",
                                         .hash = UINT64_C(0x636f6c6c656374),
                                         .num_ranks = num_ranks,
                                         .run = run,
                                         .context = &all,
                                         .sent = own,
                                         .received = received,
                                         .sent_bytes = all.most,
                                         .received_bytes =
                                             all.most * num_ranks};
    error = burst_bytes_run(&program, config);
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
