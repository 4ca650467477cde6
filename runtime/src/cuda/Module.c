//===- Module.c - Kernels of a GPU ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "burst/internal/hash.h"
#include "runtime/src/cuda/GpuImpl.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct loaded {
  CUmodule module;
  CUfunction function;
} loaded;

struct burst_gpu_module {
  burst_gpu *gpu;
  int64_t count;
  const burst_gpu_kernel *kernels;
  loaded loaded[]; // one per kernel
};

#define INVALID(...) burst_error_create(BURST_INVALID_PROGRAM, "", __VA_ARGS__)

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

// Whether a GPU can launch a kernel.
static burst_error *check(const burst_gpu *gpu,
                          const burst_gpu_kernel *kernel) {
  const char *name = kernel->name;
  burst_error *error = NULL;
  if (kernel->num_parameters < 0 ||
      kernel->num_parameters > BURST_GPU_PARAMETERS)
    return INVALID("kernel %s: %" PRId64 " parameters, wanted 0 to %d", name,
                   kernel->num_parameters, BURST_GPU_PARAMETERS);
  for (int64_t i = 0; i < kernel->num_parameters && !error; ++i) {
    const burst_gpu_parameter *parameter = &kernel->parameters[i];
    if (parameter->map)
      error = burst_gpu_map_check(gpu, kernel, parameter->map);
    else if (parameter->offset < 0 || parameter->bytes < 1 ||
             parameter->bytes > kernel->argument_bytes ||
             parameter->offset > kernel->argument_bytes - parameter->bytes)
      error = INVALID("kernel %s: parameter %" PRId64 " of %" PRId64
                      " bytes at byte %" PRId64 " of %" PRId64,
                      name, i, parameter->bytes, parameter->offset,
                      kernel->argument_bytes);
  }
  if (error)
    return error;
  if (kernel->threads < 1 || kernel->threads > 1024)
    return INVALID("kernel %s: %d threads, wanted 1 to 1024", name,
                   kernel->threads);
  if (kernel->shared_bytes < 0 ||
      kernel->shared_bytes > gpu->properties.shared_bytes)
    return INVALID("kernel %s: %d bytes of shared memory, GPU %d has %d", name,
                   kernel->shared_bytes, gpu->properties.ordinal,
                   gpu->properties.shared_bytes);
  return NULL;
}

// Whether code for an architecture runs on a GPU; see burst_gpu_binary.
static bool fits(const burst_gpu_properties *gpu, const char *architecture) {
  bool is_text = strncmp(architecture, "compute_", 8) == 0;
  if (!is_text && strncmp(architecture, "sm_", 3) != 0)
    return false;
  char *suffix;
  long number = strtol(architecture + (is_text ? 8 : 3), &suffix, 10);
  long major = number / 10, minor = number % 10;
  if (strcmp(suffix, "a") == 0)
    return major == gpu->major && minor == gpu->minor;
  if (*suffix)
    return false;
  if (is_text)
    return number <= gpu->major * 10 + gpu->minor;
  return major == gpu->major && minor <= gpu->minor;
}

static bool is_whole(const burst_gpu_binary *binary) {
  return burst_hash(BURST_HASH_BEGIN, binary->data, (size_t)binary->bytes) ==
         binary->checksum;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

static burst_error *get_function(const burst_gpu *gpu,
                                 const burst_gpu_kernel *kernel,
                                 loaded *loaded) {
  const burst_driver *driver = gpu->driver;
  const char *call = "cuModuleGetFunction";
  CUresult result = driver->cuModuleGetFunction(&loaded->function,
                                                loaded->module, kernel->name);
  if (result == CUDA_ERROR_NOT_FOUND)
    return INVALID("GPU %d: the binary has no kernel %s",
                   gpu->properties.ordinal, kernel->name);
  if (result == CUDA_SUCCESS && kernel->shared_bytes) {
    call = "cuFuncSetAttribute";
    result = driver->cuFuncSetAttribute(
        loaded->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        kernel->shared_bytes);
  }
  if (result == CUDA_SUCCESS)
    return NULL;
  return burst_driver_error(driver, gpu->properties.ordinal, call, result);
}

static burst_error *nothing_fits(const burst_gpu *gpu,
                                 const burst_gpu_kernel *kernel) {
  char list[512] = "";
  size_t length = 0;
  for (int64_t i = 0; i < kernel->num_binaries && length < sizeof(list); ++i)
    length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s",
                               i ? ", " : "", kernel->binaries[i].architecture);
  return INVALID("kernel %s: GPU %d has compute capability %d.%d, there are "
                 "binaries for: %s",
                 kernel->name, gpu->properties.ordinal, gpu->properties.major,
                 gpu->properties.minor, *list ? list : "none");
}

