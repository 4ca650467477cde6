//===- Local.c - A transport between threads of this process --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/base/Thread.h"
#include "runtime/src/transport/local/Hub.h"

#include <stdlib.h>
#include <string.h>

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static burst_endpoint *endpoint_of(burst_transport *transport) {
  return (burst_endpoint *)transport;
}

static burst_error *check_delay(const burst_hub *hub, const burst_post *post) {
  const burst_local_config *config = &hub->config;
  if (!post->lane ||
      (config->latency_seconds <= 0 && config->bytes_per_second <= 0))
    return NULL;
  return burst_error_create(BURST_INVALID_ARGUMENT,
                            burst_location_of_post(post).text,
                            "the local transport has latency_seconds %g and "
                            "bytes_per_second %g: copies of a GPU cannot be "
                            "delayed, wanted 0",
                            config->latency_seconds, config->bytes_per_second);
}

static burst_error *local_start(burst_transport *transport,
                                burst_post *const *posts, int64_t count) {
  burst_hub *hub = endpoint_of(transport)->hub;
  burst_error *error = check_delay(hub, posts[0]);
  if (!error)
    error = burst_posts_begin(posts, count, sizeof(burst_side));
  if (error)
    return error;
  pthread_mutex_lock(&hub->mutex);
  for (int64_t i = 0; i < count; ++i)
    burst_hub_post(hub, posts[i]);
  pthread_mutex_unlock(&hub->mutex);
  return NULL;
}

static const char *progress(const burst_side *awaited) {
  if (awaited->state != BURST_ALONE)
    return "the transfer is not complete";
  return awaited->post->receives ? "it has not sent" : "it has not received";
}

// Whether to wait no longer for what is not complete, and why.
static bool ends(const burst_hub *hub, const burst_side *awaited,
                 burst_error **error) {
  burst_post *post = awaited->post;
  if (awaited->state == BURST_REFUSED) {
    *error = post->refusal;
    post->refusal = NULL;
  } else if (hub->culprit >= 0) {
    *error = burst_post_stopped(post, hub->culprit,
                                hub->reason ? hub->reason : "out of memory");
  } else if (awaited->state == BURST_ALONE &&
             hub->endpoints[post->peer].closed) {
    *error = burst_post_stopped(post, post->peer, "its transport is destroyed");
  }
  return *error;
}

static burst_error *wait_for(burst_endpoint *endpoint, burst_side *awaited,
                             double seconds) {
  burst_hub *hub = endpoint->hub;
  int64_t deadline = burst_now() + burst_nanoseconds(seconds);
  burst_error *error = NULL;
  burst_hub_await(hub, awaited);
  for (;;) {
    int64_t now = burst_now(), until = deadline;
    if (awaited->state == BURST_COMPLETE) {
      if (awaited->due <= now)
        return NULL;
      if (awaited->due < until)
        until = awaited->due;
    }
    if (ends(hub, awaited, &error))
      return error;
    if (now >= deadline)
      return burst_post_late(awaited->post, seconds, progress(awaited));
    burst_cond_wait_until(&endpoint->changed, &hub->mutex, until);
  }
}

static burst_error *local_wait(burst_transport *transport, burst_post *post,
                               double seconds) {
  burst_endpoint *endpoint = endpoint_of(transport);
  burst_side *awaited = post->state;
  pthread_mutex_lock(&endpoint->hub->mutex);
  burst_error *error = wait_for(endpoint, awaited, seconds);
  pthread_mutex_unlock(&endpoint->hub->mutex);
  if (error)
    return error;
  post->began = awaited->matched;
  post->ended = awaited->due;
  burst_post_end(post);
  return NULL;
}

static void local_cancel(burst_transport *transport, burst_post *post) {
  burst_hub *hub = endpoint_of(transport)->hub;
  pthread_mutex_lock(&hub->mutex);
  burst_hub_forget(hub, post->state);
  pthread_mutex_unlock(&hub->mutex);
  burst_post_end(post);
}

