//===- Memory.c - What a program allocates --------------------------------===//

#include "Error.h"
#include "Rank.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };
_Static_assert(sizeof(burst_allocation) <= ALIGNMENT,
               "the memory behind it is aligned too");

static char *memory_of(burst_allocation *allocation) {
  return (char *)allocation + ALIGNMENT;
}

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

/* Large blocks lie on huge pages, where the system has them: packed operands
   are read all over by every task, and the first touch of small pages costs a
   twentieth of a kernel's time. */
static void *obtain(size_t bytes) {
  void *block;
  if (bytes < HUGE_PAGE || bytes > SIZE_MAX - HUGE_PAGE)
    return posix_memalign(&block, ALIGNMENT, bytes) ? NULL : block;
  size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  if (posix_memalign(&block, HUGE_PAGE, whole))
    return NULL;
#ifdef MADV_HUGEPAGE
  (void)madvise(block, whole, MADV_HUGEPAGE); /* a hint: without it, slower */
#endif
  return block;
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
  void *block = obtain((size_t)bytes + ALIGNMENT);
  if (!block)
    burst_rank_fail(rank, burst_error_create(BURST_OUT_OF_MEMORY,
                                             burst_rank_location(rank).text,
                                             "allocate: out of memory: wanted "
                                             "%" PRId64 " bytes",
                                             bytes));
  burst_allocation *allocation = block;
  *allocation = (burst_allocation){rank->allocations, bytes, kind};
  rank->allocations = allocation;
  count(rank, kind, bytes);
  if (rank->checked)
    memset(memory_of(allocation), BURST_POISON, (size_t)bytes);
  return memory_of(allocation);
}

void burst_rank_release(burst_rank *rank, void *memory) {
  burst_allocation **place = &rank->allocations;
  while (*place && memory_of(*place) != memory)
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
  free(released);
}

void burst_rank_free_memory(burst_rank *rank) {
  while (rank->allocations) {
    burst_allocation *next = rank->allocations->next;
    free(rank->allocations);
    rank->allocations = next;
  }
}
