//===- Sha256.c - SHA-256 and HMAC ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/base/Sha256.h"

#include <string.h>

// The first 32 bits of the fractional parts of the cube roots of the first 64
// primes.
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t word, int by) {
  return word >> by | word << (32 - by);
}

static uint32_t word_at(const unsigned char *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
         (uint32_t)bytes[2] << 8 | bytes[3];
}

static void put_word(uint32_t word, unsigned char *bytes) {
  for (int i = 0; i < 4; ++i)
    bytes[i] = (unsigned char)(word >> (24 - 8 * i));
}

static void expand(const unsigned char *block, uint32_t *words) {
  for (int i = 0; i < 16; ++i)
    words[i] = word_at(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + words[i - 7] +
               (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
}

static void add_block(burst_sha256 *hash, const unsigned char *block) {
  uint32_t words[64], s[8];
  expand(block, words);
  memcpy(s, hash->state, sizeof(s));
  for (int i = 0; i < 64; ++i) {
    uint32_t a = s[0], e = s[4];
    uint32_t first = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                     ((e & s[5]) ^ (~e & s[6])) + constants[i] + words[i];
    uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                      ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof(*s));
    s[4] += first;
    s[0] = first + second;
  }
  for (int i = 0; i < 8; ++i)
    hash->state[i] += s[i];
}

void burst_sha256_begin(burst_sha256 *hash) {
  *hash =
      (burst_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void burst_sha256_add(burst_sha256 *hash, const void *data, size_t bytes) {
  const unsigned char *next = data;
  while (bytes > 0) {
    size_t filled = hash->bytes % BURST_SHA256_BLOCK;
    size_t taken = BURST_SHA256_BLOCK - filled;
    if (taken > bytes)
      taken = bytes;
    memcpy(hash->block + filled, next, taken);
    hash->bytes += taken;
    next += taken;
    bytes -= taken;
    if (hash->bytes % BURST_SHA256_BLOCK == 0)
      add_block(hash, hash->block);
  }
}

void burst_sha256_end(burst_sha256 *hash, unsigned char *digest) {
  static const unsigned char padding[BURST_SHA256_BLOCK] = {0x80};
  unsigned char length[8];
  put_word((uint32_t)(hash->bytes >> 29), length);
  put_word((uint32_t)(hash->bytes << 3), length + 4);
  size_t filled = hash->bytes % BURST_SHA256_BLOCK;
  burst_sha256_add(hash, padding, (filled < 56 ? 56 : 120) - filled);
  burst_sha256_add(hash, length, sizeof(length));
  for (int i = 0; i < 8; ++i)
    put_word(hash->state[i], digest + 4 * i);
}

void burst_hmac_sha256(const void *key, size_t key_bytes, const void *message,
                       size_t bytes, unsigned char *digest) {
  unsigned char block[BURST_SHA256_BLOCK] = {0};
  burst_sha256 hash;
  if (key_bytes > sizeof(block)) {
    burst_sha256_begin(&hash);
    burst_sha256_add(&hash, key, key_bytes);
    burst_sha256_end(&hash, block);
  } else if (key_bytes > 0) {
    memcpy(block, key, key_bytes);
  }
  for (size_t i = 0; i < sizeof(block); ++i)
    block[i] ^= 0x36;
  burst_sha256_begin(&hash);
  burst_sha256_add(&hash, block, sizeof(block));
  burst_sha256_add(&hash, message, bytes);
  burst_sha256_end(&hash, digest);
  for (size_t i = 0; i < sizeof(block); ++i)
    block[i] ^= 0x36 ^ 0x5c;
  burst_sha256_begin(&hash);
  burst_sha256_add(&hash, block, sizeof(block));
  burst_sha256_add(&hash, digest, BURST_SHA256_BYTES);
  burst_sha256_end(&hash, digest);
}
