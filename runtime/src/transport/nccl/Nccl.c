//===- Nccl.c - A transport over NCCL -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rank sends and receives in one start is one group of NCCL on the
// transport's stream: behind the moment when its memory is ready, in front of
// the event that says that it is done. A piece is one message, because both
// sides have to agree on what is one; a piece with gaps is packed for that.
// Where all ranks of a group gather the shards of all, and these are of one
// size, it is one ncclAllGather on the communicator of the group, for which all
// pieces are packed; so is an exchange one ncclAlltoAll, where NCCL has that.
//
//===----------------------------------------------------------------------===//

#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/transport/Stretch.h"
#include "runtime/src/transport/Transfer.h"
#include "runtime/src/transport/nccl/Communicator.h"
#include "runtime/src/world/World.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const double default_timeout = 300, end_timeout = 10;

// One message of a group: its pieces without gaps, in memory of their own where
// they have some.
typedef struct side {
  burst_post *post;
  burst_piece *pieces;
  CUdeviceptr memory;
} side;

// The messages of one start. All their posts point to it.
typedef struct hop {
  int64_t references;
  const burst_communicator *communicator; // of a collective, else null
  CUdeviceptr gathered;   // of a collective: what all ranks sent, packed
  CUdeviceptr sent;       // and of an exchange what goes to each,
  int64_t share;          // and the bytes of each part
  burst_cuda_event *done; // marked when the group is on the stream
  bool is_marked;
  int64_t num_sides;
  side sides[];
} hop;

// Ranks that differ in their places along some axes of the grid.
typedef struct group {
  burst_group ranks;
  burst_communicator communicator;
  struct group *next;
} group;

typedef struct nccl_transport {
  burst_transport transport;
  burst_nccl_config config;
  burst_gpu *gpu;
  CUstream stream;
  burst_lane lane; // of the stream

  pthread_mutex_t mutex;
  // Guarded:
  burst_communicator communicator; // of all ranks
  group *groups;
  hop *pending; // asked for, but not known to be on the stream
  bool failed;
  char *reason; // of this rank, where there is no world
} nccl_transport;

