//===- Trace.c - What runs did, and when ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/run/Trace.h"
#include "burst/internal/error.h"
#include "burst/internal/handle.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/base/NewFile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum kind { LAUNCH, WAIT, TRANSFER } kind;

typedef struct event {
  kind kind;
  int64_t rank, begin, end;
  char *kernel; // of a launch
  int64_t tasks;
  bool receives; // of a wait or transfer, as are those below
  int64_t peer, channel, hop, bytes;
} event;

struct burst_trace {
  burst_handle handle;
  pthread_mutex_t mutex;
  int64_t created;
  event *events;
  size_t count, capacity;
  size_t lost; // for which there was no memory
};

//===----------------------------------------------------------------------===//
// Recording
//===----------------------------------------------------------------------===//

burst_error *burst_trace_create(burst_trace **trace) {
  BURST_REQUIRE(trace);
  *trace = calloc(1, sizeof(**trace));
  if (!*trace)
    return burst_error_no_memory(sizeof(**trace));
  (*trace)->handle.magic = BURST_MAGIC(BURST_KIND_TRACE);
  pthread_mutex_init(&(*trace)->mutex, NULL);
  (*trace)->created = burst_now();
  return NULL;
}

void burst_trace_destroy(burst_trace *trace) {
  BURST_CHECK(trace, BURST_KIND_TRACE);
  if (!trace)
    return;
  burst_handle_end(&trace->handle);
  for (size_t i = 0; i < trace->count; ++i)
    free(trace->events[i].kernel);
  free(trace->events);
  pthread_mutex_destroy(&trace->mutex);
  burst_handle_free(trace);
}

static bool grow(burst_trace *trace) {
  if (trace->count < trace->capacity)
    return true;
  size_t capacity = trace->capacity ? 2 * trace->capacity : 256;
  event *events = realloc(trace->events, capacity * sizeof(event));
  if (!events)
    return false;
  trace->events = events;
  trace->capacity = capacity;
  return true;
}

static void record(burst_trace *trace, event added) {
  pthread_mutex_lock(&trace->mutex);
  if ((added.kind != LAUNCH || added.kernel) && grow(trace)) {
    trace->events[trace->count++] = added;
  } else {
    free(added.kernel);
    ++trace->lost;
  }
  pthread_mutex_unlock(&trace->mutex);
}

void burst_trace_launch(burst_trace *trace, int64_t rank,
                        const burst_kernel *kernel, int64_t tasks,
                        int64_t begin, int64_t end) {
  if (trace)
    // A copy: the program may be gone when the trace is written.
    record(trace, (event){.kind = LAUNCH,
                          .rank = rank,
                          .begin = begin,
                          .end = end,
                          .kernel = strdup(kernel->name),
                          .tasks = tasks});
}

static event event_of(const burst_post *post, kind kind, int64_t begin,
                      int64_t end) {
  return (event){.kind = kind,
                 .rank = post->rank,
                 .begin = begin,
                 .end = end,
                 .receives = post->receives,
                 .peer = post->peer,
                 .channel = post->channel,
                 .hop = post->hop,
                 .bytes = post->bytes};
}

void burst_trace_transfer(burst_trace *trace, const burst_post *post) {
  if (trace)
    record(trace, event_of(post, TRANSFER, post->began, post->ended));
}

void burst_trace_wait(burst_trace *trace, const burst_post *post, int64_t begin,
                      int64_t end) {
  if (trace)
    record(trace, event_of(post, WAIT, begin, end));
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

// ASCII whatever the name is, so that the file is always valid.
static void write_string(FILE *file, const char *text) {
  putc('"', file);
  for (; *text; ++text) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\' || c < 0x20 || c >= 0x7f)
      fprintf(file, "\\u%04x", c);
    else
      putc(c, file);
  }
  putc('"', file);
}

// In microseconds, as the format wants it, without losing nanoseconds.
static void write_time(FILE *file, const char *key, int64_t nanoseconds) {
  fprintf(file, ",\"%s\":%" PRId64 ".%03" PRId64, key, nanoseconds / 1000,
          nanoseconds % 1000);
}

static void write_track(FILE *file, int64_t rank) {
  fprintf(file,
          "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%" PRId64
          ",\"args\":{\"name\":\"rank %" PRId64 "\"}},\n",
          rank, rank);
  const char *const tracks[] = {"compute", "transfers"};
  for (int track = 0; track < 2; ++track)
    fprintf(file,
            "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%" PRId64
            ",\"tid\":%d,\"args\":{\"name\":\"%s\"}},\n",
            rank, track, tracks[track]);
}

static void write_name(FILE *file, const event *written) {
  fputs("{\"name\":", file);
  if (written->kind == LAUNCH)
    write_string(file, written->kernel);
  else
    fprintf(file, "\"%s%s rank %" PRId64 "\"",
            written->kind == WAIT ? "wait: " : "",
            written->receives ? "receive from" : "send to", written->peer);
}

