//===- Greet.h - Connecting to a rank ---------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_WORLD_GREET_H
#define BURST_RUNTIME_WORLD_GREET_H

#include "runtime/src/world/Members.h"

// Calls a rank, again and again until it is there, for a member or for data;
// without the mutex. An error where the deadline passes, the world fails, or
// who answers is not that rank.
burst_error *burst_greet(burst_world *world, int64_t peer, int64_t purpose,
                         int64_t deadline, int *fd);

// The first call of all, to rank 0: finds the token and says where this rank
// listens, at the address from which it reaches rank 0. On success the world's
// token, number and listener are set, and rank 0 is a member.
burst_error *burst_greet_rank_0(burst_world *world, int64_t deadline);

// Whether descriptors ran out, and one that was kept for that is free now: to
// say that there are no others. Notes it.
bool burst_greet_spares(burst_world *world, int failure);

#endif // BURST_RUNTIME_WORLD_GREET_H
