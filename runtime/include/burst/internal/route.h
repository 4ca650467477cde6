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

#endif /* BURST_INTERNAL_ROUTE_H */
