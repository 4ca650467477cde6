//===- hash.h - FNV-1a ------------------------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_INTERNAL_HASH_H
#define BURST_INTERNAL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define BURST_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

// The hash of what `hash` is of, and `size` more bytes.
static inline uint64_t burst_hash(uint64_t hash, const void *bytes,
                                  size_t size) {
  const unsigned char *byte = (const unsigned char *)bytes;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
  return hash;
}

#endif // BURST_INTERNAL_HASH_H
