//===- Device.c - A pool of threads that runs kernels ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/device/Device.h"
#include "burst/internal/config.h"
#include "burst/internal/error.h"
#include "burst/internal/limits.h"
#include "runtime/src/base/Clock.h"
#include "runtime/src/base/Thread.h"
#include "runtime/src/device/Blocks.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// What threads look at while others write beside it lies apart.
enum { CACHE_LINE = 64 };

// Lives on the stack of the thread that launches. It is queued until as many
// threads serve it as it has tasks, or all tasks are begun; it ends when its
// last server is gone then.
typedef struct launch {
  const burst_kernel *kernel;
  const void *arguments;
  int64_t tasks;
  const int32_t *order;
  _Atomic int64_t begun;
  int64_t entered; // that serve it or did so
  int64_t servers;
  bool queued;
  int cpu; // where the thread that launches serves; -1: it does not
  pthread_cond_t ended;
  struct launch *next;
  _Alignas(CACHE_LINE) _Atomic bool done;
} launch;

// A thread of the pool. It serves, is idle (it looks for work, or is called to
// do so) or sleeps.
typedef struct worker {
  burst_device *device;
  pthread_t thread;
  int cpu; // -1: wherever the system puts it
  bool called;
  pthread_cond_t call;
  struct worker *next; // that sleeps
} worker;

struct burst_device {
  burst_handle handle;
  struct burst_cuda *cuda; // null: it is a CPU
  struct burst_gpu *gpu;
  void (*destroy_cuda)(struct burst_cuda *cuda);
  burst_blocks blocks;
  pthread_mutex_t mutex;
  launch *first, **last;
  worker *sleeping; // who fell asleep last is first
  int64_t idle;     // workers
  int64_t serving;  // threads, of workers and of those that launch
  int64_t places;   // threads that may serve at a time
  bool looks;       // waits begin with a look at what is waited for, not asleep
  bool pinned, stopping;
  cpu_set_t cpus; // where kernels run, if pinned
  // The first launch may have one more server.
  _Alignas(CACHE_LINE) _Atomic bool open;
  _Alignas(CACHE_LINE) int64_t num_workers;
  worker workers[];
};

