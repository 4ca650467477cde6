//===- StandInDriver.cpp - GPUs in this process's memory ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StandInDriver.h"

#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>

using namespace burst::test;

burst_gpu_binary burst::test::binaryOf(const char *architecture,
                                       const char *names) {
  auto bytes = static_cast<int64_t>(strlen(names) + 1);
  uint64_t checksum = 0xcbf29ce484222325;
  for (int64_t i = 0; i < bytes; ++i)
    checksum =
        (checksum ^ static_cast<unsigned char>(names[i])) * 0x100000001b3;
  return {architecture, names, bytes, checksum};
}

// The handles of the driver.
struct CUctx_st {
  int ordinal, held;
};

struct CUevent_st {
  bool timed;
  CUstream_st *stream = nullptr; // that recorded it last
  CUgraph_st *graph = nullptr;   // to which that was captured
  int recorded = 0, done = 0;    // how often
  int asked = 0;                 // for which recording
};

/// What was captured, in order, and memory that was allocated meanwhile.
struct CUgraph_st {
  std::vector<std::function<void()>> items;
  std::vector<CUdeviceptr> memory;
  std::vector<CUstream_st *> streams;
};

struct CUgraphExec_st {
  CUgraph_st graph;
};

struct CUstream_st {
  struct Item {
    std::function<void()> run;
    CUevent_st *record, *wait;
    int number; // of the recording
  };
  CUcontext context;
  std::deque<Item> items;
  CUgraph_st *graph = nullptr; // to which it is captured
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
  std::recursive_mutex mutex;
  std::vector<int> capabilities;
  std::deque<CUctx_st> contexts;
  std::map<CUdeviceptr, std::string> memory;
  std::map<std::string, Kernel> kernels;
  std::map<std::string, std::pair<CUresult, int>> failures;
  // Handles stay valid: what is destroyed may still be under way.
  std::deque<CUevent_st> events;
  std::deque<CUstream_st> streams;
  CUresult sticky = CUDA_SUCCESS;
  bool initialized = false, held = false;
  int alive = 0; // but memory and contexts
  int waits = 0, forgotten = -1, astray = 0, version = 13000;
  bool forgetful = false;
};

State *state;
burst_driver table;
thread_local CUcontext current;

/// What a call returns before it does anything.
CUresult begin(const char *function, bool needsContext = true) {
  auto failure = state->failures.find(function);
  if (failure != state->failures.end() && failure->second.second-- == 0) {
    CUresult result = failure->second.first;
    state->failures.erase(failure);
    return result;
  }
  if (!state->initialized)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (needsContext && !current)
    return CUDA_ERROR_INVALID_CONTEXT;
  return state->sticky;
}

#define LOCK std::lock_guard<std::recursive_mutex> lock(state->mutex)
#define BEGIN(...)                                                             \
  LOCK;                                                                        \
  if (CUresult early = begin(__VA_ARGS__))                                     \
  return early

char *at(CUdeviceptr memory) { return reinterpret_cast<char *>(memory); }

/// Where bytes are allocated.
std::map<CUdeviceptr, std::string>::iterator find(CUdeviceptr memory,
                                                  size_t bytes) {
  auto next = state->memory.upper_bound(memory);
  if (next == state->memory.begin())
    return state->memory.end();
  auto place = std::prev(next);
  auto &[begin, block] = *place;
  return memory - begin <= block.size() &&
                 bytes <= block.size() - (memory - begin)
             ? place
             : state->memory.end();
}

/// Whether bytes are allocated; if not, the device is lost.
bool touch(CUdeviceptr memory, size_t bytes) {
  if (find(memory, bytes) != state->memory.end())
    return true;
  ++state->astray;
  if (!state->forgetful)
    state->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
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
  if (stream->graph)
    stream->graph->items.push_back(std::move(run));
  else
    stream->items.push_back({std::move(run), nullptr, nullptr, 0});
  return CUDA_SUCCESS;
}

