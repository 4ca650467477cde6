//===- Gpu.c - A GPU, its streams and memory ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "runtime/src/cuda/GpuImpl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

burst_error *burst_driver_error(const burst_driver *driver, int ordinal,
                                const char *call, CUresult result) {
  const char *name = NULL, *text = NULL;
  if (driver->cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
    name = "an unknown error";
  if (driver->cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
    text = "no text";
  char location[32] = "";
  if (ordinal >= 0)
    snprintf(location, sizeof(location), "GPU %d", ordinal);
  return burst_error_create(
      result == CUDA_ERROR_OUT_OF_MEMORY ? BURST_OUT_OF_MEMORY : BURST_SYSTEM,
      location, "%s: %s (%d): %s", call, name, (int)result, text);
}

burst_error *burst_gpu_enter(burst_gpu *gpu, CUcontext *before) {
  const burst_driver *driver = gpu->driver;
  CUresult result = driver->cuCtxGetCurrent(before);
  if (result == CUDA_SUCCESS && *before != gpu->context)
    result = driver->cuCtxSetCurrent(gpu->context);
  if (result == CUDA_SUCCESS)
    return NULL;
  return burst_driver_error(driver, gpu->properties.ordinal, "cuCtxSetCurrent",
                            result);
}

void burst_gpu_leave(burst_gpu *gpu, CUcontext before) {
  if (before != gpu->context)
    gpu->driver->cuCtxSetCurrent(before);
}

static burst_error *initialize(const burst_driver **driver) {
  burst_error *error = burst_driver_table(driver);
  if (error)
    return error;
  CUresult result = (*driver)->cuInit(0);
  return result == CUDA_SUCCESS
             ? NULL
             : burst_driver_error(*driver, -1, "cuInit", result);
}

burst_error *burst_gpu_count(int *count) {
  const burst_driver *driver;
  *count = 0;
  burst_error *error = initialize(&driver);
  if (error)
    return error;
  CUresult result = driver->cuDeviceGetCount(count);
  return result == CUDA_SUCCESS
             ? NULL
             : burst_driver_error(driver, -1, "cuDeviceGetCount", result);
}

static burst_error *read_properties(burst_gpu *gpu) {
  burst_gpu_properties *read = &gpu->properties;
  int tensor_maps = 0, memory_pools = 0;
  const struct {
    CUdevice_attribute attribute;
    int *value;
  } attributes[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &read->major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &read->minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &read->multiprocessors},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       &read->shared_bytes},
      {CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, &tensor_maps},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &memory_pools},
  };
  for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); ++i) {
    CUresult result = gpu->driver->cuDeviceGetAttribute(
        attributes[i].value, attributes[i].attribute, gpu->device);
    if (result != CUDA_SUCCESS)
      return burst_driver_error(gpu->driver, read->ordinal,
                                "cuDeviceGetAttribute", result);
  }
  read->tensor_maps = tensor_maps;
  CUresult result =
      gpu->driver->cuDeviceGetName(read->name, sizeof(read->name), gpu->device);
  if (result != CUDA_SUCCESS)
    return burst_driver_error(gpu->driver, read->ordinal, "cuDeviceGetName",
                              result);
  if (!memory_pools)
    return burst_error_create(BURST_SYSTEM, "",
                              "GPU %d: %s cannot allocate memory in the order "
                              "of a stream",
                              read->ordinal, read->name);
  return NULL;
}

// What is freed stays in the pool for the next run instead of going back to the
// system whenever someone waits for a GPU. The pool that the process shares
// would keep the memory of others too.
static burst_error *make_pool(burst_gpu *gpu) {
  const burst_driver *driver = gpu->driver;
  CUmemPoolProps properties = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
      .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
      .location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu->device}};
  CUresult result = driver->cuMemPoolCreate(&gpu->pool, &properties);
  if (result != CUDA_SUCCESS)
    return burst_driver_error(driver, gpu->properties.ordinal,
                              "cuMemPoolCreate", result);
  uint64_t threshold = UINT64_MAX;
  result = driver->cuMemPoolSetAttribute(
      gpu->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
  if (result == CUDA_SUCCESS)
    return NULL;
  driver->cuMemPoolDestroy(gpu->pool);
  return burst_driver_error(driver, gpu->properties.ordinal,
                            "cuMemPoolSetAttribute", result);
}

