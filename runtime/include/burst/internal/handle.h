//===- handle.h - Whether a handle is one -----------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every object of the API begins with, and what its functions check first.
// In debug builds a handle that was destroyed, or is of another kind, ends the
// process with a message before it does harm.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_INTERNAL_HANDLE_H
#define BURST_INTERNAL_HANDLE_H

#include "burst/burst.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum burst_kind {
  BURST_KIND_ERROR = 1,
  BURST_KIND_DEVICE,
  BURST_KIND_STREAM,
  BURST_KIND_TRANSPORT,
  BURST_KIND_WORLD,
  BURST_KIND_PROGRAM,
  BURST_KIND_TRACE,
  BURST_KIND_CACHE
} burst_kind;

// The first member of an object.
typedef struct burst_handle {
  uint64_t magic;
} burst_handle;

// Of a live object of `kind`.
#define BURST_MAGIC(kind) (UINT64_C(0x62757273740000) + (kind))

// Says that the object is destroyed. Its memory may stay.
void burst_handle_end(burst_handle *handle);

// Frees the memory of an object that was destroyed; in debug builds when others
// have come after it, so that it is known until then.
void burst_handle_free(void *memory);

// Ends the process with a message unless the object is a live one of `kind`.
void burst_handle_check(const void *object, burst_kind kind,
                        const char *function);

#ifdef NDEBUG
#define BURST_CHECK(object, kind) ((void)(object))
#else
#define BURST_CHECK(object, kind)                                              \
  ((object) ? burst_handle_check(object, kind, __func__) : (void)0)
#endif

// That an argument of a function is null.
burst_error *burst_null_error(const char *function, const char *argument);

// In functions of the API, which may fail: return where an argument is null.
#define BURST_REQUIRE(argument)                                                \
  do {                                                                         \
    if (!(argument))                                                           \
      return burst_null_error(__func__, #argument);                            \
  } while (0)
#define BURST_REQUIRE_HANDLE(argument, kind)                                   \
  do {                                                                         \
    BURST_REQUIRE(argument);                                                   \
    BURST_CHECK(argument, kind);                                               \
  } while (0)

#ifdef __cplusplus
}
#endif

#endif // BURST_INTERNAL_HANDLE_H
