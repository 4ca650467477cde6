//===- config.h - Structs that carry their own size -------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_INTERNAL_CONFIG_H
#define BURST_INTERNAL_CONFIG_H

#include "burst/burst.h"

#ifdef __cplusplus
extern "C" {
#endif

// Copies what `given` covers to `known`, of `known_bytes` bytes, and sets the
// rest to 0. `given` must cover `required` bytes; null covers none but its
// size.
burst_error *burst_config_read(const char *name, void *known,
                               size_t known_bytes, const void *given,
                               size_t required);

// An error unless the size at `given` is between that of its own field and
// `known_bytes`.
burst_error *burst_size_check(const char *name, const void *given,
                              size_t known_bytes, size_t required);

// The end of a field: what a config that has it covers.
#define BURST_COVERS(type, field)                                              \
  (offsetof(type, field) + sizeof(((type *)0)->field))

// An error unless `seconds` or the like is a number that is not negative.
burst_error *burst_number_check(const char *name, double value);

#ifdef __cplusplus
}
#endif

#endif // BURST_INTERNAL_CONFIG_H
