//===- error.h - Making errors ----------------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_INTERNAL_ERROR_H
#define BURST_INTERNAL_ERROR_H

#include "burst/burst.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes an error with the text of `format`, behind "location: " unless the
// location is empty. Never fails: without memory it is a fixed error that says
// so.
__attribute__((format(printf, 3, 4), returns_nonnull)) burst_error *
burst_error_create(burst_code code, const char *location, const char *format,
                   ...);

// For `bytes` bytes of the library's own memory.
burst_error *burst_error_no_memory(size_t bytes);

#ifdef __cplusplus
}
#endif

#endif // BURST_INTERNAL_ERROR_H
