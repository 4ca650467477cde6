//===- Stream.c - A queue of runs -----------------------------------------===//

#include "Device.h"
#include "Error.h"
#include "Run.h"

#include <stdbool.h>
#include <stdlib.h>

struct burst_stream {
  burst_device *device;
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
    burst_call_skip(call, burst_error_message(failed));
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

burst_error *burst_stream_create(burst_device *device, burst_stream **stream) {
  *stream = NULL;
  if (!device)
    return burst_error_create(BURST_INVALID_ARGUMENT, "", "stream: no device");
  burst_stream *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  made->device = device;
  made->last = &made->first;
  pthread_mutex_init(&made->mutex, NULL);
  pthread_cond_init(&made->pushed, NULL);
  pthread_cond_init(&made->idle, NULL);
  burst_error *error =
      burst_thread_create("a stream", &made->thread, run_stream, made);
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
  call->next = NULL;
  pthread_mutex_lock(&stream->mutex);
  *stream->last = call;
  stream->last = &call->next;
  pthread_cond_signal(&stream->pushed);
  pthread_mutex_unlock(&stream->mutex);
}

burst_error *burst_stream_synchronize(burst_stream *stream) {
  pthread_mutex_lock(&stream->mutex);
  while (stream->first || stream->running)
    pthread_cond_wait(&stream->idle, &stream->mutex);
  burst_error *error = stream->error;
  stream->error = NULL;
  pthread_mutex_unlock(&stream->mutex);
  return error;
}

void burst_stream_destroy(burst_stream *stream) {
  if (!stream)
    return;
  pthread_mutex_lock(&stream->mutex);
  stream->ending = true;
  pthread_cond_signal(&stream->pushed);
  pthread_mutex_unlock(&stream->mutex);
  pthread_join(stream->thread, NULL);
  burst_error_destroy(stream->error);
  pthread_cond_destroy(&stream->pushed);
  pthread_cond_destroy(&stream->idle);
  pthread_mutex_destroy(&stream->mutex);
  free(stream);
}
