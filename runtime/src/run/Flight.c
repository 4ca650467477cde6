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
// start
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

static void begin(burst_rank *rank, burst_flight *flight) {
  burst_post *send = flight->send.num_pieces ? &flight->send : NULL;
  burst_post *receive = flight->receive.num_pieces ? &flight->receive : NULL;
  if (!send && !receive)
    return;
  burst_error *error =
      rank->cuda ? burst_cuda_depart(rank->cuda, send, receive) : NULL;
  if (error)
    burst_rank_fail_at(rank, error);
  error = rank->transport->table->start(rank->transport, send, receive);
  if (error)
    burst_rank_fail(rank, error);
  note(rank, BURST_RUNNING, send ? send : receive);
  rank->counters.messages_sent += send != NULL;
  rank->counters.messages_received += receive != NULL;
  rank->counters.bytes_sent += flight->send.bytes;
  rank->counters.bytes_received += flight->receive.bytes;
}

int64_t burst_rank_start(burst_rank *rank, int64_t channel, int64_t to,
                         int64_t num_sends, const burst_piece *sends,
                         int64_t from, int64_t num_receives,
                         const burst_piece *receives) {
  int64_t hop = next_hop(rank, channel);
  burst_flight *flight = calloc(1, sizeof(*flight));
  if (!flight)
    fail_memory(rank, sizeof(*flight));
  flight->token = rank->tokens++;
  flight->next = rank->flights;
  rank->flights = flight;
  burst_post common = {.rank = rank->index,
                       .channel = channel,
                       .hop = hop,
                       .program = rank->image->hash};
  flight->send = flight->receive = common;
  flight->send.peer = to;
  flight->send.num_pieces = num_sends;
  flight->receive.peer = from;
  flight->receive.num_pieces = num_receives;
  flight->receive.receives = true;
  fill_post(rank, &flight->send, sends);
  fill_post(rank, &flight->receive, receives);
  if (rank->checked) {
    burst_guard_start(rank, flight);
    poison(rank, &flight->receive);
  }
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
  burst_error *error = rank->transport->table->wait(rank->transport, post,
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
  free_post(&flight->send);
  free_post(&flight->receive);
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
  wait_for(rank, &flight->receive);
  wait_for(rank, &flight->send);
  *place = flight->next;
  free_flight(flight);
}

void burst_rank_check_flights(burst_rank *rank) {
  const burst_flight *flight = rank->flights;
  if (flight)
    FAULT(burst_location_of_post(&flight->send),
          "token %" PRId64 " on channel %" PRId64 " is never waited for",
          flight->token, flight->send.channel);
}

static void cancel(burst_rank *rank, burst_post *post) {
  if (post->state)
    rank->transport->table->cancel(rank->transport, post);
  // A GPU that refuses this is lost.
  if (rank->cuda)
    burst_error_destroy(burst_cuda_join(rank->cuda, post));
}

void burst_rank_cancel_flights(burst_rank *rank) {
  while (rank->flights) {
    burst_flight *flight = rank->flights;
    rank->flights = flight->next;
    cancel(rank, &flight->send);
    cancel(rank, &flight->receive);
    free_flight(flight);
  }
  while (rank->channels) {
    burst_channel *next = rank->channels->next;
    free(rank->channels);
    rank->channels = next;
  }
}
