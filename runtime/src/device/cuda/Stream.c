//===- Stream.c - Runs in the order of a stream of a GPU ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/cuda/GpuImpl.h"
#include "runtime/src/device/cuda/Device.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

//===----------------------------------------------------------------------===//
// Creation and end
//===----------------------------------------------------------------------===//

// Streams that the driver has by itself belong to the current context.
static bool is_made(CUstream stream) { return (uintptr_t)stream > 2; }

static burst_error *check(const burst_cuda *cuda, CUstream stream) {
  const burst_driver *driver = cuda->gpu->driver;
  int ordinal = cuda->gpu->properties.ordinal;
  CUcontext context, before;
  if (!is_made(stream))
    return NULL;
  burst_error *error = burst_gpu_enter(cuda->gpu, &before);
  if (error)
    return error;
  CUresult result = driver->cuStreamGetCtx(stream, &context);
  burst_gpu_leave(cuda->gpu, before);
  if (result != CUDA_SUCCESS)
    return burst_driver_error(driver, ordinal, "cuStreamGetCtx", result);
  return context == cuda->gpu->context
             ? NULL
             : burst_error_create(BURST_INVALID_ARGUMENT, "",
                                  "stream: it is not of the primary context of "
                                  "GPU %d: make it there",
                                  ordinal);
}

burst_error *burst_cuda_stream_create(burst_cuda *cuda, bool given,
                                      CUstream compute,
                                      burst_cuda_stream **stream) {
  *stream = NULL;
  burst_error *error = given ? check(cuda, compute) : NULL;
  if (error)
    return error;
  burst_cuda_stream *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  made->cuda = cuda;
  made->compute = compute;
  made->owned = !given;
  made->last = &made->first;
  if (!given)
    error = burst_gpu_stream_create(cuda->gpu, &made->compute);
  if (!error)
    error = burst_gpu_stream_create(cuda->gpu, &made->copies);
  if (error) {
    if (made->owned)
      burst_gpu_stream_destroy(cuda->gpu, made->compute);
    free(made);
    return error;
  }
  pthread_mutex_init(&made->turn, NULL);
  pthread_mutex_lock(&cuda->mutex);
  made->next = cuda->streams;
  cuda->streams = made;
  pthread_mutex_unlock(&cuda->mutex);
  *stream = made;
  return NULL;
}

void burst_cuda_stream_destroy(burst_cuda_stream *stream) {
  burst_cuda *cuda = stream->cuda;
  burst_error_destroy(burst_cuda_stream_synchronize(stream));
  pthread_mutex_lock(&cuda->mutex);
  burst_cuda_stream **place = &cuda->streams;
  while (*place != stream)
    place = &(*place)->next;
  *place = stream->next;
  pthread_mutex_unlock(&cuda->mutex);
  burst_gpu_stream_destroy(cuda->gpu, stream->copies);
  if (stream->owned)
    burst_gpu_stream_destroy(cuda->gpu, stream->compute);
  pthread_mutex_destroy(&stream->turn);
  free(stream);
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

burst_error *burst_cuda_is_capturing(const burst_cuda_stream *stream,
                                     bool *capturing) {
  burst_gpu *gpu = stream->cuda->gpu;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  *capturing = false;
  CUcontext before;
  burst_error *error = burst_gpu_enter(gpu, &before);
  if (error)
    return error;
  CUresult result = gpu->driver->cuStreamIsCapturing(stream->compute, &status);
  burst_gpu_leave(gpu, before);
  if (result != CUDA_SUCCESS)
    return burst_driver_error(gpu->driver, gpu->properties.ordinal,
                              "cuStreamIsCapturing", result);
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "GPU %d: the stream is captured to a graph, and "
                              "something before made that impossible",
                              gpu->properties.ordinal);
  *capturing = status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return NULL;
}

