//===- Thread.c - Threads with room for kernels ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/base/Thread.h"
#include "burst/internal/error.h"

#include <string.h>

burst_error *burst_thread_create(const char *what, pthread_t *thread,
                                 void *(*run)(void *), void *context) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 8 << 20);
  int failure = pthread_create(thread, &attributes, run, context);
  pthread_attr_destroy(&attributes);
  if (!failure)
    return NULL;
  return burst_error_create(BURST_SYSTEM, "",
                            "cannot create a thread for %s: %s", what,
                            strerror(failure));
}
