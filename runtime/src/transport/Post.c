//===- Post.c - One side of a message -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "runtime/src/transport/Transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

burst_error *burst_posts_begin(burst_post *const *posts, int64_t count,
                               size_t bytes) {
  for (int64_t i = 0; i < count; ++i) {
    posts[i]->state = calloc(1, bytes);
    if (posts[i]->state)
      continue;
    while (i-- > 0)
      burst_post_end(posts[i]);
    return burst_error_no_memory(bytes);
  }
  return NULL;
}

void burst_post_end(burst_post *post) {
  burst_error_destroy(post->refusal);
  free(post->state);
  post->refusal = NULL;
  post->state = NULL;
}

burst_location burst_location_of(int64_t rank, int64_t hop) {
  burst_location location;
  snprintf(location.text, sizeof(location.text),
           "rank %" PRId64 ", hop %" PRId64, rank, hop);
  return location;
}

burst_location burst_location_of_post(const burst_post *post) {
  return burst_location_of(post->rank, post->hop);
}

static const char *what_of(const burst_post *post) {
  return post->receives ? "receive from" : "send to";
}

burst_error *burst_post_ended(const burst_post *post, burst_code code,
                              const char *sentence) {
  return burst_error_create(code, burst_location_of_post(post).text,
                            "%s rank %" PRId64 ": %s", what_of(post),
                            post->peer, sentence);
}

burst_error *burst_post_stopped(const burst_post *post, int64_t culprit,
                                const char *reason) {
  return burst_error_create(BURST_PEER_STOPPED,
                            burst_location_of_post(post).text,
                            "%s rank %" PRId64 ": rank %" PRId64 " stopped: %s",
                            what_of(post), post->peer, culprit, reason);
}

burst_error *burst_post_failed(const burst_post *post, const burst_error *why) {
  return burst_error_create(burst_error_code(why),
                            burst_location_of_post(post).text,
                            "%s rank %" PRId64 ": %s", what_of(post),
                            post->peer, burst_error_message(why));
}

burst_error *burst_post_late(const burst_post *post, double seconds,
                             const char *state) {
  return burst_error_create(
      BURST_DEADLINE_EXCEEDED, burst_location_of_post(post).text,
      "waited %.1f s for rank %" PRId64 " on channel %" PRId64 ": %s", seconds,
      post->peer, post->channel, state);
}

static burst_error *mismatched_piece(const burst_post *post,
                                     const burst_post *other, int64_t i) {
  const burst_piece *mine = &post->pieces[i], *theirs = &other->pieces[i];
  const int64_t *m = mine->sizes, *t = theirs->sizes;
  return burst_error_create(
      BURST_MISMATCH, burst_location_of_post(post).text,
      "%s rank %" PRId64 " on channel %" PRId64 ": piece %" PRId64
      " has %" PRId64 " bytes there (%" PRId64 "x%" PRId64 "x%" PRId64
      "x%" PRId64 " of %" PRId64 "), wanted %" PRId64 " (%" PRId64 "x%" PRId64
      "x%" PRId64 "x%" PRId64 " of %" PRId64 ")",
      what_of(post), post->peer, post->channel, i, burst_piece_bytes(theirs),
      t[0], t[1], t[2], t[3], theirs->element_bytes, burst_piece_bytes(mine),
      m[0], m[1], m[2], m[3], mine->element_bytes);
}

static const char *place_of(const burst_post *post) {
  if (!post->lane)
    return "a CPU";
  return post->lane->capturing ? "a GPU, captured to a graph" : "a GPU";
}

static burst_error *mismatched_lane(const burst_post *post,
                                    const burst_post *other) {
  if (strcmp(place_of(post), place_of(other)) == 0)
    return NULL;
  return burst_error_create(BURST_MISMATCH, burst_location_of_post(post).text,
                            "%s rank %" PRId64 ": it runs on %s, wanted %s",
                            what_of(post), post->peer, place_of(other),
                            place_of(post));
}

burst_error *burst_post_mismatch(const burst_post *post,
                                 const burst_post *other) {
  if (post->program != other->program)
    return burst_error_create(BURST_MISMATCH, burst_location_of_post(post).text,
                              "%s rank %" PRId64 ": it runs program %016" PRIx64
                              ", wanted %016" PRIx64,
                              what_of(post), post->peer, other->program,
                              post->program);
  if (post->num_pieces != other->num_pieces)
    return burst_error_create(
        BURST_MISMATCH, burst_location_of_post(post).text,
        "%s rank %" PRId64 " on channel %" PRId64 ": %" PRId64
        " pieces of %" PRId64 " bytes there, wanted %" PRId64
        " pieces of %" PRId64 " bytes",
        what_of(post), post->peer, post->channel, other->num_pieces,
        other->bytes, post->num_pieces, post->bytes);
  burst_error *error = mismatched_lane(post, other);
  if (error)
    return error;
  for (int64_t i = 0; i < post->num_pieces; ++i) {
    const burst_piece *mine = &post->pieces[i], *theirs = &other->pieces[i];
    if (mine->element_bytes != theirs->element_bytes ||
        memcmp(mine->sizes, theirs->sizes, sizeof(mine->sizes)) != 0)
      return mismatched_piece(post, other, i);
  }
  return NULL;
}

burst_piece burst_piece_packed(const burst_piece *piece, void *memory) {
  burst_piece packed = *piece;
  int64_t stride = 1;
  packed.data = memory;
  for (int d = 3; d >= 0; --d) {
    packed.strides[d] = stride;
    stride *= packed.sizes[d];
  }
  return packed;
}

int64_t burst_piece_bytes(const burst_piece *piece) {
  int64_t bytes = piece->element_bytes, span = piece->element_bytes, step;
  for (int d = 0; d < 4; ++d)
    if (__builtin_mul_overflow(bytes, piece->sizes[d], &bytes) ||
        __builtin_mul_overflow(piece->sizes[d] - 1, piece->strides[d], &step) ||
        __builtin_mul_overflow(step, piece->element_bytes, &step) ||
        __builtin_add_overflow(span, step, &span))
      return -1;
  return bytes;
}
