//===- Probe.h - Whether a rank lives ---------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A connection that ends tells the same where the process at its other end has
// died and where only the connection broke. So the rank that sees it calls the
// other one at its listener: who answers lives, and knows by the call that the
// connection broke.
//
// Runs with the mutex of the world held, and but for the beginning on its
// thread.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_WORLD_PROBE_H
#define BURST_RUNTIME_WORLD_PROBE_H

#include "burst/burst.h"
#include "runtime/src/world/Wire.h"

#include <stdbool.h>

typedef struct burst_probe {
  int fd;    // -1: none
  bool said; // connected, and the question is asked
  int64_t until;
  size_t got;
  char bytes[sizeof(burst_answer)];
} burst_probe;

struct pollfd;
// The connection to a rank has ended. The world fails at once, or later.
void burst_probe_begin(burst_world *world, int64_t rank);
struct pollfd burst_probe_poll(const burst_probe *probe);
// Something may have come, or it is late.
void burst_probe_serve(burst_world *world, int64_t rank, bool ready);

#endif // BURST_RUNTIME_WORLD_PROBE_H