void capture(CUstream stream, CUgraph graph) {
  EXPECT_TRUE(stream->items.empty());
  if (stream->graph == graph)
    return;
  stream->graph = graph;
  graph->streams.push_back(stream);
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
  case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
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
            : result == CUDA_ERROR_ILLEGAL_ADDRESS
                ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : result == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
                                                 : nullptr;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  table.cuGetErrorString = [](CUresult, const char **text) {
    *text = "the stand-in says so";
    return CUDA_SUCCESS;
  };
  table.cuInit = [](unsigned) {
    LOCK;
    state->initialized = true;
    return begin("cuInit", false);
  };
  table.cuDriverGetVersion = [](int *version) {
    BEGIN("cuDriverGetVersion", false);
    *version = state->version;
    return CUDA_SUCCESS;
  };
  table.cuDeviceCanAccessPeer = [](int *can, CUdevice, CUdevice) {
    BEGIN("cuDeviceCanAccessPeer", false);
    *can = 1;
    return CUDA_SUCCESS;
  };
  table.cuCtxEnablePeerAccess = [](CUcontext, unsigned) {
    BEGIN("cuCtxEnablePeerAccess");
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
    LOCK;
    --state->contexts.at(device).held;
    return CUDA_SUCCESS;
  };
  table.cuCtxSetCurrent = [](CUcontext context) {
    current = context;
    return CUDA_SUCCESS;
  };
  table.cuCtxGetCurrent = [](CUcontext *context) {
    *context = current;
    return CUDA_SUCCESS;
  };
}

