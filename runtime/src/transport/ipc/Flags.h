//===- Flags.h - Words that GPUs of one machine share -----------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of the host that the ranks of one machine share and that every GPU
// among them knows. A stream writes a word when it has done something for
// another rank, and a stream of that rank waits for it: nothing of that passes
// through a thread. The host reads and writes the words too, so that a rank can
// let go what waits in vain.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_TRANSPORT_IPC_FLAGS_H
#define BURST_RUNTIME_TRANSPORT_IPC_FLAGS_H

#include "runtime/src/cuda/Gpu.h"

#include <stdatomic.h>

// Where one rank sends to another one. Both words count the chunks of all their
// messages, from 1, and go round after 2^32.
typedef struct burst_flag_pair {
  _Alignas(64) _Atomic uint32_t arrived; // written by the stream that sends
  _Alignas(64) _Atomic uint32_t taken;   // by the one that receives
} burst_flag_pair;

// The bytes of a sentence that says why a rank stopped.
enum { BURST_FLAG_REASON = 244 };

// The name by which another process finds the memory.
typedef struct burst_flag_name {
  char text[40];
} burst_flag_name;

typedef struct burst_flags {
  char *memory; // null: none
  size_t bytes;
  int64_t num_ranks;
  burst_gpu *gpu; // that knows it; or null
  CUdeviceptr mapped;
} burst_flags;

// A name that nothing has.
burst_error *burst_flags_name(burst_flag_name *name);
// Makes the memory, for one rank to do.
burst_error *burst_flags_create(burst_flags *flags, int64_t num_ranks,
                                const burst_flag_name *name);
// Opens what another rank has made.
burst_error *burst_flags_open(burst_flags *flags, int64_t num_ranks,
                              const burst_flag_name *name);
// Nobody opens it any more. For every rank to do that has the name: the one
// that made the memory may be gone.
void burst_flags_unlink(const burst_flag_name *name);
// Tells the GPU of it.
burst_error *burst_flags_register(burst_flags *flags, burst_gpu *gpu);
// When no stream of the GPU touches it.
void burst_flags_close(burst_flags *flags);

burst_flag_pair *burst_flags_pair(const burst_flags *flags, int64_t from,
                                  int64_t to);
// What the GPU calls a word.
CUdeviceptr burst_flags_address(const burst_flags *flags,
                                const _Atomic uint32_t *word);

// A rank says that what its streams do from now on cannot be trusted, because
// of what the sentence says. Only the first one is kept.
void burst_flags_stop(const burst_flags *flags, int64_t rank,
                      const char *sentence);
// That sentence; or null.
const char *burst_flags_stopped(const burst_flags *flags, int64_t rank);
// A rank touches memory of the others no more.
void burst_flags_end(const burst_flags *flags, int64_t rank);
bool burst_flags_ended(const burst_flags *flags, int64_t rank);

#endif // BURST_RUNTIME_TRANSPORT_IPC_FLAGS_H
