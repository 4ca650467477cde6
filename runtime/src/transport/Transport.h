//===- Transport.h - How ranks reach each other -----------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every kind of transport implements. A post is one side of a message; its
// memory may be touched from the moment it is given to `start` until `wait`
// succeeds for it or `cancel` returns.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_TRANSPORT_TRANSPORT_H
#define BURST_RUNTIME_TRANSPORT_TRANSPORT_H

#include "burst/internal/handle.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// Of a rank on a GPU: where its messages are copied.
typedef struct burst_lane {
  struct burst_gpu *gpu;
  struct CUstream_st *copies;
  bool capturing; // what is asked for is written down for later
} burst_lane;

typedef struct burst_post {
  int64_t rank, peer, channel, hop;
  uint64_t program; // the hash of its image
  int64_t pattern;  // as in burst_messages, that of its start
  burst_group group;
  bool receives;
  int64_t num_pieces;
  burst_piece *pieces;
  int64_t bytes;
  int64_t began, ended;         // when data moved; set by `wait`
  struct burst_post *own_other; // the other side, where a start has both
  void *state;                  // the transport's, from `start` until the end
  burst_error *refusal;         // the transport's: why both sides do not match

  // On a GPU, where `wait` is for the copy to be asked for. Pieces of `lane`
  // null are the host's.
  const burst_lane *lane;
  struct burst_cuda_event *ready; // when memory may be touched
  struct burst_cuda_event *done;  // when that is over; set by `wait`, or by
                                  // `cancel` if the copy was asked for
} burst_post;

typedef struct burst_transport_kind {
  // Begins the messages of one start, at least one. On failure no post is begun
  // of which the state is null.
  burst_error *(*start)(burst_transport *transport, burst_post *const *posts,
                        int64_t count);
  // Until the post is complete, or for `seconds`.
  burst_error *(*wait)(burst_transport *transport, burst_post *post,
                       double seconds);
  // After `stop`: nothing touches the post any more.
  void (*cancel)(burst_transport *transport, burst_post *post);
  // Fails what is not complete, on all ranks.
  void (*stop)(burst_transport *transport, const char *reason);
  void (*destroy)(burst_transport *transport);
  // Of transports that a GPU works for, null of others: why what a run has
  // moved cannot be trusted, or null.
  burst_error *(*check)(burst_transport *transport);
  // On all ranks in one order: patterns among these groups are to come. Null:
  // nothing is to be done.
  burst_error *(*prepare)(burst_transport *transport, const burst_group *group,
                          double seconds);
} burst_transport_kind;

struct burst_transport {
  burst_handle handle;
  const burst_transport_kind *kind;
  int64_t rank, num_ranks;
  burst_world *world; // of ranks that are processes; or null
  atomic_flag in_use;
};

// What all kinds have in common. `world` is null for ranks that are threads.
void burst_transport_begin(burst_transport *transport,
                           const burst_transport_kind *kind, int64_t rank,
                           int64_t num_ranks, burst_world *world);

// Says that patterns among these groups are to come. `transport` may be null.
burst_error *burst_transport_prepare(burst_transport *transport,
                                     const burst_group *groups, int64_t count,
                                     double seconds);

// Gives the posts of a start states of so many zeros. On failure none has one.
burst_error *burst_posts_begin(burst_post *const *posts, int64_t count,
                               size_t bytes);
// Frees what a post has of that, if anything.
void burst_post_end(burst_post *post);

// "rank 2, hop 1".
typedef struct burst_location {
  char text[64];
} burst_location;
burst_location burst_location_of(int64_t rank, int64_t hop);
burst_location burst_location_of_post(const burst_post *post);

// That the ranks ended, as the sentence says.
burst_error *burst_post_ended(const burst_post *post, burst_code code,
                              const char *sentence);
// That rank `culprit` stopped, for `reason`.
burst_error *burst_post_stopped(const burst_post *post, int64_t culprit,
                                const char *reason);
burst_error *burst_post_late(const burst_post *post, double seconds,
                             const char *state);
// What is wrong between both sides of a message, as `post` sees it; or null.
burst_error *burst_post_mismatch(const burst_post *post,
                                 const burst_post *other);

// That its memory could not be moved.
burst_error *burst_post_failed(const burst_post *post, const burst_error *why);

// Of the elements; -1 if that or an address within the piece overflows.
int64_t burst_piece_bytes(const burst_piece *piece);

// The same elements without gaps, in other memory.
burst_piece burst_piece_packed(const burst_piece *piece, void *memory);

#endif // BURST_RUNTIME_TRANSPORT_TRANSPORT_H
