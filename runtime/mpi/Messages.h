//===- Messages.h - What is sent over MPI -----------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A message is a header, which says what is sent, and the elements without
// gaps, in memory of its own.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_MPI_MESSAGES_H
#define BURST_RUNTIME_MPI_MESSAGES_H

#include "burst/transport.h"

#include <stdbool.h>

// Those of burst_code in burst/burst.h.
enum {
  INVALID_ARGUMENT = 1,
  OUT_OF_MEMORY = 3,
  DEADLINE_EXCEEDED = 4,
  PEER_STOPPED = 5,
  MISMATCH = 6,
  SYSTEM = 8
};

// Tells a failure, and gives 1.
__attribute__((format(printf, 4, 5))) int
burst_mpi_fail(burst_transport_failure *failure, int code, int64_t peer,
               const char *format, ...);
int burst_mpi_fail_memory(burst_transport_failure *failure, int64_t bytes);

// One message, as one of its ranks sees it.
typedef struct side {
  int peer;
  bool receives;
  char *memory; // of `bytes`: the message
  int64_t bytes;
  int64_t num_pieces;
  burst_piece *pieces;
} side;

// Without memory; false where there is none for the pieces.
bool burst_mpi_make_side(const burst_message *message, side *side);

// Writes the message to the memory.
void burst_mpi_pack(const side *side, uint64_t program);
// Copies what is there to the pieces, if it is what they want.
int burst_mpi_unpack(const side *side, uint64_t program,
                     burst_transport_failure *failure);

#endif // BURST_RUNTIME_MPI_MESSAGES_H
