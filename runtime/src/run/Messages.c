//===- Messages.c - The messages of a transfer ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "burst/internal/route.h"
#include "runtime/src/run/Rank.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct listing {
  burst_rank *rank;
  const burst_transfer *transfer;
  burst_message *messages;
  int64_t count;
  burst_piece *pieces; // the next
  int64_t *counts;     // of the segments of a shard
  int64_t *starts;     // by owner, where its shard begins in a gathered tensor
  burst_segment *segments; // of the shard of an owner, in a group's
} listing;

static bool is_all_to_all(const burst_transfer *transfer) {
  return transfer->route == BURST_TO_HEADS ||
         transfer->route == BURST_TO_SEQUENCE;
}

static int64_t most_messages(const burst_transfer *transfer) {
  return transfer->route == BURST_SHIFT ? 2 : 2 * transfer->num_ranks;
}

// The most that lists one segment of all tensors.
static size_t pieces_of_segment(const burst_transfer *transfer) {
  size_t count = (size_t)transfer->num_tensors;
  if (!is_all_to_all(transfer))
    return count;
  int64_t blocks = 0;
  for (int64_t i = 0; i < transfer->num_tensors; ++i)
    blocks += burst_sharded_blocks(&transfer->sends[i]);
  return (size_t)blocks;
}

// Memory for all that a transfer may list.
static listing make_listing(burst_rank *rank, const burst_transfer *transfer) {
  size_t messages = (size_t)most_messages(transfer);
  size_t segments = (size_t)transfer->num_segments;
  size_t pieces = messages * pieces_of_segment(transfer) * segments;
  size_t bytes = messages * sizeof(burst_message) +
                 pieces * sizeof(burst_piece) +
                 segments * sizeof(burst_segment) +
                 (segments + (size_t)transfer->num_ranks) * sizeof(int64_t);
  free(rank->listing);
  rank->listing = malloc(bytes);
  if (!rank->listing)
    burst_rank_fail(rank, burst_error_no_memory(bytes));
  listing made = {.rank = rank, .transfer = transfer, .count = 0};
  made.messages = rank->listing;
  made.pieces = (burst_piece *)(made.messages + messages);
  made.segments = (burst_segment *)(made.pieces + pieces);
  made.counts = (int64_t *)(made.segments + segments);
  made.starts = made.counts + segments;
  return made;
}

static void find_starts(const listing *listing) {
  const burst_transfer *transfer = listing->transfer;
  int64_t start = 0;
  for (int64_t owner = 0; owner < transfer->num_ranks; ++owner) {
    listing->starts[owner] = start;
    transfer->counts(owner, transfer->extent, listing->counts);
    for (int64_t s = 0; s < transfer->num_segments; ++s)
      start += listing->counts[s];
  }
}

static bool travels(const listing *listing, int64_t owner, int64_t turn,
                    int64_t segment) {
  const burst_transfer *transfer = listing->transfer;
  if (!transfer->flags)
    return true;
  if (transfer->flag_owners == 1)
    owner = 0;
  if (transfer->flag_segments == 1)
    segment = 0;
  if (owner >= transfer->flag_owners || turn < 0 ||
      turn >= transfer->flag_turns)
    burst_rank_fail(
        listing->rank,
        burst_error_create(
            BURST_PROGRAM_FAULT, burst_rank_location(listing->rank).text,
            "flags of segments of owner %" PRId64 " for turn %" PRId64
            ", wanted owners below %" PRId64 " and turns below %" PRId64,
            owner, turn, transfer->flag_owners, transfer->flag_turns));
  int64_t row = owner * transfer->flag_turns + turn;
  return transfer->flags[row * transfer->flag_segments + segment] & 1;
}

// That of a rank in its group.
static int64_t place_of(const burst_rank *rank,
                        const burst_transfer *transfer) {
  return rank->index / transfer->stride % transfer->num_ranks;
}

