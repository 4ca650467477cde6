//===- Values.c - Runs on tensors of the host -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/run/Values.h"
#include "burst/internal/error.h"
#include "burst/internal/tensor.h"
#include "runtime/src/cuda/Gpu.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/program/Program.h"

#include <stdlib.h>
#include <string.h>

typedef struct copies {
  burst_gpu *gpu;
  CUstream stream;
  burst_program *program;
  const burst_tensor *values;
  burst_tensor *on_gpu;
} copies;

static const burst_parameter *parameter_at(const copies *copies, int64_t i) {
  return &copies->program->image->parameters[i];
}

// Whether parameter `i` needs a copy; scalars and tables stay where they are.
static bool is_copied(const copies *copies, int64_t i) {
  const burst_parameter *parameter = parameter_at(copies, i);
  return parameter->kind == BURST_TENSOR && !parameter->is_host;
}

static burst_error *upload(copies *copies, int64_t i) {
  size_t bytes = (size_t)burst_tensor_bytes(&copies->values[i]);
  CUdeviceptr memory;
  copies->on_gpu[i].data = NULL;
  burst_error *error =
      burst_gpu_allocate(copies->gpu, bytes, copies->stream, &memory);
  copies->on_gpu[i].data = (void *)memory;
  if (!error && !parameter_at(copies, i)->is_result)
    error = burst_gpu_upload(copies->gpu, memory, copies->values[i].data, bytes,
                             copies->stream);
  return error;
}

static burst_error *download(const copies *copies, int64_t i) {
  return burst_gpu_download(
      copies->gpu, copies->values[i].data, (CUdeviceptr)copies->on_gpu[i].data,
      (size_t)burst_tensor_bytes(&copies->values[i]), copies->stream);
}

static burst_error *run(copies *copies, const burst_run_config *config,
                        int64_t count, burst_counters *counters) {
  burst_stream *stream;
  burst_error *error =
      burst_stream_create_cuda(config->device, copies->stream, &stream);
  if (error)
    return error;
  burst_run_config on_stream = *config;
  on_stream.stream = stream;
  error =
      burst_run(copies->program, &on_stream, copies->on_gpu, count, counters);
  if (!error)
    error = burst_stream_synchronize(stream);
  burst_stream_destroy(stream);
  return error;
}

static burst_error *copy_and_run(copies *copies, const burst_run_config *config,
                                 int64_t count, burst_counters *counters) {
  burst_error *error = NULL;
  int64_t made = 0;
  for (; made < count && !error; ++made)
    if (is_copied(copies, made))
      error = upload(copies, made);
  if (!error)
    error = run(copies, config, count, counters);
  for (int64_t i = copies->program->image->num_arguments; i < count && !error;
       ++i)
    if (is_copied(copies, i))
      error = download(copies, i);
  if (!error)
    error = burst_gpu_synchronize(copies->gpu, copies->stream);
  for (int64_t i = 0; i < made; ++i)
    if (is_copied(copies, i))
      burst_error_destroy(burst_gpu_free(
          copies->gpu, (CUdeviceptr)copies->on_gpu[i].data, copies->stream));
  return error;
}

burst_error *burst_cuda_run_values(burst_program *program,
                                   const burst_run_config *config,
                                   const burst_tensor *values, int64_t count,
                                   burst_counters *counters) {
  copies copies = {.gpu = burst_device_gpu(config->device),
                   .program = program,
                   .values = values};
  size_t bytes = (size_t)(count + 1) * sizeof(burst_tensor);
  copies.on_gpu = malloc(bytes);
  if (!copies.on_gpu)
    return burst_error_no_memory(bytes);
  if (count > 0)
    memcpy(copies.on_gpu, values, (size_t)count * sizeof(burst_tensor));
  burst_error *error = burst_gpu_stream_create(copies.gpu, &copies.stream);
  if (!error)
    error = copy_and_run(&copies, config, count, counters);
  burst_gpu_stream_destroy(copies.gpu, copies.stream);
  free(copies.on_gpu);
  return error;
}