#define CUBINS "BURST_GPU_CUBINS"

// Reads a whole file to memory that the caller frees; NULL where there is none.
static burst_error *read_file(const char *path, void **data) {
  *data = NULL;
  FILE *file = fopen(path, "rb");
  if (!file && errno == ENOENT)
    return NULL;
  long bytes = -1;
  if (file && fseek(file, 0, SEEK_END) == 0 && (bytes = ftell(file)) > 0)
    *data = calloc(1, (size_t)bytes + 1); // a text ends with a zero
  if (*data && (fseek(file, 0, SEEK_SET) != 0 ||
                fread(*data, 1, (size_t)bytes, file) != (size_t)bytes)) {
    free(*data);
    *data = NULL;
  }
  burst_error *error =
      *data ? NULL
            : INVALID("%s (of " CUBINS "): cannot be read: %s", path,
                      bytes == 0 ? "it is empty" : strerror(errno));
  if (file)
    fclose(file);
  return error;
}

// Code of a kernel that the environment has in place of the program's: the file
// KERNEL.cubin in the directory of BURST_GPU_CUBINS. Kernels that it does not
// have are the program's. A line says that results are of other code.
static burst_error *load_given(const burst_gpu *gpu,
                               const burst_gpu_kernel *kernel, loaded *loaded) {
  const char *directory = getenv(CUBINS);
  if (!directory || !*directory)
    return NULL;
  char path[4096];
  int length =
      snprintf(path, sizeof(path), "%s/%s.cubin", directory, kernel->name);
  if (length < 0 || (size_t)length >= sizeof(path))
    return INVALID(CUBINS ": the path of a kernel has %d bytes, wanted less "
                          "than %zu",
                   length, sizeof(path));
  void *data = NULL;
  burst_error *error = read_file(path, &data);
  if (error || !data)
    return error;
  CUresult result = gpu->driver->cuModuleLoadData(&loaded->module, data);
  free(data); // the driver has a copy
  if (result == CUDA_SUCCESS) {
    fprintf(stderr, "burst: kernel %s is that of %s\n", kernel->name, path);
    return NULL;
  }
  loaded->module = NULL;
  burst_error *refused = burst_driver_error(
      gpu->driver, gpu->properties.ordinal, "cuModuleLoadData", result);
  error = INVALID("%s (of " CUBINS "): %s", path, burst_error_message(refused));
  burst_error_destroy(refused);
  return error;
}

// The driver's word on a binary is known only when it is tried: of a kind of
// GPU that it is too old for, it takes the text at best.
static burst_error *load(const burst_gpu *gpu, const burst_gpu_kernel *kernel,
                         loaded *loaded) {
  burst_error *error = load_given(gpu, kernel, loaded);
  if (error || loaded->module)
    return error ? error : get_function(gpu, kernel, loaded);
  CUresult refused = CUDA_SUCCESS;
  for (int64_t i = 0; i < kernel->num_binaries; ++i) {
    const burst_gpu_binary *binary = &kernel->binaries[i];
    if (!fits(&gpu->properties, binary->architecture))
      continue;
    if (!is_whole(binary))
      return INVALID("kernel %s: the binary for %s is damaged: its checksum is "
                     "not %016" PRIx64,
                     kernel->name, binary->architecture, binary->checksum);
    CUresult result =
        gpu->driver->cuModuleLoadData(&loaded->module, binary->data);
    if (result == CUDA_SUCCESS)
      return get_function(gpu, kernel, loaded);
    loaded->module = NULL;
    if (refused == CUDA_SUCCESS)
      refused = result;
  }
  return refused == CUDA_SUCCESS
             ? nothing_fits(gpu, kernel)
             : burst_driver_error(gpu->driver, gpu->properties.ordinal,
                                  "cuModuleLoadData", refused);
}