// As long as it takes to put a thread to sleep and to wake it: launches that
// follow each other closely find threads awake, and a wait that was in vain
// costs twice of what sleeping would have cost.
enum { LOOK_NANOSECONDS = 50000 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Looks at `flag` for a while. Others that want this processor get it, and the
// time they take counts.
static void look(const _Atomic bool *flag) {
  int64_t until = burst_now() + LOOK_NANOSECONDS;
  do {
    for (int i = 0; i < 16; ++i) {
      if (atomic_load_explicit(flag, memory_order_acquire))
        return;
      relax();
    }
    sched_yield();
  } while (burst_now() < until);
}

static bool needs_server(const burst_device *device) {
  return device->first && device->serving < device->places;
}

// A worker that sleeps, if there is one: not on the CPU of the thread that
// launches, as long as there are others. The mutex is held.
static worker *wake_one(burst_device *device) {
  worker **place = &device->sleeping;
  while (*place && device->pinned && (*place)->cpu == device->first->cpu)
    place = &(*place)->next;
  if (!*place)
    place = &device->sleeping;
  worker *woken = *place;
  if (woken) {
    *place = woken->next;
    woken->called = true;
    ++device->idle;
  }
  return woken;
}

// Frees the mutex, after a change of the queue or of who serves: tells workers
// that look for work, and calls others if these are too few. Two at most, since
// each calls others when it begins to serve: nobody has to call them all.
static void hand_over(burst_device *device) {
  worker *woken[2] = {NULL, NULL};
  bool open = needs_server(device);
  atomic_store_explicit(&device->open, open, memory_order_release);
  if (open) {
    int64_t wanted = least(device->first->tasks - device->first->entered,
                           device->places - device->serving);
    for (int i = 0; i < 2 && device->idle < wanted; ++i)
      woken[i] = wake_one(device);
  }
  pthread_mutex_unlock(&device->mutex);
  for (int i = 0; i < 2 && woken[i]; ++i)
    pthread_cond_signal(&woken[i]->call);
}

//===----------------------------------------------------------------------===//
// Serving
//===----------------------------------------------------------------------===//

static bool has_stack(void) {
  // Constant for a thread, and slow to ask for.
  static _Thread_local char *begin, *end;
  pthread_attr_t attributes;
  if (!end && pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void *address;
    size_t size;
    pthread_attr_getstack(&attributes, &address, &size);
    pthread_attr_destroy(&attributes);
    begin = address;
    end = begin + size;
  }
  // Beyond the end if the caller has switched to a stack of its own.
  char *here = __builtin_frame_address(0);
  return here <= end && here - begin >= BURST_KERNEL_STACK;
}

// Whether kernels may run on the thread that launches.
static bool may_serve(const burst_device *device) {
  if (device->pinned) {
    cpu_set_t mine, both;
    if (sched_getaffinity(0, sizeof(mine), &mine))
      return false;
    CPU_AND(&both, &mine, &device->cpus);
    if (!CPU_EQUAL(&both, &mine))
      return false;
  }
  return has_stack();
}

static void leave_queue(burst_device *device) {
  // Only a first launch gets servers, and it stays first until here.
  launch *left = device->first;
  left->queued = false;
  device->first = left->next;
  if (!device->first)
    device->last = &device->first;
}

// Does tasks of the first launch until all are begun. The mutex is held before
// and after.
static void serve(burst_device *device) {
  launch *served = device->first;
  ++served->servers;
  ++device->serving;
  if (++served->entered == served->tasks)
    leave_queue(device);
  hand_over(device);
  for (;;) {
    int64_t task =
        atomic_fetch_add_explicit(&served->begun, 1, memory_order_relaxed);
    if (task >= served->tasks)
      break;
    served->kernel->run(served->arguments,
                        served->order ? served->order[task] : task);
  }
  pthread_mutex_lock(&device->mutex);
  --device->serving;
  if (served->queued)
    leave_queue(device);
  if (--served->servers == 0) {
    atomic_store_explicit(&served->done, true, memory_order_release);
    pthread_cond_signal(&served->ended);
  }
}

// Looks for work first, if that is of use. The mutex is held before and after.
static void wait_for_work(worker *self) {
  burst_device *device = self->device;
  if (device->looks) {
    pthread_mutex_unlock(&device->mutex);
    look(&device->open);
    pthread_mutex_lock(&device->mutex);
    if (needs_server(device) || device->stopping)
      return;
  }
  --device->idle; // whoever calls it counts it again
  self->called = false;
  self->next = device->sleeping;
  device->sleeping = self;
  while (!self->called && !device->stopping)
    pthread_cond_wait(&self->call, &device->mutex);
}

static void *work(void *context) {
  worker *self = context;
  burst_device *device = self->device;
  pthread_mutex_lock(&device->mutex);
  ++device->idle;
  while (!device->stopping) {
    if (!needs_server(device)) {
      wait_for_work(self);
      continue;
    }
    --device->idle;
    serve(device);
    ++device->idle;
    hand_over(device);
    pthread_mutex_lock(&device->mutex);
  }
  pthread_mutex_unlock(&device->mutex);
  return NULL;
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

void burst_device_launch(burst_device *device, const burst_kernel *kernel,
                         const void *arguments, int64_t tasks,
                         const int32_t *order) {
  if (tasks == 0)
    return;
  launch mine = {.kernel = kernel,
                 .arguments = arguments,
                 .tasks = tasks,
                 .order = order,
                 .queued = true,
                 .cpu = -1,
                 .ended = PTHREAD_COND_INITIALIZER};
  bool serves = may_serve(device);
  pthread_mutex_lock(&device->mutex);
  *device->last = &mine;
  device->last = &mine.next;
  // Serving one's own launch spares two changes of threads. Only on a place of
  // the pool that is free, and behind no older launch.
  if (serves && device->first == &mine && needs_server(device)) {
    mine.cpu = sched_getcpu();
    serve(device);
  }
  bool done = mine.done;
  hand_over(device);
  if (!done) {
    if (device->looks)
      look(&mine.done);
    // Also where it is done: its last server may still have the mutex.
    pthread_mutex_lock(&device->mutex);
    while (!mine.done)
      pthread_cond_wait(&mine.ended, &device->mutex);
    pthread_mutex_unlock(&device->mutex);
  }
  pthread_cond_destroy(&mine.ended);
}

static burst_error *check(const burst_device_config *config) {
  if (config->threads < 0 || config->threads > BURST_MOST_THREADS)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "device: %ld threads, wanted 0 to %d",
                              (long)config->threads, BURST_MOST_THREADS);
  if (config->num_cpus < 0 || config->num_cpus > BURST_MOST_THREADS ||
      (config->num_cpus > 0 && !config->cpus))
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "device: %s list of %ld CPUs, wanted 0 to %d",
                              config->cpus ? "a" : "no", (long)config->num_cpus,
                              BURST_MOST_THREADS);
  for (int64_t i = 0; i < config->num_cpus; ++i)
    if (config->cpus[i] < 0 || config->cpus[i] >= CPU_SETSIZE)
      return burst_error_create(BURST_INVALID_ARGUMENT, "",
                                "device: CPU %ld, wanted 0 to %d",
                                (long)config->cpus[i], CPU_SETSIZE - 1);
  return NULL;
}

