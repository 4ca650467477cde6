//===- seal.h - Whether a bundle is what was written ------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A shared object that burst has linked ends with a seal over all bytes in
// front of it, code and tables alike. Damage is found before anything is run.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_INTERNAL_SEAL_H
#define BURST_INTERNAL_SEAL_H

#include "burst/internal/hash.h"

#include <string.h>

// Little endian, as all that burst compiles for.
typedef struct burst_seal {
  char magic[16];
  uint64_t bytes;    // in front of it
  uint64_t checksum; // FNV-1a of them
} burst_seal;

static inline burst_seal burst_seal_of(uint64_t bytes, uint64_t checksum) {
  burst_seal seal = {{0}, bytes, checksum};
  memcpy(seal.magic, "burst bundle 1\n", sizeof(seal.magic));
  return seal;
}

#endif // BURST_INTERNAL_SEAL_H
