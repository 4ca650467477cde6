//===- Stream.c - A queue of runs -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "runtime/src/base/Thread.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/device/cuda/Device.h"
#include "runtime/src/run/Run.h"

#include <stdbool.h>
#include <stdlib.h>

// On a GPU the order is that of a stream there, and the rest is not used.
struct burst_stream {
  burst_handle handle;
  burst_device *device;
  burst_cuda_stream *cuda;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t pushed, idle;
  burst_call *first, **last;
  bool running, ending;
  burst_error *error; // the first one that was not yet told
};

// The mutex is held before and after.
static void run_first(burst_stream *stream) {
  burst_call *call = stream->first;
  stream->first = call->next;
  if (!stream->first)
    stream->last = &stream->first;
  stream->running = true;
  burst_error *failed = stream->error, *error = NULL;
  if (failed) {
    // Under the mutex, because synchronize takes the error.
    burst_transport_stop(call->config.transport, burst_error_message(failed));
  } else {
    pthread_mutex_unlock(&stream->mutex);
    error = burst_call_run(call);
    pthread_mutex_lock(&stream->mutex);
  }
  burst_call_destroy(call);
  stream->running = false;
  if (error)
    stream->error = error;
}

static void *run_stream(void *context) {
  burst_stream *stream = context;
  pthread_mutex_lock(&stream->mutex);
  for (;;) {
    if (stream->first) {
      run_first(stream);
      continue;
    }
    pthread_cond_broadcast(&stream->idle);
    if (stream->ending)
      break;
    pthread_cond_wait(&stream->pushed, &stream->mutex);
  }
  pthread_mutex_unlock(&stream->mutex);
  return NULL;
}

static burst_error *make_stream(burst_device *device, burst_stream **stream) {
  *stream = NULL;
  *stream = calloc(1, sizeof(**stream));
  if (!*stream)
    return burst_error_no_memory(sizeof(**stream));
  (*stream)->handle.magic = BURST_MAGIC(BURST_KIND_STREAM);
  (*stream)->device = device;
  return NULL;
}

// On a GPU, `given` or made.
static burst_error *create_on_gpu(burst_device *device, bool given,
                                  CUstream compute, burst_stream **stream) {
  burst_error *error = make_stream(device, stream);
  if (error)
    return error;
  error = burst_cuda_stream_create(burst_device_cuda(device), given, compute,
                                   &(*stream)->cuda);
  if (error) {
    free(*stream);
    *stream = NULL;
  }
  return error;
}

burst_error *burst_stream_create_cuda(burst_device *device, void *cuda_stream,
                                      burst_stream **stream) {
  BURST_REQUIRE(stream);
  *stream = NULL;
  BURST_REQUIRE_HANDLE(device, BURST_KIND_DEVICE);
  if (!burst_device_cuda(device))
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "stream: one of CUDA, the device is a CPU");
  return create_on_gpu(device, true, cuda_stream, stream);
}

burst_error *burst_stream_create(burst_device *device, burst_stream **stream) {
  BURST_REQUIRE(stream);
  *stream = NULL;
  BURST_REQUIRE_HANDLE(device, BURST_KIND_DEVICE);
  if (burst_device_cuda(device))
    return create_on_gpu(device, false, NULL, stream);
  burst_stream *made;
  burst_error *error = make_stream(device, &made);
  if (error)
    return error;
  made->last = &made->first;
  pthread_mutex_init(&made->mutex, NULL);
  pthread_cond_init(&made->pushed, NULL);
  pthread_cond_init(&made->idle, NULL);
  error = burst_thread_create("a stream", &made->thread, run_stream, made);
  if (error)
    free(made);
  else
    *stream = made;
  return error;
}

burst_device *burst_stream_device(const burst_stream *stream) {
  return stream->device;
}

void burst_stream_push(burst_stream *stream, burst_call *call) {
  if (stream->cuda) {
    burst_cuda_stream_push(stream->cuda, call, burst_call_run);
    return;
  }
  call->next = NULL;
  pthread_mutex_lock(&stream->mutex);
  *stream->last = call;
  stream->last = &call->next;
  pthread_cond_signal(&stream->pushed);
  pthread_mutex_unlock(&stream->mutex);
}

burst_error *burst_stream_synchronize(burst_stream *stream) {
  BURST_REQUIRE_HANDLE(stream, BURST_KIND_STREAM);
  if (stream->cuda)
    return burst_cuda_stream_synchronize(stream->cuda);
  pthread_mutex_lock(&stream->mutex);
  while (stream->first || stream->running)
    pthread_cond_wait(&stream->idle, &stream->mutex);
  burst_error *error = stream->error;
  stream->error = NULL;
  pthread_mutex_unlock(&stream->mutex);
  return error;
}

void burst_stream_destroy(burst_stream *stream) {
  BURST_CHECK(stream, BURST_KIND_STREAM);
  if (!stream)
    return;
  burst_handle_end(&stream->handle);
  if (stream->cuda) {
    burst_cuda_stream_destroy(stream->cuda);
    burst_handle_free(stream);
    return;
  }
  pthread_mutex_lock(&stream->mutex);
  stream->ending = true;
  pthread_cond_signal(&stream->pushed);
  pthread_mutex_unlock(&stream->mutex);
  pthread_join(stream->thread, NULL);
  burst_error_destroy(stream->error);
  pthread_cond_destroy(&stream->pushed);
  pthread_cond_destroy(&stream->idle);
  pthread_mutex_destroy(&stream->mutex);
  burst_handle_free(stream);
}
