//===- Flight.c - Transfers of a rank -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/base/View.h"
#include "runtime/src/device/cuda/Device.h"
#include "runtime/src/run/Rank.h"
#include "runtime/src/run/Trace.h"
#include "runtime/src/world/World.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FAULT(location, ...)                                                   \
  burst_rank_fail(rank, burst_error_create(BURST_PROGRAM_FAULT,                \
                                           (location).text, __VA_ARGS__))

static _Noreturn void fail_memory(burst_rank *rank, size_t bytes) {
  burst_rank_fail(rank, burst_error_create(
                            BURST_OUT_OF_MEMORY, burst_rank_location(rank).text,
                            "out of memory: wanted %zu bytes", bytes));
}

// The number of this start on its channel.
static int64_t next_hop(burst_rank *rank, int64_t number) {
  burst_channel *channel = rank->channels;
  while (channel && channel->number != number)
    channel = channel->next;
  if (!channel) {
    channel = calloc(1, sizeof(*channel));
    if (!channel)
      fail_memory(rank, sizeof(*channel));
    channel->number = number;
    channel->next = rank->channels;
    rank->channels = channel;
  }
  return ++channel->hops;
}

//===----------------------------------------------------------------------===//
// Posts
//===----------------------------------------------------------------------===//

static void check_piece(burst_rank *rank, const burst_post *post, int64_t i) {
  const burst_piece *piece = &post->pieces[i];
  const char *side = post->receives ? "receive" : "send";
  burst_location location = burst_location_of_post(post);
  if (piece->element_bytes < 1)
    FAULT(location,
          "piece %" PRId64 " to %s: elements of %" PRId64
          " bytes, wanted at least 1",
          i, side, piece->element_bytes);
  for (int d = 0; d < 4; ++d)
    if (piece->sizes[d] < 1 || piece->strides[d] < 0)
      FAULT(location,
            "piece %" PRId64 " to %s: size %" PRId64 ", stride %" PRId64
            " in dimension %d, wanted at least 1 and 0",
            i, side, piece->sizes[d], piece->strides[d], d);
  if (burst_piece_bytes(piece) < 0)
    FAULT(location, "piece %" PRId64 " to %s: more than %" PRId64 " bytes", i,
          side, INT64_MAX);
  if (!piece->data)
    FAULT(location, "piece %" PRId64 " to %s: no data", i, side);
}

static void check_message(burst_rank *rank, const burst_post *post) {
  const char *side = post->receives ? "receive from" : "send to";
  burst_location location = burst_location_of_post(post);
  if (post->num_pieces < 0 || post->num_pieces > INT32_MAX)
    FAULT(location, "%" PRId64 " pieces to %s rank %" PRId64 ", wanted 0 to %d",
          post->num_pieces, side, post->peer, INT32_MAX);
  if (!rank->transport)
    FAULT(location, "%s rank %" PRId64 ": the run has no transport", side,
          post->peer);
  if (post->peer < 0 || post->peer >= rank->image->num_ranks)
    FAULT(location, "%s rank %" PRId64 ", wanted 0 to %" PRId64, side,
          post->peer, rank->image->num_ranks - 1);
}

// The post gets pieces of its own: the program's may end with its call.
static void fill_post(burst_rank *rank, burst_post *post,
                      const burst_piece *pieces) {
  if (post->num_pieces == 0)
    return;
  int64_t count = post->num_pieces;
  check_message(rank, post);
  post->num_pieces = 0; // until there is memory for them
  size_t bytes = (size_t)count * sizeof(burst_piece);
  post->pieces = malloc(bytes);
  if (!post->pieces)
    fail_memory(rank, bytes);
  memcpy(post->pieces, pieces, bytes);
  post->num_pieces = count;
  for (int64_t i = 0; i < count; ++i) {
    check_piece(rank, post, i);
    if (__builtin_add_overflow(post->bytes, burst_piece_bytes(&post->pieces[i]),
                               &post->bytes))
      FAULT(burst_location_of_post(post), "more than %" PRId64 " bytes",
            INT64_MAX);
  }
}

static void poison(burst_rank *rank, const burst_post *post) {
  burst_error *error = NULL;
  for (int64_t i = 0; i < post->num_pieces && !error; ++i) {
    burst_view view = burst_view_of_piece(&post->pieces[i]);
    if (rank->cuda)
      error = burst_cuda_poison(rank->cuda, &view);
    else
      burst_view_fill(&view, BURST_POISON);
  }
  if (error)
    burst_rank_fail_at(rank, error);
}

