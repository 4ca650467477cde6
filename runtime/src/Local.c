//===- Local.c - A transport between threads of this process --------------===//
//
// A post waits in the list of its destination until its other side comes. Then
// a thread of the transport copies from the sender's memory to the receiver's.
//
//===----------------------------------------------------------------------===//

#include "Clock.h"
#include "Config.h"
#include "Device.h"
#include "Error.h"
#include "Transport.h"
#include "View.h"

#include <stdlib.h>
#include <string.h>

typedef enum state {
  ALONE,    // in the list of its destination
  MATCHED,  // but not to be copied before someone waits
  QUEUED,   // the receiving side is in the list of copies
  COPYING,  // memory is being touched
  COMPLETE, // but not to be told before `due`
  REFUSED,  // the sides do not match: `error`
  DETACHED  // the other side was cancelled
} state;

typedef struct side {
  burst_post *post;
  state state;
  struct side *other;
  struct side *next; // in one of the lists
  int64_t matched, due;
  bool awaited;
  burst_error *error;
} side;

typedef struct list {
  side *first, **last;
} list;

typedef struct hub hub;

typedef struct endpoint {
  burst_transport transport;
  hub *hub;
  list arrivals;          // posts of messages to this rank that are alone
  pthread_cond_t changed; // a post of this rank, or the hub
  bool closed;
} endpoint;

struct hub {
  burst_local_config config;
  pthread_mutex_t mutex;
  pthread_cond_t work; // for the thread that copies
  pthread_t copier;
  list copies;
  bool ending;
  int64_t open;     // handles not yet destroyed
  int64_t *free_at; // by source and destination: when what was sent has left
  int64_t culprit;  // the rank that stopped first, or -1
  char *reason;
  endpoint endpoints[];
};

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

static void append(list *list, side *added) {
  added->next = NULL;
  *list->last = added;
  list->last = &added->next;
}

static void unlink_at(list *list, side **place) {
  *place = (*place)->next;
  if (!*place)
    list->last = place;
}

static void unlink_side(list *list, const side *removed) {
  side **place = &list->first;
  while (*place != removed)
    place = &(*place)->next;
  unlink_at(list, place);
}

//===----------------------------------------------------------------------===//
// Messages; the mutex is held
//===----------------------------------------------------------------------===//

static void notify(hub *hub, const side *side) {
  pthread_cond_signal(&hub->endpoints[side->post->rank].changed);
}

static void notify_all(hub *hub) {
  for (int64_t i = 0; i < hub->config.num_ranks; ++i)
    pthread_cond_signal(&hub->endpoints[i].changed);
}

static void set_state(side *side, state state) {
  side->state = state;
  side->other->state = state;
}

static void queue_copy(hub *hub, side *side) {
  set_state(side, QUEUED);
  append(&hub->copies, side->post->receives ? side : side->other);
  pthread_cond_signal(&hub->work);
}

static list *arrivals_of(hub *hub, const burst_post *post) {
  return &hub->endpoints[post->receives ? post->rank : post->peer].arrivals;
}

static bool belong_together(const burst_post *a, const burst_post *b) {
  return a->receives != b->receives && a->channel == b->channel &&
         a->rank == b->peer && a->peer == b->rank;
}

// When a message of so many bytes may arrive that both sides have posted now.
static int64_t schedule(hub *hub, const burst_post *send, int64_t now) {
  int64_t left = now;
  if (hub->config.bytes_per_second > 0) {
    int64_t *free_at =
        &hub->free_at[send->rank * hub->config.num_ranks + send->peer];
    if (*free_at > left)
      left = *free_at;
    left +=
        burst_nanoseconds((double)send->bytes / hub->config.bytes_per_second);
    *free_at = left;
  }
  return left + burst_nanoseconds(hub->config.latency_seconds);
}

static void match(hub *hub, side *a, side *b) {
  a->other = b;
  b->other = a;
  a->error = burst_post_mismatch(a->post, b->post);
  if (a->error) {
    b->error = burst_post_mismatch(b->post, a->post);
    set_state(a, REFUSED);
    notify(hub, a);
    notify(hub, b);
    return;
  }
  a->matched = b->matched = burst_now();
  a->due = b->due =
      schedule(hub, a->post->receives ? b->post : a->post, a->matched);
  set_state(a, MATCHED);
  if (!hub->config.checked || a->awaited || b->awaited)
    queue_copy(hub, a);
}

