//===- Tcp.h - A transport between processes --------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who receives says so first: it sends the shapes of what it wants. The sender
// answers with its own shapes and the data, which goes from its memory to the
// connection and from there to the receiver's memory. A connection carries the
// messages of all channels; because data travels only to memory that waits for
// it, none can be in the way of another.
//
// All content is guarded by the mutex; connections are read and written, and
// memory of posts is touched, by the thread alone, with the mutex held.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_TRANSPORT_TCP_TCP_H
#define BURST_RUNTIME_TRANSPORT_TCP_TCP_H

#include "runtime/src/transport/Stretch.h"
#include "runtime/src/transport/Transport.h"
#include "runtime/src/world/Socket.h"
#include "runtime/src/world/Wire.h"

#include <pthread.h>

// What goes in front of data, and what asks for it. The shapes follow.
typedef struct burst_label {
  int64_t channel, hop;
  uint64_t program;
  int64_t num_pieces;
  int64_t refused; // no data follows: it was not what was asked for
} burst_label;

typedef struct burst_shape {
  int64_t element_bytes;
  int64_t sizes[4];
} burst_shape;

enum { BURST_MOST_PIECES = 1 << 16 };

typedef enum burst_tcp_state {
  BURST_TCP_ALONE,  // the other side has not said that it is there
  BURST_TCP_MOVING, // data is written or read
  BURST_TCP_COMPLETE,
  BURST_TCP_REFUSED // the sides do not match
} burst_tcp_state;

// One side of a message, here.
typedef struct burst_tcp_side {
  struct burst_tcp_side *next;
  burst_post *post;
  burst_tcp_state state;
  int64_t began, ended;
  // How far the data has been written or read.
  int64_t piece, stretch, offset;
} burst_tcp_side;

// What a peer wants to receive, or a frame to be written: bytes behind it.
typedef struct burst_frame {
  struct burst_frame *next;
  burst_tcp_side *side; // whose data follows; or null
  size_t bytes, done;
  char data[];
} burst_frame;

// The connection to a rank; to itself, both ends of one.
typedef struct burst_link {
  int in, out;           // -1: closed
  bool left;             // its transport is destroyed
  int64_t broken;        // when the connection ended without that; or 0
  burst_tcp_side *sends; // not yet asked for
  burst_tcp_side *receives;
  burst_frame *wanted;    // no send is there for it yet
  burst_frame *frames;    // to be written
  burst_tcp_side *filled; // whose data is being read; or null
  // What is being read otherwise.
  burst_header header;
  size_t header_bytes, payload_bytes;
  char *payload;
} burst_link;

typedef struct burst_tcp {
  burst_transport transport;
  pthread_mutex_t mutex;
  _Atomic int64_t hurried; // callers that want the mutex
  pthread_cond_t changed;
  pthread_t thread;
  int wakes;                  // an eventfd
  bool began, failed, ending; // began: there is a thread
  burst_link *links;          // by rank
  struct pollfd *polled;
} burst_tcp;

// What the thread runs, until `failed`, or `ending` and all is said.
void *burst_tcp_progress(void *tcp);

// These want the mutex to be held.

// The post is to be sent or received. False where there is no memory.
bool burst_tcp_post(burst_tcp *tcp, burst_post *post);
void burst_tcp_say_goodbye(burst_tcp *tcp);
void burst_tcp_forget(burst_tcp *tcp, const burst_tcp_side *side);
void burst_tcp_free_link(burst_link *link);

#endif // BURST_RUNTIME_TRANSPORT_TCP_TCP_H
