//===- Callers.h - Who connects to a rank -----------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a listener hears may be anything. Who does not show the job's token, or
// belongs to another start of it, is a stranger: ignored, with a line in the
// log. A rank that was started wrongly, such as twice, ends the world while its
// ranks meet; later it is only refused.
//
// Runs on the thread of the world, with its mutex held.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_WORLD_CALLERS_H
#define BURST_RUNTIME_WORLD_CALLERS_H

#include "burst/burst.h"
#include "runtime/src/world/Wire.h"

#include <stdbool.h>

enum { BURST_MOST_CALLERS = 32 };

// Someone who has not yet said hello.
typedef struct burst_caller {
  int fd;
  int64_t since;
  size_t got;
  char bytes[sizeof(burst_hello_message)];
} burst_caller;

typedef struct burst_callers {
  size_t count; // the one that called first is the first
  burst_caller list[BURST_MOST_CALLERS];
  bool crowded;    // no room for another one until one of these has gone
  bool deaf;       // out of descriptors: nobody is accepted any more
  int64_t refused; // ranks that did not become members
  int64_t ignored;
  char last[256]; // who was ignored, and why
} burst_callers;

struct pollfd;
// Lists the listener and the callers. Returns how many.
size_t burst_callers_poll(const burst_world *world, struct pollfd *polled);
// Hears those that can be read.
void burst_callers_serve(burst_world *world, const struct pollfd *polled);
void burst_callers_close(burst_world *world);

#endif // BURST_RUNTIME_WORLD_CALLERS_H
