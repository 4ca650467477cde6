//===- Connect.c - How ranks open the memory of each other ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "runtime/src/cuda/GpuImpl.h"
#include "runtime/src/transport/ipc/Ipc.h"
#include "runtime/src/world/World.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define INVALID(...) burst_error_create(BURST_INVALID_ARGUMENT, "", __VA_ARGS__)

// What a rank tells the others of itself.
typedef struct card {
  char host[64];
  int64_t process, number; // of this program, and another one each time
  int64_t ordinal, buffer_bytes;
  CUdeviceptr mailboxes;
  CUipcMemHandle handle;
  burst_flag_name flags; // rank 0's
} card;

// The one to report of two errors, or null. That a rank is gone explains what
// others fail at.
static burst_error *cause_of(burst_error *mine, burst_error *theirs) {
  bool is_theirs =
      !mine || (theirs && burst_error_code(theirs) == BURST_PEER_STOPPED);
  burst_error_destroy(is_theirs ? mine : theirs);
  return is_theirs ? theirs : mine;
}

// Whether all ranks have got here without an error: else, with that of the
// first one that has not.
static burst_error *agree(const burst_ipc *ipc, double seconds,
                          burst_error *mine) {
  typedef struct problem {
    int64_t code; // 0: none
    char text[504];
  } problem;
  size_t count = (size_t)ipc->transport.num_ranks;
  problem own = {.code = mine ? burst_error_code(mine) : 0};
  if (mine)
    snprintf(own.text, sizeof(own.text), "%s", burst_error_message(mine));
  problem *all = calloc(count, sizeof(*all));
  burst_error *error = all ? burst_world_gather(ipc->transport.world, &own,
                                                sizeof(own), all, seconds)
                           : burst_error_no_memory(count * sizeof(*all));
  for (size_t i = 0; i < count && !error && !mine; ++i)
    if (all[i].code)
      error = burst_error_create((burst_code)all[i].code, "", "rank %zu: %s", i,
                                 all[i].text);
  free(all);
  return cause_of(mine, error);
}

// With what can be done about it.
static burst_error *explain(burst_error *error) {
  if (!error)
    return NULL;
  burst_error *explained = burst_error_create(
      burst_error_code(error), "",
      "ipc transport: %s: burst_transport_create_nccl needs less of GPUs",
      burst_error_message(error));
  burst_error_destroy(error);
  return explained;
}

static burst_error *check_driver(const burst_ipc *ipc) {
  int values = 0;
  burst_error *error = burst_ipc_check_call(
      ipc, "cuDeviceGetAttribute",
      ipc->gpu->driver->cuDeviceGetAttribute(
          &values, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
          ipc->gpu->device));
  if (error || values)
    return error;
  return burst_error_create(BURST_SYSTEM, "",
                            "GPU %d: its streams cannot wait for values",
                            ipc->gpu->properties.ordinal);
}

// Memory of its own, because a handle is of all that lies together.
static burst_error *make_mailboxes(burst_ipc *ipc, card *card) {
  const size_t granule = (size_t)2 << 20;
  size_t bytes =
      (size_t)(ipc->transport.num_ranks * BURST_IPC_SLOTS * ipc->chunk_bytes);
  bytes = (bytes + granule - 1) / granule * granule;
  CUcontext before;
  burst_error *error =
      burst_gpu_allocate_shared(ipc->gpu, bytes, &ipc->mailboxes);
  if (!error)
    error = burst_gpu_enter(ipc->gpu, &before);
  if (error)
    return error;
  card->mailboxes = ipc->mailboxes;
  error = burst_ipc_check_call(
      ipc, "cuIpcGetMemHandle",
      ipc->gpu->driver->cuIpcGetMemHandle(&card->handle, ipc->mailboxes));
  burst_gpu_leave(ipc->gpu, before);
  return error;
}