static void local_stop(burst_transport *transport, const char *reason) {
  burst_hub *hub = endpoint_of(transport)->hub;
  char *copy = strdup(reason);
  pthread_mutex_lock(&hub->mutex);
  if (hub->culprit < 0) {
    hub->culprit = transport->rank;
    hub->reason = copy;
    copy = NULL;
    burst_hub_notify_all(hub);
  }
  pthread_mutex_unlock(&hub->mutex);
  free(copy);
}

static void free_hub(burst_hub *hub) {
  for (int64_t i = 0; i < hub->config.num_ranks; ++i)
    pthread_cond_destroy(&hub->endpoints[i].changed);
  pthread_cond_destroy(&hub->work);
  pthread_mutex_destroy(&hub->mutex);
  free(hub->reason);
  burst_handle_free(hub);
}

static void end_copier(burst_hub *hub) {
  pthread_mutex_lock(&hub->mutex);
  hub->ending = true;
  pthread_cond_signal(&hub->work);
  pthread_mutex_unlock(&hub->mutex);
  pthread_join(hub->copier, NULL);
}

static void local_destroy(burst_transport *transport) {
  burst_endpoint *endpoint = endpoint_of(transport);
  burst_hub *hub = endpoint->hub;
  pthread_mutex_lock(&hub->mutex);
  endpoint->closed = true;
  bool last = --hub->open == 0;
  burst_hub_notify_all(hub);
  pthread_mutex_unlock(&hub->mutex);
  if (last) {
    end_copier(hub);
    free_hub(hub);
  }
}

static const burst_transport_kind local_table = {
    local_start,   local_wait, local_cancel, local_stop,
    local_destroy, NULL,       NULL};

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

enum { MOST_RANKS = 1 << 16 };

static burst_error *check(const burst_local_config *config) {
  if (config->num_ranks < 1 || config->num_ranks > MOST_RANKS)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "local transport: %ld ranks, wanted 1 to %d",
                              (long)config->num_ranks, MOST_RANKS);
  burst_error *error = burst_number_check("local transport: latency_seconds",
                                          config->latency_seconds);
  if (!error)
    error = burst_number_check("local transport: bytes_per_second",
                               config->bytes_per_second);
  return error;
}

static void init_endpoint(burst_hub *hub, int64_t rank) {
  burst_endpoint *endpoint = &hub->endpoints[rank];
  burst_transport_begin(&endpoint->transport, &local_table, rank,
                        hub->config.num_ranks, NULL);
  endpoint->hub = hub;
  endpoint->arrivals.last = &endpoint->arrivals.first;
  burst_cond_init(&endpoint->changed);
}

static burst_error *make_hub(const burst_local_config *config,
                             burst_hub **hub) {
  size_t ranks = (size_t)config->num_ranks;
  size_t bytes = sizeof(**hub) + ranks * sizeof(burst_endpoint);
  *hub = calloc(1, bytes);
  if (!*hub)
    return burst_error_no_memory(bytes);
  (*hub)->config = *config;
  (*hub)->copies.last = &(*hub)->copies.first;
  (*hub)->open = config->num_ranks;
  (*hub)->culprit = -1;
  pthread_mutex_init(&(*hub)->mutex, NULL);
  pthread_cond_init(&(*hub)->work, NULL);
  for (int64_t i = 0; i < config->num_ranks; ++i)
    init_endpoint(*hub, i);
  return burst_thread_create("a local transport", &(*hub)->copier,
                             burst_hub_copy, *hub);
}

burst_error *burst_transport_create_local(const burst_local_config *given,
                                          burst_transport **handles) {
  BURST_REQUIRE(handles);
  burst_local_config config;
  burst_error *error =
      burst_config_read("burst_local_config", &config, sizeof(config), given,
                        BURST_COVERS(burst_local_config, num_ranks));
  if (!error)
    error = check(&config);
  if (error)
    return error;
  burst_hub *made = NULL;
  error = make_hub(&config, &made);
  if (!error)
    for (int64_t i = 0; i < config.num_ranks; ++i)
      handles[i] = &made->endpoints[i].transport;
  else if (made)
    free_hub(made);
  return error;
}
