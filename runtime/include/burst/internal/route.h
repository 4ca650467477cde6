/*===- route.h - Who sends to whom ---------------------------------*- C -*-===*
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What simulated ranks and those of the runtime do alike.
 *===----------------------------------------------------------------------===*/

#ifndef BURST_INTERNAL_ROUTE_H
#define BURST_INTERNAL_ROUTE_H

#include <stdint.h>

/* Of an all-gather: whom a rank sends its shard to, and whose it receives, at a
   distance from 0 on, at which it has its own. */
static inline int64_t burst_rank_ahead(int64_t rank, int64_t distance,
                                       int64_t num_ranks) {
  return (rank + distance) % num_ranks;
}
static inline int64_t burst_rank_behind(int64_t rank, int64_t distance,
                                        int64_t num_ranks) {
  return (rank + num_ranks - distance) % num_ranks;
}

/* Heads that follow one another. */
typedef struct burst_heads {
  int64_t first, count;
} burst_heads;

/* Of an all-to-all of `all` heads: those of the rank at a place, which has room
   for `most`. Heads and ranks are in as many groups, one behind the other, and
   ranks that are left have none. Those of a group share its only head; of
   several ones the last ranks have fewer than the others, or none. */
static inline burst_heads burst_heads_of(int64_t place, int64_t num_ranks,
                                         int64_t all, int64_t most,
                                         int64_t groups) {
  int64_t ranks = num_ranks / groups, heads = all / groups; /* of a group */
  int64_t group = place / ranks, member = place % ranks;
  burst_heads own = {all, 0};
  if (group >= groups)
    return own;
  int64_t begin = heads == 1 ? 0 : member * most;
  begin = begin < heads ? begin : heads;
  own.first = group * heads + begin;
  own.count = heads - begin < most ? heads - begin : most;
  return own;
}

#endif /* BURST_INTERNAL_ROUTE_H */
