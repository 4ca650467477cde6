//===- Tcp.c - A transport between processes ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/transport/tcp/Tcp.h"
#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/base/Thread.h"
#include "runtime/src/world/Descriptors.h"
#include "runtime/src/world/World.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static burst_tcp *tcp_of(burst_transport *transport) {
  return (burst_tcp *)transport;
}

// The thread lets those go first who want the mutex for a moment.
static void lock(burst_tcp *tcp) {
  atomic_fetch_add(&tcp->hurried, 1);
  pthread_mutex_lock(&tcp->mutex);
  atomic_fetch_sub(&tcp->hurried, 1);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static burst_error *check_post(const burst_post *post) {
  if (post->lane)
    return burst_error_create(
        BURST_INVALID_ARGUMENT, burst_location_of_post(post).text,
        "tcp transport: the run is on a GPU, wanted on a CPU: see "
        "burst_transport_create_nccl and burst_transport_create_ipc");
  if (post->num_pieces > BURST_MOST_PIECES)
    return burst_error_create(
        BURST_INVALID_PROGRAM, burst_location_of_post(post).text,
        "%" PRId64 " pieces in a message, wanted at most %d", post->num_pieces,
        BURST_MOST_PIECES);
  return NULL;
}

static burst_error *tcp_start(burst_transport *transport,
                              burst_post *const *posts, int64_t count) {
  burst_tcp *tcp = tcp_of(transport);
  burst_error *error = NULL;
  for (int64_t i = 0; i < count && !error; ++i)
    error = check_post(posts[i]);
  if (!error)
    error = burst_posts_begin(posts, count, sizeof(burst_tcp_side));
  if (error)
    return error;
  lock(tcp);
  // The other sides wait for what is asked for: that comes first.
  bool posted = true;
  for (int side = 0; side < 2; ++side)
    for (int64_t i = 0; i < count && posted; ++i)
      if (posts[i]->receives == (side == 0))
        posted = burst_tcp_post(tcp, posts[i]);
  pthread_mutex_unlock(&tcp->mutex);
  return posted ? NULL
                : burst_error_create(BURST_OUT_OF_MEMORY, "", "out of memory");
}

static burst_error *late(burst_tcp *tcp, const burst_tcp_side *side,
                         double seconds) {
  char state[256];
  const char *progress = "the transfer is not complete";
  if (side->state == BURST_TCP_ALONE)
    progress = side->post->receives ? "it has not sent" : "it has not received";
  int length = snprintf(state, sizeof(state), "%s", progress);
  burst_world_explain(tcp->transport.world, side->post->peer, state + length,
                      sizeof(state) - (size_t)length);
  return burst_post_late(side->post, seconds, state);
}

static burst_error *wait_for(burst_tcp *tcp, burst_tcp_side *side,
                             double seconds) {
  int64_t deadline = burst_now() + burst_nanoseconds(seconds);
  for (;;) {
    burst_code code;
    if (side->state == BURST_TCP_COMPLETE)
      return NULL;
    if (side->state == BURST_TCP_REFUSED) {
      burst_error *error = side->post->refusal;
      side->post->refusal = NULL;
      return error;
    }
    const char *sentence = burst_world_failure(tcp->transport.world, &code);
    if (sentence)
      return burst_post_ended(side->post, code, sentence);
    if (side->state == BURST_TCP_ALONE && tcp->links[side->post->peer].left)
      return burst_post_stopped(side->post, side->post->peer,
                                "its transport is destroyed");
    if (burst_now() >= deadline)
      return late(tcp, side, seconds);
    burst_cond_wait_until(&tcp->changed, &tcp->mutex, deadline);
  }
}

static burst_error *tcp_wait(burst_transport *transport, burst_post *post,
                             double seconds) {
  burst_tcp *tcp = tcp_of(transport);
  burst_tcp_side *side = post->state;
  lock(tcp);
  burst_error *error = wait_for(tcp, side, seconds);
  pthread_mutex_unlock(&tcp->mutex);
  if (error)
    return error;
  post->began = side->began;
  post->ended = side->ended;
  burst_post_end(post);
  return NULL;
}

static void tcp_cancel(burst_transport *transport, burst_post *post) {
  burst_tcp *tcp = tcp_of(transport);
  lock(tcp);
  // Half of a message may be written: no other can follow.
  tcp->failed = true;
  burst_tcp_forget(tcp, post->state);
  pthread_mutex_unlock(&tcp->mutex);
  burst_post_end(post);
}

static void tcp_stop(burst_transport *transport, const char *reason) {
  burst_world_stop(transport->world, reason);
}

static void end(void *context) {
  burst_tcp *tcp = context;
  uint64_t one = 1;
  lock(tcp);
  tcp->failed = true;
  pthread_cond_broadcast(&tcp->changed);
  pthread_mutex_unlock(&tcp->mutex);
  ssize_t written = write(tcp->wakes, &one, sizeof(one));
  (void)written; // fails only if it is awake already
}

static void free_tcp(burst_tcp *tcp) {
  for (int64_t i = 0; tcp->links && i < tcp->transport.num_ranks; ++i)
    burst_tcp_free_link(&tcp->links[i]);
  if (tcp->wakes >= 0)
    close(tcp->wakes);
  pthread_cond_destroy(&tcp->changed);
  pthread_mutex_destroy(&tcp->mutex);
  free(tcp->links);
  free(tcp->polled);
  burst_handle_free(tcp);
}

static void tcp_destroy(burst_transport *transport) {
  burst_tcp *tcp = tcp_of(transport);
  burst_world_detach(transport->world);
  lock(tcp);
  tcp->ending = true;
  burst_tcp_say_goodbye(tcp);
  pthread_mutex_unlock(&tcp->mutex);
  pthread_join(tcp->thread, NULL);
  free_tcp(tcp);
}

static const burst_transport_kind tcp_table = {
    tcp_start, tcp_wait, tcp_cancel, tcp_stop, tcp_destroy, NULL, NULL};

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

static burst_error *connect_links(burst_tcp *tcp) {
  size_t count = (size_t)tcp->transport.num_ranks;
  int *fds = malloc(count * sizeof(int)), self[2];
  if (!fds)
    return burst_error_no_memory(count * sizeof(int));
  burst_error *error = burst_world_connect(tcp->transport.world, fds);
  for (size_t i = 0; i < count && !error; ++i)
    tcp->links[i].in = tcp->links[i].out = fds[i];
  free(fds);
  if (error)
    return error;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, self))
    return burst_descriptors_error("a socket", tcp->transport.rank,
                                   tcp->transport.num_ranks);
  tcp->links[tcp->transport.rank].in = self[0];
  tcp->links[tcp->transport.rank].out = self[1];
  return NULL;
}

