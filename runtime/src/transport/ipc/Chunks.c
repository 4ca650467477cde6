//===- Chunks.c - What streams do with mailboxes --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/cuda/GpuImpl.h"
#include "runtime/src/transport/Transfer.h"
#include "runtime/src/transport/ipc/Ipc.h"

// Where a chunk of rank `sender` waits in the mailboxes at `mailbox`.
static CUdeviceptr slot_of(const burst_ipc *ipc, CUdeviceptr mailbox,
                           uint32_t number) {
  return mailbox + (CUdeviceptr)(number % BURST_IPC_SLOTS) *
                       (CUdeviceptr)ipc->chunk_bytes;
}

CUdeviceptr burst_ipc_mailbox_of(const burst_ipc *ipc, CUdeviceptr mailboxes,
                                 int64_t sender) {
  return mailboxes + (CUdeviceptr)(sender * BURST_IPC_SLOTS * ipc->chunk_bytes);
}

static burst_error *wait_for(const burst_ipc *ipc, CUstream stream,
                             const _Atomic uint32_t *word, uint32_t value) {
  return burst_ipc_check_call(ipc, "cuStreamWaitValue32",
                              ipc->gpu->driver->cuStreamWaitValue32_v2(
                                  stream,
                                  burst_flags_address(&ipc->flags, word), value,
                                  CU_STREAM_WAIT_VALUE_GEQ));
}

// Behind all that the stream did before, as all GPUs see it.
static burst_error *announce(const burst_ipc *ipc, CUstream stream,
                             const _Atomic uint32_t *word, uint32_t value) {
  return burst_ipc_check_call(ipc, "cuStreamWriteValue32",
                              ipc->gpu->driver->cuStreamWriteValue32_v2(
                                  stream,
                                  burst_flags_address(&ipc->flags, word), value,
                                  CU_STREAM_WRITE_VALUE_DEFAULT));
}

static burst_error *send_chunk(const burst_ipc *ipc, int64_t to,
                               const burst_piece *chunk) {
  burst_ipc_peer *peer = &ipc->peers[to];
  burst_flag_pair *words =
      burst_flags_pair(&ipc->flags, ipc->transport.rank, to);
  uint32_t number = atomic_fetch_add(&peer->sent, 1) + 1;
  burst_piece slot =
      burst_piece_packed(chunk, (void *)slot_of(ipc, peer->mailbox, number));
  burst_view target = burst_view_of_piece(&slot),
             source = burst_view_of_piece(chunk);
  burst_error *error =
      wait_for(ipc, ipc->sends, &words->taken, number - BURST_IPC_SLOTS);
  if (!error)
    error = burst_cuda_copy(ipc->gpu, ipc->sends, &target, &source);
  return error ? error : announce(ipc, ipc->sends, &words->arrived, number);
}

static burst_error *receive_chunk(const burst_ipc *ipc, int64_t from,
                                  const burst_piece *chunk) {
  burst_flag_pair *words =
      burst_flags_pair(&ipc->flags, from, ipc->transport.rank);
  uint32_t number = atomic_fetch_add(&ipc->peers[from].received, 1) + 1;
  burst_piece slot = burst_piece_packed(
      chunk, (void *)slot_of(
                 ipc, burst_ipc_mailbox_of(ipc, ipc->mailboxes, from), number));
  burst_view target = burst_view_of_piece(chunk),
             source = burst_view_of_piece(&slot);
  burst_error *error = wait_for(ipc, ipc->receives, &words->arrived, number);
  if (!error)
    error = burst_cuda_copy(ipc->gpu, ipc->receives, &target, &source);
  return error ? error : announce(ipc, ipc->receives, &words->taken, number);
}

// Cuts a piece until its parts fit into a slot, along its outer dimensions.
static burst_error *pass_piece(const burst_ipc *ipc, const burst_post *post,
                               const burst_piece *piece) {
  int64_t bytes = burst_piece_bytes(piece);
  if (bytes <= ipc->chunk_bytes)
    return post->receives ? receive_chunk(ipc, post->peer, piece)
                          : send_chunk(ipc, post->peer, piece);
  int d = 0;
  while (piece->sizes[d] == 1)
    ++d;
  int64_t size = piece->sizes[d], step = ipc->chunk_bytes / (bytes / size);
  step += step == 0;
  burst_error *error = NULL;
  for (int64_t i = 0; i < size && !error; i += step) {
    burst_piece part = *piece;
    part.sizes[d] = size - i < step ? size - i : step;
    part.data =
        (char *)piece->data + i * piece->strides[d] * piece->element_bytes;
    error = pass_piece(ipc, post, &part);
  }
  return error;
}

static burst_error *pass_all(const burst_ipc *ipc, const burst_post *post,
                             CUstream stream) {
  CUcontext before;
  burst_error *error = burst_gpu_wait(ipc->gpu, stream, post->ready->event);
  if (!error)
    error = burst_gpu_enter(ipc->gpu, &before);
  if (error)
    return error;
  for (int64_t i = 0; i < post->num_pieces && !error; ++i)
    error = pass_piece(ipc, post, &post->pieces[i]);
  burst_gpu_leave(ipc->gpu, before);
  return error;
}

burst_error *burst_ipc_pass(const burst_ipc *ipc, burst_post *post) {
  burst_cuda_event *done;
  CUstream stream = post->receives ? ipc->receives : ipc->sends;
  burst_error *error = burst_cuda_event_create(ipc->gpu, false, &done);
  if (error)
    return error;
  error = pass_all(ipc, post, stream);
  // Also of what was asked for until something failed.
  burst_error *unknown = burst_cuda_event_mark(ipc->gpu, stream, done);
  post->state = done;
  if (!error)
    return unknown;
  burst_error_destroy(unknown);
  return error;
}
