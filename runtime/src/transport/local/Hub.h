//===- Hub.h - Where threads of this process meet ---------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A side of a message waits in the list of its destination until the other side
// comes. Then a thread of the hub, or a rank that has nothing to do but to
// wait, copies from the sender's memory to the receiver's; between GPUs,
// whoever comes second asks for the copy. All content of a hub is guarded by
// its mutex, except memory of posts while it is copied.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_TRANSPORT_LOCAL_HUB_H
#define BURST_RUNTIME_TRANSPORT_LOCAL_HUB_H

#include "runtime/src/transport/Transport.h"

#include <pthread.h>

typedef enum burst_side_state {
  BURST_ALONE,    // in the list of its destination
  BURST_MATCHED,  // but not to be copied before someone waits
  BURST_QUEUED,   // the receiving side is in the list of copies
  BURST_COPYING,  // memory is being touched
  BURST_COMPLETE, // but not to be told before `due`
  BURST_REFUSED,  // the sides do not match
  BURST_DETACHED  // the other side was cancelled
} burst_side_state;

typedef struct burst_side {
  burst_post *post;
  burst_side_state state;
  struct burst_side *other;
  struct burst_side *next; // in one of the lists
  int64_t matched, due;
  bool awaited;
} burst_side;

typedef struct burst_list {
  burst_side *first, **last;
} burst_list;

typedef struct burst_hub burst_hub;

typedef struct burst_endpoint {
  burst_transport transport;
  burst_hub *hub;
  burst_list arrivals;    // posts of messages to this rank that are alone
  pthread_cond_t changed; // a post of this rank, or the hub
  bool closed;
  // When its links, out and in, are through with what is under way, where bytes
  // per second are given.
  int64_t leaves_at, arrives_at;
} burst_endpoint;

struct burst_hub {
  burst_local_config config;
  pthread_mutex_t mutex;
  pthread_cond_t work; // for the thread that copies
  pthread_t copier;
  burst_list copies;
  bool ending;
  int64_t open;    // handles not yet destroyed
  int64_t culprit; // the rank that stopped first, or -1
  char *reason;
  burst_endpoint endpoints[];
};

// These want the mutex to be held.

// Joins the side of a post with the other one, if that is there.
void burst_hub_post(burst_hub *hub, burst_post *post);
// Says that someone waits for a side; copies it if no one began to.
void burst_hub_await(burst_hub *hub, burst_side *awaited);
// Returns when the hub knows the side no more.
void burst_hub_forget(burst_hub *hub, burst_side *forgotten);
void burst_hub_notify_all(burst_hub *hub);

// What the thread that copies runs, until `ending`.
void *burst_hub_copy(void *hub);

#endif // BURST_RUNTIME_TRANSPORT_LOCAL_HUB_H