static burst_error *make_run(burst_cuda_stream *stream, burst_call *call,
                             burst_cuda_run **run) {
  burst_cuda_run *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  made->cuda = stream->cuda;
  made->stream = stream;
  made->call = call;
  made->compute = stream->compute;
  made->lane.gpu = stream->cuda->gpu;
  made->lane.copies = stream->copies;
  made->last_hop = &made->hops;
  burst_error *error = burst_cuda_is_capturing(stream, &made->lane.capturing);
  if (!error && !made->lane.capturing)
    error = burst_cuda_watch(made);
  if (error)
    free(made);
  else
    *run = made;
  return error;
}

// Whether the stream failed, and with what: the caller frees that, which is
// null also where there is no memory for it.
static bool has_failed(burst_cuda_stream *stream, char **failure) {
  pthread_mutex_lock(&stream->cuda->mutex);
  bool failed = stream->error != NULL;
  *failure = failed ? strdup(burst_error_message(stream->error)) : NULL;
  pthread_mutex_unlock(&stream->cuda->mutex);
  return failed;
}

static void push(burst_cuda_stream *stream, burst_call *call,
                 burst_error *(*run)(burst_call *call)) {
  char *failure;
  bool failed = has_failed(stream, &failure);
  burst_error *error = make_run(stream, call, &call->cuda);
  if (error) {
    burst_transport_stop(call->config.transport, burst_error_message(error));
    burst_cuda_keep_error(stream, error);
    burst_call_destroy(call);
  } else if (failed) {
    burst_transport_stop(call->config.transport,
                         failure ? failure : "out of memory");
    burst_cuda_watch_end(call->cuda);
  } else {
    error = run(call);
    if (error) {
      // What the GPU takes no more is lost anyway.
      burst_error_destroy(burst_cuda_poison_results(call->cuda));
      burst_cuda_keep_error(stream, error);
    }
    burst_cuda_watch_end(call->cuda);
  }
  free(failure);
}

void burst_cuda_stream_push(burst_cuda_stream *stream, burst_call *call,
                            burst_error *(*run)(burst_call *call)) {
  pthread_mutex_lock(&stream->turn);
  push(stream, call, run);
  pthread_mutex_unlock(&stream->turn);
}

// Whether runs that were given up may still be filled with NaN: their
// transports see to it that nothing is in the way of that. The mutex is held.
static bool has_abandoned(const burst_cuda_stream *stream) {
  bool found = false;
  for (const burst_cuda_run *run = stream->cuda->abandoned; run;
       run = run->next) {
    if (run->stream != stream)
      continue;
    found = true;
    burst_transport *transport = run->call->config.transport;
    if (transport && transport->kind->check)
      burst_error_destroy(transport->kind->check(transport));
  }
  return found;
}

// Their transports may be destroyed from now on. The mutex is held.
static void forget_transports(const burst_cuda_stream *stream) {
  for (const burst_cuda_run *run = stream->cuda->abandoned; run;
       run = run->next)
    if (run->stream == stream)
      run->call->config.transport = NULL;
}

burst_error *burst_cuda_stream_synchronize(burst_cuda_stream *stream) {
  enum { SHORTEST_NAP = 20000, LONGEST_NAP = 1000000 };
  // A GPU that has gone astray may never end what was given up.
  static const double patience = 2;
  int64_t begun = burst_now();
  for (int64_t nap = SHORTEST_NAP;; nap += nap < LONGEST_NAP ? nap / 2 : 0) {
    pthread_mutex_lock(&stream->cuda->mutex);
    burst_cuda_look(stream);
    if (stream->first)
      begun = burst_now();
    bool ended =
        !stream->first && (!has_abandoned(stream) ||
                           burst_now() - begun > burst_nanoseconds(patience));
    burst_error *error = NULL;
    if (ended) {
      forget_transports(stream);
      error = stream->error;
      stream->error = NULL;
    }
    pthread_mutex_unlock(&stream->cuda->mutex);
    if (ended)
      return error;
    nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
  }
}
