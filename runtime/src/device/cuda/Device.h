//===- Device.h - What a device has that is a GPU ---------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run on a GPU is host code that asks for work on a stream and ends; what it
// asked for runs later. So there are two ends of a run: of its host code, and
// of its work, which a thread of the device and burst_stream_synchronize look
// for by asking events.
//
// What is guarded by the mutex of a device is marked; it is taken before that
// of a transport, never after.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_DEVICE_CUDA_DEVICE_H
#define BURST_RUNTIME_DEVICE_CUDA_DEVICE_H

#include "runtime/src/base/View.h"
#include "runtime/src/cuda/Event.h"
#include "runtime/src/program/Call.h"
#include "runtime/src/transport/Transport.h"

#include <pthread.h>

typedef struct burst_cuda burst_cuda;
typedef struct burst_cuda_stream burst_cuda_stream;

// Memory of the host that a GPU reads fast and by itself.
typedef struct burst_staging {
  struct burst_staging *next;
  size_t capacity, used;
  char *memory;
} burst_staging;

// The kernels of a program, loaded.
typedef struct burst_cuda_kernels {
  struct burst_cuda_kernels *next;
  burst_program *program;
  burst_gpu_module *module;
} burst_cuda_kernels;

// A transfer that a run waits for.
typedef struct burst_cuda_hop {
  struct burst_cuda_hop *next;
  burst_location location;
  int64_t peer, channel;
  burst_cuda_event *done;
} burst_cuda_hop;

// One run.
typedef struct burst_cuda_run {
  burst_cuda *cuda;
  burst_cuda_stream *stream;
  burst_call *call;
  burst_lane lane;
  CUstream compute;
  bool bound;               // the tensors of the call were checked
  burst_gpu_module *module; // once it launches
  burst_staging *staging;

  // Guarded:
  struct burst_cuda_run *next;
  burst_cuda_hop *hops, **last_hop; // that are not known to have ended
  burst_cuda_event *begun, *ended;  // `ended` once all is asked for
  int64_t since; // when something of it ended, or it could begin
} burst_cuda_run;

struct burst_cuda_stream {
  burst_cuda *cuda;
  CUstream compute, copies;
  bool owned;           // `compute`
  pthread_mutex_t turn; // of the one that makes a run

  // Guarded:
  burst_cuda_stream *next;
  burst_cuda_run *first, **last; // in the order of the stream
  burst_error *error;            // the first one that was not yet told
};

struct burst_cuda {
  burst_gpu *gpu;
  burst_cuda_config config;
  int version;         // of CUDA, as far as the driver knows it
  CUdeviceptr nothing; // what a table without elements points to

  pthread_mutex_t mutex;
  // Guarded:
  burst_cuda_kernels *kernels;
  burst_staging *staging;  // free
  burst_staging *captured; // graphs may read it
  burst_cuda_stream *streams;
  burst_cuda_run *abandoned; // have failed, but may not have ended
  pthread_cond_t begun;      // a run, or the end of the device
  bool watched, ending;
  pthread_t watchdog;
};

burst_error *burst_cuda_create(const burst_cuda_config *config,
                               burst_cuda **cuda);
void burst_cuda_destroy(burst_cuda *cuda);

// An error unless the program, as much as an image says, runs on the GPU.
burst_error *burst_cuda_check(const burst_cuda *cuda, const burst_image *image);
// An error unless tensors lie where the program wants them, in the memory of
// the host or of a GPU.
burst_error *burst_cuda_check_values(const burst_cuda *cuda,
                                     const burst_image *image,
                                     const burst_tensor *values);

// The kernels of a program, which are loaded once and stay until the end of the
// device, as does the program.
burst_error *burst_cuda_load(burst_cuda *cuda, burst_program *program,
                             burst_gpu_module **module);

// Copies memory of the host to blocks of a run.
burst_error *burst_cuda_stage(burst_cuda *cuda, burst_staging **blocks,
                              const void *memory, size_t bytes, void **copy);
// The mutex is held. Moves all blocks of a list to another one, to be used
// again.
void burst_cuda_unstage(burst_staging **from, burst_staging **to);
void burst_cuda_free_staging(burst_cuda *cuda, burst_staging *blocks);

// Lets the calling thread do what could harm captures of other threads, and
// ends that: nothing here does.
CUstreamCaptureMode burst_cuda_relax(const burst_cuda *cuda);
void burst_cuda_unrelax(const burst_cuda *cuda, CUstreamCaptureMode before);

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

// `compute` null: one of its own, unless `given`.
burst_error *burst_cuda_stream_create(burst_cuda *cuda, bool given,
                                      CUstream compute,
                                      burst_cuda_stream **stream);
// Takes the call; `run` runs its host code.
void burst_cuda_stream_push(burst_cuda_stream *stream, burst_call *call,
                            burst_error *(*run)(burst_call *call));
burst_error *burst_cuda_stream_synchronize(burst_cuda_stream *stream);
void burst_cuda_stream_destroy(burst_cuda_stream *stream);
// An error if neither is possible.
burst_error *burst_cuda_is_capturing(const burst_cuda_stream *stream,
                                     bool *capturing);
// The error becomes that of the stream unless it has one.
void burst_cuda_keep_error(burst_cuda_stream *stream, burst_error *error);

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

// What the functions of the table do on a GPU.
burst_error *burst_cuda_allocate(burst_cuda_run *run, int64_t bytes,
                                 void **memory);
burst_error *burst_cuda_release(burst_cuda_run *run, void *memory,
                                int64_t bytes);
burst_error *burst_cuda_upload(burst_cuda_run *run, const void *from,
                               int64_t bytes, void **memory);
burst_error *burst_cuda_launch(burst_cuda_run *run, int64_t kernel,
                               const void *arguments, int64_t blocks);
// Fills what shall not be read with BURST_POISON, in the order of the run; of
// results, if they were checked, those of the host at once.
burst_error *burst_cuda_poison(const burst_cuda_run *run,
                               const burst_view *view);
burst_error *burst_cuda_poison_results(const burst_cuda_run *run);

// Posts that start: they may move once what the run asked for until now is
// done.
burst_error *burst_cuda_depart(burst_cuda_run *run, burst_post *const *posts,
                               int64_t count);
// A copy of memory of this GPU, in the order of the run.
burst_error *burst_cuda_copy_here(const burst_cuda_run *run,
                                  const burst_view *to, const burst_view *from);
// What the run asks for from now on comes after what a post moves, if it does.
burst_error *burst_cuda_join(burst_cuda_run *run, const burst_post *post);
// The same of a post that is waited for, and that the watchdog waits for too.
burst_error *burst_cuda_arrive(burst_cuda_run *run, const burst_post *post);

//===----------------------------------------------------------------------===//
// The watchdog
//===----------------------------------------------------------------------===//

// From here on a run is watched, up to its end.
burst_error *burst_cuda_watch(burst_cuda_run *run);
// The run has to get past a transfer.
burst_error *burst_cuda_watch_post(burst_cuda_run *run, const burst_post *post);
// Nothing more is asked for. Takes the run.
void burst_cuda_watch_end(burst_cuda_run *run);

// The mutex is held for these.

// Finds out which runs of a stream have ended, or never
// will.
void burst_cuda_look(burst_cuda_stream *stream);

void burst_cuda_free_run(burst_cuda_run *run);
void burst_cuda_stop_watchdog(burst_cuda *cuda);

#endif // BURST_RUNTIME_DEVICE_CUDA_DEVICE_H
