//===- World.h - Ranks that are processes -----------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs and transports want of a world: to say what this rank does, to hear
// who failed, and to connect once more.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_WORLD_WORLD_H
#define BURST_RUNTIME_WORLD_WORLD_H

#include "burst/internal/handle.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum burst_activity {
  BURST_IDLE,    // in no run
  BURST_RUNNING, // computing, after `hop` transfers were started
  BURST_WAITING  // for a transfer with `peer` of hop `hop`
} burst_activity;

// Says what this rank does now; others hear it with the next heartbeat.
void burst_world_note(burst_world *world, burst_activity activity, int64_t hop,
                      int64_t peer);

// Before the transfers of a run: compares what the ranks are about to run,
// where it is not what they ran before. At most for `seconds`.
burst_error *burst_world_begin_run(burst_world *world, uint64_t plan,
                                   double seconds);
void burst_world_end_run(burst_world *world);

// Makes the world fail on all ranks, unless it has. The sentence says what
// happened to rank `culprit`. Returns when the others were told, as far as they
// hear it.
void burst_world_fail(burst_world *world, int64_t culprit, burst_code code,
                      const char *sentence);
// Makes the world fail for the error of this rank, if there is one. The error
// that the world has failed with, or null.
burst_error *burst_world_share(burst_world *world, burst_error *error);
// That this rank stopped, for `reason`.
void burst_world_stop(burst_world *world, const char *reason);
// Null while the world has not failed; else the sentence, which lives as long
// as the world.
const char *burst_world_failure(burst_world *world, burst_code *code);

// The connection for data with rank `peer` has ended. The world fails soon, as
// it asks whether that one lives; unless it has left the world, then false.
bool burst_world_question(burst_world *world, int64_t peer);

// Who or what keeps rank `peer`, as far as its last heartbeats tell: follows
// those who wait to one who does not. Writes "", or "; rank 3 computes, ...".
void burst_world_explain(burst_world *world, int64_t peer, char *text,
                         size_t bytes);

// The one transport of a world. `failed` is called on another thread when the
// world fails, or has; not after the transport was detached.
burst_error *burst_world_attach(burst_world *world,
                                void (*failed)(void *context), void *context);
void burst_world_detach(burst_world *world);

// Connects this rank to all others once more, for its transport; collective.
// `fds` has an element per rank; that of this one is -1.
burst_error *burst_world_connect(burst_world *world, int *fds);

#ifdef __cplusplus
}
#endif

#endif // BURST_RUNTIME_WORLD_WORLD_H
