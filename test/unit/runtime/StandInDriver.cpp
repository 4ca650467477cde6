//===- StandInDriver.cpp - GPUs in this process's memory ------------------===//
#include "StandInDriver.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>

using namespace burst::test;

// The handles of the driver.
struct CUctx_st {
  int ordinal, held;
};

struct CUevent_st {
  bool timed;
  CUstream_st *stream = nullptr; // that recorded it last
  int recorded = 0, done = 0;    // how often
};

struct CUstream_st {
  struct Item {
    std::function<void()> run;
    CUevent_st *record, *wait;
    int number; // of the recording
  };
  std::deque<Item> items;
};

struct Kernel {
  std::vector<size_t> parameterBytes;
  std::function<void(const Launch &)> run;
};

struct CUfunc_st {
  const Kernel *kernel;
  int sharedBytes = 48 << 10;
};

struct CUmod_st {
  std::string image;
  std::map<std::string, CUfunc_st> functions;
};

namespace {
struct State {
  std::vector<int> capabilities;
  std::deque<CUctx_st> contexts;
  std::map<CUdeviceptr, std::string> memory;
  std::map<std::string, Kernel> kernels;
  std::map<std::string, CUresult> failures;
  CUcontext current = nullptr;
  CUresult sticky = CUDA_SUCCESS;
  bool initialized = false;
  int streams = 0, events = 0, modules = 0, pools = 0;
};

State *state;
burst_driver table;

/// What a call returns before it does anything.
CUresult begin(const char *function, bool needsContext = true) {
  auto failure = state->failures.find(function);
  if (failure != state->failures.end()) {
    CUresult result = failure->second;
    state->failures.erase(failure);
    return result;
  }
  if (!state->initialized)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (needsContext && !state->current)
    return CUDA_ERROR_INVALID_CONTEXT;
  return state->sticky;
}

#define BEGIN(...)                                                             \
  if (CUresult early = begin(__VA_ARGS__))                                     \
  return early

char *at(CUdeviceptr memory) { return reinterpret_cast<char *>(memory); }

/// Whether bytes are allocated; if not, the device is lost.
bool touch(CUdeviceptr memory, size_t bytes) {
  auto next = state->memory.upper_bound(memory);
  if (next != state->memory.begin()) {
    auto &[begin, block] = *std::prev(next);
    if (memory - begin <= block.size() &&
        bytes <= block.size() - (memory - begin))
      return true;
  }
  state->sticky = static_cast<CUresult>(700); // CUDA_ERROR_ILLEGAL_ADDRESS
  return false;
}

/// Runs the items of a stream, up to a recording of an event if one is given.
void run(CUstream stream, CUevent until = nullptr, int number = 0) {
  while (!stream->items.empty() && !(until && until->done >= number)) {
    CUstream_st::Item item = std::move(stream->items.front());
    stream->items.pop_front();
    if (item.wait && item.wait->done < item.number)
      run(item.wait->stream, item.wait, item.number);
    if (item.run)
      item.run();
    if (item.record)
      item.record->done = item.number;
  }
}

CUresult push(CUstream stream, std::function<void()> run) {
  stream->items.push_back({std::move(run), nullptr, nullptr, 0});
  return CUDA_SUCCESS;
}

CUresult launch(const CUlaunchConfig *config, CUfunction function,
                void **parameters, void **) {
  BEGIN("cuLaunchKernelEx");
  if (config->sharedMemBytes > static_cast<unsigned>(function->sharedBytes) ||
      config->gridDimX * config->gridDimY * config->gridDimZ == 0)
    return CUDA_ERROR_INVALID_VALUE;
  Launch launch = {
      *config, {config->attrs, config->attrs + config->numAttrs}, {}};
  size_t i = 0;
  for (size_t bytes : function->kernel->parameterBytes)
    launch.parameters.emplace_back(static_cast<char *>(parameters[i++]), bytes);
  return push(config->hStream,
              [launch = std::move(launch), kernel = function->kernel] {
                kernel->run(launch);
              });
}

CUresult getAttribute(int *value, CUdevice_attribute attribute,
                      CUdevice device) {
  BEGIN("cuDeviceGetAttribute", false);
  int capability = state->capabilities.at(device);
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 132;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = capability / 10;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = capability % 10;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = 227 << 10;
    break;
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    *value = 1;
    break;
  case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
    *value = capability >= 90;
    break;
  }
  return CUDA_SUCCESS;
}