// What this rank can do alone.
static burst_error *prepare(burst_ipc *ipc, card *card) {
  static _Atomic int64_t number;
  card->process = getpid();
  card->ordinal = ipc->gpu->properties.ordinal;
  card->buffer_bytes = BURST_IPC_SLOTS * ipc->chunk_bytes;
  gethostname(card->host, sizeof(card->host) - 1);
  // Two containers may give processes the same number.
  int64_t expected = 0, drawn = 0;
  if (getrandom(&drawn, sizeof(drawn), 0) == sizeof(drawn))
    atomic_compare_exchange_strong(&number, &expected, drawn);
  card->number = atomic_load(&number);
  burst_error *error = check_driver(ipc);
  if (!error && ipc->transport.rank == 0)
    error = burst_flags_name(&card->flags);
  if (!error)
    error = burst_gpu_stream_create(ipc->gpu, &ipc->sends);
  if (!error)
    error = burst_gpu_stream_create(ipc->gpu, &ipc->receives);
  if (!error)
    error = make_mailboxes(ipc, card);
  return error;
}

// Of another thread of this process.
static burst_error *reach_gpu(const burst_ipc *ipc, int ordinal) {
  const burst_driver *driver = ipc->gpu->driver;
  CUdevice device;
  CUcontext context, before;
  int can = 0;
  const char *call = "cuDeviceGet";
  CUresult result = driver->cuDeviceGet(&device, ordinal);
  if (result != CUDA_SUCCESS || device == ipc->gpu->device)
    return burst_ipc_check_call(ipc, call, result);
  call = "cuDeviceCanAccessPeer";
  result = driver->cuDeviceCanAccessPeer(&can, ipc->gpu->device, device);
  if (result == CUDA_SUCCESS && !can)
    return burst_error_create(BURST_SYSTEM, "",
                              "GPU %d cannot reach the memory of GPU %d",
                              ipc->gpu->properties.ordinal, ordinal);
  if (result == CUDA_SUCCESS) {
    call = "cuDevicePrimaryCtxRetain";
    result = driver->cuDevicePrimaryCtxRetain(&context, device);
  }
  if (result != CUDA_SUCCESS)
    return burst_ipc_check_call(ipc, call, result);
  burst_error *error = burst_gpu_enter(ipc->gpu, &before);
  if (!error) {
    call = "cuCtxEnablePeerAccess";
    result = driver->cuCtxEnablePeerAccess(context, 0);
    if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
      result = CUDA_SUCCESS;
    burst_gpu_leave(ipc->gpu, before);
    error = burst_ipc_check_call(ipc, call, result);
  }
  driver->cuDevicePrimaryCtxRelease_v2(device);
  return error;
}

