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
   for `most`. Ranks that are more than heads, and that these divide, share
   them, as many each; else the last ranks have fewer than the others, or
   none. */
static inline burst_heads burst_heads_of(int64_t place, int64_t num_ranks,
                                         int64_t all, int64_t most) {
  if (all > 0 && all < num_ranks && num_ranks % all == 0) {
    burst_heads shared = {place * all / num_ranks, most};
    return shared;
  }
  int64_t first = place * most < all ? place * most : all;
  burst_heads own = {first, all - first < most ? all - first : most};
  return own;
}

#endif /* BURST_INTERNAL_ROUTE_H */