static void write_arguments(FILE *file, const event *written) {
  if (written->kind == LAUNCH)
    fprintf(file, ",\"args\":{\"tasks\":%" PRId64 "}}", written->tasks);
  else
    fprintf(file,
            ",\"args\":{\"peer\":%" PRId64 ",\"channel\":%" PRId64
            ",\"hop\":%" PRId64 ",\"bytes\":%" PRId64 "}}",
            written->peer, written->channel, written->hop, written->bytes);
}

// Transfers overlap each other, so they are pairs of events joined by an id;
// what a rank's thread does is one event.
static void write_event(FILE *file, const burst_trace *trace, size_t i) {
  const event *written = &trace->events[i];
  int64_t begin = written->begin - trace->created;
  int64_t end = written->end - trace->created;
  write_name(file, written);
  if (written->kind == TRANSFER) {
    fprintf(file,
            ",\"cat\":\"transfer\",\"ph\":\"b\",\"id\":%zu,\"pid\":%" PRId64
            ",\"tid\":1",
            i, written->rank);
    write_time(file, "ts", begin);
    write_arguments(file, written);
    fputs(",\n", file);
    write_name(file, written);
    fprintf(file,
            ",\"cat\":\"transfer\",\"ph\":\"e\",\"id\":%zu,\"pid\":%" PRId64
            ",\"tid\":1",
            i, written->rank);
    write_time(file, "ts", end);
    putc('}', file);
    return;
  }
  fprintf(file, ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%" PRId64 ",\"tid\":0",
          written->kind == LAUNCH ? "launch" : "wait", written->rank);
  write_time(file, "ts", begin);
  write_time(file, "dur", end - begin);
  write_arguments(file, written);
}

static void write_events(FILE *file, const burst_trace *trace) {
  int64_t ranks = 0;
  for (size_t i = 0; i < trace->count; ++i)
    if (trace->events[i].rank >= ranks)
      ranks = trace->events[i].rank + 1;
  fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
  for (int64_t rank = 0; rank < ranks; ++rank)
    write_track(file, rank);
  for (size_t i = 0; i < trace->count; ++i) {
    write_event(file, trace, i);
    fputs(",\n", file);
  }
  fputs("{\"name\":\"end\",\"ph\":\"M\",\"pid\":0}\n]}\n", file);
}

static burst_error *failure(const char *path, int number) {
  return burst_error_create(BURST_SYSTEM, path, "%s", strerror(number));
}

// Writes to a descriptor, which stays open. Gives a number of errno.
static int write_to(const burst_trace *trace, int descriptor) {
  int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
  if (!file) {
    int number = errno;
    if (copy >= 0)
      close(copy);
    return number;
  }
  write_events(file, trace);
  bool failed = ferror(file);
  return fclose(file) || failed ? errno : 0;
}

static burst_error *write_file(const burst_trace *trace, const char *path,
                               int flags) {
  int descriptor = open(path, O_WRONLY | O_CLOEXEC | flags, 0666);
  if (descriptor < 0)
    return failure(path, errno);
  int number = write_to(trace, descriptor);
  close(descriptor);
  return number ? failure(path, number) : NULL;
}

static burst_error *replace_file(const burst_trace *trace, const char *path) {
  burst_new_file file;
  int number = burst_new_file_open(&file, path, 0666);
  if (number)
    return failure(path, number);
  number = write_to(trace, file.descriptor);
  if (number)
    burst_new_file_drop(&file);
  else
    number = burst_new_file_keep(&file, /*replaces=*/true);
  return number ? failure(path, number) : NULL;
}

burst_error *burst_trace_write(burst_trace *trace, const char *path) {
  BURST_REQUIRE_HANDLE(trace, BURST_KIND_TRACE);
  BURST_REQUIRE(path);
  pthread_mutex_lock(&trace->mutex);
  // A link stays, and what it leads to is replaced, or made. What is no file,
  // such as a pipe, or has no name, as standard output may, is written to.
  char *target = realpath(path, NULL);
  const char *name = target ? target : path;
  struct stat status;
  burst_error *error;
  if (trace->lost)
    error = burst_error_create(BURST_OUT_OF_MEMORY, path,
                               "%zu events were lost", trace->lost);
  else if (stat(name, &status) == 0 && !S_ISREG(status.st_mode))
    error = write_file(trace, name, 0);
  else if (!target && lstat(path, &status) == 0)
    error = write_file(trace, path, O_CREAT | O_TRUNC);
  else
    error = replace_file(trace, name);
  pthread_mutex_unlock(&trace->mutex);
  free(target);
  return error;
}
