//===- Members.h - The ranks of a world -------------------------*- C -*-===//
//
// What a world knows of each rank, and the thread that hears and tells it.
// Everything is guarded by the world's mutex; connections are read and written
// by the thread alone.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_WORLD_MEMBERS_H
#define BURST_RUNTIME_WORLD_MEMBERS_H

#include "Meet.h"
#include "World.h"

#include <pthread.h>

enum { BURST_MOST_GATHERED = 1 << 20 };

// What a heartbeat tells.
typedef struct burst_pulse {
  int64_t activity, hop, peer;
  int64_t run;   // how many were begun
  uint64_t plan; // what is run, 0 before the first
} burst_pulse;

// What a rank gave for one gathering.
typedef struct burst_share {
  int64_t number; // of the gathering, counted from 1
  size_t bytes;
  char *data;
} burst_share;

typedef struct burst_member {
  int fd;    // -1: none, or closed
  bool left; // said goodbye
  int64_t heard;
  burst_pulse pulse;
  int64_t felt; // when the pulse came; of this rank it is that of now
  // A rank is at most one gathering ahead of another.
  burst_share shares[2];
  // What is being read.
  burst_header header;
  size_t header_bytes, payload_bytes; // that have come
  char *payload;
  // What is to be written.
  char *out;
  size_t out_begin, out_end, out_capacity;
} burst_member;

struct burst_world {
  burst_handle handle;
  burst_meeting meeting;
  int64_t rank, num_ranks, local_rank;
  int64_t timeout, heartbeat, silence; // nanoseconds
  pthread_mutex_t mutex;
  pthread_cond_t changed; // anything that a caller may wait for
  pthread_t thread;
  bool has_thread;
  int wakes; // an eventfd
  bool ending;
  int64_t gatherings;
  int64_t culprit; // or -1
  burst_code code;
  char *reason;
  bool told; // to the others and to the transport
  pthread_mutex_t transport_mutex;
  void (*transport_failed)(void *context);
  void *transport;
  bool attached;
  burst_member *members; // that of this rank has what it tells
  struct pollfd *polled; // the thread's, for all ranks and the eventfd
};

// These want the mutex to be held.

// These tell all other ranks.
void burst_members_tell_pulse(burst_world *world);
void burst_members_tell_gathered(burst_world *world, const burst_share *share);
void burst_members_tell_goodbye(burst_world *world);
// Unless the world has failed before.
void burst_members_fail(burst_world *world, int64_t culprit, burst_code code,
                        const char *sentence);

// What the thread runs, until `ending` and all is said.
void *burst_members_watch(void *world);

#endif // BURST_RUNTIME_WORLD_MEMBERS_H
