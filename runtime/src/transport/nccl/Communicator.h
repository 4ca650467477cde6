//===- Communicator.h - Ranks that NCCL connects ----------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_TRANSPORT_NCCL_COMMUNICATOR_H
#define BURST_RUNTIME_TRANSPORT_NCCL_COMMUNICATOR_H

#include "runtime/src/cuda/GpuImpl.h"
#include "runtime/src/cuda/Nccl.h"

#include <stdbool.h>

// A communicator of our own that does not block. It is used by one thread at a
// time.
typedef struct burst_communicator {
  const burst_nccl *nccl;
  burst_gpu *gpu;
  ncclComm_t made; // null: none, or aborted
} burst_communicator;

// These begin to make it, collectively: of the unique id of rank 0, or of
// another communicator, which is not changed: of its ranks that give the same
// color, in the order of `rank`.
burst_error *burst_communicator_begin(burst_communicator *communicator,
                                      const ncclUniqueId *id, int64_t num_ranks,
                                      int64_t rank);
burst_error *burst_communicator_split(burst_communicator *communicator,
                                      ncclComm_t parent, int color, int rank);
// Whether all that it was asked for has been put on its stream; an error if
// that, or anything before, has failed.
burst_error *burst_communicator_poll(burst_communicator *communicator,
                                     bool *settled);
// Ends what it has on streams.
void burst_communicator_abort(burst_communicator *communicator);
// Waits for the other ranks to do so too, at most for `seconds`.
void burst_communicator_end(burst_communicator *communicator, double seconds);

// What a call of NCCL has failed with; null for success and for what is in
// progress.
burst_error *burst_communicator_error(const burst_communicator *communicator,
                                      const char *call, ncclResult_t result);

#endif // BURST_RUNTIME_TRANSPORT_NCCL_COMMUNICATOR_H