// Tells the ranks of other processes what this one does.
static void note(burst_rank *rank, burst_activity activity,
                 const burst_post *post) {
  if (rank->transport->world)
    burst_world_note(rank->transport->world, activity, post->hop, post->peer);
}

//===----------------------------------------------------------------------===//
// Messages of a rank to itself
//===----------------------------------------------------------------------===//

static bool is_own(const burst_rank *rank, const burst_post *post) {
  return post->num_pieces != 0 && post->peer == rank->index;
}

// The first such post from number `first` on that receives, or sends.
static int64_t find_own(const burst_rank *rank, const burst_flight *flight,
                        int64_t first, bool receives) {
  while (first < flight->num_posts &&
         !(is_own(rank, &flight->posts[first]) &&
           flight->posts[first].receives == receives))
    ++first;
  return first;
}

static void copy(burst_rank *rank, const burst_post *to,
                 const burst_post *from) {
  burst_error *error = burst_post_mismatch(to, from);
  if (error)
    burst_rank_fail(rank, error);
  for (int64_t i = 0; i < to->num_pieces && !error; ++i) {
    burst_view target = burst_view_of_piece(&to->pieces[i]);
    burst_view source = burst_view_of_piece(&from->pieces[i]);
    if (rank->cuda)
      error = burst_cuda_copy_here(rank->cuda, &target, &source);
    else
      burst_view_copy(&target, &source);
  }
  if (error)
    burst_rank_fail_at(rank, error);
}

// Pairs of them, in their order: no transport hears of these.
static void pair_own(const burst_rank *rank, burst_flight *flight) {
  int64_t none = flight->num_posts;
  int64_t to = find_own(rank, flight, 0, true);
  int64_t from = find_own(rank, flight, 0, false);
  while (to != none && from != none) {
    flight->posts[to].own_other = &flight->posts[from];
    flight->posts[from].own_other = &flight->posts[to];
    to = find_own(rank, flight, to + 1, true);
    from = find_own(rank, flight, from + 1, false);
  }
}

static void copy_own(burst_rank *rank, const burst_flight *flight) {
  for (int64_t i = 0; i < flight->num_posts; ++i)
    if (flight->posts[i].receives && flight->posts[i].own_other)
      copy(rank, &flight->posts[i], flight->posts[i].own_other);
}

//===----------------------------------------------------------------------===//
// start
//===----------------------------------------------------------------------===//

// Those that a transport is to know of.
static int64_t list_others(burst_flight *flight, burst_post **others) {
  int64_t count = 0;
  for (int64_t i = 0; i < flight->num_posts; ++i)
    if (flight->posts[i].num_pieces != 0 && !flight->posts[i].own_other)
      others[count++] = &flight->posts[i];
  return count;
}

static void count(burst_rank *rank, const burst_post *post) {
  if (post->receives) {
    ++rank->counters.messages_received;
    rank->counters.bytes_received += post->bytes;
  } else {
    ++rank->counters.messages_sent;
    rank->counters.bytes_sent += post->bytes;
  }
}

static void begin(burst_rank *rank, burst_flight *flight) {
  burst_post **others = flight->others;
  int64_t num_others = list_others(flight, others);
  if (num_others == 0)
    return;
  burst_error *error =
      rank->cuda ? burst_cuda_depart(rank->cuda, others, num_others) : NULL;
  if (error)
    burst_rank_fail_at(rank, error);
  error = rank->transport->kind->start(rank->transport, others, num_others);
  if (error)
    burst_rank_fail(rank, error);
  note(rank, BURST_RUNNING, others[0]);
  for (int64_t i = 0; i < num_others; ++i)
    count(rank, others[i]);
}

// It is among those of the rank before anything of it can fail.
static burst_flight *make_flight(burst_rank *rank, int64_t channel,
                                 int64_t num_messages) {
  int64_t hop = next_hop(rank, channel);
  size_t bytes =
      sizeof(burst_flight) + (size_t)num_messages * sizeof(burst_post);
  burst_flight *flight = calloc(1, bytes);
  if (!flight)
    fail_memory(rank, bytes);
  flight->token = rank->tokens++;
  flight->next = rank->flights;
  flight->channel = channel;
  flight->hop = hop;
  rank->flights = flight;
  return flight;
}

