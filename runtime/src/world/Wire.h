//===- Wire.h - What processes of a world say to each other -----*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In front of all messages stands a header. On a new connection, who connects
// says hello and the other side answers; in front of both headers stands a
// token, which is compared before anything else is read.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_WORLD_WIRE_H
#define BURST_RUNTIME_WORLD_WIRE_H

#include "runtime/src/base/Sha256.h"

enum {
  BURST_WIRE_MAGIC = 0x54535242, // "BRST" where the lowest byte is the first
  BURST_WIRE_VERSION = 2
};

typedef struct burst_header {
  uint32_t magic;
  uint16_t version;
  uint16_t kind;
  uint64_t bytes; // that follow
} burst_header;

static inline burst_header burst_header_of(uint16_t kind, size_t bytes) {
  return (burst_header){BURST_WIRE_MAGIC, BURST_WIRE_VERSION, kind, bytes};
}

// Kinds of messages while ranks meet.
enum { BURST_HELLO = 1, BURST_WELCOME = 2, BURST_REFUSED = 3 };

// What a connection is for.
enum {
  BURST_FOR_MEMBER, // what ranks tell each other as long as the world lives
  BURST_FOR_DATA,   // of a transport
  BURST_FOR_PROBE   // whether a rank lives whose connection has ended
};

typedef struct burst_hello {
  uint64_t world; // 0 where rank 0 has not yet said which
  int64_t rank, purpose;
  int64_t generation; // which of the transports
  int64_t port;       // of this rank's listener
} burst_hello;

typedef struct burst_hello_message {
  unsigned char token[BURST_SHA256_BYTES];
  burst_header header;
  burst_hello hello;
} burst_hello_message;

// The reason of a refusal follows, and counts among the bytes of the header.
typedef struct burst_answer {
  unsigned char token[BURST_SHA256_BYTES];
  burst_header header;
  uint64_t world;
} burst_answer;

enum { BURST_MOST_REASON = 1024 };

// Of a listener.
typedef struct burst_wire_address {
  uint16_t family; // 4 or 6
  uint16_t port;
  unsigned char bytes[16];
} burst_wire_address;

#endif // BURST_RUNTIME_WORLD_WIRE_H
