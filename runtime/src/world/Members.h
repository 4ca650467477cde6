//===- Members.h - The ranks of a world -------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a world knows of each rank, and the thread that hears and tells it, from
// the first connection on. Everything is guarded by the world's mutex;
// connections are read and written by the thread alone.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_WORLD_MEMBERS_H
#define BURST_RUNTIME_WORLD_MEMBERS_H

#include "runtime/src/world/Callers.h"
#include "runtime/src/world/Probe.h"
#include "runtime/src/world/Token.h"
#include "runtime/src/world/World.h"

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

// A connection for a transport that this rank has not yet made.
typedef struct burst_arrival {
  int fd; // -1: none
  int64_t generation;
} burst_arrival;

typedef struct burst_member {
  int fd;             // -1: none, or closed
  bool came;          // was connected
  bool left;          // said goodbye
  burst_address from; // where it came from, if it called
  burst_arrival arrival;
  burst_probe probe;
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
  burst_place place;
  int64_t rank, num_ranks, local_rank;
  int64_t timeout, heartbeat, silence; // nanoseconds
  burst_token token;
  uint64_t number;          // of this world, drawn by rank 0; 0: not yet known
  burst_address *addresses; // of the listeners of all ranks
  int listener;             // of this rank, or -1
  bool has_roster;          // all addresses are known
  bool complete;            // all ranks have met
  int64_t generation;       // how many transports were connected
  burst_callers callers;
  pthread_mutex_t mutex;
  pthread_cond_t changed; // anything that a caller may wait for
  pthread_t thread;
  int wakes;     // an eventfd
  int alarm;     // an eventfd that can be read once the world has failed
  int spares[2]; // descriptors for when there are no others; or -1
  bool is_short; // of descriptors, from the start
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
  struct pollfd *polled; // the thread's
};

// These want the mutex to be held.

// Lets the thread see what has changed.
void burst_members_wake(const burst_world *world);
// Makes room for a descriptor. False where that was done before.
bool burst_members_spare(burst_world *world);
// A rank is connected.
void burst_members_adopt(burst_world *world, int64_t rank, int fd);

// These tell all other ranks.
void burst_members_tell_pulse(burst_world *world);
void burst_members_tell_gathered(burst_world *world, const burst_share *share);
void burst_members_tell_roster(burst_world *world,
                               const burst_wire_address *roster);
void burst_members_tell_goodbye(burst_world *world);
// Unless the world has failed before.
void burst_members_fail(burst_world *world, int64_t culprit, burst_code code,
                        const char *sentence);
// Because of what happened to a rank, such as "died".
void burst_members_fail_rank(burst_world *world, int64_t rank,
                             const char *what);
// Because of the connection between a rank and this one.
void burst_members_fail_connection(burst_world *world, int64_t rank,
                                   const char *what);
// Of a world that has failed: why.
const char *burst_members_reason(const burst_world *world);

// What the thread runs, until `ending` and all is said.
void *burst_members_watch(void *world);

#endif // BURST_RUNTIME_WORLD_MEMBERS_H
