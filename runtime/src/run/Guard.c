//===- Guard.c - What checked runs look for -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "runtime/src/base/View.h"
#include "runtime/src/run/Rank.h"

#include <inttypes.h>
#include <stdlib.h>

#define FAULT(location, ...)                                                   \
  burst_rank_fail(rank, burst_error_create(BURST_PROGRAM_FAULT,                \
                                           (location).text, __VA_ARGS__))

static bool post_touches(const burst_post *post, const char *begin,
                         int64_t bytes) {
  for (int64_t i = 0; i < post->num_pieces; ++i) {
    burst_view view = burst_view_of_piece(&post->pieces[i]);
    if (burst_view_touches(&view, begin, begin + bytes))
      return true;
  }
  return false;
}

static bool posts_overlap(const burst_post *a, const burst_post *b) {
  for (int64_t i = 0; i < a->num_pieces; ++i)
    for (int64_t j = 0; j < b->num_pieces; ++j) {
      burst_view mine = burst_view_of_piece(&a->pieces[i]);
      burst_view theirs = burst_view_of_piece(&b->pieces[j]);
      if (burst_view_overlaps(&mine, &theirs))
        return true;
    }
  return false;
}

//===----------------------------------------------------------------------===//
// launch
//===----------------------------------------------------------------------===//

static void check_order(burst_rank *rank, const char *kernel, int64_t tasks,
                        const int32_t *order) {
  bool *seen = calloc((size_t)tasks + 1, sizeof(bool));
  if (!seen)
    burst_rank_fail(rank, burst_error_no_memory((size_t)tasks));
  for (int64_t i = 0; i < tasks; ++i) {
    int32_t task = order[i];
    bool wrong = task < 0 || task >= tasks || seen[task];
    if (wrong) {
      free(seen);
      FAULT(burst_rank_location(rank),
            "kernel %s: task %d at place %" PRId64
            " of the order, wanted each of 0 to %" PRId64 " once",
            kernel, task, i, tasks - 1);
    }
    seen[task] = true;
  }
  free(seen);
}

static void check_use(burst_rank *rank, const char *kernel,
                      const burst_use *use, const burst_flight *flight) {
  bool writes = use->mode & BURST_WRITES;
  for (int64_t i = flight->num_posts - 1; i >= 0; --i) {
    const burst_post *post = &flight->posts[i];
    if (!(post->receives || writes) ||
        !post_touches(post, use->begin, use->bytes))
      continue;
    FAULT(burst_location_of_post(post),
          "kernel %s %s memory that is being %s rank %" PRId64
          " on channel %" PRId64,
          kernel, writes ? "writes" : "reads",
          post->receives ? "received from" : "sent to", post->peer,
          post->channel);
  }
}

void burst_guard_launch(burst_rank *rank, const char *kernel, int64_t tasks,
                        const int32_t *order, int64_t num_uses,
                        const burst_use *uses) {
  if (order)
    check_order(rank, kernel, tasks, order);
  for (int64_t i = 0; i < num_uses; ++i) {
    if (uses[i].bytes < 0)
      FAULT(burst_rank_location(rank),
            "kernel %s: use %" PRId64 " of %" PRId64 " bytes, wanted 0 or more",
            kernel, i, uses[i].bytes);
    for (burst_flight *flight = rank->flights; flight; flight = flight->next)
      check_use(rank, kernel, &uses[i], flight);
  }
}

//===----------------------------------------------------------------------===//
// start and release
//===----------------------------------------------------------------------===//

static void check_pair(burst_rank *rank, const burst_post *started,
                       const burst_post *under_way) {
  if (posts_overlap(started, under_way))
    FAULT(burst_location_of_post(started),
          "%s rank %" PRId64 " on channel %" PRId64
          ": the memory is being %s rank %" PRId64 " on channel %" PRId64
          ", hop %" PRId64,
          started->receives ? "receive from" : "send to", started->peer,
          started->channel, under_way->receives ? "received from" : "sent to",
          under_way->peer, under_way->channel, under_way->hop);
}

// With those of another flight, or with those behind it in its own.
static void check_post(burst_rank *rank, const burst_flight *started, int64_t i,
                       const burst_flight *flight) {
  const burst_post *post = &started->posts[i];
  for (int64_t j = flight == started ? i + 1 : 0; j < flight->num_posts; ++j)
    if (post->receives)
      check_pair(rank, post, &flight->posts[j]);
    else if (flight->posts[j].receives && flight == started)
      check_pair(rank, &flight->posts[j], post);
    else if (flight->posts[j].receives)
      check_pair(rank, post, &flight->posts[j]);
}

void burst_guard_start(burst_rank *rank, const burst_flight *started) {
  for (burst_flight *flight = rank->flights; flight; flight = flight->next)
    for (int64_t i = 0; i < started->num_posts; ++i)
      check_post(rank, started, i, flight);
}

void burst_guard_release(burst_rank *rank, const void *memory, int64_t bytes) {
  for (burst_flight *flight = rank->flights; flight; flight = flight->next) {
    for (int64_t i = 0; i < flight->num_posts; ++i) {
      const burst_post *post = &flight->posts[i];
      if (post_touches(post, memory, bytes))
        FAULT(burst_location_of_post(post),
              "release of memory that is being %s rank %" PRId64
              " on channel %" PRId64,
              post->receives ? "received from" : "sent to", post->peer,
              post->channel);
    }
  }
}