burst_error *burst_gpu_create(int ordinal, burst_gpu **gpu) {
  const burst_driver *driver;
  int count;
  *gpu = NULL;
  burst_error *error = burst_gpu_count(&count);
  if (!error)
    error = burst_driver_table(&driver);
  if (error)
    return error;
  if (ordinal < 0 || ordinal >= count)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "GPU %d: there are %d, counted from 0", ordinal,
                              count);
  burst_gpu *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  made->driver = driver;
  made->properties.ordinal = ordinal;
  CUresult result = driver->cuDeviceGet(&made->device, ordinal);
  if (result != CUDA_SUCCESS)
    error = burst_driver_error(driver, ordinal, "cuDeviceGet", result);
  if (!error)
    error = read_properties(made);
  if (!error) {
    result = driver->cuDevicePrimaryCtxRetain(&made->context, made->device);
    if (result != CUDA_SUCCESS)
      error = burst_driver_error(driver, ordinal, "cuDevicePrimaryCtxRetain",
                                 result);
  }
  if (!error) {
    error = make_pool(made);
    if (error)
      driver->cuDevicePrimaryCtxRelease_v2(made->device);
  }
  if (error)
    free(made);
  else
    *gpu = made;
  return error;
}

void burst_gpu_destroy(burst_gpu *gpu) {
  if (!gpu)
    return;
  gpu->driver->cuMemPoolDestroy(gpu->pool);
  gpu->driver->cuDevicePrimaryCtxRelease_v2(gpu->device);
  free(gpu);
}

const burst_gpu_properties *burst_gpu_get_properties(const burst_gpu *gpu) {
  return &gpu->properties;
}