static burst_error *open_peer(burst_ipc *ipc, int64_t rank, const card *theirs,
                              const card *mine) {
  burst_ipc_peer *peer = &ipc->peers[rank];
  CUdeviceptr mailboxes = theirs->mailboxes;
  burst_error *error = NULL;
  CUcontext before;
  if (theirs->process == mine->process && theirs->number == mine->number) {
    error = reach_gpu(ipc, (int)theirs->ordinal);
  } else {
    error = burst_gpu_enter(ipc->gpu, &before);
    if (error)
      return error;
    CUresult result = ipc->gpu->driver->cuIpcOpenMemHandle_v2(
        &mailboxes, theirs->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    burst_gpu_leave(ipc->gpu, before);
    error = burst_ipc_check_call(ipc, "cuIpcOpenMemHandle", result);
    if (!error)
      peer->opened = mailboxes;
  }
  peer->mailbox = burst_ipc_mailbox_of(ipc, mailboxes, ipc->transport.rank);
  if (!error)
    return NULL;
  burst_error *named = burst_error_create(
      burst_error_code(error), "",
      "cannot reach memory of rank %" PRId64 " on its GPU %" PRId64 ": %s",
      rank, theirs->ordinal, burst_error_message(error));
  burst_error_destroy(error);
  return named;
}

static burst_error *open_flags(burst_ipc *ipc, const card *first,
                               const card *mine) {
  burst_error *error =
      ipc->flags.memory
          ? NULL
          : burst_flags_open(&ipc->flags, ipc->transport.num_ranks,
                             &first->flags);
  if (!error)
    return burst_flags_register(&ipc->flags, ipc->gpu);
  burst_error *named =
      burst_error_create(burst_error_code(error), "",
                         "what rank 0 shares on %s is not found on %s (%s)",
                         first->host, mine->host, burst_error_message(error));
  burst_error_destroy(error);
  return named;
}

static burst_error *open_all(burst_ipc *ipc, const card *cards) {
  const card *mine = &cards[ipc->transport.rank];
  for (int64_t i = 0; i < ipc->transport.num_ranks; ++i)
    if (cards[i].buffer_bytes != mine->buffer_bytes)
      return INVALID("ipc transport: rank %" PRId64 " has buffer_bytes %" PRId64
                     ", wanted %" PRId64 " as here",
                     i, cards[i].buffer_bytes, mine->buffer_bytes);
  burst_error *error = open_flags(ipc, &cards[0], mine);
  for (int64_t i = 0; i < ipc->transport.num_ranks && !error; ++i)
    error = open_peer(ipc, i, &cards[i], mine);
  return explain(error);
}

// Opens what the others have made, when all are there: what has a name is there
// for no longer than that takes, and from when all know the name.
static burst_error *open_ranks(burst_ipc *ipc, const card *cards,
                               double seconds) {
  burst_world *world = ipc->transport.world;
  bool attached = false;
  burst_error *error =
      ipc->transport.rank == 0
          ? explain(burst_flags_create(&ipc->flags, ipc->transport.num_ranks,
                                       &cards[0].flags))
          : NULL;
  error = agree(ipc, seconds, error);
  if (error)
    return error;
  error = open_all(ipc, cards);
  if (!error) {
    error = burst_world_attach(world, burst_ipc_fail, ipc);
    attached = !error;
  }
  error = agree(ipc, seconds, error);
  if (!error)
    return NULL;
  if (attached)
    burst_world_detach(world);
  // Before anyone frees what others have opened.
  burst_ipc_close_peers(ipc);
  burst_error_destroy(burst_world_barrier(world, seconds));
  return error;
}

burst_error *burst_ipc_connect(burst_ipc *ipc, double seconds) {
  burst_world *world = ipc->transport.world;
  size_t count = (size_t)ipc->transport.num_ranks;
  card mine = {.process = 0};
  card *cards = calloc(count, sizeof(*cards));
  if (!cards) {
    burst_error *error = burst_error_no_memory(count * sizeof(*cards));
    burst_world_stop(world, burst_error_message(error));
    return error;
  }
  burst_error *error = explain(prepare(ipc, &mine));
  burst_error *apart =
      burst_world_gather(world, &mine, sizeof(mine), cards, seconds);
  if (apart) {
    error = cause_of(error, apart);
  } else {
    // Rank 0 knows by this that all have its card, and makes what it names.
    error = agree(ipc, seconds, error);
    if (!error)
      error = open_ranks(ipc, cards, seconds);
    // Also where it died before it was heard to agree.
    burst_flags_unlink(&cards[0].flags);
  }
  free(cards);
  return error;
}

void burst_ipc_close_peers(const burst_ipc *ipc) {
  CUcontext before;
  burst_error *error = burst_gpu_enter(ipc->gpu, &before);
  for (int64_t i = 0; i < ipc->transport.num_ranks && !error; ++i) {
    if (ipc->peers[i].opened)
      ipc->gpu->driver->cuIpcCloseMemHandle(ipc->peers[i].opened);
    ipc->peers[i].opened = 0;
  }
  if (!error)
    burst_gpu_leave(ipc->gpu, before);
  burst_error_destroy(error);
}