static burst_error *make_tcp(burst_world *world, burst_tcp **made) {
  burst_tcp *tcp = calloc(1, sizeof(*tcp));
  if (!tcp)
    return burst_error_no_memory(sizeof(*tcp));
  *made = tcp;
  size_t count = (size_t)burst_world_num_ranks(world);
  burst_transport_begin(&tcp->transport, &tcp_table, burst_world_rank(world),
                        burst_world_num_ranks(world), world);
  pthread_mutex_init(&tcp->mutex, NULL);
  burst_cond_init(&tcp->changed);
  tcp->wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (tcp->wakes < 0)
    return burst_descriptors_error("an eventfd", tcp->transport.rank,
                                   tcp->transport.num_ranks);
  tcp->links = calloc(count, sizeof(burst_link));
  tcp->polled = calloc(2 * (2 * count + 1), sizeof(struct pollfd));
  if (!tcp->links || !tcp->polled)
    return burst_error_no_memory(count * sizeof(burst_link));
  for (size_t i = 0; i < count; ++i)
    tcp->links[i].in = tcp->links[i].out = -1;
  return NULL;
}

static burst_error *begin(burst_tcp *tcp) {
  burst_error *error = connect_links(tcp);
  if (!error)
    error = burst_thread_create("a tcp transport", &tcp->thread,
                                burst_tcp_progress, tcp);
  tcp->began = !error;
  return error;
}

// Also of a transport that began to work when its world failed.
static void give_up(burst_tcp *tcp) {
  burst_world_detach(tcp->transport.world);
  if (tcp->began) {
    end(tcp);
    pthread_join(tcp->thread, NULL);
  }
}

burst_error *burst_transport_create_tcp(const burst_tcp_config *given,
                                        burst_transport **transport) {
  BURST_REQUIRE(transport);
  burst_tcp_config config;
  *transport = NULL;
  burst_error *error =
      burst_config_read("burst_tcp_config", &config, sizeof(config), given,
                        BURST_COVERS(burst_tcp_config, world));
  if (!error && !config.world)
    error = burst_error_create(BURST_INVALID_ARGUMENT, "",
                               "tcp transport: no world");
  if (error)
    return error;
  BURST_CHECK(config.world, BURST_KIND_WORLD);
  burst_tcp *made = NULL;
  error = burst_world_share(config.world, make_tcp(config.world, &made));
  if (!error)
    error = burst_world_attach(config.world, end, made);
  if (!error) {
    error = burst_world_share(config.world, begin(made));
    if (error)
      give_up(made);
  }
  if (!error)
    *transport = &made->transport;
  else if (made)
    free_tcp(made);
  return error;
}
