//===- Blocks.h - Large blocks of the host's memory -------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs allocate the same sizes in every run. Memory that goes back to the
// system comes back as pages to be cleared, one after the other: a twentieth of
// the time of long sequences, a fifth of that of short ones. So a device keeps
// what a run gives back for the next one.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_DEVICE_BLOCKS_H
#define BURST_RUNTIME_DEVICE_BLOCKS_H

#include <pthread.h>
#include <stddef.h>

enum { BURST_BLOCK_ALIGNMENT = 64 };

// Blocks in use and those kept are together never more than the most that was
// in use at once in the runs that go on, or in those before them.
typedef struct burst_blocks {
  pthread_mutex_t mutex;
  struct burst_kept_block *kept; // what was given back last is first
  size_t runs;                   // that go on
  size_t used, kept_bytes;
  size_t most;   // used at once since one goes on
  size_t before; // the same, until then
} burst_blocks;

void burst_blocks_begin(burst_blocks *blocks);
void burst_blocks_end(burst_blocks *blocks);

// Around a run, which takes and gives.
void burst_blocks_enter(burst_blocks *blocks);
void burst_blocks_leave(burst_blocks *blocks);

// `bytes` aligned to 64 with any content, or null. From 2 MiB on they lie on
// huge pages, where the system has them: packed operands are read all over by
// every task.
void *burst_blocks_take(burst_blocks *blocks, size_t bytes);

// What was taken with so many bytes.
void burst_blocks_give(burst_blocks *blocks, void *given, size_t bytes);

// Frees what is kept.
void burst_blocks_trim(burst_blocks *blocks);

#endif // BURST_RUNTIME_DEVICE_BLOCKS_H
