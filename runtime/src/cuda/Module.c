//===- Module.c - Kernels of a GPU ----------------------------------------===//

#include "GpuImpl.h"

#include "../Error.h"

#include <stdlib.h>

struct burst_gpu_module {
  burst_gpu *gpu;
  CUmodule module;
  int count;
  const burst_gpu_signature *signatures;
  CUfunction functions[]; // of the signatures
};

#define INVALID(...) burst_error_create(BURST_INVALID_PROGRAM, "", __VA_ARGS__)

// Whether a GPU can launch what a signature tells of.
static burst_error *check(const burst_gpu *gpu,
                          const burst_gpu_signature *signature) {
  if (signature->num_parameters < 0 ||
      signature->num_parameters > BURST_GPU_PARAMETERS)
    return INVALID("kernel %s: %d parameters, wanted 0 to %d", signature->name,
                   signature->num_parameters, BURST_GPU_PARAMETERS);
  for (int i = 0; i < signature->num_parameters; ++i) {
    const burst_gpu_operand *parameter = &signature->parameters[i];
    if (parameter->offset > signature->argument_bytes ||
        parameter->bytes > signature->argument_bytes - parameter->offset)
      return INVALID("kernel %s: parameter %d ends at byte %zu of %zu",
                     signature->name, i, parameter->offset + parameter->bytes,
                     signature->argument_bytes);
  }
  if (signature->threads < 1 || signature->threads > 1024)
    return INVALID("kernel %s: %u threads, wanted 1 to 1024", signature->name,
                   signature->threads);
  if (signature->shared_bytes > (unsigned)gpu->properties.shared_bytes)
    return INVALID("kernel %s: %u bytes of shared memory, GPU %d has %d",
                   signature->name, signature->shared_bytes,
                   gpu->properties.ordinal, gpu->properties.shared_bytes);
  if (signature->cluster > 1 && gpu->properties.major < 9)
    return INVALID("kernel %s: clusters of %u blocks, GPU %d has compute "
                   "capability %d.%d, wanted 9.0",
                   signature->name, signature->cluster, gpu->properties.ordinal,
                   gpu->properties.major, gpu->properties.minor);
  return NULL;
}

static burst_error *get_function(burst_gpu *gpu, CUmodule module,
                                 const burst_gpu_signature *signature,
                                 CUfunction *function) {
  const burst_driver *driver = gpu->driver;
  const char *call = "cuModuleGetFunction";
  CUresult result =
      driver->cuModuleGetFunction(function, module, signature->name);
  if (result == CUDA_ERROR_NOT_FOUND)
    return INVALID("GPU %d: the image has no kernel %s",
                   gpu->properties.ordinal, signature->name);
  if (result == CUDA_SUCCESS && signature->shared_bytes) {
    call = "cuFuncSetAttribute";
    result = driver->cuFuncSetAttribute(
        *function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        (int)signature->shared_bytes);
  }
  if (result == CUDA_SUCCESS)
    return NULL;
  return burst_driver_error(driver, gpu->properties.ordinal, call, result);
}

// In the context of the GPU.
static burst_error *load(burst_gpu_module *made, const void *image) {
  burst_gpu *gpu = made->gpu;
  CUresult result = gpu->driver->cuModuleLoadData(&made->module, image);
  if (result != CUDA_SUCCESS)
    return burst_driver_error(gpu->driver, gpu->properties.ordinal,
                              "cuModuleLoadData", result);
  burst_error *error = NULL;
  for (int i = 0; i < made->count && !error; ++i)
    error = get_function(gpu, made->module, &made->signatures[i],
                         &made->functions[i]);
  if (error)
    gpu->driver->cuModuleUnload(made->module);
  return error;
}

burst_error *burst_gpu_module_load(burst_gpu *gpu, const void *image, int count,
                                   const burst_gpu_signature *signatures,
                                   burst_gpu_module **module) {
  *module = NULL;
  burst_error *error = NULL;
  for (int i = 0; i < count && !error; ++i)
    error = check(gpu, &signatures[i]);
  if (error)
    return error;
  size_t bytes = sizeof(burst_gpu_module) + (size_t)count * sizeof(CUfunction);
  burst_gpu_module *made = calloc(1, bytes);
  if (!made)
    return burst_error_no_memory(bytes);
  made->gpu = gpu;
  made->count = count;
  made->signatures = signatures;
  CUcontext before;
  error = burst_gpu_enter(gpu, &before);
  if (!error) {
    error = load(made, image);
    burst_gpu_leave(gpu, before);
  }
  if (error)
    free(made);
  else
    *module = made;
  return error;
}

void burst_gpu_module_unload(burst_gpu_module *module) {
  if (!module)
    return;
  CUcontext before;
  burst_error *error = burst_gpu_enter(module->gpu, &before);
  if (!error) {
    module->gpu->driver->cuModuleUnload(module->module);
    burst_gpu_leave(module->gpu, before);
  }
  burst_error_destroy(error);
  free(module);
}

burst_error *burst_gpu_launch(burst_gpu_module *module, int kernel,
                              const unsigned grid[3], const void *arguments,
                              CUstream stream) {
  burst_gpu *gpu = module->gpu;
  if (kernel < 0 || kernel >= module->count)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "kernel %d: there are %d, counted from 0", kernel,
                              module->count);
  const burst_gpu_signature *signature = &module->signatures[kernel];
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0)
    return NULL; // nothing to do is no error, but one for the driver
  CUlaunchAttribute attributes[2];
  unsigned count = 0;
  if (signature->cluster > 1) {
    attributes[count] =
        (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                            .value.clusterDim = {signature->cluster, 1, 1}};
    ++count;
  }
  if (signature->overlaps) {
    attributes[count] = (CUlaunchAttribute){
        .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        .value.programmaticStreamSerializationAllowed = 1};
    ++count;
  }
  CUlaunchConfig config = {.gridDimX = grid[0],
                           .gridDimY = grid[1],
                           .gridDimZ = grid[2],
                           .blockDimX = signature->threads,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .sharedMemBytes = signature->shared_bytes,
                           .hStream = stream,
                           .attrs = attributes,
                           .numAttrs = count};
  // The driver reads them only.
  void *parameters[BURST_GPU_PARAMETERS];
  for (int i = 0; i < signature->num_parameters; ++i)
    parameters[i] = (char *)arguments + signature->parameters[i].offset;
  CUcontext before;
  burst_error *error = burst_gpu_enter(gpu, &before);
  if (error)
    return error;
  CUresult result = gpu->driver->cuLaunchKernelEx(
      &config, module->functions[kernel], parameters, NULL);
  burst_gpu_leave(gpu, before);
  if (result == CUDA_SUCCESS)
    return NULL;
  error = burst_driver_error(gpu->driver, gpu->properties.ordinal,
                             "cuLaunchKernelEx", result);
  burst_error *named = burst_error_create(
      burst_error_code(error), "", "kernel %s on a grid of %u x %u x %u: %s",
      signature->name, grid[0], grid[1], grid[2], burst_error_message(error));
  burst_error_destroy(error);
  return named;
}
