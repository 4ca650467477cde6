//===- Meet.h - How the processes of a world connect ------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rank 0 listens where all know of. Every other rank connects to it, and says
// where it listens itself. When all have come rank 0 tells all where the others
// are, and every rank connects to those below its own. Who connects says hello,
// and the thread of the other rank answers at once: a rank that does not is
// dead or cannot be reached. From its first connection on a rank is heard and
// hears, so that all learn why ranks do not meet.
//
// Without the world's mutex, unless it says so.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_WORLD_MEET_H
#define BURST_RUNTIME_WORLD_MEET_H

#include "runtime/src/world/Members.h"

// Makes all ranks members. Where it fails, the world fails with the same
// sentence, as far as others are connected.
burst_error *burst_meet(burst_world *world);
// Connects this rank to all others for its transport. `fds` has an element per
// rank; that of this one stays -1.
burst_error *burst_meet_for_data(burst_world *world, int *fds);
// Of a world that failed while ranks met: lets those come that have not, to be
// told, for some seconds.
void burst_meet_latecomers(burst_world *world);

// What rank 0 has said of the others; false where it makes no sense. With the
// mutex held.
bool burst_meet_take_roster(burst_world *world, const char *payload);

#endif // BURST_RUNTIME_WORLD_MEET_H
