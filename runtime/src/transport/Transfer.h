//===- Transfer.h - Messages between memory of GPUs -------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_TRANSPORT_TRANSFER_H
#define BURST_RUNTIME_TRANSPORT_TRANSFER_H

#include "runtime/src/base/View.h"
#include "runtime/src/cuda/Event.h"
#include "runtime/src/transport/Transport.h"

// Whether the run of a post is on the GPU that a transport of this name is for.
burst_error *burst_cuda_check_lane(const burst_post *post, const char *name,
                                   const burst_gpu *gpu);

// Asks for the copy of a message of which both sides are there, behind the
// moments when they are ready, on the receiver's stream for copies. Sets when
// it is done. On failure some of it may have been asked for.
burst_error *burst_cuda_transfer(burst_post *receive, burst_post *send);

// Asks for the copy of memory that the GPU can reach, the context of which is
// current.
burst_error *burst_cuda_copy(const burst_gpu *gpu, CUstream stream,
                             const burst_view *to, const burst_view *from);

#endif // BURST_RUNTIME_TRANSPORT_TRANSFER_H