// Where kernels may run.
static void find_cpus(const burst_device_config *config, cpu_set_t *cpus) {
  CPU_ZERO(cpus);
  for (int64_t i = 0; i < config->num_cpus; ++i)
    CPU_SET((size_t)config->cpus[i], cpus);
  if (config->num_cpus == 0)
    sched_getaffinity(0, sizeof(*cpus), cpus);
}

static int64_t number_of_threads(const burst_device_config *config,
                                 const cpu_set_t *cpus) {
  if (config->threads)
    return config->threads;
  if (config->num_cpus)
    return config->num_cpus;
  return CPU_COUNT(cpus) ? CPU_COUNT(cpus) : 1;
}

static burst_error *start_worker(burst_device *device,
                                 const burst_device_config *config, int64_t i) {
  worker *made = &device->workers[i];
  made->device = device;
  made->cpu = config->num_cpus ? (int)config->cpus[i % config->num_cpus] : -1;
  pthread_cond_init(&made->call, NULL);
  burst_error *error =
      burst_thread_create("a device", &made->thread, work, made);
  if (error)
    return error;
  ++device->num_workers;
  if (made->cpu < 0)
    return NULL;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET((size_t)made->cpu, &cpus);
  int failure = pthread_setaffinity_np(made->thread, sizeof(cpus), &cpus);
  if (failure)
    return burst_error_create(BURST_SYSTEM, "",
                              "device: cannot pin a thread to CPU %d: %s",
                              made->cpu, strerror(failure));
  return NULL;
}

burst_error *burst_device_create_cpu(const burst_device_config *given,
                                     burst_device **device) {
  BURST_REQUIRE(device);
  *device = NULL;
  burst_device_config config;
  burst_error *error = burst_config_read("burst_device_config", &config,
                                         sizeof(config), given, sizeof(size_t));
  if (!error)
    error = check(&config);
  if (error)
    return error;
  cpu_set_t cpus;
  find_cpus(&config, &cpus);
  int64_t threads = number_of_threads(&config, &cpus);
  size_t bytes = sizeof(burst_device) + (size_t)threads * sizeof(worker);
  burst_device *made;
  if (posix_memalign((void **)&made, _Alignof(burst_device), bytes))
    return burst_error_no_memory(bytes);
  memset(made, 0, bytes);
  made->handle.magic = BURST_MAGIC(BURST_KIND_DEVICE);
  burst_blocks_begin(&made->blocks);
  // Held so shortly that waiting for it asleep takes longer.
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init(&made->mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  made->last = &made->first;
  made->places = threads;
  made->looks = threads <= CPU_COUNT(&cpus);
  made->pinned = config.num_cpus > 0;
  made->cpus = cpus;
  for (int64_t i = 0; i < threads && !error; ++i)
    error = start_worker(made, &config, i);
  if (error)
    burst_device_destroy(made);
  else
    *device = made;
  return error;
}

void burst_device_destroy(burst_device *device) {
  BURST_CHECK(device, BURST_KIND_DEVICE);
  if (!device)
    return;
  burst_handle_end(&device->handle);
  if (device->cuda)
    device->destroy_cuda(device->cuda);
  pthread_mutex_lock(&device->mutex);
  device->stopping = true;
  for (int64_t i = 0; i < device->num_workers; ++i)
    pthread_cond_signal(&device->workers[i].call);
  pthread_mutex_unlock(&device->mutex);
  for (int64_t i = 0; i < device->num_workers; ++i) {
    pthread_join(device->workers[i].thread, NULL);
    pthread_cond_destroy(&device->workers[i].call);
  }
  pthread_mutex_destroy(&device->mutex);
  burst_blocks_end(&device->blocks);
  burst_handle_free(device);
}

int64_t burst_device_threads(const burst_device *device) {
  BURST_CHECK(device, BURST_KIND_DEVICE);
  return device ? device->places : 0;
}

burst_blocks *burst_device_blocks(burst_device *device) {
  return &device->blocks;
}

void burst_device_trim(burst_device *device) {
  BURST_CHECK(device, BURST_KIND_DEVICE);
  if (device)
    burst_blocks_trim(&device->blocks);
}

void burst_device_set_cuda(burst_device *device, struct burst_cuda *cuda,
                           struct burst_gpu *gpu,
                           void (*destroy)(struct burst_cuda *cuda)) {
  device->cuda = cuda;
  device->gpu = gpu;
  device->destroy_cuda = destroy;
}

struct burst_cuda *burst_device_cuda(const burst_device *device) {
  return device->cuda;
}

struct burst_gpu *burst_device_gpu(const burst_device *device) {
  return device->gpu;
}
