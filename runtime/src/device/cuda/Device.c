//===- Device.c - A GPU as a device ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/device/cuda/Device.h"
#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/cuda/GpuImpl.h"
#include "runtime/src/device/Device.h"
#include "runtime/src/program/Program.h"

#include <inttypes.h>
#include <stdlib.h>

#define INVALID(...) burst_error_create(BURST_INVALID_ARGUMENT, "", __VA_ARGS__)

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

// Memory for what is read where there is nothing.
static burst_error *make_nothing(burst_cuda *cuda) {
  enum { BYTES = 64 };
  CUstream stream;
  burst_error *error = burst_gpu_stream_create(cuda->gpu, &stream);
  if (error)
    return error;
  error = burst_gpu_allocate(cuda->gpu, BYTES, stream, &cuda->nothing);
  if (!error)
    error = burst_gpu_fill(cuda->gpu, cuda->nothing, 0, BYTES, stream);
  if (!error)
    error = burst_gpu_synchronize(cuda->gpu, stream);
  burst_gpu_stream_destroy(cuda->gpu, stream);
  return error;
}

static burst_error *read_version(burst_cuda *cuda) {
  const burst_driver *driver = cuda->gpu->driver;
  CUresult result = driver->cuDriverGetVersion(&cuda->version);
  return result == CUDA_SUCCESS
             ? NULL
             : burst_driver_error(driver, cuda->gpu->properties.ordinal,
                                  "cuDriverGetVersion", result);
}

static burst_error *check(const burst_cuda_config *config) {
  if (config->ordinal < 0 || config->ordinal > INT32_MAX)
    return INVALID("GPU %" PRId64 ", wanted 0 or more", config->ordinal);
  if (!config->allocate != !config->release)
    return INVALID("burst_cuda_config: %s without %s",
                   config->allocate ? "allocate" : "release",
                   config->allocate ? "release" : "allocate");
  return NULL;
}

burst_error *burst_cuda_create(const burst_cuda_config *config,
                               burst_cuda **cuda) {
  *cuda = NULL;
  burst_error *error = check(config);
  if (error)
    return error;
  burst_cuda *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  made->config = *config;
  pthread_mutex_init(&made->mutex, NULL);
  burst_cond_init(&made->begun);
  error = burst_gpu_create((int)config->ordinal, &made->gpu);
  if (!error)
    error = read_version(made);
  if (!error)
    error = make_nothing(made);
  if (error)
    burst_cuda_destroy(made);
  else
    *cuda = made;
  return error;
}

void burst_cuda_destroy(burst_cuda *cuda) {
  if (!cuda)
    return;
  burst_cuda_stop_watchdog(cuda);
  while (cuda->abandoned) {
    burst_cuda_run *run = cuda->abandoned;
    cuda->abandoned = run->next;
    burst_cuda_free_run(run);
  }
  while (cuda->kernels) {
    burst_cuda_kernels *kernels = cuda->kernels;
    cuda->kernels = kernels->next;
    burst_gpu_module_unload(kernels->module);
    burst_program_release(kernels->program);
    free(kernels);
  }
  burst_cuda_free_staging(cuda, cuda->staging);
  burst_cuda_free_staging(cuda, cuda->captured);
  if (cuda->gpu)
    burst_error_destroy(burst_gpu_free_now(cuda->gpu, cuda->nothing));
  burst_gpu_destroy(cuda->gpu);
  pthread_cond_destroy(&cuda->begun);
  pthread_mutex_destroy(&cuda->mutex);
  free(cuda);
}

burst_error *burst_device_create_cuda(const burst_cuda_config *given,
                                      burst_device **device) {
  BURST_REQUIRE(device);
  *device = NULL;
  burst_cuda_config config;
  burst_error *error = burst_config_read("burst_cuda_config", &config,
                                         sizeof(config), given, sizeof(size_t));
  burst_cuda *cuda = NULL;
  if (!error)
    error = burst_cuda_create(&config, &cuda);
  // For kernels that make schedules: they are small, and the thread that asks
  // for them does them.
  const burst_device_config host = {.size = sizeof(host), .threads = 1};
  if (!error)
    error = burst_device_create_cpu(&host, device);
  if (error)
    burst_cuda_destroy(cuda);
  else
    burst_device_set_cuda(*device, cuda, cuda->gpu, burst_cuda_destroy);
  return error;
}

//===----------------------------------------------------------------------===//
// Checks of a run
//===----------------------------------------------------------------------===//

