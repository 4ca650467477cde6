//===- Handle.c - Whether a handle is one ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/handle.h"
#include "burst/internal/error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// Added to the magic number of what is destroyed.
static const uint64_t destroyed = 0x80;

burst_error *burst_null_error(const char *function, const char *argument) {
  return burst_error_create(BURST_INVALID_ARGUMENT, "", "%s: %s: null",
                            function, argument);
}

void burst_handle_end(burst_handle *handle) {
  // Not removed as a store that nobody reads: whoever reads it should not.
  *(volatile uint64_t *)&handle->magic |= destroyed;
}

static const char *name_of(burst_kind kind) {
  static const char *const names[] = {
      [BURST_KIND_ERROR] = "error",   [BURST_KIND_DEVICE] = "device",
      [BURST_KIND_STREAM] = "stream", [BURST_KIND_TRANSPORT] = "transport",
      [BURST_KIND_WORLD] = "world",   [BURST_KIND_PROGRAM] = "program",
      [BURST_KIND_TRACE] = "trace",   [BURST_KIND_CACHE] = "cache"};
  return names[kind];
}

void burst_handle_check(const void *object, burst_kind kind,
                        const char *function) {
  uint64_t magic = ((const burst_handle *)object)->magic;
  if (magic == BURST_MAGIC(kind))
    return;
  const char *name = name_of(kind);
  if (magic == (BURST_MAGIC(kind) | destroyed)) {
    fprintf(stderr, "%s: the %s was destroyed before\n", function, name);
    abort();
  }
  for (int other = BURST_KIND_ERROR; other <= BURST_KIND_CACHE; ++other)
    if ((magic & ~destroyed) == BURST_MAGIC((uint64_t)other)) {
      fprintf(stderr, "%s: found a handle of kind %s, wanted %s\n", function,
              name_of((burst_kind)other), name);
      abort();
    }
  fprintf(stderr, "%s: what was given is no %s\n", function, name);
  abort();
}

#ifdef NDEBUG
void burst_handle_free(void *memory) { free(memory); }
#else
void burst_handle_free(void *memory) {
  enum { KEPT = 256 };
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static void *kept[KEPT];
  static size_t next;
  pthread_mutex_lock(&mutex);
  void *oldest = kept[next];
  kept[next] = memory;
  next = (next + 1) % KEPT;
  pthread_mutex_unlock(&mutex);
  free(oldest);
}
#endif
