//===- Driver.cpp - Devices and kernels of the emulated driver ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

using namespace burst;
using namespace burst::standins;

struct CUfunc_st {
  CUmodule module = nullptr; // that owns it
  std::string name;
  emulator::KernelShape shape;
  int sharedBytes = 48 << 10; // the most that a launch may ask for
};

struct CUmod_st {
  CUcontext context = nullptr;
  emulator::Module module;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

namespace {
struct ErrorText {
  CUresult result;
  const char *name, *text;
};
} // namespace
static constexpr ErrorText errorTexts[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED",
     "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE",
     "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE",
     "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE",
     "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT",
     "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {peerAccessUnsupported, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {invalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE",
     "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
     "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {alreadyRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {notRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {misalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED",
     "unspecified launch failure"},
    {notSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {captureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {captureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {captureMerge, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would merge two captures"},
    {captureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not initiated in this stream"},
    {captureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capturing stream has unjoined work"},
    {captureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {capturedEvent, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing "
     "stream"},
};

static const ErrorText *find(CUresult result) {
  for (const ErrorText &entry : errorTexts)
    if (entry.result == result)
      return &entry;
  return nullptr;
}

CUresult cuGetErrorName(CUresult result, const char **name) {
  const ErrorText *found = find(result);
  *name = found ? found->name : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult result, const char **text) {
  const ErrorText *found = find(result);
  *text = found ? found->text : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

CUresult cuInit(unsigned int flags) {
  ENTER(Call::Nothing);
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (gpus.contexts.empty())
    return CUDA_ERROR_NO_DEVICE;
  gpus.isInitialised = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
  ENTER(Call::Nothing);
  *version = gpus.options.driverVersion;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  ENTER(Call::Initialised);
  *count = int(gpus.contexts.size());
  return CUDA_SUCCESS;
}

static bool exists(const Gpus &gpus, CUdevice device) {
  return device >= 0 && size_t(device) < gpus.contexts.size();
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER(Call::Initialised);
  if (!exists(gpus, ordinal))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
  ENTER(Call::Initialised);
  if (!exists(gpus, device))
    return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, size_t(bytes), "emulated sm_%d", gpus.options.capability);
  return CUDA_SUCCESS;
}

/// What a block may have of the shared memory of a multiprocessor.
static int sharedBytes(int capability) {
  switch (capability) {
  case 80:
  case 87:
    return 163 << 10;
  case 86:
  case 89:
  case 120:
    return 99 << 10;
  default:
    return 227 << 10;
  }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                              CUdevice device) {
  ENTER(Call::Initialised);
  if (!exists(gpus, device))
    return CUDA_ERROR_INVALID_DEVICE;
  int capability = gpus.options.capability;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = capability < 90 ? 108 : 132;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = capability / 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = capability % 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = sharedBytes(capability);
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    *value = 1;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
    *value = capability >= 90;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  ENTER(Call::Initialised);
  if (!exists(gpus, device))
    return CUDA_ERROR_INVALID_DEVICE;
  *bytes = gpus.options.memory;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ENTER(Call::Initialised);
  if (!exists(gpus, device))
    return CUDA_ERROR_INVALID_DEVICE;
  *context = &gpus.contexts[size_t(device)];
  ++(*context)->held;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER(Call::Initialised);
  if (!exists(gpus, device) || gpus.contexts[size_t(device)].held == 0)
    return CUDA_ERROR_INVALID_DEVICE;
  CUctx_st &context = gpus.contexts[size_t(device)];
  if (--context.held)
    return CUDA_SUCCESS;
  // What can run still does, so that its faults are found.
  gpus.drain(&context);
  context.sticky = CUDA_SUCCESS;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  ENTER(Call::Initialised);
  currentContext = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  ENTER(Call::Initialised);
  *context = currentContext;
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  ENTER(Call::Initialised);
  if (!exists(gpus, device) || !exists(gpus, peer))
    return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  ENTER();
  if (flags || !peer || peer == currentContext)
    return CUDA_ERROR_INVALID_VALUE;
  return currentContext->peers.insert(peer->ordinal).second
             ? CUDA_SUCCESS
             : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Whether PTX for ".target sm_90a" runs on a device.
static bool fits(std::string_view text, int capability) {
  size_t at = text.find(".target sm_");
  if (at == std::string_view::npos)
    return false;
  at += strlen(".target sm_");
  auto target = int(strtol(text.data() + at, nullptr, 10));
  at = text.find_first_not_of("0123456789", at);
  bool isExact = at != std::string_view::npos && text[at] == 'a';
  return isExact ? target == capability : target <= capability;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  ENTER();
  static constexpr unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
  if (memcmp(image, "\177ELF", 4) == 0 || memcmp(image, fatbin, 4) == 0)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  std::string_view text = static_cast<const char *>(image);
  if (!fits(text, gpus.options.capability))
    return invalidPtx;
  auto made = std::make_shared<CUmod_st>();
  made->context = currentContext;
  if (auto failure = made->module.parse(text)) {
    fprintf(stderr, "emulated GPU %d: %s\n", currentContext->ordinal,
            failure->str().c_str());
    return invalidPtx;
  }
  *module = made.get();
  gpus.modules[*module] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  ENTER();
  return gpus.modules.erase(module) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name) {
  ENTER();
  if (!gpus.modules.contains(module))
    return CUDA_ERROR_INVALID_HANDLE;
  auto shape = module->module.shape(name);
  if (!shape)
    return CUDA_ERROR_NOT_FOUND;
  std::unique_ptr<CUfunc_st> &made = module->functions[name];
  if (!made) {
    made = std::make_unique<CUfunc_st>();
    made->module = module;
    made->name = name;
    made->shape = *shape;
  }
  *function = made.get();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                            CUfunction function) {
  ENTER();
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = int(function->shape.staticShared);
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = int(function->shape.local);
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = 64; // what no emulator of PTX knows
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = function->sharedBytes;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                            int value) {
  ENTER();
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
      value < 0 ||
      value + int(function->shape.staticShared) >
          sharedBytes(gpus.options.capability))
    return CUDA_ERROR_INVALID_VALUE;
  function->sharedBytes = value;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                     CUfunction function,
                                                     int threads,
                                                     size_t bytes) {
  ENTER();
  if (threads < 1 || threads > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  size_t shared = bytes + function->shape.staticShared + 1024;
  *blocks = std::min(
      {32, 2048 / ((threads + 31) / 32 * 32),
       int((sharedBytes(gpus.options.capability) + 1024) / int(shared))});
  return CUDA_SUCCESS;
}

static CUresult resultOf(emulator::FailureKind kind) {
  switch (kind) {
  case emulator::FailureKind::OutOfBounds:
  case emulator::FailureKind::ReadOnly:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case emulator::FailureKind::Misaligned:
    return misalignedAddress;
  default:
    return CUDA_ERROR_LAUNCH_FAILED;
  }
}

namespace {
struct Launch {
  std::shared_ptr<CUmod_st> module;
  std::string kernel;
  emulator::Dim3 grid, block;
  size_t sharedBytes;
  emulator::Arguments arguments;
};
} // namespace

/// Says what of each buffer a kernel has read or written.
static void touch(Gpus &gpus, const Operation &now,
                  const emulator::Touched &touched) {
  CUcontext context = now.stream->context;
  const Allocation *allocation = gpus.findAllocation(touched.base);
  if (allocation->freed) { // while it ran: before, it would have no address
    gpus.report(context, CUDA_ERROR_ILLEGAL_ADDRESS,
                fmt::format("use after free: {} uses {}\n  which was freed "
                            "by {}",
                            now.step->what, allocation->name,
                            allocation->freed->what));
    return;
  }
  const std::set<int> &peers =
      allocation->pool ? allocation->pool->peers : context->peers;
  int wanted = allocation->pool ? context->ordinal : allocation->device;
  if (allocation->device != context->ordinal && !peers.contains(wanted)) {
    gpus.report(context, CUDA_ERROR_ILLEGAL_ADDRESS,
                fmt::format("no peer access: {} uses {}", now.step->what,
                            allocation->name));
    return;
  }
  // A byte that is read and written is written.
  for (unsigned shift : {4U, 0U}) {
    Range range;
    bool isGood = true;
    auto flush = [&] {
      if (isGood && range.begin < range.end)
        isGood = gpus.touchOrdered(now, *allocation, range, shift == 4);
    };
    for (size_t cell = 0; cell < touched.masks.size(); ++cell) {
      unsigned mask = touched.masks[cell];
      if (!mask)
        continue;
      mask = shift ? mask >> 4 : mask & ~(mask >> 4) & 0xf;
      for (unsigned byte = 0; byte < 4; ++byte) {
        if (!(mask >> byte & 1))
          continue;
        uint64_t at = touched.base + 4 * cell + byte;
        if (range.end != at) {
          flush();
          range.begin = at;
        }
        range.end = at + 1;
      }
    }
    flush();
    if (!isGood)
      return;
  }
}

static void run(Gpus &gpus, const Launch &launch, const Operation &now) {
  emulator::Options options;
  if (gpus.options.seed) {
    options.seed = gpus.options.seed + now.number;
    options.lateness = emulator::Lateness::Random;
  }
  options.races = gpus.options.races;
  options.footprint = true;
  emulator::Outcome outcome = gpus.run([&] {
    return launch.module->module.launch(launch.kernel, launch.grid,
                                        launch.block, launch.sharedBytes,
                                        launch.arguments, gpus.memory, options);
  });
  for (const emulator::Touched &touched : outcome.touched)
    touch(gpus, now, touched);
  if (!outcome.failure)
    return;
  std::string text =
      fmt::format("{}: {}", now.step->what, outcome.failure->str());
  const Allocation *allocation = gpus.findAllocation(outcome.failure->address);
  if (allocation && allocation->freed)
    text += fmt::format("\n  in {}, which was freed by {}", allocation->name,
                        allocation->freed->what);
  gpus.report(now.stream->context, resultOf(outcome.failure->kind), text);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                          void **parameters, void **extra) {
  ENTER();
  if (extra)
    return notSupported;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute &attribute = config->attrs[i];
    // The emulator has no clusters of more than one block.
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
        attribute.value.clusterDim.x * attribute.value.clusterDim.y *
                attribute.value.clusterDim.z !=
            1)
      return notSupported;
  }
  emulator::Dim3 grid{config->gridDimX, config->gridDimY, config->gridDimZ},
      block{config->blockDimX, config->blockDimY, config->blockDimZ};
  if (grid.volume() == 0 || grid.y > 65535 || grid.z > 65535 ||
      block.volume() == 0 || block.volume() > 1024 || block.z > 64 ||
      config->sharedMemBytes > unsigned(function->sharedBytes))
    return CUDA_ERROR_INVALID_VALUE;
  Launch launch{gpus.modules.at(function->module),
                function->name,
                grid,
                block,
                config->sharedMemBytes,
                {}};
  for (size_t i = 0; i < function->shape.parameters.size(); ++i) {
    auto [offset, bytes] = function->shape.parameters[i];
    launch.arguments.data.resize(offset + bytes);
    memcpy(launch.arguments.data.data() + offset, parameters[i], bytes);
  }
  Operation operation{.what = "kernel " + function->name};
  operation.run = [launch = std::move(launch), &gpus](Operation &now) {
    run(gpus, launch, now);
  };
  return call.put(config->hStream, std::move(operation));
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

static unsigned bytesOf(CUtensorMapDataType type) {
  switch (type) {
  case CU_TENSOR_MAP_DATA_TYPE_UINT8:
    return 1;
  case CU_TENSOR_MAP_DATA_TYPE_UINT16:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
  case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
    return 2;
  case CU_TENSOR_MAP_DATA_TYPE_INT32:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    return 4;
  case CU_TENSOR_MAP_DATA_TYPE_INT64:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
    return 8;
  }
  return 0;
}

CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *address,
    const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
    const uint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  ENTER(Call::Initialised);
  if (gpus.options.capability < 90)
    return notSupported;
  emulator::TensorMap made;
  made.rank = uint8_t(rank);
  made.elementBytes = uint8_t(bytesOf(type));
  made.swizzle = uint8_t(swizzle);
  made.address = reinterpret_cast<uint64_t>(address);
  if (rank < 1 || rank > 5 || made.elementBytes == 0 ||
      reinterpret_cast<uintptr_t>(map) % 64 || made.address % 16 ||
      interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
      swizzle > CU_TENSOR_MAP_SWIZZLE_128B ||
      fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
      promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
    return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] == 0 || sizes[d] > uint64_t(1) << 32 || box[d] == 0 ||
        box[d] > 256 || elementStrides[d] != 1 ||
        (d && (strides[d - 1] % 16 || strides[d - 1] >= uint64_t(1) << 40)))
      return CUDA_ERROR_INVALID_VALUE;
    // The emulator's sizes end one before the driver's.
    made.sizes[d] = uint32_t(std::min<uint64_t>(sizes[d], UINT32_MAX));
    made.box[d] = uint16_t(box[d]);
    if (d)
      made.strides[d - 1] = strides[d - 1];
  }
  uint32_t rowBytes = box[0] * made.elementBytes;
  if (rowBytes % 16 ||
      (swizzle && rowBytes > 16U << static_cast<unsigned>(swizzle)))
    return CUDA_ERROR_INVALID_VALUE;
  memcpy(map, &made, sizeof(made));
  return CUDA_SUCCESS;
}
