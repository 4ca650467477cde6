//===- Memory.cpp - Memory and copies of the emulated driver --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Gpus.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

using namespace burst::standins;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes) {
  ENTER();
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const Allocation *made = gpus.allocate(currentContext, bytes);
  if (!made)
    return CUDA_ERROR_OUT_OF_MEMORY;
  gpus.touchOrdered(gpus.hostOperation(currentContext, "cuMemAlloc"), *made,
                    {made->base, made->base + bytes}, true);
  *memory = made->base;
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr memory) {
  ENTER();
  Allocation *found = gpus.findAllocation(memory);
  if (!found || found->base != memory || found->freed)
    return CUDA_ERROR_INVALID_VALUE;
  // That the driver may wait for all that runs is nothing to rely on.
  Operation now = gpus.hostOperation(currentContext, "cuMemFree");
  if (gpus.touch(now, memory, found->bytes, true))
    gpus.release(*found, now.step);
  return currentContext->sticky;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
  ENTER(Call::Initialised);
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      properties->location.id < 0 ||
      size_t(properties->location.id) >= gpus.contexts.size())
    return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<CUmemPoolHandle_st>();
  made->context = &gpus.contexts[size_t(properties->location.id)];
  *pool = made.get();
  gpus.pools[*pool] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  ENTER(Call::Initialised);
  return gpus.pools.erase(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                               void *value) {
  ENTER(Call::Initialised);
  // Nothing is kept that could be released.
  return gpus.pools.contains(pool) &&
                 attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && value
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *accesses,
                            size_t count) {
  ENTER(Call::Initialised);
  if (!gpus.pools.contains(pool))
    return CUDA_ERROR_INVALID_VALUE;
  for (const CUmemAccessDesc *access = accesses; access != accesses + count;
       ++access) {
    if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        access->location.id < 0 ||
        size_t(access->location.id) >= gpus.contexts.size() ||
        access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
    pool->peers.insert(access->location.id);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *memory, size_t bytes,
                                 CUmemoryPool pool, CUstream stream) {
  ENTER();
  auto found = gpus.pools.find(pool);
  StreamRef onto = gpus.find(stream);
  if (found == gpus.pools.end() || bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (!onto)
    return CUDA_ERROR_INVALID_HANDLE;
  if (onto->capture)
    return captureUnsupported;
  Allocation *made = gpus.allocate(pool->context, bytes);
  if (!made)
    return CUDA_ERROR_OUT_OF_MEMORY;
  made->pool = found->second;
  *memory = made->base;
  Operation operation{.what = fmt::format("allocation of {} bytes", bytes)};
  operation.run = [&gpus, made](Operation &now) {
    gpus.touch(now, made->base, made->bytes, true);
  };
  return call.put(stream, std::move(operation));
}

CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream) {
  ENTER();
  const Allocation *found = gpus.findAllocation(memory);
  if (!found || found->base != memory)
    return CUDA_ERROR_INVALID_VALUE;
  StreamRef onto = gpus.find(stream);
  if (onto && onto->capture)
    return captureUnsupported;
  Operation operation{.what = "free"};
  operation.run = [&gpus, memory](Operation &now) {
    Allocation *allocation = gpus.findAllocation(memory);
    if (gpus.touch(now, memory, allocation->bytes, true))
      gpus.release(*allocation, now.step);
  };
  return call.put(stream, std::move(operation));
}

CUresult cuMemAllocHost_v2(void **memory, size_t bytes) {
  ENTER();
  *memory = malloc(bytes);
  if (!*memory)
    return CUDA_ERROR_OUT_OF_MEMORY;
  memset(*memory, 0xff, bytes);
  gpus.hostMemory[*memory] = bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *memory) {
  ENTER();
  auto found = gpus.hostMemory.find(memory);
  if (found == gpus.hostMemory.end())
    return CUDA_ERROR_INVALID_VALUE;
  // Copies that nothing has waited for still use it.
  gpus.drain(currentContext);
  gpus.touchHost(gpus.hostOperation(currentContext, "cuMemFreeHost"), memory,
                 found->second, true);
  gpus.hostMemory.erase(found);
  free(memory);
  return currentContext->sticky;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute,
                               CUdeviceptr memory) {
  ENTER();
  if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    return CUDA_ERROR_INVALID_VALUE;
  const Allocation *found = gpus.findAllocation(memory);
  bool isDevice = found && !found->freed, isHost = false;
  for (auto [begin, bytes] : gpus.hostMemory)
    isHost |= memory - reinterpret_cast<CUdeviceptr>(begin) < bytes;
  for (const auto &[begin, registration] : gpus.registered)
    isHost |= memory - begin < registration.bytes;
  if (!isDevice && !isHost)
    return CUDA_ERROR_INVALID_VALUE;
  CUmemorytype type = isDevice ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  memcpy(value, &type, sizeof(type));
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

namespace {
/// One side of a copy of rows.
struct Side {
  char *host = nullptr; // or null, and
  uint64_t device = 0;
  size_t pitch = 0;
  char *hostRow(size_t i) const { return host + i * pitch; }
  uint64_t row(size_t i) const { return device + i * pitch; }
};
struct Rows {
  Side to, from;
  size_t bytes, count;
};
} // namespace

static uint64_t hash(const Rows &rows) {
  uint64_t result = 0;
  for (size_t i = 0; i < rows.count; ++i)
    result = result * 31 +
             std::hash<std::string_view>()({rows.from.hostRow(i), rows.bytes});
  return result;
}

static void run(Gpus &gpus, const Rows &rows, uint64_t wanted,
                const Operation &now) {
  if (rows.from.host && hash(rows) != wanted) {
    gpus.report(now.stream->context, CUDA_ERROR_LAUNCH_FAILED,
                fmt::format("changed too early: {} reads the host's memory at "
                            "{:#x}\n  which has changed since it was asked for",
                            now.step->what,
                            reinterpret_cast<uint64_t>(rows.from.host)));
    return;
  }
  for (size_t i = 0; i < rows.count; ++i) {
    for (const Side *side : {&rows.from, &rows.to}) {
      bool writes = side == &rows.to;
      if (side->host
              ? !gpus.touchHost(now, side->hostRow(i), rows.bytes, writes)
              : !gpus.touch(now, side->row(i), rows.bytes, writes))
        return;
    }
    if (rows.from.host && rows.to.host)
      memmove(rows.to.hostRow(i), rows.from.hostRow(i), rows.bytes);
    else if (rows.from.host)
      gpus.memory.write(rows.to.row(i), rows.from.hostRow(i), rows.bytes);
    else if (rows.to.host)
      gpus.memory.read(rows.from.row(i), rows.to.hostRow(i), rows.bytes);
    else
      gpus.copy(rows.to.row(i), rows.from.row(i), rows.bytes);
  }
}

static CUresult copy(Call &call, const Rows &rows, CUstream stream) {
  StreamRef onto = call.gpus.find(stream);
  if (!onto)
    return CUDA_ERROR_INVALID_HANDLE;
  if (rows.bytes == 0 || rows.count == 0)
    return CUDA_SUCCESS;
  auto where = [](const Side &side) { return side.host ? "host" : "GPU"; };
  std::string what =
      fmt::format("copy of {} bytes from {} to {}", rows.bytes * rows.count,
                  where(rows.from), where(rows.to));
  // In a graph the host's memory is read when that is launched.
  call.gpus.submit(onto, [rows, what, isNever = call.isNever,
                          &gpus = call.gpus](const StreamRef &onto, Replay *) {
    Operation operation{.what = what};
    if (isNever)
      operation.await = [](Operation &) { return false; };
    operation.run = [rows, wanted = rows.from.host ? hash(rows) : 0,
                     &gpus](Operation &now) { run(gpus, rows, wanted, now); };
    gpus.push(onto, std::move(operation));
  });
  return CUDA_SUCCESS;
}

static Side onHost(const void *memory, size_t pitch = 0) {
  return {static_cast<char *>(const_cast<void *>(memory)), 0, pitch};
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                              CUstream stream) {
  ENTER();
  return copy(call, {{nullptr, to}, onHost(from), bytes, 1}, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  ENTER();
  return copy(call, {onHost(to), {nullptr, from}, bytes, 1}, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  ENTER();
  return copy(call, {{nullptr, to}, {nullptr, from}, bytes, 1}, stream);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext toContext,
                           CUdeviceptr from, CUcontext fromContext,
                           size_t bytes, CUstream stream) {
  ENTER();
  for (auto [memory, context] :
       {std::pair(to, toContext), std::pair(from, fromContext)}) {
    const Allocation *found = gpus.findAllocation(memory);
    if (!found || !context || found->device != context->ordinal)
      return CUDA_ERROR_INVALID_VALUE;
  }
  return copy(call, {{nullptr, to}, {nullptr, from}, bytes, 1}, stream);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *rows, CUstream stream) {
  ENTER();
  auto isKnown = [](CUmemorytype type) {
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE;
  };
  if (!isKnown(rows->srcMemoryType) || !isKnown(rows->dstMemoryType) ||
      (rows->Height > 1 && (rows->srcPitch < rows->WidthInBytes ||
                            rows->dstPitch < rows->WidthInBytes)))
    return CUDA_ERROR_INVALID_VALUE;
  Side from = rows->srcMemoryType == CU_MEMORYTYPE_HOST
                  ? onHost(rows->srcHost, rows->srcPitch)
                  : Side{nullptr, rows->srcDevice, rows->srcPitch};
  Side to = rows->dstMemoryType == CU_MEMORYTYPE_HOST
                ? onHost(rows->dstHost, rows->dstPitch)
                : Side{nullptr, rows->dstDevice, rows->dstPitch};
  for (auto [side, bytes] :
       {std::pair(&from, rows->srcY * rows->srcPitch + rows->srcXInBytes),
        std::pair(&to, rows->dstY * rows->dstPitch + rows->dstXInBytes)})
    side->host ? void(side->host += bytes) : void(side->device += bytes);
  return copy(call, {to, from, rows->WidthInBytes, rows->Height}, stream);
}

CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t bytes,
                         CUstream stream) {
  ENTER();
  Operation operation{.what = fmt::format("fill of {} bytes", bytes)};
  operation.run = [=, &gpus](Operation &now) {
    if (gpus.touch(now, memory, bytes, true))
      gpus.memory.write(memory, std::string(bytes, char(value)).data(), bytes);
  };
  return call.put(stream, std::move(operation));
}

//===----------------------------------------------------------------------===//
// What processes share
//===----------------------------------------------------------------------===//

/// A number of what is mapped at an address, the same for all mappings of a
/// file: streams of several ranks of a process wait for the same word of it.
static uint64_t numberOfMapping(uint64_t address) {
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[512];
  uint64_t found = address;
  while (maps && fgets(line, sizeof(line), maps)) {
    unsigned long begin, end, offset, major, minor, inode;
    if (sscanf(line, "%lx-%lx %*s %lx %lx:%lx %lu", &begin, &end, &offset,
               &major, &minor, &inode) == 6 &&
        begin <= address && address < end && inode)
      found = (uint64_t(1) << 63) + (uint64_t(inode) << 32) +
              (offset + address - begin);
  }
  if (maps)
    fclose(maps);
  return found;
}

CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned int flags) {
  ENTER();
  auto address = reinterpret_cast<uint64_t>(memory);
  if (!memory || !bytes ||
      flags &
          ~unsigned(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP))
    return CUDA_ERROR_INVALID_VALUE;
  if (gpus.registered.contains(address))
    return alreadyRegistered;
  gpus.registered[address] = {bytes, numberOfMapping(address)};
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *memory) {
  ENTER();
  auto found = gpus.registered.find(reinterpret_cast<uint64_t>(memory));
  if (found == gpus.registered.end())
    return notRegistered;
  // What another mapping of the same words has seen is of the past too.
  auto first = gpus.words.lower_bound(found->second.file);
  gpus.words.erase(
      first, gpus.words.lower_bound(found->second.file + found->second.bytes));
  gpus.registered.erase(found);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *mapped, void *memory,
                                      unsigned int flags) {
  ENTER();
  *mapped = reinterpret_cast<CUdeviceptr>(memory);
  auto after = gpus.registered.upper_bound(*mapped);
  bool isKnown =
      !flags && after != gpus.registered.begin() &&
      *mapped - std::prev(after)->first < std::prev(after)->second.bytes;
  return isKnown ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

namespace {
/// What is in a handle.
struct Exported {
  int process, fd;
  size_t bytes;
};
} // namespace
static_assert(sizeof(Exported) <= CU_IPC_HANDLE_SIZE);

static bool share(Allocation &allocation, int fd) {
  void *mapped = mmap(nullptr, allocation.bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED)
    return false;
  allocation.shared = static_cast<char *>(mapped);
  return true;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr memory) {
  ENTER();
  Allocation *found = gpus.findAllocation(memory);
  if (!found || found->freed || found->base != memory || found->pool)
    return CUDA_ERROR_INVALID_VALUE;
  if (!found->shared) {
    found->fd = memfd_create("burst-emulated", MFD_CLOEXEC);
    if (found->fd < 0 || ftruncate(found->fd, off_t(found->bytes)) ||
        !share(*found, found->fd))
      return CUDA_ERROR_OUT_OF_MEMORY;
    gpus.memory.read(memory, found->shared, found->bytes);
  }
  const Exported exported{getpid(), found->fd, found->bytes};
  *handle = {};
  memcpy(handle, &exported, sizeof(exported));
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *memory, CUipcMemHandle handle,
                               unsigned int flags) {
  ENTER();
  Exported exported;
  memcpy(&exported, &handle, sizeof(exported));
  if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    return CUDA_ERROR_INVALID_VALUE;
  if (exported.process == getpid()) // as of a driver
    return CUDA_ERROR_INVALID_CONTEXT;
  std::string path =
      fmt::format("/proc/{}/fd/{}", exported.process, exported.fd);
  int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return CUDA_ERROR_INVALID_VALUE;
  Allocation *made = gpus.allocate(currentContext, exported.bytes);
  bool isShared = made && share(*made, fd);
  close(fd);
  if (!isShared)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = made->base;
  return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr memory) {
  ENTER();
  Allocation *found = gpus.findAllocation(memory);
  if (!found || found->base != memory || found->freed || !found->shared ||
      found->fd >= 0)
    return CUDA_ERROR_INVALID_VALUE;
  Operation now = gpus.hostOperation(currentContext, "cuIpcCloseMemHandle");
  if (gpus.touch(now, memory, found->bytes, true))
    gpus.release(*found, now.step);
  return currentContext->sticky;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *, CUevent) {
  ENTER();
  return notSupported;
}

CUresult cuIpcOpenEventHandle(CUevent *, CUipcEventHandle) {
  ENTER();
  return notSupported;
}
