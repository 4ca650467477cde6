//===- Gpu.h - A GPU, its streams and kernels -------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs on a GPU, through the table of the driver. A call fails with an
// error that names the device, the call and what the driver said.
//
// Streams are the driver's own: those of a caller and those made here are used
// alike. Nothing here waits for a GPU but burst_gpu_synchronize and what
// destroys. The thread's current context is what it was when a call returns.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_CUDA_GPU_H
#define BURST_RUNTIME_CUDA_GPU_H

#include "burst/internal/gpu.h"
#include "runtime/src/cuda/Driver.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

burst_error *burst_gpu_stream_create(burst_gpu *gpu, CUstream *stream);
void burst_gpu_stream_destroy(burst_gpu *gpu, CUstream stream);

// Waits for all that was put on a stream.
burst_error *burst_gpu_synchronize(burst_gpu *gpu, CUstream stream);

// `timed` events can be compared by burst_gpu_elapsed.
burst_error *burst_gpu_event_create(burst_gpu *gpu, bool timed, CUevent *event);
void burst_gpu_event_destroy(burst_gpu *gpu, CUevent event);
burst_error *burst_gpu_record(burst_gpu *gpu, CUevent event, CUstream stream);
// What is put on `stream` later runs after what `event` recorded last.
burst_error *burst_gpu_wait(burst_gpu *gpu, CUstream stream, CUevent event);
// Whether all that the event recorded has run.
burst_error *burst_gpu_is_done(burst_gpu *gpu, CUevent event, bool *done);
burst_error *burst_gpu_elapsed(burst_gpu *gpu, CUevent begin, CUevent end,
                               double *seconds);

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

// In the order of a stream; no bytes give 0. Memory may be used on other
// streams that wait for an event in between.
burst_error *burst_gpu_allocate(burst_gpu *gpu, size_t bytes, CUstream stream,
                                CUdeviceptr *memory);
burst_error *burst_gpu_free(burst_gpu *gpu, CUdeviceptr memory,
                            CUstream stream);
// At once, and such that other processes may open it.
burst_error *burst_gpu_allocate_shared(burst_gpu *gpu, size_t bytes,
                                       CUdeviceptr *memory);
// Of any of it, when nothing uses it. 0 is ignored.
burst_error *burst_gpu_free_now(burst_gpu *gpu, CUdeviceptr memory);
burst_error *burst_gpu_fill(burst_gpu *gpu, CUdeviceptr memory,
                            unsigned char value, size_t bytes, CUstream stream);
// The host's memory is not touched after the stream has been waited for.
burst_error *burst_gpu_upload(burst_gpu *gpu, CUdeviceptr to, const void *from,
                              size_t bytes, CUstream stream);
burst_error *burst_gpu_download(burst_gpu *gpu, void *to, CUdeviceptr from,
                                size_t bytes, CUstream stream);
burst_error *burst_gpu_copy(burst_gpu *gpu, CUdeviceptr to, CUdeviceptr from,
                            size_t bytes, CUstream stream);

// Lets copies on one GPU reach the memory of another one directly, if they can.
burst_error *burst_gpu_open_peer(burst_gpu *gpu, burst_gpu *peer);

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

enum { BURST_GPU_PARAMETERS = 64 };

typedef struct burst_gpu_module burst_gpu_module;

// Loads of each kernel the first binary that fits the GPU and that the driver
// takes. The kernels outlive the module.
burst_error *burst_gpu_module_load(burst_gpu *gpu, int64_t count,
                                   const burst_gpu_kernel *kernels,
                                   burst_gpu_module **module);
// When its launches have ended. Null is ignored.
void burst_gpu_module_unload(burst_gpu_module *module);

// Launches `blocks` blocks of kernel number `kernel`. The arguments are copied.
burst_error *burst_gpu_launch(burst_gpu_module *module, int64_t kernel,
                              int64_t blocks, const void *arguments,
                              CUstream stream);

#ifdef __cplusplus
}
#endif

#endif // BURST_RUNTIME_CUDA_GPU_H