burst_error *burst_gpu_module_load(burst_gpu *gpu, int64_t count,
                                   const burst_gpu_kernel *kernels,
                                   burst_gpu_module **module) {
  *module = NULL;
  burst_error *error = NULL;
  for (int64_t i = 0; i < count && !error; ++i)
    error = check(gpu, &kernels[i]);
  if (error)
    return error;
  size_t bytes = sizeof(burst_gpu_module) + (size_t)count * sizeof(loaded);
  burst_gpu_module *made = calloc(1, bytes);
  if (!made)
    return burst_error_no_memory(bytes);
  made->gpu = gpu;
  made->count = count;
  made->kernels = kernels;
  CUcontext before;
  error = burst_gpu_enter(gpu, &before);
  if (error) {
    free(made);
    return error;
  }
  for (int64_t i = 0; i < count && !error; ++i)
    error = load(gpu, &kernels[i], &made->loaded[i]);
  burst_gpu_leave(gpu, before);
  if (error)
    burst_gpu_module_unload(made);
  else
    *module = made;
  return error;
}

void burst_gpu_module_unload(burst_gpu_module *module) {
  if (!module)
    return;
  CUcontext before;
  burst_error *error = burst_gpu_enter(module->gpu, &before);
  for (int64_t i = 0; i < module->count && !error; ++i)
    if (module->loaded[i].module)
      module->gpu->driver->cuModuleUnload(module->loaded[i].module);
  if (!error)
    burst_gpu_leave(module->gpu, before);
  burst_error_destroy(error);
  free(module);
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

static burst_error *launch(const burst_gpu_module *module, int64_t kernel,
                           int64_t blocks, const void *arguments,
                           CUstream stream) {
  burst_gpu *gpu = module->gpu;
  const burst_gpu_kernel *launched = &module->kernels[kernel];
  // The driver copies what these point to.
  void *parameters[BURST_GPU_PARAMETERS];
  CUtensorMap maps[BURST_GPU_PARAMETERS];
  for (int64_t i = 0; i < launched->num_parameters; ++i) {
    const burst_gpu_parameter *parameter = &launched->parameters[i];
    parameters[i] = (char *)arguments + parameter->offset;
    if (!parameter->map)
      continue;
    parameters[i] = &maps[i];
    burst_error *error = burst_gpu_map_encode(gpu, launched, parameter->map,
                                              arguments, &maps[i]);
    if (error)
      return error;
  }
  CUlaunchConfig config = {.gridDimX = (unsigned)blocks,
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = (unsigned)launched->threads,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .sharedMemBytes = (unsigned)launched->shared_bytes,
                           .hStream = stream};
  CUcontext before;
  burst_error *error = burst_gpu_enter(gpu, &before);
  if (error)
    return error;
  CUresult result = gpu->driver->cuLaunchKernelEx(
      &config, module->loaded[kernel].function, parameters, NULL);
  burst_gpu_leave(gpu, before);
  return result == CUDA_SUCCESS
             ? NULL
             : burst_driver_error(gpu->driver, gpu->properties.ordinal,
                                  "cuLaunchKernelEx", result);
}

burst_error *burst_gpu_launch(burst_gpu_module *module, int64_t kernel,
                              int64_t blocks, const void *arguments,
                              CUstream stream) {
  if (kernel < 0 || kernel >= module->count)
    return burst_error_create(BURST_PROGRAM_FAULT, "",
                              "kernel %" PRId64 ": there are %" PRId64
                              ", counted from 0",
                              kernel, module->count);
  const char *name = module->kernels[kernel].name;
  if (blocks < 0 || blocks > INT_MAX)
    return burst_error_create(BURST_PROGRAM_FAULT, "",
                              "kernel %s: %" PRId64 " blocks, wanted 0 to %d",
                              name, blocks, INT_MAX);
  if (blocks == 0)
    return NULL; // nothing to do is no error, but one for the driver
  burst_error *error = launch(module, kernel, blocks, arguments, stream);
  if (!error)
    return NULL;
  burst_error *named = burst_error_create(
      burst_error_code(error), "", "kernel %s of %" PRId64 " blocks: %s", name,
      blocks, burst_error_message(error));
  burst_error_destroy(error);
  return named;
}
