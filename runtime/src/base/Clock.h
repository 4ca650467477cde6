//===- Clock.h - The time of this machine -----------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_BASE_CLOCK_H
#define BURST_RUNTIME_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

// Nanoseconds of a clock that is never set.
static inline int64_t burst_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static inline double burst_seconds(int64_t nanoseconds) {
  return (double)nanoseconds * 1e-9;
}

// At most 100 years, so that sums with the time do not overflow.
static inline int64_t burst_nanoseconds(double seconds) {
  double most = 100.0 * 366 * 24 * 3600;
  return (int64_t)((seconds < most ? seconds : most) * 1e9);
}

// Of which waits end by the clock above.
static inline void burst_cond_init(pthread_cond_t *cond) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(cond, &attributes);
  pthread_condattr_destroy(&attributes);
}

static inline void burst_cond_wait_until(pthread_cond_t *cond,
                                         pthread_mutex_t *mutex, int64_t time) {
  struct timespec until = {time / 1000000000, time % 1000000000};
  pthread_cond_timedwait(cond, mutex, &until);
}

#endif // BURST_RUNTIME_BASE_CLOCK_H
