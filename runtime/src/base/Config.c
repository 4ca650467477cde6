//===- Config.c - Structs that carry their own size -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/config.h"
#include "burst/internal/error.h"

#include <math.h>
#include <string.h>

burst_error *burst_size_check(const char *name, const void *given,
                              size_t known_bytes, size_t required) {
  size_t size;
  memcpy(&size, given, sizeof(size));
  if (size >= required && size <= known_bytes && size % sizeof(size) == 0)
    return NULL;
  return burst_error_create(
      BURST_INVALID_ARGUMENT, "",
      "%s: size %zu, wanted a multiple of %zu from %zu to %zu", name, size,
      sizeof(size), required, known_bytes);
}

burst_error *burst_config_read(const char *name, void *known,
                               size_t known_bytes, const void *given,
                               size_t required) {
  memset(known, 0, known_bytes);
  if (!given)
    return required == sizeof(size_t)
               ? NULL
               : burst_error_create(BURST_INVALID_ARGUMENT, "", "%s: null",
                                    name);
  burst_error *error = burst_size_check(name, given, known_bytes, required);
  if (error)
    return error;
  size_t size;
  memcpy(&size, given, sizeof(size));
  memcpy(known, given, size);
  return NULL;
}

burst_error *burst_number_check(const char *name, double value) {
  if (isfinite(value) && value >= 0)
    return NULL;
  return burst_error_create(BURST_INVALID_ARGUMENT, "",
                            "%s: %g, wanted a number from 0", name, value);
}
