//===- Nccl.c - Sending between GPUs --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/cuda/Nccl.h"
#include "runtime/src/cuda/Library.h"

static const char *const names[] = {"libnccl.so.2", "libnccl.so", NULL};
static const char *const functions[] = {BURST_NCCL_FUNCTIONS(BURST_TABLE_NAME)
                                            NULL};
static const char *const newer[] = {BURST_NCCL_NEW_FUNCTIONS(BURST_TABLE_NAME)
                                        NULL};
_Static_assert(sizeof(burst_nccl) + sizeof(NULL) ==
                   sizeof(functions) + sizeof(newer),
               "a path and the functions, and nothing else");

static burst_library library = {.what = "NCCL",
                                .variable = "BURST_NCCL_LIBRARY",
                                .names = names,
                                .wheel = "nvidia/nccl/lib",
                                .functions = functions,
                                .newer = newer,
                                .table_bytes = sizeof(burst_nccl),
                                .mutex = PTHREAD_MUTEX_INITIALIZER};

burst_error *burst_nccl_table(const burst_nccl **nccl) {
  const void *table;
  burst_error *error = burst_library_table(&library, &table);
  *nccl = table;
  return error;
}

void burst_nccl_stand_in(const burst_nccl *nccl) {
  burst_library_stand_in(&library, nccl);
}
