//===- Rank.h - One run of a program on one rank ----------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the functions of burst_table work on. They never return to the program
// where they fail: burst_rank_fail jumps to burst_rank_run, which frees all.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_RUN_RANK_H
#define BURST_RUNTIME_RUN_RANK_H

#include "runtime/src/transport/Transport.h"

#include <setjmp.h>

enum { BURST_MEMORY_KINDS = 4 };

// Memory that a program got; of the host's it lies in front.
typedef struct burst_allocation {
  struct burst_allocation *next;
  void *memory;
  int64_t bytes, kind;
  bool on_gpu;
} burst_allocation;

// A start whose token is not yet waited for.
typedef struct burst_flight {
  struct burst_flight *next;
  int64_t token;
  int64_t channel, hop;
  burst_post **others; // those that the transport knows of
  int64_t num_posts;
  burst_post posts[]; // those of no pieces are none
} burst_flight;

typedef struct burst_channel {
  struct burst_channel *next;
  int64_t number;
  int64_t hops; // started
} burst_channel;

struct burst_rank {
  const burst_image *image;
  int64_t index;
  burst_device *device;
  struct burst_cuda_run *cuda; // what is asked of a GPU; null on a CPU
  burst_transport *transport;
  double deadline_seconds;
  burst_trace *trace;
  bool checked;
  burst_counters counters;
  int64_t live_bytes[BURST_MEMORY_KINDS];
  burst_allocation *allocations;
  burst_flight *flights;
  int64_t tokens; // given out
  burst_channel *channels;
  burst_messages messages; // the last list
  void *listing;           // its memory
  burst_error *error;
  jmp_buf exit;
};

// Runs the program on `values`, as burst_image::run wants them. Afterwards
// nothing touches memory of the program any more.
burst_error *burst_rank_run(burst_rank *rank, void *const *values);

_Noreturn void burst_rank_fail(burst_rank *rank, burst_error *error);

// The same error, as one of this rank.
_Noreturn void burst_rank_fail_at(burst_rank *rank, burst_error *error);

// "rank 2".
burst_location burst_rank_location(const burst_rank *rank);

// Functions of the table, and the end of what they made.
void *burst_rank_allocate(burst_rank *rank, int64_t bytes, int64_t kind);
void burst_rank_release(burst_rank *rank, void *memory);
void *burst_rank_upload(burst_rank *rank, const void *memory, int64_t bytes);
void burst_rank_free_memory(burst_rank *rank);
int64_t burst_rank_start(burst_rank *rank, int64_t channel,
                         const burst_messages *messages);
void burst_rank_wait(burst_rank *rank, int64_t token);
void burst_rank_use(burst_rank *rank, burst_use *use, const void *tensor,
                    int64_t dims, int64_t element_bytes, int64_t mode);
const burst_messages *burst_rank_messages(burst_rank *rank,
                                          const burst_transfer *transfer);
// Writes `rows` rows of the dimension that is sharded, from row `first` on, to
// a piece. False where these have no element.
bool burst_sharded_piece(const burst_sharded *sharded, int64_t first,
                         int64_t rows, burst_piece *piece);
// Writes the pieces that list `rows` of a tensor of an all-to-all, of so many
// heads from `first_head` on; one behind the last. Tensors of the same shape of
// heads and batches list the same for rows of the same counts and blocks.
burst_piece *burst_sharded_part(const burst_sharded *sharded,
                                const burst_segment *rows, int64_t first_head,
                                int64_t heads, burst_piece *pieces);
// The most of them, and of what is written while they are listed.
int64_t burst_sharded_blocks(const burst_sharded *sharded);
int64_t burst_sharded_heads(const burst_sharded *sharded);
// Fails if a token was not waited for.
void burst_rank_check_flights(burst_rank *rank);
void burst_rank_cancel_flights(burst_rank *rank);

// What checked runs look for; each fails if it finds it.
void burst_guard_launch(burst_rank *rank, const char *kernel, int64_t tasks,
                        const int32_t *order, int64_t num_uses,
                        const burst_use *uses);
void burst_guard_start(burst_rank *rank, const burst_flight *started);
void burst_guard_release(burst_rank *rank, const void *memory, int64_t bytes);

#endif // BURST_RUNTIME_RUN_RANK_H
