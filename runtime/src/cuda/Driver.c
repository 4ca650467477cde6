//===- Driver.c - The driver of CUDA --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/cuda/Driver.h"
#include "runtime/src/cuda/Library.h"

static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
static const char *const functions[] = {BURST_DRIVER_FUNCTIONS(BURST_TABLE_NAME)
                                            NULL};
_Static_assert(sizeof(burst_driver) == sizeof(functions),
               "a path and the functions, and nothing else");

static burst_library library = {.what = "the driver of CUDA",
                                .variable = "BURST_CUDA_DRIVER_LIBRARY",
                                .names = names,
                                .functions = functions,
                                .table_bytes = sizeof(burst_driver),
                                .mutex = PTHREAD_MUTEX_INITIALIZER};

burst_error *burst_driver_table(const burst_driver **driver) {
  const void *table;
  burst_error *error = burst_library_table(&library, &table);
  *driver = table;
  return error;
}

void burst_driver_stand_in(const burst_driver *driver) {
  burst_library_stand_in(&library, driver);
}
