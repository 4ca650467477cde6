//===- Ipc.c - A transport by copy engines, within a machine --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/transport/ipc/Ipc.h"
#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/cuda/GpuImpl.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/transport/Transfer.h"
#include "runtime/src/world/World.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGNMENT = 256 };

static const int64_t default_buffer = INT64_C(32) << 20;
static const double default_timeout = 300, end_timeout = 10, stop_timeout = 5;

static burst_ipc *ipc_of(burst_transport *transport) {
  return (burst_ipc *)transport;
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

// Lets go whatever streams of this rank wait for. A rank that has not heard yet
// may write a smaller value behind this, so it is done again until all is gone.
static void let_go(const burst_ipc *ipc) {
  int64_t rank = ipc->transport.rank;
  for (int64_t i = 0; i < ipc->transport.num_ranks; ++i) {
    atomic_store(&burst_flags_pair(&ipc->flags, i, rank)->arrived,
                 atomic_load(&ipc->peers[i].received));
    atomic_store(&burst_flags_pair(&ipc->flags, rank, i)->taken,
                 atomic_load(&ipc->peers[i].sent));
  }
}

// First it is said that what comes from here is nothing, then it comes.
static void stop(const burst_ipc *ipc, const char *reason) {
  burst_flags_stop(&ipc->flags, ipc->transport.rank, reason);
  let_go(ipc);
}

// Why nothing more will come, or null; what waits for it goes on.
static burst_error *failure_of(const burst_ipc *ipc) {
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

void burst_ipc_fail(void *context) { burst_error_destroy(failure_of(context)); }

static void ipc_stop(burst_transport *transport, const char *reason) {
  const burst_ipc *ipc = ipc_of(transport);
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

burst_error *burst_ipc_check_call(const burst_ipc *ipc, const char *call,
                                  CUresult result) {
  return result == CUDA_SUCCESS
             ? NULL
             : burst_driver_error(ipc->gpu->driver,
                                  ipc->gpu->properties.ordinal, call, result);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static burst_error *check_post(const burst_ipc *ipc, const burst_post *post) {
  burst_location location = burst_location_of_post(post);
  burst_error *error = burst_cuda_check_lane(post, "ipc", ipc->gpu);
  if (error)
    return error;
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

static burst_error *ipc_start(burst_transport *transport,
                              burst_post *const *posts, int64_t count) {
  const burst_ipc *ipc = ipc_of(transport);
  burst_error *error = NULL;
  for (int64_t i = 0; i < count && !error; ++i)
    error = check_post(ipc, posts[i]);
  if (!error)
    error = locate(posts[0], failure_of(ipc));
  for (int64_t i = 0; i < count && !error; ++i)
    error = locate(posts[i], burst_ipc_pass(ipc, posts[i]));
  // What failed meanwhile may not have known of this.
  return error ? error : locate(posts[0], failure_of(ipc));
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
static bool is_idle(const burst_ipc *ipc) {
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
static bool is_alone(const burst_ipc *ipc) {
  for (int64_t i = 0; i < ipc->transport.num_ranks; ++i)
    if (!burst_flags_ended(&ipc->flags, i))
      return false;
  return true;
}

// Returns when something is so, or has not become so for a while: less long
// where a rank has failed, which may be gone.
static bool until(const burst_ipc *ipc, bool (*is_so)(const burst_ipc *ipc)) {
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

static void free_memory(burst_ipc *ipc) {
  burst_gpu_stream_destroy(ipc->gpu, ipc->sends);
  burst_gpu_stream_destroy(ipc->gpu, ipc->receives);
  burst_error_destroy(burst_gpu_free_now(ipc->gpu, ipc->mailboxes));
  burst_flags_close(&ipc->flags);
}

static void ipc_destroy(burst_transport *transport) {
  burst_ipc *ipc = ipc_of(transport);
  burst_world_detach(transport->world);
  // What a GPU that has gone astray may still touch stays: here, or there.
  if (until(ipc, is_idle)) {
    burst_ipc_close_peers(ipc);
    burst_flags_end(&ipc->flags, transport->rank);
    if (until(ipc, is_alone))
      free_memory(ipc);
  }
  free(ipc->peers);
  burst_handle_free(ipc);
}

static const burst_transport_kind ipc_table = {
    ipc_start, ipc_wait, ipc_cancel, ipc_stop, ipc_destroy, ipc_check, NULL};

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

#define INVALID(...) burst_error_create(BURST_INVALID_ARGUMENT, "", __VA_ARGS__)

static burst_error *make_ipc(const burst_ipc_config *config, burst_ipc **made) {
  burst_ipc *ipc = calloc(1, sizeof(*ipc));
  if (!ipc)
    return burst_error_no_memory(sizeof(*ipc));
  *made = ipc;
  ipc->gpu = burst_device_gpu(config->device);
  ipc->chunk_bytes =
      config->buffer_bytes / BURST_IPC_SLOTS / ALIGNMENT * ALIGNMENT;
  burst_transport_begin(&ipc->transport, &ipc_table,
                        burst_world_rank(config->world),
                        burst_world_num_ranks(config->world), config->world);
  size_t count = (size_t)ipc->transport.num_ranks;
  ipc->peers = calloc(count, sizeof(burst_ipc_peer));
  return ipc->peers ? NULL
                    : burst_error_no_memory(count * sizeof(burst_ipc_peer));
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
  burst_ipc *made = NULL;
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
    error = burst_ipc_connect(made, config.timeout_seconds);
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
