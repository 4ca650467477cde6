//===- Watch.c - When runs on a GPU end, and whether ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/base/Thread.h"
#include "runtime/src/cuda/GpuImpl.h"
#include "runtime/src/device/cuda/Device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

//===----------------------------------------------------------------------===//
// The end of a run
//===----------------------------------------------------------------------===//

static void free_hop(burst_cuda_hop *hop) {
  burst_cuda_event_release(hop->done);
  free(hop);
}

void burst_cuda_free_run(burst_cuda_run *run) {
  while (run->hops) {
    burst_cuda_hop *hop = run->hops;
    run->hops = hop->next;
    free_hop(hop);
  }
  burst_cuda_event_release(run->begun);
  burst_cuda_event_release(run->ended);
  burst_cuda_unstage(&run->staging, run->lane.capturing ? &run->cuda->captured
                                                        : &run->cuda->staging);
  burst_call_destroy(run->call);
  free(run);
}

static void count_seconds(const burst_cuda_run *run) {
  burst_counters *counters = run->call->counters;
  double seconds = 0;
  if (!counters ||
      counters->size < BURST_COVERS(burst_counters, compute_seconds))
    return;
  burst_error_destroy(burst_gpu_elapsed(run->cuda->gpu, run->begun->event,
                                        run->ended->event, &seconds));
  counters->compute_seconds = seconds;
}

static burst_location location_of(const burst_cuda_run *run) {
  burst_location location;
  snprintf(location.text, sizeof(location.text), "rank %" PRId64,
           run->call->config.rank);
  return location;
}

static burst_error *late(const burst_cuda_run *run) {
  const burst_cuda_hop *hop = run->hops;
  double seconds = run->call->config.deadline_seconds;
  int ordinal = run->cuda->gpu->properties.ordinal;
  if (hop)
    return burst_error_create(BURST_DEADLINE_EXCEEDED, hop->location.text,
                              "waited %.1f s for rank %" PRId64
                              " on channel %" PRId64
                              ": the transfer is not complete on GPU %d",
                              seconds, hop->peer, hop->channel, ordinal);
  return burst_error_create(
      BURST_DEADLINE_EXCEEDED, location_of(run).text,
      "waited %.1f s for GPU %d: the run has not ended there", seconds,
      ordinal);
}

// What the ranks of a run say of it, as long as it has not ended and then.
static burst_error *check_transport(const burst_cuda_run *run) {
  burst_transport *transport = run->call->config.transport;
  burst_error *error = transport && transport->kind->check
                           ? transport->kind->check(transport)
                           : NULL;
  if (!error)
    return NULL;
  const burst_cuda_hop *hop = run->hops;
  burst_location location = hop ? hop->location : location_of(run);
  burst_error *located = burst_error_create(
      burst_error_code(error), location.text, "%s", burst_error_message(error));
  burst_error_destroy(error);
  return located;
}

// Whether a run has ended; an error if it went wrong.
static burst_error *look_at(burst_cuda_run *run, int64_t now, bool *ended) {
  double deadline = run->call->config.deadline_seconds;
  *ended = false;
  for (;;) {
    burst_cuda_hop *hop = run->hops;
    const burst_cuda_event *awaited = hop ? hop->done : run->ended;
    if (!awaited) {
      run->since = now; // its host code works, with deadlines of its own
      return NULL;
    }
    bool done;
    burst_error *error =
        burst_gpu_is_done(run->cuda->gpu, awaited->event, &done);
    if (error) {
      burst_error *located =
          burst_error_create(burst_error_code(error), location_of(run).text,
                             "%s", burst_error_message(error));
      burst_error_destroy(error);
      return located;
    }
    if (!done && now - run->since > burst_nanoseconds(deadline))
      return late(run);
    if (!done || !hop)
      error = check_transport(run);
    if (error || !done)
      return error;
    run->since = now;
    if (!hop) {
      *ended = true;
      return NULL;
    }
    run->hops = hop->next;
    if (!run->hops)
      run->last_hop = &run->hops;
    free_hop(hop);
  }
}

static void keep_error(burst_cuda_stream *stream, burst_error *error) {
  if (stream->error)
    burst_error_destroy(error);
  else
    stream->error = error;
}

void burst_cuda_keep_error(burst_cuda_stream *stream, burst_error *error) {
  pthread_mutex_lock(&stream->cuda->mutex);
  keep_error(stream, error);
  pthread_mutex_unlock(&stream->cuda->mutex);
}

static burst_cuda_run *take_first(burst_cuda_stream *stream) {
  burst_cuda_run *run = stream->first;
  stream->first = run->next;
  if (!stream->first)
    stream->last = &stream->first;
  return run;
}

// Nobody waits any more for what a stream has been asked for, but it may still
// run.
static void abandon(burst_cuda_stream *stream, burst_error *error) {
  bool capturing = false;
  burst_error_destroy(burst_cuda_is_capturing(stream, &capturing));
  while (stream->first && stream->first->ended) {
    burst_cuda_run *run = take_first(stream);
    burst_transport_stop(run->call->config.transport,
                         burst_error_message(error));
    if (!capturing) {
      burst_error_destroy(burst_cuda_poison_results(run));
      // So that it is not over before that.
      burst_error_destroy(
          burst_gpu_record(run->cuda->gpu, run->ended->event, run->compute));
    }
    run->next = stream->cuda->abandoned;
    stream->cuda->abandoned = run;
  }
  // One that still asks for more hears it by its transport.
  if (stream->first)
    burst_transport_stop(stream->first->call->config.transport,
                         burst_error_message(error));
  keep_error(stream, error);
}