void fillDevices() {
  table.cuGetErrorName = [](CUresult result, const char **name) {
    *name = result == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == CUDA_ERROR_INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE"
            : result == CUDA_ERROR_NO_DEVICE     ? "CUDA_ERROR_NO_DEVICE"
            : result == 700                      ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                 : nullptr;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  table.cuGetErrorString = [](CUresult, const char **text) {
    *text = "the stand-in says so";
    return CUDA_SUCCESS;
  };
  table.cuInit = [](unsigned) {
    state->initialized = true;
    BEGIN("cuInit", false);
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetCount = [](int *count) {
    BEGIN("cuDeviceGetCount", false);
    *count = static_cast<int>(state->capabilities.size());
    return CUDA_SUCCESS;
  };
  table.cuDeviceGet = [](CUdevice *device, int ordinal) {
    BEGIN("cuDeviceGet", false);
    *device = ordinal;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetName = [](char *name, int bytes, CUdevice device) {
    BEGIN("cuDeviceGetName", false);
    snprintf(name, static_cast<size_t>(bytes), "stand-in %d", device);
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetAttribute = getAttribute;
  table.cuDevicePrimaryCtxRetain = [](CUcontext *context, CUdevice device) {
    BEGIN("cuDevicePrimaryCtxRetain", false);
    *context = &state->contexts.at(device);
    ++(*context)->held;
    return CUDA_SUCCESS;
  };
  table.cuDevicePrimaryCtxRelease_v2 = [](CUdevice device) {
    --state->contexts.at(device).held;
    return CUDA_SUCCESS;
  };
  table.cuCtxSetCurrent = [](CUcontext context) {
    state->current = context;
    return CUDA_SUCCESS;
  };
  table.cuCtxGetCurrent = [](CUcontext *context) {
    *context = state->current;
    return CUDA_SUCCESS;
  };
}

void fillModules() {
  table.cuModuleLoadData = [](CUmodule *module, const void *image) {
    BEGIN("cuModuleLoadData");
    *module = new CUmod_st{static_cast<const char *>(image), {}};
    ++state->modules;
    return CUDA_SUCCESS;
  };
  table.cuModuleUnload = [](CUmodule module) {
    delete module;
    --state->modules;
    return CUDA_SUCCESS;
  };
  table.cuModuleGetFunction = [](CUfunction *function, CUmodule module,
                                 const char *name) {
    BEGIN("cuModuleGetFunction");
    if (module->image.find(std::string(name) + " ") == std::string::npos)
      return CUDA_ERROR_NOT_FOUND;
    *function = &module->functions[name];
    (*function)->kernel = &state->kernels.at(name);
    return CUDA_SUCCESS;
  };
  table.cuFuncSetAttribute = [](CUfunction function,
                                CUfunction_attribute attribute, int value) {
    BEGIN("cuFuncSetAttribute");
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
      return CUDA_ERROR_INVALID_VALUE;
    function->sharedBytes = value;
    return CUDA_SUCCESS;
  };
  table.cuLaunchKernelEx = launch;
}

void fillMemory() {
  table.cuMemPoolCreate = [](CUmemoryPool *pool, const CUmemPoolProps *) {
    BEGIN("cuMemPoolCreate", false);
    *pool = reinterpret_cast<CUmemoryPool>(&state->pools);
    ++state->pools;
    return CUDA_SUCCESS;
  };
  table.cuMemPoolDestroy = [](CUmemoryPool) {
    --state->pools;
    return CUDA_SUCCESS;
  };
  table.cuMemPoolSetAttribute = [](CUmemoryPool, CUmemPool_attribute, void *) {
    BEGIN("cuMemPoolSetAttribute", false);
    return CUDA_SUCCESS;
  };
  table.cuMemAllocFromPoolAsync = [](CUdeviceptr *memory, size_t bytes,
                                     CUmemoryPool, CUstream) {
    BEGIN("cuMemAllocFromPoolAsync");
    std::string block(bytes, '\xa5');
    // Short strings would move.
    block.reserve(64);
    auto address = reinterpret_cast<CUdeviceptr>(block.data());
    state->memory[address] = std::move(block);
    *memory = address;
    return CUDA_SUCCESS;
  };
  table.cuMemFreeAsync = [](CUdeviceptr memory, CUstream stream) {
    BEGIN("cuMemFreeAsync");
    return push(stream, [=] {
      if (touch(memory, 0))
        state->memory.erase(memory);
    });
  };
  table.cuMemsetD8Async = [](CUdeviceptr memory, unsigned char value,
                             size_t bytes, CUstream stream) {
    BEGIN("cuMemsetD8Async");
    return push(stream, [=] {
      if (touch(memory, bytes))
        memset(at(memory), value, bytes);
    });
  };
  table.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void *from,
                                  size_t bytes, CUstream stream) {
    BEGIN("cuMemcpyHtoDAsync_v2");
    return push(stream, [=] {
      if (touch(to, bytes))
        memcpy(at(to), from, bytes);
    });
  };
  table.cuMemcpyDtoHAsync_v2 = [](void *to, CUdeviceptr from, size_t bytes,
                                  CUstream stream) {
    BEGIN("cuMemcpyDtoHAsync_v2");
    return push(stream, [=] {
      if (touch(from, bytes))
        memcpy(to, at(from), bytes);
    });
  };
  table.cuMemcpyDtoDAsync_v2 = [](CUdeviceptr to, CUdeviceptr from,
                                  size_t bytes, CUstream stream) {
    BEGIN("cuMemcpyDtoDAsync_v2");
    return push(stream, [=] {
      if (touch(to, bytes) && touch(from, bytes))
        memmove(at(to), at(from), bytes);
    });
  };
}

void fillStreams() {
  table.cuStreamCreate = [](CUstream *stream, unsigned flags) {
    BEGIN("cuStreamCreate");
    EXPECT_EQ(flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
    *stream = new CUstream_st;
    ++state->streams;
    return CUDA_SUCCESS;
  };
  table.cuStreamDestroy_v2 = [](CUstream stream) {
    run(stream);
    delete stream;
    --state->streams;
    return CUDA_SUCCESS;
  };
  table.cuStreamSynchronize = [](CUstream stream) {
    BEGIN("cuStreamSynchronize");
    run(stream);
    return state->sticky;
  };
  table.cuStreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
    BEGIN("cuStreamWaitEvent");
    if (event->recorded)
      stream->items.push_back({{}, nullptr, event, event->recorded});
    return CUDA_SUCCESS;
  };
  table.cuEventCreate = [](CUevent *event, unsigned flags) {
    BEGIN("cuEventCreate");
    *event = new CUevent_st{flags == CU_EVENT_DEFAULT};
    ++state->events;
    return CUDA_SUCCESS;
  };
  table.cuEventRecord = [](CUevent event, CUstream stream) {
    BEGIN("cuEventRecord");
    event->stream = stream;
    stream->items.push_back({{}, event, nullptr, ++event->recorded});
    return CUDA_SUCCESS;
  };
  table.cuEventQuery = [](CUevent event) {
    BEGIN("cuEventQuery");
    return event->done == event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  table.cuEventElapsedTime = [](float *milliseconds, CUevent begin,
                                CUevent end) {
    if (!begin->timed || !end->timed)
      return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = 500;
    return CUDA_SUCCESS;
  };
  table.cuEventDestroy_v2 = [](CUevent event) {
    delete event;
    --state->events;
    return CUDA_SUCCESS;
  };
}
} // namespace

StandInDriver::StandInDriver(std::vector<int> capabilities) {
  state = new State;
  state->capabilities = std::move(capabilities);
  for (size_t i = 0; i < state->capabilities.size(); ++i)
    state->contexts.push_back({static_cast<int>(i), 0});
  table = {};
  fillDevices();
  fillModules();
  fillMemory();
  fillStreams();
  burst_driver_stand_in(&table);
}

StandInDriver::~StandInDriver() {
  burst_driver_stand_in(nullptr);
  delete state;
  state = nullptr;
}

void StandInDriver::addKernel(const std::string &name,
                              std::vector<size_t> parameterBytes,
                              std::function<void(const Launch &)> run) {
  state->kernels[name] = {std::move(parameterBytes), std::move(run)};
}

void StandInDriver::fail(const std::string &function, CUresult result) {
  state->failures[function] = result;
}

int StandInDriver::alive() const {
  int count = state->streams + state->events + state->modules + state->pools +
              static_cast<int>(state->memory.size());
  for (const CUctx_st &context : state->contexts)
    count += context.held;
  return count;
}

int StandInDriver::current() const {
  return state->current ? state->current->ordinal : -1;
}
