//===- Memory.c - What a program allocates --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "runtime/src/base/View.h"
#include "runtime/src/device/Blocks.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/device/cuda/Device.h"
#include "runtime/src/run/Rank.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(burst_allocation) <= BURST_BLOCK_ALIGNMENT,
               "the memory behind it is aligned too");

static void at_least(int64_t *peak, int64_t value) {
  if (*peak < value)
    *peak = value;
}

static void count(burst_rank *rank, int64_t kind, int64_t bytes) {
  int64_t sum = 0;
  rank->live_bytes[kind] += bytes;
  for (int k = 0; k < BURST_MEMORY_KINDS; ++k)
    sum += rank->live_bytes[k];
  at_least(&rank->counters.peak_bytes[kind], rank->live_bytes[kind]);
  at_least(&rank->counters.peak_sum, sum);
}

static _Noreturn void fail_memory(burst_rank *rank, const char *what,
                                  int64_t bytes) {
  burst_rank_fail(rank, burst_error_create(
                            BURST_OUT_OF_MEMORY, burst_rank_location(rank).text,
                            "%s: out of memory: wanted %" PRId64 " bytes", what,
                            bytes));
}

static void *keep(burst_rank *rank, burst_allocation *made,
                  burst_allocation content) {
  *made = content;
  made->next = rank->allocations;
  rank->allocations = made;
  count(rank, made->kind, made->bytes);
  return made->memory;
}

static void *allocate_on_host(burst_rank *rank, int64_t bytes, int64_t kind) {
  char *block = burst_blocks_take(burst_device_blocks(rank->device),
                                  (size_t)bytes + BURST_BLOCK_ALIGNMENT);
  if (!block)
    fail_memory(rank, "allocate", bytes);
  if (rank->checked)
    memset(block + BURST_BLOCK_ALIGNMENT, BURST_POISON, (size_t)bytes);
  return keep(rank, (burst_allocation *)block,
              (burst_allocation){.memory = block + BURST_BLOCK_ALIGNMENT,
                                 .bytes = bytes,
                                 .kind = kind});
}

// `from` not null: with what lies there.
static void *allocate_on_gpu(burst_rank *rank, int64_t bytes, int64_t kind,
                             const void *from) {
  burst_allocation *made = malloc(sizeof(*made));
  if (!made)
    fail_memory(rank, from ? "upload" : "allocate", (int64_t)sizeof(*made));
  void *memory;
  burst_error *error = from
                           ? burst_cuda_upload(rank->cuda, from, bytes, &memory)
                           : burst_cuda_allocate(rank->cuda, bytes, &memory);
  if (error) {
    free(made);
    burst_rank_fail_at(rank, error);
  }
  keep(rank, made,
       (burst_allocation){
           .memory = memory, .bytes = bytes, .kind = kind, .on_gpu = true});
  if (rank->checked && !from) {
    burst_view view = burst_view_of_bytes(memory, bytes);
    error = burst_cuda_poison(rank->cuda, &view);
    if (error)
      burst_rank_fail_at(rank, error);
  }
  return memory;
}

void *burst_rank_allocate(burst_rank *rank, int64_t bytes, int64_t kind) {
  if (bytes < 0)
    burst_rank_fail(
        rank, burst_error_create(
                  BURST_PROGRAM_FAULT, burst_rank_location(rank).text,
                  "allocate: %" PRId64 " bytes, wanted 0 or more", bytes));
  if (kind < 0 || kind >= BURST_MEMORY_KINDS)
    burst_rank_fail(rank, burst_error_create(BURST_PROGRAM_FAULT,
                                             burst_rank_location(rank).text,
                                             "allocate: kind %" PRId64
                                             ", wanted 0 to %d",
                                             kind, BURST_MEMORY_KINDS - 1));
  return rank->cuda && kind != BURST_MEMORY_SCHEDULE
             ? allocate_on_gpu(rank, bytes, kind, NULL)
             : allocate_on_host(rank, bytes, kind);
}

void *burst_rank_upload(burst_rank *rank, const void *memory, int64_t bytes) {
  if (bytes < 0)
    burst_rank_fail(rank,
                    burst_error_create(
                        BURST_PROGRAM_FAULT, burst_rank_location(rank).text,
                        "upload: %" PRId64 " bytes, wanted 0 or more", bytes));
  return allocate_on_gpu(rank, bytes, BURST_MEMORY_SCHEDULE,
                         memory ? memory : "");
}

static burst_error *free_memory(burst_rank *rank,
                                burst_allocation *allocation) {
  if (!allocation->on_gpu) {
    burst_blocks_give(burst_device_blocks(rank->device), allocation,
                      (size_t)allocation->bytes + BURST_BLOCK_ALIGNMENT);
    return NULL;
  }
  burst_error *error =
      burst_cuda_release(rank->cuda, allocation->memory, allocation->bytes);
  free(allocation);
  return error;
}

void burst_rank_release(burst_rank *rank, void *memory) {
  burst_allocation **place = &rank->allocations;
  while (*place && (*place)->memory != memory)
    place = &(*place)->next;
  burst_allocation *released = *place;
  if (!released)
    burst_rank_fail(rank, burst_error_create(BURST_PROGRAM_FAULT,
                                             burst_rank_location(rank).text,
                                             "release: nothing is allocated at "
                                             "%p",
                                             memory));
  if (rank->checked)
    burst_guard_release(rank, memory, released->bytes);
  *place = released->next;
  count(rank, released->kind, -released->bytes);
  burst_error *error = free_memory(rank, released);
  if (error)
    burst_rank_fail_at(rank, error);
}

void burst_rank_free_memory(burst_rank *rank) {
  while (rank->allocations) {
    burst_allocation *next = rank->allocations->next;
    // A GPU that refuses this is lost, and its memory with it.
    burst_error_destroy(free_memory(rank, rank->allocations));
    rank->allocations = next;
  }
}