// What travels to or from the rank at place `peer` of the shard of an owner,
// which begins at row `first` of each tensor: a piece per tensor and segment.
static void list(listing *listing, int64_t peer, bool receives, int64_t owner,
                 int64_t first, int64_t turn) {
  const burst_transfer *transfer = listing->transfer;
  burst_message *message = &listing->messages[listing->count];
  int64_t number =
      listing->rank->index +
      (peer - place_of(listing->rank, transfer)) * transfer->stride;
  *message = (burst_message){number, receives, 0, listing->pieces};
  const burst_sharded *tensors =
      receives ? transfer->receives : transfer->sends;
  transfer->counts(owner, transfer->extent, listing->counts);
  for (int64_t i = 0; i < transfer->num_tensors; ++i) {
    int64_t row = first;
    for (int64_t s = 0; s < transfer->num_segments; ++s) {
      int64_t rows = listing->counts[s];
      if (travels(listing, owner, turn, s) &&
          burst_sharded_piece(&tensors[i], row, rows, listing->pieces)) {
        ++listing->pieces;
        ++message->num_pieces;
      }
      row += rows;
    }
  }
  listing->count += message->num_pieces != 0;
}

static void list_shift(listing *listing) {
  const burst_transfer *transfer = listing->transfer;
  if (transfer->is_of_gathered)
    find_starts(listing);
  list(listing, transfer->to, false, transfer->owner,
       transfer->is_of_gathered ? listing->starts[transfer->owner] : 0,
       transfer->turn);
  list(listing, transfer->from, true, transfer->received_owner, 0,
       transfer->turn);
}

static void list_gather(listing *listing) {
  const burst_transfer *transfer = listing->transfer;
  int64_t ranks = transfer->num_ranks;
  int64_t rank = place_of(listing->rank, transfer);
  find_starts(listing);
  for (int64_t distance = 0; distance < ranks; ++distance) {
    int64_t from = burst_rank_behind(rank, distance, ranks);
    list(listing, burst_rank_ahead(rank, distance, ranks), false,
         transfer->owner, 0, distance);
    list(listing, from, true, from, listing->starts[from], distance);
  }
}

// Of the heads of a tensor of an all-to-all, those of the rank at a place.
static burst_heads heads_of_part(const listing *listing, int64_t tensor,
                                 int64_t place) {
  const burst_transfer *transfer = listing->transfer;
  const burst_sharded *sends = &transfer->sends[tensor],
                      *receives = &transfer->receives[tensor];
  bool to_heads = transfer->route == BURST_TO_HEADS;
  return burst_heads_of(place, transfer->num_ranks,
                        burst_sharded_heads(to_heads ? sends : receives),
                        burst_sharded_heads(to_heads ? receives : sends),
                        transfer->groups);
}

// What goes to the rank at place `peer`, or comes from it. Of tensors that are
// shards of the sequence, that is a part of the heads; of those with a part of
// the heads, the positions of a shard.
static void list_part(listing *listing, int64_t peer, bool receives) {
  const burst_transfer *transfer = listing->transfer;
  burst_message *message = &listing->messages[listing->count];
  int64_t place = place_of(listing->rank, transfer);
  int64_t number = listing->rank->index + (peer - place) * transfer->stride;
  *message = (burst_message){number, receives, 0, listing->pieces};
  bool is_of_shard = (transfer->route == BURST_TO_HEADS) != receives;
  int64_t owner = transfer->owner + (is_of_shard ? 0 : peer - place);
  transfer->in_group(owner, transfer->extent, listing->segments);
  const burst_sharded *tensors =
      receives ? transfer->receives : transfer->sends;
  for (int64_t i = 0; i < transfer->num_tensors; ++i) {
    // The heads are those of the rank that has them in between.
    burst_heads part = heads_of_part(listing, i, is_of_shard ? peer : place);
    int64_t row = 0;
    for (int64_t s = 0; s < transfer->num_segments; ++s) {
      burst_segment rows = listing->segments[s];
      if (rows.count == 0)
        continue;
      if (rows.step == rows.block || rows.count <= rows.block)
        rows.block = rows.step = rows.count;
      if (is_of_shard) {
        rows.begin = row;
        rows.step = rows.block;
      }
      row += rows.count;
      listing->pieces =
          burst_sharded_part(&tensors[i], &rows, is_of_shard ? part.first : 0,
                             part.count, listing->pieces);
    }
  }
  message->num_pieces = listing->pieces - message->pieces;
  listing->count += message->num_pieces != 0;
}

static void list_all_to_all(listing *listing) {
  int64_t ranks = listing->transfer->num_ranks;
  int64_t place = place_of(listing->rank, listing->transfer);
  for (int64_t distance = 0; distance < ranks; ++distance) {
    list_part(listing, burst_rank_ahead(place, distance, ranks), false);
    list_part(listing, burst_rank_behind(place, distance, ranks), true);
  }
}