int64_t burst_rank_start(burst_rank *rank, int64_t channel,
                         const burst_messages *given) {
  int64_t num_messages = given->count;
  const burst_message *messages = given->list;
  if (num_messages < 0 || num_messages > INT32_MAX)
    FAULT(burst_rank_location(rank),
          "a start of %" PRId64 " messages, wanted 0 to %d", num_messages,
          INT32_MAX);
  burst_flight *flight = make_flight(rank, channel, num_messages);
  for (int64_t i = 0; i < num_messages; ++i) {
    flight->posts[flight->num_posts++] =
        (burst_post){.rank = rank->index,
                     .peer = messages[i].peer,
                     .channel = channel,
                     .hop = flight->hop,
                     .program = rank->image->hash,
                     .pattern = given->pattern,
                     .group = given->group,
                     .receives = messages[i].receives != 0,
                     .num_pieces = messages[i].num_pieces};
    fill_post(rank, &flight->posts[i], messages[i].pieces);
  }
  if (rank->checked) {
    burst_guard_start(rank, flight);
    for (int64_t i = 0; i < num_messages; ++i)
      if (flight->posts[i].receives)
        poison(rank, &flight->posts[i]);
  }
  pair_own(rank, flight);
  if (!rank->checked) // which copies as late as is legal
    copy_own(rank, flight);
  flight->others = calloc((size_t)num_messages + 1, sizeof(burst_post *));
  if (!flight->others)
    fail_memory(rank, (size_t)num_messages * sizeof(burst_post *));
  begin(rank, flight);
  return flight->token;
}

//===----------------------------------------------------------------------===//
// wait, and the end
//===----------------------------------------------------------------------===//

static void wait_for(burst_rank *rank, burst_post *post) {
  if (!post->state)
    return;
  int64_t began = burst_now();
  note(rank, BURST_WAITING, post);
  burst_error *error = rank->transport->kind->wait(rank->transport, post,
                                                   rank->deadline_seconds);
  int64_t ended = burst_now();
  rank->counters.wait_seconds += burst_seconds(ended - began);
  burst_trace_wait(rank->trace, post, began, ended);
  if (error)
    burst_rank_fail(rank, error);
  note(rank, BURST_RUNNING, post);
  burst_trace_transfer(rank->trace, post);
  if (rank->cuda)
    error = burst_cuda_arrive(rank->cuda, post);
  if (error)
    burst_rank_fail_at(rank, error);
}

static void free_post(burst_post *post) {
  burst_cuda_event_release(post->ready);
  burst_cuda_event_release(post->done);
  free(post->pieces);
}

static void free_flight(burst_flight *flight) {
  for (int64_t i = 0; i < flight->num_posts; ++i)
    free_post(&flight->posts[i]);
  free(flight->others);
  free(flight);
}

void burst_rank_wait(burst_rank *rank, int64_t token) {
  burst_flight **place = &rank->flights;
  while (*place && (*place)->token != token)
    place = &(*place)->next;
  burst_flight *flight = *place;
  if (!flight && token >= 0 && token < rank->tokens)
    FAULT(burst_rank_location(rank),
          "wait: token %" PRId64 " for the second time", token);
  if (!flight)
    FAULT(burst_rank_location(rank), "wait: token %" PRId64 " of %" PRId64,
          token, rank->tokens);
  // What comes may be late; what goes was taken then, as a rule.
  for (int side = 0; side < 2; ++side)
    for (int64_t i = 0; i < flight->num_posts; ++i)
      if (flight->posts[i].receives == (side == 0))
        wait_for(rank, &flight->posts[i]);
  if (rank->checked)
    copy_own(rank, flight);
  *place = flight->next;
  free_flight(flight);
}

void burst_rank_check_flights(burst_rank *rank) {
  const burst_flight *flight = rank->flights;
  if (flight)
    FAULT(burst_location_of(rank->index, flight->hop),
          "token %" PRId64 " on channel %" PRId64 " is never waited for",
          flight->token, flight->channel);
}

static void cancel(burst_rank *rank, burst_post *post) {
  if (post->state)
    rank->transport->kind->cancel(rank->transport, post);
  // A GPU that refuses this is lost.
  if (rank->cuda)
    burst_error_destroy(burst_cuda_join(rank->cuda, post));
}

void burst_rank_cancel_flights(burst_rank *rank) {
  while (rank->flights) {
    burst_flight *flight = rank->flights;
    rank->flights = flight->next;
    for (int64_t i = 0; i < flight->num_posts; ++i)
      cancel(rank, &flight->posts[i]);
    free_flight(flight);
  }
  while (rank->channels) {
    burst_channel *next = rank->channels->next;
    free(rank->channels);
    rank->channels = next;
  }
}
