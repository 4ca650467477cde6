//===- Token.h - What the ranks of a job know each other by -----*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks of one job share a secret. What travels is an HMAC of it over the
// address and the number of ranks, so that another job of the same user is a
// stranger too. It keeps out processes that call by mistake or by chance, not
// those who read the network: they can repeat what they have read.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_WORLD_TOKEN_H
#define BURST_RUNTIME_WORLD_TOKEN_H

#include "runtime/src/base/Sha256.h"
#include "runtime/src/world/Launcher.h"
#include "runtime/src/world/Socket.h"

#ifdef __cplusplus
extern "C" {
#endif

// Who calls shows the one, who answers the other: neither can be answered with
// what it has shown itself.
typedef struct burst_token {
  unsigned char hello[BURST_SHA256_BYTES], answer[BURST_SHA256_BYTES];
} burst_token;

// The secret is in BURST_TOKEN, else in the file `burst/token` of the user's
// cache, which rank 0 makes where it is missing. With neither, the secret is
// empty, and `address`, that of rank 0, must be one of this machine alone.
burst_error *burst_token_find(const burst_place *place,
                              const burst_address *address, burst_token *token);

// Takes equally long whatever differs.
bool burst_token_equal(const unsigned char *a, const unsigned char *b);

#ifdef __cplusplus
}
#endif

#endif // BURST_RUNTIME_WORLD_TOKEN_H
