//===- Host.c - A transport of the host's own engine ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between a burst_transport_table, which has one request for the messages of a
// start, and posts, which are waited for one by one: the first one waits for
// all of them.
//
//===----------------------------------------------------------------------===//

#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/cuda/Event.h"
#include "runtime/src/cuda/GpuImpl.h"
#include "runtime/src/transport/Transport.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct host_transport {
  burst_transport transport;
  burst_transport_table table;
  atomic_flag aborted;
} host_transport;

// The messages of one start. All their posts point to it.
typedef struct hop {
  void *request;
  int64_t open; // posts that have not ended
  bool is_complete;
  burst_cuda_event *done; // of a GPU; marked when all is on the stream
  int64_t began, ended;
  int64_t num_posts;
  burst_post *posts[];
} hop;

static host_transport *host_of(burst_transport *transport) {
  return (host_transport *)transport;
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

// Of both sides the one that receives: that waits, as a rule.
static const burst_post *post_with(const hop *hop, int64_t peer) {
  const burst_post *found = NULL;
  for (int64_t i = 0; i < hop->num_posts; ++i)
    if (hop->posts[i]->peer == peer && (!found || hop->posts[i]->receives))
      found = hop->posts[i];
  return found ? found : hop->posts[0];
}

static burst_code code_of(const burst_transport_failure *failure) {
  bool is_code =
      failure->code >= BURST_INVALID_ARGUMENT && failure->code <= BURST_SYSTEM;
  return is_code ? (burst_code)failure->code : BURST_SYSTEM;
}

static const char *message_of(burst_transport_failure *failure) {
  failure->message[sizeof(failure->message) - 1] = 0;
  return *failure->message ? failure->message : "the transport gave no reason";
}

static burst_error *error_of(const hop *hop, burst_transport_failure *failure,
                             double seconds) {
  const burst_post *post = post_with(hop, failure->peer);
  const char *message = message_of(failure);
  burst_code code = code_of(failure);
  return code == BURST_DEADLINE_EXCEEDED
             ? burst_post_late(post, seconds, message)
             : burst_post_ended(post, code, message);
}

//===----------------------------------------------------------------------===//
// Streams of GPUs
//===----------------------------------------------------------------------===//

static const char *place_of(bool is_gpu) { return is_gpu ? "a GPU" : "a CPU"; }

static burst_error *check_place(const host_transport *host,
                                const burst_post *post) {
  bool reaches_gpu = host->table.reaches == BURST_REACHES_GPU;
  if (reaches_gpu == (post->lane != NULL))
    return NULL;
  return burst_error_create(
      BURST_INVALID_ARGUMENT, burst_location_of_post(post).text,
      "the host's transport reaches the memory of %s, the run is on %s",
      place_of(reaches_gpu), place_of(!reaches_gpu));
}

// The stream of a hop waits until its memory may be touched.
static burst_error *open_stream(hop *hop) {
  const burst_lane *lane = hop->posts[0]->lane;
  if (!lane)
    return NULL;
  burst_error *error = burst_cuda_event_create(lane->gpu, false, &hop->done);
  for (int64_t i = 0; i < hop->num_posts && !error; ++i)
    error =
        burst_gpu_wait(lane->gpu, lane->copies, hop->posts[i]->ready->event);
  return error;
}

// Calls of the table for a GPU find its context.
static burst_error *enter(const hop *hop, CUcontext *before) {
  const burst_lane *lane = hop->posts[0]->lane;
  return lane ? burst_gpu_enter(lane->gpu, before) : NULL;
}

static void leave(const hop *hop, CUcontext before) {
  const burst_lane *lane = hop->posts[0]->lane;
  if (lane)
    burst_gpu_leave(lane->gpu, before);
}

static burst_error *mark(hop *hop) {
  const burst_lane *lane = hop->posts[0]->lane;
  return lane ? burst_cuda_event_mark(lane->gpu, lane->copies, hop->done)
              : NULL;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static burst_error *make_hop(burst_post *const *posts, int64_t count,
                             hop **made) {
  size_t bytes = sizeof(hop) + (size_t)count * sizeof(burst_post *);
  *made = calloc(1, bytes);
  if (!*made)
    return burst_error_no_memory(bytes);
  (*made)->open = (*made)->num_posts = count;
  (*made)->began = burst_now();
  memcpy((*made)->posts, posts, (size_t)count * sizeof(burst_post *));
  return NULL;
}

static void free_hop(hop *hop) {
  burst_cuda_event_release(hop->done);
  free(hop);
}

static int start(host_transport *host, hop *hop, const burst_message *list,
                 burst_transport_failure *failure) {
  const burst_post *first = hop->posts[0];
  const burst_transport_start given = {
      .size = sizeof(given),
      .channel = first->channel,
      .hop = first->hop,
      .program = first->program,
      .cuda_stream = first->lane ? first->lane->copies : NULL,
      .messages = {hop->num_posts, first->pattern, list, first->group}};
  return host->table.start(host->table.context, &given, &hop->request, failure);
}

static burst_error *begin(host_transport *host, hop *hop) {
  size_t bytes = (size_t)hop->num_posts * sizeof(burst_message);
  burst_message *list = malloc(bytes);
  if (!list)
    return burst_error_no_memory(bytes);
  for (int64_t i = 0; i < hop->num_posts; ++i) {
    const burst_post *post = hop->posts[i];
    list[i] = (burst_message){post->peer, post->receives, post->num_pieces,
                              post->pieces};
  }
  CUcontext before;
  burst_transport_failure failure = {.peer = -1};
  burst_error *error = enter(hop, &before);
  if (!error) {
    if (start(host, hop, list, &failure))
      error = error_of(hop, &failure, 0);
    leave(hop, before);
  }
  free(list);
  return error;
}

static burst_error *host_start(burst_transport *transport,
                               burst_post *const *posts, int64_t count) {
  host_transport *host = host_of(transport);
  hop *made = NULL;
  burst_error *error = check_place(host, posts[0]);
  if (!error)
    error = make_hop(posts, count, &made);
  if (!error)
    error = open_stream(made);
  if (!error)
    error = begin(host, made);
  if (!error)
    for (int64_t i = 0; i < count; ++i)
      posts[i]->state = made;
  else if (made)
    free_hop(made);
  return error;
}

static void end_post(burst_post *post) {
  hop *hop = post->state;
  post->state = NULL;
  if (hop->done)
    post->done = burst_cuda_event_retain(hop->done);
  if (--hop->open == 0)
    free_hop(hop);
}

static burst_error *complete(host_transport *host, hop *hop, double seconds) {
  CUcontext before;
  burst_transport_failure failure = {.peer = -1};
  burst_error *error = enter(hop, &before);
  if (error)
    return error;
  if (host->table.wait(host->table.context, hop->request, seconds, &failure))
    error = error_of(hop, &failure, seconds);
  leave(hop, before);
  if (error)
    return error;
  hop->is_complete = true;
  hop->ended = burst_now();
  return mark(hop);
}

static burst_error *host_wait(burst_transport *transport, burst_post *post,
                              double seconds) {
  hop *hop = post->state;
  burst_error *error =
      hop->is_complete ? NULL : complete(host_of(transport), hop, seconds);
  if (error)
    return error;
  post->began = hop->began;
  post->ended = hop->ended;
  end_post(post);
  return NULL;
}

static void host_cancel(burst_transport *transport, burst_post *post) {
  host_transport *host = host_of(transport);
  hop *hop = post->state;
  if (!hop->is_complete) {
    CUcontext before;
    burst_error *lost = enter(hop, &before); // of a GPU of which nothing works
    host->table.cancel(host->table.context, hop->request);
    if (!lost)
      leave(hop, before);
    burst_error_destroy(lost);
    hop->is_complete = true; // nothing touches memory any more
    burst_error_destroy(mark(hop));
  }
  end_post(post);
}

static void host_stop(burst_transport *transport, const char *reason) {
  host_transport *host = host_of(transport);
  if (!atomic_flag_test_and_set(&host->aborted))
    host->table.abort(host->table.context, reason);
}

static void host_destroy(burst_transport *transport) {
  host_transport *host = host_of(transport);
  if (host->table.destroy)
    host->table.destroy(host->table.context);
  burst_handle_free(host);
}

static burst_error *host_prepare(burst_transport *transport,
                                 const burst_group *group, double seconds) {
  const burst_transport_table *table = &host_of(transport)->table;
  burst_transport_failure failure = {.peer = -1};
  if (!table->prepare ||
      !table->prepare(table->context, group, seconds, &failure))
    return NULL;
  return burst_error_create(code_of(&failure),
                            burst_location_of(transport->rank, 0).text,
                            "connecting groups of %" PRId64 " ranks: %s",
                            group->num_ranks, message_of(&failure));
}

static const burst_transport_kind host_kind = {.start = host_start,
                                               .wait = host_wait,
                                               .cancel = host_cancel,
                                               .stop = host_stop,
                                               .destroy = host_destroy,
                                               .prepare = host_prepare};

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

#define INVALID(...) burst_error_create(BURST_INVALID_ARGUMENT, "", __VA_ARGS__)

static burst_error *check(const burst_transport_table *table) {
  const char *missing = !table->start    ? "start"
                        : !table->wait   ? "wait"
                        : !table->cancel ? "cancel"
                        : !table->abort  ? "abort"
                                         : NULL;
  if (missing)
    return INVALID("burst_transport_table: no function %s", missing);
  if (table->rank < 0 || table->rank >= table->num_ranks)
    return INVALID("burst_transport_table: rank %" PRId64 " of %" PRId64
                   ", wanted one from 0 on, of more ranks",
                   table->rank, table->num_ranks);
  if (table->reaches != BURST_REACHES_HOST &&
      table->reaches != BURST_REACHES_GPU)
    return INVALID("burst_transport_table: reaches %" PRId64
                   ", wanted BURST_REACHES_HOST or BURST_REACHES_GPU",
                   table->reaches);
  return NULL;
}

burst_error *burst_transport_create(const burst_transport_table *given,
                                    burst_transport **transport) {
  BURST_REQUIRE(transport);
  *transport = NULL;
  burst_transport_table table;
  burst_error *error =
      burst_config_read("burst_transport_table", &table, sizeof(table), given,
                        BURST_COVERS(burst_transport_table, abort));
  if (!error)
    error = check(&table);
  if (error)
    return error;
  host_transport *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  made->table = table;
  atomic_flag_clear(&made->aborted);
  burst_transport_begin(&made->transport, &host_kind, table.rank,
                        table.num_ranks, NULL);
  *transport = &made->transport;
  return NULL;
}
