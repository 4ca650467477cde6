//===- Ipc.c - A transport by copy engines, within a machine --------------===//
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

#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/cuda/GpuImpl.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/transport/Transfer.h"
#include "runtime/src/transport/ipc/Flags.h"
#include "runtime/src/world/World.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { SLOTS = 2, ALIGNMENT = 256 };

static const int64_t default_buffer = INT64_C(32) << 20;
static const double default_timeout = 300, end_timeout = 10, stop_timeout = 5;

typedef struct peer {
  CUdeviceptr mailbox; // what this rank sends goes there
  CUdeviceptr opened;  // memory of another process; or 0
  // Chunks that were asked for. They are read when all is let go.
  _Atomic uint32_t sent, received;
} peer;

typedef struct ipc_transport {
  burst_transport transport;
  burst_gpu *gpu;
  int64_t chunk_bytes;
  CUdeviceptr mailboxes; // of all ranks that send to this one
  burst_flags flags;
  CUstream sends, receives;
  peer *peers;
} ipc_transport;

static ipc_transport *ipc_of(burst_transport *transport) {
  return (ipc_transport *)transport;
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

// Lets go whatever streams of this rank wait for. A rank that has not heard yet
// may write a smaller value behind this, so it is done again until all is gone.
static void let_go(const ipc_transport *ipc) {
  int64_t rank = ipc->transport.rank;
  for (int64_t i = 0; i < ipc->transport.num_ranks; ++i) {
    atomic_store(&burst_flags_pair(&ipc->flags, i, rank)->arrived,
                 atomic_load(&ipc->peers[i].received));
    atomic_store(&burst_flags_pair(&ipc->flags, rank, i)->taken,
                 atomic_load(&ipc->peers[i].sent));
  }
}

// First it is said that what comes from here is nothing, then it comes.
static void stop(const ipc_transport *ipc, const char *reason) {
  burst_flags_stop(&ipc->flags, ipc->transport.rank, reason);
  let_go(ipc);
}

// Why nothing more will come, or null; what waits for it goes on.
static burst_error *failure_of(const ipc_transport *ipc) {
  burst_code code = BURST_PEER_STOPPED;
  const char *sentence = burst_world_failure(ipc->transport.world, &code);
  burst_error *error = NULL;
  if (sentence)
    error = burst_error_create(code, "", "%s", sentence);
  for (int64_t i = 0; i < ipc->transport.num_ranks && !error; ++i) {
    const char *reason = burst_flags_stopped(&ipc->flags, i);
    if (reason)
      error = burst_error_create(BURST_PEER_STOPPED, "", "%s", reason);
  }
  if (error)
    stop(ipc, burst_error_message(error));
  return error;
}

static void fail(void *context) { burst_error_destroy(failure_of(context)); }

static void ipc_stop(burst_transport *transport, const char *reason) {
  const ipc_transport *ipc = ipc_of(transport);
  char sentence[BURST_FLAG_REASON];
  burst_world_stop(transport->world, reason);
  snprintf(sentence, sizeof(sentence), "rank %" PRId64 " stopped: %s",
           transport->rank, reason);
  stop(ipc, sentence);
}

static burst_error *ipc_check(burst_transport *transport) {
  return failure_of(ipc_of(transport));
}

// At the place of a post.
static burst_error *locate(const burst_post *post, burst_error *error) {
  if (!error)
    return NULL;
  burst_error *located = burst_post_failed(post, error);
  burst_error_destroy(error);
  return located;
}

static burst_error *check_call(const ipc_transport *ipc, const char *call,
                               CUresult result) {
  return result == CUDA_SUCCESS
             ? NULL
             : burst_driver_error(ipc->gpu->driver,
                                  ipc->gpu->properties.ordinal, call, result);
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

// Where a chunk of rank `sender` waits in the mailboxes at `mailbox`.
static CUdeviceptr slot_of(const ipc_transport *ipc, CUdeviceptr mailbox,
                           uint32_t number) {
  return mailbox +
         (CUdeviceptr)(number % SLOTS) * (CUdeviceptr)ipc->chunk_bytes;
}

static CUdeviceptr mailbox_of(const ipc_transport *ipc, CUdeviceptr mailboxes,
                              int64_t sender) {
  return mailboxes + (CUdeviceptr)(sender * SLOTS * ipc->chunk_bytes);
}

static burst_error *wait_for(const ipc_transport *ipc, CUstream stream,
                             const _Atomic uint32_t *word, uint32_t value) {
  return check_call(ipc, "cuStreamWaitValue32",
                    ipc->gpu->driver->cuStreamWaitValue32_v2(
                        stream, burst_flags_address(&ipc->flags, word), value,
                        CU_STREAM_WAIT_VALUE_GEQ));
}

// Behind all that the stream did before, as all GPUs see it.
static burst_error *announce(const ipc_transport *ipc, CUstream stream,
                             const _Atomic uint32_t *word, uint32_t value) {
  return check_call(ipc, "cuStreamWriteValue32",
                    ipc->gpu->driver->cuStreamWriteValue32_v2(
                        stream, burst_flags_address(&ipc->flags, word), value,
                        CU_STREAM_WRITE_VALUE_DEFAULT));
}

static burst_error *send_chunk(const ipc_transport *ipc, int64_t to,
                               const burst_piece *chunk) {
  peer *peer = &ipc->peers[to];
  burst_flag_pair *words =
      burst_flags_pair(&ipc->flags, ipc->transport.rank, to);
  uint32_t number = atomic_fetch_add(&peer->sent, 1) + 1;
  burst_piece slot =
      burst_piece_packed(chunk, (void *)slot_of(ipc, peer->mailbox, number));
  burst_view target = burst_view_of_piece(&slot),
             source = burst_view_of_piece(chunk);
  burst_error *error = wait_for(ipc, ipc->sends, &words->taken, number - SLOTS);
  if (!error)
    error = burst_cuda_copy(ipc->gpu, ipc->sends, &target, &source);
  return error ? error : announce(ipc, ipc->sends, &words->arrived, number);
}

static burst_error *receive_chunk(const ipc_transport *ipc, int64_t from,
                                  const burst_piece *chunk) {
  burst_flag_pair *words =
      burst_flags_pair(&ipc->flags, from, ipc->transport.rank);
  uint32_t number = atomic_fetch_add(&ipc->peers[from].received, 1) + 1;
  burst_piece slot = burst_piece_packed(
      chunk,
      (void *)slot_of(ipc, mailbox_of(ipc, ipc->mailboxes, from), number));
  burst_view target = burst_view_of_piece(chunk),
             source = burst_view_of_piece(&slot);
  burst_error *error = wait_for(ipc, ipc->receives, &words->arrived, number);
  if (!error)
    error = burst_cuda_copy(ipc->gpu, ipc->receives, &target, &source);
  return error ? error : announce(ipc, ipc->receives, &words->taken, number);
}

// Cuts a piece until its parts fit into a slot, along its outer dimensions.
static burst_error *pass_piece(const ipc_transport *ipc, const burst_post *post,
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

static burst_error *pass_all(const ipc_transport *ipc, const burst_post *post,
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

// The state of a post is the event that says that it is done.
static burst_error *pass(const ipc_transport *ipc, burst_post *post) {
  burst_cuda_event *done;
  if (!post)
    return NULL;
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

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static burst_error *check_post(const ipc_transport *ipc,
                               const burst_post *post) {
  if (!post)
    return NULL;
  burst_location location = burst_location_of_post(post);
  int ordinal = ipc->gpu->properties.ordinal;
  if (!post->lane)
    return burst_error_create(
        BURST_INVALID_ARGUMENT, location.text,
        "ipc transport: the run is on a CPU, wanted on GPU %d", ordinal);
  if (post->lane->gpu->device != ipc->gpu->device)
    return burst_error_create(
        BURST_INVALID_ARGUMENT, location.text,
        "ipc transport: the run is on GPU %d, wanted on GPU %d",
        post->lane->gpu->properties.ordinal, ordinal);
  if (post->lane->capturing)
    return burst_error_create(
        BURST_INVALID_ARGUMENT, location.text,
        "ipc transport: the stream is captured to a graph, which would count "
        "the same messages again: use burst_transport_create_nccl");
  for (int64_t i = 0; i < post->num_pieces; ++i)
    if (post->pieces[i].element_bytes > ipc->chunk_bytes)
      return burst_error_create(BURST_INVALID_PROGRAM, location.text,
                                "ipc transport: elements of %" PRId64
                                " bytes, wanted at most %" PRId64,
                                post->pieces[i].element_bytes,
                                ipc->chunk_bytes);
  return NULL;
}

static burst_error *ipc_start(burst_transport *transport, burst_post *send,
                              burst_post *receive) {
  const ipc_transport *ipc = ipc_of(transport);
  burst_post *post = send ? send : receive;
  burst_error *error = check_post(ipc, send);
  if (!error)
    error = check_post(ipc, receive);
  if (!error)
    error = locate(post, failure_of(ipc));
  if (error)
    return error;
  error = locate(send, pass(ipc, send));
  if (!error)
    error = locate(receive, pass(ipc, receive));
  // What failed meanwhile may not have known of this.
  return error ? error : locate(post, failure_of(ipc));
}

static burst_error *ipc_wait(burst_transport *transport, burst_post *post,
                             double seconds) {
  (void)seconds; // the watchdog of the device waits
  burst_error *error = locate(post, failure_of(ipc_of(transport)));
  if (error)
    return error;
  post->done = post->state;
  post->state = NULL;
  post->began = post->ended = burst_now();
  return NULL;
}

static void ipc_cancel(burst_transport *transport, burst_post *post) {
  let_go(ipc_of(transport));
  post->done = post->state;
  post->state = NULL;
}

// Whether streams of this rank have done all that they were asked for.
static bool is_idle(const ipc_transport *ipc) {
  CUcontext before;
  burst_error *error = burst_gpu_enter(ipc->gpu, &before);
  if (error) {
    burst_error_destroy(error);
    return false;
  }
  const burst_driver *driver = ipc->gpu->driver;
  bool idle = driver->cuStreamQuery(ipc->sends) == CUDA_SUCCESS &&
              driver->cuStreamQuery(ipc->receives) == CUDA_SUCCESS;
  burst_gpu_leave(ipc->gpu, before);
  return idle;
}

// Whether no rank touches the memory of this one.
static bool is_alone(const ipc_transport *ipc) {
  for (int64_t i = 0; i < ipc->transport.num_ranks; ++i)
    if (!burst_flags_ended(&ipc->flags, i))
      return false;
  return true;
}

// Returns when something is so, or has not become so for a while: less long
// where a rank has failed, which may be gone.
static bool until(const ipc_transport *ipc,
                  bool (*is_so)(const ipc_transport *ipc)) {
  int64_t begun = burst_now();
  for (;;) {
    if (is_so(ipc))
      return true;
    burst_error *error = failure_of(ipc);
    double patience = error ? stop_timeout : end_timeout;
    burst_error_destroy(error);
    if (burst_now() - begun > burst_nanoseconds(patience))
      return false;
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  }
}

static void close_peers(const ipc_transport *ipc) {
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

static void free_memory(ipc_transport *ipc) {
  burst_gpu_stream_destroy(ipc->gpu, ipc->sends);
  burst_gpu_stream_destroy(ipc->gpu, ipc->receives);
  burst_error_destroy(burst_gpu_free_now(ipc->gpu, ipc->mailboxes));
  burst_flags_close(&ipc->flags);
}

static void ipc_destroy(burst_transport *transport) {
  ipc_transport *ipc = ipc_of(transport);
  burst_world_detach(transport->world);
  // What a GPU that has gone astray may still touch stays: here, or there.
  if (until(ipc, is_idle)) {
    close_peers(ipc);
    burst_flags_end(&ipc->flags, transport->rank);
    if (until(ipc, is_alone))
      free_memory(ipc);
  }
  free(ipc->peers);
  burst_handle_free(ipc);
}

static const burst_transport_table ipc_table = {
    ipc_start, ipc_wait, ipc_cancel, ipc_stop, ipc_destroy, ipc_check};

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

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
static burst_error *agree(const ipc_transport *ipc, double seconds,
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

static burst_error *check_driver(const ipc_transport *ipc) {
  int values = 0;
  burst_error *error =
      check_call(ipc, "cuDeviceGetAttribute",
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
static burst_error *make_mailboxes(ipc_transport *ipc, card *card) {
  const size_t granule = (size_t)2 << 20;
  size_t bytes = (size_t)(ipc->transport.num_ranks * SLOTS * ipc->chunk_bytes);
  bytes = (bytes + granule - 1) / granule * granule;
  CUcontext before;
  burst_error *error =
      burst_gpu_allocate_shared(ipc->gpu, bytes, &ipc->mailboxes);
  if (!error)
    error = burst_gpu_enter(ipc->gpu, &before);
  if (error)
    return error;
  card->mailboxes = ipc->mailboxes;
  error = check_call(
      ipc, "cuIpcGetMemHandle",
      ipc->gpu->driver->cuIpcGetMemHandle(&card->handle, ipc->mailboxes));
  burst_gpu_leave(ipc->gpu, before);
  return error;
}

// What this rank can do alone.
static burst_error *prepare(ipc_transport *ipc, card *card) {
  static _Atomic int64_t number;
  card->process = getpid();
  card->ordinal = ipc->gpu->properties.ordinal;
  card->buffer_bytes = SLOTS * ipc->chunk_bytes;
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
static burst_error *reach_gpu(const ipc_transport *ipc, int ordinal) {
  const burst_driver *driver = ipc->gpu->driver;
  CUdevice device;
  CUcontext context, before;
  int can = 0;
  const char *call = "cuDeviceGet";
  CUresult result = driver->cuDeviceGet(&device, ordinal);
  if (result != CUDA_SUCCESS || device == ipc->gpu->device)
    return check_call(ipc, call, result);
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
    return check_call(ipc, call, result);
  burst_error *error = burst_gpu_enter(ipc->gpu, &before);
  if (!error) {
    call = "cuCtxEnablePeerAccess";
    result = driver->cuCtxEnablePeerAccess(context, 0);
    if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
      result = CUDA_SUCCESS;
    burst_gpu_leave(ipc->gpu, before);
    error = check_call(ipc, call, result);
  }
  driver->cuDevicePrimaryCtxRelease_v2(device);
  return error;
}

static burst_error *open_peer(ipc_transport *ipc, int64_t rank,
                              const card *theirs, const card *mine) {
  peer *peer = &ipc->peers[rank];
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
    error = check_call(ipc, "cuIpcOpenMemHandle", result);
    if (!error)
      peer->opened = mailboxes;
  }
  peer->mailbox = mailbox_of(ipc, mailboxes, ipc->transport.rank);
  if (!error)
    return NULL;
  burst_error *named = burst_error_create(
      burst_error_code(error), "",
      "cannot reach memory of rank %" PRId64 " on its GPU %" PRId64 ": %s",
      rank, theirs->ordinal, burst_error_message(error));
  burst_error_destroy(error);
  return named;
}

static burst_error *open_flags(ipc_transport *ipc, const card *first,
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

static burst_error *open_all(ipc_transport *ipc, const card *cards) {
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
static burst_error *open_ranks(ipc_transport *ipc, const card *cards,
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
    error = burst_world_attach(world, fail, ipc);
    attached = !error;
  }
  error = agree(ipc, seconds, error);
  if (!error)
    return NULL;
  if (attached)
    burst_world_detach(world);
  // Before anyone frees what others have opened.
  close_peers(ipc);
  burst_error_destroy(burst_world_barrier(world, seconds));
  return error;
}

static burst_error *connect_ranks(ipc_transport *ipc, double seconds) {
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

static burst_error *make_ipc(const burst_ipc_config *config,
                             ipc_transport **made) {
  ipc_transport *ipc = calloc(1, sizeof(*ipc));
  if (!ipc)
    return burst_error_no_memory(sizeof(*ipc));
  *made = ipc;
  ipc->gpu = burst_device_gpu(config->device);
  ipc->chunk_bytes = config->buffer_bytes / SLOTS / ALIGNMENT * ALIGNMENT;
  burst_transport_begin(&ipc->transport, &ipc_table,
                        burst_world_rank(config->world),
                        burst_world_num_ranks(config->world), config->world);
  size_t count = (size_t)ipc->transport.num_ranks;
  ipc->peers = calloc(count, sizeof(peer));
  return ipc->peers ? NULL : burst_error_no_memory(count * sizeof(peer));
}

static burst_error *check(const burst_ipc_config *config) {
  enum { LEAST = 1024 };
  const int64_t most = INT64_C(1) << 40;
  if (!config->device || !burst_device_cuda(config->device))
    return INVALID("ipc transport: no CUDA device");
  if (!config->world)
    return INVALID("ipc transport: no world");
  if (config->buffer_bytes < LEAST || config->buffer_bytes > most)
    return INVALID("ipc transport: buffer_bytes %" PRId64
                   ", wanted %d to %" PRId64,
                   config->buffer_bytes, LEAST, most);
  return burst_number_check("ipc transport: timeout_seconds",
                            config->timeout_seconds);
}

burst_error *burst_transport_create_ipc(const burst_ipc_config *given,
                                        burst_transport **transport) {
  BURST_REQUIRE(transport);
  burst_ipc_config config;
  ipc_transport *made = NULL;
  *transport = NULL;
  burst_error *error =
      burst_config_read("burst_ipc_config", &config, sizeof(config), given,
                        BURST_COVERS(burst_ipc_config, world));
  if (error)
    return error;
  BURST_CHECK(config.device, BURST_KIND_DEVICE);
  BURST_CHECK(config.world, BURST_KIND_WORLD);
  if (config.buffer_bytes == 0)
    config.buffer_bytes = default_buffer;
  if (config.timeout_seconds == 0)
    config.timeout_seconds = default_timeout;
  error = check(&config);
  if (error)
    return error;
  error = make_ipc(&config, &made);
  if (!error)
    error = connect_ranks(made, config.timeout_seconds);
  else
    burst_world_stop(config.world, burst_error_message(error));
  if (!error) {
    *transport = &made->transport;
  } else if (made) {
    free_memory(made);
    free(made->peers);
    free(made);
  }
  return error;
}
