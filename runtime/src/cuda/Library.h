//===- Library.h - Libraries that may be missing ----------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The libraries of CUDA are opened when they are first needed, so that one
// binary runs with and without them. Their functions lie in tables.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_CUDA_LIBRARY_H
#define BURST_RUNTIME_CUDA_LIBRARY_H

#include "burst/burst.h"

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct burst_library {
  const char *what;             // "NVRTC"
  const char *variable;         // of the environment: the path of the library
  const char *const *names;     // best first, ended by null
  const char *wheel;            // where a package of PyPI has it
  const char *const *functions; // ended by null
  const char *const *newer;     // behind them in the table, ended by null, or
                                // null: null where the library lacks them
  void (*opened)(void *table);  // called with a new table, or null
  size_t table_bytes;

  // Under the mutex:
  pthread_mutex_t mutex;
  void *table;          // once it is open
  const void *stand_in; // not null: taken instead
} burst_library;

/* Opens a library unless that was done, and gives its table. Where `variable`
   is set, it names the library and nothing else is tried. Otherwise, in this
   order: each name as the loader finds it, each in lib64 of CUDA_PATH,
   CUDA_HOME and /usr/local/cuda, and each where scripts/setup puts it. An error
   lists what was tried, or names the function that the library lacks. A library
   stays open. */
burst_error *burst_library_table(burst_library *library, const void **table);

/* The file that burst_library_table opened or, as far as that can be told
   without opening it, would open: some libraries take long to open. Null where
   it cannot be told. The caller frees it. */
char *burst_library_locate(burst_library *library);

/* Makes `table` the table of a library, in tests; null ends that. No other
   thread may be using the one before. */
void burst_library_stand_in(burst_library *library, const void *table);

#ifdef __cplusplus
}
#endif

#endif // BURST_RUNTIME_CUDA_LIBRARY_H
