//===- Sha256.h - SHA-256 and HMAC ------------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FIPS 180-4 and RFC 2104. Not hardened against who measures power or caches.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_BASE_SHA256_H
#define BURST_RUNTIME_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BURST_SHA256_BYTES = 32, BURST_SHA256_BLOCK = 64 };

typedef struct burst_sha256 {
  uint32_t state[8];
  uint64_t bytes; // that were added
  unsigned char block[BURST_SHA256_BLOCK];
} burst_sha256;

void burst_sha256_begin(burst_sha256 *hash);
void burst_sha256_add(burst_sha256 *hash, const void *data, size_t bytes);
void burst_sha256_end(burst_sha256 *hash, unsigned char *digest);

// The HMAC-SHA256 of a message.
void burst_hmac_sha256(const void *key, size_t key_bytes, const void *message,
                       size_t bytes, unsigned char *digest);

#ifdef __cplusplus
}
#endif

#endif // BURST_RUNTIME_BASE_SHA256_H