// Calls a function of the driver in the context of a GPU, and returns the
// error.
#define RETURN_CALL(gpu, function, ...)                                        \
  do {                                                                         \
    CUcontext before_call;                                                     \
    burst_error *call_error = burst_gpu_enter(gpu, &before_call);              \
    if (call_error)                                                            \
      return call_error;                                                       \
    CUresult call_result = (gpu)->driver->function(__VA_ARGS__);               \
    burst_gpu_leave(gpu, before_call);                                         \
    return call_result == CUDA_SUCCESS                                         \
               ? NULL                                                          \
               : burst_driver_error((gpu)->driver, (gpu)->properties.ordinal,  \
                                    #function, call_result);                   \
  } while (0)

burst_error *burst_gpu_stream_create(burst_gpu *gpu, CUstream *stream) {
  *stream = NULL;
  RETURN_CALL(gpu, cuStreamCreate, stream, CU_STREAM_NON_BLOCKING);
}

void burst_gpu_stream_destroy(burst_gpu *gpu, CUstream stream) {
  if (stream)
    gpu->driver->cuStreamDestroy_v2(stream);
}

burst_error *burst_gpu_synchronize(burst_gpu *gpu, CUstream stream) {
  RETURN_CALL(gpu, cuStreamSynchronize, stream);
}

burst_error *burst_gpu_event_create(burst_gpu *gpu, bool timed,
                                    CUevent *event) {
  *event = NULL;
  RETURN_CALL(gpu, cuEventCreate, event,
              timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
}

void burst_gpu_event_destroy(burst_gpu *gpu, CUevent event) {
  if (event)
    gpu->driver->cuEventDestroy_v2(event);
}

burst_error *burst_gpu_record(burst_gpu *gpu, CUevent event, CUstream stream) {
  RETURN_CALL(gpu, cuEventRecord, event, stream);
}

burst_error *burst_gpu_wait(burst_gpu *gpu, CUstream stream, CUevent event) {
  RETURN_CALL(gpu, cuStreamWaitEvent, stream, event, 0);
}

burst_error *burst_gpu_is_done(burst_gpu *gpu, CUevent event, bool *done) {
  CUcontext before;
  *done = false;
  burst_error *error = burst_gpu_enter(gpu, &before);
  if (error)
    return error;
  CUresult result = gpu->driver->cuEventQuery(event);
  burst_gpu_leave(gpu, before);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
    return burst_driver_error(gpu->driver, gpu->properties.ordinal,
                              "cuEventQuery", result);
  *done = result == CUDA_SUCCESS;
  return NULL;
}

burst_error *burst_gpu_elapsed(burst_gpu *gpu, CUevent begin, CUevent end,
                               double *seconds) {
  float milliseconds = 0;
  CUresult result = gpu->driver->cuEventElapsedTime(&milliseconds, begin, end);
  *seconds = (double)milliseconds / 1e3;
  return result == CUDA_SUCCESS
             ? NULL
             : burst_driver_error(gpu->driver, gpu->properties.ordinal,
                                  "cuEventElapsedTime", result);
}

burst_error *burst_gpu_allocate(burst_gpu *gpu, size_t bytes, CUstream stream,
                                CUdeviceptr *memory) {
  *memory = 0;
  if (bytes == 0)
    return NULL;
  RETURN_CALL(gpu, cuMemAllocFromPoolAsync, memory, bytes, gpu->pool, stream);
}

burst_error *burst_gpu_free(burst_gpu *gpu, CUdeviceptr memory,
                            CUstream stream) {
  if (memory == 0)
    return NULL;
  RETURN_CALL(gpu, cuMemFreeAsync, memory, stream);
}

burst_error *burst_gpu_allocate_shared(burst_gpu *gpu, size_t bytes,
                                       CUdeviceptr *memory) {
  *memory = 0;
  RETURN_CALL(gpu, cuMemAlloc_v2, memory, bytes);
}

burst_error *burst_gpu_free_now(burst_gpu *gpu, CUdeviceptr memory) {
  if (memory == 0)
    return NULL;
  RETURN_CALL(gpu, cuMemFree_v2, memory);
}

burst_error *burst_gpu_fill(burst_gpu *gpu, CUdeviceptr memory,
                            unsigned char value, size_t bytes,
                            CUstream stream) {
  if (bytes == 0)
    return NULL;
  RETURN_CALL(gpu, cuMemsetD8Async, memory, value, bytes, stream);
}

burst_error *burst_gpu_upload(burst_gpu *gpu, CUdeviceptr to, const void *from,
                              size_t bytes, CUstream stream) {
  if (bytes == 0)
    return NULL;
  RETURN_CALL(gpu, cuMemcpyHtoDAsync_v2, to, from, bytes, stream);
}

burst_error *burst_gpu_download(burst_gpu *gpu, void *to, CUdeviceptr from,
                                size_t bytes, CUstream stream) {
  if (bytes == 0)
    return NULL;
  RETURN_CALL(gpu, cuMemcpyDtoHAsync_v2, to, from, bytes, stream);
}

burst_error *burst_gpu_copy(burst_gpu *gpu, CUdeviceptr to, CUdeviceptr from,
                            size_t bytes, CUstream stream) {
  if (bytes == 0)
    return NULL;
  RETURN_CALL(gpu, cuMemcpyDtoDAsync_v2, to, from, bytes, stream);
}

burst_error *burst_gpu_open_peer(burst_gpu *gpu, burst_gpu *peer) {
  uint64_t bit = UINT64_C(1) << (gpu->properties.ordinal % 64);
  if (atomic_load(&peer->readers) & bit)
    return NULL;
  const burst_driver *driver = gpu->driver;
  int can = 0;
  const char *call = "cuDeviceCanAccessPeer";
  CUresult result =
      driver->cuDeviceCanAccessPeer(&can, gpu->device, peer->device);
  CUcontext before;
  burst_error *error = burst_gpu_enter(gpu, &before);
  if (error)
    return error;
  if (result == CUDA_SUCCESS && can) {
    call = "cuCtxEnablePeerAccess";
    result = driver->cuCtxEnablePeerAccess(peer->context, 0);
    if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
      result = CUDA_SUCCESS;
  }
  if (result == CUDA_SUCCESS && can) {
    const CUmemAccessDesc access = {
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu->device},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    call = "cuMemPoolSetAccess";
    result = driver->cuMemPoolSetAccess(peer->pool, &access, 1);
  }
  burst_gpu_leave(gpu, before);
  if (result != CUDA_SUCCESS)
    return burst_driver_error(driver, gpu->properties.ordinal, call, result);
  atomic_fetch_or(&peer->readers, bit);
  return NULL;
}
