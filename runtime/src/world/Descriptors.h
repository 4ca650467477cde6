//===- Descriptors.h - Whether a world can open what it needs ---*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_WORLD_DESCRIPTORS_H
#define BURST_RUNTIME_WORLD_DESCRIPTORS_H

#include "burst/burst.h"

#include <stdbool.h>

// A connection of a world and one of a transport to each other rank, and these:
// listeners, eventfds, and callers that have not yet said who they are.
enum { BURST_MORE_DESCRIPTORS = 16 };

// Raises the soft limit of this process to its hard one.
void burst_descriptors_raise(void);
// Whether `count` more can be opened now.
bool burst_descriptors_suffice(int64_t count);

typedef struct burst_descriptors_text {
  char text[256];
} burst_descriptors_text;

// "rank 1 has too many open files (limit 64, needed about ...".
burst_descriptors_text burst_descriptors_explain(int64_t rank,
                                                 int64_t num_ranks);

// That something could not be opened for a rank, by errno.
burst_error *burst_descriptors_error(const char *what, int64_t rank,
                                     int64_t num_ranks);

#endif // BURST_RUNTIME_WORLD_DESCRIPTORS_H