static void post_side(hub *hub, side *posted) {
  list *arrivals = arrivals_of(hub, posted->post);
  for (side **place = &arrivals->first; *place; place = &(*place)->next) {
    side *other = *place;
    if (belong_together(other->post, posted->post)) {
      unlink_at(arrivals, place);
      match(hub, other, posted);
      return;
    }
  }
  append(arrivals, posted);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static void copy_pieces(const burst_post *to, const burst_post *from) {
  for (int64_t i = 0; i < to->num_pieces; ++i) {
    burst_view destination = burst_view_of_piece(&to->pieces[i]);
    burst_view source = burst_view_of_piece(&from->pieces[i]);
    burst_view_copy(&destination, &source);
  }
}

static void *copier(void *context) {
  hub *hub = context;
  pthread_mutex_lock(&hub->mutex);
  while (!hub->ending) {
    side *receiver = hub->copies.first;
    if (!receiver) {
      pthread_cond_wait(&hub->work, &hub->mutex);
      continue;
    }
    unlink_at(&hub->copies, &hub->copies.first);
    set_state(receiver, COPYING);
    pthread_mutex_unlock(&hub->mutex);
    copy_pieces(receiver->post, receiver->other->post);
    pthread_mutex_lock(&hub->mutex);
    int64_t now = burst_now();
    if (receiver->due < now)
      receiver->due = receiver->other->due = now;
    set_state(receiver, COMPLETE);
    notify(hub, receiver);
    notify(hub, receiver->other);
  }
  pthread_mutex_unlock(&hub->mutex);
  return NULL;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static endpoint *endpoint_of(burst_transport *transport) {
  return (endpoint *)transport;
}

static burst_error *make_side(burst_post *post) {
  if (!post)
    return NULL;
  side *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  made->post = post;
  post->state = made;
  return NULL;
}

static void free_side(burst_post *post) {
  if (!post || !post->state)
    return;
  side *freed = post->state;
  burst_error_destroy(freed->error);
  free(freed);
  post->state = NULL;
}

static burst_error *local_start(burst_transport *transport, burst_post *send,
                                burst_post *receive) {
  hub *hub = endpoint_of(transport)->hub;
  burst_error *error = make_side(send);
  if (!error)
    error = make_side(receive);
  if (error) {
    free_side(send);
    free_side(receive);
    return error;
  }
  pthread_mutex_lock(&hub->mutex);
  if (send)
    post_side(hub, send->state);
  if (receive)
    post_side(hub, receive->state);
  pthread_mutex_unlock(&hub->mutex);
  return NULL;
}

static const char *progress(const side *awaited) {
  if (awaited->state != ALONE)
    return "the transfer is not complete";
  return awaited->post->receives ? "it has not sent" : "it has not received";
}

// Whether to wait no longer for what is not complete, and why.
static bool ends(const hub *hub, side *awaited, burst_error **error) {
  const burst_post *post = awaited->post;
  if (awaited->state == REFUSED) {
    *error = awaited->error;
    awaited->error = NULL;
  } else if (hub->culprit >= 0) {
    *error = burst_post_stopped(post, hub->culprit,
                                hub->reason ? hub->reason : "out of memory");
  } else if (awaited->state == ALONE && hub->endpoints[post->peer].closed) {
    *error = burst_post_stopped(post, post->peer, "its transport is destroyed");
  }
  return *error;
}

static burst_error *wait_for(endpoint *endpoint, side *awaited,
                             double seconds) {
  hub *hub = endpoint->hub;
  int64_t deadline = burst_now() + burst_nanoseconds(seconds);
  burst_error *error = NULL;
  awaited->awaited = true;
  if (awaited->state == MATCHED)
    queue_copy(hub, awaited);
  for (;;) {
    int64_t now = burst_now(), until = deadline;
    if (awaited->state == COMPLETE) {
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
  endpoint *endpoint = endpoint_of(transport);
  side *awaited = post->state;
  pthread_mutex_lock(&endpoint->hub->mutex);
  burst_error *error = wait_for(endpoint, awaited, seconds);
  pthread_mutex_unlock(&endpoint->hub->mutex);
  if (error)
    return error;
  post->began = awaited->matched;
  post->ended = awaited->due;
  free_side(post);
  return NULL;
}

static void local_cancel(burst_transport *transport, burst_post *post) {
  endpoint *endpoint = endpoint_of(transport);
  hub *hub = endpoint->hub;
  side *cancelled = post->state;
  pthread_mutex_lock(&hub->mutex);
  while (cancelled->state == COPYING)
    pthread_cond_wait(&endpoint->changed, &hub->mutex);
  if (cancelled->state == ALONE)
    unlink_side(arrivals_of(hub, post), cancelled);
  if (cancelled->state == QUEUED)
    unlink_side(&hub->copies, post->receives ? cancelled : cancelled->other);
  if (cancelled->state == QUEUED || cancelled->state == MATCHED)
    cancelled->other->state = DETACHED;
  pthread_mutex_unlock(&hub->mutex);
  free_side(post);
}

static void local_stop(burst_transport *transport, const char *reason) {
  hub *hub = endpoint_of(transport)->hub;
  char *copy = strdup(reason);
  pthread_mutex_lock(&hub->mutex);
  if (hub->culprit < 0) {
    hub->culprit = transport->rank;
    hub->reason = copy;
    copy = NULL;
    notify_all(hub);
  }
  pthread_mutex_unlock(&hub->mutex);
  free(copy);
}

static void free_hub(hub *hub) {
  for (int64_t i = 0; i < hub->config.num_ranks; ++i)
    pthread_cond_destroy(&hub->endpoints[i].changed);
  pthread_cond_destroy(&hub->work);
  pthread_mutex_destroy(&hub->mutex);
  free(hub->free_at);
  free(hub->reason);
  free(hub);
}

static void end_copier(hub *hub) {
  pthread_mutex_lock(&hub->mutex);
  hub->ending = true;
  pthread_cond_signal(&hub->work);
  pthread_mutex_unlock(&hub->mutex);
  pthread_join(hub->copier, NULL);
}

static void local_destroy(burst_transport *transport) {
  endpoint *endpoint = endpoint_of(transport);
  hub *hub = endpoint->hub;
  pthread_mutex_lock(&hub->mutex);
  endpoint->closed = true;
  bool last = --hub->open == 0;
  notify_all(hub);
  pthread_mutex_unlock(&hub->mutex);
  if (last) {
    end_copier(hub);
    free_hub(hub);
  }
}

static const burst_transport_table local_table = {
    local_start, local_wait, local_cancel, local_stop, local_destroy};

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

static void init_endpoint(hub *hub, int64_t rank) {
  endpoint *endpoint = &hub->endpoints[rank];
  endpoint->transport.table = &local_table;
  endpoint->transport.rank = rank;
  endpoint->transport.num_ranks = hub->config.num_ranks;
  atomic_flag_clear(&endpoint->transport.in_use);
  endpoint->hub = hub;
  endpoint->arrivals.last = &endpoint->arrivals.first;
  burst_cond_init(&endpoint->changed);
}

static burst_error *make_hub(const burst_local_config *config, hub **hub) {
  size_t ranks = (size_t)config->num_ranks;
  size_t bytes = sizeof(**hub) + ranks * sizeof(endpoint);
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
  if (config->bytes_per_second > 0) {
    (*hub)->free_at = calloc(ranks * ranks, sizeof(int64_t));
    if (!(*hub)->free_at)
      return burst_error_no_memory(ranks * ranks * sizeof(int64_t));
  }
  return burst_thread_create("a local transport", &(*hub)->copier, copier,
                             *hub);
}

burst_error *burst_transport_create_local(const burst_local_config *given,
                                          burst_transport **handles) {
  burst_local_config config;
  burst_error *error =
      burst_config_read("burst_local_config", &config, sizeof(config), given,
                        BURST_COVERS(burst_local_config, num_ranks));
  if (!error)
    error = check(&config);
  if (error)
    return error;
  hub *made = NULL;
  error = make_hub(&config, &made);
  if (!error)
    for (int64_t i = 0; i < config.num_ranks; ++i)
      handles[i] = &made->endpoints[i].transport;
  else if (made)
    free_hub(made);
  return error;
}