void fillModules() {
  table.cuModuleLoadData = [](CUmodule *module, const void *image) {
    BEGIN("cuModuleLoadData");
    if (*static_cast<const char *>(image) == '!') // what the driver refuses
      return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *module = new CUmod_st{static_cast<const char *>(image), {}};
    ++state->alive;
    return CUDA_SUCCESS;
  };
  table.cuModuleUnload = [](CUmodule module) {
    LOCK;
    delete module;
    --state->alive;
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
  table.cuTensorMapEncodeTiled =
      [](CUtensorMap *map, CUtensorMapDataType type, uint32_t rank,
         void *address, const uint64_t *sizes, const uint64_t *strides,
         const uint32_t *box, const uint32_t *, CUtensorMapInterleave,
         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
         CUtensorMapFloatOOBfill) {
        BEGIN("cuTensorMapEncodeTiled", false);
        Map made = {};
        made.address = address;
        made.type = type;
        made.rank = rank;
        made.swizzle = static_cast<uint8_t>(swizzle);
        for (uint32_t i = 0; i < rank; ++i) {
          made.sizes[i] = sizes[i];
          (i < 4 ? made.box[i] : made.lastBox) = static_cast<uint8_t>(box[i]);
          if (i + 1 < rank)
            made.strides[i] = strides[i];
        }
        static_assert(sizeof(made) <= sizeof(*map));
        memcpy(map, &made, sizeof(made));
        return CUDA_SUCCESS;
      };
}

void fillMemory() {
  table.cuMemPoolCreate = [](CUmemoryPool *pool, const CUmemPoolProps *) {
    BEGIN("cuMemPoolCreate", false);
    *pool = reinterpret_cast<CUmemoryPool>(state);
    ++state->alive;
    return CUDA_SUCCESS;
  };
  table.cuMemPoolDestroy = [](CUmemoryPool) {
    LOCK;
    --state->alive;
    return CUDA_SUCCESS;
  };
  table.cuMemPoolSetAttribute = [](CUmemoryPool, CUmemPool_attribute, void *) {
    BEGIN("cuMemPoolSetAttribute", false);
    return CUDA_SUCCESS;
  };
  table.cuMemPoolSetAccess = [](CUmemoryPool, const CUmemAccessDesc *, size_t) {
    BEGIN("cuMemPoolSetAccess");
    return CUDA_SUCCESS;
  };
  table.cuMemAllocFromPoolAsync = [](CUdeviceptr *memory, size_t bytes,
                                     CUmemoryPool, CUstream stream) {
    BEGIN("cuMemAllocFromPoolAsync");
    // Aligned, and to itself what is short.
    size_t room = (bytes / 256 + 2) * 256;
    std::string block(room, '\xa5');
    auto address = reinterpret_cast<CUdeviceptr>(block.data());
    size_t skipped = 256 - address % 256;
    block.resize(skipped + bytes);
    EXPECT_EQ(reinterpret_cast<CUdeviceptr>(block.data()), address);
    *memory = address + skipped;
    state->memory[address] = std::move(block);
    if (stream && stream->graph)
      stream->graph->memory.push_back(*memory);
    return CUDA_SUCCESS;
  };
  table.cuMemFreeAsync = [](CUdeviceptr memory, CUstream stream) {
    BEGIN("cuMemFreeAsync");
    bool captured = stream->graph;
    return push(stream, [=] {
      if (!touch(memory, 0))
        return;
      auto place = find(memory, 0);
      if (captured)
        memset(at(memory), 0xa5, place->first + place->second.size() - memory);
      else
        state->memory.erase(place);
    });
  };
  table.cuMemFree_v2 = [](CUdeviceptr memory) {
    BEGIN("cuMemFree_v2", false);
    state->memory.erase(find(memory, 0));
    return CUDA_SUCCESS;
  };
  table.cuMemAllocHost_v2 = [](void **memory, size_t bytes) {
    BEGIN("cuMemAllocHost_v2");
    *memory = malloc(bytes);
    if (!*memory)
      return CUDA_ERROR_OUT_OF_MEMORY;
    ++state->alive;
    return CUDA_SUCCESS;
  };
  table.cuMemFreeHost = [](void *memory) {
    LOCK;
    free(memory);
    --state->alive;
    return CUDA_SUCCESS;
  };
  table.cuPointerGetAttribute = [](void *value, CUpointer_attribute attribute,
                                   CUdeviceptr memory) {
    BEGIN("cuPointerGetAttribute");
    EXPECT_EQ(attribute, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
    if (find(memory, 0) == state->memory.end())
      return CUDA_ERROR_INVALID_VALUE;
    unsigned type = CU_MEMORYTYPE_DEVICE;
    memcpy(value, &type, sizeof(type));
    return CUDA_SUCCESS;
  };
  table.cuMemcpy2DAsync_v2 = [](const CUDA_MEMCPY2D *given, CUstream stream) {
    BEGIN("cuMemcpy2DAsync_v2");
    if (given->WidthInBytes > given->srcPitch ||
        given->WidthInBytes > given->dstPitch)
      return CUDA_ERROR_INVALID_VALUE;
    return push(stream, [copy = *given] {
      for (size_t y = 0; y < copy.Height; ++y) {
        CUdeviceptr to = copy.dstDevice + y * copy.dstPitch;
        CUdeviceptr from = copy.srcDevice + y * copy.srcPitch;
        if (touch(to, copy.WidthInBytes) && touch(from, copy.WidthInBytes))
          memmove(at(to), at(from), copy.WidthInBytes);
      }
    });
  };
  table.cuMemcpyPeerAsync = [](CUdeviceptr to, CUcontext toContext,
                               CUdeviceptr from, CUcontext fromContext,
                               size_t bytes, CUstream stream) {
    BEGIN("cuMemcpyPeerAsync");
    EXPECT_NE(toContext, fromContext);
    return push(stream, [=] {
      if (touch(to, bytes) && touch(from, bytes))
        memmove(at(to), at(from), bytes);
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
    state->streams.push_back({current, {}, nullptr});
    *stream = &state->streams.back();
    ++state->alive;
    return CUDA_SUCCESS;
  };
  table.cuStreamDestroy_v2 = [](CUstream stream) {
    LOCK;
    if (!state->held)
      run(stream);
    --state->alive;
    return CUDA_SUCCESS;
  };
  table.cuStreamGetCtx = [](CUstream stream, CUcontext *context) {
    BEGIN("cuStreamGetCtx");
    *context = stream->context;
    return CUDA_SUCCESS;
  };
  table.cuStreamSynchronize = [](CUstream stream) {
    BEGIN("cuStreamSynchronize");
    run(stream);
    return state->sticky;
  };
  table.cuStreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
    BEGIN("cuStreamWaitEvent");
    if (state->waits++ == state->forgotten && !event->graph)
      return CUDA_SUCCESS;
    if (event->graph) {
      capture(stream, event->graph);
      return CUDA_SUCCESS;
    }
    EXPECT_EQ(stream->graph, nullptr) << "waits for what is not captured";
    if (event->recorded)
      stream->items.push_back({{}, nullptr, event, event->recorded});
    return CUDA_SUCCESS;
  };
  table.cuEventCreate = [](CUevent *event, unsigned flags) {
    BEGIN("cuEventCreate");
    state->events.push_back({flags == CU_EVENT_DEFAULT});
    *event = &state->events.back();
    ++state->alive;
    return CUDA_SUCCESS;
  };
  table.cuEventRecord = [](CUevent event, CUstream stream) {
    BEGIN("cuEventRecord");
    event->stream = stream;
    event->graph = stream->graph;
    ++event->recorded;
    if (!stream->graph)
      stream->items.push_back({{}, event, nullptr, event->recorded});
    return CUDA_SUCCESS;
  };
  table.cuEventQuery = [](CUevent event) {
    BEGIN("cuEventQuery");
    EXPECT_EQ(event->graph, nullptr) << "what is captured does not run";
    if (event->asked == event->recorded && !state->held)
      run(event->stream, event, event->recorded);
    event->asked = event->recorded;
    if (state->sticky != CUDA_SUCCESS)
      return state->sticky;
    return event->done == event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  table.cuEventElapsedTime = [](float *milliseconds, CUevent begin,
                                CUevent end) {
    LOCK;
    if (!begin->timed || !end->timed)
      return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = 500;
    return CUDA_SUCCESS;
  };
  table.cuEventDestroy_v2 = [](CUevent) {
    LOCK;
    --state->alive;
    return CUDA_SUCCESS;
  };
}

void fillGraphs() {
  table.cuStreamIsCapturing = [](CUstream stream,
                                 CUstreamCaptureStatus *status) {
    BEGIN("cuStreamIsCapturing");
    *status = stream && stream->graph ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                      : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  table.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode *mode) {
    thread_local CUstreamCaptureMode ofThread = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::swap(ofThread, *mode);
    return CUDA_SUCCESS;
  };
  table.cuStreamBeginCapture_v2 = [](CUstream stream, CUstreamCaptureMode) {
    BEGIN("cuStreamBeginCapture_v2", false);
    ++state->alive;
    capture(stream, new CUgraph_st);
    return CUDA_SUCCESS;
  };
  table.cuStreamEndCapture = [](CUstream stream, CUgraph *graph) {
    BEGIN("cuStreamEndCapture", false);
    *graph = stream->graph;
    for (CUstream captured : (*graph)->streams)
      captured->graph = nullptr;
    return CUDA_SUCCESS;
  };
  table.cuGraphInstantiateWithFlags = [](CUgraphExec *executable, CUgraph graph,
                                         unsigned long long) {
    BEGIN("cuGraphInstantiateWithFlags", false);
    *executable = new CUgraphExec_st{*graph};
    ++state->alive;
    return CUDA_SUCCESS;
  };
  table.cuGraphLaunch = [](CUgraphExec executable, CUstream stream) {
    BEGIN("cuGraphLaunch", false);
    for (const std::function<void()> &item : executable->graph.items)
      push(stream, item);
    return CUDA_SUCCESS;
  };
  table.cuGraphExecDestroy = [](CUgraphExec executable) {
    LOCK;
    delete executable;
    --state->alive;
    return CUDA_SUCCESS;
  };
  table.cuGraphDestroy = [](CUgraph graph) {
    LOCK;
    for (CUdeviceptr memory : graph->memory)
      state->memory.erase(find(memory, 0));
    delete graph;
    --state->alive;
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
  fillGraphs();
  ::current = nullptr;
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

void StandInDriver::fail(const std::string &function, CUresult result,
                         int after) {
  LOCK;
  state->failures[function] = {result, after};
}

void StandInDriver::hold() {
  LOCK;
  state->held = true;
}

void StandInDriver::resume() {
  LOCK;
  state->held = false;
}

int StandInDriver::waits() const {
  LOCK;
  return state->waits;
}

void StandInDriver::forgetWait(int number) {
  LOCK;
  state->forgotten = number;
  state->waits = 0;
  state->forgetful = true;
}

int StandInDriver::astray() const {
  LOCK;
  return state->astray;
}

void StandInDriver::setVersion(int version) {
  LOCK;
  state->version = version;
}

int StandInDriver::alive() const {
  LOCK;
  int count = state->alive + static_cast<int>(state->memory.size());
  for (const CUctx_st &context : state->contexts)
    count += context.held;
  return count;
}

int StandInDriver::current() const {
  return ::current ? ::current->ordinal : -1;
}
