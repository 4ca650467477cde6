//===- Rank.c - One run of a program on one rank --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/run/Rank.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/device/Blocks.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/device/cuda/Device.h"
#include "runtime/src/run/Trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

burst_location burst_rank_location(const burst_rank *rank) {
  burst_location location;
  snprintf(location.text, sizeof(location.text), "rank %" PRId64, rank->index);
  return location;
}

void burst_rank_fail(burst_rank *rank, burst_error *error) {
  rank->error = error;
  longjmp(rank->exit, 1);
}

void burst_rank_fail_at(burst_rank *rank, burst_error *error) {
  burst_error *located = burst_error_create(burst_error_code(error),
                                            burst_rank_location(rank).text,
                                            "%s", burst_error_message(error));
  burst_error_destroy(error);
  burst_rank_fail(rank, located);
}

static int64_t rank_index(burst_rank *rank) { return rank->index; }

//===----------------------------------------------------------------------===//
// sort
//===----------------------------------------------------------------------===//

static int by_falling_cost(const void *left, const void *right, void *context) {
  const int64_t *costs = context;
  int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
  if (costs[a] != costs[b])
    return costs[a] > costs[b] ? -1 : 1;
  return a < b ? -1 : 1;
}

static void rank_sort(burst_rank *rank, const int64_t *costs, int64_t count,
                      int32_t *order) {
  if (count < 0 || count > INT32_MAX)
    burst_rank_fail(
        rank, burst_error_create(
                  BURST_PROGRAM_FAULT, burst_rank_location(rank).text,
                  "sort: %" PRId64 " costs, wanted 0 to %d", count, INT32_MAX));
  for (int64_t i = 0; i < count; ++i)
    order[i] = (int32_t)i;
  if (count > 1)
    qsort_r(order, (size_t)count, sizeof(*order), by_falling_cost,
            (void *)(uintptr_t)costs);
}

//===----------------------------------------------------------------------===//
// require
//===----------------------------------------------------------------------===//

// What is too small came from the host.
static void rank_require(burst_rank *rank, int64_t found, int64_t wanted,
                         const char *what) {
  if (found < wanted)
    burst_rank_fail(rank, burst_error_create(BURST_INVALID_ARGUMENT,
                                             burst_rank_location(rank).text,
                                             "%s: %" PRId64
                                             ", wanted at least %" PRId64,
                                             what, found, wanted));
}

//===----------------------------------------------------------------------===//
// launch
//===----------------------------------------------------------------------===//

static void rank_launch(burst_rank *rank, const burst_kernel *kernel,
                        const void *arguments, int64_t tasks,
                        const int32_t *order, int64_t num_uses,
                        const burst_use *uses) {
  if (tasks < 0)
    burst_rank_fail(rank, burst_error_create(BURST_PROGRAM_FAULT,
                                             burst_rank_location(rank).text,
                                             "kernel %s: %" PRId64
                                             " tasks, wanted 0 or more",
                                             kernel->name, tasks));
  if (rank->checked)
    burst_guard_launch(rank, kernel->name, tasks, order, num_uses, uses);
  int64_t begin = burst_now();
  burst_device_launch(rank->device, kernel, arguments, tasks, order);
  int64_t end = burst_now();
  ++rank->counters.launches;
  rank->counters.tasks += tasks;
  if (!rank->cuda) // which has a clock of its own
    rank->counters.compute_seconds += burst_seconds(end - begin);
  burst_trace_launch(rank->trace, rank->index, kernel, tasks, begin, end);
}

static void rank_launch_gpu(burst_rank *rank, int64_t kernel,
                            const void *arguments, int64_t tasks,
                            int64_t num_uses, const burst_use *uses) {
  if (rank->checked && kernel >= 0 && kernel < rank->image->num_gpu_kernels)
    burst_guard_launch(rank, rank->image->gpu_kernels[kernel].name, tasks, NULL,
                       num_uses, uses);
  burst_error *error = burst_cuda_launch(rank->cuda, kernel, arguments, tasks);
  if (error)
    burst_rank_fail_at(rank, error);
  ++rank->counters.launches;
  rank->counters.tasks += tasks;
}

static int64_t rank_threads(burst_rank *rank) {
  return burst_device_threads(rank->device);
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

static const burst_table table = {.size = sizeof(burst_table),
                                  .version = BURST_ABI_VERSION,
                                  .index = rank_index,
                                  .allocate = burst_rank_allocate,
                                  .release = burst_rank_release,
                                  .sort = rank_sort,
                                  .launch = rank_launch,
                                  .start = burst_rank_start,
                                  .wait = burst_rank_wait,
                                  .require = rank_require,
                                  .upload = burst_rank_upload,
                                  .launch_gpu = rank_launch_gpu,
                                  .threads = rank_threads,
                                  .use = burst_rank_use,
                                  .messages = burst_rank_messages};

burst_error *burst_rank_run(burst_rank *rank, void *const *values) {
  burst_blocks_enter(burst_device_blocks(rank->device));
  if (setjmp(rank->exit) == 0) {
    rank->image->run(rank, &table, values);
    burst_rank_check_flights(rank);
  } else if (rank->transport) {
    burst_transport_stop(rank->transport, burst_error_message(rank->error));
  }
  burst_rank_cancel_flights(rank);
  burst_rank_free_memory(rank);
  free(rank->listing);
  rank->listing = NULL;
  burst_blocks_leave(burst_device_blocks(rank->device));
  return rank->error;
}
