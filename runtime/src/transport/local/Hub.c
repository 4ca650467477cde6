//===- Hub.c - Where threads of this process meet -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/transport/local/Hub.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/base/View.h"
#include "runtime/src/transport/Transfer.h"

#include <stddef.h>

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

static void append(burst_list *list, burst_side *added) {
  added->next = NULL;
  *list->last = added;
  list->last = &added->next;
}

static void unlink_at(burst_list *list, burst_side **place) {
  *place = (*place)->next;
  if (!*place)
    list->last = place;
}

static void unlink_side(burst_list *list, const burst_side *removed) {
  burst_side **place = &list->first;
  while (*place != removed)
    place = &(*place)->next;
  unlink_at(list, place);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

static void notify(burst_hub *hub, const burst_side *side) {
  pthread_cond_signal(&hub->endpoints[side->post->rank].changed);
}

void burst_hub_notify_all(burst_hub *hub) {
  for (int64_t i = 0; i < hub->config.num_ranks; ++i)
    pthread_cond_signal(&hub->endpoints[i].changed);
}

static void set_state(burst_side *side, burst_side_state state) {
  side->state = state;
  side->other->state = state;
}

static void queue_copy(burst_hub *hub, burst_side *side) {
  set_state(side, BURST_QUEUED);
  append(&hub->copies, side->post->receives ? side : side->other);
  pthread_cond_signal(&hub->work);
}

static void refuse(burst_hub *hub, burst_side *side) {
  set_state(side, BURST_REFUSED);
  notify(hub, side);
  notify(hub, side->other);
}

// It is over as soon as it is asked for: the rest is known to the GPU.
static void ask_for_copy(burst_hub *hub, burst_side *receiver) {
  burst_post *receive = receiver->post, *send = receiver->other->post;
  burst_error *error = burst_cuda_transfer(receive, send);
  if (error) {
    receive->refusal = burst_post_failed(receive, error);
    send->refusal = burst_post_failed(send, error);
    burst_error_destroy(error);
    refuse(hub, receiver);
    return;
  }
  set_state(receiver, BURST_COMPLETE);
  notify(hub, receiver);
  notify(hub, receiver->other);
}

static void begin_copy(burst_hub *hub, burst_side *side) {
  if (side->post->lane)
    ask_for_copy(hub, side->post->receives ? side : side->other);
  else
    queue_copy(hub, side);
}

static burst_list *arrivals_of(burst_hub *hub, const burst_post *post) {
  return &hub->endpoints[post->receives ? post->rank : post->peer].arrivals;
}

static bool belong_together(const burst_post *a, const burst_post *b) {
  return a->receives != b->receives && a->channel == b->channel &&
         a->rank == b->peer && a->peer == b->rank;
}

// When a link is through with a message of now that takes so long.
static int64_t pass(int64_t *free_at, int64_t now, int64_t takes) {
  *free_at = (*free_at > now ? *free_at : now) + takes;
  return *free_at;
}

// When a message may arrive that both sides have posted now. All that a rank
// sends shares one link, and so does all that it receives.
static int64_t schedule(burst_hub *hub, const burst_post *send, int64_t now) {
  int64_t arrives = now;
  if (hub->config.bytes_per_second > 0) {
    int64_t takes =
        burst_nanoseconds((double)send->bytes / hub->config.bytes_per_second);
    int64_t leaves = pass(&hub->endpoints[send->rank].leaves_at, now, takes);
    arrives = pass(&hub->endpoints[send->peer].arrives_at, now, takes);
    if (leaves > arrives)
      arrives = leaves;
  }
  return arrives + burst_nanoseconds(hub->config.latency_seconds);
}

static void match(burst_hub *hub, burst_side *a, burst_side *b) {
  a->other = b;
  b->other = a;
  a->post->refusal = burst_post_mismatch(a->post, b->post);
  if (a->post->refusal) {
    b->post->refusal = burst_post_mismatch(b->post, a->post);
    refuse(hub, a);
    return;
  }
  a->matched = b->matched = burst_now();
  a->due = b->due =
      schedule(hub, a->post->receives ? b->post : a->post, a->matched);
  set_state(a, BURST_MATCHED);
  // Behind a stop nothing moves any more.
  if (hub->culprit < 0 && (!hub->config.checked || a->awaited || b->awaited))
    begin_copy(hub, a);
}

void burst_hub_post(burst_hub *hub, burst_post *post) {
  burst_side *posted = post->state;
  burst_list *arrivals = arrivals_of(hub, post);
  posted->post = post;
  for (burst_side **place = &arrivals->first; *place; place = &(*place)->next) {
    burst_side *other = *place;
    if (belong_together(other->post, post)) {
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

// Copies what is queued; the mutex is held before and after.
static void copy_now(burst_hub *hub, burst_side *receiver) {
  unlink_side(&hub->copies, receiver);
  set_state(receiver, BURST_COPYING);
  pthread_mutex_unlock(&hub->mutex);
  copy_pieces(receiver->post, receiver->other->post);
  pthread_mutex_lock(&hub->mutex);
  int64_t now = burst_now();
  if (receiver->due < now)
    receiver->due = receiver->other->due = now;
  set_state(receiver, BURST_COMPLETE);
  notify(hub, receiver);
  notify(hub, receiver->other);
}

void *burst_hub_copy(void *context) {
  burst_hub *hub = context;
  pthread_mutex_lock(&hub->mutex);
  while (!hub->ending) {
    if (hub->copies.first && hub->culprit < 0)
      copy_now(hub, hub->copies.first);
    else
      pthread_cond_wait(&hub->work, &hub->mutex);
  }
  pthread_mutex_unlock(&hub->mutex);
  return NULL;
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

void burst_hub_await(burst_hub *hub, burst_side *awaited) {
  awaited->awaited = true;
  if (awaited->state == BURST_MATCHED && hub->culprit < 0)
    begin_copy(hub, awaited);
  // Sooner done than told to the thread that copies, and many ranks copy faster
  // than one thread.
  if (awaited->state == BURST_QUEUED && hub->culprit < 0)
    copy_now(hub, awaited->post->receives ? awaited : awaited->other);
}

void burst_hub_forget(burst_hub *hub, burst_side *forgotten) {
  const burst_post *post = forgotten->post;
  while (forgotten->state == BURST_COPYING)
    pthread_cond_wait(&hub->endpoints[post->rank].changed, &hub->mutex);
  if (forgotten->state == BURST_ALONE)
    unlink_side(arrivals_of(hub, post), forgotten);
  if (forgotten->state == BURST_QUEUED)
    unlink_side(&hub->copies, post->receives ? forgotten : forgotten->other);
  if (forgotten->state == BURST_QUEUED || forgotten->state == BURST_MATCHED)
    forgotten->other->state = BURST_DETACHED;
}
