//===- Meet.h - How the processes of a world connect ------------*- C -*-===//
//
// Rank 0 listens where all know of. Every other rank listens somewhere, tells
// rank 0 where, and gets the addresses of all. Then every rank connects to the
// ranks below its own. Who connects says hello, and the other side answers.
//
// What a listener hears may be anything. What is no hello of this world is
// dropped; a hello that shows that the job was started wrongly ends it on all
// ranks that have come.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_WORLD_MEET_H
#define BURST_RUNTIME_WORLD_MEET_H

#include "Launcher.h"
#include "Socket.h"

enum {
  BURST_WIRE_MAGIC = 0x54535242, // "BRST" where the lowest byte is the first
  BURST_WIRE_VERSION = 1
};

// In front of everything that is sent.
typedef struct burst_header {
  uint32_t magic;
  uint16_t version;
  uint16_t kind;
  uint64_t bytes; // that follow
} burst_header;

static inline burst_header burst_header_of(uint16_t kind, size_t bytes) {
  return (burst_header){BURST_WIRE_MAGIC, BURST_WIRE_VERSION, kind, bytes};
}

typedef struct burst_meeting {
  burst_place place;
  uint64_t world;           // rank 0's number for this job
  int listener;             // open from the first meeting on
  burst_address *addresses; // of the listeners of all ranks
  int64_t generation;       // how many meetings there were before
} burst_meeting;

// The first meeting: finds the others and connects to all. `fds` has an element
// per rank; that of this rank stays -1. On failure all are -1.
burst_error *burst_meeting_begin(const burst_place *place, int64_t deadline,
                                 burst_meeting *meeting, int *fds);
// Connects to all once more.
burst_error *burst_meeting_repeat(burst_meeting *meeting, int64_t deadline,
                                  int *fds);
void burst_meeting_end(burst_meeting *meeting);

#endif // BURST_RUNTIME_WORLD_MEET_H
