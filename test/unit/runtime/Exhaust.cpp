//===- Exhaust.cpp - What happens where memory is out ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The linker (--wrap) calls these functions in the place of those that
// allocate, wherever objects of this program do. What the C library allocates
// for itself is not counted.
//
//===----------------------------------------------------------------------===//
#include "Exhaust.h"
#include "Harness.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <pthread.h>

namespace {

std::atomic<int64_t> untilFailure = 0; ///< allocations; 0: none fails
std::atomic<bool> goesOn = false;      ///< to fail
std::atomic<int64_t> live = 0;         ///< allocations

bool fails() {
  int64_t left = untilFailure.load();
  while (left > 0) {
    int64_t next = left == 1 && goesOn ? 1 : left - 1;
    if (untilFailure.compare_exchange_weak(left, next))
      return left == 1;
  }
  return false;
}

template <typename T>
T *counted(T *memory) {
  live += memory != nullptr;
  return memory;
}

} // namespace

extern "C" {
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) {
  return fails() ? nullptr : counted(__real_malloc(bytes));
}
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes) {
  return fails() ? nullptr : counted(__real_calloc(count, bytes));
}
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes) {
  if (fails())
    return nullptr;
  void *made = __real_realloc(memory, bytes);
  live += made && !memory;
  return made;
}
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes) {
  if (fails())
    return ENOMEM;
  int failure = __real_posix_memalign(memory, alignment, bytes);
  live += failure == 0;
  return failure;
}
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text) {
  return fails() ? nullptr : counted(__real_strdup(text));
}
char *__real_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved) {
  if (!resolved && fails()) {
    errno = ENOMEM;
    return nullptr;
  }
  char *found = __real_realpath(path, resolved);
  live += found && !resolved;
  return found;
}
FILE *__real_fdopen(int descriptor, const char *mode);
FILE *__wrap_fdopen(int descriptor, const char *mode) {
  if (!fails())
    return __real_fdopen(descriptor, mode);
  errno = ENOMEM;
  return nullptr;
}
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *context) {
  return fails() ? EAGAIN
                 : __real_pthread_create(thread, attributes, run, context);
}
void __real_free(void *memory);
void __wrap_free(void *memory) {
  live -= memory != nullptr;
  __real_free(memory);
}
}

namespace burst::test {

/// Debug builds keep as many objects that were destroyed: fills that with ours.
static void fillGraveyard() {
  for (int i = 0; i < 300; ++i)
    burst_error_destroy(burst_trace_create(nullptr));
}

/// Whether there was an n-th allocation.
static bool failNth(const std::function<burst_error *()> &call, int64_t n,
                    bool andAllOthers) {
  int64_t before = live;
  goesOn = andAllOthers;
  untilFailure = n;
  burst_error *error = call();
  // What fails once is done with at 0, what goes on stays at 1.
  int64_t left = untilFailure.exchange(0);
  burst_code code = burst_error_code(error);
  std::string text = takeCoded(error);
  EXPECT_TRUE(text.empty() || code == BURST_OUT_OF_MEMORY ||
              text.find("cannot create a thread") != text.npos ||
              text.find("Cannot allocate memory") != text.npos)
      << "allocation " << n << ": " << text;
  EXPECT_EQ(live, before) << "allocation " << n << " left something: " << text;
  return left == (andAllOthers ? 1 : 0);
}

void exhaust(const std::function<burst_error *()> &call) {
  fillGraveyard();
  EXPECT_EQ(takeCoded(call()), "");
  for (bool andAllOthers : {false, true}) {
    SCOPED_TRACE(andAllOthers ? "it and all behind it" : "it alone");
    int64_t n = 1;
    while (failNth(call, n, andAllOthers) && !testing::Test::HasFailure())
      ++n;
    EXPECT_GT(n, 1) << "nothing was allocated";
  }
}

} // namespace burst::test