static nccl_transport *nccl_of(burst_transport *transport) {
  return (nccl_transport *)transport;
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

// Why nothing more will come, or null. The mutex is held.
static burst_error *failure_of(nccl_transport *nccl) {
  burst_code code = BURST_PEER_STOPPED;
  const char *reason = nccl->failed ? nccl->reason : NULL;
  if (nccl->config.world)
    reason = burst_world_failure(nccl->config.world, &code);
  if (!reason && nccl->failed)
    reason = "the transport was stopped";
  return reason ? burst_error_create(code, "", "%s", reason) : NULL;
}

// Whether all that was asked for has been put on the stream; an error if that,
// or anything before, has failed. The mutex is held.
static burst_error *poll(nccl_transport *nccl, bool *settled) {
  burst_error *error = burst_communicator_poll(&nccl->communicator, settled);
  for (group *group = nccl->groups; group && *settled && !error;
       group = group->next)
    error = burst_communicator_poll(&group->communicator, settled);
  return error;
}

static void abort_all(nccl_transport *nccl) {
  for (group *group = nccl->groups; group; group = group->next)
    burst_communicator_abort(&group->communicator);
  burst_communicator_abort(&nccl->communicator);
}

// What is on the stream ends at once; what ran there has to be told wrong.
static void fail(void *context) {
  nccl_transport *nccl = context;
  pthread_mutex_lock(&nccl->mutex);
  nccl->failed = true;
  abort_all(nccl);
  pthread_mutex_unlock(&nccl->mutex);
}

static void nccl_stop(burst_transport *transport, const char *reason) {
  nccl_transport *nccl = nccl_of(transport);
  if (nccl->config.world)
    burst_world_stop(nccl->config.world, reason);
  char *copy = strdup(reason);
  pthread_mutex_lock(&nccl->mutex);
  if (!nccl->reason) {
    nccl->reason = copy;
    copy = NULL;
  }
  pthread_mutex_unlock(&nccl->mutex);
  free(copy);
  fail(nccl);
}

static burst_error *nccl_check(burst_transport *transport) {
  nccl_transport *nccl = nccl_of(transport);
  bool settled;
  pthread_mutex_lock(&nccl->mutex);
  burst_error *error = failure_of(nccl);
  if (!error && nccl->communicator.made)
    error = poll(nccl, &settled);
  pthread_mutex_unlock(&nccl->mutex);
  return error;
}

// At the place of a post.
static burst_error *locate(const burst_post *post, burst_error *error) {
  if (!error || *burst_error_location(error))
    return error;
  burst_error *located = burst_post_ended(post, burst_error_code(error),
                                          burst_error_message(error));
  burst_error_destroy(error);
  return located;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

static bool has_gaps(const burst_piece *piece) {
  return burst_stretches_of(piece).count > 1;
}

static burst_error *make_side(nccl_transport *nccl, burst_post *post,
                              side *side) {
  side->post = post;
  side->pieces = malloc((size_t)post->num_pieces * sizeof(burst_piece));
  if (!side->pieces)
    return burst_error_no_memory((size_t)post->num_pieces *
                                 sizeof(burst_piece));
  int64_t bytes = 0;
  for (int64_t i = 0; i < post->num_pieces; ++i)
    if (has_gaps(&post->pieces[i]))
      bytes += burst_piece_bytes(&post->pieces[i]);
  burst_error *error =
      burst_gpu_allocate(nccl->gpu, (size_t)bytes, nccl->stream, &side->memory);
  char *next = (char *)side->memory;
  for (int64_t i = 0; i < post->num_pieces && !error; ++i) {
    const burst_piece *piece = &post->pieces[i];
    side->pieces[i] = *piece;
    if (has_gaps(piece)) {
      side->pieces[i] = burst_piece_packed(piece, next);
      next += burst_piece_bytes(piece);
    }
  }
  return error;
}

// That of the ranks of a group, or null.
static const burst_communicator *communicator_of(const nccl_transport *nccl,
                                                 const burst_group *ranks) {
  if (ranks->num_ranks == nccl->transport.num_ranks)
    return &nccl->communicator;
  for (const group *group = nccl->groups; group; group = group->next)
    if (group->ranks.num_ranks == ranks->num_ranks &&
        group->ranks.stride == ranks->stride)
      return &group->communicator;
  return NULL;
}

static int64_t place_of(int64_t rank, const burst_group *ranks) {
  return rank / ranks->stride % ranks->num_ranks;
}

// Whether the messages of a start are all of a pattern that NCCL has a call
// for, and have one size: that is known alike to all.
static bool is_collective(const nccl_transport *nccl, burst_post *const *posts,
                          int64_t count) {
  int64_t received = 0, others = posts[0]->group.num_ranks - 1;
  for (int64_t i = 0; i < count; ++i) {
    received += posts[i]->receives;
    if (posts[i]->bytes != posts[0]->bytes)
      return false;
  }
  return received == others && count == 2 * others &&
         (posts[0]->pattern == BURST_GATHER_ALL ||
          (posts[0]->pattern == BURST_EXCHANGE_ALL &&
           nccl->communicator.nccl->ncclAlltoAll));
}

// A side whose pieces lie in the memory of a collective.
static burst_error *make_share(const nccl_transport *nccl, const hop *hop,
                               burst_post *post, side *side) {
  bool is_exchange = post->pattern == BURST_EXCHANGE_ALL;
  int64_t rank =
      post->receives || is_exchange ? post->peer : nccl->transport.rank;
  CUdeviceptr memory =
      post->receives || !is_exchange ? hop->gathered : hop->sent;
  char *next = (char *)memory + place_of(rank, &post->group) * hop->share;
  size_t bytes = (size_t)post->num_pieces * sizeof(burst_piece);
  side->post = post;
  side->pieces = malloc(bytes);
  if (!side->pieces)
    return burst_error_no_memory(bytes);
  for (int64_t i = 0; i < post->num_pieces; ++i) {
    side->pieces[i] = burst_piece_packed(&post->pieces[i], next);
    next += burst_piece_bytes(&post->pieces[i]);
  }
  return NULL;
}

static burst_error *make_sides(nccl_transport *nccl, hop *hop,
                               burst_post *const *posts) {
  burst_error *error = NULL;
  const burst_post *first = posts[0];
  if (is_collective(nccl, posts, hop->num_sides))
    hop->communicator = communicator_of(nccl, &first->group);
  if (hop->communicator) {
    hop->share = first->bytes;
    size_t bytes = (size_t)(hop->share * first->group.num_ranks);
    error = burst_gpu_allocate(nccl->gpu, bytes, nccl->stream, &hop->gathered);
    if (!error && first->pattern == BURST_EXCHANGE_ALL)
      error = burst_gpu_allocate(nccl->gpu, bytes, nccl->stream, &hop->sent);
  }
  for (int64_t i = 0; i < hop->num_sides && !error; ++i)
    error = hop->communicator ? make_share(nccl, hop, posts[i], &hop->sides[i])
                              : make_side(nccl, posts[i], &hop->sides[i]);
  return error;
}

// Copies pieces to where they are packed, or back.
static burst_error *pack(nccl_transport *nccl, const side *side) {
  const burst_post *post = side->post;
  burst_error *error = NULL;
  for (int64_t i = 0; i < post->num_pieces && !error; ++i) {
    if (side->pieces[i].data == post->pieces[i].data)
      continue;
    burst_piece given = post->pieces[i], packed = side->pieces[i];
    burst_post from = {
        .num_pieces = 1, .lane = &nccl->lane, .ready = post->ready};
    burst_post to = from;
    to.pieces = post->receives ? &given : &packed;
    from.pieces = post->receives ? &packed : &given;
    error = burst_cuda_transfer(&to, &from);
    burst_cuda_event_release(to.done);
    burst_cuda_event_release(from.done);
  }
  return error;
}

static void free_side(nccl_transport *nccl, side *side) {
  burst_error_destroy(burst_gpu_free(nccl->gpu, side->memory, nccl->stream));
  side->memory = 0;
  free(side->pieces);
  side->pieces = NULL;
}

static void release(nccl_transport *nccl, hop *hop) {
  if (--hop->references > 0)
    return;
  for (int64_t i = 0; i < hop->num_sides; ++i)
    free_side(nccl, &hop->sides[i]);
  burst_error_destroy(burst_gpu_free(nccl->gpu, hop->gathered, nccl->stream));
  burst_error_destroy(burst_gpu_free(nccl->gpu, hop->sent, nccl->stream));
  burst_cuda_event_release(hop->done);
  if (nccl->pending == hop)
    nccl->pending = NULL;
  free(hop);
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

static ncclResult_t ask(nccl_transport *nccl, const side *side, int64_t index) {
  const burst_nccl *table = nccl->communicator.nccl;
  const burst_piece *piece = &side->pieces[index];
  size_t bytes = (size_t)burst_piece_bytes(piece);
  int peer = (int)side->post->peer;
  return side->post->receives
             ? table->ncclRecv(piece->data, bytes, ncclInt8, peer,
                               nccl->communicator.made, nccl->stream)
             : table->ncclSend(piece->data, bytes, ncclInt8, peer,
                               nccl->communicator.made, nccl->stream);
}

static burst_error *ask_together(const nccl_transport *nccl, const hop *hop) {
  const burst_communicator *communicator = hop->communicator;
  const burst_nccl *table = communicator->nccl;
  const burst_post *post = hop->sides[0].post;
  size_t share = (size_t)hop->share;
  void *all = (void *)hop->gathered;
  if (post->pattern == BURST_EXCHANGE_ALL)
    return burst_communicator_error(
        communicator, "ncclAlltoAll",
        table->ncclAlltoAll((void *)hop->sent, all, share, ncclInt8,
                            communicator->made, nccl->stream));
  int64_t place = place_of(nccl->transport.rank, &post->group);
  return burst_communicator_error(
      communicator, "ncclAllGather",
      table->ncclAllGather((char *)all + place * hop->share, all, share,
                           ncclInt8, communicator->made, nccl->stream));
}

static burst_error *ask_all(nccl_transport *nccl, const hop *hop) {
  const burst_nccl *table = nccl->communicator.nccl;
  burst_error *error = burst_communicator_error(
      &nccl->communicator, "ncclGroupStart", table->ncclGroupStart());
  if (error)
    return error;
  if (hop->communicator)
    error = ask_together(nccl, hop);
  for (int64_t s = 0; s < hop->num_sides && !hop->communicator; ++s) {
    const side *side = &hop->sides[s];
    const char *call = side->post->receives ? "ncclRecv" : "ncclSend";
    for (int64_t i = 0; i < side->post->num_pieces && !error; ++i)
      error = burst_communicator_error(&nccl->communicator, call,
                                       ask(nccl, side, i));
  }
  burst_error *at_end = burst_communicator_error(
      &nccl->communicator, "ncclGroupEnd", table->ncclGroupEnd());
  if (!error)
    return at_end;
  burst_error_destroy(at_end);
  return error;
}

// Puts a group on the stream; whether it is there, polling tells.
static burst_error *ask_for(nccl_transport *nccl, hop *hop) {
  burst_error *error = NULL;
  bool has_packed = false;
  for (int64_t i = 0; i < hop->num_sides && !error; ++i) {
    const side *side = &hop->sides[i];
    error = burst_gpu_wait(nccl->gpu, nccl->stream, side->post->ready->event);
    // To all others a gather sends one and the same.
    if (error || side->post->receives ||
        (side->post->pattern == BURST_GATHER_ALL && hop->communicator &&
         has_packed))
      continue;
    error = pack(nccl, side);
    has_packed = true;
  }
  CUcontext before;
  if (!error)
    error = burst_gpu_enter(nccl->gpu, &before);
  if (error)
    return error;
  error = ask_all(nccl, hop);
  burst_gpu_leave(nccl->gpu, before);
  return error;
}

static burst_error *mark(nccl_transport *nccl, hop *hop) {
  burst_error *error =
      burst_cuda_event_mark(nccl->gpu, nccl->stream, hop->done);
  hop->is_marked = !error;
  return error;
}

// What comes behind the group of the pending hop.
static burst_error *finish(nccl_transport *nccl) {
  hop *hop = nccl->pending;
  burst_error *error = NULL;
  nccl->pending = NULL;
  for (int64_t i = 0; i < hop->num_sides && !error; ++i)
    if (hop->sides[i].post->receives)
      error = pack(nccl, &hop->sides[i]);
  return error ? error : mark(nccl, hop);
}

// Returns when the communicator can be used again. The mutex is held, but not
// while there is nothing to do.
static burst_error *settle(nccl_transport *nccl, double seconds, bool *late) {
  int64_t deadline = burst_now() + burst_nanoseconds(seconds);
  *late = false;
  for (;;) {
    bool settled = false;
    burst_error *error = failure_of(nccl);
    if (!error)
      error = poll(nccl, &settled);
    if (error)
      return error;
    if (settled)
      return nccl->pending ? finish(nccl) : NULL;
    *late = burst_now() >= deadline;
    if (*late)
      return NULL;
    pthread_mutex_unlock(&nccl->mutex);
    struct timespec pause = {0, 20000};
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&nccl->mutex);
  }
}

static burst_error *late(nccl_transport *nccl, const burst_post *post,
                         double seconds) {
  char state[256] = "NCCL has not put the transfer on the stream";
  size_t length = strlen(state);
  if (nccl->config.world)
    burst_world_explain(nccl->config.world, post->peer, state + length,
                        sizeof(state) - length);
  return burst_post_late(post, seconds, state);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static burst_error *begin(nccl_transport *nccl, hop *hop) {
  const burst_post *post = hop->sides[0].post;
  double seconds = nccl->config.timeout_seconds;
  bool is_late;
  pthread_mutex_lock(&nccl->mutex);
  burst_error *error = settle(nccl, seconds, &is_late);
  if (!error && is_late)
    error = late(nccl, post, seconds);
  if (!error)
    error = ask_for(nccl, hop);
  if (!error)
    nccl->pending = hop;
  pthread_mutex_unlock(&nccl->mutex);
  return locate(post, error);
}

// Of a start that failed: pieces may be copied until what was put on the stream
// has run.
static void give_up(nccl_transport *nccl, hop *hop, burst_post *const *posts,
                    int64_t count) {
  if (hop->done)
    burst_error_destroy(mark(nccl, hop));
  for (int64_t i = 0; i < count && hop->is_marked; ++i)
    posts[i]->done = burst_cuda_event_retain(hop->done);
  hop->references = 1;
  release(nccl, hop);
}

static burst_error *nccl_start(burst_transport *transport,
                               burst_post *const *posts, int64_t count) {
  nccl_transport *nccl = nccl_of(transport);
  burst_error *error = burst_cuda_check_lane(posts[0], "nccl", nccl->gpu);
  if (error)
    return error;
  size_t bytes = sizeof(hop) + (size_t)count * sizeof(side);
  hop *made = calloc(1, bytes);
  if (!made)
    return burst_error_no_memory(bytes);
  made->references = made->num_sides = count;
  error = burst_cuda_event_create(nccl->gpu, false, &made->done);
  if (!error)
    error = make_sides(nccl, made, posts);
  if (!error)
    error = begin(nccl, made);
  if (error) {
    give_up(nccl, made, posts, count);
    return error;
  }
  for (int64_t i = 0; i < count; ++i)
    posts[i]->state = made;
  return NULL;
}

static burst_error *nccl_wait(burst_transport *transport, burst_post *post,
                              double seconds) {
  nccl_transport *nccl = nccl_of(transport);
  hop *hop = post->state;
  bool is_late = false;
  pthread_mutex_lock(&nccl->mutex);
  burst_error *error =
      hop->is_marked ? failure_of(nccl) : settle(nccl, seconds, &is_late);
  if (!error && is_late)
    error = late(nccl, post, seconds);
  if (!error) {
    post->done = burst_cuda_event_retain(hop->done);
    post->began = post->ended = burst_now();
    post->state = NULL;
    release(nccl, hop);
  }
  pthread_mutex_unlock(&nccl->mutex);
  return locate(post, error);
}

static void nccl_cancel(burst_transport *transport, burst_post *post) {
  nccl_transport *nccl = nccl_of(transport);
  hop *hop = post->state;
  pthread_mutex_lock(&nccl->mutex);
  // It was aborted, and memory is touched until it has ended.
  if (!hop->is_marked)
    burst_error_destroy(mark(nccl, hop));
  if (hop->is_marked)
    post->done = burst_cuda_event_retain(hop->done);
  post->state = NULL;
  release(nccl, hop);
  pthread_mutex_unlock(&nccl->mutex);
}

// Returns when all ranks have a communicator, or fails.
static burst_error *await_ranks(nccl_transport *nccl, double seconds) {
  bool is_late = false;
  burst_error *error = settle(nccl, seconds, &is_late);
  return error || !is_late
             ? error
             : burst_error_create(
                   BURST_DEADLINE_EXCEEDED, "",
                   "nccl transport: waited %.1f s for NCCL to connect rank %d "
                   "of %d",
                   seconds, (int)nccl->transport.rank,
                   (int)nccl->transport.num_ranks);
}

static burst_error *connect_group(nccl_transport *nccl,
                                  const burst_group *ranks, double seconds) {
  int64_t rank = nccl->transport.rank, place = place_of(rank, ranks);
  burst_error *error = await_ranks(nccl, seconds);
  if (error)
    return error;
  group *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  made->ranks = *ranks;
  made->communicator =
      (burst_communicator){nccl->communicator.nccl, nccl->gpu, NULL};
  error =
      burst_communicator_split(&made->communicator, nccl->communicator.made,
                               (int)(rank - place * ranks->stride), (int)place);
  if (error) {
    free(made);
    return error;
  }
  made->next = nccl->groups;
  nccl->groups = made;
  return await_ranks(nccl, seconds);
}

static burst_error *nccl_prepare(burst_transport *transport,
                                 const burst_group *ranks, double seconds) {
  nccl_transport *nccl = nccl_of(transport);
  pthread_mutex_lock(&nccl->mutex);
  burst_error *error =
      communicator_of(nccl, ranks) ? NULL : connect_group(nccl, ranks, seconds);
  pthread_mutex_unlock(&nccl->mutex);
  return error;
}

static void free_nccl(nccl_transport *nccl) {
  while (nccl->groups) {
    group *group = nccl->groups;
    nccl->groups = group->next;
    free(group);
  }
  if (nccl->stream)
    burst_gpu_stream_destroy(nccl->gpu, nccl->stream);
  pthread_mutex_destroy(&nccl->mutex);
  free(nccl->reason);
  burst_handle_free(nccl);
}

static void nccl_destroy(burst_transport *transport) {
  nccl_transport *nccl = nccl_of(transport);
  if (nccl->config.world)
    burst_world_detach(nccl->config.world);
  for (group *group = nccl->groups; group; group = group->next)
    burst_communicator_end(&group->communicator, end_timeout);
  burst_communicator_end(&nccl->communicator, end_timeout);
  free_nccl(nccl);
}

static const burst_transport_kind nccl_table = {
    nccl_start,   nccl_wait,  nccl_cancel, nccl_stop,
    nccl_destroy, nccl_check, nccl_prepare};

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

#define INVALID(...) burst_error_create(BURST_INVALID_ARGUMENT, "", __VA_ARGS__)

// The rank of a communicator that was handed in.
static burst_error *read_ranks(nccl_transport *nccl) {
  const burst_nccl *table = nccl->communicator.nccl;
  ncclComm_t given = nccl->config.communicator;
  int ranks = 0, rank = 0;
  burst_error *error =
      burst_communicator_error(&nccl->communicator, "ncclCommCount",
                               table->ncclCommCount(given, &ranks));
  if (!error)
    error = burst_communicator_error(&nccl->communicator, "ncclCommUserRank",
                                     table->ncclCommUserRank(given, &rank));
  if (error)
    return error;
  burst_world *world = nccl->config.world;
  if (world && (burst_world_rank(world) != rank ||
                burst_world_num_ranks(world) != ranks))
    return INVALID("nccl transport: the communicator is of rank %d of %d, "
                   "wanted rank %d of %d, as the world is",
                   rank, ranks, (int)burst_world_rank(world),
                   (int)burst_world_num_ranks(world));
  nccl->transport.rank = rank;
  nccl->transport.num_ranks = ranks;
  return NULL;
}

static burst_error *begin_split(nccl_transport *nccl) {
  return burst_communicator_split(&nccl->communicator,
                                  nccl->config.communicator, 0,
                                  (int)nccl->transport.rank);
}

// With an id that rank 0 gives to all.
static burst_error *begin_own(nccl_transport *nccl) {
  burst_world *world = nccl->config.world;
  ncclUniqueId mine = {{0}}, *all;
  burst_error *error = NULL;
  if (nccl->transport.rank == 0)
    error = burst_communicator_error(
        &nccl->communicator, "ncclGetUniqueId",
        nccl->communicator.nccl->ncclGetUniqueId(&mine));
  if (error)
    return error;
  all = calloc((size_t)nccl->transport.num_ranks, sizeof(mine));
  if (!all)
    return burst_error_no_memory(sizeof(mine));
  error = burst_world_gather(world, &mine, sizeof(mine), all,
                             nccl->config.timeout_seconds);
  if (!error)
    error = burst_communicator_begin(&nccl->communicator, all,
                                     nccl->transport.num_ranks,
                                     nccl->transport.rank);
  free(all);
  return error;
}

static burst_error *connect_ranks(nccl_transport *nccl) {
  burst_error *error =
      nccl->config.communicator ? begin_split(nccl) : begin_own(nccl);
  if (error)
    return error;
  pthread_mutex_lock(&nccl->mutex);
  error = await_ranks(nccl, nccl->config.timeout_seconds);
  pthread_mutex_unlock(&nccl->mutex);
  return error;
}

// Where both are at work, data shall not wait for room on the GPU.
static burst_error *make_stream(nccl_transport *nccl) {
  const burst_driver *driver = nccl->gpu->driver;
  CUcontext before;
  burst_error *error = burst_gpu_enter(nccl->gpu, &before);
  if (error)
    return error;
  CUresult result = driver->cuStreamCreateWithPriority(
      &nccl->stream, CU_STREAM_NON_BLOCKING, INT_MIN / 2); // is clamped
  burst_gpu_leave(nccl->gpu, before);
  nccl->lane = (burst_lane){nccl->gpu, nccl->stream, false};
  return result == CUDA_SUCCESS
             ? NULL
             : burst_driver_error(driver, nccl->gpu->properties.ordinal,
                                  "cuStreamCreateWithPriority", result);
}

static burst_error *make_nccl(const burst_nccl_config *config,
                              nccl_transport **made) {
  const burst_nccl *table;
  burst_error *error = burst_nccl_table(&table);
  if (error)
    return error;
  nccl_transport *nccl = calloc(1, sizeof(*nccl));
  if (!nccl)
    return burst_error_no_memory(sizeof(*nccl));
  *made = nccl;
  nccl->config = *config;
  nccl->gpu = burst_device_gpu(config->device);
  burst_transport_begin(&nccl->transport, &nccl_table,
                        burst_world_rank(config->world),
                        burst_world_num_ranks(config->world), config->world);
  pthread_mutex_init(&nccl->mutex, NULL);
  nccl->communicator = (burst_communicator){table, nccl->gpu, NULL};
  if (config->communicator)
    error = read_ranks(nccl);
  return error ? error : make_stream(nccl);
}

static burst_error *check(const burst_nccl_config *config) {
  if (!config->device || !burst_device_cuda(config->device))
    return INVALID("nccl transport: no CUDA device");
  if (!config->world && !config->communicator)
    return INVALID("nccl transport: no world and no communicator, wanted one "
                   "of them or both");
  return burst_number_check("nccl transport: timeout_seconds",
                            config->timeout_seconds);
}

burst_error *burst_transport_create_nccl(const burst_nccl_config *given,
                                         burst_transport **transport) {
  BURST_REQUIRE(transport);
  burst_nccl_config config;
  nccl_transport *made = NULL;
  *transport = NULL;
  burst_error *error =
      burst_config_read("burst_nccl_config", &config, sizeof(config), given,
                        BURST_COVERS(burst_nccl_config, device));
  if (error)
    return error;
  BURST_CHECK(config.device, BURST_KIND_DEVICE);
  BURST_CHECK(config.world, BURST_KIND_WORLD);
  error = check(&config);
  if (error)
    return error;
  if (config.timeout_seconds == 0)
    config.timeout_seconds = default_timeout;
  error = make_nccl(&config, &made);
  bool attached = false, tells = config.world != NULL;
  if (!error && config.world) {
    error = burst_world_attach(config.world, fail, made);
    attached = tells = !error;
  }
  if (!error)
    error = connect_ranks(made);
  if (!error) {
    *transport = &made->transport;
    return NULL;
  }
  if (tells) // the others wait for this rank
    burst_world_stop(config.world, burst_error_message(error));
  if (attached)
    burst_world_detach(config.world);
  if (made) {
    abort_all(made);
    free_nccl(made);
  }
  return error;
}