void burst_cuda_look(burst_cuda_stream *stream) {
  int64_t now = burst_now();
  while (stream->first) {
    bool ended;
    burst_error *error = look_at(stream->first, now, &ended);
    if (error) {
      abandon(stream, error);
      return;
    }
    if (!ended)
      return;
    burst_cuda_run *run = take_first(stream);
    if (stream->first)
      stream->first->since = now;
    count_seconds(run);
    burst_cuda_free_run(run);
  }
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

static void bury(burst_cuda *cuda) {
  burst_cuda_run **place = &cuda->abandoned;
  while (*place) {
    burst_cuda_run *run = *place;
    bool done;
    burst_error *error = burst_gpu_is_done(cuda->gpu, run->ended->event, &done);
    if (done || error) {
      *place = run->next;
      burst_cuda_free_run(run);
    } else {
      place = &run->next;
    }
    burst_error_destroy(error);
  }
}

static void *watch(void *context) {
  enum { PERIOD = 1000000 };
  burst_cuda *cuda = context;
  burst_cuda_relax(cuda);
  pthread_mutex_lock(&cuda->mutex);
  while (!cuda->ending) {
    bool busy = false;
    for (burst_cuda_stream *stream = cuda->streams; stream;
         stream = stream->next) {
      burst_cuda_look(stream);
      busy |= stream->first != NULL;
    }
    bury(cuda);
    if (busy || cuda->abandoned)
      burst_cond_wait_until(&cuda->begun, &cuda->mutex, burst_now() + PERIOD);
    else
      pthread_cond_wait(&cuda->begun, &cuda->mutex);
  }
  pthread_mutex_unlock(&cuda->mutex);
  return NULL;
}

// The mutex is held.
static burst_error *start_watchdog(burst_cuda *cuda) {
  burst_error *error = NULL;
  if (!cuda->watched)
    error = burst_thread_create("a watchdog", &cuda->watchdog, watch, cuda);
  cuda->watched |= !error;
  return error;
}

void burst_cuda_stop_watchdog(burst_cuda *cuda) {
  if (!cuda->watched)
    return;
  pthread_mutex_lock(&cuda->mutex);
  cuda->ending = true;
  pthread_cond_signal(&cuda->begun);
  pthread_mutex_unlock(&cuda->mutex);
  pthread_join(cuda->watchdog, NULL);
}

//===----------------------------------------------------------------------===//
// What is watched
//===----------------------------------------------------------------------===//

burst_error *burst_cuda_watch(burst_cuda_run *run) {
  burst_cuda *cuda = run->cuda;
  burst_cuda_stream *stream = run->stream;
  burst_error *error =
      burst_cuda_event_record(cuda->gpu, true, run->compute, &run->begun);
  if (error)
    return error;
  pthread_mutex_lock(&cuda->mutex);
  error = start_watchdog(cuda);
  if (!error) {
    run->since = burst_now();
    *stream->last = run;
    stream->last = &run->next;
    pthread_cond_signal(&cuda->begun);
  }
  pthread_mutex_unlock(&cuda->mutex);
  if (error)
    burst_cuda_event_release(run->begun);
  return error;
}

burst_error *burst_cuda_watch_post(burst_cuda_run *run,
                                   const burst_post *post) {
  // What is captured never runs itself.
  if (run->lane.capturing || !post->done)
    return NULL;
  burst_cuda_hop *hop = calloc(1, sizeof(*hop));
  if (!hop)
    return burst_error_no_memory(sizeof(*hop));
  hop->location = burst_location_of_post(post);
  hop->peer = post->peer;
  hop->channel = post->channel;
  hop->done = burst_cuda_event_retain(post->done);
  pthread_mutex_lock(&run->cuda->mutex);
  *run->last_hop = hop;
  run->last_hop = &hop->next;
  pthread_mutex_unlock(&run->cuda->mutex);
  return NULL;
}

static void unlink_run(burst_cuda_stream *stream, const burst_cuda_run *run) {
  burst_cuda_run **place = &stream->first;
  while (*place != run)
    place = &(*place)->next;
  *place = run->next;
  if (!*place)
    stream->last = place;
}

void burst_cuda_watch_end(burst_cuda_run *run) {
  burst_cuda *cuda = run->cuda;
  burst_cuda_event *ended = NULL;
  burst_error *error = NULL;
  if (!run->lane.capturing)
    error = burst_cuda_event_record(cuda->gpu, true, run->compute, &ended);
  pthread_mutex_lock(&cuda->mutex);
  if (error) {
    // Nothing will tell when the GPU has read what was staged.
    unlink_run(run->stream, run);
    burst_cuda_unstage(&run->staging, &cuda->captured);
    keep_error(run->stream, error);
  }
  if (error || run->lane.capturing)
    burst_cuda_free_run(run);
  else
    run->ended = ended;
  pthread_mutex_unlock(&cuda->mutex);
}
