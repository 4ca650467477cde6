//===- Ipc.h - A transport by copy engines, within a machine ----*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every rank keeps a mailbox for each rank in memory of its GPU, and opens
// those that the others keep for it. What it sends it copies there, in chunks;
// what it receives it copies from there to where it belongs. A mailbox has a
// few slots that are used in turn, and two words (Flags.h) count what arrived
// in it and what was taken out. Streams wait for these words and write them:
//
//   the sender, for chunk n            the receiver, for chunk n
//     wait    taken >= n - SLOTS         wait    arrived >= n
//     copy    piece -> slot              copy    slot -> piece
//     write   arrived = n                write   taken = n
//
// Both cut a message in the same way and count chunks for ever, so that no word
// of an earlier message can be taken for that of a later one. All is asked for
// when a transfer starts, and nothing waits for a thread of another rank.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_TRANSPORT_IPC_IPC_H
#define BURST_RUNTIME_TRANSPORT_IPC_IPC_H

#include "runtime/src/transport/Transport.h"
#include "runtime/src/transport/ipc/Flags.h"

enum { BURST_IPC_SLOTS = 2 };

typedef struct burst_ipc_peer {
  CUdeviceptr mailbox; // what this rank sends goes there
  CUdeviceptr opened;  // memory of another process; or 0
  // Chunks that were asked for. They are read when all is let go.
  _Atomic uint32_t sent, received;
} burst_ipc_peer;

typedef struct burst_ipc {
  burst_transport transport;
  burst_gpu *gpu;
  int64_t chunk_bytes;
  CUdeviceptr mailboxes; // of all ranks that send to this one
  burst_flags flags;
  CUstream sends, receives;
  burst_ipc_peer *peers;
} burst_ipc;

// What a call of the driver has failed with, or null.
burst_error *burst_ipc_check_call(const burst_ipc *ipc, const char *call,
                                  CUresult result);

// Where what rank `sender` sends waits in the mailboxes of a rank.
CUdeviceptr burst_ipc_mailbox_of(const burst_ipc *ipc, CUdeviceptr mailboxes,
                                 int64_t sender);
// Asks for all that a post copies; null is ignored. The state of the post is
// then the event that says that it is done.
burst_error *burst_ipc_pass(const burst_ipc *ipc, burst_post *post);

// Opens memory of all other ranks, collectively, and attaches the transport to
// its world.
burst_error *burst_ipc_connect(burst_ipc *ipc, double seconds);
void burst_ipc_close_peers(const burst_ipc *ipc);
// What the world calls when it has failed.
void burst_ipc_fail(void *ipc);

#endif // BURST_RUNTIME_TRANSPORT_IPC_IPC_H