static void check(burst_rank *rank, const char *what, int64_t owner,
                  int64_t num_owners) {
  if (owner < 0 || owner >= num_owners)
    burst_rank_fail(
        rank,
        burst_error_create(BURST_PROGRAM_FAULT, burst_rank_location(rank).text,
                           "a transfer of the shard of rank %" PRId64
                           " as %s, wanted 0 to %" PRId64,
                           owner, what, num_owners - 1));
}

static void check_shift(burst_rank *rank, const burst_transfer *transfer) {
  check(rank, "what is received", transfer->received_owner,
        transfer->num_owners);
  const int64_t peers[] = {transfer->to, transfer->from};
  for (int i = 0; i < 2; ++i)
    if (peers[i] < 0 || peers[i] >= transfer->num_ranks)
      burst_rank_fail(
          rank, burst_error_create(
                    BURST_PROGRAM_FAULT, burst_rank_location(rank).text,
                    "a transfer %s rank %" PRId64 ", wanted 0 to %" PRId64,
                    i ? "from" : "to", peers[i], transfer->num_ranks - 1));
}

// Whether all segments of all shards go to all ranks: known alike to all.
static bool gathers_all(const listing *listing) {
  const burst_transfer *transfer = listing->transfer;
  for (int64_t owner = 0; owner < transfer->num_ranks; ++owner) {
    int64_t rows = 0;
    transfer->counts(owner, transfer->extent, listing->counts);
    for (int64_t s = 0; s < transfer->num_segments; ++s)
      rows += listing->counts[s];
    if (rows == 0)
      return false;
    for (int64_t distance = 1; distance < transfer->num_ranks; ++distance)
      for (int64_t s = 0; s < transfer->num_segments; ++s)
        if (!travels(listing, owner, distance, s))
          return false;
  }
  return true;
}

const burst_messages *burst_rank_messages(burst_rank *rank,
                                          const burst_transfer *transfer) {
  if (transfer->num_ranks < 1 || transfer->stride < 1)
    burst_rank_fail(
        rank, burst_error_create(
                  BURST_PROGRAM_FAULT, burst_rank_location(rank).text,
                  "a transfer of %" PRId64 " ranks with a stride of %" PRId64
                  ", wanted 1 or more of both",
                  transfer->num_ranks, transfer->stride));
  if (is_all_to_all(transfer) &&
      (transfer->groups < 1 || transfer->groups > transfer->num_ranks))
    burst_rank_fail(rank,
                    burst_error_create(BURST_PROGRAM_FAULT,
                                       burst_rank_location(rank).text,
                                       "an all-to-all with heads in %" PRId64
                                       " groups, wanted 1 to %" PRId64,
                                       transfer->groups, transfer->num_ranks));
  if (!is_all_to_all(transfer))
    check(rank, "what is sent", transfer->owner, transfer->num_owners);
  else if (transfer->owner % transfer->num_ranks != place_of(rank, transfer))
    burst_rank_fail(
        rank,
        burst_error_create(
            BURST_PROGRAM_FAULT, burst_rank_location(rank).text,
            "an all-to-all of the shard of %" PRId64 ", wanted one at place "
            "%" PRId64 " of %" PRId64,
            transfer->owner, place_of(rank, transfer), transfer->num_ranks));
  if (transfer->route == BURST_SHIFT)
    check_shift(rank, transfer);
  listing listing = make_listing(rank, transfer);
  if (transfer->route == BURST_SHIFT)
    list_shift(&listing);
  else if (transfer->route == BURST_ALL_GATHER)
    list_gather(&listing);
  else
    list_all_to_all(&listing);
  rank->messages =
      (burst_messages){.count = listing.count, .list = listing.messages};
  if (is_all_to_all(transfer))
    rank->messages.pattern = BURST_EXCHANGE_ALL;
  else if (transfer->route == BURST_ALL_GATHER && gathers_all(&listing))
    rank->messages.pattern = BURST_GATHER_ALL;
  if (rank->messages.pattern != BURST_POINT_TO_POINT)
    rank->messages.group = (burst_group){transfer->num_ranks, transfer->stride};
  return &rank->messages;
}