burst_error *burst_cuda_check(const burst_cuda *cuda,
                              const burst_image *image) {
  int ordinal = cuda->gpu->properties.ordinal;
  if (image->minimum_driver == 0)
    return INVALID("%s: a program for CPUs, the device is GPU %d: run it on a "
                   "CPU, or compile it for GPUs",
                   image->name, ordinal);
  if (cuda->version < image->minimum_driver)
    return INVALID("%s: the driver of GPU %d knows CUDA %d.%d, wanted %d.%d: "
                   "install a later one",
                   image->name, ordinal, cuda->version / 1000,
                   cuda->version % 1000 / 10, image->minimum_driver / 1000,
                   image->minimum_driver % 1000 / 10);
  return NULL;
}

static bool is_on_gpu(const burst_cuda *cuda, const void *memory) {
  // The driver fails for what it does not know.
  unsigned type = 0;
  CUresult result = cuda->gpu->driver->cuPointerGetAttribute(
      &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)memory);
  return result == CUDA_SUCCESS && type != CU_MEMORYTYPE_HOST;
}

// Kernels count rows and positions in 32 bits.
static burst_error *check_sizes(const burst_parameter *parameter,
                                const burst_tensor *tensor) {
  const char *what = parameter->is_result ? "result" : "argument";
  if (parameter->kind == BURST_EXTENT &&
      *(const int64_t *)tensor->data > BURST_GPU_LARGEST_EXTENT)
    return INVALID("%s %s: %" PRId64 ", wanted at most %d, as far as kernels "
                   "of GPUs count: split it",
                   what, parameter->name, *(const int64_t *)tensor->data,
                   BURST_GPU_LARGEST_EXTENT);
  for (int32_t d = 0; d < tensor->rank; ++d)
    if (tensor->sizes[d] > BURST_GPU_LARGEST_EXTENT)
      return INVALID("%s %s: size %" PRId64 " in dimension %d, wanted at most "
                     "%d, as far as kernels of GPUs count: split it",
                     what, parameter->name, tensor->sizes[d], d,
                     BURST_GPU_LARGEST_EXTENT);
  return NULL;
}

static burst_error *check_value(const burst_cuda *cuda,
                                const burst_parameter *parameter,
                                const burst_tensor *tensor) {
  burst_error *error = check_sizes(parameter, tensor);
  if (error || parameter->kind != BURST_TENSOR || !tensor->data)
    return error;
  bool on_gpu = is_on_gpu(cuda, tensor->data);
  if (on_gpu == !parameter->is_host)
    return NULL;
  return INVALID("%s %s: memory of %s, wanted that of %s: copy it there",
                 parameter->is_result ? "result" : "argument", parameter->name,
                 on_gpu ? "a GPU" : "the host", on_gpu ? "the host" : "a GPU");
}

burst_error *burst_cuda_check_values(const burst_cuda *cuda,
                                     const burst_image *image,
                                     const burst_tensor *values) {
  CUcontext before;
  burst_error *error = burst_gpu_enter(cuda->gpu, &before);
  if (error)
    return error;
  for (int32_t i = 0; i < image->num_parameters && !error; ++i)
    error = check_value(cuda, &image->parameters[i], &values[i]);
  burst_gpu_leave(cuda->gpu, before);
  return error;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

CUstreamCaptureMode burst_cuda_relax(const burst_cuda *cuda) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  cuda->gpu->driver->cuThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

void burst_cuda_unrelax(const burst_cuda *cuda, CUstreamCaptureMode before) {
  cuda->gpu->driver->cuThreadExchangeStreamCaptureMode(&before);
}

static burst_error *load(burst_cuda *cuda, burst_program *program,
                         burst_cuda_kernels **kernels) {
  burst_cuda_kernels *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  const burst_image *image = program->image;
  CUstreamCaptureMode mode = burst_cuda_relax(cuda);
  burst_error *error = burst_gpu_module_load(cuda->gpu, image->num_gpu_kernels,
                                             image->gpu_kernels, &made->module);
  burst_cuda_unrelax(cuda, mode);
  if (error) {
    free(made);
    return error;
  }
  burst_program_retain(program);
  made->program = program;
  made->next = cuda->kernels;
  *kernels = cuda->kernels = made;
  return NULL;
}

burst_error *burst_cuda_load(burst_cuda *cuda, burst_program *program,
                             burst_gpu_module **module) {
  pthread_mutex_lock(&cuda->mutex);
  burst_cuda_kernels *kernels = cuda->kernels;
  while (kernels && kernels->program != program)
    kernels = kernels->next;
  burst_error *error = kernels ? NULL : load(cuda, program, &kernels);
  *module = error ? NULL : kernels->module;
  pthread_mutex_unlock(&cuda->mutex);
  return error;
}
