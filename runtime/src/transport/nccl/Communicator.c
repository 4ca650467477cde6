//===- Communicator.c - Ranks that NCCL connects --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/transport/nccl/Communicator.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"

burst_error *burst_communicator_error(const burst_communicator *communicator,
                                      const char *call, ncclResult_t result) {
  const burst_nccl *nccl = communicator->nccl;
  if (result == ncclSuccess || result == ncclInProgress)
    return NULL;
  const char *text = nccl->ncclGetErrorString(result);
  const char *last = nccl->ncclGetLastError(communicator->made);
  return burst_error_create(
      BURST_SYSTEM, "", "GPU %d: %s: %s (%d): %s",
      communicator->gpu->properties.ordinal, call, text ? text : "no text",
      (int)result, last && *last ? last : "NCCL_DEBUG=INFO tells more");
}

static ncclConfig_t config_of_ours(void) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.splitShare = 0; // to be aborted by itself
  return config;
}

burst_error *burst_communicator_begin(burst_communicator *communicator,
                                      const ncclUniqueId *id, int64_t num_ranks,
                                      int64_t rank) {
  ncclConfig_t config = config_of_ours();
  CUcontext before;
  burst_error *error = burst_gpu_enter(communicator->gpu, &before);
  if (error)
    return error;
  ncclResult_t result = communicator->nccl->ncclCommInitRankConfig(
      &communicator->made, (int)num_ranks, *id, (int)rank, &config);
  burst_gpu_leave(communicator->gpu, before);
  return burst_communicator_error(communicator, "ncclCommInitRankConfig",
                                  result);
}

burst_error *burst_communicator_split(burst_communicator *communicator,
                                      ncclComm_t parent, int color, int rank) {
  ncclConfig_t config = config_of_ours();
  CUcontext before;
  burst_error *error = burst_gpu_enter(communicator->gpu, &before);
  if (error)
    return error;
  ncclResult_t result = communicator->nccl->ncclCommSplit(
      parent, color, rank, &communicator->made, &config);
  burst_gpu_leave(communicator->gpu, before);
  return burst_communicator_error(communicator, "ncclCommSplit", result);
}

burst_error *burst_communicator_poll(burst_communicator *communicator,
                                     bool *settled) {
  ncclResult_t state = ncclSuccess;
  CUcontext before;
  *settled = false;
  burst_error *error = burst_gpu_enter(communicator->gpu, &before);
  if (error)
    return error;
  ncclResult_t result =
      communicator->nccl->ncclCommGetAsyncError(communicator->made, &state);
  burst_gpu_leave(communicator->gpu, before);
  *settled = result == ncclSuccess && state == ncclSuccess;
  return burst_communicator_error(communicator, "NCCL",
                                  result == ncclSuccess ? state : result);
}

void burst_communicator_abort(burst_communicator *communicator) {
  CUcontext before;
  if (!communicator->made)
    return;
  burst_error *error = burst_gpu_enter(communicator->gpu, &before);
  communicator->nccl->ncclCommAbort(communicator->made);
  if (!error)
    burst_gpu_leave(communicator->gpu, before);
  burst_error_destroy(error); // the GPU is lost, but not the host's memory
  communicator->made = NULL;
}

void burst_communicator_end(burst_communicator *communicator, double seconds) {
  int64_t deadline = burst_now() + burst_nanoseconds(seconds);
  CUcontext before;
  bool settled = false;
  if (!communicator->made)
    return;
  burst_error *error = burst_gpu_enter(communicator->gpu, &before);
  if (!error) {
    error = burst_communicator_error(
        communicator, "ncclCommFinalize",
        communicator->nccl->ncclCommFinalize(communicator->made));
    while (!error && !settled && burst_now() < deadline) {
      struct timespec pause = {0, 100000};
      nanosleep(&pause, NULL);
      error = burst_communicator_poll(communicator, &settled);
    }
    if (settled) {
      communicator->nccl->ncclCommDestroy(communicator->made);
      communicator->made = NULL;
    }
    burst_gpu_leave(communicator->gpu, before);
  }
  burst_error_destroy(error);
  burst_communicator_abort(communicator);
}
