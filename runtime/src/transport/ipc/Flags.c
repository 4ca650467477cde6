//===- Flags.c - Words that GPUs of one machine share ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/transport/ipc/Flags.h"
#include "burst/internal/error.h"
#include "runtime/src/cuda/GpuImpl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// What a rank says of itself.
typedef struct member {
  _Alignas(64) _Atomic uint32_t stopping; // the reason is being written
  _Atomic uint32_t stopped, ended;
  char reason[BURST_FLAG_REASON];
} member;

static member *member_of(const burst_flags *flags, int64_t rank) {
  return (member *)flags->memory + rank;
}

static size_t bytes_of(int64_t num_ranks) {
  size_t ranks = (size_t)num_ranks, page = (size_t)sysconf(_SC_PAGESIZE);
  size_t bytes =
      ranks * sizeof(member) + ranks * ranks * sizeof(burst_flag_pair);
  return (bytes + page - 1) / page * page;
}

//===----------------------------------------------------------------------===//
// Creation and end
//===----------------------------------------------------------------------===//

static burst_error *map(burst_flags *flags, int fd, int64_t num_ranks) {
  size_t bytes = bytes_of(num_ranks);
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED)
    return burst_error_create(BURST_SYSTEM, "",
                              "cannot map %zu bytes of shared memory: %s",
                              bytes, strerror(errno));
  *flags =
      (burst_flags){.memory = memory, .bytes = bytes, .num_ranks = num_ranks};
  return NULL;
}

burst_error *burst_flags_name(burst_flag_name *name) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number))
    return burst_error_create(BURST_SYSTEM, "",
                              "cannot name shared memory: no random number: %s",
                              strerror(errno));
  snprintf(name->text, sizeof(name->text), "/burst-%d-%016" PRIx64, getpid(),
           number);
  return NULL;
}

burst_error *burst_flags_create(burst_flags *flags, int64_t num_ranks,
                                const burst_flag_name *name) {
  int fd = shm_open(name->text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return burst_error_create(BURST_SYSTEM, "",
                              "cannot make shared memory \"%s\": %s",
                              name->text, strerror(errno));
  // What is not there is found now, and not when it is written.
  int failure = posix_fallocate(fd, 0, (off_t)bytes_of(num_ranks));
  burst_error *error =
      failure ? burst_error_create(BURST_SYSTEM, "",
                                   "cannot make %zu bytes of shared memory: %s",
                                   bytes_of(num_ranks), strerror(failure))
              : map(flags, fd, num_ranks);
  close(fd);
  if (error)
    shm_unlink(name->text);
  return error;
}

burst_error *burst_flags_open(burst_flags *flags, int64_t num_ranks,
                              const burst_flag_name *name) {
  int fd = shm_open(name->text, O_RDWR | O_CLOEXEC, 0);
  if (fd < 0)
    return burst_error_create(BURST_SYSTEM, "",
                              "cannot open shared memory \"%s\": %s",
                              name->text, strerror(errno));
  burst_error *error = map(flags, fd, num_ranks);
  close(fd);
  return error;
}

void burst_flags_unlink(const burst_flag_name *name) {
  if (*name->text)
    shm_unlink(name->text);
}

burst_error *burst_flags_register(burst_flags *flags, burst_gpu *gpu) {
  const burst_driver *driver = gpu->driver;
  const char *call = "cuMemHostRegister";
  CUcontext before;
  burst_error *error = burst_gpu_enter(gpu, &before);
  if (error)
    return error;
  CUresult result = driver->cuMemHostRegister_v2(
      flags->memory, flags->bytes,
      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result == CUDA_SUCCESS) {
    flags->gpu = gpu;
    call = "cuMemHostGetDevicePointer";
    result =
        driver->cuMemHostGetDevicePointer_v2(&flags->mapped, flags->memory, 0);
  }
  burst_gpu_leave(gpu, before);
  return result == CUDA_SUCCESS
             ? NULL
             : burst_driver_error(driver, gpu->properties.ordinal, call,
                                  result);
}

void burst_flags_close(burst_flags *flags) {
  CUcontext before;
  if (!flags->memory)
    return;
  if (flags->gpu) {
    burst_error *error = burst_gpu_enter(flags->gpu, &before);
    if (!error) {
      flags->gpu->driver->cuMemHostUnregister(flags->memory);
      burst_gpu_leave(flags->gpu, before);
    }
    burst_error_destroy(error); // the GPU is lost, but not the host's memory
  }
  munmap(flags->memory, flags->bytes);
  *flags = (burst_flags){.memory = NULL};
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

burst_flag_pair *burst_flags_pair(const burst_flags *flags, int64_t from,
                                  int64_t to) {
  burst_flag_pair *pairs =
      (burst_flag_pair *)member_of(flags, flags->num_ranks);
  return &pairs[from * flags->num_ranks + to];
}

CUdeviceptr burst_flags_address(const burst_flags *flags,
                                const _Atomic uint32_t *word) {
  return flags->mapped + (CUdeviceptr)((const char *)word - flags->memory);
}

void burst_flags_stop(const burst_flags *flags, int64_t rank,
                      const char *sentence) {
  member *own = member_of(flags, rank);
  if (atomic_exchange(&own->stopping, 1))
    return;
  snprintf(own->reason, sizeof(own->reason), "%s", sentence);
  atomic_store(&own->stopped, 1);
}

const char *burst_flags_stopped(const burst_flags *flags, int64_t rank) {
  enum { PATIENCE = 1000 };
  const member *other = member_of(flags, rank);
  if (!atomic_load(&other->stopping))
    return NULL;
  // It takes no time to write, unless its process ended just then.
  for (int i = 0; i < PATIENCE && !atomic_load(&other->stopped); ++i)
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  return atomic_load(&other->stopped) ? other->reason : "a rank stopped";
}

void burst_flags_end(const burst_flags *flags, int64_t rank) {
  atomic_store(&member_of(flags, rank)->ended, 1);
}

bool burst_flags_ended(const burst_flags *flags, int64_t rank) {
  return atomic_load(&member_of(flags, rank)->ended);
}
