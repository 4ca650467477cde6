//===- Device.c - A pool of threads that runs kernels ---------------------===//

#include "Device.h"
#include "Config.h"
#include "Error.h"
#include "cuda/Device.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Lives on the stack of the thread that launches. A thread that serves it is
// one of its servers until the thread has no more task of it to do; the launch
// ends when it has left the queue and its last server is gone.
typedef struct launch {
  const burst_kernel *kernel;
  const void *arguments;
  int64_t tasks;
  const int32_t *order;
  _Atomic int64_t begun;
  int64_t servers;
  bool queued;
  pthread_cond_t ended;
  struct launch *next;
} launch;

struct burst_device {
  struct burst_cuda *cuda;
  pthread_mutex_t mutex;
  pthread_cond_t work; // there is a launch that needs servers
  launch *first, **last;
  int64_t places;  // threads that may serve at a time
  int64_t serving; // threads that do
  int64_t sleeping;
  bool pinned, stopping;
  int64_t num_workers;
  pthread_t workers[];
};

// Stack that a thread must have left to run kernels.
enum { KERNEL_STACK = 4 << 20 };

enum { MOST_THREADS = 1 << 16 };

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
  return here <= end && here - begin >= KERNEL_STACK;
}

static bool needs_server(const burst_device *device) {
  return device->first && device->serving < device->places;
}

// Does tasks of the first launch until all are begun; then the launch leaves
// the queue. The mutex is held before and after.
static void serve(burst_device *device) {
  launch *served = device->first;
  ++served->servers;
  ++device->serving;
  pthread_mutex_unlock(&device->mutex);
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
  if (served->queued) {
    // Only a first launch gets servers, and it stays first until here.
    served->queued = false;
    device->first = served->next;
    if (!device->first)
      device->last = &device->first;
  }
  if (--served->servers == 0)
    pthread_cond_signal(&served->ended);
}

static void *worker(void *context) {
  burst_device *device = context;
  pthread_mutex_lock(&device->mutex);
  while (!device->stopping) {
    if (needs_server(device)) {
      serve(device);
    } else {
      ++device->sleeping;
      pthread_cond_wait(&device->work, &device->mutex);
      --device->sleeping;
    }
  }
  pthread_mutex_unlock(&device->mutex);
  return NULL;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void wake(burst_device *device, int64_t count) {
  count = least(count, device->sleeping);
  while (count-- > 0)
    pthread_cond_signal(&device->work);
}

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
                 .ended = PTHREAD_COND_INITIALIZER};
  pthread_mutex_lock(&device->mutex);
  *device->last = &mine;
  device->last = &mine.next;
  int64_t wanted = least(tasks, device->places - device->serving);
  // Serving one's own launch spares two changes of threads. Only on a place of
  // the pool that is free, and behind no older launch.
  if (device->first == &mine && needs_server(device) && !device->pinned &&
      has_stack()) {
    wake(device, wanted - 1);
    serve(device);
    if (needs_server(device))
      wake(device, 1);
  } else {
    wake(device, wanted);
  }
  while (mine.queued || mine.servers)
    pthread_cond_wait(&mine.ended, &device->mutex);
  pthread_mutex_unlock(&device->mutex);
  pthread_cond_destroy(&mine.ended);
}

static burst_error *check(const burst_device_config *config) {
  if (config->threads < 0 || config->threads > MOST_THREADS)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "device: %ld threads, wanted 0 to %d",
                              (long)config->threads, MOST_THREADS);
  if (config->num_cpus < 0 || config->num_cpus > MOST_THREADS ||
      (config->num_cpus > 0 && !config->cpus))
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "device: %s list of %ld CPUs, wanted 0 to %d",
                              config->cpus ? "a" : "no", (long)config->num_cpus,
                              MOST_THREADS);
  for (int64_t i = 0; i < config->num_cpus; ++i)
    if (config->cpus[i] < 0 || config->cpus[i] >= CPU_SETSIZE)
      return burst_error_create(BURST_INVALID_ARGUMENT, "",
                                "device: CPU %ld, wanted 0 to %d",
                                (long)config->cpus[i], CPU_SETSIZE - 1);
  return NULL;
}

static int64_t number_of_threads(const burst_device_config *config) {
  if (config->threads)
    return config->threads;
  if (config->num_cpus)
    return config->num_cpus;
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus);
}

static burst_error *start_worker(burst_device *device,
                                 const burst_device_config *config, int64_t i) {
  burst_error *error =
      burst_thread_create("a device", &device->workers[i], worker, device);
  if (error)
    return error;
  ++device->num_workers;
  if (config->num_cpus == 0)
    return NULL;
  int64_t cpu = config->cpus[i % config->num_cpus];
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET((size_t)cpu, &cpus);
  int failure = pthread_setaffinity_np(device->workers[i], sizeof(cpus), &cpus);
  if (failure)
    return burst_error_create(BURST_SYSTEM, "",
                              "device: cannot pin a thread to CPU %ld: %s",
                              (long)cpu, strerror(failure));
  return NULL;
}

burst_error *burst_device_create_cpu(const burst_device_config *given,
                                     burst_device **device) {
  *device = NULL;
  burst_device_config config;
  burst_error *error = burst_config_read("burst_device_config", &config,
                                         sizeof(config), given, sizeof(size_t));
  if (!error)
    error = check(&config);
  if (error)
    return error;
  int64_t threads = number_of_threads(&config);
  size_t bytes = sizeof(burst_device) + (size_t)threads * sizeof(pthread_t);
  burst_device *made = calloc(1, bytes);
  if (!made)
    return burst_error_no_memory(bytes);
  pthread_mutex_init(&made->mutex, NULL);
  pthread_cond_init(&made->work, NULL);
  made->last = &made->first;
  made->places = threads;
  made->pinned = config.num_cpus > 0;
  for (int64_t i = 0; i < threads && !error; ++i)
    error = start_worker(made, &config, i);
  if (error)
    burst_device_destroy(made);
  else
    *device = made;
  return error;
}

void burst_device_destroy(burst_device *device) {
  if (!device)
    return;
  burst_cuda_destroy(device->cuda);
  pthread_mutex_lock(&device->mutex);
  device->stopping = true;
  pthread_cond_broadcast(&device->work);
  pthread_mutex_unlock(&device->mutex);
  for (int64_t i = 0; i < device->num_workers; ++i)
    pthread_join(device->workers[i], NULL);
  pthread_cond_destroy(&device->work);
  pthread_mutex_destroy(&device->mutex);
  free(device);
}

int64_t burst_device_threads(const burst_device *device) {
  return device->places;
}

burst_cuda *burst_device_cuda(const burst_device *device) {
  return device->cuda;
}

void burst_device_set_cuda(burst_device *device, burst_cuda *cuda) {
  device->cuda = cuda;
}
